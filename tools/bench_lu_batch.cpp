// Rows for LU of many small square matrices of one size, strided or by pointers.
#include "bench.hpp"
#include "failure.hpp"
#include "flops.hpp"
#include "memory.hpp"
#include "random_matrix.hpp"
#include "residual.hpp"
#include "scalars.hpp"

#include <fmt/core.h>
#include <trifactor/trifactor.hpp>

#include <algorithm>
#include <optional>

namespace program {
template <Scalar T>
Row bench_lu_batch(Bench& bench, index_t n) {
  const BenchOptions& o = bench.options;
  if (o.is_ragged()) throw InputError("--kind ragged: bench batch --method lu measures strided and pointers");
  Queue& q = bench.queue;
  const index_t count = o.count, total = n * n * count;
  const trifactor::LuOptions options{.mode = o.panels(), .tuning = o.tuning};
  require_memory("this batch", 3.1 * double(total) * sizeof(T));
  Buffer<T> A(total);
  fill_random(MatrixView<T>{A.data(), n, n * count, n}, o.seed);
  Operands<T> operands(q, A.data(), total);
  const Starts<T> starts(q, operands, n * n, count);
  Buffer<int> info(q, count), pivots(q, n * count);

  const auto peer = make_peer<T>(bench);
  const bool elsewhere = peer && peer->queue().is_cuda() != q.is_cuda();
  std::optional<Operands<T>> apart;
  std::optional<Starts<T>> apart_starts;
  if (elsewhere) {
    apart.emplace(peer->queue(), A.data(), total);
    apart_starts.emplace(peer->queue(), *apart, n * n, count);
  }
  Turn<T> ours(operands), peers(elsewhere ? *apart : operands);
  const Starts<T>& peers_starts = elsewhere ? *apart_starts : starts;

  const auto with_view = [&](auto f) {
    if (o.kind == "strided") return f(trifactor::strided(ours.data(), n, n, {.count = count}));
    return f(trifactor::pointers(starts.pointers[ours.index()], n, n, {.count = count}));
  };
  q.reserve(with_view([&](auto view) { return trifactor::lu_scratch(q, view, options); }));
  const auto factor = [&] {
    with_view([&](auto view) { trifactor::lu(q, view, pivots, info, options); });
  };
  Contender theirs;
  if (peer)
    theirs = {[&, call = peer->lu_batch(n, count)] { call(peers_starts.pointers[peers.index()].data()); },
              [&] { peers.restore(); }, &peer->queue()};

  Row row = start_row(bench, scalar_name<T>, n);
  row.kind = o.kind;
  row.method = "lu";
  row.count = count;
  row.flops = lu_flops<T>(double(n)) * double(count), row.columns = double(n) * double(count);
  row.bytes = 2 * double(total) * sizeof(T), row.copy_rate = copy_rate(bench);
  if (peer) row.peer = peer->name();
  measure_row(o, row, {factor, [&] { ours.restore(); }, &q}, theirs);
  if (peer) peer->check();

  ours.restore(), factor();
  require_success("lu", info);
  const OnHost<T> LU(q, bench.host, ours.data(), total);
  const OnHost<int> exchanged(q, bench.host, pivots.data(), n * count);
  constexpr index_t looked_at = 100;  // items
  double worst = 0;
  for (index_t i = 0; i < count; i += std::max<index_t>(1, count / looked_at)) {
    const double ratio = lu_ratio<T>({A.data() + i * n * n, n, n, n}, {LU.data() + i * n * n, n, n, n},
                                     {exchanged.data() + i * n, std::size_t(n)});
    worst = worst_of(worst, ratio);
  }
  row.residual = worst;
  return row;
}

#define TRIFACTOR_BENCH_LU_BATCH(T) template Row bench_lu_batch<T>(Bench&, index_t);
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_BENCH_LU_BATCH)

}  // namespace program
