// The scalars of this build by their names: f32 f64 c32 c64, where c32 and c64 pair two floats and two doubles.
#pragma once

#include "failure.hpp"

#include <trifactor/types.hpp>

#include <concepts>
#include <string>
#include <type_traits>
#include <vector>

namespace program {

template <trifactor::Scalar T>
constexpr const char* scalar_name = std::same_as<T, float>                 ? "f32"
                                    : std::same_as<T, double>              ? "f64"
                                    : std::same_as<T, std::complex<float>> ? "c32"
                                                                           : "c64";

/// Whether the library was built with it.
template <trifactor::Scalar T>
constexpr bool in_build = std::same_as<T, float>                 ? TRIFACTOR_HAS_F32
                          : std::same_as<T, double>              ? TRIFACTOR_HAS_F64
                          : std::same_as<T, std::complex<float>> ? TRIFACTOR_HAS_C32
                                                                 : TRIFACTOR_HAS_C64;

/// Those that the library was built with.
inline std::vector<std::string> scalar_names() {
  return {
#if TRIFACTOR_HAS_F32
    "f32",
#endif
#if TRIFACTOR_HAS_F64
        "f64",
#endif
#if TRIFACTOR_HAS_C32
        "c32",
#endif
#if TRIFACTOR_HAS_C64
        "c64",
#endif
  };
}

/// f64, or the first that there is.
inline std::string default_scalar() { return TRIFACTOR_HAS_F64 ? "f64" : scalar_names().front(); }

/// Calls work(std::type_identity<T>{}) for the scalar of that name; throws InputError when this build has no such.
template <class Work>
auto with_scalar(const std::string& name, Work&& work) {
#if TRIFACTOR_HAS_F32
  if (name == scalar_name<float>) return work(std::type_identity<float>{});
#endif
#if TRIFACTOR_HAS_F64
  if (name == scalar_name<double>) return work(std::type_identity<double>{});
#endif
#if TRIFACTOR_HAS_C32
  if (name == scalar_name<std::complex<float>>) return work(std::type_identity<std::complex<float>>{});
#endif
#if TRIFACTOR_HAS_C64
  if (name == scalar_name<std::complex<double>>) return work(std::type_identity<std::complex<double>>{});
#endif
  std::string known;
  for (const std::string& scalar : scalar_names()) known += " " + scalar;
  throw InputError("--scalar: '" + name + "' is not a scalar of this build, which has" + known);
}

// Defines MACRO(T) for every scalar of the build, to instantiate templates.
#if TRIFACTOR_HAS_F32
#define TRIFACTOR_IF_F32(MACRO) MACRO(float)
#else
#define TRIFACTOR_IF_F32(MACRO)
#endif
#if TRIFACTOR_HAS_F64
#define TRIFACTOR_IF_F64(MACRO) MACRO(double)
#else
#define TRIFACTOR_IF_F64(MACRO)
#endif
#if TRIFACTOR_HAS_C32
#define TRIFACTOR_IF_C32(MACRO) MACRO(std::complex<float>)
#else
#define TRIFACTOR_IF_C32(MACRO)
#endif
#if TRIFACTOR_HAS_C64
#define TRIFACTOR_IF_C64(MACRO) MACRO(std::complex<double>)
#else
#define TRIFACTOR_IF_C64(MACRO)
#endif
#define TRIFACTOR_FOR_EACH_SCALAR(MACRO) \
  TRIFACTOR_IF_F32(MACRO) TRIFACTOR_IF_F64(MACRO) TRIFACTOR_IF_C32(MACRO) TRIFACTOR_IF_C64(MACRO)

}  // namespace program
