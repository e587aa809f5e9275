// The words every other header uses: sizes, scalars, and the few choices a caller makes.
#pragma once

#include <trifactor/config.hpp>

#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>

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

/// Items that are not positive definite are factored again, with a shift on the diagonal: first * growth^t in try t = 0, 1,
/// ..., times the modulus of the largest diagonal entry. The tries are part of the call: on a CUDA queue they are enqueued,
/// only failed items do work in them, and the host is not asked. They keep a copy of all triangles in scratch memory, of a ragged
/// batch with room for its largest item in place of each.
struct ShiftOnFailure {
  int tries = 0;            // 0: off; at most 100
  double first = 0;         // finite and not negative; 0: the square root of the scalar's epsilon
  double growth = 10;       // finite and at least 1
  /// In the queue's memory, an entry for each item, may be null: what was added to the diagonal of each item at last; 0 where
  /// the first factorization was good or the item impossible. The info of an item is that of its last try.
  double* used = nullptr;
};

struct CholeskyOptions {
  Mode mode = Mode::Auto;
  /// Overrides fields of the tuning row, such as "nb=128 looking=left".
  std::string tuning = {};
  ShiftOnFailure shift_on_failure = {};
};

struct LuOptions {
  Mode mode = Mode::Auto;
  /// Overrides fields of the tuning row, such as "nb=128".
  std::string tuning = {};
};

/// Of solves with a factor and of inverses from it.
struct SolveOptions {
  /// Overrides fields of the tuning row, such as "few=4".
  std::string tuning = {};
};

/// Where a value form runs. Auto: the GPU where one is present and the matrix is large enough to gain from it.
enum class Device { Auto, Host, Cuda };

}  // namespace trifactor
