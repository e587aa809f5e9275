// The expert forms of Cholesky: check, find the tuning row, run the driver on the queue's engine.
#include <api/expert.hpp>
#include <dense/solve.hpp>
#include <trifactor/cholesky.hpp>

namespace trifactor {

namespace {

using namespace api;
using core::CholeskyTuning;
using core::SolveTuning;

/// Upper is Lower seen flipped.
template <class T>
Items<T> as_lower(Uplo uplo, const Items<T>& A) {
  return uplo == Uplo::Upper ? A.flipped() : A;
}

/// The tries that the options ask for, checked.
template <class T>
dense::ShiftTries shift_tries(const char* call, const CholeskyOptions& o, const Items<T>& A) {
  const auto check = [&](bool good, const char* field, auto value, const char* rule) {
    if (!good) fail(call, std::string(field) + " = " + std::to_string(value) + " must " + rule);
  };
  check(o.shift_tries >= 0 && o.shift_tries <= 100, "shift_tries", o.shift_tries, "be in 0..100");
  if (o.shift_used.data) check_each(call, "shift_used", o.shift_used, A);
  if (o.shift_tries == 0) return {};
  constexpr double infinity = std::numeric_limits<double>::infinity();
  check(o.shift_first >= 0 && o.shift_first < infinity, "shift_first", o.shift_first, "be finite and not negative");
  check(o.shift_growth >= 1 && o.shift_growth < infinity, "shift_growth", o.shift_growth, "be finite and at least 1");
  if (o.mode == Mode::Hybrid) fail(call, "mode = Hybrid must be without shift_tries");
  const double least = std::sqrt(double(std::numeric_limits<core::Real<T>>::epsilon()));
  return {o.shift_tries, o.shift_first > 0 ? o.shift_first : least, o.shift_growth, o.shift_used.data};
}

/// Without tries nothing is shifted.
template <class T>
void clear_shifts(Queue& q, const CholeskyOptions& o, const Items<T>& A) {
  if (o.shift_tries == 0 && o.shift_used.data && A.count > 0)
    detail::fill_zero(*q.state(), o.shift_used.data, std::size_t(A.count) * sizeof(double));
}

/// What cholesky and cholesky_scratch have in common: the arguments are good, the driver is chosen.
template <class T, class Run>
auto with_cholesky(const char* call, const Queue& q, Uplo uplo, const Items<T>& A, const CholeskyOptions& options,
                   Run run) {
  check_square(call, "A", A);
  const auto tuning = tuning_for<CholeskyTuning>(q, A, options.tuning);
  const auto shifts = shift_tries(call, options, A);
  const bool hybrid = options.mode == Mode::Hybrid;
  if (hybrid) check_hybrid(call, q, A.count);
  const Items<T> L = as_lower(uplo, A);
  return run([&q, L, tuning, shifts, hybrid](auto& e, int* info) {
    if constexpr (core::OffloadEngineFor<std::remove_reference_t<decltype(e)>, T>) {
      if (hybrid) return dense::cholesky_hybrid(e, q.state()->host, L, info, tuning);
    }
    dense::cholesky(e, L, info, tuning, shifts);
  });
}

/// The same for factorization and solve together.
template <class T, class Run>
auto with_factor_solve(const char* call, const Queue& q, Uplo uplo, const Items<T>& A, const Items<T>& X,
                       const CholeskyOptions& options, Run run) {
  check_fit(call, "A", Items<const T>(A), X);
  if (options.mode == Mode::Hybrid) fail(call, "mode = Hybrid must be two calls, cholesky and cholesky_solve");
  const auto tuning = tuning_for<CholeskyTuning>(q, A, options.tuning);
  const auto solve_tuning = tuning_for<SolveTuning>(q, A, {});
  const auto shifts = shift_tries(call, options, A);
  return run([=](auto& e, int* info) {
    dense::cholesky_factor_solve(e, uplo == Uplo::Upper, as_lower(uplo, A), X, info, tuning, solve_tuning, shifts);
  });
}

}  // namespace

template <WritableBatch B>
void cholesky(Queue& q, Uplo uplo, B A, ArrayView<int> info, const CholeskyOptions& options) try {
  const auto a = items("cholesky", "A", A);
  check_each("cholesky", "info", info, a);
  with_cholesky("cholesky", q, uplo, a, options, [&](auto driver) { on_engine(q, [&](auto& e) { driver(e, info.data); }); });
  clear_shifts(q, options, a);
} TRIFACTOR_CATCH_BAD_ALLOC

template <WritableBatch B>
std::size_t cholesky_scratch(const Queue& q, Uplo uplo, B A, const CholeskyOptions& options) try {
  return with_cholesky("cholesky_scratch", q, uplo, items("cholesky_scratch", "A", A), options,
                       [&](auto driver) { return plan(q, [&](auto& e) { driver(e, nullptr); }); });
} TRIFACTOR_CATCH_BAD_ALLOC

template <WritableBatch B>
void cholesky_factor_solve(Queue& q, Uplo uplo, B A, std::type_identity_t<B> X, ArrayView<int> info,
                           const CholeskyOptions& options) try {
  const char* const call = "cholesky_factor_solve";
  const auto a = items(call, "A", A), x = items(call, "X", X);
  check_each(call, "info", info, a);
  with_factor_solve(call, q, uplo, a, x, options,
                    [&](auto driver) { on_engine(q, [&](auto& e) { driver(e, info.data); }); });
  clear_shifts(q, options, a);
} TRIFACTOR_CATCH_BAD_ALLOC

template <WritableBatch B>
std::size_t cholesky_factor_solve_scratch(const Queue& q, Uplo uplo, B A, std::type_identity_t<B> X,
                                          const CholeskyOptions& options) try {
  const char* const call = "cholesky_factor_solve_scratch";
  int given = 0;  // as much as a call with info needs
  return with_factor_solve(call, q, uplo, items(call, "A", A), items(call, "X", X), options,
                           [&](auto driver) { return plan(q, [&](auto& e) { driver(e, &given); }); });
} TRIFACTOR_CATCH_BAD_ALLOC

template <WritableBatch B>
void cholesky_solve(Queue& q, Uplo uplo, const_batch_t<B> L, B X, ArrayView<const int> info,
                    const SolveOptions& options) try {
  const auto l = items("cholesky_solve", "L", L);
  const auto x = items("cholesky_solve", "X", X);
  check_fit("cholesky_solve", "L", l, x);
  check_read_info("cholesky_solve", info, l);
  const auto tuning = tuning_for<SolveTuning>(q, l, options.tuning);
  on_engine(q, [&](auto& e) {
    dense::cholesky_solve(e, uplo == Uplo::Upper, as_lower(uplo, l), x, info.data, tuning);
  });
} TRIFACTOR_CATCH_BAD_ALLOC

template <WritableBatch B>
std::size_t cholesky_solve_scratch(const Queue& q, Uplo uplo, const_batch_t<B> L, B X, const SolveOptions& options) try {
  const auto l = items("cholesky_solve_scratch", "L", L);
  const auto x = items("cholesky_solve_scratch", "X", X);
  check_fit("cholesky_solve_scratch", "L", l, x);
  const auto tuning = tuning_for<SolveTuning>(q, l, options.tuning);
  const int given = 0;  // as much as a call with info needs
  return plan(q, [&](auto& e) { dense::cholesky_solve(e, uplo == Uplo::Upper, as_lower(uplo, l), x, &given, tuning); });
} TRIFACTOR_CATCH_BAD_ALLOC

template <Batch B>
void cholesky_log_det(Queue& q, Uplo uplo, B L, ArrayView<real_t<value_t<B>>> log_det, ArrayView<const int> info) try {
  const Items<const inner_t<value_t<B>>> l = items("cholesky_log_det", "L", const_batch_t<B>(L));
  check_square("cholesky_log_det", "L", l);
  if (l.count == 0) return;
  check_each("cholesky_log_det", "log_det", log_det, l);
  check_read_info("cholesky_log_det", info, l);
  on_engine(q, [&](auto& e) { e.log_det(as_lower(uplo, l), log_det.data, info.data); });
} TRIFACTOR_CATCH_BAD_ALLOC

namespace {
template <class T, class Run>
auto with_inverse(const char* call, const Queue& q, Uplo uplo, const Items<const T>& L, const Items<T>& X,
                  const SolveOptions& options, Run run) {
  check_fit(call, "L", L, X);
  check_square(call, "X", X);
  const auto tuning = tuning_for<SolveTuning>(q, X, options.tuning);
  return run([=](auto& e, const int* info) {
    dense::cholesky_inverse(e, uplo == Uplo::Upper, as_lower(uplo, L), X, info, tuning);
  });
}
}  // namespace

template <WritableBatch B>
void cholesky_inverse(Queue& q, Uplo uplo, const_batch_t<B> L, B X, ArrayView<const int> info,
                      const SolveOptions& options) try {
  const char* const call = "cholesky_inverse";
  const auto l = items(call, "L", L);
  check_read_info(call, info, l);
  with_inverse(call, q, uplo, l, items(call, "X", X), options,
               [&](auto driver) { on_engine(q, [&](auto& e) { driver(e, info.data); }); });
} TRIFACTOR_CATCH_BAD_ALLOC

template <WritableBatch B>
std::size_t cholesky_inverse_scratch(const Queue& q, Uplo uplo, const_batch_t<B> L, B X, const SolveOptions& options) try {
  const char* const call = "cholesky_inverse_scratch";
  const int given = 0;
  return with_inverse(call, q, uplo, items(call, "L", L), items(call, "X", X), options,
                      [&](auto driver) { return plan(q, [&](auto& e) { driver(e, &given); }); });
} TRIFACTOR_CATCH_BAD_ALLOC

#define TRIFACTOR_INSTANTIATE_BATCH(T, B)                                                                             \
  template TRIFACTOR_API void cholesky<B<T>>(Queue&, Uplo, B<T>, ArrayView<int>, const CholeskyOptions&);             \
  template TRIFACTOR_API std::size_t cholesky_scratch<B<T>>(const Queue&, Uplo, B<T>, const CholeskyOptions&);        \
  template TRIFACTOR_API void cholesky_factor_solve<B<T>>(Queue&, Uplo, B<T>, B<T>, ArrayView<int>,                   \
                                                          const CholeskyOptions&);                                    \
  template TRIFACTOR_API std::size_t cholesky_factor_solve_scratch<B<T>>(const Queue&, Uplo, B<T>, B<T>,              \
                                                                         const CholeskyOptions&);                     \
  template TRIFACTOR_API void cholesky_solve<B<T>>(Queue&, Uplo, B<const T>, B<T>, ArrayView<const int>,              \
                                                   const SolveOptions&);                                              \
  template TRIFACTOR_API std::size_t cholesky_solve_scratch<B<T>>(const Queue&, Uplo, B<const T>, B<T>,               \
                                                                  const SolveOptions&);                               \
  template TRIFACTOR_API void cholesky_log_det<B<T>>(Queue&, Uplo, B<T>, ArrayView<real_t<T>>, ArrayView<const int>); \
  template TRIFACTOR_API void cholesky_log_det<B<const T>>(Queue&, Uplo, B<const T>, ArrayView<real_t<T>>,            \
                                                           ArrayView<const int>);                                     \
  template TRIFACTOR_API void cholesky_inverse<B<T>>(Queue&, Uplo, B<const T>, B<T>, ArrayView<const int>,            \
                                                     const SolveOptions&);                                            \
  template TRIFACTOR_API std::size_t cholesky_inverse_scratch<B<T>>(const Queue&, Uplo, B<const T>, B<T>,             \
                                                                    const SolveOptions&);
#define TRIFACTOR_INSTANTIATE(T) \
  TRIFACTOR_INSTANTIATE_KINDS(TRIFACTOR_INSTANTIATE_BATCH, core::ScalarTraits<T>::Public)
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_INSTANTIATE)
#undef TRIFACTOR_INSTANTIATE_BATCH
#undef TRIFACTOR_INSTANTIATE

}  // namespace trifactor
