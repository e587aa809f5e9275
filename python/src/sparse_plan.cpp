#include "sparse_plan.hpp"

namespace trifactor::python {

namespace {

/// A contiguous array of int32 or int64.
struct Indices {
  Py_buffer view;
  bool wide;
  explicit Indices(nb::handle x, const char* name) {
    if (PyObject_GetBuffer(x.ptr(), &view, PyBUF_ND | PyBUF_FORMAT)) throw nb::python_error();
    wide = view.itemsize == 8;
    if (view.ndim != 1 || !view.format || !std::strchr("ilq", *view.format) || view.format[1]) {
      PyBuffer_Release(&view);
      raise_type_error(std::string(name) + " must be a contiguous array of int32 or int64");
    }
  }
  Indices(const Indices&) = delete;
  ~Indices() { PyBuffer_Release(&view); }
  index_t size() const { return view.shape[0]; }
};

/// f(pattern) with 32-bit or 64-bit indices; both arrays have one width.
template <class F>
auto with_pattern(nb::handle start, nb::handle index, index_t n, bool by_rows, Stored stored, F f) {
  const Indices s(start, "indptr"), i(index, "indices");
  if (s.wide != i.wide) raise_type_error("indptr and indices must have one dtype");
  if (s.size() != n + 1)
    raise_value_error("indptr has " + std::to_string(s.size()) +
                      " entries but must have n + 1 = " + std::to_string(n + 1));
  auto call = [&]<class I>(I) {
    const Pattern<I> p{.rows = n,
                       .cols = n,
                       .start = static_cast<const I*>(s.view.buf),
                       .index = static_cast<const I*>(i.view.buf),
                       .compressed = by_rows ? Compressed::Rows : Compressed::Columns,
                       .stored = stored};
    if (i.size() < p.entries())
      raise_value_error("indices has " + std::to_string(i.size()) + " entries but indptr ends with " +
                        std::to_string(p.entries()));
    return without_gil([&] { return f(p); });
  };
  return s.wide ? call(std::int64_t{}) : call(std::int32_t{});
}

std::vector<index_t> to_vector(nb::handle permutation) {
  std::vector<index_t> p;
  if (!permutation.is_none())
    for (nb::handle e : nb::borrow<nb::iterable>(permutation)) p.push_back(nb::cast<index_t>(e));
  return p;
}

PlanObject analyze_pattern(nb::handle start, nb::handle index, index_t n, bool by_rows, const std::string& stored,
                           const std::string& ordering, nb::handle permutation, index_t expected,
                           const std::string& tuning) {
  AnalyzeOptions o;
  o.ordering = chosen<Ordering>("ordering", ordering,
                                {{"auto", Ordering::Auto},
                                 {"metis", Ordering::Metis},
                                 {"amd", Ordering::Amd},
                                 {"natural", Ordering::Natural},
                                 {"given", Ordering::Given}});
  o.permutation = to_vector(permutation), o.expected_factorizations = expected, o.duplicates = true, o.tuning = tuning;
  const Stored s =
      chosen<Stored>("stored", stored, {{"full", Stored::Full}, {"lower", Stored::Lower}, {"upper", Stored::Upper}});
  return {with_pattern(start, index, n, by_rows, s, [&](const auto& p) { return analyze(p, o); })};
}

LuPlanObject analyze_lu_pattern(nb::handle start, nb::handle index, index_t n, bool by_rows,
                                const std::string& ordering, nb::handle permutation) {
  AnalyzeLuOptions o;
  o.ordering = chosen<LuOrdering>("ordering", ordering,
                                  {{"colamd", LuOrdering::Colamd},
                                   {"amd", LuOrdering::Amd},
                                   {"natural", LuOrdering::Natural},
                                   {"given", LuOrdering::Given}});
  o.permutation = to_vector(permutation), o.duplicates = true;
  return {with_pattern(start, index, n, by_rows, Stored::Full, [&](const auto& p) { return analyze_lu(p, o); })};
}

const char* ordering_name(Ordering o) {
  switch (o) {
    case Ordering::Metis:
      return "metis";
    case Ordering::Amd:
      return "amd";
    case Ordering::Natural:
      return "natural";
    case Ordering::Given:
      return "given";
    default:
      return "auto";
  }
}

template <class P>
nb::object steps_of(const P& plan) {
  nb::dict d;
  for (const SparsePlan::Step& s : plan.steps()) d[s.name.c_str()] = s.seconds;
  return d;
}

}  // namespace

void bind_plans(nb::module_& m) {
  nb::class_<PlanObject>(m, "SparsePlan", "How matrices with one pattern are factored by sparse Cholesky.")
      .def_prop_ro(
          "n", [](const PlanObject& p) { return p.plan->n(); }, "The order of the matrix.")
      .def_prop_ro(
          "entries", [](const PlanObject& p) { return p.plan->entries(); }, "Entries of the pattern.")
      .def_prop_ro(
          "factor_nonzeros", [](const PlanObject& p) { return p.plan->factor_nonzeros(); }, "Of L, with its diagonal.")
      .def_prop_ro(
          "flops", [](const PlanObject& p) { return p.plan->flops(); }, "Of a factorization, in real arithmetic.")
      .def_prop_ro(
          "fronts", [](const PlanObject& p) { return p.plan->fronts(); }, "How many dense blocks there are.")
      .def_prop_ro(
          "levels", [](const PlanObject& p) { return p.plan->levels(); }, "Of their tree.")
      .def_prop_ro(
          "ordering", [](const PlanObject& p) { return ordering_name(p.plan->ordering()); },
          "The ordering that was used.")
      .def_prop_ro(
          "note", [](const PlanObject& p) { return p.plan->note(); }, "What the caller should know; mostly empty.")
      .def_prop_ro(
          "permutation", [](const PlanObject& p) { return vector_of(p.plan->permutation(), "int64"); },
          nb::sig("def permutation(self) -> typing.Any"), "Column j of the reordered matrix is this column of A.")
      .def_prop_ro(
          "steps", [](const PlanObject& p) { return steps_of(*p.plan); },
          nb::sig("def steps(self) -> dict[str, float]"), "Seconds that each step of the analysis took.")
      .def("__str__", [](const PlanObject& p) { return p.plan->text(); });
  nb::class_<LuPlanObject>(m, "SparseLuPlan",
                           "In which order the columns of matrices with one pattern are eliminated by sparse LU.")
      .def_prop_ro(
          "n", [](const LuPlanObject& p) { return p.plan->n(); }, "The order of the matrix.")
      .def_prop_ro(
          "entries", [](const LuPlanObject& p) { return p.plan->entries(); }, "Entries of the pattern.")
      .def_prop_ro(
          "permutation", [](const LuPlanObject& p) { return vector_of(p.plan->column_permutation(), "int64"); },
          nb::sig("def permutation(self) -> typing.Any"), "Column j of A Q is this column of A.")
      .def_prop_ro(
          "steps", [](const LuPlanObject& p) { return steps_of(*p.plan); },
          nb::sig("def steps(self) -> dict[str, float]"), "Seconds that each step of the analysis took.")
      .def("__str__", [](const LuPlanObject& p) { return p.plan->text(); });
  m.def(
      "analyze", &analyze_pattern, nb::arg("indptr"), nb::arg("indices"), nb::arg("n"), nb::arg("by_rows"),
      nb::arg("stored"), nb::arg("ordering"), nb::arg("permutation").none(), nb::arg("expected_factorizations"),
      nb::arg("tuning"),
      nb::sig("def analyze(indptr: typing.Any, indices: typing.Any, n: int, by_rows: bool, stored: str, ordering: str, "
              "permutation: typing.Any, expected_factorizations: int, tuning: str) -> SparsePlan"));
  m.def("analyze_lu", &analyze_lu_pattern, nb::arg("indptr"), nb::arg("indices"), nb::arg("n"), nb::arg("by_rows"),
        nb::arg("ordering"), nb::arg("permutation").none(),
        nb::sig("def analyze_lu(indptr: typing.Any, indices: typing.Any, n: int, by_rows: bool, ordering: str, "
                "permutation: typing.Any) -> SparseLuPlan"));
}

}  // namespace trifactor::python
