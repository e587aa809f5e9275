#include "dense.hpp"
#include "queues.hpp"

#include <algorithm>
#include <limits>

namespace trifactor::python {

namespace {

bool is_list(nb::handle x) { return PyList_Check(x.ptr()) || PyTuple_Check(x.ptr()); }

/// A list of arrays, and not one of numbers or of lists of them.
bool is_ragged(nb::handle A) {
  if (!is_list(A)) return false;
  nb::object items = nb::borrow(A);
  return nb::len(items) > 0 && nb::hasattr(items[0], "shape");
}

Array look_at_item(nb::handle item, const std::string& name, const Array* first) {
  Array a = look_at(item, name.c_str());
  if (first) {
    check_same_place(*first, "the first item", a, name.c_str());
    if (a.dtype != first->dtype)
      raise_type_error(name + " has dtype " + name_of(a.dtype) + " but the first item " + name_of(first->dtype) +
                       ": all items must have one dtype");
  }
  return a;
}

/// Whether results can be written over an array.
bool can_stay(const Array& A, const Wanted& wanted, const Shape& shape, bool row_major_too) {
  if (!wanted.overwrite || !A.writable || A.dtype != wanted.dtype || !(shape == A.shape)) return false;
  const Layout layout = layout_of(A);
  return layout.usable && (row_major_too || !layout.row_major);
}

Array copy_for(const Array& A, const Wanted& wanted, const Shape& shape) {
  const Layout layout = layout_of(A);
  const bool columns = wanted.copies == Orientation::Columns || (layout.usable && !layout.row_major);
  const bool plain = wanted.scratch && A.device == on_host && A.dtype == wanted.dtype;  // NumPy's are made fastest
  return (plain ? numpy_kind() : *A.kind).copy(A, wanted.dtype, shape, columns);
}

/// A vector as one column.
Array as_column(Array v) {
  v.shape.push(1);
  v.stride[std::size_t(v.ndim() - 1)] = std::numeric_limits<std::int32_t>::max();
  return v;
}

/// Whether solutions can be written to an array as it lies.
bool fits(const Array& a, Dtype d, const Shape& shape, bool vector) {
  if (!a.writable || a.dtype != d || !(a.shape == shape)) return false;
  const Layout layout = layout_of(vector ? as_column(a) : a);
  return layout.usable && !layout.row_major;
}

struct RhsShape {
  bool vector;
  Shape batch, all;
};

/// Which shape the solutions have.
RhsShape shape_of_rhs(const Shape& b, const Shape& A_batch, index_t n) {
  const Shape vectors = A_batch.with({n});
  RhsShape s;
  s.vector = b.ndim == 1 || (A_batch.ndim > 0 && b == vectors);
  const int trailing = s.vector ? 1 : 2;
  if (b.ndim < 1 || b[b.ndim - trailing] != n)
    raise_value_error("b has shape " + b.text() + " but must be (" + std::to_string(n) + ",) or (..., " +
                      std::to_string(n) + ", k) for matrices of order " + std::to_string(n) +
                      (A_batch.ndim ? ", or " + vectors.text() : ""));
  const Shape b_batch = b.head(b.ndim - trailing);
  const int ndim = std::max(A_batch.ndim, b_batch.ndim);
  for (int d = 0; d < ndim; ++d) {
    const int i = d - (ndim - A_batch.ndim), j = d - (ndim - b_batch.ndim);
    const index_t x = i >= 0 ? A_batch[i] : 1, y = j >= 0 ? b_batch[j] : 1;
    if (x != y && x != 1 && y != 1)
      raise_value_error("the batch " + A_batch.text() + " of A and the batch " + b_batch.text() +
                        " of b do not go together");
    s.batch.push(x == 1 ? y : x);
  }
  s.all = s.vector ? s.batch.with({n}) : s.batch.with({n, b[b.ndim - 1]});
  return s;
}

void check_rhs_dtype(const Array& b, Dtype d, bool promote) {
  if (b.dtype != d && !promote && !b.from_integers && promoted(b.dtype, d) != d)
    raise_type_error(std::string("b has dtype ") + name_of(b.dtype) + " but the factor " + name_of(d) +
                     ": b must have a dtype that the factor's holds without loss");
}

/// Whether two arrays are the same entries in the same order.
bool same_entries(const Array& a, const Array& b) {
  return a.data == b.data && a.dtype == b.dtype && a.shape == b.shape &&
         std::equal(a.stride.begin(), a.stride.begin() + a.ndim(), b.stride.begin());
}

/// The addresses from the first byte of an array to behind its last.
struct Range {
  std::uintptr_t begin = 0, end = 0;
};

Range range_of(const Array& a) {
  if (a.shape.product() == 0) return {};
  index_t first = 0, last = 0;
  for (int d = 0; d < a.ndim(); ++d) {
    const index_t reach = (a.shape[d] - 1) * a.stride[std::size_t(d)];
    (reach < 0 ? first : last) += reach;
  }
  const auto at = [&](index_t entry) { return std::uintptr_t(a.data) + std::uintptr_t(entry) * entry_bytes(a.dtype); };
  return {at(first), at(last + 1)};
}

}  // namespace

void leave_shared(std::vector<const Array*>& places, const std::vector<const Array*>& others) {
  struct Item {
    Range range;
    const Array** place;
  };
  std::vector<Item> items;
  for (const Array*& place : places)
    if (place) items.push_back({range_of(*place), &place});
  if (items.empty()) return;
  for (const Array* other : others) items.push_back({range_of(*other), nullptr});
  std::ranges::sort(items, {}, [](const Item& i) { return i.range.begin; });
  std::uintptr_t reach = 0;  // of the items before
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Range r = items[i].range;
    const bool shared = r.begin < reach || (i + 1 < items.size() && items[i + 1].range.begin < r.end);
    if (shared && items[i].place) *items[i].place = nullptr;
    reach = std::max(reach, r.end);
  }
}

std::vector<const Array*> pointers_to(const std::vector<Array>& arrays) {
  std::vector<const Array*> all;
  for (const Array& a : arrays) all.push_back(&a);
  return all;
}

void raise_value_error(const std::string& text) { throw nb::value_error(text.c_str()); }
void raise_type_error(const std::string& text) { throw nb::type_error(text.c_str()); }

Matrices look_at_matrices(nb::handle A, const char* what, bool square) {
  Matrices m;
  m.ragged = is_ragged(A);
  if (m.ragged) {
    for (nb::handle item : nb::borrow<nb::iterable>(A)) {
      const std::string name = std::string(what) + "[" + std::to_string(m.arrays.size()) + "]";
      m.arrays.push_back(look_at_item(item, name, m.arrays.empty() ? nullptr : &m.arrays[0]));
      if (m.arrays.back().ndim() != 2)
        raise_value_error(name + " has shape " + m.arrays.back().shape.text() +
                          " but must have two dimensions, as every item of a list");
    }
    m.batch = {index_t(m.arrays.size())};
  } else {
    m.arrays.push_back(look_at(A, what));
    const Shape& shape = m.first().shape;
    if (shape.ndim < 2)
      raise_value_error(std::string(what) + " has shape " + shape.text() + " but must be " +
                        (square ? "(..., n, n)" : "(..., m, n)"));
    m.batch = shape.head(shape.ndim - 2);
  }
  m.dtype = m.first().dtype;
  if (square) check_square(m, what);
  return m;
}

void check_square(const Matrices& A, const char* what) {
  for (const Array& a : A.arrays)
    if (a.shape[a.ndim() - 1] != a.shape[a.ndim() - 2])
      raise_value_error(std::string(what) + " has shape " + a.shape.text() + " but must be " +
                        (A.ragged ? "(n, n), as every item of a list" : "(..., n, n)"));
}

Matrices working_copy(const Matrices& A, const Wanted& wanted, const Shape* batch) {
  Matrices W;
  W.ragged = A.ragged, W.dtype = wanted.dtype, W.batch = batch ? *batch : A.batch;
  bool row_major = !wanted.must_be_columns;
  Wanted w = wanted;
  if (A.ragged) {  // one orientation for all
    bool all_rows = true;
    for (const Array& a : A.arrays) {
      const Layout layout = layout_of(a);
      if (a.shape.product() > 1) all_rows = all_rows && layout.usable && layout.row_major;
    }
    if (!all_rows) row_major = false, w.copies = Orientation::Columns;
  }
  const auto shape = [&](const Array& a) { return A.ragged || !batch ? a.shape : batch->with({A.rows(), A.cols()}); };
  std::vector<const Array*> places = pointers_to(A.arrays);
  for (const Array*& place : places)
    if (!can_stay(*place, w, shape(*place), row_major)) place = nullptr;
  leave_shared(places, {});
  // copies lie as those do that stay
  if (std::ranges::any_of(places, [](auto p) { return p != nullptr; }))
    w.copies = row_major ? Orientation::Kept : Orientation::Columns;
  for (std::size_t i = 0; i < places.size(); ++i)
    W.arrays.push_back(places[i] ? *places[i] : copy_for(A.arrays[i], w, shape(A.arrays[i])));
  return W;
}

Operand operand_of(const Matrices& A, Queue& q) {
  return A.ragged ? ragged_operand(A.arrays, q) : operand_of(A.first(), layout_of(A.first()));
}

bool same_memory(const Matrices& A, const Matrices& B) {
  for (std::size_t i = 0; i < A.arrays.size(); ++i)
    if (A.arrays[i].data != B.arrays[i].data) return false;
  return true;
}

Integers::Integers(const Matrices& like, index_t size) : on_device(like.first().device != on_host), size(size) {
  if (on_device)
    device = like.kind().empty(like.first(), Dtype::I32, {std::max<index_t>(size, 1)});
  else
    host.resize(std::size_t(std::max<index_t>(size, 1)));
}

std::vector<int> Integers::fetch(Queue& q) const {
  if (!on_device) return {host.begin(), host.begin() + size};
  std::vector<int> values(static_cast<std::size_t>(size));
  without_gil([&] { copy(q, static_cast<const int*>(device.data), host_queue(), values.data(), size); });
  return values;
}

nb::object Integers::reveal(const Matrices& like, const Shape& shape) const {
  if (on_device) return like.kind().call("shaped", device.object, size, shape.tuple());
  Array a = numpy_kind().empty(like.first(), Dtype::I32, shape);
  std::copy_n(host.data(), size, static_cast<int*>(a.data));
  return like.kind().call("from_numpy", a.object, like.first().object);
}

std::optional<Array> look_at_out(nb::handle out, const Array& like, const Shape& shape, Dtype d) {
  if (!out.is_valid() || out.is_none()) return {};
  if (!is_array(out)) raise_type_error(std::string("out is a ") + nb::inst_name(out).c_str() + " but must be an array");
  Array o = look_at(out, "out");
  check_same_place(like, "A", o, "out");
  if (o.shape == shape && o.dtype == d && o.writable) return o;
  std::string dtype = name_of(o.dtype), why;
  if (o.kind->is_numpy() && !o.writable) {  // o may be a copy
    nb::object given = out.attr("dtype");
    dtype = nb::str(given).c_str();
    if (!nb::cast<bool>(out.attr("flags").attr("writeable")))
      why = " and is read-only";
    else if (!nb::cast<bool>(given.attr("isnative")))
      why = " and is in the other byte order";
    else if (!o.from_integers)
      why = " and is not aligned";
  } else if (!o.writable) {
    why = o.kind->immutable() ? " and is read-only" : " and is conjugated or negated lazily";
  }
  raise_value_error("out has shape " + o.shape.text() + " and dtype " + dtype + why +
                    " but must be writable, of shape " + shape.text() + " and dtype " + name_of(d));
}

void check_out(nb::handle out, const Matrices& A) {
  if (A.ragged && out.is_valid() && !out.is_none()) raise_value_error("out must be None for a list of arrays");
}

std::vector<Array> look_at_rhs(nb::handle b, const Matrices& A) {
  std::vector<Array> all;
  if (!A.ragged) {
    all.push_back(look_at(b, "b"));
    check_same_place(A.first(), "A", all[0], "b");
    return all;
  }
  if (!is_list(b) || nb::len(b) != A.arrays.size())
    raise_value_error("b must be a list of " + std::to_string(A.arrays.size()) + " arrays, as A is");
  for (nb::handle item : nb::borrow<nb::iterable>(b)) {
    const std::string name = "b[" + std::to_string(all.size()) + "]";
    all.push_back(look_at(item, name.c_str()));
    check_same_place(A.first(), "A", all.back(), name.c_str());
  }
  return all;
}

Dtype common_dtype(const Matrices& A, const std::vector<Array>& b) {
  Dtype d = A.dtype;
  for (const Array& a : b) d = promoted(d, a.dtype);
  return d;
}

Shape batch_of_rhs(const std::vector<Array>& b, const Matrices& A) {
  return A.ragged ? A.batch : shape_of_rhs(b[0].shape, A.batch, A.rows()).batch;
}

Rhs prepare_rhs(const std::vector<Array>& b, const Matrices& A, Queue& q, const RhsOptions& options) {
  Rhs r;
  r.ragged = A.ragged;
  check_out(options.out, A);
  std::vector<RhsShape> shapes;
  std::optional<Array> out;
  std::vector<const Array*> places;  // where solutions can be computed as they lie, or null
  for (std::size_t i = 0; i < b.size(); ++i) {
    check_rhs_dtype(b[i], A.dtype, options.promote);
    const RhsShape s = A.ragged ? shape_of_rhs(b[i].shape, Shape(), A.arrays[i].shape[0])
                                : shape_of_rhs(b[i].shape, A.batch, A.rows());
    if (A.ragged && s.batch.ndim)
      raise_value_error("b[" + std::to_string(i) + "] has shape " + b[i].shape.text() +
                        " but must have one or two dimensions");
    out = look_at_out(options.out, b[i], s.all, A.dtype);
    const Array* place = out ? &*out : options.overwrite ? &b[i] : nullptr;
    places.push_back(place && fits(*place, A.dtype, s.all, s.vector) ? place : nullptr);
    shapes.push_back(s);
    r.batch = A.ragged ? A.batch : s.batch;
  }
  std::vector<const Array*> others = pointers_to(A.arrays);
  const bool moves = out && !same_entries(*out, b[0]);
  if (moves) others.push_back(&b[0]);
  leave_shared(places, others);
  for (std::size_t i = 0; i < b.size(); ++i) {
    if (places[i] && moves) places[i]->kind->assign(*places[i], b[i]);
    r.X.push_back(places[i] ? *places[i] : b[i].kind->copy(b[i], A.dtype, shapes[i].all, !shapes[i].vector));
  }
  if (out && !places[0]) r.out.push_back(*out);
  std::vector<Array> columns;
  for (std::size_t i = 0; i < b.size(); ++i) {
    if (options.conj) r.X[i].kind->conjugate(r.X[i], q);
    columns.push_back(shapes[i].vector ? as_column(r.X[i]) : r.X[i]);
  }
  r.operand = A.ragged ? ragged_operand(columns, q) : operand_of(columns[0], layout_of(columns[0]));
  return r;
}

Matrices results_like(const Matrices& A, bool row_major, bool nan) {
  const Kind& kind = A.kind();
  std::optional<Array> entry;
  if (nan) entry = kind.look_at(kind.call("nan", A.first().object), "nan");
  Matrices X = A;
  for (Array& a : X.arrays)
    a = entry ? kind.copy(*entry, A.dtype, a.shape, !row_major) : kind.empty(a, A.dtype, a.shape, !row_major);
  return X;
}

void check_batch(const Rhs& r, const Operand& factor, const Matrices& A) {
  if (factor.form == Operand::Form::Strided && factor.count != r.batch.product())
    raise_value_error("b has the batch " + r.batch.text() + " but must have that of the factor, " + A.batch.text());
}

nb::object Rhs::finish(const Matrices& A, Queue& q, bool conj) {
  const Kind& kind = A.kind();
  if (conj)
    for (Array& x : X) kind.conjugate(x, q);
  kind.complete(q);
  if (!out.empty()) {
    kind.assign(out[0], X[0]);
    return out[0].object;
  }
  if (!ragged) return kind.reveal(X[0]);
  nb::list all;
  for (Array& x : X) all.append(kind.reveal(x));
  return all;
}

nb::object reveal_values(const Array& values, const Matrices& A, Queue& q) {
  const Kind& kind = A.kind();
  kind.complete(q);
  if (kind.is_numpy() && values.ndim() == 0) return values.object[nb::tuple()];
  return kind.reveal(values);
}

void raise_failure(const char* error, const std::vector<int>& info, const Matrices& A) {
  for (std::size_t i = 0; i < info.size(); ++i) {
    if (info[i] == 0) continue;
    nb::object item = nb::none();
    if (A.batch.ndim > 0) {
      Shape at = A.batch;
      index_t rest = index_t(i);
      for (int d = A.batch.ndim - 1; d >= 0; --d) at[d] = rest % A.batch[d], rest /= A.batch[d];
      item = at.tuple();
    }
    nb::object type = nb::module_::import_("trifactor._errors").attr(error);
    nb::object value = type(info[i], item);
    PyErr_SetObject(type.ptr(), value.ptr());
    throw nb::python_error();
  }
}

}  // namespace trifactor::python
