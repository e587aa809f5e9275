// The sparse factorization: branches side by side, one thread each, then the fronts above them in tiles.
#include <core/flop_counter.hpp>
#include <core/interruption.hpp>
#include <host/blas.hpp>
#include <host/front.hpp>
#include <host/signals.hpp>
#include <host/sparse.hpp>
#include <host/threads.hpp>
#include <sparse/fronts.hpp>

#include <algorithm>
#include <cstring>
#include <limits>

namespace trifactor::host {

using namespace core;
using sparse::Plan;
using sparse::Run;
using sparse::Schedule;

namespace {
constexpr index_t no_failure = std::numeric_limits<index_t>::max();
}

Progress::Progress(const Plan& plan, const Schedule& schedule, const SparseTuning& tuning)
    : plan_(plan),
      branches_(index_t(schedule.branches.size())),
      task_start_(1, 0),
      ticket_(0),
      failed_(std::size_t(plan.items)) {
  if (schedule.threads == 1) return;
  node_of_.assign(plan.fronts(), -1);
  for (index_t b = 0; b < branches_; ++b) node_of_[schedule.branches[b].end - 1] = int(b);
  for (const index_t s : schedule.top) {
    node_of_[s] = int(branches_ + index_t(task_start_.size()) - 1);
    task_start_.push_back(task_start_.back() + Tiles(plan.row_count(s), plan.col_count(s), tuning).tasks());
  }
  done_ = std::vector<std::atomic<unsigned char>>(task_start_.back());
  left_ = std::vector<std::atomic<int>>(branches_ + index_t(schedule.top.size()));
}

void Progress::reset() {
  for (auto& flag : done_) flag.store(0, std::memory_order_relaxed);
  for (index_t b = 0; b < index_t(left_.size()); ++b) {
    const index_t t = b - branches_;
    left_[b].store(t < 0 ? 1 : int(task_start_[t + 1] - task_start_[t]), std::memory_order_relaxed);
  }
  ticket_.store(0);
  for (auto& column : failed_) column.store(no_failure, std::memory_order_relaxed);
}

void Progress::set_failed(index_t column) {
  auto& failed = failed_[plan_.item_of(column)];
  index_t first = failed.load();
  while (column < first && !failed.compare_exchange_weak(first, column)) {
  }
}
index_t Progress::failed(index_t item) const {
  const index_t first = failed_[item].load();
  return first == no_failure ? -1 : first;
}
std::size_t Progress::bytes() const {
  const auto size = [](const auto&... vectors) { return ((vectors.size() * sizeof(vectors[0])) + ...); };
  return size(task_start_, node_of_, done_, left_, failed_);
}

namespace {

template <class T>
constexpr CBLAS_TRANSPOSE adjoint = is_complex<T> ? CblasConjTrans : CblasTrans;

template <class T>
void add_run(T* __restrict to, const T* __restrict from, index_t n) {
  for (index_t i = 0; i < n; ++i) to[i] += from[i];
}

template <class T>
class Factorization {
 public:
  Factorization(const SparseData<T>& data, const T* values, Real<T> shift, T* work, Progress& progress,
                Interruption& stop)
      : plan_(data.plan),
        schedule_(data.schedule),
        tuning_(data.tuning),
        kernels_(front_kernels<T>()),
        factor_(data.factor),
        values_(values),
        shift_(shift),
        work_(work),
        progress_(progress),
        stop_(stop) {}

  /// All fronts in their order, by one thread.
  void alone() const {
    for (const index_t s : schedule_.top) {
      if (stop_.requested()) return;
      if (!progress_.failed_before(s, plan_.first[s]) && front(s, work_ + schedule_.update_at[s], work_)) count(s, 1);
    }
  }

  /// What thread t of several does.
  void work(int t) const {
    const index_t branches = index_t(schedule_.branches.size()), fronts = index_t(schedule_.top.size());
    index_t top = 0, complete = 0;
    for (;;) {
      heed_interruption();
      index_t ticket = progress_.next_ticket();
      if (ticket < branches) {
        const index_t region = branches <= schedule_.threads ? ticket : t;
        branch(ticket, work_ + schedule_.region_start + region * schedule_.region_entries);
        continue;
      }
      ticket -= branches;
      while (top < fronts && progress_.task_start(top + 1) <= ticket) ++top;
      if (top == fronts) return;
      task(top, ticket - progress_.task_start(top), complete);
    }
  }

 private:
  void heed_interruption() const {
    if (stop_.requested()) progress_.set_interrupted();
  }

  /// One of so many parts of front s is done.
  void count(index_t s, index_t parts) const {
    if (watched_) count_flops(sparse::front_flops(plan_.row_count(s), plan_.col_count(s)) / double(parts));
  }

  /// A front before one that failed does not depend on it, and may fail as well.
  void branch(index_t b, T* region) const {
    const index_t root = schedule_.branches[b].end - 1;
    for (index_t s = schedule_.branches[b].begin; s <= root; ++s) {
      heed_interruption();
      if (progress_.failed_before(s, plan_.first[s])) break;
      if (!front(s, (s == root ? work_ : region) + schedule_.update_at[s], region)) break;
      count(s, 1);
    }
    progress_.one_less(b);
  }

  /// Front s, whose children are done; their update matrices lie in `children`. Returns false when it fails.
  bool front(index_t s, T* U, const T* children) const {
    const int m = int(plan_.row_count(s)), w = int(plan_.col_count(s)), rest = m - w;
    T* F = factor_ + plan_.factor_start[s];  // (m, w)
    assemble(s, F, m, 0, w, children);
    if (const int failed = factor_columns(m, w, F, m)) {
      progress_.set_failed(plan_.first[s] + failed - 1);
      return false;
    }
    if (rest == 0) return true;
    set_square(rest, w, F + w, m, U, rest);  // U = -F21 F21^H
    for (index_t c = schedule_.first_child[s]; c >= 0; c = schedule_.next_sibling[c])
      add_child(c, children, w, m, w, m, U - w - w * index_t(rest), rest);
    return true;
  }

  /// Columns [begin, end) of F := the values that lie in them, plus the parts of the children's update matrices.
  void assemble(index_t s, T* F, index_t m, index_t begin, index_t end, const T* children) const {
    constexpr index_t narrow = 16;  // columns whose part above the diagonal is not worth leaving out
    if (end - begin <= narrow)
      std::memset(static_cast<void*>(F + begin * m), 0, sizeof(T) * std::size_t(m * (end - begin)));
    else
      for (index_t j = begin; j < end; ++j)
        std::memset(static_cast<void*>(F + j + j * m), 0, sizeof(T) * std::size_t(m - j));
    const auto place = [](index_t target) { return target < 0 ? ~target : target; };
    const index_t* target = schedule_.entries.target.data();
    index_t k = schedule_.entries.start[s], last = schedule_.entries.start[s + 1];
    if (end - begin < plan_.col_count(s)) {
      const auto is_before = [&](index_t entry, index_t at) { return place(entry) < at; };
      const index_t *first = target + k, *behind = target + last;
      k = std::lower_bound(first, behind, plan_.factor_start[s] + begin * m, is_before) - target;
      last = std::lower_bound(first, behind, plan_.factor_start[s] + end * m, is_before) - target;
    }
    for (; k < last; ++k)
      factor_[place(target[k])] += conj_if(target[k] < 0, values_[schedule_.entries.source[k]]);
    if (shift_ != 0)
      for (index_t j = begin; j < end; ++j) F[j + j * m] += T(shift_);
    for (index_t c = schedule_.first_child[s]; c >= 0; c = schedule_.next_sibling[c])
      add_child(c, children, begin, m, begin, end, F, m);
  }

  /// Halves the w columns down to leaves. Returns the first column that failed, from 1, or 0.
  int factor_columns(int m, int w, T* F, int ld) const {
    const int leaf = int(tuning_.leaf);
    if (w <= leaf) return factor_leaf(m, w, F, ld);
    const int left = w / 2 / leaf * leaf + (w / 2 < leaf ? leaf : 0), right = w - left;
    if (const int failed = factor_columns(m, left, F, ld)) return failed;
    T* F22 = F + left + index_t(left) * ld;
    subtract_square(right, left, F + left, F22, ld);
    subtract_product(m - w, right, left, F + w, F + left, F22 + right, ld);
    const int failed = factor_columns(m - left, right, F22, ld);
    return failed ? left + failed : 0;
  }

  int factor_leaf(int m, int w, T* F, int ld) const {
    if (m <= w + tuning_.strip) return kernels_.columns(m, w, F, ld);
    if (const int failed = kernels_.columns(w, w, F, ld)) return failed;
    for_strips(m - w, [&](int i, int rows) { kernels_.divide(rows, w, F, ld, F + w + i, ld); });
    return 0;
  }

  // Each of these by the own routine or by BLAS, whichever is faster.

  /// f(i, rows) for strips of m rows that stay in cache.
  template <class F>
  void for_strips(int m, F f) const {
    const int strip = int(tuning_.strip);
    for (int i = 0; i < m; i += strip) f(i, min(strip, m - i));
  }
  /// C = -A A^H, the lower triangle
  void set_square(int n, int k, const T* A, int lda, T* C, int ldc) const {
    if (n <= tuning_.update_order || k <= tuning_.update_columns)
      kernels_.update(n, k, A, lda, C, ldc);
    else
      blas::herk(CblasLower, CblasNoTrans, n, k, A, lda, C, ldc, 0);
  }
  /// C -= A A^H, the lower triangle
  void subtract_square(int n, int k, const T* A, T* C, int ld) const {
    if (n <= tuning_.update_order)
      kernels_.subtract_square(n, k, A, ld, C, ld);
    else
      blas::herk(CblasLower, CblasNoTrans, n, k, A, ld, C, ld);
  }
  /// C -= A B^H
  void subtract_product(int m, int n, int k, const T* A, const T* B, T* C, int ld, int ldc) const {
    if (max(n, k) <= tuning_.update_order)
      for_strips(m, [&](int i, int rows) { kernels_.subtract_adjoint(rows, n, k, A + i, ld, B, ld, C + i, ldc); });
    else if (m > 0)
      blas::gemm(CblasNoTrans, adjoint<T>, m, n, k, A, ld, B, ld, C, ldc);
  }
  void subtract_product(int m, int n, int k, const T* A, const T* B, T* C, int ld) const {
    subtract_product(m, n, k, A, B, C, ld, ld);
  }
  /// B := B L^-H
  void divide(int m, int n, const T* L, T* B, int ld) const {
    if (n <= tuning_.update_order)
      kernels_.divide(m, n, L, ld, B, ld);
    else
      blas::trsm(CblasRight, CblasLower, adjoint<T>, CblasNonUnit, m, n, L, ld, B, ld);
  }

  /// Adds the part of child c's update matrix that lies in rows [r0, r1) and columns [c0, c1) of the parent, of which
  /// entry (i, j) is to[i + j * ld].
  void add_child(index_t c, const T* children, index_t r0, index_t r1, index_t c0, index_t c1, T* to, index_t ld) const {
    const index_t own = plan_.col_count(c), n = plan_.row_count(c) - own;
    const index_t* place = plan_.place.data() + plan_.row_start[c] + own;
    const auto from_place = [&](index_t p) { return std::lower_bound(place, place + n, p) - place; };
    const index_t column_begin = from_place(c0), column_end = from_place(c1);
    const index_t row_begin = from_place(r0), row_end = from_place(r1);
    if (column_begin == column_end || row_begin == row_end) return;
    const T* C = children + schedule_.update_at[c];
    const Run* run = schedule_.runs.data() + schedule_.run_start[c];
    const bool by_runs = (schedule_.run_start[c + 1] - schedule_.run_start[c]) * 4 <= n;
    for (index_t j = column_begin; j < column_end; ++j) {
      T* column = to + place[j] * ld;
      const T* from = C + j * n;
      index_t i = max(row_begin, j);
      if (!by_runs) {
        for (; i < row_end; ++i) column[place[i]] += from[i];
        continue;
      }
      if (i >= row_end) break;
      while (run->place + run->length <= place[i]) ++run;
      const Run* r = run;
      for (index_t at = place[i]; i < row_end; ++r, at = r->place) {
        const index_t length = min(r->place + r->length - at, row_end - i);
        add_run(column + at, from + i, length);
        i += length;
        if (i == row_end) break;
      }
    }
  }

  // ---- Fronts of the top ----

  void wait_for(index_t task) const {
    wait_until([&] { return progress_.is_done(task); });
  }

  /// `complete`: so many nodes are known to be complete, by this thread.
  void task(index_t top, index_t q, index_t& complete) const {
    const index_t s = schedule_.top[top], node = index_t(schedule_.branches.size()) + top;
    const index_t first_task = progress_.task_start(top);
    const Tiles tiles(plan_.row_count(s), plan_.col_count(s), tuning_);
    T* F = factor_ + plan_.factor_start[s];
    const index_t task = first_task + q;
    if (q < tiles.across) {
      assembly_task(s, F, tiles, q);
      progress_.set_done(task);
    } else {
      q -= tiles.across;
      index_t j = 0;
      while (j < tiles.across && q >= tiles.down - j) q -= tiles.down - j++;
      if (j < tiles.across) {
        tile_task(s, F, tiles, j + q, j, first_task);
        progress_.set_done(task);
      } else {
        while (q >= tiles.down - j) q -= tiles.down - j++;
        for (; complete < node; ++complete) wait_until([&] { return progress_.is_complete(complete); });
        update_task(s, F, tiles, j + q, j, first_task);
      }
    }
    count(s, tiles.tasks());
    progress_.one_less(node);
  }

  void assembly_task(index_t s, T* F, const Tiles& tiles, index_t j) const {
    for (index_t c = schedule_.first_child[s]; c >= 0; c = schedule_.next_sibling[c])
      wait_until([&] { return progress_.is_complete(progress_.node_of(c)); });
    if (progress_.failed_before(s, plan_.first[s])) return;
    assemble(s, F, tiles.m, tiles.begin(j), tiles.end(j), work_);
  }

  /// Tile (i, j) of the columns: C -= L(i, p) L(j, p)^H for all p < j, then the factor of the diagonal tile, or C L(j, j)^-H.
  void tile_task(index_t s, T* F, const Tiles& tiles, index_t i, index_t j, index_t first_task) const {
    const index_t ld = tiles.m, row = tiles.begin(i), column = tiles.begin(j);
    const int rows = int(tiles.end(i) - row), columns = int(tiles.end(j) - column);
    T* C = F + row + column * ld;
    wait_for(first_task + tiles.assembly_task(j));
    for (index_t p = 0; p < j; ++p) {
      wait_for(first_task + tiles.tile_task(j, p));
      if (i != j) wait_for(first_task + tiles.tile_task(i, p));
      if (progress_.failed_before(s, plan_.first[s] + tiles.end(j))) return;
      const T* left = F + row + tiles.begin(p) * ld;
      const int depth = int(tiles.end(p) - tiles.begin(p));
      if (i == j)
        subtract_square(columns, depth, left, C, int(ld));
      else
        subtract_product(rows, columns, depth, left, F + column + tiles.begin(p) * ld, C, int(ld));
    }
    if (i != j) wait_for(first_task + tiles.tile_task(j, j));
    if (progress_.failed_before(s, plan_.first[s] + tiles.end(j))) return;
    if (i == j) {
      if (const int failed = factor_columns(columns, columns, C, int(ld)))
        progress_.set_failed(plan_.first[s] + column + failed - 1);
    } else {
      divide(rows, columns, F + column + column * ld, C, int(ld));
    }
  }

  /// Tile (i, j) of the update matrix: U = -L(i, :) L(j, :)^H plus the children's.
  void update_task(index_t s, const T* F, const Tiles& tiles, index_t i, index_t j, index_t first_task) const {
    for (index_t p = 0; p < tiles.across; ++p)
      wait_for(first_task + tiles.tile_task(i, p)), wait_for(first_task + tiles.tile_task(j, p));
    if (progress_.failed_before(s, plan_.first[s] + tiles.w)) return;
    const index_t rest = tiles.m - tiles.w, row = tiles.begin(i), column = tiles.begin(j);
    const int rows = int(tiles.end(i) - row), columns = int(tiles.end(j) - column), w = int(tiles.w), m = int(tiles.m);
    T* U = work_ + schedule_.update_at[s] - tiles.w - tiles.w * rest;  // entry (row, column) of the front
    T* C = U + row + column * rest;
    if (i == j) {
      set_square(columns, w, F + row, m, C, int(rest));
    } else {
      for (index_t c = 0; c < columns; ++c) std::fill_n(C + c * rest, rows, T(0));
      subtract_product(rows, columns, w, F + row, F + column, C, m, int(rest));
    }
    for (index_t c = schedule_.first_child[s]; c >= 0; c = schedule_.next_sibling[c])
      add_child(c, work_, row, row + rows, column, column + columns, U, rest);
  }

  const Plan& plan_;
  const Schedule& schedule_;
  const SparseTuning& tuning_;
  const FrontKernels<T>& kernels_;
  T* factor_;
  const T* values_;
  Real<T> shift_;
  T* work_;
  Progress& progress_;
  Interruption& stop_;
  const bool watched_ = flop_watchers.load(std::memory_order_relaxed) > 0;
};

}  // namespace

template <class T>
void sparse_factor(const SparseData<T>& data, const T* values, Real<T> shift, T* work, Progress& progress) {
  progress.reset();
  Interruption stop;
  const Factorization<T> factorization(data, values, shift, work, progress, stop);
  const ThreadScope scope(data.schedule.threads, true);
  if (data.schedule.threads == 1) {
    factorization.alone();
  } else {
#pragma omp parallel num_threads(data.schedule.threads)
    factorization.work(omp_get_thread_num());
  }
  stop.throw_if_requested();
}

#define TRIFACTOR_INSTANTIATE(T) \
  template void sparse_factor<T>(const SparseData<T>&, const T*, Real<T>, T*, Progress&);
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_INSTANTIATE)
#undef TRIFACTOR_INSTANTIATE

}  // namespace trifactor::host
