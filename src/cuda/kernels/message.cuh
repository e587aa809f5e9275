// Entries in global memory that tell by themselves whether they were written: what blocks of one launch send each
// other.
#pragma once

#include <core/scalar.hpp>

#include <cstring>

namespace trifactor::cuda {

using namespace core;

/// Entries travel in words that are loaded and stored whole. Memory is filled with `unsolved` words before.
template <class T>
struct Message {
  using Word = std::conditional_t<sizeof(T) == 4, unsigned, unsigned long long>;
  static constexpr int words = int(sizeof(T) / sizeof(Word));  // of an entry
  static constexpr Word unsolved = ~Word(0);

  __device__ static Word load(const Word* p) {
    Word w;
    if constexpr (sizeof(Word) == 4)
      asm volatile("ld.relaxed.gpu.global.b32 %0, [%1];" : "=r"(w) : "l"(p) : "memory");
    else
      asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];" : "=l"(w) : "l"(p) : "memory");
    return w;
  }
  /// A NaN that happens to look unsolved becomes its neighbour.
  __device__ static void store(T* p, T x) {
    Word w[words];
    memcpy(w, &x, sizeof(T));
#pragma unroll
    for (int i = 0; i < words; ++i) {
      const Word v = w[i] == unsolved ? unsolved - 1 : w[i];
      if constexpr (sizeof(Word) == 4)
        asm volatile("st.relaxed.gpu.global.b32 [%0], %1;" ::"l"(reinterpret_cast<Word*>(p) + i), "r"(v) : "memory");
      else
        asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"(reinterpret_cast<Word*>(p) + i), "l"(v) : "memory");
    }
  }
};

}  // namespace trifactor::cuda
