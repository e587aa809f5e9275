#include <host/instruction_set.hpp>
#include <host/interleaved.hpp>

namespace trifactor::host {

template <class T>
const InterleavedTable<T>& interleaved() {
  static const InterleavedTable<T>* const best = [] {
    switch (widest_instruction_set()) {
#ifdef TRIFACTOR_HAS_AVX512
      case InstructionSet::Avx512:
        return &avx512::interleaved_table<T>();
#endif
#ifdef TRIFACTOR_HAS_AVX2
      case InstructionSet::Avx2:
        return &avx2::interleaved_table<T>();
#endif
      default:
        return &baseline::interleaved_table<T>();
    }
  }();
  return *best;
}

#define INSTANTIATE(T) template const InterleavedTable<T>& interleaved<T>();
TRIFACTOR_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace trifactor::host
