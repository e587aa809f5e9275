// Sparse factors of many matrices with one pattern, of all four scalars behind one type.
#include "sparse.hpp"
#include "sparse_solver.hpp"

#include <nanobind/stl/optional.h>

namespace trifactor::python {

namespace {

/// Values of item i are entries() of them from i * entries() on.
class CholeskyBatchObject : public Solver {
 public:
  CholeskyBatchObject(const PlanObject& plan, index_t count, const std::string& dtype, int device,
                      std::optional<std::uintptr_t> stream, nb::handle owner, std::size_t max_device_bytes,
                      const std::string& tuning)
      : Solver(dtype_named(dtype), plan.plan->n(), shared_queue(device, stream, owner), count), plan_(plan.plan) {
    with_scalar(dtype_, [&]<class T>(T) {
      locked([&] {
        const SparseOptions options{.max_device_bytes = max_device_bytes, .tuning = tuning};
        factor_ = std::make_shared<SparseCholeskyBatch<T>>(queue_->queue, plan_, count, options);
        return 0;
      });
    });
  }
  ~CholeskyBatchObject() {
    nb::gil_scoped_release release;
    const std::lock_guard lock(queue_->mutex);
    factor_.reset(), values_.reset(), staging_.reset();
  }

  nb::object factor(nb::handle values, double shift) {
    const Values v = readable(values, plan_->entries() * *count_);
    return with_scalar(dtype_, [&]<class T>(T) -> nb::object {
      const std::vector<int> info = locked([&] {
        as<T>().factor(ready<T>(v), real_t<T>(shift));
        return as<T>().info();
      });
      return vector_of(info, "int32");
    });
  }
  nb::object solve(nb::handle b) {
    return with_scalar(dtype_, [&]<class T>(T) -> nb::object {
      return on_copy<T>(b, [&](MatrixView<T> X) {
        const index_t k = X.cols / std::max<index_t>(1, *count_);
        as<T>().solve(StridedBatch<T>{X.data, n_, k, std::max<index_t>(X.ld, 1), X.ld * k, *count_});
      });
    });
  }
  nb::object log_det() {
    return with_scalar(dtype_, [&]<class T>(T) -> nb::object {
      return vector_of(locked([&] { return as<T>().log_det(); }), name_of(real_of(dtype_)));
    });
  }
  nb::object diagonal() {
    return with_scalar(dtype_, [&]<class T>(T) -> nb::object {
      return vector_of(locked([&] { return as<T>().diagonal(); }), name_of(real_of(dtype_)));
    });
  }
  nb::dict memory() {
    return dict_of(with_scalar(dtype_, [&]<class T>(T) { return locked([&] { return as<T>().memory(); }); }));
  }

 private:
  template <class T>
  SparseCholeskyBatch<T>& as() {
    return *static_cast<SparseCholeskyBatch<T>*>(factor_.get());
  }

  Plan plan_;
  std::shared_ptr<void> factor_;
};

}  // namespace

void bind_sparse_batch(nb::module_& m) {
  nb::class_<CholeskyBatchObject>(m, "SparseCholeskyBatch", "The numeric factors behind trifactor.sparse.FactorBatch.")
      .def(nb::init<const PlanObject&, index_t, const std::string&, int, std::optional<std::uintptr_t>, nb::handle,
                    std::size_t, const std::string&>(),
           nb::arg("plan"), nb::arg("count"), nb::arg("dtype"), nb::arg("device"), nb::arg("stream").none(),
           nb::arg("owner").none(), nb::arg("max_device_bytes"), nb::arg("tuning"),
           nb::sig("def __init__(self, plan: SparsePlan, count: int, dtype: str, device: int, stream: int | None, "
                   "owner: typing.Any, max_device_bytes: int, tuning: str) -> None"))
      .def("factor", &CholeskyBatchObject::factor, nb::arg("values"), nb::arg("shift"),
           nb::sig("def factor(self, values: typing.Any, shift: float) -> typing.Any"))
      .def("solve", &CholeskyBatchObject::solve, nb::arg("b"),
           nb::sig("def solve(self, b: typing.Any) -> typing.Any"))
      .def("log_det", &CholeskyBatchObject::log_det, nb::sig("def log_det(self) -> typing.Any"))
      .def("diagonal", &CholeskyBatchObject::diagonal, nb::sig("def diagonal(self) -> typing.Any"))
      .def("memory", &CholeskyBatchObject::memory, nb::sig("def memory(self) -> dict[str, int]"));
}

}  // namespace trifactor::python
