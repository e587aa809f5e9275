// Where work runs.
#pragma once

#include <trifactor/error.hpp>
#include <trifactor/info.hpp>

#include <string>

namespace program {

/// Throws DeviceFault where --device cuda was given and no GPU can be used: why, and what to do.
inline void require_device(const std::string& device) {
  if (device != "cuda") return;
  if (const std::string why = trifactor::why_no_cuda(); !why.empty())
    throw trifactor::DeviceFault(why + "; run without --device cuda");
}

/// What --device said, or else cuda where there is a GPU.
inline std::string device_or_default(const std::string& device) {
  return !device.empty() ? device : trifactor::why_no_cuda().empty() ? "cuda" : "host";
}

/// What --mode said: a name of trifactor's; all others are auto.
inline trifactor::Mode mode_named(const std::string& name) {
  return name == "native"   ? trifactor::Mode::Native
         : name == "hybrid" ? trifactor::Mode::Hybrid
                            : trifactor::Mode::Auto;
}

}  // namespace program
