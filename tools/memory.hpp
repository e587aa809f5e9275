// How much memory there is, asked before it is taken: Linux hands out more than it has and kills later.
#pragma once

#include <cstddef>
#include <string>

namespace program {

/// Bytes that this process can still take without swapping: the kernel's estimate and the control group's limit.
/// The largest std::size_t where neither is known.
std::size_t available_memory();

/// "1.5 GiB"
std::string readable_bytes(double bytes);

/// Throws trifactor::OutOfMemory when `bytes` are more than what is available on the host.
void require_memory(const char* what, double bytes);

}  // namespace program
