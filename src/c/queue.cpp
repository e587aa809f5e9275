// Queues, their memory, and what the library found on this machine.
#include <c/status.hpp>

#include <trifactor/info.hpp>

using trifactor::Queue;
using trifactor::c::guard;
using trifactor::c::need;

namespace trifactor::c {
namespace {

template <class Make>
trifactor_status make_queue(const char* call, trifactor_queue** queue, Make make) {
  return guard([&] {
    need(call, "the place for the queue", queue);
    *queue = nullptr;
    *queue = new trifactor_queue{make()};
  });
}

std::shared_ptr<detail::QueueState> memory_of(trifactor_queue* queue) {
  return queue ? queue->queue.state() : detail::host_memory();
}

trifactor_status copy_memory(const char* call, trifactor_queue* from, const void* source, size_t source_ld,
                             trifactor_queue* to, void* target, size_t target_ld, size_t bytes_per_column,
                             size_t columns) {
  return guard([&] {
    if (bytes_per_column == 0 || columns == 0) return;
    need(call, "source", static_cast<const char*>(source));
    need(call, "target", static_cast<char*>(target));
    if (columns > 1 && (source_ld < bytes_per_column || target_ld < bytes_per_column))
      fail(call, "source_ld = " + std::to_string(source_ld) + " and target_ld = " + std::to_string(target_ld) +
                     " must be at least bytes_per_column = " + std::to_string(bytes_per_column));
    if (from && to)
      copy_columns(from->queue, source, source_ld, to->queue, target, target_ld, bytes_per_column, columns);
    else
      detail::copy_now(*memory_of(from ? from : to), source, source_ld, target, target_ld, bytes_per_column, columns);
  });
}

/// The entry of a list, or an error that says how long it is.
template <class T>
const T& entry(const char* call, const std::vector<T>& list, int64_t i) {
  if (i < 0 || i >= int64_t(list.size()))
    fail(call, "i = " + std::to_string(i) + " must be from 0 to " + std::to_string(int64_t(list.size()) - 1));
  return list[std::size_t(i)];
}

}  // namespace
}  // namespace trifactor::c

using namespace trifactor::c;

trifactor_status trifactor_queue_host(int threads, trifactor_queue** queue) {
  return make_queue("trifactor_queue_host", queue, [&] { return Queue::host(threads); });
}
trifactor_status trifactor_queue_cuda(int device, trifactor_queue** queue) {
  return make_queue("trifactor_queue_cuda", queue, [&] { return Queue::cuda(device); });
}
trifactor_status trifactor_queue_wrap_cuda_stream(void* stream, int device, trifactor_queue** queue) {
  return make_queue("trifactor_queue_wrap_cuda_stream", queue, [&] { return Queue::wrap_cuda_stream(stream, device); });
}
void trifactor_queue_destroy(trifactor_queue* queue) { delete queue; }
trifactor_status trifactor_queue_reserve(trifactor_queue* queue, size_t bytes) {
  return guard([&] { need("trifactor_queue_reserve", "queue", queue).queue.reserve(bytes); });
}
trifactor_status trifactor_queue_sync(trifactor_queue* queue) {
  return guard([&] { need("trifactor_queue_sync", "queue", queue).queue.sync(); });
}
int trifactor_queue_is_cuda(const trifactor_queue* queue) { return queue && queue->queue.is_cuda(); }
int trifactor_queue_device(const trifactor_queue* queue) { return queue ? queue->queue.device() : -1; }
void* trifactor_queue_stream(const trifactor_queue* queue) { return queue ? queue->queue.stream() : nullptr; }

trifactor_status trifactor_allocate(trifactor_queue* queue, size_t bytes, void** memory) {
  return guard([&] {
    need("trifactor_allocate", "the place for the memory", memory) = nullptr;
    if (bytes > 0) *memory = trifactor::detail::allocate(*memory_of(queue), bytes);
  });
}
void trifactor_free(trifactor_queue* queue, void* memory) {
  if (memory) guard([&] { trifactor::detail::deallocate(*memory_of(queue), memory); });
}
trifactor_status trifactor_fill_zero(trifactor_queue* queue, void* memory, size_t bytes) {
  return guard([&] {
    if (bytes == 0) return;
    need("trifactor_fill_zero", "memory", static_cast<char*>(memory));
    trifactor::detail::fill_zero(*memory_of(queue), memory, bytes);
  });
}
trifactor_status trifactor_copy_bytes(trifactor_queue* from, const void* source, trifactor_queue* to, void* target,
                                      size_t bytes) {
  return copy_memory("trifactor_copy_bytes", from, source, bytes, to, target, bytes, bytes, 1);
}
trifactor_status trifactor_copy_columns(trifactor_queue* from, const void* source, size_t source_ld,
                                        trifactor_queue* to, void* target, size_t target_ld, size_t bytes_per_column,
                                        size_t columns) {
  return copy_memory("trifactor_copy_columns", from, source, source_ld, to, target, target_ld, bytes_per_column,
                     columns);
}

const char* trifactor_version(void) { return trifactor::version(); }
const char* trifactor_blas(void) {
  thread_local std::string room;
  return text_of(room, [] { return trifactor::blas(); });
}
const char* trifactor_why_no_cuda(void) {
  thread_local std::string room;
  return text_of(room, [] { return trifactor::why_no_cuda(); });
}
trifactor_status trifactor_device_count(int64_t* count) {
  return guard([&] { need("trifactor_device_count", "count", count) = int64_t(trifactor::devices().size()); });
}
trifactor_status trifactor_device_report(int64_t i, trifactor_device_info* info) {
  return guard([&] {
    const char* call = "trifactor_device_report";
    const auto devices = trifactor::devices();
    const auto& device = entry(call, devices, i);
    trifactor_device_info found{};
    copy_text(found.name, device.name), copy_text(found.architecture, device.architecture);
    found.number = device.number, found.cores = device.cores;
    found.memory_bytes = device.memory_bytes, found.free_bytes = device.free_bytes;
    report(call, "the report", info, found);
  });
}
trifactor_status trifactor_tuning_row_count(int64_t* count) {
  return guard([&] { need("trifactor_tuning_row_count", "count", count) = int64_t(trifactor::tuning_rows().size()); });
}
trifactor_status trifactor_tuning_row(int64_t i, const char** text, const char** source) {
  thread_local trifactor::TuningRow row;
  return guard([&] {
    const char* call = "trifactor_tuning_row";
    need(call, "text", text), need(call, "source", source);
    const auto rows = trifactor::tuning_rows();
    row = entry(call, rows, i);
    *text = row.text.c_str(), *source = row.source.c_str();
  });
}
