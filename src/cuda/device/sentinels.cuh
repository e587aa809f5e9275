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
  static constexpr Word unsolved = ~Word(0), lowest = unsolved << (8 * (sizeof(Word) - 4));

  __device__ static Word load(const Word* p) {
    Word w;
    if constexpr (sizeof(Word) == 4)
      asm volatile("ld.relaxed.gpu.global.b32 %0, [%1];" : "=r"(w) : "l"(p) : "memory");
    else
      asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];" : "=l"(w) : "l"(p) : "memory");
    return w;
  }
  __device__ static T load(const T* p) {
    Word w[words];
#pragma unroll
    for (int i = 0; i < words; ++i) w[i] = load(reinterpret_cast<const Word*>(p) + i);
    T x;
    memcpy(&x, w, sizeof(T));
    return x;
  }
  /// As many as 16 bytes hold, which are loaded and cleared together, in no order.
  static constexpr int together = 16 / int(sizeof(T));
  struct alignas(16) Few {
    T v[together];
  };
  __device__ static Few load_few(const T* p) {
    Word w[16 / sizeof(Word)];
    if constexpr (sizeof(Word) == 4)
      asm volatile("ld.relaxed.gpu.global.v4.b32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                   : "l"(p)
                   : "memory");
    else
      asm volatile("ld.relaxed.gpu.global.v2.b64 {%0, %1}, [%2];" : "=l"(w[0]), "=l"(w[1]) : "l"(p) : "memory");
    Few x;
    memcpy(&x, w, 16);
    return x;
  }
  __device__ static void clear_few(T* p) {
    if constexpr (sizeof(Word) == 4)
      asm volatile("st.relaxed.gpu.global.v4.b32 [%0], {%1, %1, %1, %1};" ::"l"(p), "r"(unsolved) : "memory");
    else
      asm volatile("st.relaxed.gpu.global.v2.b64 [%0], {%1, %1};" ::"l"(p), "l"(unsolved) : "memory");
  }
  /// Whether all words of loaded entries had been written.
  template <int n>
  __device__ static bool all_solved(const T (&x)[n]) {
    unsigned largest = 0;  // upper halves of words: of those, only `unsolved` is all ones
#pragma unroll
    for (int i = 0; i < n; ++i) {
      Word w[words];
      memcpy(w, &x[i], sizeof(T));
#pragma unroll
      for (int j = 0; j < words; ++j) largest = max(largest, unsigned(w[j] >> (8 * (sizeof(Word) - 4))));
    }
    return largest != ~0u;
  }
  template <int n>
  __device__ static bool all_solved(const Few (&x)[n]) {
    T all[n * together];
    memcpy(all, x, sizeof(x));
    return all_solved(all);
  }
  __device__ static void store(Word* p, Word w) {
    if constexpr (sizeof(Word) == 4)
      asm volatile("st.relaxed.gpu.global.b32 [%0], %1;" ::"l"(p), "r"(w) : "memory");
    else
      asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"(p), "l"(w) : "memory");
  }
  /// A NaN that looks unsolved in its upper half becomes its neighbour.
  __device__ static void store(T* p, T x) {
    Word w[words];
    memcpy(w, &x, sizeof(T));
#pragma unroll
    for (int i = 0; i < words; ++i)
      store(reinterpret_cast<Word*>(p) + i, w[i] >= lowest ? lowest - 1 : w[i]);
  }
  /// Two neighbours, at an even place.
  __device__ static void store(T* p, T x, T y) {
    if constexpr (words == 1) {
      Word v, w;
      memcpy(&v, &x, sizeof(T)), memcpy(&w, &y, sizeof(T));
      v = v >= lowest ? lowest - 1 : v, w = w >= lowest ? lowest - 1 : w;
      if constexpr (sizeof(Word) == 4)
        asm volatile("st.relaxed.gpu.global.v2.b32 [%0], {%1, %2};" ::"l"(p), "r"(v), "r"(w) : "memory");
      else
        asm volatile("st.relaxed.gpu.global.v2.b64 [%0], {%1, %2};" ::"l"(p), "l"(v), "l"(w) : "memory");
    } else {
      store(p, x), store(p + 1, y);
    }
  }
  /// Back to what it was before.
  __device__ static void clear(T* p) {
#pragma unroll
    for (int i = 0; i < words; ++i) store(reinterpret_cast<Word*>(p) + i, unsolved);
  }
};

}  // namespace trifactor::cuda
