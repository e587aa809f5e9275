// HostEngine: assembly, and the rows of fronts in solves.
#include <host/engine.hpp>
#include <host/threads.hpp>
#include <tile/fronts.hpp>

#include <algorithm>
#include <limits>

namespace trifactor::host {

template <class T>
void HostEngine::assemble(const Fronts& f, index_t begin, index_t end, index_t rows, const T* values, Real<T> shift,
                          T* factor, T* updates, const T* offloaded) {
  if (arena_.planning()) return;
  const Traced traced(*this, "assemble", rows, end - begin);
  for_columns(threads_, end - begin, rows,
              [&](index_t k) { tile::assemble(alone, f, begin + k, values, shift, factor, updates, offloaded); });
}

template <class T>
void HostEngine::add_children(const Fronts& f, index_t begin, index_t end, index_t columns, T* Z) {
  if (arena_.planning()) return;
  for (index_t c = 0; c < columns; ++c)
    for_columns(threads_, end - begin, 1, [&](index_t k) { tile::add_children(f, begin + k, Z + c * f.lines); });
}
template <class T>
void HostEngine::copy_parents(const Fronts& f, index_t begin, index_t end, index_t columns, T* Z) {
  if (arena_.planning()) return;
  for (index_t c = 0; c < columns; ++c)
    for_columns(threads_, end - begin, 1, [&](index_t k) { tile::copy_parent(f, begin + k, Z + c * f.lines); });
}

template <class T>
void HostEngine::take_rows(const Fronts& f, Items<const T> B, bool permute, T* Z) {
  if (arena_.planning()) return;
  for_columns(threads_, f.n, B.cols, [&](index_t j) {
    const auto b = f.item_rows(B, f.item_of(int(j)));
    for (index_t c = 0; c < b.cols; ++c) Z[f.line[j] + c * f.lines] = b(permute ? f.permutation[j] : j, c);
  });
}
template <class T>
void HostEngine::give_rows(const Fronts& f, const T* Z, bool permute, const int* failed, Items<T> B) {
  if (arena_.planning()) return;
  for_columns(threads_, f.n, B.cols, [&](index_t j) {
    const int item = f.item_of(int(j));
    if (failed[item] != 0) return;
    const auto b = f.item_rows(B, item);
    for (index_t c = 0; c < b.cols; ++c) b(permute ? f.permutation[j] : j, c) = Z[f.line[j] + c * f.lines];
  });
}

void HostEngine::first_failure(const Fronts& f, const int* info, int* first, int* copy) {
  if (arena_.planning()) return;
  const int none = std::numeric_limits<int>::max();
  std::fill_n(first, f.items, none);
  for (index_t t = 0; t < f.count; ++t)
    if (info[t] != 0) {
      int& column = first[f.item_of(f.first[t])];
      column = min(column, f.first[t] + info[t] - 1);
    }
  for (index_t item = 0; item < f.items; ++item)
    first[item] = first[item] == none ? 0 : f.permutation[first[item]] + 1 - int(item * f.item_columns);
  if (copy) std::copy_n(first, f.items, copy);
}

template <class T>
void HostEngine::diagonal(const Fronts& f, const T* factor, T* out) {
  if (arena_.planning()) return;
  for (index_t j = 0; j < f.n; ++j) out[j] = factor[tile::diagonal_at(f, j)];
}

template <class T>
void HostEngine::residual(const MatrixRows& A, const T* values, Real<T> shift, const T* b, const T* x, T* r,
                          Real<T>* error) {
  if (arena_.planning()) return;
  for_columns(threads_, A.n, 16, [&](index_t i) { tile::residual(A, i, values, shift, b, x, r, error); });
}
template <class T>
void HostEngine::add(index_t n, const T* r, T* x) {
  if (arena_.planning()) return;
  for_columns(threads_, n, 1, [&](index_t i) { x[i] += r[i]; });
}

#define TRIFACTOR_INSTANTIATE(T)                                                                                 \
  template void HostEngine::assemble<T>(const Fronts&, index_t, index_t, index_t, const T*, Real<T>, T*, T*,     \
                                        const T*);                                                               \
  template void HostEngine::add_children<T>(const Fronts&, index_t, index_t, index_t, T*);                       \
  template void HostEngine::copy_parents<T>(const Fronts&, index_t, index_t, index_t, T*);                       \
  template void HostEngine::take_rows<T>(const Fronts&, Items<const T>, bool, T*);                               \
  template void HostEngine::give_rows<T>(const Fronts&, const T*, bool, const int*, Items<T>);                   \
  template void HostEngine::diagonal<T>(const Fronts&, const T*, T*);                                            \
  template void HostEngine::residual<T>(const MatrixRows&, const T*, Real<T>, const T*, const T*, T*, Real<T>*); \
  template void HostEngine::add<T>(index_t, const T*, T*);
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_INSTANTIATE)
#undef TRIFACTOR_INSTANTIATE

}  // namespace trifactor::host
