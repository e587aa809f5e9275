// The queues of value forms, which have none of the caller's: on which device, and where they come from.
#pragma once

#include <api/check.hpp>
#include <api/queue_state.hpp>
#include <trifactor/info.hpp>
#include <tuning/rows.hpp>

#include <mutex>
#include <optional>

namespace trifactor::api {

/// CUDA queues that no factor holds. Making one costs far more than a small solve, so they are kept; the list outlives
/// every static object, since the driver may be gone by then.
struct IdleQueues {
  std::mutex mutex;
  std::vector<Queue> queues;
};
inline IdleQueues& idle_queues() {
  static auto* idle = new IdleQueues;
  return *idle;
}

/// A queue of the chosen device; a CUDA queue goes back to the idle ones at the end.
class Lease {
 public:
  explicit Lease(Device device) : queue_(take(device)) {}
  ~Lease() {
    if (!queue_.is_cuda()) return;
    IdleQueues& idle = idle_queues();
    const std::lock_guard lock(idle.mutex);
    if (idle.queues.size() < max_idle) idle.queues.push_back(std::move(queue_));
  }
  Queue& operator*() { return queue_; }

 private:
  static constexpr std::size_t max_idle = 64;  // more are destroyed

  static Queue take(Device device) {
    if (device == Device::Host) return Queue::host();
    IdleQueues& idle = idle_queues();
    const std::lock_guard lock(idle.mutex);
    idle.queues.reserve(max_idle);  // so that giving back cannot fail
    if (idle.queues.empty()) return Queue::cuda();
    Queue q = std::move(idle.queues.back());
    idle.queues.pop_back();
    return q;
  }
  Queue queue_;
};

/// That of Queue::cuda().
inline std::optional<DeviceInfo> first_cuda_device() {
  if (!why_no_cuda().empty()) return {};
  for (DeviceInfo& device : devices())
    if (device.number == 0) return std::move(device);
  return {};
}

/// Auto: a GPU, if there is one and pays(the tuning of value forms) says so. Rows for `n` count.
template <class T, class Pays>
Device choose_device(Device wanted, index_t n, Pays pays) {
  if (wanted != Device::Auto) return wanted;
  static const std::optional<DeviceInfo> cuda_device = first_cuda_device();
  if (!cuda_device) return Device::Host;
  const DeviceInfo& device = *cuda_device;
  const std::array<std::string_view, 3> chain{device.architecture, "cuda", "any"};
  return pays(tuning::find<core::ValueTuning>({chain, device.name}, core::scalar_name(T{}), n, 1, "")) ? Device::Cuda
                                                                                                     : Device::Host;
}

}  // namespace trifactor::api
