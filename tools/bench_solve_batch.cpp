// Rows for solves with the Cholesky factors of many matrices of one size, strided or by pointers; or with the matrices, in
// one call.
#include "bench.hpp"
#include "failure.hpp"
#include "flops.hpp"
#include "random_matrix.hpp"
#include "residual.hpp"
#include "scalars.hpp"

#include <trifactor/trifactor.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <optional>

namespace program {

template <Scalar T>
Row bench_solve_batch(Bench& bench, index_t n, index_t nrhs) {
  const BenchOptions& o = bench.options;
  const bool factors_too = o.method == "factor-solve";
  if (o.is_ragged())
    throw InputError(fmt::format("--kind ragged: bench batch --method {} measures strided and pointers", o.method));
  Queue& q = bench.queue;
  const Uplo uplo = o.triangle();
  const index_t count = o.count;
  require_memory("this batch", (3.1 * double(n) + 3.1 * double(nrhs)) * double(n) * double(count) * sizeof(T));
  Buffer<T> A(n * n * count), B(n * nrhs * count);
  for (index_t i = 0; i < count; ++i)
    fill_positive_definite(square(A.data() + i * n * n, n), o.seed + std::uint64_t(i));
  fill_random(MatrixView<T>{B.data(), n, nrhs * count, n}, o.seed + std::uint64_t(count));

  // The factors, ours, serve both sides; the peer's copy lies where it works. Where they are part of the work, they are
  // the matrices before every run.
  Operands<T> factors(q, A.data(), A.size());
  factors.restore(0);
  Buffer<int> info(q, count);
  trifactor::cholesky(q, uplo, trifactor::strided(factors.buffer(0), n, n, {.count = count}), info);
  require_success("cholesky", info);
  Operands<T> sides(q, B.data(), B.size());
  const auto peer = make_peer<T>(bench);
  const bool elsewhere = peer && peer->queue().is_cuda() != q.is_cuda();
  std::optional<OnHost<T>> factors_on_host;
  std::optional<Operands<T>> peers_factors, peers_sides;
  if (elsewhere) {
    factors_on_host.emplace(q, bench.host, factors.buffer(0), A.size());
    peers_factors.emplace(peer->queue(), factors_too ? A.data() : factors_on_host->data(), A.size());
    peers_factors->restore(0);
    peers_sides.emplace(peer->queue(), B.data(), B.size());
  }
  const Starts<T> L(q, factors, n * n, count), X(q, sides, n * nrhs, count);
  std::optional<Starts<T>> peers_L, peers_X;
  if (elsewhere) {
    peers_L.emplace(peer->queue(), *peers_factors, n * n, count);
    peers_X.emplace(peer->queue(), *peers_sides, n * nrhs, count);
  }
  Turn<T> ours(sides), peers(elsewhere ? *peers_sides : sides);

  const trifactor::SolveOptions options{.tuning = o.tuning};
  const trifactor::CholeskyOptions both{.tuning = o.tuning};
  const auto with_views = [&](auto f) {
    if (o.kind == "strided")
      return f(trifactor::strided(factors.buffer(0), n, n, {.count = count}),
               trifactor::strided(ours.data(), n, nrhs, {.count = count}));
    return f(trifactor::pointers(L.pointers[0], n, n, {.count = count}),
             trifactor::pointers(X.pointers[ours.index()], n, nrhs, {.count = count}));
  };
  q.reserve(with_views([&](auto l, auto x) {
    return factors_too ? trifactor::cholesky_factor_solve_scratch(q, uplo, l, x, both)
                       : trifactor::cholesky_solve_scratch(q, uplo, l, x, options);
  }));
  const auto solve = [&] {
    with_views([&](auto l, auto x) {
      if (factors_too)
        trifactor::cholesky_factor_solve(q, uplo, l, x, info.data(), both);
      else
        trifactor::cholesky_solve(q, uplo, l, x, nullptr, options);
    });
  };
  const auto restore = [&] {
    if (factors_too) factors.restore(0);
    ours.restore();
  };
  Contender theirs;
  if (peer) {
    T* const* const peers_items = (elsewhere ? *peers_L : L).pointers[0].data();
    Operands<T>& peers_matrices = elsewhere ? *peers_factors : factors;
    const auto fresh = [&, peers_items] {
      peers_matrices.restore(0);
      return peers_items;
    };
    theirs = {[&, peers_items,
               call = factors_too ? peer->cholesky_factor_solve_batch(uplo, n, nrhs, count, fresh)
                                  : peer->cholesky_solve_batch(uplo, n, nrhs, count)] {
                call(peers_items, (elsewhere ? *peers_X : X).pointers[peers.index()].data());
              },
              [&] {
                if (factors_too) peers_matrices.restore(0);
                peers.restore();
              },
              &peer->queue()};
  }

  Row row = start_row(bench, scalar_name<T>, n);
  row.kind = o.kind, row.method = o.method, row.uplo = o.uplo;
  row.count = count, row.nrhs = nrhs;
  row.flops = (solve_flops<T>(double(n), double(nrhs)) + (factors_too ? cholesky_flops<T>(double(n)) : 0)) * double(count);
  row.columns = double(n) * double(count);
  const double triangle = double(n) * double(n + 1) / 2;  // read, and written where it is factored
  row.bytes = ((factors_too ? 2 : 1) * triangle + 2 * double(n) * double(nrhs)) * double(count) * sizeof(T);
  row.copy_rate = copy_rate(bench);
  if (peer) row.peer = peer->name();
  measure_row(o, row, {solve, restore, &q}, theirs);
  if (peer) peer->check();

  restore(), solve();
  if (factors_too) require_success("cholesky_factor_solve", info);
  const OnHost<T> solved(q, bench.host, ours.data(), B.size());
  constexpr index_t looked_at = 20;  // items
  double worst = 0;
  for (index_t i = 0; i < count; i += std::max<index_t>(1, count / looked_at)) {
    const index_t at = i * n * nrhs;
    const double ratio =
        solve_ratio<T>({A.data() + i * n * n, n, n, n}, {solved.data() + at, n, nrhs, n}, {B.data() + at, n, nrhs, n});
    worst = worst_of(worst, ratio);
  }
  row.residual = worst;
  return row;
}

#define TRIFACTOR_BENCH_SOLVE_BATCH(T) template Row bench_solve_batch<T>(Bench&, index_t, index_t);
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_BENCH_SOLVE_BATCH)

}  // namespace program
