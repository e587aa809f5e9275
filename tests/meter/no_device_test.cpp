// What a user is told where no CUDA device can be used.
#include <core/no_device.hpp>
#include <trifactor/error.hpp>
#include <trifactor/info.hpp>
#include <trifactor/queue.hpp>

#include <gtest/gtest.h>

namespace trifactor::core {
namespace {

using Failure = DeviceSearch::Failure;

TEST(NoDevice, TellsWhatIsMissing) {
  EXPECT_EQ(explain({.failure = Failure::OldDriver, .driver_version = 0, .module_loaded = false}),
            "no NVIDIA GPU was found on this machine (no driver is installed)");
  EXPECT_EQ(explain({.failure = Failure::OldDriver, .driver_version = 0, .module_loaded = true}),
            "the NVIDIA driver's library libcuda.so.1 was not found, although the driver is loaded");
  EXPECT_EQ(explain({.failure = Failure::OldDriver, .driver_version = 11040, .runtime_version = 12060}),
            "the NVIDIA driver is too old: it supports CUDA 11.4, and trifactor was built with CUDA 12.6");
  EXPECT_EQ(explain({.failure = Failure::NoDevice, .driver_version = 12040, .module_loaded = false}),
            "no NVIDIA GPU was found on this machine (the driver is not loaded)");
  EXPECT_EQ(explain({.failure = Failure::NoDevice, .driver_version = 12040, .module_loaded = true}),
            "no NVIDIA GPU was found on this machine (the driver lists none)");
  EXPECT_EQ(
      explain({.failure = Failure::NoDevice, .driver_version = 12040, .module_loaded = true, .visible_devices = ""}),
      "no NVIDIA GPU is visible: CUDA_VISIBLE_DEVICES is ''");
  EXPECT_EQ(explain({.failure = Failure::Other, .driver_version = 12040, .module_loaded = true, .error = "broken"}),
            "the NVIDIA GPU cannot be used: broken");
}

TEST(NoDevice, AQueueTellsTheSame) {
  const std::string why = why_no_cuda();
  if (why.empty()) GTEST_SKIP() << "there is a GPU";
  try {
    Queue::cuda();
    FAIL() << "a queue on no device";
  } catch (const DeviceFault& fault) { EXPECT_EQ(fault.what(), why); }
}

}  // namespace
}  // namespace trifactor::core
