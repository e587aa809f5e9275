// Sparse factors of all four scalars, each kind behind one type.
#include "sparse.hpp"
#include "queues.hpp"
#include "shared_queue.hpp"
#include "sparse_plan.hpp"

#include <nanobind/stl/optional.h>

namespace trifactor::python {

namespace {

/// Values of a sparse matrix: one dimension, contiguous, as many as the pattern has entries.
Array look_at_values(nb::handle values, Dtype d, index_t entries) {
  Array a = look_at(values, "values");
  if (a.ndim() != 1 || (a.shape[0] > 1 && a.stride[0] != 1) || a.dtype != d || a.shape[0] != entries || !a.aligned())
    raise_value_error("values have shape " + a.shape.text() + " and dtype " + name_of(a.dtype) +
                      " but must be contiguous, of shape (" + std::to_string(entries) + ",) and dtype " + name_of(d));
  return a;
}

/// What both factors do with right-hand sides: b of shape (n,) or (n, k), anywhere.
class Solver {
 public:
  Solver(Dtype d, index_t n, std::shared_ptr<SharedQueue> q) : dtype_(d), n_(n), queue_(std::move(q)) {}

 protected:
  int device() const { return queue_->queue.device(); }

  /// f(view of a copy of b in the factor's memory), and the copy of the caller's kind afterwards.
  template <class T, class F>
  nb::object on_copy(nb::handle b, F f) {
    Matrices A;  // stands for a matrix of order n, for the rules of shapes
    const Array rhs = look_at(b, "b");
    Array like = rhs;
    like.shape = {n_, n_}, like.dtype = dtype_;
    A.arrays = {like}, A.dtype = dtype_;
    if (rhs.ndim() > 2)
      raise_value_error("b has shape " + rhs.shape.text() + " but must be (" + std::to_string(n_) + ",) or (" +
                        std::to_string(n_) + ", k)");
    if (rhs.device != on_host && rhs.device != device())
      raise_value_error("b is on CUDA device " + std::to_string(rhs.device) + " but the factor is " +
                        (device() < 0 ? "on the host" : "on device " + std::to_string(device())));
    Rhs r = prepare_rhs({rhs}, A, queue_->queue, {});
    const Operand& x = r.operand;
    const MatrixView<T> X{static_cast<T*>(x.data), x.rows, x.cols, x.ld};
    Queue* theirs = other_queue(rhs);
    without_gil([&] {
      const std::lock_guard lock(queue_->mutex);
      Queue& q = queue_->queue;
      if (device() >= 0 && rhs.device == on_host) {
        const MatrixView<T> there{staging<T>(x.rows * x.cols), x.rows, x.cols, std::max<index_t>(x.rows, 1)};
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
  std::shared_ptr<void> staging_;  // a Buffer
};

Dtype dtype_named(const std::string& name) {
  return chosen<Dtype>(
      "dtype", name,
      {{"float32", Dtype::F32}, {"float64", Dtype::F64}, {"complex64", Dtype::C32}, {"complex128", Dtype::C64}});
}

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
    const Array v = look_at_values(values, dtype_, plan_->entries());
    if (v.device != on_host && v.device != device())
      raise_value_error("values are on CUDA device " + std::to_string(v.device) +
                        " but the factor is on another or on the host");
    Queue* theirs = other_queue(v);
    with_scalar(dtype_, [&]<class T>(T) {
      locked([&] {
        const std::span<const T> given(static_cast<const T*>(v.data), std::size_t(v.shape[0]));
        if (device() >= 0 && v.device == on_host) {
          if (!values_) values_ = std::make_shared<Buffer<T>>(queue_->queue, plan_->entries());
          auto& there = *static_cast<Buffer<T>*>(values_.get());
          copy(host_queue(), given.data(), queue_->queue, there.data(), there.size());
          as<T>().factor(std::span<const T>(there.data(), std::size_t(there.size())), real_t<T>(shift));
        } else {
          if (theirs) theirs->sync();
          as<T>().factor(given, real_t<T>(shift));
        }
        return 0;
      });
    });
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
    const Array v = look_at_values(values, dtype_, plan_->entries());
    return with_scalar(dtype_, [&]<class T>(T) {
      Refinement<T> done;
      nb::object x = on_copy<T>(b, [&](MatrixView<T> X) {
        const std::span<const T> given(static_cast<const T*>(v.data), std::size_t(v.shape[0]));
        if (device() >= 0 && v.device == on_host)
          done = as<T>().solve_refined(std::span<const T>(Buffer<T>(queue_->queue, given)), X);
        else
          done = as<T>().solve_refined(given, X);
      });
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
    const SparseMemory m = with_scalar(dtype_, [&]<class T>(T) { return locked([&] { return as<T>().memory(); }); });
    nb::dict d;
    d["factor"] = m.factor, d["updates"] = m.updates, d["lists"] = m.lists, d["vectors"] = m.vectors;
    d["scratch"] = m.scratch, d["values"] = m.values, d["total"] = m.total(), d["host"] = m.host;
    return d;
  }

 private:
  template <class T>
  SparseCholesky<T>& as() {
    return *static_cast<SparseCholesky<T>*>(factor_.get());
  }

  Plan plan_;
  std::shared_ptr<void> factor_;
  std::shared_ptr<void> values_;  // on a device, values that come from the host
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
    const Array v = look_at_values(values, dtype_, plan_->entries());
    with_scalar(dtype_, [&]<class T>(T) {
      locked([&] {
        as<T>().factor(std::span<const T>(static_cast<const T*>(v.data), std::size_t(v.shape[0])));
        return 0;
      });
    });
  }
  nb::object solve(nb::handle b, const std::string& trans) {
    const Op op = op_named(trans);
    return with_scalar(dtype_, [&]<class T>(T) -> nb::object {
      return on_copy<T>(b, [&](MatrixView<T> X) { as<T>().solve(X, op); });
    });
  }
  nb::tuple solve_refined(nb::handle values, nb::handle b, const std::string& trans) {
    const Op op = op_named(trans);
    const Array v = look_at_values(values, dtype_, plan_->entries());
    return with_scalar(dtype_, [&]<class T>(T) {
      Refinement<T> done;
      nb::object x = on_copy<T>(b, [&](MatrixView<T> X) {
        done = as<T>().solve_refined(std::span<const T>(static_cast<const T*>(v.data), std::size_t(v.shape[0])), X, op);
      });
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
