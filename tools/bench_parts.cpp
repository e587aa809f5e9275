// Rows for the parts of a blocked Cholesky factorization: the updates, and the diagonal tile.
#include "bench.hpp"
#include "flops.hpp"
#include "random_matrix.hpp"
#include "residual.hpp"
#include "scalars.hpp"

#include <fmt/core.h>
#include <trifactor/inspect.hpp>
#include <trifactor/trifactor.hpp>

namespace program {
namespace {

/// What the update of the step at column k multiplies, and adds as often.
double update_products(const std::string& looking, double n, double nb, double k) {
  const double w = std::min(nb, n - k), rest = n - k - w;
  if (looking == "left") return k * (w * (w + 1) / 2 + rest * w);  // A11 -= A10 A10^H, A21 -= A20 A10^H
  return w * rest * (rest + 1) / 2;                                // A22 -= A21 A21^H
}

/// Copies that are factored one after the other: enough that the start and the end of a run do not count.
template <Scalar T>
index_t tiles_in_a_run(index_t n) {
  constexpr index_t max_copies = 64, bytes = index_t(64) << 20;
  return std::clamp<index_t>(bytes / (n * n * index_t(sizeof(T))), 1, max_copies);
}

}  // namespace

template <Scalar T>
void bench_update(Bench& bench, index_t n, index_t nb, const std::function<void(const Row&)>& take) {
  const BenchOptions& o = bench.options;
  Queue& q = bench.queue;
  require_copies<T>(q.is_cuda() ? 1.1 : 2.1, n);
  Matrix<T> values(n, n), L, C(q, n, n);
  fill_random(values.view(), o.seed);
  if (q.is_cuda()) {
    L = Matrix<T>(q, values);
    values = {};
  } else {
    L = std::move(values);
  }
  for (const std::string& looking : o.looking) {
    const std::string tuning = joined_tuning(o.tuning, fmt::format("nb={} looking={}", nb, looking));
    const auto measure_steps = [&](index_t first, index_t last) {
      double products = 0;
      for (index_t k = first; k < last; k += nb) products += update_products(looking, double(n), double(nb), double(k));
      if (products == 0) return;
      Row row = start_row(bench, scalar_name<T>, n);
      row.uplo = o.uplo, row.tuning = tuning, row.looking = looking, row.nb = nb;
      if (o.each) row.first = first;
      row.flops = flops<T>(products, products);
      row.columns = double(std::min(last, n) - first);
      const auto update = [&] {
        trifactor::inspect::cholesky_updates(q, o.triangle(), L.view(), C.view(), first, last, tuning);
      };
      measure_row(o, row, {update, {}, &q}, {});
      take(row);
    };
    if (!o.each) measure_steps(0, n);
    for (index_t k = 0; o.each && k < n; k += nb) measure_steps(k, std::min(k + nb, n));
  }
}

template <Scalar T>
Row bench_tile(Bench& bench, index_t n, index_t leaf, const std::string& form, index_t ib) {
  const BenchOptions& o = bench.options;
  Queue& q = bench.queue;
  const Uplo uplo = o.triangle();
  const index_t count = tiles_in_a_run<T>(n), size = n * n;
  const bool steps = form == "exclusive";
  const std::string tuning =
      joined_tuning(o.tuning, fmt::format("whole=0 persistent=0 nb={} leaf={} tile={}", n, leaf, form) +
                                  (steps ? fmt::format(" ib={}", ib) : ""));
  require_copies<T>(3.1 * double(count), n);
  Matrix<T> A(n, n * count);
  for (index_t i = 0; i < count; ++i) fill_positive_definite(A.view().block(0, i * n, n, n), o.seed + std::uint64_t(i));
  Operands<T> operands(q, A.data(), size * count);
  Turn<T> turn(operands);
  Buffer<int> info(q, count);
  const trifactor::CholeskyOptions options{.mode = trifactor::Mode::Native, .tuning = tuning};
  q.reserve(trifactor::cholesky_scratch(q, uplo, square(turn.data(), n), options));
  const auto factor = [&] {
    for (index_t i = 0; i < count; ++i)
      trifactor::cholesky(q, uplo, square(turn.data() + i * size, n), info.data() + i, options);
  };
  Row row = start_row(bench, scalar_name<T>, n);
  row.uplo = o.uplo, row.tuning = tuning, row.leaf = leaf, row.form = form;
  if (steps) row.ib = ib;
  row.flops = cholesky_flops<T>(double(n));
  row.columns = double(n);
  measure_row(o, row, {factor, [&] { turn.restore(); }, &q}, {});
  row.seconds /= double(count);
  if (row.host_seconds) *row.host_seconds /= double(count);
  if (row.joules) *row.joules /= double(count);

  turn.restore(), factor();
  require_success("the tile", info);
  const OnHost<T> L(q, bench.host, turn.data() + (count - 1) * size, size);
  row.residual = cholesky_ratio<T>(uplo, A.view().block(0, (count - 1) * n, n, n), {L.data(), n, n, n});
  return row;
}

#define TRIFACTOR_BENCH_PARTS(T)                                                                        \
  template void bench_update<T>(Bench&, index_t, index_t, const std::function<void(const Row&)>& take); \
  template Row bench_tile<T>(Bench&, index_t, index_t, const std::string&, index_t);
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_BENCH_PARTS)

}  // namespace program
