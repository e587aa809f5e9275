// Entries in global memory that tell by themselves whether they were written: what blocks of one launch send each
// other.
#pragma once

#include <core/scalar.hpp>
#include <cuda/device/signals.cuh>

#include <cstring>

namespace trifactor::cuda {

using namespace core;

/// Entries travel in words that are loaded and stored whole. Memory is filled with `unsolved` words before.
template <class T>
struct Message {
  using Word = std::conditional_t<sizeof(T) == 4, unsigned, unsigned long long>;
  static constexpr int words = int(sizeof(T) / sizeof(Word));  // of an entry
  static constexpr Word unsolved = ~Word(0), lowest = unsolved << (8 * (sizeof(Word) - 4));

  __device__ static T load(const T* p) {
    Word w[words];
#pragma unroll
    for (int i = 0; i < words; ++i) w[i] = load_relaxed(reinterpret_cast<const Word*>(p) + i);
    T x;
    memcpy(&x, w, sizeof(T));
    return x;
  }
  /// What a loaded entry was computed from has been read.
  __device__ static void order_after(const T* p) { order_after_value(reinterpret_cast<const Word*>(p)); }
  /// Whether all words of a loaded entry had been written.
  __device__ static bool is_solved(const T& x) {
    Word w[words];
    memcpy(w, &x, sizeof(T));
    unsigned largest = 0;  // upper halves of words: of those, only `unsolved` is all ones
#pragma unroll
    for (int j = 0; j < words; ++j) largest = max(largest, unsigned(w[j] >> (8 * (sizeof(Word) - 4))));
    return largest != ~0u;
  }
  /// A NaN that looks unsolved in its upper half becomes its neighbour.
  __device__ static void store(T* p, T x) {
    Word w[words];
    memcpy(w, &x, sizeof(T));
#pragma unroll
    for (int i = 0; i < words; ++i) store_relaxed(reinterpret_cast<Word*>(p) + i, w[i] >= lowest ? lowest - 1 : w[i]);
  }
};

}  // namespace trifactor::cuda
