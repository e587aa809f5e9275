// Sparse factors of all four scalars, each kind behind one type.
#include "sparse.hpp"
#include "sparse_solver.hpp"

#include <nanobind/stl/optional.h>

namespace trifactor::python {

namespace {

class CholeskyObject : public Solver {
 public:
  CholeskyObject(const PlanObject& plan, const std::string& dtype, int device, std::optional<std::uintptr_t> stream,
                 nb::handle owner, std::size_t max_device_bytes, const std::string& tuning)
      : Solver(dtype_named(dtype), plan.plan->n(), shared_queue(device, stream, owner)), plan_(plan.plan) {
    with_scalar(dtype_, [&]<class T>(T) {
      locked([&] {
        const SparseOptions options{.max_device_bytes = max_device_bytes, .tuning = tuning};
        factor_ = std::make_shared<SparseCholesky<T>>(queue_->queue, plan_, options);
        return 0;
      });
    });
  }
  ~CholeskyObject() {
    nb::gil_scoped_release release;
    const std::lock_guard lock(queue_->mutex);
    factor_.reset(), values_.reset(), staging_.reset();
  }

  void factor(nb::handle values, double shift) {
    const Values v = readable(values, plan_->entries());
    with_scalar(dtype_, [&]<class T>(T) { locked([&] { as<T>().factor(ready<T>(v), real_t<T>(shift)); }); });
  }

  nb::object solve(nb::handle b, const std::string& part) {
    const SparsePart p = chosen<SparsePart>("part", part,
                                            {{"A", SparsePart::All},
                                             {"P", SparsePart::Permute},
                                             {"L", SparsePart::Lower},
                                             {"LH", SparsePart::LowerAdjoint},
                                             {"Pt", SparsePart::PermuteBack}});
    return with_scalar(
        dtype_, [&]<class T>(T) -> nb::object { return on_copy<T>(b, [&](MatrixView<T> X) { as<T>().solve(X, p); }); });
  }

  nb::tuple solve_refined(nb::handle values, nb::handle b) {
    const Values v = readable(values, plan_->entries());
    return with_scalar(dtype_, [&]<class T>(T) {
      Refinement<T> done;
      nb::object x = on_copy<T>(b, [&](MatrixView<T> X) { done = as<T>().solve_refined(ready<T>(v), X); });
      return nb::make_tuple(x, done.steps, double(done.backward_error));
    });
  }

  double log_det() {
    return with_scalar(dtype_, [&]<class T>(T) { return locked([&] { return double(as<T>().log_det()); }); });
  }
  double rcond() {
    return with_scalar(dtype_, [&]<class T>(T) { return locked([&] { return double(as<T>().rcond()); }); });
  }
  nb::object diagonal() {
    return with_scalar(dtype_, [&]<class T>(T) -> nb::object {
      return vector_of(locked([&] { return as<T>().diagonal(); }), name_of(real_of(dtype_)));
    });
  }
  nb::tuple lower() {
    return with_scalar(dtype_, [&]<class T>(T) {
      const CompressedColumns<T> L = locked([&] { return as<T>().lower(); });
      return nb::make_tuple(vector_of(L.values, name_of(dtype_)), vector_of(L.index, "int64"),
                            vector_of(L.start, "int64"));
    });
  }
  nb::dict memory() {
    return dict_of(with_scalar(dtype_, [&]<class T>(T) { return locked([&] { return as<T>().memory(); }); }));
  }

 private:
  template <class T>
  SparseCholesky<T>& as() {
    return *static_cast<SparseCholesky<T>*>(factor_.get());
  }

  Plan plan_;
  std::shared_ptr<void> factor_;
};

class LuObject : public Solver {
 public:
  LuObject(const LuPlanObject& plan, const std::string& dtype, nb::handle pivot_threshold, bool equilibrate)
      : Solver(dtype_named(dtype), plan.plan->n(), shared_queue(on_host, {}, nb::handle())), plan_(plan.plan) {
    SparseLuOptions o{.equilibrate = equilibrate};
    if (!pivot_threshold.is_none()) o.pivot_threshold = nb::cast<double>(pivot_threshold);
    with_scalar(dtype_, [&]<class T>(T) { factor_ = std::make_shared<SparseLu<T>>(queue_->queue, plan_, o); });
  }

  void factor(nb::handle values) {
    const Values v = readable(values, plan_->entries());
    with_scalar(dtype_, [&]<class T>(T) { locked([&] { as<T>().factor(ready<T>(v)); }); });
  }
  nb::object solve(nb::handle b, const std::string& trans) {
    const Op op = op_named(trans);
    return with_scalar(dtype_, [&]<class T>(T) -> nb::object {
      return on_copy<T>(b, [&](MatrixView<T> X) { as<T>().solve(X, op); });
    });
  }
  nb::tuple solve_refined(nb::handle values, nb::handle b, const std::string& trans) {
    const Op op = op_named(trans);
    const Values v = readable(values, plan_->entries());
    return with_scalar(dtype_, [&]<class T>(T) {
      Refinement<T> done;
      nb::object x = on_copy<T>(b, [&](MatrixView<T> X) { done = as<T>().solve_refined(ready<T>(v), X, op); });
      return nb::make_tuple(x, done.steps, double(done.backward_error));
    });
  }
  nb::tuple slogdet() {
    return with_scalar(dtype_, [&]<class T>(T) {
      const Determinant<T> d = locked([&] { return as<T>().det(); });
      if constexpr (ComplexScalar<T>)
        return nb::make_tuple(nb::steal(PyComplex_FromDoubles(d.sign.real(), d.sign.imag())), double(d.log_abs));
      else
        return nb::make_tuple(double(d.sign), double(d.log_abs));
    });
  }
  double rcond() {
    return with_scalar(dtype_, [&]<class T>(T) { return locked([&] { return double(as<T>().rcond()); }); });
  }
  index_t nonzeros() {
    return with_scalar(dtype_, [&]<class T>(T) { return locked([&] { return as<T>().factor_nonzeros(); }); });
  }
  std::size_t memory() {
    return with_scalar(dtype_, [&]<class T>(T) { return locked([&] { return as<T>().memory().total(); }); });
  }

 private:
  static Op op_named(const std::string& trans) {
    return chosen<Op>("trans", trans, {{"N", Op::None}, {"T", Op::Transpose}, {"H", Op::ConjTranspose}});
  }
  template <class T>
  SparseLu<T>& as() {
    return *static_cast<SparseLu<T>*>(factor_.get());
  }

  LuPlan plan_;
  std::shared_ptr<void> factor_;
};

}  // namespace

void bind_sparse(nb::module_& m) {
  bind_plans(m);
  nb::class_<CholeskyObject>(m, "SparseCholesky", "The numeric factor behind trifactor.sparse.Factor.")
      .def(nb::init<const PlanObject&, const std::string&, int, std::optional<std::uintptr_t>, nb::handle, std::size_t,
                    const std::string&>(),
           nb::arg("plan"), nb::arg("dtype"), nb::arg("device"), nb::arg("stream").none(), nb::arg("owner").none(),
           nb::arg("max_device_bytes"), nb::arg("tuning"),
           nb::sig("def __init__(self, plan: SparsePlan, dtype: str, device: int, stream: int | None, owner: "
                   "typing.Any, max_device_bytes: int, tuning: str) -> None"))
      .def("factor", &CholeskyObject::factor, nb::arg("values"), nb::arg("shift"),
           nb::sig("def factor(self, values: typing.Any, shift: float) -> None"))
      .def("solve", &CholeskyObject::solve, nb::arg("b"), nb::arg("part"),
           nb::sig("def solve(self, b: typing.Any, part: str) -> typing.Any"))
      .def("solve_refined", &CholeskyObject::solve_refined, nb::arg("values"), nb::arg("b"),
           nb::sig("def solve_refined(self, values: typing.Any, b: typing.Any) -> tuple[typing.Any, int, float]"))
      .def("log_det", &CholeskyObject::log_det)
      .def("rcond", &CholeskyObject::rcond)
      .def("diagonal", &CholeskyObject::diagonal, nb::sig("def diagonal(self) -> typing.Any"))
      .def("lower", &CholeskyObject::lower, nb::sig("def lower(self) -> tuple[typing.Any, typing.Any, typing.Any]"))
      .def("memory", &CholeskyObject::memory, nb::sig("def memory(self) -> dict[str, int]"));
  bind_sparse_batch(m);
  nb::class_<LuObject>(m, "SparseLu", "The numeric factor behind trifactor.sparse.LuFactor.")
      .def(nb::init<const LuPlanObject&, const std::string&, nb::handle, bool>(), nb::arg("plan"), nb::arg("dtype"),
           nb::arg("pivot_threshold").none(), nb::arg("equilibrate"),
           nb::sig("def __init__(self, plan: SparseLuPlan, dtype: str, pivot_threshold: float | None, equilibrate: "
                   "bool) -> None"))
      .def("factor", &LuObject::factor, nb::arg("values"), nb::sig("def factor(self, values: typing.Any) -> None"))
      .def("solve", &LuObject::solve, nb::arg("b"), nb::arg("trans"),
           nb::sig("def solve(self, b: typing.Any, trans: str) -> typing.Any"))
      .def("solve_refined", &LuObject::solve_refined, nb::arg("values"), nb::arg("b"), nb::arg("trans"),
           nb::sig("def solve_refined(self, values: typing.Any, b: typing.Any, trans: str) -> tuple[typing.Any, int, "
                   "float]"))
      .def("slogdet", &LuObject::slogdet, nb::sig("def slogdet(self) -> tuple[complex, float]"))
      .def("rcond", &LuObject::rcond)
      .def("nonzeros", &LuObject::nonzeros)
      .def("memory", &LuObject::memory);
}

}  // namespace trifactor::python
