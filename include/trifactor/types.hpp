// The words every other header uses: sizes, scalars, and the few choices a caller makes.
#pragma once

#include <trifactor/config.hpp>

#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace trifactor {

/// Every size and offset.
using index_t = std::int64_t;

template <class T>
concept RealScalar = std::same_as<T, float> || std::same_as<T, double>;
template <class T>
concept ComplexScalar = std::same_as<T, std::complex<float>> || std::same_as<T, std::complex<double>>;

/// float, double, and std::complex of both.
template <class T>
concept Scalar = RealScalar<T> || ComplexScalar<T>;

/// The scalars that this build of the library holds: all four, unless it was built with -DTRIFACTOR_SCALARS.
template <class T>
concept BuiltScalar = (bool(TRIFACTOR_HAS_F32) && std::same_as<T, float>) ||
                      (bool(TRIFACTOR_HAS_F64) && std::same_as<T, double>) ||
                      (bool(TRIFACTOR_HAS_C32) && std::same_as<T, std::complex<float>>) ||
                      (bool(TRIFACTOR_HAS_C64) && std::same_as<T, std::complex<double>>);

namespace detail {
template <class T> struct RealOf { using type = T; };
template <class R> struct RealOf<std::complex<R>> { using type = R; };
}  // namespace detail

/// The real type beneath T: double for std::complex<double>.
template <Scalar T> using real_t = typename detail::RealOf<T>::type;

/// The triangle that holds a symmetric or hermitian matrix, or its factor.
enum class Uplo { Lower, Upper };

/// Which matrix a solve means: A, A^T or A^H.
enum class Op { None, Transpose, ConjTranspose };

/// Where the panels of a blocked factorization run. Native: on the queue's device. Hybrid: on the CPU while the GPU
/// updates; blocks the caller, takes one matrix on a CUDA queue. Auto never leaves the queue's device.
enum class Mode { Auto, Native, Hybrid };

/// Where a value form runs. Auto: the GPU where one is present and the matrix is large enough to gain from it.
enum class Device { Auto, Host, Cuda };

}  // namespace trifactor
