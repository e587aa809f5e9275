// The queue under test (TRIFACTOR_TEST_DEVICE=host or cuda) and data in its memory.
#pragma once

#include <support/matrices.hpp>
#include <trifactor/queue.hpp>

#include <cstdlib>
#include <string>

namespace trifactor::test {

inline bool on_cuda() {
  const char* device = std::getenv("TRIFACTOR_TEST_DEVICE");
  return device && std::string(device) == "cuda";
}
inline Queue test_queue() { return on_cuda() ? Queue::cuda() : Queue::host(); }

/// The host's end of all copies, and what references are computed with. A queue belongs to one thread at a time.
inline Queue& host_queue() {
  thread_local Queue q = Queue::host();
  return q;
}

/// Values in a queue's memory.
template <class T>
class DeviceArray {
 public:
  DeviceArray(Queue& q, const std::vector<T>& values) : q_(&q), buffer_(q, index_t(values.size())) { upload(values); }
  DeviceArray(Queue& q, index_t count, T value) : DeviceArray(q, std::vector<T>(count, value)) {}

  T* data() const { return buffer_.data(); }
  void upload(const std::vector<T>& values) { copy(host_queue(), values.data(), *q_, buffer_.data(), buffer_.size()); }
  std::vector<T> download() const {
    std::vector<T> values(buffer_.size());
    copy(*q_, static_cast<const T*>(buffer_.data()), host_queue(), values.data(), buffer_.size());
    return values;
  }

 private:
  Queue* q_;
  Buffer<T> buffer_;
};

/// A matrix of the library in the host's memory.
template <class T>
HostMatrix<T> as_host_matrix(const Matrix<T>& A) {
  HostMatrix<T> B(A.rows(), A.cols());
  for (index_t j = 0; j < A.cols(); ++j)
    for (index_t i = 0; i < A.rows(); ++i) B(i, j) = A(i, j);
  return B;
}

/// A host matrix, its canaries included, in a queue's memory.
template <class T>
class DeviceMatrix {
 public:
  DeviceMatrix(Queue& q, const HostMatrix<T>& A) : shape_(A.shape()), storage_(q, A.storage) {}

  MatrixView<T> view() const { return {storage_.data() + shape_.frame, shape_.rows, shape_.cols, shape_.ld}; }
  void upload(const HostMatrix<T>& A) { storage_.upload(A.storage); }
  HostMatrix<T> download() const {
    HostMatrix<T> A = shape_;
    A.storage = storage_.download();
    return A;
  }

 private:
  HostMatrix<T> shape_;
  DeviceArray<T> storage_;
};

/// Host matrices in a queue's memory as any kind of batch, with canaries between the items.
template <class T>
class DeviceBatch {
 public:
  DeviceBatch(Queue& q, const std::vector<HostMatrix<T>>& items) : storage_(q, joined(items)) {
    std::vector<T*> pointers;
    std::vector<int> rows, cols, lds;
    for (const auto& A : items) {
      pointers.push_back(A.rows > 0 && A.cols > 0 ? storage_.data() + places_.back() + A.frame : nullptr);
      rows.push_back(int(A.rows)), cols.push_back(int(A.cols)), lds.push_back(int(A.ld));
      max_rows_ = std::max(max_rows_, A.rows), max_cols_ = std::max(max_cols_, A.cols);
      shapes_.push_back(A.shape()), places_.push_back(places_.back() + A.size());
    }
    pointers_ = std::make_unique<DeviceArray<T*>>(q, pointers);
    sizes_ = std::make_unique<DeviceArray<int>>(q, rows);
    cols_ = std::make_unique<DeviceArray<int>>(q, cols);
    lds_ = std::make_unique<DeviceArray<int>>(q, lds);
  }

  index_t count() const { return index_t(shapes_.size()); }
  /// All items have the shape of the first.
  StridedBatch<T> strided() const {
    if (shapes_.empty()) return {nullptr, 0, 0, 1, 1, 0};
    const auto& A = shapes_[0];
    return {storage_.data() + A.frame, A.rows, A.cols, A.ld, places_[1], count()};
  }
  PointerBatch<T> pointers() const {
    if (shapes_.empty()) return {nullptr, 0, 0, 1, 0};
    return {pointers_->data(), shapes_[0].rows, shapes_[0].cols, shapes_[0].ld, count()};
  }
  RaggedBatch<T> ragged() const {
    return {pointers_->data(), sizes_->data(), cols_->data(), lds_->data(), count(), max_rows_, max_cols_};
  }
  /// What the device is told about the items, true or not.
  void claim_rows(const std::vector<int>& rows) { sizes_->upload(rows); }
  void claim_cols(const std::vector<int>& cols) { cols_->upload(cols); }
  void claim_ld(const std::vector<int>& lds) { lds_->upload(lds); }

  void upload(const std::vector<HostMatrix<T>>& items) { storage_.upload(joined(items)); }
  std::vector<HostMatrix<T>> download() const {
    const auto all = storage_.download();
    auto items = shapes_;
    in_parallel(items.size(), places_.back(),
                [&](std::size_t i) { items[i].storage.assign(all.data() + places_[i], all.data() + places_[i + 1]); });
    return items;
  }

 private:
  static std::vector<T> joined(const std::vector<HostMatrix<T>>& items) {
    std::size_t size = 0;
    for (const auto& A : items) size += A.storage.size();
    std::vector<T> all(size);
    std::vector<std::size_t> places(items.size());
    std::size_t place = 0;
    for (std::size_t i = 0; i < items.size(); place += items[i++].storage.size()) places[i] = place;
    in_parallel(items.size(), index_t(size), [&](std::size_t i) {
      std::copy(items[i].storage.begin(), items[i].storage.end(), all.begin() + index_t(places[i]));
    });
    return all;
  }
  std::vector<HostMatrix<T>> shapes_;
  std::vector<index_t> places_{0};  // where each item's storage begins, and where the last one ends
  DeviceArray<T> storage_;
  std::unique_ptr<DeviceArray<T*>> pointers_;
  std::unique_ptr<DeviceArray<int>> sizes_, cols_, lds_;
  index_t max_rows_ = 0, max_cols_ = 0;
};

/// A queue and a seed, which a failure prints.
class DeviceTest : public ::testing::Test {
 protected:
  Queue q = test_queue();
  Random random;

 private:
  ::testing::ScopedTrace trace_{__FILE__, __LINE__, "TRIFACTOR_TEST_SEED=" + std::to_string(test_seed())};
};

}  // namespace trifactor::test
