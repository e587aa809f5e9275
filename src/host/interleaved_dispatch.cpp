#include <host/instruction_set.hpp>
#include <host/interleaved.hpp>

namespace trifactor::host {

namespace {

template <class T>
struct Tables {
  const InterleavedTable<T>& table;
  const InterleavedLuTable<T>& lu;
};

template <class T>
const Tables<T>& widest() {
  static const Tables<T> best = []() -> Tables<T> {
    switch (widest_instruction_set()) {
#ifdef TRIFACTOR_HAS_AVX512
      case InstructionSet::Avx512:
        return {avx512::interleaved_table<T>(), avx512::interleaved_lu_table<T>()};
#endif
#ifdef TRIFACTOR_HAS_AVX2
      case InstructionSet::Avx2:
        return {avx2::interleaved_table<T>(), avx2::interleaved_lu_table<T>()};
#endif
      default:
        return {baseline::interleaved_table<T>(), baseline::interleaved_lu_table<T>()};
    }
  }();
  return best;
}

}  // namespace

template <class T>
const InterleavedTable<T>& interleaved() {
  return widest<T>().table;
}
template <class T>
const InterleavedLuTable<T>& interleaved_lu() {
  return widest<T>().lu;
}

#define INSTANTIATE(T)                                  \
  template const InterleavedTable<T>& interleaved<T>(); \
  template const InterleavedLuTable<T>& interleaved_lu<T>();
TRIFACTOR_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace trifactor::host
