#include "shared_queue.hpp"
#include "queues.hpp"

#include <map>

namespace trifactor::python {

namespace {

using Key = std::pair<int, std::optional<std::uintptr_t>>;

struct Registry {
  std::mutex mutex;
  std::map<Key, std::weak_ptr<SharedQueue>> queues;
};
Registry& registry() {
  static auto* all = new Registry;
  return *all;
}

std::shared_ptr<SharedQueue> shared(Queue queue, nanobind::handle owner) {
  auto made = std::make_shared<SharedQueue>(std::move(queue));
  made->owner = nanobind::borrow(owner);
  return made;
}

}  // namespace

std::shared_ptr<SharedQueue> shared_queue(int device, std::optional<std::uintptr_t> stream, nanobind::handle owner) {
  if (device < 0) return shared(new_host_queue(), nanobind::handle());
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  auto& slot = all.queues[{device, stream}];
  if (auto found = slot.lock()) return found;
  auto made =
      shared(stream ? Queue::wrap_cuda_stream(reinterpret_cast<void*>(*stream), device) : Queue::cuda(device), owner);
  slot = made;
  return made;
}

}  // namespace trifactor::python
