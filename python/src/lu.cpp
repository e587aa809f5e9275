#include "lu.hpp"
#include "docs.hpp"

namespace trifactor::python {

namespace {

Op op_of(nb::handle trans) {
  if (nb::isinstance<nb::str>(trans)) {
    const auto name = nb::cast<std::string>(trans);
    if (name == "N") return Op::None;
    if (name == "T") return Op::Transpose;
    if (name == "H" || name == "C") return Op::ConjTranspose;
  } else if (nb::object index = nb::steal(PyNumber_Index(trans.ptr())); index.is_valid()) {
    const long value = PyLong_AsLong(index.ptr());
    if (value == 0) return Op::None;
    if (value == 1) return Op::Transpose;
    if (value == 2) return Op::ConjTranspose;
  }
  PyErr_Clear();
  raise_value_error("trans = " + nb::cast<std::string>(nb::repr(trans)) +
                    " must be 0 or 'N' (A x = b), 1 or 'T' (A^T x = b), or 2 or 'H' (A^H x = b)");
}

}  // namespace

LU::LU(const Matrices& A, bool overwrite_a, bool check, bool transpose_in_place) : check_(check) {
  LU_ = working_copy(A, {.dtype = A.dtype,
                         .copies = transpose_in_place ? Orientation::Kept : Orientation::Columns,
                         .overwrite = overwrite_a,
                         .must_be_columns = !transpose_in_place});
  Queue& q = LU_.queue();
  operand_ = operand_of(LU_, q);
  transposed_ = operand_.row_major;
  pivots_ = Integers(LU_, LU_.count() * pivot_stride());
  info_ = Integers(LU_, LU_.count());
  with_scalar(LU_.dtype, [&]<class T>(T) {
    without_gil(
        [&] { with_view<T>(operand_, [&](auto view) { trifactor::lu(q, view, pivots_.view(), info_.view()); }); });
  });
  LU_.kind().complete(q);
}

void LU::raise_if_singular(Queue& q) const {
  if (!check_ || known_good_) return;
  raise_failure("Singular", info_.fetch(q), LU_);
  known_good_ = true;
}

void LU::solve_prepared(Queue& q, Op op, Rhs& r) const {
  check_batch(r, operand_, LU_);
  if (transposed_) op = Op::Transpose;  // the memory holds A^T
  with_scalar(LU_.dtype, [&]<class T>(T) {
    without_gil([&] {
      const ArrayView<const int> info = check_ ? ArrayView<const int>() : info_.view();
      with_views<T>(operand_, r.operand, [&](auto F, auto X) { lu_solve(q, op, F, pivots_.view(), X, info); });
    });
  });
}

nb::object LU::solve(nb::handle b, nb::handle trans, bool overwrite_b, nb::handle out) const {
  const Op op = op_of(trans);
  check_square(LU_, "A");
  Queue& q = LU_.queue();
  raise_if_singular(q);
  Rhs r = prepare_rhs(look_at_rhs(b, LU_), LU_, q, {.overwrite = overwrite_b, .out = out});
  solve_prepared(q, op, r);
  return r.finish(LU_, q, false);
}

nb::object LU::slogdet() const {
  check_square(LU_, "A");
  Queue& q = LU_.queue();
  const Kind& kind = LU_.kind();
  const Array sign = kind.empty(LU_.first(), LU_.dtype, LU_.batch);
  const Array log_abs = kind.empty(LU_.first(), real_of(LU_.dtype), LU_.batch);
  with_scalar(LU_.dtype, [&]<class T>(T) {
    without_gil([&] {
      with_view<T>(operand_, [&](auto F) {
        lu_det(q, F, pivots_.view(), ArrayView<T>(static_cast<T*>(sign.data)),
               ArrayView<real_t<T>>(static_cast<real_t<T>*>(log_abs.data)));
      });
    });
  });
  nb::object result = nb::module_::import_("trifactor._results").attr("SlogdetResult");
  return result(reveal_values(sign, LU_, q), reveal_values(log_abs, LU_, q));
}

nb::object LU::inverse(nb::handle out) const {
  check_square(LU_, "A");
  Queue& q = LU_.queue();
  raise_if_singular(q);
  std::vector<Array> outs;
  check_out(out, LU_);
  if (auto o = look_at_out(out, LU_.first(), LU_.first().shape, LU_.dtype)) outs.push_back(std::move(*o));
  std::vector<const Array*> places = pointers_to(outs);
  leave_shared(places, pointers_to(LU_.arrays));
  const Layout out_layout = places.empty() || !places[0] ? Layout{} : layout_of(outs[0]);
  Matrices X = LU_;
  if (check_ && out_layout.usable && out_layout.row_major == operand_.row_major)
    X.arrays = std::move(outs), outs.clear();
  else
    X = results_like(LU_, operand_.row_major, !check_);
  const Operand x = operand_of(X, q);
  with_scalar(LU_.dtype, [&]<class T>(T) {
    without_gil([&] {
      const ArrayView<const int> info = check_ ? ArrayView<const int>() : info_.view();
      with_views<T>(operand_, x, [&](auto F, auto Y) { lu_inverse(q, F, pivots_.view(), Y, info); });
    });
  });
  Rhs r{.X = X.arrays, .out = outs, .ragged = X.ragged, .batch = X.batch, .operand = {}};
  return r.finish(X, q, false);
}

nb::object LU::part(const char* method) const {
  const Kind& kind = LU_.kind();
  auto one = [&](const Array& a) { return kind.call(method, kind.reveal(a)); };
  if (!LU_.ragged) return one(LU_.first());
  nb::list all;
  for (const Array& a : LU_.arrays) all.append(one(a));
  return all;
}

nb::object LU::row_permutation() const {
  Queue& q = LU_.queue();
  const std::vector<int> pivots = pivots_.fetch(q);
  auto permutation = [&](index_t item, index_t m, index_t k, int* p) {
    for (index_t i = 0; i < m; ++i) p[i] = int(i);
    const int* mine = pivots.data() + item * pivot_stride();
    for (index_t i = 0; i < k; ++i) std::swap(p[i], p[mine[i] - 1]);
  };
  auto reveal = [&](const Array& a) { return LU_.kind().call("from_numpy", a.object, LU_.first().object); };
  if (!LU_.ragged) {
    const index_t m = LU_.rows(), k = std::min(m, LU_.cols());
    Array p = numpy_kind().empty(LU_.first(), Dtype::I32, LU_.batch.with({m}));
    for (index_t i = 0; i < LU_.count(); ++i) permutation(i, m, k, static_cast<int*>(p.data) + i * m);
    return reveal(p);
  }
  nb::list all;
  for (std::size_t i = 0; i < LU_.arrays.size(); ++i) {
    const Shape& s = LU_.arrays[i].shape;
    Array p = numpy_kind().empty(LU_.first(), Dtype::I32, {s[0]});
    permutation(index_t(i), s[0], std::min(s[0], s[1]), static_cast<int*>(p.data));
    all.append(reveal(p));
  }
  return all;
}

void bind_lu(nb::module_& m) {
  nb::class_<LU>(m, "LU", nb::sig("class LU(typing.Generic[Array])"), nb::is_generic(), docs::LU)
      .def("solve", &LU::solve, nb::arg("b"), nb::arg("trans") = 0, nb::kw_only(), nb::arg("overwrite_b") = false,
           nb::arg("out") = nb::none(),
           nb::sig("def solve(self, b: typing.Any, trans: int | str = 0, *, overwrite_b: bool = False, "
                   "out: Array | None = None) -> Array"),
           docs::LU_solve)
      .def("slogdet", &LU::slogdet, nb::sig("def slogdet(self) -> SlogdetResult"), docs::LU_slogdet)
      .def(
          "log_det", [](const LU& F) -> nb::object { return F.slogdet().attr("logabsdet"); },
          nb::sig("def log_det(self) -> typing.Any"), docs::LU_log_det)
      .def("inverse", &LU::inverse, nb::kw_only(), nb::arg("out") = nb::none(),
           nb::sig("def inverse(self, *, out: Array | None = None) -> Array"), docs::LU_inverse)
      .def_prop_ro("L", &LU::L, nb::sig("def L(self) -> Array"), docs::LU_L)
      .def_prop_ro("U", &LU::U, nb::sig("def U(self) -> Array"), docs::LU_U)
      .def_prop_ro("p", &LU::row_permutation, nb::sig("def p(self) -> typing.Any"), docs::LU_p)
      .def_prop_ro("info", &LU::info, nb::sig("def info(self) -> typing.Any"), docs::LU_info)
      .def_prop_ro(
          "dtype", [](const LU& F) { return name_of(F.matrices().dtype); }, "The name of A's dtype: 'float64'.");
  m.def(
      "lu",
      [](nb::handle A, bool overwrite_a, bool check) {
        return new LU(look_at_matrices(A, "A", false), overwrite_a, check);
      },
      nb::arg("A"), nb::kw_only(), nb::arg("overwrite_a") = false, nb::arg("check") = true,
      nb::rv_policy::take_ownership,
      nb::sig("def lu(A: Array, *, overwrite_a: bool = False, check: bool = True) -> LU[Array]"), docs::lu);
}

}  // namespace trifactor::python
