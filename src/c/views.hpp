// From a scalar and a kind that are known at run time to the views of C++.
#pragma once

#include <c/status.hpp>
#include <trifactor/views.hpp>

namespace trifactor::c {

/// f.operator()<T>() for the scalar T.
template <class F>
void with_scalar(const char* call, trifactor_scalar scalar, F&& f) {
  check_word(call, "scalar", scalar, 4, "TRIFACTOR_F32, TRIFACTOR_F64, TRIFACTOR_C32 or TRIFACTOR_C64");
  const auto run = [&]<class T>() {
    if constexpr (BuiltScalar<T>)
      f.template operator()<T>();
    else
      fail(call, "this build of the library does not hold the scalar: see TRIFACTOR_SCALARS");
  };
  switch (scalar) {
    case TRIFACTOR_F32:
      return run.template operator()<float>();
    case TRIFACTOR_F64:
      return run.template operator()<double>();
    case TRIFACTOR_C32:
      return run.template operator()<std::complex<float>>();
    default:
      return run.template operator()<std::complex<double>>();
  }
}

template <class T>
void read_view(const trifactor_view& v, MatrixView<T>& A) {
  A = {static_cast<T*>(v.data), v.rows, v.cols, v.ld};
}
template <class T>
void read_view(const trifactor_view& v, StridedBatch<T>& A) {
  A = {static_cast<T*>(v.data), v.rows, v.cols, v.ld, v.stride, v.count};
}
template <class T>
void read_view(const trifactor_view& v, PointerBatch<T>& A) {
  A = {static_cast<T* const*>(v.data), v.rows, v.cols, v.ld, v.count};
}
template <class T>
void read_view(const trifactor_view& v, RaggedBatch<T>& A) {
  A = {static_cast<T* const*>(v.data), v.item_rows, v.item_cols, v.item_ld, v.count, v.rows, v.cols};
}
template <class B>
B as(const trifactor_view& v) {
  B A;
  read_view(v, A);
  return A;
}

/// f(A) for the view as one of the four of C++.
template <class F>
void with_view(const char* call, const trifactor_view& A, F&& f) {
  check_word(call, "kind of a view", A.kind, 4,
             "TRIFACTOR_KIND_MATRIX, TRIFACTOR_KIND_STRIDED, TRIFACTOR_KIND_POINTERS or TRIFACTOR_KIND_RAGGED");
  with_scalar(call, A.scalar, [&]<class T>() {
    switch (A.kind) {
      case TRIFACTOR_KIND_MATRIX:
        return f(as<MatrixView<T>>(A));
      case TRIFACTOR_KIND_STRIDED:
        return f(as<StridedBatch<T>>(A));
      case TRIFACTOR_KIND_POINTERS:
        return f(as<PointerBatch<T>>(A));
      default:
        return f(as<RaggedBatch<T>>(A));
    }
  });
}

/// f(A, X) for two views of one kind.
template <class F>
void with_views(const char* call, const trifactor_view& A, const trifactor_view& X, F&& f) {
  if (A.scalar != X.scalar || A.kind != X.kind)
    fail(call, "both views must be of one scalar and one kind, but the first has scalar " + std::to_string(A.scalar) +
                   " and kind " + std::to_string(A.kind) + ", the second " + std::to_string(X.scalar) + " and " +
                   std::to_string(X.kind));
  with_view(call, A, [&](auto a) { f(a, as<decltype(a)>(X)); });
}

/// A view that must be of one kind and of a factor's scalar.
template <class B>
B view_of(const char* call, trifactor_scalar scalar, const trifactor_view& A, trifactor_kind kind, const char* name) {
  if (A.kind != kind) fail(call, "kind of the view = " + std::to_string(A.kind) + " must be " + name);
  if (A.scalar != scalar)
    fail(call,
         "scalar of the view = " + std::to_string(A.scalar) + " must be that of the factor, " + std::to_string(scalar));
  return as<B>(A);
}
/// The view of one matrix of scalar T.
template <class T>
MatrixView<T> matrix_of(const char* call, trifactor_scalar scalar, const trifactor_view& A) {
  return view_of<MatrixView<T>>(call, scalar, A, TRIFACTOR_KIND_MATRIX, "TRIFACTOR_KIND_MATRIX");
}

/// An object whose scalar is known at run time.
struct AnyFactor {
  trifactor_scalar scalar;
  std::shared_ptr<void> object;
};

/// f.operator()<T>(factor) for the object behind a handle, which says by its member template Factor what it is.
template <class Handle, class F>
void with_factor(const char* call, Handle* handle, F&& f) {
  auto& any = need(call, "factor", handle);
  with_scalar(call, any.scalar, [&]<class T>() {
    f.template operator()<T>(*static_cast<typename Handle::template Factor<T>*>(any.object.get()));
  });
}

}  // namespace trifactor::c
