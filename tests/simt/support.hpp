// What tests of kernels on the machine share.
#pragma once

#include "cuda_words.hpp"

#include <core/batch.hpp>

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace trifactor::simt {

using namespace core;

/// With the sanitizer kernels take thirty times as long, so `make test` runs fewer cases: all run with --all.
#if defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif
constexpr bool in_short = sanitized && !TRIFACTOR_TEST_ALL;
using AllScalars = testing::Types<float, double, Complex<float>, Complex<double>>;
using TwoScalars = testing::Types<double, Complex<float>>;
using OneScalar = testing::Types<double>;
using Scalars =
    std::conditional_t<TRIFACTOR_TEST_ALL, AllScalars, std::conditional_t<sanitized, OneScalar, TwoScalars>>;
struct ScalarNames {
  template <class T>
  static std::string GetName(int) {
    return scalar_name(T{});
  }
};

template <class T>
T entry(Real<T> re, Real<T> im) {
  if constexpr (is_complex<T>)
    return {re, im};
  else
    return re;
}
/// Both parts uniform in [-1, 1].
template <class T>
T random_number(std::mt19937_64& random) {
  std::uniform_real_distribution<Real<T>> uniform(-1, 1);
  const Real<T> re = uniform(random), im = uniform(random);
  return entry<T>(re, im);
}
/// (m, n), or a batch of them.
template <class T>
Items<T> items_of(T* data, index_t m, index_t n, index_t ld, index_t count = 1, index_t stride = 0) {
  Items<T> items;
  items.base = data, items.stride = stride, items.ld = ld, items.count = count;
  items.stored_rows = items.rows = m, items.stored_cols = items.cols = n;
  return items;
}
/// The largest of some differences; a NaN is larger than all.
struct Largest {
  double value = 0;
  void add(double difference) {
    if (!(difference <= value)) value = difference;
  }
};
template <class T>
constexpr double tolerance = 1e3 * double(std::numeric_limits<Real<T>>::epsilon());
template <class T>
bool same_numbers(const std::vector<T>& a, const std::vector<T>& b) {
  // A NaN is a NaN: which one depends on the order of operands. So does the sign of a zero.
  const auto same = [](Real<T> x, Real<T> y) { return x == y || (x != x && y != y); };
  for (std::size_t i = 0; i < a.size(); ++i)
    if constexpr (is_complex<T>) {
      if (!same(a[i].re, b[i].re) || !same(a[i].im, b[i].im)) return false;
    } else if (!same(a[i], b[i])) {
      return false;
    }
  return true;
}

}  // namespace trifactor::simt
