// The expert forms of Cholesky: check, find the tuning row, run the driver on the queue's engine.
#include <api/check.hpp>
#include <api/queue_state.hpp>
#include <dense/cholesky.hpp>
#include <dense/solve.hpp>
#include <trifactor/cholesky.hpp>
#include <tuning/rows.hpp>

namespace trifactor {

namespace {

using namespace api;
using core::CholeskyTuning;
using core::SolveTuning;

template <class Tuning, class T>
Tuning tuning_for(const Queue& q, const Items<T>& A, std::string_view overrides) {
  return tuning::find<Tuning>(q.state()->architectures, core::scalar_name(std::remove_const_t<T>{}), A.rows, A.count,
                              overrides);
}

/// Upper is Lower seen flipped.
template <class T>
Items<T> as_lower(Uplo uplo, const Items<T>& A) {
  return uplo == Uplo::Upper ? A.flipped() : A;
}

/// What cholesky and cholesky_scratch have in common: the arguments are good, the driver is chosen.
template <class T, class Run>
void with_cholesky(const char* call, const Queue& q, Uplo uplo, const Items<T>& A, const CholeskyOptions& options,
                   Run run) {
  check_square(call, "A", A);
  const auto tuning = tuning_for<CholeskyTuning>(q, A, options.tuning);
  const bool hybrid = options.mode == Mode::Hybrid;
  if (hybrid) check_hybrid(call, q, A.count);
  const Items<T> L = as_lower(uplo, A);
  run([&q, L, tuning, hybrid](auto& e, int* info) {
    if constexpr (core::OffloadEngineFor<std::remove_reference_t<decltype(e)>, T>) {
      if (hybrid) return dense::cholesky_hybrid(e, q.state()->host, L, info, tuning);
    }
    dense::cholesky(e, L, info, tuning);
  });
}

}  // namespace

template <Batch B>
void cholesky(Queue& q, Uplo uplo, B A, int* info, const CholeskyOptions& options) {
  const auto a = items("cholesky", "A", A);
  if (a.count > 0) check_pointer("cholesky", "info", info, sizeof(int));
  with_cholesky("cholesky", q, uplo, a, options, [&](auto driver) { on_engine(q, [&](auto& e) { driver(e, info); }); });
}

template <Batch B>
std::size_t cholesky_scratch(const Queue& q, Uplo uplo, B A, const CholeskyOptions& options) {
  std::size_t bytes = 0;
  with_cholesky("cholesky_scratch", q, uplo, items("cholesky_scratch", "A", A), options,
                [&](auto driver) { bytes = plan(q, [&](auto& e) { driver(e, nullptr); }); });
  return bytes;
}

template <Batch B>
void cholesky_solve(Queue& q, Uplo uplo, const_batch_t<B> L, B X, const int* info, const SolveOptions& options) {
  const auto l = items("cholesky_solve", "L", L);
  const auto x = items("cholesky_solve", "X", X);
  check_fit("cholesky_solve", "L", l, x);
  const auto tuning = tuning_for<SolveTuning>(q, l, options.tuning);
  on_engine(q, [&](auto& e) { dense::cholesky_solve(e, uplo == Uplo::Upper, as_lower(uplo, l), x, info, tuning); });
}

template <Batch B>
std::size_t cholesky_solve_scratch(const Queue& q, Uplo uplo, const_batch_t<B> L, B X, const SolveOptions& options) {
  const auto l = items("cholesky_solve_scratch", "L", L);
  const auto x = items("cholesky_solve_scratch", "X", X);
  check_fit("cholesky_solve_scratch", "L", l, x);
  const auto tuning = tuning_for<SolveTuning>(q, l, options.tuning);
  const int given = 0;  // as much as a call with info needs
  return plan(q, [&](auto& e) { dense::cholesky_solve(e, uplo == Uplo::Upper, as_lower(uplo, l), x, &given, tuning); });
}

template <Batch B>
void cholesky_log_det(Queue& q, Uplo uplo, B L, real_t<value_t<B>>* log_det, const int* info) {
  const Items<const inner_t<value_t<B>>> l = items("cholesky_log_det", "L", const_batch_t<B>(L));
  check_square("cholesky_log_det", "L", l);
  if (l.count == 0) return;
  check_pointer("cholesky_log_det", "log_det", log_det, sizeof(*log_det));
  on_engine(q, [&](auto& e) { e.log_det(as_lower(uplo, l), log_det, info); });
}

namespace {
template <class T, class Run>
auto with_inverse(const char* call, const Queue& q, Uplo uplo, MatrixView<const T> L, MatrixView<T> X,
                  const SolveOptions& options, Run run) {
  const auto l = items(call, "L", L);
  const auto x = items(call, "X", X);
  check_fit(call, "L", l, x);
  check_square(call, "X", x);
  const auto tuning = tuning_for<SolveTuning>(q, x, options.tuning);
  return run([=](auto& e, const int* info) {
    dense::cholesky_inverse(e, uplo == Uplo::Upper, as_lower(uplo, l), x, info, tuning);
  });
}
}  // namespace

template <Scalar T>
void cholesky_inverse(Queue& q, Uplo uplo, std::type_identity_t<MatrixView<const T>> L, MatrixView<T> X,
                      const int* info, const SolveOptions& options) {
  with_inverse<T>("cholesky_inverse", q, uplo, L, X, options,
                  [&](auto driver) { on_engine(q, [&](auto& e) { driver(e, info); }); });
}

template <Scalar T>
std::size_t cholesky_inverse_scratch(const Queue& q, Uplo uplo, std::type_identity_t<MatrixView<const T>> L,
                                     MatrixView<T> X, const SolveOptions& options) {
  const int given = 0;
  return with_inverse<T>("cholesky_inverse_scratch", q, uplo, L, X, options,
                         [&](auto driver) { return plan(q, [&](auto& e) { driver(e, &given); }); });
}

#define TRIFACTOR_INSTANTIATE_BATCH(T, B)                                                                            \
  template TRIFACTOR_API void cholesky<B<T>>(Queue&, Uplo, B<T>, int*, const CholeskyOptions&);                      \
  template TRIFACTOR_API std::size_t cholesky_scratch<B<T>>(const Queue&, Uplo, B<T>, const CholeskyOptions&);       \
  template TRIFACTOR_API void cholesky_solve<B<T>>(Queue&, Uplo, B<const T>, B<T>, const int*, const SolveOptions&); \
  template TRIFACTOR_API std::size_t cholesky_solve_scratch<B<T>>(const Queue&, Uplo, B<const T>, B<T>,              \
                                                                  const SolveOptions&);                              \
  template TRIFACTOR_API void cholesky_log_det<B<T>>(Queue&, Uplo, B<T>, real_t<T>*, const int*);                    \
  template TRIFACTOR_API void cholesky_log_det<B<const T>>(Queue&, Uplo, B<const T>, real_t<T>*, const int*);
#define TRIFACTOR_INSTANTIATE_SCALAR(T)                                                                         \
  TRIFACTOR_INSTANTIATE_BATCH(T, MatrixView)                                                                    \
  TRIFACTOR_INSTANTIATE_BATCH(T, StridedBatch)                                                                  \
  TRIFACTOR_INSTANTIATE_BATCH(T, PointerBatch)                                                                  \
  TRIFACTOR_INSTANTIATE_BATCH(T, RaggedBatch)                                                                   \
  template TRIFACTOR_API void cholesky_inverse<T>(Queue&, Uplo, MatrixView<const T>, MatrixView<T>, const int*, \
                                                  const SolveOptions&);                                         \
  template TRIFACTOR_API std::size_t cholesky_inverse_scratch<T>(const Queue&, Uplo, MatrixView<const T>,       \
                                                                 MatrixView<T>, const SolveOptions&);
#define TRIFACTOR_INSTANTIATE(T) TRIFACTOR_INSTANTIATE_SCALAR(core::ScalarTraits<T>::Public)
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_INSTANTIATE)

}  // namespace trifactor
