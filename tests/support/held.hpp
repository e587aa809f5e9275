// Multiprocessors that somebody else's kernel holds.
#pragma once

namespace trifactor::test {

/// An endless kernel on so many multiprocessors of the current device, alone on each. It ends when this object does, or
/// after 20 s, so that whatever waits for the multiprocessors is a failure and not an endless test. Nothing else may
/// run on the device when one is made. While it lives, nothing may wait for the whole device, as cudaFree does.
class HeldMultiprocessors {
 public:
  explicit HeldMultiprocessors(int count);
  HeldMultiprocessors(const HeldMultiprocessors&) = delete;
  ~HeldMultiprocessors();

  /// Whether the 20 s were over before the end.
  bool expired() const;
  /// How many the device has.
  static int available();

 private:
  volatile int* flags_ = nullptr;  // in host memory that the device sees
  void* stream_ = nullptr;
};

}  // namespace trifactor::test
