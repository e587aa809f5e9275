// Sparse factors of many matrices with one pattern.
#include <c/plan.hpp>

using namespace trifactor::c;

struct trifactor_sparse_cholesky_batch : AnyFactor {
  template <class T>
  using Factor = trifactor::SparseCholeskyBatch<T>;
};

namespace trifactor::c {
namespace {

/// Copies numbers to the caller's array of `room`.
template <class E, class To>
void give_numbers(const char* call, const std::vector<E>& numbers, const char* name, To* target, int64_t room) {
  if (room < int64_t(numbers.size()))
    fail(call, "room = " + std::to_string(room) + " must be at least " + std::to_string(numbers.size()));
  if (!numbers.empty()) std::copy(numbers.begin(), numbers.end(), &need(call, name, target));
}

}  // namespace
}  // namespace trifactor::c

trifactor_status trifactor_sparse_cholesky_batch_create(trifactor_queue* queue, const trifactor_plan* plan,
                                                        trifactor_scalar scalar, int64_t items,
                                                        const trifactor_sparse_options* given,
                                                        trifactor_sparse_cholesky_batch** factors) {
  return guard([&] {
    const char* call = "trifactor_sparse_cholesky_batch_create";
    need(call, "the place for the factors", factors) = nullptr;
    auto& q = need(call, "queue", queue).queue;
    const auto& shared = need(call, "plan", plan).plan;
    const auto options = sparse_options(call, given);
    with_scalar(call, scalar, [&]<class T>() {
      *factors = new trifactor_sparse_cholesky_batch{
          {scalar, std::make_shared<trifactor::SparseCholeskyBatch<T>>(q, shared, items, options)}};
    });
  });
}
void trifactor_sparse_cholesky_batch_destroy(trifactor_sparse_cholesky_batch* factors) { delete factors; }

trifactor_status trifactor_sparse_cholesky_batch_memory_needed(trifactor_queue* queue, const trifactor_plan* plan,
                                                               trifactor_scalar scalar, int64_t items,
                                                               const trifactor_sparse_options* given,
                                                               trifactor_sparse_memory* memory) {
  return guard([&] {
    const char* call = "trifactor_sparse_cholesky_batch_memory_needed";
    auto& q = need(call, "queue", queue).queue;
    const auto& shared = need(call, "plan", plan).plan;
    const auto options = sparse_options(call, given);
    with_scalar(call, scalar, [&]<class T>() {
      report(call, "the report", memory,
             memory_report(trifactor::SparseCholeskyBatch<T>::memory(q, *shared, items, options)));
    });
  });
}
trifactor_status trifactor_sparse_cholesky_batch_memory(const trifactor_sparse_cholesky_batch* factors,
                                                        trifactor_sparse_memory* memory) {
  return guard([&] {
    const char* call = "trifactor_sparse_cholesky_batch_memory";
    with_factor(call, factors,
                [&]<class T>(auto& f) { report(call, "the report", memory, memory_report(f.memory())); });
  });
}
trifactor_status trifactor_sparse_cholesky_batch_factor(trifactor_sparse_cholesky_batch* factors, const void* values,
                                                        int64_t count, double shift, int64_t* failed) {
  return guard([&] {
    const char* call = "trifactor_sparse_cholesky_batch_factor";
    int64_t& result = need(call, "failed", failed);
    with_factor(call, factors, [&]<class T>(auto& f) {
      result = f.factor(values_of<T>(call, values, count), trifactor::real_t<T>(shift));
    });
  });
}
trifactor_status trifactor_sparse_cholesky_batch_info(const trifactor_sparse_cholesky_batch* factors, int* info,
                                                      int64_t room) {
  return guard([&] {
    const char* call = "trifactor_sparse_cholesky_batch_info";
    with_factor(call, factors, [&]<class T>(auto& f) { give_numbers(call, f.info(), "info", info, room); });
  });
}
trifactor_status trifactor_sparse_cholesky_batch_solve(const trifactor_sparse_cholesky_batch* factors,
                                                       trifactor_part part, trifactor_view B) {
  return guard([&] {
    const char* call = "trifactor_sparse_cholesky_batch_solve";
    check_word(call, "part", part, 5, "one of TRIFACTOR_PART_ALL to TRIFACTOR_PART_PERMUTE_BACK");
    with_factor(call, factors, [&]<class T>(auto& f) {
      f.solve(view_of<trifactor::StridedBatch<T>>(call, factors->scalar, B, TRIFACTOR_KIND_STRIDED,
                                                  "TRIFACTOR_KIND_STRIDED"),
              trifactor::SparsePart(part));
    });
  });
}
trifactor_status trifactor_sparse_cholesky_batch_log_det(const trifactor_sparse_cholesky_batch* factors,
                                                         double* log_det, int64_t room) {
  return guard([&] {
    const char* call = "trifactor_sparse_cholesky_batch_log_det";
    with_factor(call, factors, [&]<class T>(auto& f) { give_numbers(call, f.log_det(), "log_det", log_det, room); });
  });
}
trifactor_status trifactor_sparse_cholesky_batch_diagonal(const trifactor_sparse_cholesky_batch* factors,
                                                          double* diagonal, int64_t room) {
  return guard([&] {
    const char* call = "trifactor_sparse_cholesky_batch_diagonal";
    with_factor(call, factors, [&]<class T>(auto& f) { give_numbers(call, f.diagonal(), "diagonal", diagonal, room); });
  });
}
