// Dense factors as objects, in the host's memory.
#include <c/views.hpp>

#include <trifactor/cholesky.hpp>
#include <trifactor/lu.hpp>

using namespace trifactor::c;

struct trifactor_dense_cholesky : AnyFactor {
  template <class T>
  using Factor = trifactor::CholeskyFactor<T>;
};
struct trifactor_dense_lu : AnyFactor {
  template <class T>
  using Factor = trifactor::LuFactor<T>;
};

namespace trifactor::c {
namespace {

template <class T>
void copy_result(const char* call, const Matrix<T>& result, MatrixView<T> target) {
  if (target.rows != result.rows() || target.cols != result.cols())
    fail(call, "the view is " + std::to_string(target.rows) + " x " + std::to_string(target.cols) + " but must be " +
                   std::to_string(result.rows()) + " x " + std::to_string(result.cols()));
  detail::check_view(call, "view", target.rows, target.cols, target.ld);
  if (target.rows > 0 && target.cols > 0) need(call, "data of the view", target.data);
  for (index_t j = 0; j < target.cols; ++j)
    std::copy_n(result.data() + j * result.ld(), target.rows, target.data + j * target.ld);
}

/// X := solve(X).
template <class T, class Solve>
void solve_in_place(const char* call, MatrixView<T> X, Solve solve) {
  copy_result(call, solve(MatrixView<const T>(X)), X);
}

}  // namespace
}  // namespace trifactor::c

trifactor_status trifactor_dense_cholesky_create(trifactor_view A, const trifactor_dense_options* given,
                                                 trifactor_dense_cholesky** factor) {
  return guard([&] {
    const char* call = "trifactor_dense_cholesky_create";
    need(call, "the place for the factor", factor) = nullptr;
    const auto o = options_of(call, given);
    trifactor::CholeskyValueOptions options;
    options.uplo = uplo_of(call, o.uplo), options.device = device_of(call, o.device);
    options.mode = mode_of(call, o.mode), options.tuning = string_of(o.tuning);
    options.shift_tries = o.shift_tries, options.shift_first = o.shift_first;
    if (o.shift_growth != 0) options.shift_growth = o.shift_growth;
    with_scalar(call, A.scalar, [&]<class T>() {
      const trifactor::MatrixView<const T> a = matrix_of<T>(call, A.scalar, A);
      *factor = new trifactor_dense_cholesky{{A.scalar, std::make_shared<trifactor::CholeskyFactor<T>>(a, options)}};
    });
  });
}
void trifactor_dense_cholesky_destroy(trifactor_dense_cholesky* factor) { delete factor; }

trifactor_status trifactor_dense_cholesky_solve(const trifactor_dense_cholesky* factor, trifactor_view X) {
  return guard([&] {
    const char* call = "trifactor_dense_cholesky_solve";
    with_factor(call, factor, [&]<class T>(auto& f) {
      solve_in_place(call, matrix_of<T>(call, factor->scalar, X), [&](auto B) { return f.solve(B); });
    });
  });
}
trifactor_status trifactor_dense_cholesky_inverse(const trifactor_dense_cholesky* factor, trifactor_view X) {
  return guard([&] {
    const char* call = "trifactor_dense_cholesky_inverse";
    with_factor(call, factor,
                [&]<class T>(auto& f) { copy_result(call, f.inverse(), matrix_of<T>(call, factor->scalar, X)); });
  });
}
trifactor_status trifactor_dense_cholesky_factor(const trifactor_dense_cholesky* factor, trifactor_view L) {
  return guard([&] {
    const char* call = "trifactor_dense_cholesky_factor";
    with_factor(call, factor,
                [&]<class T>(auto& f) { copy_result(call, f.factor(), matrix_of<T>(call, factor->scalar, L)); });
  });
}
trifactor_status trifactor_dense_cholesky_log_det(const trifactor_dense_cholesky* factor, double* log_det) {
  return guard([&] {
    const char* call = "trifactor_dense_cholesky_log_det";
    with_factor(call, factor, [&]<class T>(auto& f) { need(call, "log_det", log_det) = double(f.log_det()); });
  });
}
trifactor_status trifactor_dense_cholesky_rcond(const trifactor_dense_cholesky* factor, double* rcond) {
  return guard([&] {
    const char* call = "trifactor_dense_cholesky_rcond";
    with_factor(call, factor, [&]<class T>(auto& f) { need(call, "rcond", rcond) = double(f.rcond()); });
  });
}
trifactor_status trifactor_dense_cholesky_shift(const trifactor_dense_cholesky* factor, double* shift) {
  return guard([&] {
    const char* call = "trifactor_dense_cholesky_shift";
    with_factor(call, factor, [&]<class T>(auto& f) { need(call, "shift", shift) = f.shift(); });
  });
}
trifactor_status trifactor_dense_cholesky_uplo(const trifactor_dense_cholesky* factor, trifactor_uplo* uplo) {
  return guard([&] {
    const char* call = "trifactor_dense_cholesky_uplo";
    with_factor(call, factor, [&]<class T>(auto& f) { need(call, "uplo", uplo) = int(f.uplo()); });
  });
}
trifactor_status trifactor_dense_cholesky_device(const trifactor_dense_cholesky* factor, trifactor_device* device) {
  return guard([&] {
    const char* call = "trifactor_dense_cholesky_device";
    with_factor(call, factor, [&]<class T>(auto& f) { need(call, "device", device) = int(f.device()); });
  });
}

trifactor_status trifactor_dense_lu_create(trifactor_view A, const trifactor_dense_options* given,
                                           trifactor_dense_lu** factor) {
  return guard([&] {
    const char* call = "trifactor_dense_lu_create";
    need(call, "the place for the factor", factor) = nullptr;
    const auto o = options_of(call, given);
    const trifactor::LuValueOptions options{
        .device = device_of(call, o.device), .mode = mode_of(call, o.mode), .tuning = string_of(o.tuning)};
    with_scalar(call, A.scalar, [&]<class T>() {
      const trifactor::MatrixView<const T> a = matrix_of<T>(call, A.scalar, A);
      *factor = new trifactor_dense_lu{{A.scalar, std::make_shared<trifactor::LuFactor<T>>(a, options)}};
    });
  });
}
void trifactor_dense_lu_destroy(trifactor_dense_lu* factor) { delete factor; }

trifactor_status trifactor_dense_lu_singular_at(const trifactor_dense_lu* factor, int64_t* k) {
  return guard([&] {
    const char* call = "trifactor_dense_lu_singular_at";
    with_factor(call, factor, [&]<class T>(auto& f) { need(call, "k", k) = f.singular_at(); });
  });
}
trifactor_status trifactor_dense_lu_solve(const trifactor_dense_lu* factor, trifactor_op op, trifactor_view X) {
  return guard([&] {
    const char* call = "trifactor_dense_lu_solve";
    with_factor(call, factor, [&]<class T>(auto& f) {
      solve_in_place(call, matrix_of<T>(call, factor->scalar, X), [&](auto B) { return f.solve(B, op_of(call, op)); });
    });
  });
}
trifactor_status trifactor_dense_lu_inverse(const trifactor_dense_lu* factor, trifactor_view X) {
  return guard([&] {
    const char* call = "trifactor_dense_lu_inverse";
    with_factor(call, factor,
                [&]<class T>(auto& f) { copy_result(call, f.inverse(), matrix_of<T>(call, factor->scalar, X)); });
  });
}
trifactor_status trifactor_dense_lu_factors(const trifactor_dense_lu* factor, trifactor_view LU) {
  return guard([&] {
    const char* call = "trifactor_dense_lu_factors";
    with_factor(call, factor,
                [&]<class T>(auto& f) { copy_result(call, f.factors(), matrix_of<T>(call, factor->scalar, LU)); });
  });
}
trifactor_status trifactor_dense_lu_row_permutation(const trifactor_dense_lu* factor, int* p, int64_t room) {
  return guard([&] {
    const char* call = "trifactor_dense_lu_row_permutation";
    with_factor(call, factor, [&]<class T>(auto& f) {
      const std::vector<int> rows = f.row_permutation();
      if (room < int64_t(rows.size()))
        fail(call,
             "room = " + std::to_string(room) + " must be at least the rows of A, " + std::to_string(rows.size()));
      if (!rows.empty()) std::copy(rows.begin(), rows.end(), &need(call, "p", p));
    });
  });
}
trifactor_status trifactor_dense_lu_det(const trifactor_dense_lu* factor, void* sign, double* log_abs) {
  return guard([&] {
    const char* call = "trifactor_dense_lu_det";
    with_factor(call, factor, [&]<class T>(auto& f) {
      T& s = need(call, "sign", static_cast<T*>(sign));
      double& l = need(call, "log_abs", log_abs);
      const auto det = f.det();
      s = det.sign, l = double(det.log_abs);
    });
  });
}
trifactor_status trifactor_dense_lu_rcond(const trifactor_dense_lu* factor, double* rcond) {
  return guard([&] {
    const char* call = "trifactor_dense_lu_rcond";
    with_factor(call, factor, [&]<class T>(auto& f) { need(call, "rcond", rcond) = double(f.rcond()); });
  });
}
trifactor_status trifactor_dense_lu_device(const trifactor_dense_lu* factor, trifactor_device* device) {
  return guard([&] {
    const char* call = "trifactor_dense_lu_device";
    with_factor(call, factor, [&]<class T>(auto& f) { need(call, "device", device) = int(f.device()); });
  });
}
