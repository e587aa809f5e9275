// Queue: where work runs and in which order. Buffer and Matrix: memory of a queue that releases itself, and passes where a view does.
#pragma once

#include <trifactor/error.hpp>
#include <trifactor/views.hpp>

#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace trifactor {

namespace detail {
struct QueueState;   // the engine behind a queue and the memory it allocates
}

/// An ordered sequence of calls on one device. Not thread-safe: one thread at a time uses a queue.
class TRIFACTOR_API Queue {
 public:
  /// Calls are complete on return. threads = 0: as many as OpenMP offers. At most 512,
  /// and as many as OMP_THREAD_LIMIT allows.
  static Queue host(int threads = 0);
  /// Calls are enqueued on a stream of their own. Throws DeviceFault where there is no such device.
  static Queue cuda(int device = 0);
  /// Calls are enqueued on the caller's cudaStream_t, which must outlive the queue.
  static Queue wrap_cuda_stream(void* stream, int device);

  Queue(Queue&&) noexcept;
  Queue& operator=(Queue&&) noexcept;
  ~Queue();

  /// Afterwards, calls that need at most this much scratch memory (see the *_scratch queries) do not allocate.
  /// On CUDA, calls that come again with the same arguments become graphs, for which the driver takes memory of its own.
  void reserve(std::size_t bytes);
  /// Returns when everything enqueued so far is complete; a device fault surfaces here at the latest.
  void sync();

  bool is_cuda() const noexcept;
  /// The CUDA device's number, or -1 for the host.
  int device() const noexcept;
  /// The cudaStream_t behind a CUDA queue, or nullptr for the host.
  void* stream() const noexcept;

  const std::shared_ptr<detail::QueueState>& state() const noexcept { return state_; }

 private:
  explicit Queue(std::shared_ptr<detail::QueueState>);
  std::shared_ptr<detail::QueueState> state_;
};

/// Copies bytes between the memories of two queues, after all earlier work of both; complete on return.
TRIFACTOR_API void copy_bytes(Queue& from, const void* source, Queue& to, void* target, std::size_t bytes);
/// The same for a matrix of `rows` bytes a column and `cols` columns, with the columns `ld` bytes apart.
TRIFACTOR_API void copy_columns(Queue& from, const void* source, std::size_t source_ld, Queue& to, void* target,
                                std::size_t target_ld, std::size_t rows, std::size_t cols);

namespace detail {
TRIFACTOR_API std::shared_ptr<QueueState> host_memory();
TRIFACTOR_API void* allocate(QueueState&, std::size_t bytes);          // aligned to 256 bytes; throws OutOfMemory
TRIFACTOR_API void deallocate(QueueState&, void*) noexcept;
TRIFACTOR_API void fill_zero(QueueState&, void*, std::size_t bytes);   // in the queue's order
/// Between the queue's memory and the host's, or within the queue's: after its earlier work; complete on return.
TRIFACTOR_API void copy_now(QueueState&, const void* source, void* target, std::size_t bytes);
TRIFACTOR_API void copy_now(QueueState&, const void* source, std::size_t source_ld, void* target, std::size_t target_ld,
                            std::size_t rows, std::size_t cols);
TRIFACTOR_API bool on_host(const QueueState&) noexcept;
TRIFACTOR_API void throw_not_on_host(const char* what);
[[noreturn]] TRIFACTOR_API void throw_out_of_memory();
TRIFACTOR_API void check_view(const char* call, const char* name, index_t rows, index_t cols, index_t ld);
TRIFACTOR_API index_t checked_size(const char* what, index_t rows, index_t cols, std::size_t element);
}  // namespace detail

/// size() elements of a queue's memory (or the host's), uninitialised. Freeing waits for the device, so create buffers outside loops.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  Buffer(Queue& q, index_t size) : Buffer(q.state(), size) {}
  /// A copy of values in the host's memory; complete on return.
  Buffer(Queue& q, std::span<const T> values) : Buffer(q, index_t(values.size())) {
    if (data_) detail::copy_now(*state_, values.data(), data_, values.size_bytes());
  }
  explicit Buffer(index_t size) : Buffer(detail::host_memory(), size) {}
  Buffer(std::shared_ptr<detail::QueueState> state, index_t size)
      : state_(std::move(state)), size_(detail::checked_size("Buffer", size, 1, sizeof(T))) {
    if (size_) data_ = static_cast<T*>(detail::allocate(*state_, std::size_t(size_) * sizeof(T)));
  }
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept { Buffer(std::move(other)).swap(*this); return *this; }
  ~Buffer() { if (data_) detail::deallocate(*state_, data_); }

  T* data() const noexcept { return data_; }
  index_t size() const noexcept { return size_; }
  /// As one column.
  MatrixView<T> view() noexcept { return {data_, size_, 1, std::max<index_t>(size_, 1)}; }
  MatrixView<const T> view() const noexcept { return {data_, size_, 1, std::max<index_t>(size_, 1)}; }
  operator MatrixView<T>() noexcept { return view(); }
  operator MatrixView<const T>() const noexcept { return view(); }
  operator std::span<T>() noexcept { return {data_, std::size_t(size_)}; }
  operator std::span<const T>() const noexcept { return {data_, std::size_t(size_)}; }
  bool on_host() const noexcept { return !state_ || detail::on_host(*state_); }
  /// Host memory only; throws InvalidArgument elsewhere.
  T& operator[](index_t i) const {
    if (!on_host()) detail::throw_not_on_host("Buffer::operator[]");
    return data_[i];
  }
  void swap(Buffer& other) noexcept {
    std::swap(state_, other.state_), std::swap(data_, other.data_), std::swap(size_, other.size_);
  }
  void fill_zero() { if (data_) detail::fill_zero(*state_, data_, std::size_t(size_) * sizeof(T)); }
  /// A copy of its own in the same memory, after all earlier work of the queue.
  Buffer clone() const {
    if (!data_) return {};
    Buffer copy(state_, size_);
    detail::copy_now(*state_, data_, copy.data_, std::size_t(size_) * sizeof(T));
    return copy;
  }
  /// A copy in the host's memory, after all earlier work of the queue.
  std::vector<T> to_host() const {
    std::vector<T> values;
    try {
      values.resize(static_cast<std::size_t>(size_));
    } catch (const std::bad_alloc&) {
      detail::throw_out_of_memory();
    }
    to_host(values.data());
    return values;
  }
  /// The same to size() elements of the host's memory that are there already.
  void to_host(T* values) const {
    if (data_) detail::copy_now(*state_, data_, values, std::size_t(size_) * sizeof(T));
  }

 private:
  std::shared_ptr<detail::QueueState> state_;
  T* data_ = nullptr;
  index_t size_ = 0;
};

/// A matrix in a queue's memory (or the host's), zero at first, with ld = max(rows, 1).
template <class T>
class Matrix {
 public:
  Matrix() = default;
  Matrix(Queue& q, index_t rows, index_t cols)
      : buffer_(q, detail::checked_size("Matrix", rows, cols, sizeof(T))), rows_(rows), cols_(cols) { buffer_.fill_zero(); }
  /// A copy of a matrix in the host's memory; complete on return.
  Matrix(Queue& q, MatrixView<const T> A)
      : buffer_(q, detail::checked_size("Matrix", A.rows, A.cols, sizeof(T))), rows_(A.rows), cols_(A.cols) {
    detail::check_view("Matrix", "A", A.rows, A.cols, A.ld);
    detail::copy_now(*q.state(), A.data, std::size_t(A.ld) * sizeof(T), data(), std::size_t(ld()) * sizeof(T),
                     std::size_t(rows_) * sizeof(T), std::size_t(cols_));
  }
  Matrix(index_t rows, index_t cols)
      : buffer_(detail::checked_size("Matrix", rows, cols, sizeof(T))), rows_(rows), cols_(cols) { buffer_.fill_zero(); }

  index_t rows() const noexcept { return rows_; }
  index_t cols() const noexcept { return cols_; }
  index_t ld() const noexcept { return std::max<index_t>(rows_, 1); }
  T* data() const noexcept { return buffer_.data(); }
  bool on_host() const noexcept { return buffer_.on_host(); }
  MatrixView<T> view() noexcept { return {data(), rows_, cols_, ld()}; }
  MatrixView<const T> view() const noexcept { return {data(), rows_, cols_, ld()}; }
  operator MatrixView<T>() noexcept { return view(); }
  operator MatrixView<const T>() const noexcept { return view(); }
  /// Host memory only; throws InvalidArgument elsewhere.
  T& operator()(index_t i, index_t j) { return buffer_[i + j * ld()]; }
  const T& operator()(index_t i, index_t j) const { return buffer_[i + j * ld()]; }
  /// A copy of its own in the same memory, after all earlier work of the queue.
  Matrix clone() const {
    Matrix copy;
    copy.buffer_ = buffer_.clone(), copy.rows_ = rows_, copy.cols_ = cols_;
    return copy;
  }
  /// A copy in the host's memory, after all earlier work of the queue.
  Matrix to_host() const {
    Matrix copy;
    copy.buffer_ = Buffer<T>(buffer_.size()), copy.rows_ = rows_, copy.cols_ = cols_;
    buffer_.to_host(copy.data());
    return copy;
  }

 private:
  Buffer<T> buffer_;
  index_t rows_ = 0, cols_ = 0;
};

/// Copies between the memories of two queues, after all earlier work of both; complete on return.
template <class T>
void copy(Queue& from, const T* source, Queue& to, T* target, index_t count) {
  copy_bytes(from, source, to, target, std::size_t(detail::checked_size("copy", count, 1, sizeof(T))) * sizeof(T));
}
template <class T>
void copy(Queue& from, std::type_identity_t<MatrixView<const T>> source, Queue& to, MatrixView<T> target) {
  if (source.rows != target.rows || source.cols != target.cols)
    throw InvalidArgument("copy: source is " + std::to_string(source.rows) + " x " + std::to_string(source.cols) +
                          " but target is " + std::to_string(target.rows) + " x " + std::to_string(target.cols));
  detail::check_view("copy", "source", source.rows, source.cols, source.ld);
  detail::check_view("copy", "target", target.rows, target.cols, target.ld);
  copy_columns(from, source.data, std::size_t(source.ld) * sizeof(T), to, target.data, std::size_t(target.ld) * sizeof(T),
               std::size_t(source.rows) * sizeof(T), std::size_t(source.cols));
}
template <class T>
void copy(Queue& from, std::type_identity_t<MatrixView<const T>> source, Queue& to, Matrix<T>& target) {
  copy(from, source, to, target.view());
}
template <class T>
void copy(Queue& from, const Buffer<T>& source, Queue& to, Buffer<T>& target) {
  if (source.size() != target.size())
    throw InvalidArgument("copy: source.size = " + std::to_string(source.size()) +
                          " must equal target.size = " + std::to_string(target.size()));
  copy_bytes(from, source.data(), to, target.data(), std::size_t(source.size()) * sizeof(T));
}

}  // namespace trifactor
