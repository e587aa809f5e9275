// The expert forms of LU.
#include <api/check.hpp>
#include <api/queue_state.hpp>
#include <dense/lu.hpp>
#include <dense/solve.hpp>
#include <trifactor/lu.hpp>
#include <tuning/rows.hpp>

namespace trifactor {

namespace {

using namespace api;

template <class T, class Run>
void with_lu(const char* call, const Queue& q, const Items<T>& A, const LuOptions& options, Run run) {
  const auto tuning = tuning::find<core::LuTuning>(q.state()->architectures, core::scalar_name(T{}),
                                                   core::min(A.rows, A.cols), 1, options.tuning);
  const bool hybrid = options.mode == Mode::Hybrid;
  if (hybrid) check_hybrid(call, q, A.count);
  run([&q, A, tuning, hybrid](auto& e, int* pivots, int* info) {
    if constexpr (core::OffloadEngineFor<std::remove_reference_t<decltype(e)>, T>) {
      if (hybrid) return dense::lu_hybrid(e, q.state()->host, A, pivots, info, tuning);
    }
    dense::lu(e, A, pivots, info, tuning);
  });
}

template <class T>
core::SolveTuning solve_tuning(const Queue& q, const Items<T>& LU, const SolveOptions& options) {
  return tuning::find<core::SolveTuning>(q.state()->architectures, core::scalar_name(std::remove_const_t<T>{}), LU.rows,
                                         1, options.tuning);
}

}  // namespace

template <Batch B>
requires SingleMatrix<B>
void lu(Queue& q, B A, int* pivots, int* info, const LuOptions& options) {
  const auto a = items("lu", "A", A);
  check_pointer("lu", "info", info, sizeof(int));
  if (a.rows > 0 && a.cols > 0) check_pointer("lu", "pivots", pivots, sizeof(int));
  with_lu("lu", q, a, options, [&](auto driver) { on_engine(q, [&](auto& e) { driver(e, pivots, info); }); });
}

template <Batch B>
requires SingleMatrix<B> std::size_t lu_scratch(const Queue& q, B A, const LuOptions& options) {
  std::size_t bytes = 0;
  with_lu("lu_scratch", q, items("lu_scratch", "A", A), options,
          [&](auto driver) { bytes = plan(q, [&](auto& e) { driver(e, nullptr, nullptr); }); });
  return bytes;
}

template <Batch B>
requires SingleMatrix<B>
void lu_solve(Queue& q, Op op, const_batch_t<B> LU, const int* pivots, B X, const int* info,
              const SolveOptions& options) {
  const auto a = items("lu_solve", "LU", LU);
  const auto x = items("lu_solve", "X", X);
  check_fit("lu_solve", "LU", a, x);
  if (a.rows > 0) check_pointer("lu_solve", "pivots", pivots, sizeof(int));
  const auto tuning = solve_tuning(q, a, options);
  on_engine(q, [&](auto& e) { dense::lu_solve(e, op, a, pivots, x, info, tuning); });
}

template <Batch B>
requires SingleMatrix<B> std::size_t lu_solve_scratch(const Queue& q, Op op, const_batch_t<B> LU, B X,
                                                      const SolveOptions& options) {
  const auto a = items("lu_solve_scratch", "LU", LU);
  const auto x = items("lu_solve_scratch", "X", X);
  check_fit("lu_solve_scratch", "LU", a, x);
  const auto tuning = solve_tuning(q, a, options);
  const int given = 0;  // as much as a call with info needs
  return plan(q, [&](auto& e) { dense::lu_solve(e, op, a, nullptr, x, &given, tuning); });
}

template <Scalar T>
void lu_inverse(Queue& q, std::type_identity_t<MatrixView<const T>> LU, const int* pivots, MatrixView<T> X,
                const int* info, const SolveOptions& options) {
  const auto a = items("lu_inverse", "LU", LU);
  const auto x = items("lu_inverse", "X", X);
  check_fit("lu_inverse", "LU", a, x);
  check_square("lu_inverse", "X", x);
  if (a.rows > 0) check_pointer("lu_inverse", "pivots", pivots, sizeof(int));
  const auto tuning = solve_tuning(q, a, options);
  on_engine(q, [&](auto& e) { dense::lu_inverse(e, a, pivots, x, info, tuning); });
}

template <Scalar T>
void lu_det(Queue& q, std::type_identity_t<MatrixView<const T>> LU, const int* pivots, T* sign, real_t<T>* log_abs) {
  const auto a = items("lu_det", "LU", LU);
  check_square("lu_det", "LU", a);
  if (a.rows > 0) check_pointer("lu_det", "pivots", pivots, sizeof(int));
  check_pointer("lu_det", "sign", sign, sizeof(T));
  check_pointer("lu_det", "log_abs", log_abs, sizeof(*log_abs));
  on_engine(q, [&](auto& e) { e.lu_det(a, pivots, reinterpret_cast<inner_t<T>*>(sign), log_abs); });
}

void permutation(Queue& q, const int* pivots, index_t k, int* p, index_t rows) {
  check_size("permutation", "k", k);
  check_size("permutation", "rows", rows);
  if (k > rows) fail("permutation", "k", k, "be at most rows = " + std::to_string(rows));
  if (k > 0) check_pointer("permutation", "pivots", pivots, sizeof(int));
  if (rows == 0) return;
  check_pointer("permutation", "p", p, sizeof(int));
  on_engine(q, [&](auto& e) { e.permutation(pivots, k, p, rows); });
}

#define TRIFACTOR_INSTANTIATE_SCALAR(T)                                                                           \
  template TRIFACTOR_API void lu<MatrixView<T>>(Queue&, MatrixView<T>, int*, int*, const LuOptions&);             \
  template TRIFACTOR_API std::size_t lu_scratch<MatrixView<T>>(const Queue&, MatrixView<T>, const LuOptions&);    \
  template TRIFACTOR_API void lu_solve<MatrixView<T>>(Queue&, Op, MatrixView<const T>, const int*, MatrixView<T>, \
                                                      const int*, const SolveOptions&);                           \
  template TRIFACTOR_API std::size_t lu_solve_scratch<MatrixView<T>>(const Queue&, Op, MatrixView<const T>,       \
                                                                     MatrixView<T>, const SolveOptions&);         \
  template TRIFACTOR_API void lu_inverse<T>(Queue&, MatrixView<const T>, const int*, MatrixView<T>, const int*,   \
                                            const SolveOptions&);                                                 \
  template TRIFACTOR_API void lu_det<T>(Queue&, MatrixView<const T>, const int*, T*, real_t<T>*);
#define TRIFACTOR_INSTANTIATE(T) TRIFACTOR_INSTANTIATE_SCALAR(core::ScalarTraits<T>::Public)
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_INSTANTIATE)

}  // namespace trifactor
