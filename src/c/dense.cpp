// Dense matrices: calls on a queue, for every kind of view.
#include <c/views.hpp>

#include <trifactor/cholesky.hpp>
#include <trifactor/lu.hpp>

using namespace trifactor::c;

trifactor_view trifactor_matrix(trifactor_scalar scalar, const void* data, int64_t rows, int64_t cols, int64_t ld) {
  return {scalar, TRIFACTOR_KIND_MATRIX, const_cast<void*>(data), rows, cols, ld, 0, 1, nullptr, nullptr, nullptr};
}
trifactor_view trifactor_strided(trifactor_scalar scalar, const void* data, int64_t rows, int64_t cols, int64_t ld,
                                 int64_t stride, int64_t count) {
  return {scalar, TRIFACTOR_KIND_STRIDED, const_cast<void*>(data), rows, cols, ld, stride, count, nullptr, nullptr,
          nullptr};
}
trifactor_view trifactor_pointers(trifactor_scalar scalar, const void* items, int64_t rows, int64_t cols, int64_t ld,
                                  int64_t count) {
  return {scalar, TRIFACTOR_KIND_POINTERS, const_cast<void*>(items), rows, cols, ld, 0, count, nullptr, nullptr,
          nullptr};
}
trifactor_view trifactor_ragged(trifactor_scalar scalar, const void* items, const int* rows, const int* cols,
                                const int* ld, int64_t max_rows, int64_t max_cols, int64_t count) {
  return {scalar, TRIFACTOR_KIND_RAGGED, const_cast<void*>(items), max_rows, max_cols, 0, 0, count, rows, cols, ld};
}

namespace trifactor::c {
namespace {

CholeskyOptions cholesky_options(const char* call, const trifactor_cholesky_options* given) {
  const auto o = options_of(call, given);
  CholeskyOptions options;
  options.mode = mode_of(call, o.mode);
  options.tuning = string_of(o.tuning);
  options.shift_tries = o.shift_tries, options.shift_first = o.shift_first;
  if (o.shift_growth != 0) options.shift_growth = o.shift_growth;
  options.shift_used = o.shift_used;
  return options;
}
LuOptions lu_options(const char* call, const trifactor_lu_options* given) {
  const auto o = options_of(call, given);
  return {.mode = mode_of(call, o.mode), .tuning = string_of(o.tuning)};
}
SolveOptions solve_options(const char* call, const trifactor_solve_options* given) {
  return {.tuning = string_of(options_of(call, given).tuning)};
}

Queue& queue_of(const char* call, trifactor_queue* queue) { return need(call, "queue", queue).queue; }
const Queue& queue_of(const char* call, const trifactor_queue* queue) { return need(call, "queue", queue).queue; }

template <class B>
using real_array = ArrayView<real_t<value_t<B>>>;

}  // namespace
}  // namespace trifactor::c

trifactor_status trifactor_cholesky(trifactor_queue* queue, trifactor_uplo uplo, trifactor_view A, int* info,
                                    const trifactor_cholesky_options* options) {
  return guard([&] {
    const char* call = "trifactor_cholesky";
    auto& q = queue_of(call, queue);
    const auto o = cholesky_options(call, options);
    with_view(call, A, [&](auto a) { trifactor::cholesky(q, uplo_of(call, uplo), a, info, o); });
  });
}

trifactor_status trifactor_cholesky_factor_solve(trifactor_queue* queue, trifactor_uplo uplo, trifactor_view A,
                                                 trifactor_view X, int* info,
                                                 const trifactor_cholesky_options* options) {
  return guard([&] {
    const char* call = "trifactor_cholesky_factor_solve";
    auto& q = queue_of(call, queue);
    const auto o = cholesky_options(call, options);
    with_views(call, A, X,
               [&](auto a, auto x) { trifactor::cholesky_factor_solve(q, uplo_of(call, uplo), a, x, info, o); });
  });
}

trifactor_status trifactor_cholesky_solve(trifactor_queue* queue, trifactor_uplo uplo, trifactor_view L,
                                          trifactor_view X, const int* info, const trifactor_solve_options* options) {
  return guard([&] {
    const char* call = "trifactor_cholesky_solve";
    auto& q = queue_of(call, queue);
    const auto o = solve_options(call, options);
    with_views(call, L, X, [&](auto l, auto x) { trifactor::cholesky_solve(q, uplo_of(call, uplo), l, x, info, o); });
  });
}

trifactor_status trifactor_cholesky_log_det(trifactor_queue* queue, trifactor_uplo uplo, trifactor_view L,
                                            void* log_det, const int* info) {
  return guard([&] {
    const char* call = "trifactor_cholesky_log_det";
    auto& q = queue_of(call, queue);
    with_view(call, L, [&]<class B>(B l) {
      const real_array<B> results(static_cast<trifactor::real_t<trifactor::value_t<B>>*>(log_det));
      trifactor::cholesky_log_det(q, uplo_of(call, uplo), l, results, info);
    });
  });
}

trifactor_status trifactor_cholesky_inverse(trifactor_queue* queue, trifactor_uplo uplo, trifactor_view L,
                                            trifactor_view X, const int* info, const trifactor_solve_options* options) {
  return guard([&] {
    const char* call = "trifactor_cholesky_inverse";
    auto& q = queue_of(call, queue);
    const auto o = solve_options(call, options);
    with_views(call, L, X, [&](auto l, auto x) { trifactor::cholesky_inverse(q, uplo_of(call, uplo), l, x, info, o); });
  });
}

trifactor_status trifactor_lu(trifactor_queue* queue, trifactor_view A, int* pivots, int* info,
                              const trifactor_lu_options* options) {
  return guard([&] {
    const char* call = "trifactor_lu";
    auto& q = queue_of(call, queue);
    const auto o = lu_options(call, options);
    with_view(call, A, [&](auto a) { trifactor::lu(q, a, pivots, info, o); });
  });
}

trifactor_status trifactor_lu_factor_solve(trifactor_queue* queue, trifactor_view A, int* pivots, trifactor_view X,
                                           int* info, const trifactor_lu_options* options) {
  return guard([&] {
    const char* call = "trifactor_lu_factor_solve";
    auto& q = queue_of(call, queue);
    const auto o = lu_options(call, options);
    with_views(call, A, X, [&](auto a, auto x) { trifactor::lu_factor_solve(q, a, pivots, x, info, o); });
  });
}

trifactor_status trifactor_lu_solve(trifactor_queue* queue, trifactor_op op, trifactor_view LU, const int* pivots,
                                    trifactor_view X, const int* info, const trifactor_solve_options* options) {
  return guard([&] {
    const char* call = "trifactor_lu_solve";
    auto& q = queue_of(call, queue);
    const auto o = solve_options(call, options);
    with_views(call, LU, X, [&](auto lu, auto x) { trifactor::lu_solve(q, op_of(call, op), lu, pivots, x, info, o); });
  });
}

trifactor_status trifactor_lu_inverse(trifactor_queue* queue, trifactor_view LU, const int* pivots, trifactor_view X,
                                      const int* info, const trifactor_solve_options* options) {
  return guard([&] {
    const char* call = "trifactor_lu_inverse";
    auto& q = queue_of(call, queue);
    const auto o = solve_options(call, options);
    with_views(call, LU, X, [&](auto lu, auto x) { trifactor::lu_inverse(q, lu, pivots, x, info, o); });
  });
}

trifactor_status trifactor_lu_det(trifactor_queue* queue, trifactor_view LU, const int* pivots, void* sign,
                                  void* log_abs) {
  return guard([&] {
    const char* call = "trifactor_lu_det";
    auto& q = queue_of(call, queue);
    with_view(call, LU, [&]<class B>(B lu) {
      using T = trifactor::value_t<B>;
      const trifactor::ArrayView<T> signs(static_cast<T*>(sign));
      const real_array<B> logs(static_cast<trifactor::real_t<T>*>(log_abs));
      trifactor::lu_det(q, lu, pivots, signs, logs);
    });
  });
}

trifactor_status trifactor_lu_row_permutation(trifactor_queue* queue, const int* pivots, int64_t k, int* p,
                                              int64_t rows) {
  return guard(
      [&] { trifactor::lu_row_permutation(queue_of("trifactor_lu_row_permutation", queue), pivots, k, p, rows); });
}

trifactor_status trifactor_cholesky_scratch(const trifactor_queue* queue, trifactor_uplo uplo, trifactor_view A,
                                            const trifactor_cholesky_options* options, size_t* bytes) {
  return guard([&] {
    const char* call = "trifactor_cholesky_scratch";
    auto& q = queue_of(call, queue);
    auto& result = need(call, "bytes", bytes);
    const auto o = cholesky_options(call, options);
    with_view(call, A, [&](auto a) { result = trifactor::cholesky_scratch(q, uplo_of(call, uplo), a, o); });
  });
}

trifactor_status trifactor_cholesky_factor_solve_scratch(const trifactor_queue* queue, trifactor_uplo uplo,
                                                         trifactor_view A, trifactor_view X,
                                                         const trifactor_cholesky_options* options, size_t* bytes) {
  return guard([&] {
    const char* call = "trifactor_cholesky_factor_solve_scratch";
    auto& q = queue_of(call, queue);
    auto& result = need(call, "bytes", bytes);
    const auto o = cholesky_options(call, options);
    with_views(call, A, X, [&](auto a, auto x) {
      result = trifactor::cholesky_factor_solve_scratch(q, uplo_of(call, uplo), a, x, o);
    });
  });
}

trifactor_status trifactor_cholesky_solve_scratch(const trifactor_queue* queue, trifactor_uplo uplo, trifactor_view L,
                                                  trifactor_view X, const trifactor_solve_options* options,
                                                  size_t* bytes) {
  return guard([&] {
    const char* call = "trifactor_cholesky_solve_scratch";
    auto& q = queue_of(call, queue);
    auto& result = need(call, "bytes", bytes);
    const auto o = solve_options(call, options);
    with_views(call, L, X,
               [&](auto l, auto x) { result = trifactor::cholesky_solve_scratch(q, uplo_of(call, uplo), l, x, o); });
  });
}

trifactor_status trifactor_cholesky_inverse_scratch(const trifactor_queue* queue, trifactor_uplo uplo, trifactor_view L,
                                                    trifactor_view X, const trifactor_solve_options* options,
                                                    size_t* bytes) {
  return guard([&] {
    const char* call = "trifactor_cholesky_inverse_scratch";
    auto& q = queue_of(call, queue);
    auto& result = need(call, "bytes", bytes);
    const auto o = solve_options(call, options);
    with_views(call, L, X,
               [&](auto l, auto x) { result = trifactor::cholesky_inverse_scratch(q, uplo_of(call, uplo), l, x, o); });
  });
}

trifactor_status trifactor_lu_scratch(const trifactor_queue* queue, trifactor_view A,
                                      const trifactor_lu_options* options, size_t* bytes) {
  return guard([&] {
    const char* call = "trifactor_lu_scratch";
    auto& q = queue_of(call, queue);
    auto& result = need(call, "bytes", bytes);
    const auto o = lu_options(call, options);
    with_view(call, A, [&](auto a) { result = trifactor::lu_scratch(q, a, o); });
  });
}

trifactor_status trifactor_lu_factor_solve_scratch(const trifactor_queue* queue, trifactor_view A, trifactor_view X,
                                                   const trifactor_lu_options* options, size_t* bytes) {
  return guard([&] {
    const char* call = "trifactor_lu_factor_solve_scratch";
    auto& q = queue_of(call, queue);
    auto& result = need(call, "bytes", bytes);
    const auto o = lu_options(call, options);
    with_views(call, A, X, [&](auto a, auto x) { result = trifactor::lu_factor_solve_scratch(q, a, x, o); });
  });
}

trifactor_status trifactor_lu_solve_scratch(const trifactor_queue* queue, trifactor_op op, trifactor_view LU,
                                            trifactor_view X, const trifactor_solve_options* options, size_t* bytes) {
  return guard([&] {
    const char* call = "trifactor_lu_solve_scratch";
    auto& q = queue_of(call, queue);
    auto& result = need(call, "bytes", bytes);
    const auto o = solve_options(call, options);
    with_views(call, LU, X,
               [&](auto lu, auto x) { result = trifactor::lu_solve_scratch(q, op_of(call, op), lu, x, o); });
  });
}

trifactor_status trifactor_lu_inverse_scratch(const trifactor_queue* queue, trifactor_view LU, trifactor_view X,
                                              const trifactor_solve_options* options, size_t* bytes) {
  return guard([&] {
    const char* call = "trifactor_lu_inverse_scratch";
    auto& q = queue_of(call, queue);
    auto& result = need(call, "bytes", bytes);
    const auto o = solve_options(call, options);
    with_views(call, LU, X, [&](auto lu, auto x) { result = trifactor::lu_inverse_scratch(q, lu, x, o); });
  });
}
