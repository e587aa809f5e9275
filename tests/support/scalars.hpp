// The scalars of this build as lists for typed tests, and the wide type in which results are judged.
#pragma once

#include <trifactor/types.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <type_traits>

// What tests share is compiled once, optimized, in support/*.cpp; in tests, which are not, these declare it.
#ifndef TRIFACTOR_TEST_REFERENCE
#define TRIFACTOR_TEST_REFERENCE extern template
#endif
#ifndef TRIFACTOR_TEST_CALLS
#define TRIFACTOR_TEST_CALLS extern template
#endif
#ifndef TRIFACTOR_TEST_JOBS
#define TRIFACTOR_TEST_JOBS extern template
#endif
#if TRIFACTOR_HAS_F32
#define TRIFACTOR_TEST_F32(X) X(float)
#else
#define TRIFACTOR_TEST_F32(X)
#endif
#if TRIFACTOR_HAS_F64
#define TRIFACTOR_TEST_F64(X) X(double)
#else
#define TRIFACTOR_TEST_F64(X)
#endif
#if TRIFACTOR_HAS_C32
#define TRIFACTOR_TEST_C32(X) X(std::complex<float>)
#else
#define TRIFACTOR_TEST_C32(X)
#endif
#if TRIFACTOR_HAS_C64
#define TRIFACTOR_TEST_C64(X) X(std::complex<double>)
#else
#define TRIFACTOR_TEST_C64(X)
#endif
#define TRIFACTOR_TEST_EACH_WIDE(X) X(double) X(std::complex<double>)
#define TRIFACTOR_TEST_EACH_SCALAR(X) \
  TRIFACTOR_TEST_F32(X) TRIFACTOR_TEST_F64(X) TRIFACTOR_TEST_C32(X) TRIFACTOR_TEST_C64(X)
/// Those of Scalars below.
#if TRIFACTOR_TEST_TWO_SCALARS && TRIFACTOR_HAS_F64 && TRIFACTOR_HAS_C32
#define TRIFACTOR_TEST_EACH_TYPED(X) X(double) X(std::complex<float>)
#else
#define TRIFACTOR_TEST_EACH_TYPED(X) TRIFACTOR_TEST_EACH_SCALAR(X)
#endif
/// The scalars of the build, and the wide ones.
#define TRIFACTOR_TEST_EACH_MATRIX(X) TRIFACTOR_TEST_F32(X) TRIFACTOR_TEST_C32(X) TRIFACTOR_TEST_EACH_WIDE(X)

namespace trifactor::test {

template <class... Lists>
struct Concat;
template <class... A>
struct Concat<::testing::Types<A...>> {
  using type = ::testing::Types<A...>;
};
template <class... A, class... B, class... Rest>
struct Concat<::testing::Types<A...>, ::testing::Types<B...>, Rest...> : Concat<::testing::Types<A..., B...>, Rest...> {
};

template <bool has, class T>
struct Where {
  using type = ::testing::Types<>;
};
template <class T>
struct Where<true, T> {
  using type = ::testing::Types<T>;
};

/// All of the build: for what is written once for each scalar, such as bindings.
using AllScalars = Concat<Where<TRIFACTOR_HAS_F32, float>::type, Where<TRIFACTOR_HAS_F64, double>::type,
                          Where<TRIFACTOR_HAS_C32, std::complex<float>>::type,
                          Where<TRIFACTOR_HAS_C64, std::complex<double>>::type>::type;
/// The same, or f64 and c32 alone, which take every branch of a template.
using Scalars = std::conditional_t<TRIFACTOR_TEST_TWO_SCALARS && TRIFACTOR_HAS_F64 && TRIFACTOR_HAS_C32,
                                   ::testing::Types<double, std::complex<float>>, AllScalars>;

/// Names typed tests by their scalar: Cholesky/f64.LeavesTheOtherTriangleAlone.
struct ScalarNames {
  template <class T>
  static std::string GetName(int) {
    return std::string(ComplexScalar<T> ? "c" : "f") + (sizeof(real_t<T>) == 4 ? "32" : "64");
  }
};

template <Scalar T>
struct WideOf {
  using type = double;
};
template <ComplexScalar T>
struct WideOf<T> {
  using type = std::complex<double>;
};
/// double, or its complex, whatever T is.
template <Scalar T>
using Wide = typename WideOf<T>::type;

/// LAPACK's eps: half the distance from 1 to the next number.
template <Scalar T>
inline constexpr double eps = std::numeric_limits<real_t<T>>::epsilon() / 2;
template <Scalar T>
inline constexpr real_t<T> nan = std::numeric_limits<real_t<T>>::quiet_NaN();
template <Scalar T>
inline constexpr real_t<T> inf = std::numeric_limits<real_t<T>>::infinity();

/// Conjugate and real part that keep the type: std::conj and std::real make complex numbers of real ones.
template <Scalar T>
T conj(T a) {
  if constexpr (ComplexScalar<T>)
    return std::conj(a);
  else
    return a;
}
template <Scalar T>
real_t<T> real(T a) {
  if constexpr (ComplexScalar<T>)
    return a.real();
  else
    return a;
}
template <Scalar T>
T make_scalar(real_t<T> re, real_t<T> im) {
  if constexpr (ComplexScalar<T>)
    return T(re, im);
  else
    return (void)im, re;
}
template <Scalar T>
Wide<T> widen(T a) {
  return Wide<T>(a);
}
template <Scalar T>
T narrow(Wide<T> a) {
  return T(a);
}

}  // namespace trifactor::test
