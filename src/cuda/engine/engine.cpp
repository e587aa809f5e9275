// CudaEngine: which kernels a factorization runs. Other operations are defined beside their kernels.
#include <cuda/engine/engine.hpp>

#include <core/path.hpp>
#include <cuda/batched/batched.hpp>
#include <cuda/entries/entries.hpp>
#include <cuda/single/single.hpp>

namespace trifactor::cuda {

namespace {
template <class T>
bool one_strided(const Items<T>& A) {
  return A.count == 1 && !A.pointers;
}
/// The most columns of panels that are factored by a cluster for each, or all multiprocessors; 0: others do. Of a batch,
/// where a block has too few registers for the rows.
template <class T>
index_t lu_team_columns(const Items<T>& A, bool alone) {
  return one_strided(A) || lu_columns<T>(A.rows) == 0 ? lu_panel_width<T>(A.rows, alone && one_strided(A)) : 0;
}
}  // namespace

template <class T>
bool CudaEngine::cholesky_whole(Items<T> A, int* info, const CholeskyTuning& tuning) {
  // Few large items are worked on several at a time, as far as there are flags. A matrix alone, and strided ones of
  // which each fills the device, have a kernel of their own.
  const index_t list_size = cholesky_list_size(A, tuning), limit = whole_device_limit<T>(A.rows, tuning);
  const bool alone = !A.pointers && (A.count == 1 || A.rows >= tuning.macro_tiles);
  const bool large = multiprocessors_ > 1 && (list_size > 0 ? limit > 0 : !alone && A.count <= limit);
  const index_t max_sets = (flag_count - 256) / (1 + persistent_flag_count<T>(A.rows));
  const index_t sets = large ? min(index_t(8), max_sets) : 0;
  const Array<int> all_info{info, A.count};
  if (A.rows <= tuning.whole || sets > 0) {
    const auto launch_all = [&, this](Items<T> A, Array<int> info, const CholeskyTuning& tuning) {
      auto list = arena().take<int>(list_size);
      auto entries = arena().take<T>(sets > 0 ? sets * persistent_entry_count<T>(A.rows) : 0);
      if (arena().planning()) return;
      const Traced traced(*this, "cholesky_whole", A.rows, A.cols);
      set_path(launch_cholesky(stream_, multiprocessors_, A, info.data, 0, true, tuning,
                               {list.data(), static_cast<int*>(flags_), entries.data(), int(sets)}));
    };
    if (list_size > 0)
      run_as_graph(launch_all, A, all_info, tuning);  // several launches
    else
      launch_all(A, all_info, tuning);
    return true;
  }
  if (!alone || A.rows > tuning.persistent || persistent_flag_count<T>(A.rows) > flag_count) return false;
  const auto one_by_one = [this](Items<T> A, Array<int> info, const CholeskyTuning& tuning) {  // each fills the device
    const int band = A.rows < tuning.macro_tiles ? 0 : int(min(tuning.band, A.rows));
    for (index_t b = 0; b < A.count; ++b) {
      if (A.rows >= tuning.realign && cholesky_realigned(A.one(b), band, info.data + b)) continue;
      cholesky_persistent(A.one(b), band, true, info.data + b, 0);
    }
  };
  set_path("persistent");
  if (A.count == 1)
    one_by_one(A, all_info, tuning);
  else
    run_as_graph(one_by_one, A, all_info, tuning);
  return true;
}
template <class T>
void CudaEngine::cholesky_tile(Items<T> A, int* info, index_t first) {
  constexpr index_t one_block = 64;  // from here on, one matrix is faster on several multiprocessors
  if (one_strided(A) && A.rows > one_block) return cholesky_persistent(A, 0, false, info, first);
  if (arena().planning()) return;
  const Traced traced(*this, "cholesky_tile", A.rows, A.cols);
  launch_cholesky(stream_, multiprocessors_, A, info, first, false, CholeskyTuning{}, {});
}
template <class T>
void CudaEngine::cholesky_persistent(Items<T> A, int band, bool resets, int* info, index_t first) {
  auto entries = arena().take<T>(persistent_entry_count<T>(A.rows));
  if (arena().planning()) return;
  const auto marks = static_cast<Mark*>(trace() ? take_marks(persistent_mark_count<T>(A.rows)) : nullptr);
  const Traced traced(*this, "cholesky_persistent", A.rows, A.cols);
  launch_persistent(stream_, multiprocessors_, A, band, resets, info, first, entries.data(), static_cast<int*>(flags_),
                    marks);
}
template <class T>
bool CudaEngine::cholesky_realigned(Items<T> A, int band, int* info) {
  const Tile<T> a = A.item(0);
  if (lines_aligned(a.data, A.is_flipped ? a.row_stride : a.col_stride)) return false;
  constexpr index_t line = 16;  // entries: whole sectors of memory, in every scalar, and what a tensor map is made of
  const index_t n = A.rows, order = ceil_div(n, line) * line;  // beyond n the copy is the identity
  const bool planning = arena().planning();
  const auto room = take_spare<T>(order * order);
  if (!planning && !room.data()) return false;
  Items<T> copy = one_matrix(room.data(), order, order, order);
  if (A.is_flipped) copy = copy.flipped();
  const auto copy_triangle = [&](Items<const T> from, Items<T> to) {
    if (planning) return;
    const Traced traced(*this, "copy_lower", n, n);
    launch_copy_lower(stream_, from, to);
  };
  copy_triangle(A, copy);
  cholesky_persistent(copy, band, true, info, 0);
  copy_triangle(copy, A);
  if (!planning) set_path("persistent", " realigned");
  return true;
}
template <class T>
bool CudaEngine::lu_whole(Items<T> A, Pivots<int> pivots, int* info, const LuTuning& tuning) {
  if (min(A.rows, A.cols) > tuning.whole) return false;
  const bool in_registers =
      A.cols <= lu_columns<T>(A.rows) && (one_strided(A) || !lu_resident_better<T>(A.rows, A.cols));
  if (!in_registers && (one_strided(A) || !lu_resident_fits<T>(A.rows, A.cols))) return false;
  set_path(!in_registers ? "resident" : max(A.rows, A.cols) <= 32 ? "warp" : "block");
  if (arena().planning()) return true;
  const Traced traced(*this, "lu_whole", A.rows, A.cols);
  if (in_registers)
    launch_lu_rows(stream_, A, pivots, info, true);
  else
    launch_lu_resident(stream_, A, pivots, info, true);
  return true;
}
template <class T>
void CudaEngine::lu_tile(Items<T> A, Pivots<int> pivots, int* info, index_t left) {
  if (arena().planning()) return;
  {
    const Traced traced(*this, "lu_tile", A.rows, A.cols);
    const bool alone = main_ == this && one_strided(A);  // no other lane has work for multiprocessors
    static_assert(flag_count * sizeof(int) >= lu_messages_size);
    if (A.cols <= lu_team_columns(A, alone) &&
        launch_lu_panel(stream_, A, left, pivots, info, alone ? flags_ : nullptr))
      return;
    const bool in_registers = A.cols <= lu_columns<T>(A.rows);
    if (one_strided(A) && !in_registers)
      return launch_lu_tall(stream_, A, left, pivots, static_cast<int*>(flags_), info);
    if (in_registers)
      launch_lu_rows(stream_, A, pivots, info, false);
    else
      launch_lu(stream_, A, pivots, info);
  }
  swap_rows(A.block(0, -left, A.rows, left), Pivots<const int>(pivots), min(A.rows, A.cols), false, nullptr);
}
template <class T>
index_t CudaEngine::lu_tile_limit(const Items<T>& A) const {
  const index_t of_team = lu_team_columns(A, main_ == this), width = of_team > 0 ? of_team : lu_columns<T>(A.rows);
  return width > 0 ? width : one_strided(A) ? lu_tall_width : std::numeric_limits<int>::max();
}
// H200, double, 256 columns: 16384 rows 0.61 ms by a cluster beside updates and 0.79 by all multiprocessors, 24576 rows 1.10 and
// 0.88.
template <class T>
bool CudaEngine::lu_alone_is_better(const Items<T>& A) const {
  constexpr index_t wide_enough = 16;
  return one_strided(A) && lu_panel_width<T>(A.rows, false) < wide_enough && lu_panel_width<T>(A.rows, true) > 0;
}
template <class T>
void CudaEngine::swap_rows(Items<T> A, Pivots<const int> pivots, index_t n, bool backward, const int* info) {
  constexpr index_t one_by_one = 128;  // a panel's exchanges; those of a whole matrix become a permutation first
  constexpr index_t max_entries = index_t(1) << 22;  // that are permuted at once
  if (A.cols == 0 || n == 0 || A.count == 0) return;
  if (one_strided(A) && !backward && (pivots.first != 0 || n != A.rows || n <= one_by_one)) {
    if (arena().planning()) return;
    const Traced traced(*this, "swap_rows", A.rows, A.cols, n);
    return launch_exchange_rows(stream_, A, pivots, n, info);
  }
  if (n <= one_by_one || n != A.rows || pivots.first != 0 || main_ != this || !one_strided(A)) {
    if (!arena().planning()) launch_swap_rows(stream_, A, pivots, n, backward, info);
    return;
  }
  const index_t columns = min(A.cols, max(index_t(1), max_entries / n));
  auto p = arena().take<int>(n);
  auto permuted = arena().take<T>(n * columns);
  if (arena().planning()) return;
  launch_permutation(stream_, pivots.data, n, p.data(), n);
  for (index_t j = 0; j < A.cols; j += columns)
    launch_permute_rows(stream_, A.block(0, j, n, min(columns, A.cols - j)), p.data(), backward, permuted.data(), info);
}
template <class T>
void CudaEngine::lu_det(Items<const T> LU, Pivots<const int> pivots, T* sign, Real<T>* log_abs) {
  if (!arena().planning()) launch_lu_det<T>(stream_, LU, pivots, sign, log_abs);
}
void CudaEngine::row_permutation(const int* pivots, index_t k, int* p, index_t rows) {
  if (!arena().planning()) launch_permutation(stream_, pivots, k, p, rows);
}

#define TRIFACTOR_INSTANTIATE(T)                                                                  \
  template bool CudaEngine::cholesky_whole<T>(Items<T>, int*, const CholeskyTuning&);             \
  template void CudaEngine::cholesky_tile<T>(Items<T>, int*, index_t);                            \
  template bool CudaEngine::lu_whole<T>(Items<T>, Pivots<int>, int*, const LuTuning&);            \
  template void CudaEngine::lu_tile<T>(Items<T>, Pivots<int>, int*, index_t);                     \
  template index_t CudaEngine::lu_tile_limit<T>(const Items<T>&) const;                           \
  template bool CudaEngine::lu_alone_is_better<T>(const Items<T>&) const;                         \
  template void CudaEngine::swap_rows<T>(Items<T>, Pivots<const int>, index_t, bool, const int*); \
  template void CudaEngine::lu_det<T>(Items<const T>, Pivots<const int>, T*, Real<T>*);
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_INSTANTIATE)
#undef TRIFACTOR_INSTANTIATE

}  // namespace trifactor::cuda
