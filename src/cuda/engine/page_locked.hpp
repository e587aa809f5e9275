// Page-locked memory of the host: copies between it and a device go beside work.
#pragma once

#include <cstddef>
#include <utility>

namespace trifactor::cuda {

/// From the driver, to be given back by cudaFreeHost. Throws OutOfMemory.
void* allocate_page_locked(std::size_t bytes);

/// The driver takes and clears pages on one core, a third of a second and more for a gigabyte on the host of an H200.
/// Large pieces are therefore allocated in huge pages, which several threads clear, and registered with the driver: a
/// tenth of that.
class PageLocked {
 public:
  /// Throws OutOfMemory.
  explicit PageLocked(std::size_t bytes);
  PageLocked(PageLocked&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), registered_(other.registered_) {}
  PageLocked& operator=(PageLocked&&) = delete;
  ~PageLocked();

  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
  bool registered_ = false;  // else the driver's
};

}  // namespace trifactor::cuda
