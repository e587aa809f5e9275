// Scalars inside the library: real types as they are, and a complex type that host and device compile alike.
#pragma once

#include <trifactor/types.hpp>

#include <cmath>
#include <limits>
#include <type_traits>

#ifdef __CUDACC__
#define TF_HD __host__ __device__ __forceinline__
#else
#define TF_HD inline __attribute__((always_inline))
#endif
#if defined(__CUDA_ARCH__)
#define TF_UNROLL _Pragma("unroll")
#elif defined(__CUDACC__)
#define TF_UNROLL
#else
#define TF_UNROLL _Pragma("GCC unroll 8")
#endif

namespace trifactor::core {

/// Laid out as std::complex<R>, which device code cannot use.
template <class R>
struct alignas(2 * sizeof(R)) Complex {
  R re, im;

  Complex() = default;
  TF_HD constexpr Complex(R r, R i = R(0)) : re(r), im(i) {}
  template <class S>
  TF_HD constexpr explicit Complex(Complex<S> a) : re(R(a.re)), im(R(a.im)) {}
  TF_HD Complex& operator+=(Complex b) { re += b.re, im += b.im; return *this; }
  TF_HD Complex& operator-=(Complex b) { re -= b.re, im -= b.im; return *this; }
};
template <class R> TF_HD Complex<R> operator+(Complex<R> a, Complex<R> b) { return {a.re + b.re, a.im + b.im}; }
template <class R> TF_HD Complex<R> operator-(Complex<R> a, Complex<R> b) { return {a.re - b.re, a.im - b.im}; }
template <class R> TF_HD Complex<R> operator-(Complex<R> a) { return {-a.re, -a.im}; }
template <class R> TF_HD Complex<R> operator*(Complex<R> a, Complex<R> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class R> TF_HD Complex<R> operator*(Complex<R> a, R b) { return {a.re * b, a.im * b}; }
template <class R> TF_HD bool operator==(Complex<R> a, Complex<R> b) { return a.re == b.re && a.im == b.im; }

/// Smith's quotient: no overflow where the result has none.
template <class R> TF_HD Complex<R> operator/(Complex<R> a, Complex<R> b) {
  using std::fabs;
  if (fabs(b.re) >= fabs(b.im)) {
    const R t = b.im / b.re, d = b.re + b.im * t;
    return {(a.re + a.im * t) / d, (a.im - a.re * t) / d};
  }
  const R t = b.re / b.im, d = b.re * t + b.im;
  return {(a.re * t + a.im) / d, (a.im * t - a.re) / d};
}

template <class T> struct ScalarTraits {   // float, double
  using Real = T;
  using Public = T;
  static constexpr bool is_complex = false;
};
template <class R> struct ScalarTraits<Complex<R>> {
  using Real = R;
  using Public = std::complex<R>;
  static constexpr bool is_complex = true;
};
template <class T> using Real = typename ScalarTraits<std::remove_const_t<T>>::Real;
template <class T> inline constexpr bool is_complex = ScalarTraits<std::remove_const_t<T>>::is_complex;
/// The scalar in double precision.
template <class T> using InDouble = std::conditional_t<is_complex<T>, Complex<double>, double>;

/// The inner twin of a public scalar: std::complex<R> becomes Complex<R>.
template <class T> struct InnerScalar { using type = T; };
template <class R> struct InnerScalar<std::complex<R>> { using type = Complex<R>; };
template <class R> struct InnerScalar<const std::complex<R>> { using type = const Complex<R>; };
template <class T> using inner_t = typename InnerScalar<T>::type;

TF_HD float conj(float a) { return a; }
TF_HD double conj(double a) { return a; }
template <class R> TF_HD Complex<R> conj(Complex<R> a) { return {a.re, -a.im}; }
template <class T> TF_HD T conj_if(bool flag, T a) { return flag ? conj(a) : a; }

TF_HD float real(float a) { return a; }
TF_HD double real(double a) { return a; }
template <class R> TF_HD R real(Complex<R> a) { return a.re; }

/// c - a * b
TF_HD float minus_product(float c, float a, float b) { return c - a * b; }
TF_HD double minus_product(double c, double a, double b) { return c - a * b; }
template <class R> TF_HD Complex<R> minus_product(Complex<R> c, Complex<R> a, Complex<R> b) {
  return {c.re - a.re * b.re + a.im * b.im, c.im - a.re * b.im - a.im * b.re};
}

/// 1 / sqrt(d); GPUs have an instruction for it.
template <class R> TF_HD R reciprocal_sqrt(R d) {
#ifdef __CUDA_ARCH__
  return rsqrt(d);
#else
  return R(1) / std::sqrt(d);
#endif
}

/// LAPACK's cheap modulus for pivot search: |re| + |im|.
TF_HD float abs1(float a) { return a < 0 ? -a : a; }
TF_HD double abs1(double a) { return a < 0 ? -a : a; }
template <class R> TF_HD R abs1(Complex<R> a) { return abs1(a.re) + abs1(a.im); }

/// |a| in double, which overflows only where the result does.
TF_HD double modulus(float a) { return a < 0 ? -double(a) : double(a); }
TF_HD double modulus(double a) { return a < 0 ? -a : a; }
template <class R> TF_HD double modulus(Complex<R> a) { return ::hypot(double(a.re), double(a.im)); }

/// A number as phase * exp(log_modulus); the phase of 0 is 0.
template <class T> struct PolarLog { T phase; Real<T> log_modulus; };
template <class R> TF_HD PolarLog<R> polar_log(R a) { return {a > 0 ? R(1) : a < 0 ? R(-1) : a == 0 ? R(0) : a, std::log(abs1(a))}; }
template <class R> TF_HD PolarLog<Complex<R>> polar_log(Complex<R> a) {
  const R modulus = std::hypot(a.re, a.im);
  if (modulus == 0) return {Complex<R>(0), std::log(modulus)};
  return {Complex<R>(a.re / modulus, a.im / modulus), std::log(modulus)};
}

/// What device code may not ask std::numeric_limits, whose functions are the host's.
template <class R> struct Limits {
  static constexpr R infinity = std::numeric_limits<R>::infinity();
  static constexpr R nan = std::numeric_limits<R>::quiet_NaN();
  static constexpr R smallest = std::numeric_limits<R>::min();   // normal: its reciprocal is finite
};

/// The Cholesky pivot rule: positive and finite. NaN is neither.
template <class R> TF_HD bool good_pivot(R d) { return d > R(0) && d < Limits<R>::infinity; }

/// The larger of two numbers, or a NaN where one of them is.
template <class R> TF_HD R max_or_nan(R a, R b) { return b <= a || a != a ? a : b; }

template <class I> TF_HD constexpr I min(I a, I b) { return b < a ? b : a; }
template <class I> TF_HD constexpr I max(I a, I b) { return a < b ? b : a; }
TF_HD constexpr index_t ceil_div(index_t a, index_t b) { return (a + b - 1) / b; }

inline const char* scalar_name(float) { return "f32"; }
inline const char* scalar_name(double) { return "f64"; }
inline const char* scalar_name(Complex<float>) { return "c32"; }
inline const char* scalar_name(Complex<double>) { return "c64"; }

}  // namespace trifactor::core

// TRIFACTOR_FOR_EACH_SCALAR(X): X(T) for every inner scalar of this build.
#if TRIFACTOR_HAS_F32
#define TRIFACTOR_IF_F32(X) X(float)
#else
#define TRIFACTOR_IF_F32(X)
#endif
#if TRIFACTOR_HAS_F64
#define TRIFACTOR_IF_F64(X) X(double)
#else
#define TRIFACTOR_IF_F64(X)
#endif
#if TRIFACTOR_HAS_C32
#define TRIFACTOR_IF_C32(X) X(::trifactor::core::Complex<float>)
#else
#define TRIFACTOR_IF_C32(X)
#endif
#if TRIFACTOR_HAS_C64
#define TRIFACTOR_IF_C64(X) X(::trifactor::core::Complex<double>)
#else
#define TRIFACTOR_IF_C64(X)
#endif
#define TRIFACTOR_FOR_EACH_SCALAR(X) TRIFACTOR_IF_F32(X) TRIFACTOR_IF_F64(X) TRIFACTOR_IF_C32(X) TRIFACTOR_IF_C64(X)
