// HostEngine: Cholesky and LU of whole items and of tiles.
#include <core/path.hpp>
#include <host/blas.hpp>
#include <host/blas_memory.hpp>
#include <host/engine.hpp>
#include <host/groups.hpp>
#include <host/interleaved.hpp>
#include <host/item_solves.hpp>
#include <host/threads.hpp>
#include <tile/cholesky.hpp>
#include <tile/lu.hpp>

#include <atomic>
#include <optional>

namespace trifactor::host {

namespace {

constexpr index_t tile_order = 16;  // up to here a LAPACK call costs more than the arithmetic in it

// From so much work on, one matrix is faster with threads inside LAPACK: 16 cores of a Xeon, OpenBLAS 0.3.26. Cholesky
// of order 500: 1.3 ms alone, 1.5 with 16 threads. LU, whose panels keep few threads busy: of order 100 0.07 alone and
// 0.47 with 16; of order 500 2.1, 2.2 and 3.3 with 4, 8 and 16; of order 1000 9.6, 7.2 and 8.7.
constexpr WorthATeam worth_a_team_of_potrf{1e8}, worth_a_team_of_getrf{4e7, 1.5e8, 1e9};

/// For team_for: what a Cholesky factorization of the largest item costs, in flops and entries.
template <class T>
double factor_work(const Items<T>& A) {
  const double m = double(A.rows), n = double(A.cols), k = double(min(A.rows, A.cols));
  return m * n * (1 + k / 3);
}

/// The first column whose pivot was not positive and finite. LAPACK's own info misses NaN and Inf: a NaN pivot leaves
/// NaN, an infinite one Inf, on the diagonal of the factor, perhaps before the column that LAPACK names.
template <class T>
int first_bad_pivot(const Tile<T>& L, int lapack_info) {
  const index_t checked = lapack_info > 0 ? lapack_info - 1 : L.rows;
  for (index_t k = 0; k < checked; ++k)
    if (!good_pivot(real(L(k, k)))) return int(k + 1);
  return lapack_info;
}

template <class T>
int cholesky_item(const Tile<T>& A, bool flipped) {
  if (A.rows <= tile_order) return tile::cholesky(alone, A);
  const index_t ld = flipped ? A.row_stride : A.col_stride;
  return first_bad_pivot(A, blas::potrf(flipped ? 'U' : 'L', int(A.rows), A.data, int(ld)));
}

/// core::abs1 without a branch, which random signs would mispredict: 6 ns for each entry.
template <class R>
R size_of(R a) {
  return std::fabs(a);
}
template <class R>
R size_of(Complex<R> a) {
  return std::fabs(a.re) + std::fabs(a.im);
}

/// Numbers that LAPACK's LU is not to be trusted with: its pivot search may pass over a NaN, which infinities make too;
/// and OpenBLAS scales by the reciprocal of a pivot, which overflows if that is subnormal. Products of entries make
/// such pivots too, so that all below the square root of the smallest normal number count.
template <class T>
bool needs_care(const Tile<T>& A, index_t j) {
  using R = Real<T>;
  const T* column = &A(0, j);   // LAPACK takes no other step than 1
  R not_finite = 0, least = 1;  // the first becomes NaN; no branches, so that lanes work side by side
#pragma omp simd reduction(+ : not_finite) reduction(min : least)
  for (index_t i = 0; i < A.rows; ++i) {
    const R size = size_of(column[i]), or_one = size == R(0) ? R(1) : size;
    not_finite += size * R(0);
    least = or_one < least ? or_one : least;
  }
  return !(not_finite == R(0)) || least < std::sqrt(Limits<R>::smallest);
}
template <class T>
bool needs_care(int threads, const Tile<T>& A) {
  std::atomic<bool> found{false};
  for_columns(threads, A.cols, A.rows, [&](index_t j) {
    if (needs_care(A, j)) found = true;
  });
  return found;
}

template <class T>
int lu_by_tile(const Tile<T>& A, int* pivots, index_t first) {
  tile::PivotCandidate<Real<T>> candidate;
  return tile::lu(alone, A, pivots, first, &candidate);
}
template <class T>
int lu_in_halves(const Tile<T>& A, int* pivots, index_t first);

/// LU of an item of a batch.
template <class T>
int lu_item(const Tile<T>& A, int* pivots, index_t first) {
  constexpr index_t worth_halving = 32;
  const index_t n = min(A.rows, A.cols);
  bool with_care = n <= tile_order;
  for (index_t j = 0; j < A.cols && !with_care; ++j) with_care = needs_care(A, j);
  if (with_care) return n <= worth_halving ? lu_by_tile(A, pivots, first) : lu_in_halves(A, pivots, first);
  const int k = blas::getrf(int(A.rows), int(A.cols), A.data, int(A.col_stride), pivots);
  for (index_t i = 0; i < n; ++i) pivots[i] += int(first);
  return k;
}

/// The same where LAPACK is not to be trusted with all of it: products are BLAS's nevertheless.
template <class T>
int lu_in_halves(const Tile<T>& A, int* pivots, index_t first) {
  const index_t m = A.rows, n = A.cols, k = min(m, n) / 2;
  const int ld = int(A.col_stride);
  const auto items = [&](const Tile<T>& a) { return one_matrix(a.data, a.rows, a.cols, ld); };
  const int bad = lu_item(A.block(0, 0, m, k), pivots, first);
  for (index_t j = 0; j < n - k; ++j) exchange(A.block(0, k, m, n - k), j, pivots, k, first, false);
  trsm_item(unit_lower, plain(items(A.block(0, 0, k, k))), items(A.block(0, k, k, n - k)), 0);   // A12 := L11^-1 A12
  blas::gemm(CblasNoTrans, CblasNoTrans, int(m - k), int(n - k), int(k), &A(k, 0), ld, &A(0, k), ld, &A(k, k), ld);
  const int bad_later = lu_item(A.block(k, k, m - k, n - k), pivots + k, first + k);
  for (index_t j = 0; j < k; ++j) exchange(A.block(k, 0, m - k, k), j, pivots + k, min(m, n) - k, first + k, false);
  return bad != 0 || bad_later == 0 ? bad : int(k) + bad_later;
}

/// Whether items whose info is 0 are square.
template <class T>
bool all_square(const Items<T>& A, const int* info) {
  bool square = A.ragged() || A.rows == A.cols;
  for (index_t b = 0; A.ragged() && b < A.count && square; ++b) {
    const auto a = A.item(b);
    square = info[b] != 0 || a.rows == a.cols;
  }
  return square;
}

}  // namespace

template <class T>
bool HostEngine::cholesky_whole(Items<T> A, int* info, const CholeskyTuning& tuning) {
  const index_t n = A.rows, lanes = interleaved<T>().lanes;
  if (n > tuning.whole) return false;
  reset_info(A, true, info);
  if (too_few_for_lanes(n, A.count, lanes, threads_) || tuning.interleaved == 0 ||
      (!A.ragged() && n > tuning.interleaved)) {
    set_path(A.count == 1 && n <= tile_order ? "tile" : "lapack");
    cholesky_tile(A, info, 0);
    return true;
  }
  set_path(n <= tuning.interleaved ? "interleaved" : "lapack, interleaved");
  const index_t small = min(tuning.interleaved, n);
  const LaneScratch scratch(arena_, interleaved<T>().scratch(small, 0), threads_);
  GroupedItems items(arena_, A, A.ragged());
  if (arena_.planning()) return true;
  const Traced traced(*this, "cholesky_whole", n, n);
  items.sort(A, A.ragged() ? info : nullptr, small);
  const BlasCallers callers(threads_, items.alone);
  std::optional<ThreadScope> scope;
  if (items.alone > 0) scope.emplace(threads_, true);
  items.for_each(
      threads_, lanes, factor_work(A), [&](index_t b) { info[b] = cholesky_item(A.item(b), A.is_flipped); },
      [&](const index_t* group, int size, int thread) {
        interleaved<T>().cholesky(A, A.is_flipped, nullptr, group, size, info, scratch.of(thread));
      });
  return true;
}

template <class T>
bool HostEngine::cholesky_solve_whole(Items<T> A, bool flipped, Items<T> X, int* info, const CholeskyTuning& tuning) {
  const index_t n = A.rows, lanes = interleaved<T>().lanes;
  if (A.ragged() || n > min(tuning.whole, tuning.interleaved) || X.cols > tuning.fused ||
      too_few_for_lanes(n, A.count, lanes, threads_))
    return false;
  set_path("interleaved");
  const LaneScratch scratch(arena_, interleaved<T>().scratch(n, X.cols), threads_);
  GroupedItems items(arena_, A, false);
  if (arena_.planning()) return true;
  const Traced traced(*this, "cholesky_solve_whole", n, X.cols);
  reset_info(A, true, info);
  items.sort(A, nullptr, n);
  items.for_each(
      threads_, lanes, factor_work(A) + double(n) * double(n) * double(X.cols), [](index_t) {},
      [&](const index_t* group, int size, int thread) {
        interleaved<T>().cholesky(A, flipped, &X, group, size, info, scratch.of(thread));
      });
  return true;
}

template <class T>
void HostEngine::cholesky_tile(Items<T> A, int* info, index_t first) {
  if (arena_.planning()) return;
  const Traced traced(*this, "cholesky_tile", A.rows, A.cols);
  const BlasCallers callers(threads_, A.rows > tile_order ? A.count : 0);
  const ThreadScope scope(blas_team(threads_, A.count, factor_work(A), worth_a_team_of_potrf), A.count > 1);
  for_items(threads_, A.count, info, factor_work(A), [&](index_t b) {
    const int k = cholesky_item(A.item(b), A.is_flipped);
    if (k != 0) info[b] = int(first) + k;
  });
}

template <class T>
bool HostEngine::lu_interleaved(Items<T> A, Pivots<int> pivots, int* info, const LuTuning& tuning) {
  const index_t n = min(A.rows, A.cols), small = min(tuning.interleaved, n), lanes = interleaved_lu<T>().lanes;
  // A vector takes the time of W / 4 to W / 2 items, whether its lanes are in use or not, on one thread.
  const bool too_few = A.count == 1 || 4 * A.count < lanes * (n > tile_order ? threads_ : 1);
  if (small == 0 || A.is_flipped || too_few || (!A.ragged() && max(A.rows, A.cols) > small)) return false;
  const LaneScratch scratch(arena_, interleaved_lu<T>().scratch(small), threads_);
  GroupedItems items(arena_, A, A.ragged());
  if (arena_.planning()) return true;
  reset_info(A, false, info);
  if (!all_square(A, info)) return false;
  const Traced traced(*this, "lu_whole", A.rows, A.cols);
  items.sort(A, A.ragged() ? info : nullptr, small);
  set_path(items.alone == 0 ? "interleaved" : "lapack, interleaved");
  const BlasCallers callers(threads_, items.alone);
  std::optional<ThreadScope> scope;
  if (items.alone > 0) scope.emplace(threads_, true);
  items.for_each(
      threads_, lanes, 2 * factor_work(A), [&](index_t b) { info[b] = lu_item(A.item(b), pivots.item(b), 0); },
      [&](const index_t* group, int size, int thread) {
        index_t left_out[GroupedItems::most_neighbours];
        const int left = interleaved_lu<T>().lu(A, pivots, group, size, info, left_out, scratch.of(thread));
        for (int i = 0; i < left; ++i) info[left_out[i]] = lu_by_tile(A.item(left_out[i]), pivots.item(left_out[i]), 0);
      });
  return true;
}

template <class T>
bool HostEngine::lu_whole(Items<T> A, Pivots<int> pivots, int* info, const LuTuning& tuning) {
  if (min(A.rows, A.cols) > tuning.whole) return false;
  if (lu_interleaved(A, pivots, info, tuning) || arena_.planning()) return true;
  if (A.count == 1 && A.possible(0) && needs_care(threads_, A.item(0)))
    return false;  // a single matrix may be large: the blocked driver takes care too
  set_path("lapack");
  reset_info(A, false, info);
  const Traced traced(*this, "lu_whole", A.rows, A.cols);
  const BlasCallers callers(threads_, A.count == 1 || min(A.rows, A.cols) > tile_order ? A.count : 0);
  const ThreadScope scope(blas_team(threads_, A.count, 2 * factor_work(A), worth_a_team_of_getrf), A.count > 1);
  for_items(threads_, A.count, info, 2 * factor_work(A), [&](index_t b) {
    const auto a = A.item(b);
    if (a.rows == 0 || a.cols == 0) return;
    info[b] = A.count > 1 ? lu_item(a, pivots.item(b), 0)
                          : blas::getrf(int(a.rows), int(a.cols), a.data, int(a.col_stride), pivots.item(b));
  });
  return true;
}

template <class T>
void HostEngine::lu_tile(Items<T> A, Pivots<int> pivots, int* info, index_t left) {
  if (arena_.planning()) return;
  {
    const Traced traced(*this, "lu_tile", A.rows, A.cols);
    const BlasCallers callers(threads_, min(A.rows, A.cols) > tile_order ? A.count : 0);
    const ThreadScope scope(blas_team(threads_, A.count, 2 * factor_work(A), worth_a_team_of_getrf), A.count > 1);
    const int team = A.count == 1 ? 1 : team_for(threads_, double(A.count) * 2 * factor_work(A));
    Interruption stop;
#pragma omp parallel for schedule(dynamic) num_threads(team)
    for (index_t b = 0; b < A.count; ++b) {
      if (info[b] < 0 || (A.count > 1 && stop.requested())) continue;
      const auto a = A.item(b);
      if (a.rows == 0 || a.cols == 0) continue;
      const int k = lu_item(a, pivots.item(b), pivots.first);
      if (k != 0 && info[b] == 0) info[b] = int(pivots.first) + k;
    }
    stop.throw_if_requested();
  }
  swap_rows(A.block(0, -left, A.rows, left), Pivots<const int>(pivots), min(A.rows, A.cols), false, nullptr);
}

#define TRIFACTOR_INSTANTIATE(T)                                                                            \
  template bool HostEngine::cholesky_whole<T>(Items<T>, int*, const CholeskyTuning&);                       \
  template bool HostEngine::cholesky_solve_whole<T>(Items<T>, bool, Items<T>, int*, const CholeskyTuning&); \
  template void HostEngine::cholesky_tile<T>(Items<T>, int*, index_t);                                      \
  template bool HostEngine::lu_whole<T>(Items<T>, Pivots<int>, int*, const LuTuning&);                      \
  template void HostEngine::lu_tile<T>(Items<T>, Pivots<int>, int*, index_t);
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_INSTANTIATE)
#undef TRIFACTOR_INSTANTIATE

}  // namespace trifactor::host
