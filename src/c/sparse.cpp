// Sparse factors.
#include <c/plan.hpp>

using namespace trifactor::c;

struct trifactor_sparse_cholesky : AnyFactor {
  template <class T>
  using Factor = trifactor::SparseCholesky<T>;
};
struct trifactor_sparse_lu : AnyFactor {
  template <class T>
  using Factor = trifactor::SparseLu<T>;
};

namespace trifactor::c {
namespace {

SparseLuOptions sparse_lu_options(const char* call, const trifactor_sparse_options* given) {
  const auto o = options_of(call, given);
  SparseLuOptions options;
  if (o.pivot_threshold != 0) options.pivot_threshold = o.pivot_threshold;
  options.equilibrate = o.no_equilibration == 0;
  return options;
}

template <class T>
void keep_refinement(trifactor_refinement* target, const Refinement<T>& r) {
  if (target) *target = {r.steps, double(r.backward_error)};
}

static_assert(int(SparsePart::Permute) == TRIFACTOR_PART_PERMUTE && int(SparsePart::Lower) == TRIFACTOR_PART_LOWER &&
              int(SparsePart::LowerAdjoint) == TRIFACTOR_PART_LOWER_ADJOINT &&
              int(SparsePart::PermuteBack) == TRIFACTOR_PART_PERMUTE_BACK);

}  // namespace
}  // namespace trifactor::c

trifactor_status trifactor_sparse_cholesky_create(trifactor_queue* queue, const trifactor_plan* plan,
                                                  trifactor_scalar scalar, const trifactor_sparse_options* given,
                                                  trifactor_sparse_cholesky** factor) {
  return guard([&] {
    const char* call = "trifactor_sparse_cholesky_create";
    need(call, "the place for the factor", factor) = nullptr;
    auto& q = need(call, "queue", queue).queue;
    const auto& shared = need(call, "plan", plan).plan;
    const auto options = sparse_options(call, given);
    with_scalar(call, scalar, [&]<class T>() {
      *factor =
          new trifactor_sparse_cholesky{{scalar, std::make_shared<trifactor::SparseCholesky<T>>(q, shared, options)}};
    });
  });
}
void trifactor_sparse_cholesky_destroy(trifactor_sparse_cholesky* factor) { delete factor; }

trifactor_status trifactor_sparse_cholesky_memory_needed(trifactor_queue* queue, const trifactor_plan* plan,
                                                         trifactor_scalar scalar, const trifactor_sparse_options* given,
                                                         trifactor_sparse_memory* memory) {
  return guard([&] {
    const char* call = "trifactor_sparse_cholesky_memory_needed";
    auto& q = need(call, "queue", queue).queue;
    const auto& shared = need(call, "plan", plan).plan;
    const auto options = sparse_options(call, given);
    with_scalar(call, scalar, [&]<class T>() {
      report(call, "the report", memory, memory_report(trifactor::SparseCholesky<T>::memory(q, *shared, options)));
    });
  });
}
trifactor_status trifactor_sparse_cholesky_memory(const trifactor_sparse_cholesky* factor,
                                                  trifactor_sparse_memory* memory) {
  return guard([&] {
    const char* call = "trifactor_sparse_cholesky_memory";
    with_factor(call, factor, [&]<class T>(auto& f) { report(call, "the report", memory, memory_report(f.memory())); });
  });
}
trifactor_status trifactor_sparse_cholesky_factor(trifactor_sparse_cholesky* factor, const void* values, int64_t count,
                                                  double shift) {
  return guard([&] {
    const char* call = "trifactor_sparse_cholesky_factor";
    with_factor(call, factor,
                [&]<class T>(auto& f) { f.factor(values_of<T>(call, values, count), trifactor::real_t<T>(shift)); });
  });
}
trifactor_status trifactor_sparse_cholesky_info(const trifactor_sparse_cholesky* factor, int64_t* info) {
  return guard([&] {
    const char* call = "trifactor_sparse_cholesky_info";
    with_factor(call, factor, [&]<class T>(auto& f) { need(call, "info", info) = f.info(); });
  });
}
trifactor_status trifactor_sparse_cholesky_solve(const trifactor_sparse_cholesky* factor, trifactor_part part,
                                                 trifactor_view B) {
  return guard([&] {
    const char* call = "trifactor_sparse_cholesky_solve";
    check_word(call, "part", part, 5, "one of TRIFACTOR_PART_ALL to TRIFACTOR_PART_PERMUTE_BACK");
    with_factor(call, factor,
                [&]<class T>(auto& f) { f.solve(matrix_of<T>(call, factor->scalar, B), trifactor::SparsePart(part)); });
  });
}
trifactor_status trifactor_sparse_cholesky_solve_refined(const trifactor_sparse_cholesky* factor, const void* values,
                                                         int64_t count, trifactor_view B,
                                                         trifactor_refinement* refinement) {
  return guard([&] {
    const char* call = "trifactor_sparse_cholesky_solve_refined";
    with_factor(call, factor, [&]<class T>(auto& f) {
      keep_refinement(refinement,
                      f.solve_refined(values_of<T>(call, values, count), matrix_of<T>(call, factor->scalar, B)));
    });
  });
}
trifactor_status trifactor_sparse_cholesky_log_det(const trifactor_sparse_cholesky* factor, double* log_det) {
  return guard([&] {
    const char* call = "trifactor_sparse_cholesky_log_det";
    with_factor(call, factor, [&]<class T>(auto& f) { need(call, "log_det", log_det) = double(f.log_det()); });
  });
}
trifactor_status trifactor_sparse_cholesky_rcond(const trifactor_sparse_cholesky* factor, double* rcond) {
  return guard([&] {
    const char* call = "trifactor_sparse_cholesky_rcond";
    with_factor(call, factor, [&]<class T>(auto& f) { need(call, "rcond", rcond) = double(f.rcond()); });
  });
}
trifactor_status trifactor_sparse_cholesky_diagonal(const trifactor_sparse_cholesky* factor, double* diagonal,
                                                    int64_t room) {
  return guard([&] {
    const char* call = "trifactor_sparse_cholesky_diagonal";
    with_factor(call, factor, [&]<class T>(auto& f) {
      const auto found = f.diagonal();
      if (room < int64_t(found.size()))
        fail(call, "room = " + std::to_string(room) + " must be at least the order, " + std::to_string(found.size()));
      if (!found.empty()) std::copy(found.begin(), found.end(), &need(call, "diagonal", diagonal));
    });
  });
}
trifactor_status trifactor_sparse_cholesky_lower(const trifactor_sparse_cholesky* factor,
                                                 trifactor_compressed_columns* columns) {
  return guard([&] {
    const char* call = "trifactor_sparse_cholesky_lower";
    need(call, "the place for the columns", columns) = {};
    with_factor(call, factor, [&]<class T>(auto& f) { give(call, columns_of(factor->scalar, f.lower()), columns); });
  });
}

trifactor_status trifactor_sparse_lu_create(trifactor_queue* queue, const trifactor_lu_plan* plan,
                                            trifactor_scalar scalar, const trifactor_sparse_options* given,
                                            trifactor_sparse_lu** factor) {
  return guard([&] {
    const char* call = "trifactor_sparse_lu_create";
    need(call, "the place for the factor", factor) = nullptr;
    auto& q = need(call, "queue", queue).queue;
    const auto& shared = need(call, "plan", plan).plan;
    const auto options = sparse_lu_options(call, given);
    with_scalar(call, scalar, [&]<class T>() {
      *factor = new trifactor_sparse_lu{{scalar, std::make_shared<trifactor::SparseLu<T>>(q, shared, options)}};
    });
  });
}
void trifactor_sparse_lu_destroy(trifactor_sparse_lu* factor) { delete factor; }

trifactor_status trifactor_sparse_lu_memory(const trifactor_sparse_lu* factor, trifactor_sparse_memory* memory) {
  return guard([&] {
    const char* call = "trifactor_sparse_lu_memory";
    with_factor(call, factor, [&]<class T>(auto& f) {
      const trifactor::SparseLuMemory m = f.memory();
      report(call, "the report", memory, trifactor_sparse_memory{0, m.factor, 0, 0, m.vectors, 0, 0, m.total(), 0});
    });
  });
}
trifactor_status trifactor_sparse_lu_factor(trifactor_sparse_lu* factor, const void* values, int64_t count) {
  return guard([&] {
    const char* call = "trifactor_sparse_lu_factor";
    with_factor(call, factor, [&]<class T>(auto& f) { f.factor(values_of<T>(call, values, count)); });
  });
}
trifactor_status trifactor_sparse_lu_info(const trifactor_sparse_lu* factor, int64_t* info) {
  return guard([&] {
    const char* call = "trifactor_sparse_lu_info";
    with_factor(call, factor, [&]<class T>(auto& f) { need(call, "info", info) = f.info(); });
  });
}
trifactor_status trifactor_sparse_lu_solve(const trifactor_sparse_lu* factor, trifactor_op op, trifactor_view B) {
  return guard([&] {
    const char* call = "trifactor_sparse_lu_solve";
    with_factor(call, factor,
                [&]<class T>(auto& f) { f.solve(matrix_of<T>(call, factor->scalar, B), op_of(call, op)); });
  });
}
trifactor_status trifactor_sparse_lu_solve_refined(const trifactor_sparse_lu* factor, const void* values, int64_t count,
                                                   trifactor_op op, trifactor_view B,
                                                   trifactor_refinement* refinement) {
  return guard([&] {
    const char* call = "trifactor_sparse_lu_solve_refined";
    with_factor(call, factor, [&]<class T>(auto& f) {
      keep_refinement(refinement, f.solve_refined(values_of<T>(call, values, count),
                                                  matrix_of<T>(call, factor->scalar, B), op_of(call, op)));
    });
  });
}
trifactor_status trifactor_sparse_lu_det(const trifactor_sparse_lu* factor, void* sign, double* log_abs) {
  return guard([&] {
    const char* call = "trifactor_sparse_lu_det";
    with_factor(call, factor, [&]<class T>(auto& f) {
      T& s = need(call, "sign", static_cast<T*>(sign));
      double& l = need(call, "log_abs", log_abs);
      const auto det = f.det();
      s = det.sign, l = double(det.log_abs);
    });
  });
}
trifactor_status trifactor_sparse_lu_rcond(const trifactor_sparse_lu* factor, double* rcond) {
  return guard([&] {
    const char* call = "trifactor_sparse_lu_rcond";
    with_factor(call, factor, [&]<class T>(auto& f) { need(call, "rcond", rcond) = double(f.rcond()); });
  });
}
trifactor_status trifactor_sparse_lu_norm1(const trifactor_sparse_lu* factor, double* norm) {
  return guard([&] {
    const char* call = "trifactor_sparse_lu_norm1";
    with_factor(call, factor, [&]<class T>(auto& f) { need(call, "norm", norm) = double(f.norm1()); });
  });
}
trifactor_status trifactor_sparse_lu_factor_nonzeros(const trifactor_sparse_lu* factor, int64_t* nonzeros) {
  return guard([&] {
    const char* call = "trifactor_sparse_lu_factor_nonzeros";
    with_factor(call, factor, [&]<class T>(auto& f) { need(call, "nonzeros", nonzeros) = f.factor_nonzeros(); });
  });
}
