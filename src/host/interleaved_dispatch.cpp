// Picks the widest instruction set that was compiled and that this CPU has.
#include <host/interleaved.hpp>

namespace trifactor::host {
namespace {

template <class T>
const InterleavedTable<T>& table() {
  static const InterleavedTable<T>* const best = [] {
#ifdef TRIFACTOR_HAS_AVX512
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
      return &avx512::interleaved_table<T>();
#endif
#ifdef TRIFACTOR_HAS_AVX2
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &avx2::interleaved_table<T>();
#endif
    return &baseline::interleaved_table<T>();
  }();
  return *best;
}

}  // namespace

template <class T> int interleaved_lanes() { return table<T>().lanes; }
template <class T> std::size_t interleaved_scratch(index_t n) { return table<T>().scratch(n); }
template <class T>
void cholesky_interleaved(const core::Items<T>& A, const index_t* items, int size, index_t n, int* info,
                          void* scratch) {
  table<T>().cholesky(A, items, size, n, info, scratch);
}

#define INSTANTIATE(T)                                  \
  template int interleaved_lanes<T>();                  \
  template std::size_t interleaved_scratch<T>(index_t); \
  template void cholesky_interleaved<T>(const core::Items<T>&, const index_t*, int, index_t, int*, void*);
TRIFACTOR_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace trifactor::host
