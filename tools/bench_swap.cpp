// Rows for the row interchanges of LU alone: ours, which moves every row once, against LAPACK's or cuSOLVER's laswp.
#include "bench.hpp"
#include "failure.hpp"
#include "random_entry.hpp"
#include "random_matrix.hpp"
#include "scalars.hpp"

#include <fmt/core.h>
#include <trifactor/inspect.hpp>
#include <trifactor/trifactor.hpp>

#include <algorithm>
#include <numeric>

namespace program {
namespace {

/// Pivots as a panel of random entries finds them: row i goes with any row from i on.
std::vector<int> random_pivots(index_t m, index_t k, std::uint64_t seed) {
  std::vector<int> pivots;
  for (index_t i = 0; i < k; ++i) {
    const double part = (random_number(seed, std::uint64_t(i)) + 1) / 2;  // 0 .. 1
    pivots.push_back(int(i + std::min(m - i - 1, index_t(part * double(m - i)))) + 1);
  }
  return pivots;
}

/// Row i of the result is row order[i] of the matrix.
std::vector<index_t> order_of(const std::vector<int>& pivots, index_t m) {
  std::vector<index_t> order(static_cast<std::size_t>(m));
  std::iota(order.begin(), order.end(), index_t(0));
  for (std::size_t i = 0; i < pivots.size(); ++i) std::swap(order[i], order[std::size_t(pivots[i] - 1)]);
  return order;
}

}  // namespace

template <Scalar T>
Row bench_swap(Bench& bench, index_t m, index_t n, index_t nb) {
  const BenchOptions& o = bench.options;
  Queue& q = bench.queue;
  require_memory("this row", 4.1 * double(m) * double(n) * sizeof(T));
  Matrix<T> A(m, n);
  fill_random(A.view(), o.seed);
  const std::vector<int> pivots = random_pivots(m, nb, o.seed);
  const std::vector<index_t> order = order_of(pivots, m);

  const auto peer = make_peer<T>(bench);
  const bool apart = peer && peer->queue().is_cuda() != q.is_cuda();  // the peer works in another memory
  Operands<T> ours(q, A.data(), m * n);
  std::optional<Operands<T>> theirs;
  if (apart) theirs.emplace(peer->queue(), A.data(), m * n);
  Turn<T> turn(ours), peers_turn(apart ? *theirs : ours);
  const Buffer<int> interchanges(q, pivots), peers_interchanges(peer ? peer->queue() : q, pivots);
  const auto view = [&](Turn<T>& t) { return MatrixView<T>{t.data(), m, n, m}; };
  const auto swap = [&] { trifactor::inspect::swap_rows<T>(q, view(turn), interchanges.data(), nb); };
  Contender peers;
  if (peer)
    peers = {[&, call = peer->swap_rows(peers_interchanges.data(), nb)] { call(view(peers_turn)); },
             [&] { peers_turn.restore(); }, &peer->queue()};

  Row row = start_row(bench, scalar_name<T>, n);
  row.m = m, row.nb = nb;
  row.columns = double(n);
  index_t moved = 0;
  for (index_t i = 0; i < m; ++i) moved += order[std::size_t(i)] != i ? 1 : 0;
  row.bytes = 2.0 * double(moved) * double(n) * sizeof(T);  // every moved row is read and written once
  row.copy_rate = copy_rate(bench);
  if (peer) row.peer = peer->name();
  measure_row(o, row, {swap, [&] { turn.restore(); }, &q}, peers);

  turn.restore(), swap();
  const OnHost<T> result(q, bench.host, turn.data(), m * n);
  for (index_t j = 0; j < n; ++j)
    for (index_t i = 0; i < m; ++i)
      if (result.data()[i + j * m] != A.data()[order[std::size_t(i)] + j * m])
        throw MatrixError(fmt::format("swap m = {}, n = {}, nb = {}: entry ({}, {}) is not that of row {}", m, n, nb, i,
                                      j, order[std::size_t(i)]));
  row.residual = 0;  // every entry is where it belongs
  return row;
}

#define TRIFACTOR_BENCH_SWAP(T) template Row bench_swap<T>(Bench&, index_t, index_t, index_t);
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_BENCH_SWAP)

}  // namespace program
