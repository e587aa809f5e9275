#include <host/sparse.hpp>

#include <host/blas.hpp>
#include <host/front.hpp>
#include <host/threads.hpp>

#include <algorithm>
#include <cstring>
#include <limits>

namespace trifactor::host {

namespace {

using namespace core;
using sparse::Branch;
using sparse::Plan;
using sparse::Run;
using sparse::Schedule;

constexpr auto conj_trans = []<class T>(T) { return is_complex<T> ? CblasConjTrans : CblasTrans; };

/// First failures are found side by side.
index_t earlier(index_t a, index_t b) { return a < 0 ? b : b < 0 ? a : min(a, b); }

template <class T>
void add(T* __restrict to, const T* __restrict from, index_t n) {
  for (index_t i = 0; i < n; ++i) to[i] += from[i];
}

// ---- The factorization ----

template <class T>
class Factorization {
 public:
  Factorization(const SparseData<T>& data, const T* values, Real<T> shift, T* work)
      : plan_(data.plan),
        schedule_(data.schedule),
        tuning_(data.tuning),
        factor_(data.factor),
        values_(values),
        shift_(shift),
        work_(work) {}

  /// Front s, whose children are done. `together`: all threads are here.
  index_t front(index_t s, bool together) const {
    const int m = int(plan_.row_count(s)), w = int(plan_.col_count(s)), rest = m - w;
    T* F = factor_ + plan_.factor_start[s];  // (m, w)
    T* U = work_ + schedule_.update_at[s];   // (rest, rest)
    assemble(s, F, m, w, together);
    if (const int failed = factor_columns(m, w, F, m, together)) return plan_.first[s] + failed - 1;
    if (rest == 0) return -1;
    if (rest <= tuning_.update_order || w <= tuning_.update_columns)
      front::update(rest, w, F + w, m, U, rest);
    else
      blas::herk(CblasLower, CblasNoTrans, rest, w, F + w, m, U, rest, 0);  // U = -F21 F21^H
    for (index_t c = schedule_.first_child[s]; c >= 0; c = schedule_.next_sibling[c])
      add_child(c, s, F, U, true, together);
    return -1;
  }

 private:
  /// F := the values that lie in it, plus the parts of the children's update matrices.
  void assemble(index_t s, T* F, int m, int w, bool together) const {
    constexpr int few = 16;  // columns whose part above the diagonal is not worth leaving out
    if (w <= few)
      std::memset(static_cast<void*>(F), 0, sizeof(T) * std::size_t(m) * std::size_t(w));
    else
      for (index_t j = 0; j < w; ++j) std::memset(static_cast<void*>(F + j + j * m), 0, sizeof(T) * std::size_t(m - j));
    for (index_t k = schedule_.entries.start[s]; k < schedule_.entries.start[s + 1]; ++k) {
      const index_t target = schedule_.entries.target[k];
      const T value = values_[schedule_.entries.source[k]];
      if constexpr (is_complex<T>)
        factor_[target < 0 ? ~target : target] += conj_if(target < 0, value);
      else
        factor_[target ^ target >> 63] += value;
    }
    if (shift_ != 0)
      for (index_t j = 0; j < w; ++j) F[j + j * m] += T(shift_);
    for (index_t c = schedule_.first_child[s]; c >= 0; c = schedule_.next_sibling[c])
      add_child(c, s, F, nullptr, false, together);
  }

  /// Halves the w columns down to leaves. Returns the first column that failed, from 1, or 0.
  int factor_columns(int m, int w, T* F, int ld, bool together) const {
    const int leaf = int(tuning_.leaf);
    if (w <= leaf) return factor_leaf(m, w, F, ld, together);
    const int left = w / 2 / leaf * leaf + (w / 2 < leaf ? leaf : 0), right = w - left;
    if (const int failed = factor_columns(m, left, F, ld, together)) return failed;
    T* F22 = F + left + index_t(left) * ld;
    blas::herk(CblasLower, CblasNoTrans, right, left, F + left, ld, F22, ld);
    if (m > w) blas::gemm(CblasNoTrans, conj_trans(T()), m - w, right, left, F + w, ld, F + left, ld, F22 + right, ld);
    const int failed = factor_columns(m - left, right, F22, ld, together);
    return failed ? left + failed : 0;
  }

  int factor_leaf(int m, int w, T* F, int ld, bool together) const {
    const int strip = int(tuning_.strip);
    if (m <= w + strip) return front::columns(m, w, F, ld);
    if (const int failed = front::columns(w, w, F, ld)) return failed;
    const int strips = int(ceil_div(m - w, strip));
    const auto divide = [&](int i) { front::below(min(strip, m - w - i * strip), w, F, ld, F + w + i * strip, ld); };
    if (together && index_t(m) * w > tuning_.team) {
#pragma omp parallel for schedule(static)
      for (int i = 0; i < strips; ++i) divide(i);
    } else {
      for (int i = 0; i < strips; ++i) divide(i);
    }
    return 0;
  }

  /// Adds the update matrix of child c to its parent s: the columns that belong to F, or those that belong to U.
  void add_child(index_t c, index_t s, T* F, T* U, bool to_update, bool together) const {
    const index_t w = plan_.col_count(s), m = plan_.row_count(s), rest = m - w;
    const index_t own = plan_.col_count(c), n = plan_.row_count(c) - own;
    const index_t* place = plan_.place.data() + plan_.row_start[c] + own;
    const index_t middle = std::lower_bound(place, place + n, w) - place;
    const index_t begin = to_update ? middle : 0, end = to_update ? n : middle;
    if (begin == end) return;
    const T* C = work_ + schedule_.update_at[c];
    const Run* run = schedule_.runs.data() + schedule_.run_start[c];
    const Run* last_run = schedule_.runs.data() + schedule_.run_start[c + 1];
    const bool by_runs = (last_run - run) * 4 <= n;
    const auto column = [&](index_t j) {
      const index_t p = place[j];
      T* to = to_update ? U + (p - w) * rest - w : F + p * m;  // row q of the parent is to[q]
      const T* from = C + j * n;
      if (!by_runs) {
        for (index_t i = j; i < n; ++i) to[place[i]] += from[i];
        return;
      }
      const Run* r = run;
      index_t i = j;
      while (r->place + r->length <= p) ++r;
      for (index_t at = p; r != last_run; ++r, at = r->place) {
        const index_t length = r->place + r->length - at;
        add(to + at, from + i, length);
        i += length;
        if (i == n) break;
      }
    };
    if (together && (end - begin) * n > tuning_.team) {
#pragma omp parallel for schedule(dynamic, 8)
      for (index_t j = begin; j < end; ++j) column(j);
    } else {
      for (index_t j = begin; j < end; ++j) column(j);
    }
  }

  const Plan& plan_;
  const Schedule& schedule_;
  const SparseTuning& tuning_;
  T* factor_;
  const T* values_;
  Real<T> shift_;
  T* work_;
};

}  // namespace

template <class T>
index_t sparse_factor(const SparseData<T>& data, const T* values, Real<T> shift, T* work) {
  const Schedule& schedule = data.schedule;
  const Factorization<T> factorization(data, values, shift, work);
  index_t failed = -1;
  if (!schedule.branches.empty()) {
    const ThreadScope scope(schedule.threads, true);
#pragma omp parallel for schedule(static, 1)
    for (int t = 0; t < schedule.threads; ++t) {
      index_t first = -1;
      for (index_t b = schedule.branch_start[t]; b < schedule.branch_start[t + 1] && first < 0; ++b)
        for (index_t s = schedule.branches[b].begin; s < schedule.branches[b].end && first < 0; ++s)
          first = factorization.front(s, false);
#pragma omp critical(trifactor_sparse_failed)
      failed = earlier(failed, first);
    }
  }
  // A front before the one that failed does not depend on it, and may fail as well.
  const ThreadScope scope(schedule.threads, false);
  for (const index_t s : schedule.top) {
    if (failed >= 0 && failed < data.plan.first[s]) break;
    failed = earlier(failed, factorization.front(s, schedule.threads > 1));
  }
  return failed;
}

// ---- The solves ----

namespace {

/// Threads share blocks of more entries than this; `nothing` where each works alone.
using Share = index_t;
constexpr Share nothing = std::numeric_limits<index_t>::max();

/// Columns between two passes over the rows below: more where threads meet after each.
constexpr index_t block_of(Share share) { return share == nothing ? 64 : 256; }

/// z[r0 .. r1) -= conj(F[r0 .. r1, c0 .. c1)) z[c0 .. c1)
template <class T>
void subtract_columns(const T* F, index_t ld, T* __restrict z, index_t c0, index_t c1, index_t r0, index_t r1) {
  index_t c = c0;
  for (; c + 4 <= c1; c += 4) {
    const T *f0 = F + c * ld, *f1 = f0 + ld, *f2 = f1 + ld, *f3 = f2 + ld;
    const T x0 = z[c], x1 = z[c + 1], x2 = z[c + 2], x3 = z[c + 3];
    for (index_t i = r0; i < r1; ++i) {
      T y = minus_product(z[i], x0, conj(f0[i]));
      y = minus_product(y, x1, conj(f1[i]));
      y = minus_product(y, x2, conj(f2[i]));
      z[i] = minus_product(y, x3, conj(f3[i]));
    }
  }
  for (; c < c1; ++c) {
    const T x = z[c];
    for (index_t i = r0; i < r1; ++i) z[i] = minus_product(z[i], x, conj(F[i + c * ld]));
  }
}

/// sum of z[i] f[i], with as many sums as hide the time of an addition
template <class T>
void dots(const T* F, index_t ld, const T* z, index_t n, T sum[4]) {
  const T *f0 = F, *f1 = f0 + ld, *f2 = f1 + ld, *f3 = f2 + ld;
  if constexpr (is_complex<T>) {
    for (index_t i = 0; i < n; ++i) {
      sum[0] += z[i] * f0[i], sum[1] += z[i] * f1[i];
      sum[2] += z[i] * f2[i], sum[3] += z[i] * f3[i];
    }
  } else {
    T s0 = 0, s1 = 0, s2 = 0, s3 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
    for (index_t i = 0; i < n; ++i) s0 += z[i] * f0[i], s1 += z[i] * f1[i], s2 += z[i] * f2[i], s3 += z[i] * f3[i];
    sum[0] = s0, sum[1] = s1, sum[2] = s2, sum[3] = s3;
  }
}

/// z[c0 .. c1) -= F[r0 .. r1, c0 .. c1)^T z[r0 .. r1)
template <class T>
void subtract_dots(const T* F, index_t ld, T* z, index_t c0, index_t c1, index_t r0, index_t r1) {
  index_t c = c0;
  for (; c + 4 <= c1; c += 4) {
    T sum[4] = {};
    dots(F + r0 + c * ld, ld, z + r0, r1 - r0, sum);
    for (int q = 0; q < 4; ++q) z[c + q] -= sum[q];
  }
  for (; c < c1; ++c) {
    T sum(0);
    for (index_t i = r0; i < r1; ++i) sum += z[i] * F[i + c * ld];
    z[c] -= sum;
  }
}

/// z = (x1, 0) of m numbers: x1 := L11^-1 x1, below it -L21 x1.
template <class T>
void forward_vector(const T* F, index_t m, index_t w, T* z, Share share) {
  const index_t block = block_of(share);
  for (index_t k = 0; k < w; k += block) {
    const index_t end = min(w, k + block);
    for (index_t c = k; c < end; c += 4) {
      const index_t stop = min(end, c + 4);
      for (index_t q = c; q < stop; ++q) {
        z[q] = z[q] * (1 / real(F[q + q * m]));
        for (index_t i = q + 1; i < stop; ++i) z[i] = minus_product(z[i], z[q], conj(F[i + q * m]));
      }
      subtract_columns(F, m, z, c, stop, stop, end);
    }
    if ((m - end) * (end - k) > share) {
      const index_t parts = omp_get_max_threads(), each = ceil_div(m - end, parts);
#pragma omp parallel for schedule(static, 1)
      for (index_t t = 0; t < parts; ++t)
        subtract_columns(F, m, z, k, end, min(m, end + t * each), min(m, end + (t + 1) * each));
    } else {
      subtract_columns(F, m, z, k, end, end, m);
    }
  }
}

/// z = (x1, x2): x1 := L11^-H (x1 - L21^H x2).
template <class T>
void backward_vector(const T* F, index_t m, index_t w, T* z, Share share) {
  const index_t block = block_of(share);
  for (index_t k = (w - 1) / block * block; k >= 0; k -= block) {
    const index_t end = min(w, k + block);
    if ((m - end) * (end - k) > share) {
#pragma omp parallel for schedule(static)
      for (index_t c = k; c < end; c += 4) subtract_dots(F, m, z, c, min(end, c + 4), end, m);
    } else {
      subtract_dots(F, m, z, k, end, end, m);
    }
    for (index_t c = k + (end - k - 1) / 4 * 4; c >= k; c -= 4) {
      const index_t stop = min(end, c + 4);
      subtract_dots(F, m, z, c, stop, stop, end);
      for (index_t q = stop - 1; q >= c; --q) {
        for (index_t i = q + 1; i < stop; ++i) z[q] = minus_product(z[q], z[i], F[i + q * m]);
        z[q] = z[q] * (1 / real(F[q + q * m]));
      }
    }
  }
}

/// to[0 .. k) -= from[0 .. k) factor
template <class T>
void subtract_row(index_t k, T* __restrict to, const T* __restrict from, T factor) {
  for (index_t i = 0; i < k; ++i) to[i] = minus_product(to[i], from[i], factor);
}

/// A front that is not worth a BLAS call, for k right-hand sides.
constexpr index_t small_front = 256;  // entries

template <class T>
void forward_rows(const T* F, index_t m, index_t w, index_t k, T* Z) {
  if (m * w <= small_front) {
    for (index_t c = 0; c < w; ++c) {
      const Real<T> inverse = 1 / real(F[c + c * m]);
      for (index_t i = 0; i < k; ++i) Z[i + c * k] = Z[i + c * k] * inverse;
      for (index_t r = c + 1; r < m; ++r) subtract_row(k, Z + r * k, Z + c * k, conj(F[r + c * m]));
    }
    return;
  }
  blas::trsm(CblasRight, CblasLower, conj_trans(T()), CblasNonUnit, int(k), int(w), F, int(m), Z, int(k));
  if (m > w)
    blas::gemm(CblasNoTrans, conj_trans(T()), int(k), int(m - w), int(w), Z, int(k), F + w, int(m), Z + w * k, int(k));
}

template <class T>
void backward_rows(const T* F, index_t m, index_t w, index_t k, T* Z) {
  if (m * w <= small_front) {
    for (index_t c = w - 1; c >= 0; --c) {
      for (index_t r = c + 1; r < m; ++r) subtract_row(k, Z + c * k, Z + r * k, F[r + c * m]);
      const Real<T> inverse = 1 / real(F[c + c * m]);
      for (index_t i = 0; i < k; ++i) Z[i + c * k] = Z[i + c * k] * inverse;
    }
    return;
  }
  if (m > w)
    blas::gemm(CblasNoTrans, CblasNoTrans, int(k), int(w), int(m - w), Z + w * k, int(k), F + w, int(m), Z, int(k));
  blas::trsm(CblasRight, CblasLower, CblasNoTrans, CblasNonUnit, int(k), int(w), F, int(m), Z, int(k));
}

/// Solves front by front. Z, of each thread, holds the rows of one front.
template <class T>
class Solve {
 public:
  Solve(const SparseData<T>& data, index_t k, T* X, T* scratch)
      : plan_(data.plan),
        schedule_(data.schedule),
        factor_(data.factor),
        // Each entry is read once, so it takes more of them than in the factorization.
        share_(4 * data.tuning.team),
        k_(k),
        X_(X),
        scratch_(scratch) {}

  /// Waking threads would cost more than they gain.
  bool is_small() const { return plan_.factor_entries * k_ <= share_; }
  T* rows_of(int thread) const { return scratch_ + thread * schedule_.largest_rows * k_; }
  /// What the branches of a thread leave to the columns above them; only those above are used.
  T* above_of(int thread) const {
    return scratch_ + schedule_.threads * schedule_.largest_rows * k_ + thread * plan_.n * k_;
  }

  /// Rows from `limit` on go to `above` instead of X.
  void forward(index_t s, T* Z, index_t limit, T* above, bool together) const {
    const index_t m = plan_.row_count(s), w = plan_.col_count(s);
    const index_t* rows = plan_.rows.data() + plan_.row_start[s];
    T* X1 = X_ + plan_.first[s] * k_;
    std::memcpy(static_cast<void*>(Z), X1, sizeof(T) * std::size_t(w * k_));
    std::memset(static_cast<void*>(Z + w * k_), 0, sizeof(T) * std::size_t((m - w) * k_));
    const T* F = factor_ + plan_.factor_start[s];
    if (k_ == 1)
      forward_vector(F, m, w, Z, together ? share_ : nothing);
    else
      forward_rows(F, m, w, k_, Z);
    std::memcpy(static_cast<void*>(X1), Z, sizeof(T) * std::size_t(w * k_));
    index_t i = w;
    for (; i < m && rows[i] < limit; ++i) add_row(X_ + rows[i] * k_, Z + i * k_);
    for (; i < m; ++i) add_row(above + rows[i] * k_, Z + i * k_);
  }

  void backward(index_t s, T* Z, bool together) const {
    const index_t m = plan_.row_count(s), w = plan_.col_count(s);
    const index_t* rows = plan_.rows.data() + plan_.row_start[s];
    T* X1 = X_ + plan_.first[s] * k_;
    std::memcpy(static_cast<void*>(Z), X1, sizeof(T) * std::size_t(w * k_));
    for (index_t i = w; i < m; ++i) copy_row(Z + i * k_, X_ + rows[i] * k_);
    const T* F = factor_ + plan_.factor_start[s];
    if (k_ == 1)
      backward_vector(F, m, w, Z, together ? share_ : nothing);
    else
      backward_rows(F, m, w, k_, Z);
    std::memcpy(static_cast<void*>(X1), Z, sizeof(T) * std::size_t(w * k_));
  }

  /// f(values of a column of the top, their place)
  template <class F>
  void for_top(F f) const {
    for (const index_t s : schedule_.top) f(plan_.first[s] * k_, plan_.col_count(s) * k_);
  }

 private:
  void add_row(T* to, const T* from) const {
    for (index_t i = 0; i < k_; ++i) to[i] += from[i];
  }
  void copy_row(T* to, const T* from) const {
    for (index_t i = 0; i < k_; ++i) to[i] = from[i];
  }

  const Plan& plan_;
  const Schedule& schedule_;
  const T* factor_;
  const Share share_;
  index_t k_;
  T* X_;
  T* scratch_;
};

}  // namespace

index_t sparse_solve_scratch(const Schedule& schedule, index_t n, index_t k) {
  return schedule.threads * k * (schedule.largest_rows + (schedule.branches.empty() ? 0 : n));
}

template <class T>
void sparse_forward(const SparseData<T>& data, index_t k, T* X, T* scratch) {
  const Schedule& schedule = data.schedule;
  const Plan& plan = data.plan;
  const Solve<T> solve(data, k, X, scratch);
  if (solve.is_small()) {
    const ThreadScope scope(1, false);
    for (index_t s = 0; s < plan.fronts(); ++s) solve.forward(s, solve.rows_of(0), plan.n, nullptr, false);
    return;
  }
  if (!schedule.branches.empty()) {
    const ThreadScope scope(schedule.threads, true);
#pragma omp parallel for schedule(static, 1)
    for (int t = 0; t < schedule.threads; ++t) {
      T* above = solve.above_of(t);
      solve.for_top([&](index_t at, index_t count) { std::fill(above + at, above + at + count, T(0)); });
      for (index_t b = schedule.branch_start[t]; b < schedule.branch_start[t + 1]; ++b) {
        const Branch branch = schedule.branches[b];
        for (index_t s = branch.begin; s < branch.end; ++s)
          solve.forward(s, solve.rows_of(t), plan.first[branch.end], above, false);
      }
    }
    for (int t = 0; t < schedule.threads; ++t)
      solve.for_top([&](index_t at, index_t count) { add(X + at, solve.above_of(t) + at, count); });
  }
  const ThreadScope scope(schedule.threads, false);
  for (const index_t s : schedule.top) solve.forward(s, solve.rows_of(0), plan.n, nullptr, schedule.threads > 1);
}

template <class T>
void sparse_backward(const SparseData<T>& data, index_t k, T* X, T* scratch) {
  const Schedule& schedule = data.schedule;
  const Solve<T> solve(data, k, X, scratch);
  if (solve.is_small()) {
    const ThreadScope scope(1, false);
    for (index_t s = data.plan.fronts() - 1; s >= 0; --s) solve.backward(s, solve.rows_of(0), false);
    return;
  }
  {
    const ThreadScope scope(schedule.threads, false);
    for (index_t i = index_t(schedule.top.size()) - 1; i >= 0; --i)
      solve.backward(schedule.top[i], solve.rows_of(0), schedule.threads > 1);
  }
  if (schedule.branches.empty()) return;
  const ThreadScope scope(schedule.threads, true);
#pragma omp parallel for schedule(static, 1)
  for (int t = 0; t < schedule.threads; ++t)
    for (index_t b = schedule.branch_start[t + 1] - 1; b >= schedule.branch_start[t]; --b)
      for (index_t s = schedule.branches[b].end - 1; s >= schedule.branches[b].begin; --s)
        solve.backward(s, solve.rows_of(t), false);
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

#define TRIFACTOR_INSTANTIATE(T)                                                  \
  template index_t sparse_factor<T>(const SparseData<T>&, const T*, Real<T>, T*); \
  template void sparse_forward<T>(const SparseData<T>&, index_t, T*, T*);         \
  template void sparse_backward<T>(const SparseData<T>&, index_t, T*, T*);        \
  template void sparse_residual<T>(const SparseData<T>&, const T*, Real<T>, const T*, const T*, T*, Real<T>*);
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_INSTANTIATE)
#undef TRIFACTOR_INSTANTIATE

}  // namespace trifactor::host
