// Solves with a sparse factor: branches side by side, one thread each, and the fronts above them one after the other, with
// all threads on each.
#include <host/front.hpp>
#include <host/signals.hpp>
#include <host/sparse.hpp>
#include <host/threads.hpp>

#include <algorithm>
#include <cstring>

namespace trifactor::host {

using namespace core;
using sparse::Branch;
using sparse::Plan;
using sparse::Schedule;

namespace {

/// The share of one thread: part t of `parts` of [0, n), in multiples of `unit`.
struct Slice {
  index_t begin, end;
  Slice(index_t n, int t, int parts, index_t unit = 1) {
    const index_t units = ceil_div(n, unit);
    begin = min(n, units * t / parts * unit), end = min(n, units * (t + 1) / parts * unit);
  }
  int size() const { return int(end - begin); }
};

/// Solves front by front. Z holds the rows of one front.
template <class T>
class Solve {
 public:
  Solve(const SparseData<T>& data, index_t k, T* X, const SolveScratch<T>& scratch)
      : plan_(data.plan),
        schedule_(data.schedule),
        kernels_(front_kernels<T>()),
        factor_(data.factor),
        k_(k),
        X_(X),
        scratch_(scratch) {}

  /// Waking threads would cost more than they gain.
  bool is_small() const {
    constexpr index_t worth_a_team = 200000;  // entries of the factor
    return schedule_.threads == 1 || plan_.factor_entries <= worth_a_team;
  }

  void forward_alone() const {
    for (index_t s = 0; s < plan_.fronts(); ++s) forward(s, rows_of(0), plan_.n, nullptr, nullptr);
  }
  void backward_alone() const {
    for (index_t s = plan_.fronts() - 1; s >= 0; --s) backward(s, rows_of(0));
  }

  /// What thread t of `threads` does.
  void forward(int t, int threads, std::atomic<index_t>& ticket, Barrier& barrier) const {
    for (index_t node; (node = ticket.fetch_add(1)) < nodes();) {
      forward_node(node, t);
      set_done(node);
    }
    if (schedule_.shared.empty()) return;
    barrier.wait();  // what the nodes leave to the fronts above them is there
    take_over(Slice(plan_.n, t, threads));
    barrier.wait();  // these have it
    for (const index_t s : schedule_.shared) forward_together(s, t, threads, barrier);
  }
  void backward(int t, int threads, std::atomic<index_t>& ticket, Barrier& barrier) const {
    for (index_t i = index_t(schedule_.shared.size()) - 1; i >= 0; --i)
      backward_together(schedule_.shared[i], t, threads, barrier);
    const index_t branches = index_t(schedule_.branches.size()), fronts = nodes() - branches;
    for (index_t q; (q = ticket.fetch_add(1)) < nodes();) {
      const index_t node = q < fronts ? nodes() - 1 - q : q - fronts;  // parents first, then the costliest branch
      if (schedule_.has_parent(plan_, node))
        wait_for(schedule_.node_of[plan_.parent[schedule_.nodes[node].end - 1]]);
      for (index_t s = schedule_.nodes[node].end - 1; s >= schedule_.nodes[node].begin; --s) backward(s, rows_of(t));
      set_done(node);
    }
  }
  void reset() const {
    for (index_t node = 0; node < nodes(); ++node) scratch_.done[node].store(0, std::memory_order_relaxed);
  }

 private:
  static constexpr index_t block = 64;            // columns between two passes over the rows below, for one thread
  static constexpr index_t block_together = 192;  // for all of them, which meet after each
  static constexpr index_t line = 64 / sizeof(Real<T>);  // right-hand sides that fill a cache line

  index_t nodes() const { return index_t(schedule_.nodes.size()); }
  void set_done(index_t node) const { scratch_.done[node].store(1, std::memory_order_release); }
  void wait_for(index_t node) const {
    wait_until([&] { return scratch_.done[node].load(std::memory_order_acquire) != 0; });
  }
  T* rows_of(int thread) const { return scratch_.entries + thread * schedule_.largest_rows * k_; }
  /// What a node leaves to the columns above it: the rows below its root.
  T* above_of(index_t node) const { return rows_of(schedule_.threads) + schedule_.below_nodes[node] * k_; }
  const index_t* rows(index_t s) const { return plan_.rows.data() + plan_.row_start[s]; }

  void copy_rows(T* to, const T* from, index_t n) const {
    std::memcpy(static_cast<void*>(to), from, sizeof(T) * std::size_t(n * k_));
  }
  void add_row(T* to, const T* from) const {
    for (index_t i = 0; i < k_; ++i) to[i] += from[i];
  }

  void forward_node(index_t node, int t) const {
    const Branch branch = schedule_.nodes[node];
    const index_t root = branch.end - 1, own = plan_.col_count(root), below = plan_.row_count(root) - own;
    if (node >= index_t(schedule_.branches.size())) return forward_front(node, root, t);
    int* place = below > 0 ? scratch_.places + t * plan_.n : nullptr;
    for (index_t i = 0; i < below; ++i) place[rows(root)[own + i]] = int(i);
    T* above = above_of(node);
    std::fill_n(above, below * k_, T(0));
    for (index_t s = branch.begin; s < branch.end; ++s) forward(s, rows_of(t), plan_.first[branch.end], above, place);
  }

  /// A node that is one front above other nodes.
  void forward_front(index_t node, index_t s, int t) const {
    const index_t m = plan_.row_count(s), w = plan_.col_count(s);
    T *Z = rows_of(t), *X1 = X_ + plan_.first[s] * k_;
    copy_rows(Z, X1, w);
    std::fill_n(Z + w * k_, (m - w) * k_, T(0));
    for (index_t c = schedule_.first_child[s]; c >= 0; c = schedule_.next_sibling[c]) {
      const index_t child = schedule_.node_of[c], own = plan_.col_count(c), below = plan_.row_count(c) - own;
      const index_t* place = plan_.place.data() + plan_.row_start[c] + own;
      wait_for(child);
      for (index_t i = 0; i < below; ++i) add_row(Z + place[i] * k_, above_of(child) + i * k_);
    }
    forward_rows(s, Z);
    copy_rows(X1, Z, w);
    copy_rows(above_of(node), Z + w * k_, m - w);
  }

  /// Adds what the nodes left to the rows of a slice that belong to no node, node by node.
  void take_over(Slice slice) const {
    for (index_t node = 0; node < nodes(); ++node) {
      if (schedule_.has_parent(plan_, node)) continue;
      const index_t root = schedule_.nodes[node].end - 1;
      const index_t *first = rows(root) + plan_.col_count(root), *last = rows(root) + plan_.row_count(root);
      const index_t* from = std::lower_bound(first, last, slice.begin);
      for (const index_t* row = from; row != last && *row < slice.end; ++row)
        add_row(X_ + *row * k_, above_of(node) + (row - first) * k_);
    }
  }

  /// Rows from `limit` on go to `above`, at their places there, instead of X.
  void forward(index_t s, T* Z, index_t limit, T* above, const int* place) const {
    const index_t m = plan_.row_count(s), w = plan_.col_count(s);
    T* X1 = X_ + plan_.first[s] * k_;
    copy_rows(Z, X1, w);
    std::fill_n(Z + w * k_, (m - w) * k_, T(0));
    forward_rows(s, Z);
    copy_rows(X1, Z, w);
    index_t i = w;
    for (; i < m && rows(s)[i] < limit; ++i) add_row(X_ + rows(s)[i] * k_, Z + i * k_);
    for (; i < m; ++i) add_row(above + place[rows(s)[i]] * k_, Z + i * k_);
  }

  /// Z1 := L11^-1 Z1, Z2 -= L21 Z1
  void forward_rows(index_t s, T* Z) const {
    const index_t m = plan_.row_count(s), w = plan_.col_count(s);
    const T* F = factor_ + plan_.factor_start[s];
    if (k_ > 1) {
      kernels_.divide(int(k_), int(w), F, m, Z, k_);
      kernels_.subtract_adjoint(int(k_), int(m - w), int(w), Z, k_, F + w, m, Z + w * k_, k_);
      return;
    }
    for (index_t c = 0; c < w; c += block) {
      const index_t end = min(w, c + block);
      forward_diagonal(F, m, c, end, Z);
      kernels_.subtract_columns(m - end, end - c, F + end + c * m, m, Z + c, Z + end);
    }
  }

  void backward(index_t s, T* Z) const {
    const index_t m = plan_.row_count(s), w = plan_.col_count(s);
    T* X1 = X_ + plan_.first[s] * k_;
    copy_rows(Z, X1, w);
    for (index_t i = w; i < m; ++i) copy_rows(Z + i * k_, X_ + rows(s)[i] * k_, 1);
    const T* F = factor_ + plan_.factor_start[s];
    if (k_ == 1) {
      for (index_t c = (w - 1) / block * block; c >= 0; c -= block) {
        const index_t end = min(w, c + block);
        kernels_.subtract_dots(m - end, end - c, F + end + c * m, m, Z + end, Z + c);
        backward_diagonal(F, m, c, end, Z);
      }
    } else {
      kernels_.subtract(int(k_), int(w), int(m - w), Z + w * k_, k_, F + w, m, Z, k_);
      kernels_.divide_backward(int(k_), int(w), F, m, Z, k_);
    }
    copy_rows(X1, Z, w);
  }

  /// z := L^-1 z and z := L^-H z for the diagonal block of columns [begin, end), for one right-hand side.
  void forward_diagonal(const T* F, index_t m, index_t begin, index_t end, T* z) const {
    for (index_t c = begin; c < end; c += 4) {
      const index_t stop = min(end, c + 4);
      for (index_t q = c; q < stop; ++q) {
        z[q] = z[q] * (1 / real(F[q + q * m]));
        for (index_t i = q + 1; i < stop; ++i) z[i] = minus_product(z[i], z[q], conj(F[i + q * m]));
      }
      kernels_.subtract_columns(end - stop, stop - c, F + stop + c * m, m, z + c, z + stop);
    }
  }
  void backward_diagonal(const T* F, index_t m, index_t begin, index_t end, T* z) const {
    for (index_t c = begin + (end - begin - 1) / 4 * 4; c >= begin; c -= 4) {
      const index_t stop = min(end, c + 4);
      kernels_.subtract_dots(end - stop, stop - c, F + stop + c * m, m, z + stop, z + c);
      for (index_t q = stop - 1; q >= c; --q) {
        for (index_t i = q + 1; i < stop; ++i) z[q] = minus_product(z[q], z[i], F[i + q * m]);
        z[q] = z[q] * (1 / real(F[q + q * m]));
      }
    }
  }

  void forward_together(index_t s, int t, int threads, Barrier& barrier) const {
    const index_t m = plan_.row_count(s), w = plan_.col_count(s);
    const T* F = factor_ + plan_.factor_start[s];
    T *Z = rows_of(0), *X1 = X_ + plan_.first[s] * k_;
    const Slice own(w, t, threads), below(m - w, t, threads), columns(k_, t, threads, line);
    copy_rows(Z + own.begin * k_, X1 + own.begin * k_, own.size());
    std::fill_n(Z + (w + below.begin) * k_, below.size() * k_, T(0));
    barrier.wait();  // Z is gathered
    for (index_t c = 0; c < w; c += block_together) {
      const index_t end = min(w, c + block_together);
      const T* D = F + c + c * m;
      if (k_ == 1) {
        if (t == 0) forward_diagonal(F, m, c, end, Z);
      } else if (columns.size() > 0) {
        kernels_.divide(columns.size(), int(end - c), D, m, Z + columns.begin + c * k_, k_);
      }
      barrier.wait();  // the block is solved
      const Slice rest(m - end, t, threads, line);
      const index_t r = end + rest.begin;
      if (k_ == 1)
        kernels_.subtract_columns(rest.size(), end - c, F + r + c * m, m, Z + c, Z + r);
      else
        kernels_.subtract_adjoint(int(k_), rest.size(), int(end - c), Z + c * k_, k_, F + r + c * m, m, Z + r * k_, k_);
      barrier.wait();  // the next block is up to date
    }
    copy_rows(X1 + own.begin * k_, Z + own.begin * k_, own.size());
    for (index_t i = w + below.begin; i < w + below.end; ++i) add_row(X_ + rows(s)[i] * k_, Z + i * k_);
    barrier.wait();  // X is complete, Z free
  }

  void backward_together(index_t s, int t, int threads, Barrier& barrier) const {
    const index_t m = plan_.row_count(s), w = plan_.col_count(s);
    const T* F = factor_ + plan_.factor_start[s];
    T *Z = rows_of(0), *X1 = X_ + plan_.first[s] * k_;
    const Slice own(w, t, threads), below(m - w, t, threads), columns(k_, t, threads, line);
    copy_rows(Z + own.begin * k_, X1 + own.begin * k_, own.size());
    for (index_t i = w + below.begin; i < w + below.end; ++i) copy_rows(Z + i * k_, X_ + rows(s)[i] * k_, 1);
    barrier.wait();  // Z is gathered
    for (index_t c = (w - 1) / block_together * block_together; c >= 0; c -= block_together) {
      const index_t end = min(w, c + block_together);
      const Slice some(end - c, t, threads, 4);
      const index_t first = c + some.begin;
      if (k_ == 1)
        kernels_.subtract_dots(m - end, some.size(), F + end + first * m, m, Z + end, Z + first);
      else
        kernels_.subtract(int(k_), some.size(), int(m - end), Z + end * k_, k_, F + end + first * m, m, Z + first * k_,
                          k_);
      barrier.wait();  // the block is up to date
      if (k_ == 1) {
        if (t == 0) backward_diagonal(F, m, c, end, Z);
      } else if (columns.size() > 0) {
        kernels_.divide_backward(columns.size(), int(end - c), F + c + c * m, m, Z + columns.begin + c * k_, k_);
      }
      barrier.wait();  // the block is solved
    }
    copy_rows(X1 + own.begin * k_, Z + own.begin * k_, own.size());
    barrier.wait();  // X is complete, Z free
  }

  const Plan& plan_;
  const Schedule& schedule_;
  const FrontKernels<T>& kernels_;
  const T* factor_;
  const index_t k_;
  T* X_;
  const SolveScratch<T> scratch_;
};

/// work(t, threads, ticket, barrier) by every thread of a team.
template <class Work>
void by_team(int threads, Work work) {
  const ThreadScope scope(threads, true);
  std::atomic<index_t> ticket{0};
  Barrier barrier;
#pragma omp parallel num_threads(threads)
  {
#pragma omp single
    barrier.set_threads(omp_get_num_threads());  // perhaps fewer than asked for
    work(omp_get_thread_num(), omp_get_num_threads(), ticket, barrier);
  }
}

}  // namespace

index_t solve_entries(const Schedule& schedule, index_t k) {
  return k * (schedule.threads * schedule.largest_rows + (schedule.threads > 1 ? schedule.below_nodes.back() : 0));
}
index_t solve_places(const Schedule& schedule, index_t n) {
  const bool leave_nothing = schedule.branches.empty() || schedule.below_nodes.back() == 0;  // they are whole trees
  return leave_nothing ? 0 : schedule.threads * n;
}

template <class T>
void sparse_forward(const SparseData<T>& data, index_t k, T* X, const SolveScratch<T>& scratch) {
  const Solve<T> solve(data, k, X, scratch);
  if (solve.is_small()) return solve.forward_alone();
  solve.reset();
  by_team(data.schedule.threads, [&](int t, int threads, auto& ticket, Barrier& barrier) {
    solve.forward(t, threads, ticket, barrier);
  });
}

template <class T>
void sparse_backward(const SparseData<T>& data, index_t k, T* X, const SolveScratch<T>& scratch) {
  const Solve<T> solve(data, k, X, scratch);
  if (solve.is_small()) return solve.backward_alone();
  solve.reset();
  by_team(data.schedule.threads, [&](int t, int threads, auto& ticket, Barrier& barrier) {
    solve.backward(t, threads, ticket, barrier);
  });
}

template <class T>
void sparse_residual(const SparseData<T>& data, const T* values, Real<T> shift, const T* b, const T* x, T* r,
                     Real<T>* size) {
  const Plan& plan = data.plan;
  const Schedule& schedule = data.schedule;
  for (index_t i = 0; i < plan.n; ++i) {
    r[i] = minus_product(b[i], T(shift), x[i]);
    size[i] = abs1(b[i]) + abs1(shift) * abs1(x[i]);
  }
  for (index_t s = 0; s < plan.fronts(); ++s) {
    const index_t m = plan.row_count(s);
    for (index_t k = schedule.entries.start[s]; k < schedule.entries.start[s + 1]; ++k) {
      const index_t target = schedule.entries.target[k];
      const index_t at = (target < 0 ? ~target : target) - plan.factor_start[s];
      const index_t j = plan.first[s] + at / m, i = plan.rows[plan.row_start[s] + at % m];
      const T a = conj_if(target < 0, values[schedule.entries.source[k]]);  // of A at (i, j); vectors are conjugated
      if (i == j) {
        r[j] = minus_product(r[j], T(real(a)), x[j]);
        size[j] += abs1(real(a)) * abs1(x[j]);
      } else {
        r[i] = minus_product(r[i], conj(a), x[j]), r[j] = minus_product(r[j], a, x[i]);
        size[i] += abs1(a) * abs1(x[j]), size[j] += abs1(a) * abs1(x[i]);
      }
    }
  }
}

#define TRIFACTOR_INSTANTIATE(T)                                                                      \
  template void sparse_forward<T>(const SparseData<T>&, index_t, T*, const SolveScratch<T>&);        \
  template void sparse_backward<T>(const SparseData<T>&, index_t, T*, const SolveScratch<T>&);       \
  template void sparse_residual<T>(const SparseData<T>&, const T*, Real<T>, const T*, const T*, T*, Real<T>*);
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_INSTANTIATE)
#undef TRIFACTOR_INSTANTIATE

}  // namespace trifactor::host
