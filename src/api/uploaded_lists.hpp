// Arrays of the host that are copied to a queue's memory, into one buffer.
#pragma once

#include <api/queue_state.hpp>

#include <cstring>
#include <memory>
#include <vector>

namespace trifactor::api {

class UploadedLists {
 public:
  /// Once they are there, `place` points to the copy of the values. Returns the number of the list.
  template <class V, class A>
  std::size_t add(const V*& place, std::vector<V, A> values) {
    const std::size_t size = values.size() * sizeof(V);
    const auto kept = std::make_shared<std::vector<V, A>>(std::move(values));
    lists_.push_back({&place, bytes_, size, kept->data(), kept});
    bytes_ += (size + alignment - 1) / alignment * alignment;
    place =
        reinterpret_cast<const V*>(std::uintptr_t(alignment));  // planning reads nothing, but tells null from a list
    return lists_.size() - 1;
  }
  /// Other values for a list of that size.
  template <class V>
  void set(std::size_t number, std::vector<V> values) {
    const auto kept = std::make_shared<std::vector<V>>(std::move(values));
    lists_[number].data = kept->data(), lists_[number].keeper = kept;
  }
  std::size_t bytes() const { return bytes_; }
  /// Back to none.
  void clear() { lists_.clear(), bytes_ = 0, buffer_ = {}; }

  void upload(const std::shared_ptr<detail::QueueState>& queue) {
    buffer_ = Buffer<char>(queue, index_t(bytes_));
    for (const List& list : lists_) {
      char* const address = buffer_.data() + list.at;
      if (list.size > 0) copy(*queue, list.data, address, list.size);
      std::memcpy(list.place, &address, sizeof address);  // pointers of any type
    }
    lists_.clear();
  }

 private:
  static constexpr std::size_t alignment = 256;
  struct List {
    void* place;
    std::size_t at, size;
    const void* data;
    std::shared_ptr<void> keeper;
  };
  std::vector<List> lists_;
  std::size_t bytes_ = 0;
  Buffer<char> buffer_;
};

}  // namespace trifactor::api
