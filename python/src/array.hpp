// Array: an array of the caller's, or one made for them, of any kind: NumPy's, PyTorch's, CuPy's, JAX's. Kind: how
// arrays of one kind are looked at and made.
#pragma once

#include "dlpack.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <trifactor/error.hpp>
#include <trifactor/queue.hpp>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace trifactor::python {

namespace nb = nanobind;

enum class Dtype : std::uint8_t { F32, F64, C32, C64, I32 };

template <class T>
constexpr Dtype dtype_of = Dtype::I32;
template <>
constexpr Dtype dtype_of<float> = Dtype::F32;
template <>
constexpr Dtype dtype_of<double> = Dtype::F64;
template <>
constexpr Dtype dtype_of<std::complex<float>> = Dtype::C32;
template <>
constexpr Dtype dtype_of<std::complex<double>> = Dtype::C64;

constexpr std::size_t entry_bytes(Dtype d) {
  constexpr std::size_t bytes[] = {4, 8, 8, 16, 4};
  return bytes[std::size_t(d)];
}
constexpr bool is_complex(Dtype d) { return d == Dtype::C32 || d == Dtype::C64; }
constexpr Dtype real_of(Dtype d) { return d == Dtype::C32 ? Dtype::F32 : d == Dtype::C64 ? Dtype::F64 : d; }
const char* name_of(Dtype);
/// The dtype that holds both without loss.
Dtype promoted(Dtype, Dtype);

/// Calls f with a value of the scalar that a dtype names. TypeError where the library was built without it.
template <class F>
auto with_scalar(Dtype d, F f) {
  auto call = [&]<class T>(T zero) -> decltype(f(double{})) {
    if constexpr (BuiltScalar<T>) return f(zero);
    throw nb::type_error((std::string("this build of the library does not hold ") + name_of(d)).c_str());
  };
  switch (d) {
    case Dtype::F32:
      return call(float{});
    case Dtype::C32:
      return call(std::complex<float>{});
    case Dtype::C64:
      return call(std::complex<double>{});
    default:
      return call(double{});
  }
}

constexpr int on_host = -1;  // as a device's number
constexpr int max_dims = 32;

/// Extents of an array.
struct Shape {
  int ndim = 0;
  std::array<index_t, max_dims> extent{};

  Shape() = default;
  Shape(std::initializer_list<index_t> extents) {
    for (index_t e : extents) push(e);
  }
  index_t operator[](int d) const { return extent[std::size_t(d)]; }
  index_t& operator[](int d) { return extent[std::size_t(d)]; }
  void push(index_t e);
  /// The first k extents.
  Shape head(int k) const {
    Shape s = *this;
    s.ndim = k;
    return s;
  }
  Shape with(std::initializer_list<index_t> tail) const {
    Shape s = *this;
    for (index_t e : tail) s.push(e);
    return s;
  }
  index_t product() const;
  bool operator==(const Shape&) const;
  std::string text() const;  // "(2, 3)"
  nb::tuple tuple() const;
};

class Kind;

struct Array {
  nb::object object;  // what Python sees
  const Kind* kind = nullptr;
  void* data = nullptr;
  Dtype dtype = Dtype::F64;
  int device = on_host;  // or the CUDA device's number
  bool writable = true;
  bool from_integers = false;
  bool turned = false;  // the object holds the transposes of the matrices: see Kind::reveal
  Shape shape;
  std::array<index_t, max_dims> stride{};  // in entries
  std::shared_ptr<dlpack::ManagedTensor> held;

  int ndim() const { return shape.ndim; }
  bool aligned() const { return std::uintptr_t(data) % entry_bytes(dtype) == 0; }
};

/// Adaptor objects of trifactor/_kinds.py do for other kinds what is done here for NumPy's arrays.
class Kind {
 public:
  Kind() = default;
  explicit Kind(nb::object adaptor);

  bool is_numpy() const { return !adaptor_.is_valid(); }
  const std::string& name() const { return name_; }
  /// Arrays that the caller holds never change, so results must be complete when they are handed out.
  bool immutable() const { return immutable_; }

  /// `what` is the argument's name, for messages. TypeError for dtypes that the library does not know.
  Array look_at(nb::handle x, const char* what) const;
  /// Uninitialised. columns: entries of a column are neighbours, in each matrix of the last two dimensions.
  Array empty(const Array& like, Dtype, const Shape&, bool columns = false) const;
  /// A new array with the entries of x, spread to a shape and turned into a dtype.
  Array copy(const Array& x, Dtype, const Shape&, bool columns) const;
  /// target[...] = source
  void assign(const Array& target, const Array& source) const;
  /// The conjugates in place of the entries of an array that was made here.
  void conjugate(Array& x, Queue&) const;
  /// Waits for the queue where arrays must be complete when they are handed out.
  void complete(Queue&) const;
  /// What the caller gets to see of an array that was made here, when all work on it is enqueued.
  nb::object reveal(const Array& x) const;
  /// Calls a method of the adaptor; those of NumPy are in the same file.
  template <class... Args>
  nb::object call(const char* method, Args&&... args) const {
    return adaptor().attr(method)(std::forward<Args>(args)...);
  }

  struct Stream {
    void* address;
    nb::object owner;
  };
  /// The caller's current stream, or nothing: on the host, and for kinds without streams.
  std::optional<Stream> stream(int device) const;
  /// The queue that the caller's work on this device is ordered by, of this thread.
  Queue& queue(int device) const;

 private:
  nb::object adaptor() const;
  /// Of (array, address), as adaptors return new arrays.
  Array made(nb::object pair, const Array& like, Dtype, const Shape&, bool columns) const;

  nb::object adaptor_, export_, empty_, copy_, stream_;
  std::string name_ = "numpy";
  bool immutable_ = false;
};

/// Before anything else, while one thread loads the extension.
void prepare_arrays();
const Kind& numpy_kind();
/// The kind of an object. What is no array of any kind is one of NumPy's after numpy.asarray.
const Kind& kind_of(nb::handle x);
Array look_at(nb::handle x, const char* what);
/// Whether an object is an array, of any kind: not what only becomes one.
bool is_array(nb::handle x);

/// "A": both arrays are of one kind and on one device, or a TypeError or ValueError.
void check_same_place(const Array& A, const char* A_name, const Array& b, const char* b_name);

/// Copies entries on the host, spread to the target's shape. conj: their conjugates.
void copy_entries(const Array& source, const Array& target, bool conj = false);
void conjugate_entries(const Array& target);

}  // namespace trifactor::python
