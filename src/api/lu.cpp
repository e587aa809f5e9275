// The expert forms of LU.
#include <api/expert.hpp>
#include <dense/solve.hpp>
#include <trifactor/lu.hpp>

namespace trifactor {

namespace {

using namespace api;

template <class T>
void check_pivots(const char* call, const Items<T>& A, const int* pivots) {
  if (A.count > 0 && A.rows > 0 && A.cols > 0) check_pointer(call, "pivots", pivots, sizeof(int));
}

template <class T, class Run>
void with_lu(const char* call, const Queue& q, const Items<T>& A, const LuOptions& options, Run run) {
  const auto tuning = tuning_for<core::LuTuning>(q, A, options.tuning);
  const bool hybrid = options.mode == Mode::Hybrid;
  if (hybrid) check_hybrid(call, q, A.count);
  run([&q, A, tuning, hybrid](auto& e, int* pivots, int* info) {
    if constexpr (core::OffloadEngineFor<std::remove_reference_t<decltype(e)>, T>) {
      if (hybrid) return dense::lu_hybrid(e, q.state()->host, A, pivots, info, tuning);
    }
    dense::lu(e, A, pivots, info, tuning);
  });
}

template <class T, class Run>
void with_factor_solve(const char* call, const Queue& q, const Items<T>& A, const Items<T>& X, const LuOptions& options,
                       Run run) {
  check_fit(call, "A", Items<const T>(A), X);
  if (options.mode == Mode::Hybrid) fail(call, "mode = Hybrid must be two calls, lu and lu_solve");
  const auto tuning = tuning_for<core::LuTuning>(q, A, options.tuning);
  const auto solve_tuning = tuning_for<core::SolveTuning>(q, A, {});
  run([=](auto& e, int* pivots, int* info) { dense::lu_factor_solve(e, A, pivots, X, info, tuning, solve_tuning); });
}

}  // namespace

template <WritableBatch B>
void lu(Queue& q, B A, int* pivots, int* info, const LuOptions& options) try {
  const auto a = items("lu", "A", A);
  if (a.count > 0) check_pointer("lu", "info", info, sizeof(int));
  check_pivots("lu", a, pivots);
  with_lu("lu", q, a, options, [&](auto driver) { on_engine(q, [&](auto& e) { driver(e, pivots, info); }); });
} TRIFACTOR_CATCH_BAD_ALLOC

template <WritableBatch B>
std::size_t lu_scratch(const Queue& q, B A, const LuOptions& options) try {
  std::size_t bytes = 0;
  with_lu("lu_scratch", q, items("lu_scratch", "A", A), options,
          [&](auto driver) { bytes = plan(q, [&](auto& e) { driver(e, nullptr, nullptr); }); });
  return bytes;
} TRIFACTOR_CATCH_BAD_ALLOC

template <WritableBatch B>
void lu_factor_solve(Queue& q, B A, int* pivots, B X, int* info, const LuOptions& options) try {
  const char* const call = "lu_factor_solve";
  const auto a = items(call, "A", A), x = items(call, "X", X);
  if (a.count > 0) check_pointer(call, "info", info, sizeof(int));
  check_pivots(call, a, pivots);
  with_factor_solve(call, q, a, x, options,
                    [&](auto driver) { on_engine(q, [&](auto& e) { driver(e, pivots, info); }); });
} TRIFACTOR_CATCH_BAD_ALLOC

template <WritableBatch B>
std::size_t lu_factor_solve_scratch(const Queue& q, B A, B X, const LuOptions& options) try {
  const char* const call = "lu_factor_solve_scratch";
  std::size_t bytes = 0;
  int given = 0;  // as much as a call with info needs
  with_factor_solve(call, q, items(call, "A", A), items(call, "X", X), options,
                    [&](auto driver) { bytes = plan(q, [&](auto& e) { driver(e, nullptr, &given); }); });
  return bytes;
} TRIFACTOR_CATCH_BAD_ALLOC

template <WritableBatch B>
void lu_solve(Queue& q, Op op, const_batch_t<B> LU, const int* pivots, B X, const int* info,
              const SolveOptions& options) try {
  const auto a = items("lu_solve", "LU", LU);
  const auto x = items("lu_solve", "X", X);
  check_fit("lu_solve", "LU", a, x);
  check_pivots("lu_solve", a, pivots);
  check_read_info("lu_solve", info);
  const auto tuning = tuning_for<core::SolveTuning>(q, a, options.tuning);
  on_engine(q, [&](auto& e) { dense::lu_solve(e, op, a, pivots, x, info, tuning); });
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
void lu_inverse(Queue& q, const_batch_t<B> LU, const int* pivots, B X, const int* info, const SolveOptions& options) try {
  const char* const call = "lu_inverse";
  const auto a = items(call, "LU", LU);
  with_inverse(call, q, a, items(call, "X", X), options, [&](auto driver) {
    check_pivots(call, a, pivots);
    check_read_info(call, info);
    on_engine(q, [&](auto& e) { driver(e, pivots, info); });
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
void lu_det(Queue& q, B LU, const int* pivots, value_t<B>* sign, real_t<value_t<B>>* log_abs) try {
  using T = value_t<B>;
  const Items<const inner_t<T>> a = items("lu_det", "LU", const_batch_t<B>(LU));
  check_square("lu_det", "LU", a);
  if (a.count == 0) return;
  check_pivots("lu_det", a, pivots);
  check_pointer("lu_det", "sign", sign, sizeof(T));
  check_pointer("lu_det", "log_abs", log_abs, sizeof(*log_abs));
  on_engine(q, [&](auto& e) { e.lu_det(a, pivots_of(a, pivots), reinterpret_cast<inner_t<T>*>(sign), log_abs); });
} TRIFACTOR_CATCH_BAD_ALLOC

void lu_row_permutation(Queue& q, const int* pivots, index_t k, int* p, index_t rows) try {
  check_size("lu_row_permutation", "k", k);
  check_size("lu_row_permutation", "rows", rows);
  if (k > rows) fail("lu_row_permutation", "k", k, "be at most rows = " + std::to_string(rows));
  if (k > 0) check_pointer("lu_row_permutation", "pivots", pivots, sizeof(int));
  if (rows == 0) return;
  check_pointer("lu_row_permutation", "p", p, sizeof(int));
  on_engine(q, [&](auto& e) { e.row_permutation(pivots, k, p, rows); });
} TRIFACTOR_CATCH_BAD_ALLOC

#define TRIFACTOR_INSTANTIATE_BATCH(T, B)                                                                              \
  template TRIFACTOR_API void lu<B<T>>(Queue&, B<T>, int*, int*, const LuOptions&);                                    \
  template TRIFACTOR_API std::size_t lu_scratch<B<T>>(const Queue&, B<T>, const LuOptions&);                           \
  template TRIFACTOR_API void lu_factor_solve<B<T>>(Queue&, B<T>, int*, B<T>, int*, const LuOptions&);                 \
  template TRIFACTOR_API std::size_t lu_factor_solve_scratch<B<T>>(const Queue&, B<T>, B<T>, const LuOptions&);        \
  template TRIFACTOR_API void lu_solve<B<T>>(Queue&, Op, B<const T>, const int*, B<T>, const int*,                     \
                                             const SolveOptions&);                                                     \
  template TRIFACTOR_API std::size_t lu_solve_scratch<B<T>>(const Queue&, Op, B<const T>, B<T>, const SolveOptions&);  \
  template TRIFACTOR_API void lu_inverse<B<T>>(Queue&, B<const T>, const int*, B<T>, const int*, const SolveOptions&); \
  template TRIFACTOR_API std::size_t lu_inverse_scratch<B<T>>(const Queue&, B<const T>, B<T>, const SolveOptions&);    \
  template TRIFACTOR_API void lu_det<B<T>>(Queue&, B<T>, const int*, T*, real_t<T>*);                                  \
  template TRIFACTOR_API void lu_det<B<const T>>(Queue&, B<const T>, const int*, T*, real_t<T>*);
#define TRIFACTOR_INSTANTIATE(T) TRIFACTOR_INSTANTIATE_KINDS(TRIFACTOR_INSTANTIATE_BATCH, core::ScalarTraits<T>::Public)
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_INSTANTIATE)
#undef TRIFACTOR_INSTANTIATE_BATCH
#undef TRIFACTOR_INSTANTIATE

}  // namespace trifactor
