#include "array.hpp"
#include "queues.hpp"

#include <cstring>
#include <mutex>
#include <unordered_map>

namespace trifactor::python {

namespace {

/// What is asked of NumPy again and again. It lives as long as the process.
struct Numpy {
  nb::object module = nb::module_::import_("numpy");
  nb::object ndarray = module.attr("ndarray"), asarray = module.attr("asarray"), make = module.attr("empty");
  nb::object dtype[5] = {type("float32"), type("float64"), type("complex64"), type("complex128"), type("int32")};
  nb::object columns = nb::str("F");
  nb::object type(const char* name) { return module.attr("dtype")(name); }
};
Numpy& numpy() {
  static auto* all = new Numpy;
  return *all;
}

/// str(x)
std::string text(nb::object x) { return nb::cast<std::string>(nb::steal(PyObject_Str(x.ptr()))); }

std::string class_name(nb::handle x) {
  return text(x.type().attr("__module__")) + "." + text(x.type().attr("__qualname__"));
}

[[noreturn]] void refuse_dtype(const char* what, const std::string& dtype) {
  throw nb::type_error(
      (std::string(what) + " has dtype " + dtype + " but must have float32, float64, complex64 or complex128").c_str());
}

/// Releases the buffer at the end; the array itself stays where it is as long as somebody holds it.
struct Buffered {
  Py_buffer view;
  Buffered(nb::handle x, int flags) {
    if (PyObject_GetBuffer(x.ptr(), &view, flags)) throw nb::python_error();
  }
  Buffered(const Buffered&) = delete;
  ~Buffered() { PyBuffer_Release(&view); }
};

enum class Found { Scalar, Integer, Other };

Found find_dtype(const char* format, Dtype& d) {
  if (!format) return Found::Other;
  const bool swapped = *format == '>' || *format == '!';
  if (swapped || *format == '@' || *format == '=' || *format == '<') ++format;
  static constexpr std::pair<const char*, Dtype> known[] = {
      {"d", Dtype::F64}, {"f", Dtype::F32}, {"Zd", Dtype::C64}, {"Zf", Dtype::C32}, {"i", Dtype::I32}};
  for (auto& [name, dtype] : known)
    if (!std::strcmp(name, format))
      return d = dtype, dtype == Dtype::I32 ? Found::Integer : swapped ? Found::Other : Found::Scalar;
  return *format && !format[1] && std::strchr("?bBhHIlLqQ", *format) ? Found::Integer : Found::Other;
}

Array look_at_numpy(nb::object x, const char* what, bool again = false) {
  Array a;
  a.kind = &numpy_kind();
  bool usable = true;
  Found found;
  {
    // Formats such as datetime have no buffer.
    const bool has_buffer = PyObject_CheckBuffer(x.ptr());
    if (!has_buffer) refuse_dtype(what, class_name(x));
    Py_buffer test;
    if (PyObject_GetBuffer(x.ptr(), &test, PyBUF_RECORDS_RO)) {
      PyErr_Clear();
      refuse_dtype(what, text(x.attr("dtype")));
    }
    struct Release {
      Py_buffer* view;
      ~Release() { PyBuffer_Release(view); }
    } release{&test};
    found = find_dtype(test.format, a.dtype);
    if (found == Found::Scalar) {
      if (test.ndim > max_dims) throw nb::value_error("arrays have at most 32 dimensions");
      a.data = test.buf, a.writable = !test.readonly, a.shape.ndim = test.ndim;
      usable = std::uintptr_t(test.buf) % std::min<std::size_t>(std::size_t(test.itemsize), 8) == 0;
      for (int d = 0; d < test.ndim; ++d) {
        a.shape[d] = test.shape[d], a.stride[std::size_t(d)] = test.strides[d] / test.itemsize;
        usable = usable && test.strides[d] % test.itemsize == 0;
      }
    }
  }
  if (found == Found::Scalar && usable) return a.object = std::move(x), a;
  if (again) refuse_dtype(what, text(x.attr("dtype")));
  // Integers become float64; the other byte order, and strides that are no multiples, go away by a copy.
  nb::object dtype =
      found == Found::Integer ? numpy().dtype[int(Dtype::F64)] : x.attr("dtype").attr("newbyteorder")("=");
  Array copy = look_at_numpy(x.attr("astype")(dtype, "C"), what, true);
  copy.writable = false, copy.from_integers = found == Found::Integer;
  return copy;
}

int device_of(const dlpack::Tensor& t, const char* what) {
  switch (t.device.type) {
    case dlpack::Cpu:
    case dlpack::CudaHost:
      return on_host;
    case dlpack::Cuda:
    case dlpack::CudaManaged:
      return t.device.number;
    default:
      throw nb::type_error((std::string(what) + " is on a device of DLPack's type " + std::to_string(t.device.type) +
                            " but must be on the host (1) or on a CUDA device (2)")
                               .c_str());
  }
}

Dtype dtype_in(const dlpack::Tensor& t, const char* what) {
  const auto [code, bits, lanes] = t.dtype;
  if (lanes == 1) {
    if (code == dlpack::Float && bits == 32) return Dtype::F32;
    if (code == dlpack::Float && bits == 64) return Dtype::F64;
    if (code == dlpack::Complex && bits == 64) return Dtype::C32;
    if (code == dlpack::Complex && bits == 128) return Dtype::C64;
    if (code == dlpack::Int && bits == 32) return Dtype::I32;
  }
  static constexpr const char* names[] = {"int", "uint", "float", "handle", "bfloat", "complex", "bool"};
  refuse_dtype(what, (code < 7 ? names[code] : "float8 or other, of bits ") + std::to_string(bits));
}

/// Of (array, capsule), as adaptors export arrays.
Array take_capsule(nb::object pair, const char* what) {
  nb::object x = pair[0], capsule = pair[1];
  auto* managed = static_cast<dlpack::ManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
  if (!managed) throw nb::python_error();
  PyCapsule_SetName(capsule.ptr(), "used_dltensor");
  Array a;
  a.held = {managed, [](dlpack::ManagedTensor* m) {
              if (m->deleter) m->deleter(m);
            }};
  const dlpack::Tensor& t = managed->tensor;
  if (t.ndim > max_dims) throw nb::value_error("arrays have at most 32 dimensions");
  a.object = std::move(x);
  a.device = device_of(t, what), a.dtype = dtype_in(t, what);
  a.data = static_cast<std::byte*>(t.data) + t.byte_offset;
  a.shape.ndim = t.ndim;
  index_t dense = 1;
  for (int d = t.ndim - 1; d >= 0; --d) {
    a.shape[d] = t.shape[d], a.stride[std::size_t(d)] = t.strides ? t.strides[d] : dense;
    dense *= t.shape[d];
  }
  return a;
}

/// Strides of a dense array; `columns` as in Kind::empty.
void set_dense_strides(Array& a, bool columns) {
  index_t dense = 1;
  const int n = a.ndim();
  for (int d = n - 1; d >= 0; --d) {
    const int swapped = columns && n >= 2 && d >= n - 2 ? 2 * n - 3 - d : d;
    a.stride[std::size_t(swapped)] = dense;
    dense *= a.shape[swapped];
  }
}

struct KindTable {
  std::mutex mutex;
  std::unordered_map<PyObject*, std::unique_ptr<Kind>> of_adaptor;
  std::unordered_map<PyObject*, const Kind*> of_type;
};
KindTable& table() {
  static auto* all = new KindTable;
  return *all;
}

}  // namespace

const char* name_of(Dtype d) {
  static constexpr const char* names[] = {"float32", "float64", "complex64", "complex128", "int32"};
  return names[int(d)];
}

Dtype promoted(Dtype a, Dtype b) {
  const bool wide = real_of(a) == Dtype::F64 || real_of(b) == Dtype::F64;
  if (is_complex(a) || is_complex(b)) return wide ? Dtype::C64 : Dtype::C32;
  return wide ? Dtype::F64 : Dtype::F32;
}

void Shape::push(index_t e) {
  if (ndim == max_dims) throw nb::value_error("arrays have at most 32 dimensions");
  extent[std::size_t(ndim++)] = e;
}

index_t Shape::product() const {
  index_t p = 1;
  for (int d = 0; d < ndim; ++d) p *= (*this)[d];
  return p;
}

bool Shape::operator==(const Shape& other) const {
  if (ndim != other.ndim) return false;
  for (int d = 0; d < ndim; ++d)
    if ((*this)[d] != other[d]) return false;
  return true;
}

std::string Shape::text() const {
  std::string s = "(";
  for (int d = 0; d < ndim; ++d) s += (d ? ", " : "") + std::to_string((*this)[d]);
  return s + (ndim == 1 ? ",)" : ")");
}

nb::tuple Shape::tuple() const {
  nb::object t = nb::steal(PyTuple_New(ndim));
  if (!t.is_valid()) throw nb::python_error();
  for (int d = 0; d < ndim; ++d) PyTuple_SetItem(t.ptr(), d, PyLong_FromLongLong((*this)[d]));
  return nb::borrow<nb::tuple>(t);
}

Kind::Kind(nb::object adaptor)
    : adaptor_(adaptor),
      export_(adaptor.attr("export")),
      empty_(adaptor.attr("empty")),
      copy_(adaptor.attr("copy")),
      stream_(adaptor.attr("stream")),
      name_(text(adaptor.attr("name"))),
      immutable_(nb::cast<bool>(nb::object(adaptor.attr("immutable")))) {}

nb::object Kind::adaptor() const {
  return is_numpy() ? nb::module_::import_("trifactor._kinds").attr("NUMPY") : adaptor_;
}

Array Kind::look_at(nb::handle x, const char* what) const {
  if (is_numpy()) {
    const bool plain = reinterpret_cast<PyObject*>(Py_TYPE(x.ptr())) == numpy().ndarray.ptr();
    return look_at_numpy(plain ? nb::borrow(x) : numpy().asarray(x), what);
  }
  Array a = take_capsule(export_(x), what);
  a.kind = this, a.writable = !immutable_ && a.object.is(x);
  if (a.dtype == Dtype::I32) refuse_dtype(what, "int32");
  return a;
}

Array Kind::made(nb::object pair, const Array& like, Dtype d, const Shape& shape, bool columns) const {
  nb::object object = pair[0];
  auto* address = reinterpret_cast<void*>(nb::cast<std::uintptr_t>(nb::object(pair[1])));
  const bool turned = columns && immutable_;  // such arrays are row-major: the object holds the transposes
  Array a;
  if (address || shape.product() == 0) {
    a.object = std::move(object), a.data = address, a.device = like.device;
    a.shape = shape, a.dtype = d;
    set_dense_strides(a, columns);
  } else {
    a = take_capsule(export_(object), "result");
    const int n = a.ndim();
    if (turned)
      std::swap(a.shape[n - 1], a.shape[n - 2]), std::swap(a.stride[std::size_t(n - 1)], a.stride[std::size_t(n - 2)]);
  }
  a.turned = turned, a.kind = this;
  return a;
}

Array Kind::empty(const Array& like, Dtype d, const Shape& shape, bool columns) const {
  columns = columns && shape.ndim >= 2 && shape[shape.ndim - 1] != 1;
  if (!is_numpy()) return made(empty_(like.object, shape.tuple(), name_of(d), columns), like, d, shape, columns);
  Numpy& np = numpy();
  Array a;
  a.kind = this, a.dtype = d, a.shape = shape;
  if (!columns) {
    a.object = np.make(shape.tuple(), np.dtype[int(d)]);
  } else if (shape.ndim == 2) {
    a.object = np.make(shape.tuple(), np.dtype[int(d)], np.columns);
  } else {
    Shape swapped = shape;
    std::swap(swapped[shape.ndim - 1], swapped[shape.ndim - 2]);
    a.object = np.make(swapped.tuple(), np.dtype[int(d)]).attr("swapaxes")(-1, -2);
  }
  set_dense_strides(a, columns);
  Buffered buffer(a.object, PyBUF_STRIDES);
  a.data = buffer.view.buf;
  return a;
}

Array Kind::copy(const Array& x, Dtype d, const Shape& shape, bool columns) const {
  columns = columns && shape.ndim >= 2 && shape[shape.ndim - 1] != 1;
  const bool entries = x.device == on_host && x.dtype == d && !immutable_;  // can be copied here
  if (!is_numpy() && !entries) return made(copy_(x.object, shape.tuple(), name_of(d), columns), x, d, shape, columns);
  Array a = empty(x, d, shape, columns);
  if (entries)
    copy_entries(x, a);
  else
    copy_entries(look_at_numpy(x.object.attr("astype")(numpy().dtype[int(d)]), "x"), a);
  return a;
}

void Kind::assign(const Array& target, const Array& source) const {
  if (is_numpy() && source.dtype == target.dtype)
    copy_entries(source, target);
  else
    call("assign", target.object, source.object);
}

void Kind::conjugate(Array& x, Queue& q) const {
  if (!is_complex(x.dtype)) return;
  if (x.device == on_host) return conjugate_entries(x);
  complete(q);
  nb::object conjugates = call("conj", x.object);
  if (immutable_) x = made(conjugates, x, x.dtype, x.shape, x.turned);
}

void Kind::complete(Queue& q) const {
  if (immutable_ && q.is_cuda()) wait_for(q);
}

nb::object Kind::reveal(const Array& x) const { return x.turned ? call("transpose", x.object) : x.object; }

std::optional<Kind::Stream> Kind::stream(int device) const {
  if (device == on_host) return {};
  nb::object stream = stream_(device);  // (address, owner), or None for kinds without streams
  if (stream.is_none()) return {};
  nb::object address = stream[0], owner = stream[1];
  return Stream{reinterpret_cast<void*>(nb::cast<std::uintptr_t>(address)), owner};
}

Queue& Kind::queue(int device) const {
  if (device == on_host) return host_queue();
  const std::optional<Stream> current = stream(device);
  return current ? stream_queue(device, current->address, current->owner) : own_queue(device);
}

void prepare_arrays() { numpy(); }

const Kind& numpy_kind() {
  static const Kind kind;
  return kind;
}

const Kind& kind_of(nb::handle x) {
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(x.ptr()));
  if (type == numpy().ndarray.ptr()) return numpy_kind();
  KindTable& all = table();
  {
    const std::lock_guard lock(all.mutex);
    if (auto found = all.of_type.find(type); found != all.of_type.end()) return *found->second;
  }
  nb::object adaptor = nb::module_::import_("trifactor._kinds").attr("find")(x);
  std::unique_ptr<Kind> fresh;  // outside of the lock, since it runs Python
  if (!adaptor.is_none()) fresh = std::make_unique<Kind>(adaptor);
  const std::lock_guard lock(all.mutex);
  const Kind* kind = &numpy_kind();
  if (fresh) {
    auto& known = all.of_adaptor[adaptor.ptr()];
    if (!known) known = std::move(fresh);
    kind = known.get();
  }
  Py_INCREF(type);  // so that its address is not another type's one day
  all.of_type[type] = kind;
  return *kind;
}

Array look_at(nb::handle x, const char* what) { return kind_of(x).look_at(x, what); }

bool is_array(nb::handle x) { return !kind_of(x).is_numpy() || nb::isinstance(x, numpy().ndarray); }

void check_same_place(const Array& A, const char* A_name, const Array& b, const char* b_name) {
  if (A.kind != b.kind)
    throw nb::type_error((std::string(A_name) + " is an array of " + A.kind->name() + " but " + b_name + " one of " +
                          b.kind->name() + ": both must be of one kind")
                             .c_str());
  auto place = [](const Array& a) {
    return a.device == on_host ? "on the host" : "on CUDA device " + std::to_string(a.device);
  };
  if (A.device != b.device)
    throw nb::value_error(
        (std::string(A_name) + " is " + place(A) + " but " + b_name + " is " + place(b) + ": both must be in one place")
            .c_str());
}

}  // namespace trifactor::python
