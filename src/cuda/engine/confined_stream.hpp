// A stream whose kernels leave some multiprocessors free.
#pragma once

#include <memory>

namespace trifactor::cuda {

/// Its kernels leave so many multiprocessors free that a cluster of 16 blocks finds room at any time. Without that it
/// would wait for the end of a long kernel: blocks of that one take every multiprocessor as soon as it is free, and a
/// cluster wants 16 free ones next to each other, at once.
class ConfinedStream {
 public:
  /// Of the lowest priority; null where driver or device cannot set multiprocessors apart. The device is current.
  static std::unique_ptr<ConfinedStream> create(int device);
  ConfinedStream(const ConfinedStream&) = delete;
  ~ConfinedStream();
  void* stream() const { return stream_; }

 private:
  ConfinedStream() = default;
  void* context_ = nullptr;
  void* stream_ = nullptr;
};

}  // namespace trifactor::cuda
