// solve, inv and slogdet: factor and use in one call.
#include "solve.hpp"
#include "cholesky.hpp"
#include "docs.hpp"
#include "lu.hpp"

namespace trifactor::python {

namespace {

enum class Assume { Positive, General, Find };

Assume assume_of(nb::handle assume_a) {
  if (assume_a.is_none()) return Assume::Find;
  if (nb::isinstance<nb::str>(assume_a)) {
    const auto name = nb::cast<std::string>(assume_a);
    if (name == "pos" || name == "positive definite") return Assume::Positive;
    if (name == "gen" || name == "general") return Assume::General;
  }
  raise_value_error("assume_a = " + nb::cast<std::string>(nb::repr(assume_a)) + " must be 'pos', 'gen' or None");
}

/// By its values, exactly, with a positive diagonal.
template <class T>
bool looks_positive(const T* A, index_t ld, index_t n) {
  constexpr index_t tile = 32;  // a tile and its mirror image stay in the first cache
  auto conj = [](T x) {
    if constexpr (ComplexScalar<T>)
      return std::conj(x);
    else
      return x;
  };
  for (index_t i = 0; i < n; ++i)
    if (!(std::real(A[i + i * ld]) > 0)) return false;
  for (index_t j0 = 0; j0 < n; j0 += tile)
    for (index_t i0 = j0; i0 < n; i0 += tile)
      for (index_t j = j0; j < std::min(j0 + tile, n); ++j)
        for (index_t i = std::max(i0, j); i < std::min(i0 + tile, n); ++i)
          if (A[i + j * ld] != conj(A[j + i * ld])) return false;
  return true;
}

bool looks_positive(const Matrices& A) {
  if (A.first().device != on_host) return false;
  return with_scalar(A.dtype, [&]<class T>(T) {
    nb::gil_scoped_release release;
    for (const Array& a : A.arrays) {
      const Layout layout = layout_of(a);
      if (!layout.usable) return false;
      const Operand o = operand_of(a, layout);
      for (index_t i = 0; i < o.count; ++i)
        if (!looks_positive(static_cast<const T*>(o.data) + i * o.stride, o.ld, o.rows)) return false;
    }
    return true;
  });
}

struct Choices {
  bool lower = true, overwrite_a = false, overwrite_b = false, check = true;
  nb::handle out = {};
};

/// Both factorizations work in a copy of A, or in A, and have as many items as there are right-hand sides, or one.
struct Prepared {
  Matrices W;
  Operand a;
  Rhs r;
  Integers info;
  bool together;  // factor and solve are one call
};

/// The batch that a copy of A is spread to, where that is not A's own.
const Shape* spread(const Matrices& A, const std::vector<Array>& b, Shape& batch) {
  if (A.ragged || A.batch.ndim == 0 || A.batch.product() == 1) return nullptr;
  batch = batch_of_rhs(b, A);
  return batch == A.batch ? nullptr : &batch;
}

Prepared prepare(const Matrices& A, const std::vector<Array>& b, Queue& q, const Choices& o, const Wanted& wanted,
                 bool conj_rows) {
  Prepared p;
  Shape batch;
  p.W = working_copy(A, wanted, spread(A, b, batch));
  p.a = operand_of(p.W, q);
  const bool conj = conj_rows && p.a.row_major && is_complex(p.W.dtype);
  p.r = prepare_rhs(b, p.W, q, {.overwrite = o.overwrite_b, .conj = conj, .out = o.out, .promote = true});
  p.info = Integers(p.W, p.W.count());
  p.together = p.a.form == p.r.operand.form;
  return p;
}

nb::object solve_positive(const Matrices& A, const std::vector<Array>& b, Dtype dtype, const Choices& o, bool may_fail,
                          bool& failed) {
  Queue& q = A.queue();
  Prepared p = prepare(A, b, q, o,
                       {.dtype = dtype,
                        .copies = is_complex(dtype) ? Orientation::Columns : Orientation::Kept,
                        .overwrite = o.overwrite_a && !may_fail,
                        .scratch = true},
                       true);
  const bool conj = p.a.row_major && is_complex(dtype);
  const Uplo uplo = o.lower != p.a.row_major ? Uplo::Lower : Uplo::Upper;
  with_scalar(dtype, [&]<class T>(T) {
    without_gil([&] {
      if (p.together)
        return with_views<T>(p.a, p.r.operand,
                             [&](auto M, auto X) { cholesky_factor_solve(q, uplo, M, X, p.info.view()); });
      with_view<T>(p.a, [&](auto M) { trifactor::cholesky(q, uplo, M, p.info.view()); });
      with_views<T>(p.a, p.r.operand, [&](auto M, auto X) { cholesky_solve(q, uplo, M, X, p.info.view()); });
    });
  });
  if (o.check || may_fail) {
    const std::vector<int> info = p.info.fetch(q);
    failed = false;
    for (int i : info) failed = failed || i != 0;
    if (failed && may_fail) return nb::none();
    raise_failure("NotPositiveDefinite", info, p.W);
  }
  return p.r.finish(A, q, conj);
}

nb::object solve_general(const Matrices& A, const std::vector<Array>& b, Dtype dtype, const Choices& o) {
  Queue& q = A.queue();
  Prepared p = prepare(
      A, b, q, o, {.dtype = dtype, .copies = Orientation::Columns, .overwrite = o.overwrite_a, .scratch = true}, false);
  const Op op = p.a.row_major ? Op::Transpose : Op::None;  // a row-major A that is overwritten is seen as A^T
  Integers pivots(p.W, p.W.count() * p.a.rows);
  with_scalar(dtype, [&]<class T>(T) {
    without_gil([&] {
      if (p.together && op == Op::None)
        return with_views<T>(p.a, p.r.operand,
                             [&](auto M, auto X) { lu_factor_solve(q, M, pivots.view(), X, p.info.view()); });
      with_view<T>(p.a, [&](auto M) { trifactor::lu(q, M, pivots.view(), p.info.view()); });
      with_views<T>(p.a, p.r.operand, [&](auto M, auto X) { lu_solve(q, op, M, pivots.view(), X, p.info.view()); });
    });
  });
  if (o.check) raise_failure("Singular", p.info.fetch(q), p.W);
  return p.r.finish(A, q, false);
}

nb::object solve(nb::handle A, nb::handle b, nb::handle assume_a, const Choices& o) {
  Assume assume = assume_of(assume_a);
  const Matrices M = look_at_matrices(A, "A", true);
  const std::vector<Array> rhs = look_at_rhs(b, M);
  check_out(o.out, M);
  const Dtype dtype = common_dtype(M, rhs);
  bool failed = true;
  if (assume == Assume::Find) {
    if (looks_positive(M)) {  // an attempt that may fail leaves A and b as they were
      Choices attempt = o;
      attempt.overwrite_b = false, attempt.out = {};
      nb::object x = solve_positive(M, rhs, dtype, attempt, true, failed);
      if (!failed && !o.out.is_none()) {
        const Array X = look_at(x, "x");
        const std::optional<Array> out = look_at_out(o.out, X, X.shape, X.dtype);
        out->kind->assign(*out, X);
        return out->object;
      }
      if (!failed) return x;
    }
    assume = Assume::General;
  }
  return assume == Assume::Positive ? solve_positive(M, rhs, dtype, o, false, failed) : solve_general(M, rhs, dtype, o);
}

nb::object inv(nb::handle A, nb::handle assume_a, bool lower, bool overwrite_a, nb::handle out) {
  const Assume assume = assume_of(assume_a);
  const Matrices M = look_at_matrices(A, "A", true);
  if (assume == Assume::Positive && out.is_none()) return Cholesky(M, lower, overwrite_a, true).inverse();
  if (assume == Assume::Positive) raise_value_error("out must be None where assume_a = 'pos'");
  return LU(M, overwrite_a, true, true).inverse(out);
}

nb::object slogdet(nb::handle A, nb::handle assume_a, bool lower, bool overwrite_a) {
  const Assume assume = assume_of(assume_a);
  const Matrices M = look_at_matrices(A, "A", true);
  if (assume != Assume::Positive) return LU(M, overwrite_a, true, true).slogdet();
  const Cholesky F(M, lower, overwrite_a, true);
  nb::object log_det = F.log_det();
  nb::object ones = M.kind().call("ones_like", log_det);
  return nb::module_::import_("trifactor._results").attr("SlogdetResult")(ones, log_det);
}

}  // namespace

void bind_solve(nb::module_& m) {
  m.def(
      "solve",
      [](nb::handle A, nb::handle b, nb::handle assume_a, bool lower, bool overwrite_a, bool overwrite_b,
         nb::handle out, bool check) {
        return solve(A, b, assume_a, {lower, overwrite_a, overwrite_b, check, out});
      },
      nb::arg("A"), nb::arg("b"), nb::kw_only(), nb::arg("assume_a") = nb::none(), nb::arg("lower") = true,
      nb::arg("overwrite_a") = false, nb::arg("overwrite_b") = false, nb::arg("out") = nb::none(),
      nb::arg("check") = true,
      nb::sig("def solve(A: Array, b: typing.Any, *, assume_a: str | None = None, lower: bool = True, "
              "overwrite_a: bool = False, overwrite_b: bool = False, out: Array | None = None, check: bool = True) -> "
              "Array"),
      docs::solve);
  m.def("inv", &inv, nb::arg("A"), nb::kw_only(), nb::arg("assume_a") = "gen", nb::arg("lower") = true,
        nb::arg("overwrite_a") = false, nb::arg("out") = nb::none(),
        nb::sig("def inv(A: Array, *, assume_a: str | None = 'gen', lower: bool = True, overwrite_a: bool = False, "
                "out: Array | None = None) -> Array"),
        docs::inv);
  m.def(
      "slogdet", &slogdet, nb::arg("A"), nb::kw_only(), nb::arg("assume_a") = "gen", nb::arg("lower") = true,
      nb::arg("overwrite_a") = false,
      nb::sig(
          "def slogdet(A: typing.Any, *, assume_a: str | None = 'gen', lower: bool = True, overwrite_a: bool = False) "
          "-> SlogdetResult"),
      docs::slogdet);
}

}  // namespace trifactor::python
