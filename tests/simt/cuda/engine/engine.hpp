// Of src/cuda/engine/engine.hpp what operations that are one launch use, on the machine of tests/simt.
#pragma once

#include <core/engine.hpp>
#include <core/tuning.hpp>

#include <cuda_words.hpp>

#include <vector>

namespace trifactor::cuda {

using namespace core;

class CudaEngine {
 public:
  explicit CudaEngine(int multiprocessors) : multiprocessors_(multiprocessors) {}
  template <class T>
  bool trsm_whole(Shape, Operand<T> A, Items<T> B, bool twice, const int* info, const SolveTuning&);

 private:
  struct Arena {
    static bool planning() { return false; }
    template <class T>
    struct Room {
      mutable std::vector<T> entries;
      T* data() const { return entries.data(); }
    };
    template <class T>
    static Room<T> take(index_t n) {
      return {std::vector<T>(std::size_t(n))};
    }
  };
  static Arena arena() { return {}; }

  CudaEngine* main_ = this;
  void* stream_ = nullptr;
  int multiprocessors_;
};

}  // namespace trifactor::cuda
