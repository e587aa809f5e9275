// What sparse factors share: values and right-hand sides of the caller's, wherever they are.
#pragma once

#include "queues.hpp"
#include "shared_queue.hpp"
#include "sparse_plan.hpp"

#include <optional>

namespace trifactor::python {

/// Values of a sparse matrix: one dimension, contiguous, as many as the pattern has entries.
inline Array look_at_values(nb::handle values, Dtype d, index_t entries) {
  Array a = look_at(values, "values");
  if (a.ndim() != 1 || (a.shape[0] > 1 && a.stride[0] != 1) || a.dtype != d || a.shape[0] != entries || !a.aligned())
    raise_value_error("values have shape " + a.shape.text() + " and dtype " + name_of(a.dtype) +
                      " but must be contiguous, of shape (" + std::to_string(entries) + ",) and dtype " + name_of(d));
  return a;
}

/// What all factors do with right-hand sides: b of shape (n,) or (n, k), for a batch (count, n) or (count, n, k),
/// anywhere.
class Solver {
 public:
  Solver(Dtype d, index_t n, std::shared_ptr<SharedQueue> q, std::optional<index_t> count = {})
      : dtype_(d), n_(n), queue_(std::move(q)), count_(count) {}

 protected:
  int device() const { return queue_->queue.device(); }

  /// f(view of a copy of b in the factor's memory), and the copy of the caller's kind afterwards. The right-hand sides
  /// of a batch are columns side by side.
  template <class T, class F>
  nb::object on_copy(nb::handle b, F f) {
    Matrices A;  // stands for a matrix of order n, for the rules of shapes
    const Array rhs = look_at(b, "b");
    Array like = rhs;
    like.shape = {n_, n_}, like.dtype = dtype_;
    if (count_) A.batch = {*count_}, like.shape = {*count_, n_, n_};
    A.arrays = {like}, A.dtype = dtype_;
    check_shape(rhs.shape);
    if (rhs.device != on_host && rhs.device != device())
      raise_value_error("b is on CUDA device " + std::to_string(rhs.device) + " but the factor is " +
                        (device() < 0 ? "on the host" : "on device " + std::to_string(device())));
    Rhs r = prepare_rhs({rhs}, A, queue_->queue, {});
    const Operand& x = r.operand;
    const MatrixView<T> X{static_cast<T*>(x.data), x.rows, x.cols * x.count, x.ld};  // a copy: items follow each other
    Queue* theirs = other_queue(rhs);
    without_gil([&] {
      const std::lock_guard lock(queue_->mutex);
      Queue& q = queue_->queue;
      if (device() >= 0 && rhs.device == on_host) {
        const MatrixView<T> there{staging<T>(X.rows * X.cols), X.rows, X.cols, std::max<index_t>(X.rows, 1)};
        copy(host_queue(), MatrixView<const T>(X), q, there);
        f(there);
        copy(q, MatrixView<const T>(there), host_queue(), X);
      } else {
        if (theirs) theirs->sync();
        f(X);
        if (theirs) q.sync();
      }
    });
    return r.finish(A, queue_->queue, false);
  }

  /// The queue of the stream that an array on the device belongs to, where that is not the factor's own.
  Queue* other_queue(const Array& a) const {
    if (a.device == on_host) return nullptr;
    const std::optional<Kind::Stream> s = a.kind->stream(a.device);
    return s && s->address == queue_->queue.stream() ? nullptr : &a.kind->queue(a.device);
  }

  /// Memory of the queue for at least so many entries, kept from solve to solve.
  template <class T>
  T* staging(index_t size) {
    auto* kept = static_cast<Buffer<T>*>(staging_.get());
    if (!kept || kept->size() < size) {
      staging_.reset();
      auto fresh = std::make_shared<Buffer<T>>(queue_->queue, size);
      kept = fresh.get();
      staging_ = std::move(fresh);
    }
    return kept->data();
  }

  /// Values that the factor can read, and the queue of their stream, where that is not the factor's own.
  struct Values {
    Array given;
    Queue* theirs;
  };
  Values readable(nb::handle values, index_t entries) const {
    Array v = look_at_values(values, dtype_, entries);
    if (v.device != on_host && v.device != device())
      raise_value_error("values are on CUDA device " + std::to_string(v.device) +
                        " but the factor is on another or on the host");
    Queue* theirs = other_queue(v);
    return {std::move(v), theirs};
  }

  /// Values in the factor's memory, where they are already or in a copy. Within locked.
  template <class T>
  std::span<const T> ready(const Values& v) {
    const std::span<const T> given(static_cast<const T*>(v.given.data), std::size_t(v.given.shape[0]));
    if (v.theirs) v.theirs->sync();
    if (device() < 0 || v.given.device != on_host) return given;
    if (!values_) values_ = std::make_shared<Buffer<T>>(queue_->queue, v.given.shape[0]);
    auto& there = *static_cast<Buffer<T>*>(values_.get());
    copy(host_queue(), given.data(), queue_->queue, there.data(), there.size());
    return {there.data(), given.size()};
  }

  template <class F>
  auto locked(F f) const {
    return without_gil([&] {
      const std::lock_guard lock(queue_->mutex);
      return f();
    });
  }

  Dtype dtype_;
  index_t n_;
  std::shared_ptr<SharedQueue> queue_;
  std::optional<index_t> count_;   // of a batch
  std::shared_ptr<void> staging_;  // a Buffer
  std::shared_ptr<void> values_;   // likewise: on a device, values that come from the host

 private:
  void check_shape(const Shape& b) const {
    const std::string n = std::to_string(n_), count = count_ ? std::to_string(*count_) + ", " : "";
    const int first = count_ ? 1 : 0;
    const bool fits = b.ndim > first && b.ndim <= first + 2 && (!count_ || (b[0] == *count_ && b[1] == n_));
    if (!fits && (count_ || b.ndim > 2))
      raise_value_error("b has shape " + b.text() + " but must be (" + count + n + (count_ ? ")" : ",)") + " or (" +
                        count + n + ", k)");
  }
};

inline nb::dict dict_of(const SparseMemory& m) {
  nb::dict d;
  d["factor"] = m.factor, d["updates"] = m.updates, d["lists"] = m.lists, d["vectors"] = m.vectors;
  d["scratch"] = m.scratch, d["values"] = m.values, d["total"] = m.total(), d["host"] = m.host;
  return d;
}

inline Dtype dtype_named(const std::string& name) {
  return chosen<Dtype>(
      "dtype", name,
      {{"float32", Dtype::F32}, {"float64", Dtype::F64}, {"complex64", Dtype::C32}, {"complex128", Dtype::C64}});
}

}  // namespace trifactor::python
