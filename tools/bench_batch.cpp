// Rows for Cholesky of many small matrices: strided, by pointers, or of different sizes.
#include "batch_operands.hpp"
#include "failure.hpp"
#include "flops.hpp"
#include "residual.hpp"
#include "scalars.hpp"

#include <fmt/core.h>
#include <omp.h>
#include <trifactor/trifactor.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace program {
namespace {

// Fixed-size batches that a ragged one is compared with: this many items, fewer of large ones, which fill any machine;
// so many sizes are measured, and times between them are interpolated.
constexpr index_t fixed_size_count = 10000, fixed_size_entries = index_t(1) << 28;
constexpr std::size_t most_fixed_sizes = 32;

/// The call that factors buffer k. Scratch memory is reserved now.
template <Scalar T>
std::function<void(int k)> cholesky_of(Queue& q, BatchOperands<T>& batch, const std::string& kind, Uplo uplo,
                                       const trifactor::CholeskyOptions& options) {
  const auto call = [&](auto view) -> std::function<void(int k)> {
    q.reserve(trifactor::cholesky_scratch(q, uplo, view(0), options));
    return [=, &q, &batch](int k) { trifactor::cholesky(q, uplo, view(k), batch.info(), options); };
  };
  if (kind == "strided") return call([&batch](int k) { return batch.strided(k); });
  if (kind == "pointers") return call([&batch](int k) { return batch.pointers(k); });
  return call([&batch](int k) { return batch.ragged(k); });
}

std::vector<int> item_sizes(const BenchOptions& o, index_t n) {
  if (o.sizes == "uniform" || o.mean > 0) return uniform_sizes(o.count, o.mean > 0 ? 2 * o.mean - n : 1, n, o.seed);
  std::vector<int> sizes(std::size_t(o.count), int(n));
  if (o.sizes == "one-large") std::fill(sizes.begin() + 1, sizes.end(), 16);
  return sizes;
}

/// The largest residual ratio of all items.
template <Scalar T>
double worst_ratio(Uplo uplo, const BatchItems<T>& items, const T* factors) {
  double worst = 0;
#pragma omp declare reduction(worst_of:double : omp_out = worst_of(omp_out, omp_in)) initializer(omp_priv = 0)
#pragma omp parallel for schedule(dynamic, 16) reduction(worst_of : worst)
  for (std::size_t i = 0; i < items.sizes.size(); ++i)
    worst = worst_of(worst, cholesky_probe<T>(uplo, items.item(i, items.values.data()), items.item(i, factors)));
  return worst;
}

/// Seconds of a batch of these sizes, from a few runs.
template <Scalar T>
double quick_seconds(Bench& bench, const std::string& kind, std::vector<int> sizes) {
  const BenchOptions& o = bench.options;
  const BatchItems<T> items(std::move(sizes), o.seed);
  BatchOperands<T> operands(bench.queue, items);
  const auto factor = cholesky_of(bench.queue, operands, kind, o.triangle(), {.mode = o.panels(), .tuning = o.tuning});
  Turn<T> turn(operands.operands);
  return trifactor::measure({[&] { factor(turn.index()); }, [&] { turn.restore(); }, &bench.queue},
                            {.warmups = 1, .min_runs = 3, .max_runs = 20, .max_seconds = 0.2})
      .seconds;
}

/// The sum over all items of the time per item of a fixed-size batch of that item's size.
template <Scalar T>
double fixed_size_sum(Bench& bench, const std::vector<int>& sizes) {
  std::map<int, double> occurrences;
  for (const int n : sizes) occurrences[n] += 1;
  std::vector<int> distinct;
  for (const auto& [n, _] : occurrences) distinct.push_back(n);
  const std::size_t step = (distinct.size() + most_fixed_sizes - 1) / most_fixed_sizes;
  std::map<int, double> measured;  // size -> seconds of an item
  for (std::size_t k = 0; k < distinct.size(); ++k)
    if (k % step == 0 || k + 1 == distinct.size()) {
      const index_t size = distinct[k], count = std::min(fixed_size_count, fixed_size_entries / (size * size) + 1);
      const auto alike = std::vector<int>(std::size_t(count), int(size));
      measured[int(size)] = quick_seconds<T>(bench, "strided", alike) / double(count);
    }
  double sum = 0;
  for (const auto& [n, times] : occurrences) {
    const auto above = measured.lower_bound(n);
    const auto below = above->first == n ? above : std::prev(above);
    const double weight = above == below ? 0 : double(n - below->first) / double(above->first - below->first);
    sum += times * std::lerp(below->second, above->second, weight);
  }
  return sum;
}

const BatchPreset presets[] = {
    {"fixed", "one size, small to large", "strided", "4,5,8,16,20,32,40,64,100,128,200,256,300,384,512", {""}, 1000},
    {"variable", "sizes uniform in 1..n", "ragged", "32,64,128,256,512", {""}, 1000},
    {"crossover",
     "each kernel, and the blocked driver, at the sizes where they meet",
     "strided",
     "8,16,24,32,48,64,96,128,192,256",
     {"small=16", "small=0", "small=0 resident=0", "whole=0 persistent=0"}},
    {"schedule",
     "sizes around 384 up to n: in steps; each item in one launch in their own order, and sorted by size first",
     "ragged",
     "384,448,512,640,767",
     {"whole=0 persistent=0 nb=64 leaf=64", "sorted=2147483647 persistent=0", "sorted=1"},
     1000,
     "cholesky",
     "1",
     "384"},
    {"ib",
     "the loop in the kernel, or outside in steps of ib columns, or the blocked driver",
     "strided",
     "128,256,512",
     {"whole=2147483647", "whole=0 persistent=0 nb=512 leaf=512 tile=exclusive ib=16",
      "whole=0 persistent=0 nb=512 leaf=512 tile=exclusive ib=32",
      "whole=0 persistent=0 nb=512 leaf=512 tile=exclusive ib=64", "whole=0 persistent=0 nb=64 leaf=64",
      "whole=0 persistent=0 nb=128 leaf=64"},
     1000},
    {"trsm", "solves with the factors", "strided", "128,256,512", {""}, 1000, "solve", "256"},
};

}  // namespace

const BatchPreset& batch_preset(const std::string& name) {
  std::string known;
  for (const BatchPreset& preset : presets) {
    if (name == preset.name) return preset;
    known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", preset.name, preset.what);
  }
  throw InputError(fmt::format("--preset: '{}' is not one of {}", name, known));
}

double copy_rate(Bench& bench) {
  if (bench.copy_rate) return *bench.copy_rate;
  const index_t size = index_t(1) << (bench.queue.is_cuda() ? 27 : 23);  // doubles, beyond any cache
  Buffer<double> from(bench.queue, size), to(bench.queue, size);
  from.fill_zero();  // all pages that were never written are one
  const index_t pieces = 4 * omp_get_max_threads();
  const auto on_host = [&] {  // with all threads, as what is compared with it
#pragma omp parallel for schedule(dynamic)
    for (index_t k = 0; k < pieces; ++k)
      std::copy(from.data() + k * size / pieces, from.data() + (k + 1) * size / pieces, to.data() + k * size / pieces);
  };
  const auto on_device = [&] {
    trifactor::copy(bench.queue, from.data(), bench.queue, to.data(), size), bench.queue.sync();
  };
  const Contender copy{bench.queue.is_cuda() ? std::function<void()>(on_device) : on_host, {}};
  const auto measured = trifactor::measure(copy, {.warmups = 1, .min_runs = 3, .max_runs = 20, .max_seconds = 0.2});
  bench.copy_rate = 2 * double(size) * sizeof(double) / measured.seconds;
  return *bench.copy_rate;
}

template <Scalar T>
Row bench_batch(Bench& bench, index_t n) {
  const BenchOptions& o = bench.options;
  const Uplo uplo = o.triangle();
  const BatchItems<T> items(item_sizes(o, n), o.seed);
  BatchOperands<T> operands(bench.queue, items);
  const auto factor = cholesky_of(bench.queue, operands, o.kind, uplo, {.mode = o.panels(), .tuning = o.tuning});

  const auto peer = make_peer<T>(bench);
  std::optional<BatchOperands<T>> apart;  // where the peer works in another memory
  if (peer && peer->queue().is_cuda() != bench.queue.is_cuda()) apart.emplace(peer->queue(), items);
  BatchOperands<T>& peers_operands = apart ? *apart : operands;
  Turn<T> ours(operands.operands), peers(peers_operands.operands);
  typename Peer<T>::OnItems peers_call;
  if (peer)
    peers_call = peer->cholesky_batch(uplo, items.sizes, [&] {
      peers.restore();
      return peers_operands.starts(peers.index());
    });
  Contender theirs;
  if (peers_call)
    theirs = {[&] { peers_call(peers_operands.starts(peers.index())); }, [&] { peers.restore(); }, &peer->queue()};

  Row row = start_row(bench, scalar_name<T>, n);
  row.kind = o.kind;
  if (o.is_ragged()) row.sizes = o.sizes;
  row.uplo = o.uplo;
  row.count = o.count;
  double entries = 0;  // of the triangles
  for (const int size : items.sizes) {
    row.flops += cholesky_flops<T>(size), row.columns += size;
    entries += double(size) * (size + 1) / 2;
  }
  row.bytes = 2 * entries * sizeof(T);
  row.copy_rate = copy_rate(bench);
  if (peers_call) row.peer = peer->name();
  measure_row(o, row, {[&] { factor(ours.index()); }, [&] { ours.restore(); }, &bench.queue}, theirs);
  if (peers_call) peer->check();

  ours.restore(), factor(ours.index());
  require_success("cholesky", operands.info());
  const OnHost<T> factors(bench.queue, bench.host, ours.data(), items.total);
  row.residual = worst_ratio(uplo, items, factors.data());
  if (o.is_ragged() && o.mean == 0) {  // those around a mean are compared with each other alone
    row.fixed_sum_seconds = fixed_size_sum<T>(bench, items.sizes);
    row.largest_seconds = quick_seconds<T>(bench, o.kind, {*std::max_element(items.sizes.begin(), items.sizes.end())});
  }
  return row;
}

#define TRIFACTOR_BENCH_BATCH(T) template Row bench_batch<T>(Bench&, index_t);
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_BENCH_BATCH)

}  // namespace program
