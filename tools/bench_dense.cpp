// Rows for one matrix: solves with and inverses from either factor.
#include "bench.hpp"
#include "flops.hpp"
#include "memory.hpp"
#include "random_matrix.hpp"
#include "residual.hpp"
#include "scalars.hpp"

#include <trifactor/trifactor.hpp>

#include <optional>

namespace program {
namespace {

/// The same operands for both sides of the comparison, in one memory where that is possible.
template <Scalar T>
struct Sides {
  Sides(Bench& bench, Peer<T>* peer, const T* values, index_t size) : ours(bench.queue, values, size) {
    if (peer && peer->queue().is_cuda() != bench.queue.is_cuda()) apart.emplace(peer->queue(), values, size);
  }
  Operands<T>& peers() { return apart ? *apart : ours; }

  Operands<T> ours;
  std::optional<Operands<T>> apart;  // where the peer works in another memory
};

}  // namespace

template <Scalar T>
Row bench_solve(Bench& bench, index_t n, index_t nrhs) {
  const BenchOptions& o = bench.options;
  Queue& q = bench.queue;
  const Uplo uplo = o.triangle();
  const bool by_cholesky = o.method == "cholesky";
  require_copies<T>(3.1 + 4 * double(nrhs) / double(n), n);
  Matrix<T> A(n, n), B(n, nrhs);
  if (by_cholesky)
    fill_positive_definite(A.view(), o.seed);
  else
    fill_random(A.view(), o.seed);
  fill_random(B.view(), o.seed + 1);
  const auto peer = make_peer<T>(bench);
  Sides<T> factors(bench, peer.get(), A.data(), n * n);
  Sides<T> sides(bench, peer.get(), B.data(), n * nrhs);
  Turn<T> ours(sides.ours), peers(sides.peers());
  const auto columns = [&](T* X) { return MatrixView<T>{X, n, nrhs, n}; };

  // Each side solves with its own factor: ours in buffer 0, the peer's in buffer 1.
  factors.ours.restore(0), factors.peers().restore(1);
  const MatrixView<T> factor = square(factors.ours.buffer(0), n), peers_factor = square(factors.peers().buffer(1), n);
  Buffer<int> info(q, 1), pivots(q, n);
  if (by_cholesky)
    trifactor::cholesky(q, uplo, factor, info.data(), {.mode = o.panels()});
  else
    trifactor::lu(q, factor, pivots.data(), info.data(), {.mode = o.panels()});
  q.sync();
  require_success(o.method, info);
  if (peer) {
    (by_cholesky ? peer->cholesky(uplo, n) : peer->lu(n, n))(peers_factor);
    peer->check();
  }

  const trifactor::SolveOptions options{.tuning = o.tuning};
  q.reserve(by_cholesky ? trifactor::cholesky_solve_scratch(q, uplo, factor, columns(ours.data()), options)
                        : trifactor::lu_solve_scratch(q, trifactor::Op::None, factor, columns(ours.data()), options));
  const auto restore = [&] { ours.restore(); };
  const auto solve = [&] {
    if (by_cholesky)
      trifactor::cholesky_solve(q, uplo, factor, columns(ours.data()), nullptr, options);
    else
      trifactor::lu_solve(q, trifactor::Op::None, factor, pivots.data(), columns(ours.data()), nullptr, options);
  };
  Contender theirs;
  if (peer)
    theirs = {[&, call = by_cholesky ? peer->cholesky_solve(uplo, n, nrhs) : peer->lu_solve(n, nrhs)] {
                call(peers_factor, columns(peers.data()));
              },
              [&] { peers.restore(); }, &peer->queue()};
  Row row = start_row(bench, scalar_name<T>, n);
  row.method = o.method;
  row.nrhs = nrhs;
  if (by_cholesky) row.uplo = o.uplo;
  row.flops = solve_flops<T>(double(n), double(nrhs));
  row.columns = double(n);
  if (peer) row.peer = peer->name();
  measure_row(o, row, {solve, restore, &q}, theirs);
  if (peer) peer->check();

  restore(), solve();
  const OnHost<T> X(q, bench.host, ours.data(), n * nrhs);
  row.residual = solve_ratio<T>(A.view(), {X.data(), n, nrhs, n}, B.view());
  return row;
}

template <Scalar T>
Row bench_inverse(Bench& bench, index_t n) {
  const BenchOptions& o = bench.options;
  Queue& q = bench.queue;
  const Uplo uplo = o.triangle();
  const bool by_cholesky = o.method == "cholesky";
  require_copies<T>(4.1, n);
  Matrix<T> A(n, n);
  if (by_cholesky)
    fill_positive_definite(A.view(), o.seed);
  else
    fill_random(A.view(), o.seed);
  const auto peer = by_cholesky ? make_peer<T>(bench) : nullptr;  // cuSOLVER has no inverse from LU factors
  Operands<T> given(q, A.data(), n * n);
  given.restore(0);
  const MatrixView<T> factor = square(given.buffer(0), n), X = square(given.buffer(1), n);
  Buffer<int> info(q, 1), pivots(q, n);
  if (by_cholesky)
    trifactor::cholesky(q, uplo, factor, info.data());
  else
    trifactor::lu(q, factor, pivots.data(), info.data());
  q.sync();
  require_success(o.method, info);

  const trifactor::SolveOptions options{.tuning = o.tuning};
  q.reserve(by_cholesky ? trifactor::cholesky_inverse_scratch(q, uplo, factor, X, options)
                        : trifactor::lu_inverse_scratch(q, factor, X, options));
  const auto invert = [&] {
    if (by_cholesky)
      trifactor::cholesky_inverse(q, uplo, factor, X, nullptr, options);
    else
      trifactor::lu_inverse(q, factor, pivots.data(), X, nullptr, options);
  };
  // The peer inverts in place: a copy of the factor, in its memory, is its operand.
  const OnHost<T> factor_on_host(q, bench.host, factor.data, n * n);
  std::optional<Operands<T>> peers;
  Contender theirs;
  if (peer) {
    peers.emplace(peer->queue(), factor_on_host.data(), n * n);
    theirs = {[&, call = peer->cholesky_inverse(uplo, n)] { call(square(peers->buffer(0), n)); },
              [&] { peers->restore(0); }, &peer->queue()};
  }
  Row row = start_row(bench, scalar_name<T>, n);
  row.method = o.method;
  if (by_cholesky) row.uplo = o.uplo;
  row.flops = inverse_flops<T>(by_cholesky, double(n));
  row.columns = double(n);
  if (peer) row.peer = peer->name();
  measure_row(o, row, {invert, {}, &q}, theirs);
  if (peer) peer->check();

  invert();
  const OnHost<T> inverse(q, bench.host, X.data, n * n);
  Matrix<T> identity(n, n);
  for (index_t j = 0; j < n; ++j)
    for (index_t i = 0; i < n; ++i) identity.data()[i + j * n] = T(i == j ? 1 : 0);
  row.residual = solve_ratio<T>(A.view(), {inverse.data(), n, n, n}, identity.view()) / double(n);
  return row;
}

#define TRIFACTOR_BENCH_DENSE(T)                  \
  template Row bench_inverse<T>(Bench&, index_t); \
  template Row bench_solve<T>(Bench&, index_t, index_t);
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_BENCH_DENSE)

}  // namespace program
