#include "cholesky.hpp"
#include "docs.hpp"

#include <cstring>

namespace trifactor::python {

namespace {

/// Zeros in the triangle of a square matrix on the host that does not hold the factor.
template <class T>
void clear(T* data, index_t ld, index_t n, Uplo kept) {
  for (index_t j = 0; j < n; ++j)
    kept == Uplo::Lower ? std::fill_n(data + j * ld, j, T{}) : std::fill_n(data + j * ld + j + 1, n - j - 1, T{});
}

nb::list revealed(const Matrices& A, auto f) {
  nb::list all;
  for (const Array& a : A.arrays) all.append(f(a));
  return all;
}

}  // namespace

Cholesky::Cholesky(const Matrices& A, bool lower, bool overwrite_a, bool check, const ShiftOptions& shift)
    : lower_(lower), checked_(check) {
  // A copy of a complex matrix is column-major, so that nothing is to be conjugated later.
  L_ = working_copy(A, {.dtype = A.dtype,
                        .copies = is_complex(A.dtype) ? Orientation::Columns : Orientation::Kept,
                        .overwrite = overwrite_a});
  Queue& q = L_.queue();
  operand_ = operand_of(L_, q);
  conj_ = operand_.row_major && is_complex(L_.dtype);
  info_ = Integers(L_, L_.count());
  shifted_ = shift.tries > 0;
  if (shifted_) shift_ = Integers(L_, 2 * L_.count());
  if (L_.first().device == on_host && !same_memory(A, L_)) clear_other_triangle();
  with_scalar(L_.dtype, [&]<class T>(T) {
    without_gil([&] {
      CholeskyOptions options{.shift_tries = shift.tries, .shift_first = shift.first, .shift_growth = shift.growth};
      if (shifted_) options.shift_used = reinterpret_cast<double*>(shift_.data());
      with_view<T>(operand_, [&](auto view) { trifactor::cholesky(q, uplo(), view, info_.view(), options); });
    });
  });
  if (check)
    raise_failure("NotPositiveDefinite", info_.fetch(q), L_);
  else
    L_.kind().complete(q);
}

void Cholesky::clear_other_triangle() {
  with_scalar(L_.dtype, [&]<class T>(T) {
    without_gil([&] {
      for (const Array& a : L_.arrays) {
        const Operand o = operand_of(a, layout_of(a));
        for (index_t i = 0; i < o.count; ++i) clear(static_cast<T*>(o.data) + i * o.stride, o.ld, o.rows, uplo());
      }
    });
  });
  clean_ = true;
}

nb::object Cholesky::solve(nb::handle b, bool overwrite_b, nb::handle out) const {
  Queue& q = L_.queue();
  Rhs r = prepare_rhs(look_at_rhs(b, L_), L_, q, {.overwrite = overwrite_b, .conj = conj_, .out = out});
  check_batch(r, operand_, L_);
  with_scalar(L_.dtype, [&]<class T>(T) {
    without_gil([&] {
      const ArrayView<const int> info = checked_ ? ArrayView<const int>() : info_.view();
      with_views<T>(operand_, r.operand, [&](auto L, auto X) { cholesky_solve(q, uplo(), L, X, info); });
    });
  });
  return r.finish(L_, q, conj_);
}

nb::object Cholesky::log_det() const {
  Queue& q = L_.queue();
  const Array values = L_.kind().empty(L_.first(), real_of(L_.dtype), L_.batch);
  with_scalar(L_.dtype, [&]<class T>(T) {
    without_gil([&] {
      with_view<T>(operand_, [&](auto L) {
        cholesky_log_det(q, uplo(), L, ArrayView<real_t<T>>(static_cast<real_t<T>*>(values.data)), info_.view());
      });
    });
  });
  return reveal_values(values, L_, q);
}

nb::object Cholesky::inverse() const {
  Queue& q = L_.queue();
  const Matrices X = results_like(L_, operand_.row_major, !checked_);
  const Operand x = operand_of(X, q);
  with_scalar(L_.dtype, [&]<class T>(T) {
    without_gil(
        [&] { with_views<T>(operand_, x, [&](auto L, auto Y) { cholesky_inverse(q, uplo(), L, Y, info_.view()); }); });
  });
  Rhs r{.X = X.arrays, .out = {}, .ragged = X.ragged, .batch = X.batch, .operand = {}};
  return r.finish(X, q, false);
}

nb::object Cholesky::factor(bool lower) {
  const Kind& kind = L_.kind();
  if (!clean_ && !kind.immutable()) {
    if (L_.first().device == on_host)
      clear_other_triangle();
    else
      for (const Array& a : L_.arrays) kind.call("clear", a.object, lower_);
    clean_ = true;
  }
  auto one = [&](const Array& a) {
    nb::object x = kind.reveal(a);
    if (!clean_) x = kind.call("triangle", x, lower_);  // of an array that must not change
    return lower == lower_ ? x : kind.call("adjoint", x);
  };
  return L_.ragged ? nb::object(revealed(L_, one)) : one(L_.first());
}

nb::object Cholesky::shift() const {
  if (!shifted_) return nb::float_(0.0);
  const std::vector<int> raw = shift_.fetch(L_.queue());
  Array a = numpy_kind().empty(L_.first(), Dtype::F64, L_.batch);
  std::memcpy(a.data, raw.data(), raw.size() * sizeof(int));
  return a.ndim() == 0 ? a.object[nb::tuple()] : a.object;
}

namespace {

nb::object shape_of(const Matrices& A) {
  return A.ragged ? nb::object(revealed(A, [](const Array& a) { return a.shape.tuple(); }))
                  : nb::object(A.first().shape.tuple());
}

}  // namespace

void bind_cholesky(nb::module_& m) {
  nb::class_<Cholesky>(m, "Cholesky", nb::sig("class Cholesky(typing.Generic[Array])"), nb::is_generic(),
                       docs::Cholesky)
      .def("solve", &Cholesky::solve, nb::arg("b"), nb::kw_only(), nb::arg("overwrite_b") = false,
           nb::arg("out") = nb::none(),
           nb::sig("def solve(self, b: typing.Any, *, overwrite_b: bool = False, out: Array | None = None) -> Array"),
           docs::Cholesky_solve)
      .def("log_det", &Cholesky::log_det, nb::sig("def log_det(self) -> typing.Any"), docs::Cholesky_log_det)
      .def("inverse", &Cholesky::inverse, nb::sig("def inverse(self) -> Array"), docs::Cholesky_inverse)
      .def_prop_ro(
          "L", [](Cholesky& F) { return F.factor(true); }, nb::sig("def L(self) -> Array"), docs::Cholesky_L)
      .def_prop_ro(
          "U", [](Cholesky& F) { return F.factor(false); }, nb::sig("def U(self) -> Array"), docs::Cholesky_U)
      .def_prop_ro("lower", &Cholesky::lower, "Which triangle of A was read, and holds the factor.")
      .def_prop_ro("info", &Cholesky::info, nb::sig("def info(self) -> typing.Any"), docs::Cholesky_info)
      .def_prop_ro("shift", &Cholesky::shift, nb::sig("def shift(self) -> typing.Any"), docs::Cholesky_shift)
      .def_prop_ro(
          "shape", [](const Cholesky& F) { return shape_of(F.matrices()); }, nb::sig("def shape(self) -> typing.Any"),
          "The shape of A; of a list, that of each item.")
      .def_prop_ro(
          "dtype", [](const Cholesky& F) { return name_of(F.matrices().dtype); }, "The name of A's dtype: 'float64'.");
  m.def(
      "cholesky",
      [](nb::handle A, bool lower, bool overwrite_a, bool check, int tries, double first, double growth) {
        return new Cholesky(look_at_matrices(A, "A", true), lower, overwrite_a, check, {tries, first, growth});
      },
      nb::arg("A"), nb::arg("lower") = true, nb::kw_only(), nb::arg("overwrite_a") = false, nb::arg("check") = true,
      nb::arg("shift_tries") = 0, nb::arg("shift_first") = 0.0, nb::arg("shift_growth") = 10.0,
      nb::rv_policy::take_ownership,
      nb::sig("def cholesky(A: Array, lower: bool = True, *, overwrite_a: bool = False, check: bool = True, "
              "shift_tries: int = 0, shift_first: float = 0.0, shift_growth: float = 10.0) -> Cholesky[Array]"),
      docs::cholesky);
}

}  // namespace trifactor::python
