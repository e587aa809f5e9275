// CudaEngine: triangular solves and products. One large matrix goes to cuBLAS, batches and small triangles to kernels.
#include <core/blas_form.hpp>
#include <core/path.hpp>
#include <cuda/batched/batched.hpp>
#include <cuda/engine/cublas.hpp>
#include <cuda/engine/engine.hpp>
#include <cuda/single/single.hpp>

namespace trifactor::cuda {

namespace {

using c32 = Complex<float>;
using c64 = Complex<double>;

template <class R>
R* cu(R* p) {
  return p;
}
cuComplex* cu(c32* p) { return reinterpret_cast<cuComplex*>(p); }
cuDoubleComplex* cu(c64* p) { return reinterpret_cast<cuDoubleComplex*>(p); }
const cuComplex* cu(const c32* p) { return reinterpret_cast<const cuComplex*>(p); }
const cuDoubleComplex* cu(const c64* p) { return reinterpret_cast<const cuDoubleComplex*>(p); }

cublasOperation_t cublas_op(BlasOp op) {
  return op == BlasOp::None ? CUBLAS_OP_N : op == BlasOp::Transpose ? CUBLAS_OP_T : CUBLAS_OP_C;
}

template <class T>
inline constexpr T minus_one{-1};
template <class T>
inline constexpr T one{1};

using Handle = cublasHandle_t;
using Trans = cublasOperation_t;
using Fill = cublasFillMode_t;

/// A matrix as stored, and the distance to that of the next item.
template <class T>
struct Stored {
  T* data;
  index_t ld, stride;
};

// C -= op(A) op(B), for `count` items; and one triangle of C -= A A^H (CUBLAS_OP_N) or A^H A
#define TRIFACTOR_CUBLAS(T, gemm_name, gemm_batch_name, herk_name)                                                   \
  cublasStatus_t gemm(Handle h, Trans a, Trans b, index_t m, index_t n, index_t k, Stored<const T> A,                \
                      Stored<const T> B, Stored<T> C, index_t count) {                                               \
    const auto minus = cu(&minus_one<T>), plus = cu(&one<T>), x = cu(A.data), y = cu(B.data);                        \
    const auto z = cu(C.data);                                                                                       \
    return count == 1 ? CUBLAS(gemm_name)(h, a, b, m, n, k, minus, x, A.ld, y, B.ld, plus, z, C.ld)                  \
                      : CUBLAS(gemm_batch_name)(h, a, b, m, n, k, minus, x, A.ld, A.stride, y, B.ld, B.stride, plus, \
                                                z, C.ld, C.stride, count);                                           \
  }                                                                                                                  \
  cublasStatus_t herk(Handle h, Fill f, Trans a, index_t n, index_t k, const T* A, index_t lda, T* C, index_t ldc) { \
    return CUBLAS(herk_name)(h, f, a, n, k, &minus_one<Real<T>>, cu(A), lda, &one<Real<T>>, cu(C), ldc);             \
  }
TRIFACTOR_CUBLAS(float, cublasSgemm_64, cublasSgemmStridedBatched_64, cublasSsyrk_64)
TRIFACTOR_CUBLAS(double, cublasDgemm_64, cublasDgemmStridedBatched_64, cublasDsyrk_64)
TRIFACTOR_CUBLAS(c32, cublasCgemm_64, cublasCgemmStridedBatched_64, cublasCherk_64)
TRIFACTOR_CUBLAS(c64, cublasZgemm_64, cublasZgemmStridedBatched_64, cublasZherk_64)
#undef TRIFACTOR_CUBLAS

}  // namespace

template <class T>
index_t CudaEngine::trsm_limit(const Operand<T>& A, const Items<T>& B) const {
  if (B.count == 1 && !B.pointers) return trsm_kernel_limit;
  return trsm_strip_limit<T>(A.items.rows, B.cols, B.count);
}

template <class T>
void CudaEngine::trsm(Shape shape, Operand<T> A, Items<T> B, const int* info) {
  if (arena().planning() || B.rows == 0 || B.cols == 0 || B.count == 0) return;
  const Traced traced(*this, "trsm", B.rows, B.cols, B.rows);
  if (B.rows <= trsm_kernel_limit) return launch_trsm(stream_, shape, A, B, Pivots<const int>{}, info);
  launch_trsm_strips(stream_, shape, A, B, info);
}

/// Few columns beside a panel of one matrix: all interchanges, then 32 columns of the panel at a time, in as many rows as it has.
template <class T>
void CudaEngine::lu_narrow_update(Items<const T> L, Pivots<const int> pivots, Items<T> A, const int* info) {
  const index_t m = L.rows, w = L.cols;
  const bool one_launch = w <= lu_rows_limit;
  if (!one_launch) launch_exchange_rows(stream_, A, pivots, w, info);
  for (index_t k = 0; k < w; k += lu_rows_limit)
    launch_lu_update(stream_, L.block(k, k, m - k, min(lu_rows_limit, w - k)), one_launch ? pivots : Pivots<const int>{},
                     A.block(k, 0, m - k, A.cols), static_cast<int*>(flags_), info);
}

/// Whether that is better than a solve and a product, up to so many columns beside the panel L.
template <class T>
bool CudaEngine::narrow_update_pays(Items<const T> L, const Items<T>& A, index_t columns) const {
  constexpr index_t max_ld = index_t(1) << 26;                  // offsets in 32 columns are ints
  const bool in_background = main_->background_.get() == this;  // where deep products are better
  const index_t widest = in_background ? lu_rows_limit : 256;   // of L
  return A.count == 1 && !A.pointers && !A.is_flipped && max(A.ld, L.ld) < max_ld && A.cols <= columns && L.cols <= widest;
}

template <class T>
bool CudaEngine::lu_row_block(Items<const T> L, Pivots<const int> pivots, Items<T> A, const int* info) {
  const bool one = A.count == 1, narrow = narrow_update_pays(L, A, 1024) && L.rows > lu_rows_limit;
  if (L.rows > (!one ? trsm_kernel_limit : A.pointers || A.is_flipped ? 0 : lu_rows_limit) && !narrow) return false;
  if (arena().planning() || A.cols == 0) return true;
  const Traced traced(*this, "lu_row_block", L.rows, A.cols, L.rows);
  if (narrow)
    lu_narrow_update(L, pivots, A, info);
  else if (one)
    launch_lu_rows_of_one(stream_, L, pivots, A, info);
  else
    launch_trsm(stream_, unit_lower, plain(L), A, pivots, info);
  return true;
}

template <class T>
bool CudaEngine::lu_trailing_update(Items<const T> L, Pivots<const int> pivots, Items<T> A, const int* info) {
  const bool one = A.count == 1;
  if (one && !narrow_update_pays(L, A, 512)) return false;
  if (!one && (is_complex<T> || !lu_swaps_late(A) || L.cols > lu_trailing_limit)) return false;
  if (arena().planning() || A.cols == 0) return true;
  const Traced traced(*this, "lu_trailing_update", A.rows, A.cols, L.cols);
  if (one)
    lu_narrow_update(L, pivots, A, info);
  else
    launch_lu_trailing_update(stream_, L, pivots, A, info);
  return true;
}
// Batches: up to 128 rows nothing is gained, 1,000 items in f64 take 0.527 ms, against 0.513 step by step. Above the upper
// limit products of strided items are cuBLAS's. One matrix: interchanges hide behind panels where these have up to 2048 rows, or
// where there are up to 512 columns (0.359 and 0.348 ms at 8192 x 256 in f64, H200).
template <class T>
bool CudaEngine::lu_swaps_late(const Items<T>& A) const {
  const index_t edge = max(A.stored_rows, A.stored_cols);
  if (A.count == 1) return edge > 2048 && A.stored_cols > 512;
  return edge > 128 && edge <= StagedArguments::strided_limit;
}

template <class T>
bool CudaEngine::lu_solved_whole(Op op, Items<const T> LU, Pivots<const int> pivots, Items<T> X, const int* info,
                                 const SolveTuning&) {
  if (op != Op::None || X.count == 1 || LU.rows > trsm_kernel_limit) return false;
  if (arena().planning()) return true;
  const Traced traced(*this, "lu_solved_whole", LU.rows, X.cols, LU.rows);
  set_path("one launch");
  launch_lu_solve(stream_, LU, pivots, X, info);
  return true;
}

template <class T>
void CudaEngine::gemm(Operand<T> A, Operand<T> B, Items<T> C, const int* info) {
  if (arena().planning() || C.rows == 0 || C.cols == 0 || C.count == 0 || A.items.cols == 0) return;
  const Traced traced(*this, "gemm", C.rows, C.cols, A.items.cols);
  const GemmForm form = gemm_form(A, B, C);
  // cuBLAS cannot skip items (of one matrix, solves keep what must not change), and small ones gain nothing by it.
  const bool small = C.count > 1 && max(C.stored_rows, C.stored_cols) <= StagedArguments::strided_limit;
  if (C.pointers || small || !form.possible() || (C.count > 1 && info))
    return launch_update(stream_, A, B, C, false, info);
  const auto stored = [](const auto& X) {
    const auto t = X.item(0);
    return Stored<std::remove_reference_t<decltype(*t.data)>>{t.data, stored_ld(t, X.is_flipped), X.stride};
  };
  const auto a = stored(A.items), b = stored(B.items);
  const auto h = static_cast<cublasHandle_t>(blas_);
  const index_t k = A.items.cols;
  check(form.swapped
            ? cuda::gemm(h, cublas_op(form.b.op), cublas_op(form.a.op), C.cols, C.rows, k, b, a, stored(C), C.count)
            : cuda::gemm(h, cublas_op(form.a.op), cublas_op(form.b.op), C.rows, C.cols, k, a, b, stored(C), C.count),
        "cuBLAS gemm");
}

template <class T>
void CudaEngine::herk(std::type_identity_t<Items<const T>> A, Items<T> C, const int* info) {
  if (arena().planning() || C.rows == 0 || C.count == 0 || A.cols == 0) return;
  const Traced traced(*this, "herk", C.rows, C.cols, A.cols);
  if (C.count != 1 || C.pointers || !herk_possible(A, C))
    return launch_update(stream_, plain(A), hermitian(A), C, true, info);
  const auto a = A.item(0);
  const auto c = C.item(0);
  const auto op = !C.is_flipped ? CUBLAS_OP_N : is_complex<T> ? CUBLAS_OP_C : CUBLAS_OP_T;
  check(cuda::herk(static_cast<cublasHandle_t>(blas_), C.is_flipped ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER,
                   op, c.rows, a.cols, a.data, stored_ld(a, A.is_flipped), c.data, stored_ld(c, C.is_flipped)),
        "cuBLAS herk");
}

#define TRIFACTOR_INSTANTIATE(T)                                                                            \
  template index_t CudaEngine::trsm_limit<T>(const Operand<T>&, const Items<T>&) const;                     \
  template void CudaEngine::trsm<T>(Shape, Operand<T>, Items<T>, const int*);                               \
  template bool CudaEngine::lu_solved_whole<T>(Op, Items<const T>, Pivots<const int>, Items<T>, const int*, \
                                               const SolveTuning&);                                         \
  template bool CudaEngine::lu_row_block<T>(Items<const T>, Pivots<const int>, Items<T>, const int*);       \
  template bool CudaEngine::lu_trailing_update<T>(Items<const T>, Pivots<const int>, Items<T>, const int*); \
  template bool CudaEngine::lu_swaps_late<T>(const Items<T>&) const;                                        \
  template void CudaEngine::gemm<T>(Operand<T>, Operand<T>, Items<T>, const int*);                          \
  template void CudaEngine::herk<T>(Items<const T>, Items<T>, const int*);
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_INSTANTIATE)
#undef TRIFACTOR_INSTANTIATE

}  // namespace trifactor::cuda
