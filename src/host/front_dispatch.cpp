#include <host/front.hpp>
#include <host/instruction_set.hpp>

namespace trifactor::host {

template <class T>
const FrontKernels<T>& front_kernels() {
  static const FrontKernels<T>* const best = [] {
    switch (widest_instruction_set()) {
#ifdef TRIFACTOR_HAS_AVX512
      case InstructionSet::Avx512: return &avx512::front_kernels<T>();
#endif
#ifdef TRIFACTOR_HAS_AVX2
      case InstructionSet::Avx2: return &avx2::front_kernels<T>();
#endif
      default: return &baseline::front_kernels<T>();
    }
  }();
  return *best;
}

#define TRIFACTOR_INSTANTIATE(T) template const FrontKernels<T>& front_kernels<T>();
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_INSTANTIATE)
#undef TRIFACTOR_INSTANTIATE

}  // namespace trifactor::host
