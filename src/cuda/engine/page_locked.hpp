// Page-locked memory of the host: copies between it and a device go beside work.
#pragma once

#include <cstddef>
#include <memory>

namespace trifactor::cuda {

/// From the driver, to be given back by cudaFreeHost. Throws OutOfMemory.
void* allocate_page_locked(std::size_t bytes);

/// The driver takes and clears pages on one core, a third of a second and more for a gigabyte on the host of an H200.
/// Large pieces are therefore allocated in huge pages, which several threads clear, and registered with the driver: a
/// tenth of that.
/// Throws OutOfMemory.
using PageLocked = std::unique_ptr<void, void (*)(void*) noexcept>;
PageLocked page_locked(std::size_t bytes);

}  // namespace trifactor::cuda
