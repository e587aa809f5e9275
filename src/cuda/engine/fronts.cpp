// CudaEngine: assembly, and the rows of fronts in solves.
#include <cuda/engine/engine.hpp>
#include <cuda/entries/entries.hpp>

namespace trifactor::cuda {

template <class T>
void CudaEngine::assemble(const Fronts& f, index_t begin, index_t end, index_t rows, const T* values, Real<T> shift,
                          T* factor, T* updates) {
  if (arena().planning() || begin == end) return;
  const Traced traced(*this, "assemble", rows, end - begin);
  launch_assemble(stream_, f, begin, end, rows, values, shift, factor, updates);
}
template <class T>
void CudaEngine::add_children(const Fronts& f, index_t begin, index_t end, index_t columns, T* Z) {
  if (arena().planning() || begin == end || columns == 0) return;
  const Traced traced(*this, "add_children", end - begin, columns);
  launch_add_children(stream_, f, begin, end, columns, Z);
}
template <class T>
void CudaEngine::copy_parents(const Fronts& f, index_t begin, index_t end, index_t columns, T* Z) {
  if (arena().planning() || begin == end || columns == 0) return;
  const Traced traced(*this, "copy_parents", end - begin, columns);
  launch_copy_parents(stream_, f, begin, end, columns, Z);
}
template <class T>
void CudaEngine::take_rows(const Fronts& f, Items<const T> B, bool permute, T* Z) {
  if (!arena().planning() && f.n > 0 && B.cols > 0) launch_take_rows(stream_, f, B, permute, Z);
}
template <class T>
void CudaEngine::give_rows(const Fronts& f, const T* Z, bool permute, Items<T> B) {
  if (!arena().planning() && f.n > 0 && B.cols > 0) launch_give_rows(stream_, f, Z, permute, B);
}
template <class T>
void CudaEngine::diagonal(const Fronts& f, const T* factor, T* out) {
  if (!arena().planning() && f.n > 0) launch_front_diagonal(stream_, f, factor, out);
}
template <class T>
void CudaEngine::residual(const MatrixRows& A, const T* values, Real<T> shift, const T* b, const T* x, T* r,
                          Real<T>* error) {
  if (!arena().planning() && A.n > 0) launch_residual(stream_, A, values, shift, b, x, r, error);
}
template <class T>
void CudaEngine::add(index_t n, const T* r, T* x) {
  if (!arena().planning() && n > 0) launch_add(stream_, n, r, x);
}

#define TRIFACTOR_INSTANTIATE(T)                                                                                 \
  template void CudaEngine::assemble<T>(const Fronts&, index_t, index_t, index_t, const T*, Real<T>, T*, T*);    \
  template void CudaEngine::add_children<T>(const Fronts&, index_t, index_t, index_t, T*);                       \
  template void CudaEngine::copy_parents<T>(const Fronts&, index_t, index_t, index_t, T*);                       \
  template void CudaEngine::take_rows<T>(const Fronts&, Items<const T>, bool, T*);                               \
  template void CudaEngine::give_rows<T>(const Fronts&, const T*, bool, Items<T>);                               \
  template void CudaEngine::diagonal<T>(const Fronts&, const T*, T*);                                            \
  template void CudaEngine::residual<T>(const MatrixRows&, const T*, Real<T>, const T*, const T*, T*, Real<T>*); \
  template void CudaEngine::add<T>(index_t, const T*, T*);
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_INSTANTIATE)

}  // namespace trifactor::cuda
