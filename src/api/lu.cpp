// The expert forms of LU.
#include <api/expert.hpp>
#include <dense/solve.hpp>
#include <trifactor/lu.hpp>

namespace trifactor {

namespace {

using namespace api;

template <class T>
void check_pivots(const char* call, const Items<T>& A, ArrayView<const int> pivots) {
  const index_t each = core::min(A.rows, A.cols);
  if (A.count == 0 || each == 0) return;
  index_t all;
  if (__builtin_mul_overflow(A.count, each, &all)) all = std::numeric_limits<index_t>::max();
  check_array(call, "pivots", pivots, all, "count * min(rows, cols)");
}

template <class T, class Run>
auto with_lu(const char* call, const Queue& q, const Items<T>& A, const LuOptions& options, Run run) {
  const auto tuning = tuning_for<core::LuTuning>(q, A, options.tuning);
  const bool hybrid = options.mode == Mode::Hybrid;
  if (hybrid) check_hybrid(call, q, A.count);
  return run([&q, A, tuning, hybrid](auto& e, int* pivots, int* info) {
    if constexpr (core::OffloadEngineFor<std::remove_reference_t<decltype(e)>, T>) {
      if (hybrid) return dense::lu_hybrid(e, q.state()->host, A, pivots, info, tuning);
    }
    dense::lu(e, A, pivots, info, tuning);
  });
}

template <class T, class Run>
auto with_factor_solve(const char* call, const Queue& q, const Items<T>& A, const Items<T>& X, const LuOptions& options,
                       Run run) {
  check_fit(call, "A", Items<const T>(A), X);
  if (options.mode == Mode::Hybrid) fail(call, "mode = Hybrid must be two calls, lu and lu_solve");
  const auto tuning = tuning_for<core::LuTuning>(q, A, options.tuning);
  const auto solve_tuning = tuning_for<core::SolveTuning>(q, A, {});
  return run(
      [=](auto& e, int* pivots, int* info) { dense::lu_factor_solve(e, A, pivots, X, info, tuning, solve_tuning); });
}

}  // namespace

template <WritableBatch B>
void lu(Queue& q, B A, ArrayView<int> pivots, ArrayView<int> info, const LuOptions& options) try {
  const auto a = items("lu", "A", A);
  check_each("lu", "info", info, a);
  check_pivots("lu", a, pivots);
  with_lu("lu", q, a, options, [&](auto driver) { on_engine(q, [&](auto& e) { driver(e, pivots.data, info.data); }); });
} TRIFACTOR_CATCH_BAD_ALLOC

template <WritableBatch B>
std::size_t lu_scratch(const Queue& q, B A, const LuOptions& options) try {
  return with_lu("lu_scratch", q, items("lu_scratch", "A", A), options,
                 [&](auto driver) { return plan(q, [&](auto& e) { driver(e, nullptr, nullptr); }); });
} TRIFACTOR_CATCH_BAD_ALLOC

template <WritableBatch B>
void lu_factor_solve(Queue& q, B A, ArrayView<int> pivots, std::type_identity_t<B> X, ArrayView<int> info,
                     const LuOptions& options) try {
  const char* const call = "lu_factor_solve";
  const auto a = items(call, "A", A), x = items(call, "X", X);
  check_each(call, "info", info, a);
  check_pivots(call, a, pivots);
  with_factor_solve(call, q, a, x, options,
                    [&](auto driver) { on_engine(q, [&](auto& e) { driver(e, pivots.data, info.data); }); });
} TRIFACTOR_CATCH_BAD_ALLOC

template <WritableBatch B>
std::size_t lu_factor_solve_scratch(const Queue& q, B A, std::type_identity_t<B> X, const LuOptions& options) try {
  const char* const call = "lu_factor_solve_scratch";
  int given = 0;  // as much as a call with info needs
  return with_factor_solve(call, q, items(call, "A", A), items(call, "X", X), options,
                           [&](auto driver) { return plan(q, [&](auto& e) { driver(e, nullptr, &given); }); });
} TRIFACTOR_CATCH_BAD_ALLOC

template <WritableBatch B>
void lu_solve(Queue& q, Op op, const_batch_t<B> LU, ArrayView<const int> pivots, B X, ArrayView<const int> info,
              const SolveOptions& options) try {
  const auto a = items("lu_solve", "LU", LU);
  const auto x = items("lu_solve", "X", X);
  check_fit("lu_solve", "LU", a, x);
  check_pivots("lu_solve", a, pivots);
  check_read_info("lu_solve", info, a);
  const auto tuning = tuning_for<core::SolveTuning>(q, a, options.tuning);
  on_engine(q, [&](auto& e) { dense::lu_solve(e, op, a, pivots.data, x, info.data, tuning); });
} TRIFACTOR_CATCH_BAD_ALLOC

template <WritableBatch B>
std::size_t lu_solve_scratch(const Queue& q, Op op, const_batch_t<B> LU, B X, const SolveOptions& options) try {
  const auto a = items("lu_solve_scratch", "LU", LU);
  const auto x = items("lu_solve_scratch", "X", X);
  check_fit("lu_solve_scratch", "LU", a, x);
  const auto tuning = tuning_for<core::SolveTuning>(q, a, options.tuning);
  const int given = 0;  // as much as a call with info needs
  return plan(q, [&](auto& e) { dense::lu_solve(e, op, a, nullptr, x, &given, tuning); });
} TRIFACTOR_CATCH_BAD_ALLOC

namespace {
template <class T, class Run>
auto with_inverse(const char* call, const Queue& q, const Items<const T>& LU, const Items<T>& X,
                  const SolveOptions& options, Run run) {
  check_fit(call, "LU", LU, X);
  check_square(call, "X", X);
  const auto tuning = tuning_for<core::SolveTuning>(q, LU, options.tuning);
  return run([=](auto& e, const int* pivots, const int* info) { dense::lu_inverse(e, LU, pivots, X, info, tuning); });
}
}  // namespace

template <WritableBatch B>
void lu_inverse(Queue& q, const_batch_t<B> LU, ArrayView<const int> pivots, B X, ArrayView<const int> info,
                const SolveOptions& options) try {
  const char* const call = "lu_inverse";
  const auto a = items(call, "LU", LU);
  with_inverse(call, q, a, items(call, "X", X), options, [&](auto driver) {
    check_pivots(call, a, pivots);
    check_read_info(call, info, a);
    on_engine(q, [&](auto& e) { driver(e, pivots.data, info.data); });
  });
} TRIFACTOR_CATCH_BAD_ALLOC

template <WritableBatch B>
std::size_t lu_inverse_scratch(const Queue& q, const_batch_t<B> LU, B X, const SolveOptions& options) try {
  const char* const call = "lu_inverse_scratch";
  const int given = 0;  // as much as a call with info needs
  return with_inverse(call, q, items(call, "LU", LU), items(call, "X", X), options,
                      [&](auto driver) { return plan(q, [&](auto& e) { driver(e, nullptr, &given); }); });
} TRIFACTOR_CATCH_BAD_ALLOC

template <Batch B>
void lu_det(Queue& q, B LU, ArrayView<const int> pivots, ArrayView<value_t<B>> sign,
            ArrayView<real_t<value_t<B>>> log_abs) try {
  using T = value_t<B>;
  const Items<const inner_t<T>> a = items("lu_det", "LU", const_batch_t<B>(LU));
  check_square("lu_det", "LU", a);
  if (a.count == 0) return;
  check_pivots("lu_det", a, pivots);
  check_each("lu_det", "sign", sign, a);
  check_each("lu_det", "log_abs", log_abs, a);
  on_engine(q, [&](auto& e) {
    e.lu_det(a, pivots_of(a, pivots.data), reinterpret_cast<inner_t<T>*>(sign.data), log_abs.data);
  });
} TRIFACTOR_CATCH_BAD_ALLOC

void lu_row_permutation(Queue& q, ArrayView<const int> pivots, index_t k, ArrayView<int> p, index_t rows) try {
  const char* const call = "lu_row_permutation";
  check_size(call, "k", k);
  check_size(call, "rows", rows);
  if (k > rows) fail(call, "k", k, "be at most rows = " + std::to_string(rows));
  if (k > 0) check_array(call, "pivots", pivots, k, "k");
  if (rows == 0) return;
  check_array(call, "p", p, rows, "rows");
  on_engine(q, [&](auto& e) { e.row_permutation(pivots.data, k, p.data, rows); });
} TRIFACTOR_CATCH_BAD_ALLOC

#define TRIFACTOR_INSTANTIATE_BATCH(T, B)                                                                              \
  template TRIFACTOR_API void lu<B<T>>(Queue&, B<T>, ArrayView<int>, ArrayView<int>, const LuOptions&);                \
  template TRIFACTOR_API std::size_t lu_scratch<B<T>>(const Queue&, B<T>, const LuOptions&);                           \
  template TRIFACTOR_API void lu_factor_solve<B<T>>(Queue&, B<T>, ArrayView<int>, B<T>, ArrayView<int>,                \
                                                    const LuOptions&);                                                 \
  template TRIFACTOR_API std::size_t lu_factor_solve_scratch<B<T>>(const Queue&, B<T>, B<T>, const LuOptions&);        \
  template TRIFACTOR_API void lu_solve<B<T>>(Queue&, Op, B<const T>, ArrayView<const int>, B<T>, ArrayView<const int>, \
                                             const SolveOptions&);                                                     \
  template TRIFACTOR_API std::size_t lu_solve_scratch<B<T>>(const Queue&, Op, B<const T>, B<T>, const SolveOptions&);  \
  template TRIFACTOR_API void lu_inverse<B<T>>(Queue&, B<const T>, ArrayView<const int>, B<T>, ArrayView<const int>,   \
                                               const SolveOptions&);                                                   \
  template TRIFACTOR_API std::size_t lu_inverse_scratch<B<T>>(const Queue&, B<const T>, B<T>, const SolveOptions&);    \
  template TRIFACTOR_API void lu_det<B<T>>(Queue&, B<T>, ArrayView<const int>, ArrayView<T>, ArrayView<real_t<T>>);    \
  template TRIFACTOR_API void lu_det<B<const T>>(Queue&, B<const T>, ArrayView<const int>, ArrayView<T>,               \
                                                 ArrayView<real_t<T>>);
#define TRIFACTOR_INSTANTIATE(T) TRIFACTOR_INSTANTIATE_KINDS(TRIFACTOR_INSTANTIATE_BATCH, core::ScalarTraits<T>::Public)
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_INSTANTIATE)
#undef TRIFACTOR_INSTANTIATE_BATCH
#undef TRIFACTOR_INSTANTIATE

}  // namespace trifactor
