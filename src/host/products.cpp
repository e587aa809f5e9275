// HostEngine: triangular solves and products.
#include <host/blas_memory.hpp>
#include <host/engine.hpp>
#include <host/item_solves.hpp>
#include <host/threads.hpp>

namespace trifactor::host {

namespace {
// From so many flops on, one item is faster with threads inside BLAS: 16 cores of a Xeon, OpenBLAS 0.3.26. 500 rows and one
// right-hand side: 0.18 ms with and without; 100 rows and 64: 0.17 ms alone, 0.03 with 16 threads.
constexpr WorthATeam worth_a_team_of_trsm{3e5}, worth_a_team_of_products{1e6};
}  // namespace

template <class T>
void HostEngine::trsm(Shape shape, Operand<T> A, Items<T> B, const int* info) {
  if (arena_.planning()) return;
  const Traced traced(*this, "trsm", B.rows, B.cols, B.rows);
  const BlasCallers callers(threads_, B.count);
  const double flops = double(B.rows) * double(B.rows) * double(B.cols);
  const ThreadScope scope(blas_team(threads_, B.count, flops, worth_a_team_of_trsm), B.count > 1);
  for_items(threads_, B.count, info, flops, [&](index_t b) { trsm_item(shape, A, B, b); });
}

template <class T>
void HostEngine::gemm(Operand<T> A, Operand<T> B, Items<T> C, const int* info) {
  if (arena_.planning()) return;
  const Traced traced(*this, "gemm", C.rows, C.cols, A.items.cols);
  const GemmForm form = gemm_form(A, B, C);
  const BlasCallers callers(threads_, C.count);
  const double flops = 2 * double(C.rows) * double(C.cols) * double(A.items.cols);
  const ThreadScope scope(blas_team(threads_, C.count, flops, worth_a_team_of_products), C.count > 1);
  for_items(threads_, C.count, info, flops, [&](index_t item) {
    const auto a = A.items.item(item), b = B.items.item(item);
    const auto c = C.item(item);
    if (c.rows == 0 || c.cols == 0 || a.cols == 0) return;
    if (!form.possible()) return tile::update(alone, a, A.conj, b, B.conj, c);
    const int lda = int(stored_ld(a, A.items.is_flipped)), ldb = int(stored_ld(b, B.items.is_flipped)),
              ldc = int(stored_ld(c, C.is_flipped));
    if (form.swapped)
      blas::gemm(cblas(form.b.op), cblas(form.a.op), int(c.cols), int(c.rows), int(a.cols), b.data, ldb, a.data, lda,
                 c.data, ldc);
    else
      blas::gemm(cblas(form.a.op), cblas(form.b.op), int(c.rows), int(c.cols), int(a.cols), a.data, lda, b.data, ldb,
                 c.data, ldc);
  });
}

template <class T>
void HostEngine::herk(std::type_identity_t<Items<const T>> A, Items<T> C, const int* info) {
  if (arena_.planning()) return;
  const Traced traced(*this, "herk", C.rows, C.cols, A.cols);
  const BlasCallers callers(threads_, C.count);
  const double flops = double(C.rows) * double(C.cols) * double(A.cols);
  const ThreadScope scope(blas_team(threads_, C.count, flops, worth_a_team_of_products), C.count > 1);
  for_items(threads_, C.count, info, flops, [&](index_t b) {
    const auto a = A.item(b);
    const auto c = C.item(b);
    if (c.rows == 0 || a.cols == 0) return;
    if (!herk_possible(A, C)) return tile::update(alone, a, false, a.flipped(), true, c, tile::Part::Lower);
    const auto op = !C.is_flipped ? CblasNoTrans : is_complex<T> ? CblasConjTrans : CblasTrans;
    blas::herk(C.is_flipped ? CblasUpper : CblasLower, op, int(c.rows), int(a.cols), a.data,
               int(stored_ld(a, A.is_flipped)), c.data, int(stored_ld(c, C.is_flipped)));
  });
}

#define TRIFACTOR_INSTANTIATE(T)                                                   \
  template void HostEngine::trsm<T>(Shape, Operand<T>, Items<T>, const int*);      \
  template void HostEngine::gemm<T>(Operand<T>, Operand<T>, Items<T>, const int*); \
  template void HostEngine::herk<T>(Items<const T>, Items<T>, const int*);
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_INSTANTIATE)
#undef TRIFACTOR_INSTANTIATE

}  // namespace trifactor::host
