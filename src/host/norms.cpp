// HostEngine: sums of the moduli of a matrix's columns. Every factor that knows its condition pays for one pass, so the
// loops are written for vector instructions: partial sums in lanes, and square roots without a look at errno (see
// CMakeLists.txt).
#include <host/engine.hpp>
#include <host/threads.hpp>

#include <algorithm>

namespace trifactor::host {

namespace {

/// Whatever squares over- or underflow in complex double.
struct PlainModulus {
  template <class R>
  double operator()(R a) const {
    return std::abs(double(a));
  }
  template <class R>
  double operator()(Complex<R> a) const {
    return std::sqrt(double(a.re) * double(a.re) + double(a.im) * double(a.im));
  }
};
struct SafeModulus {
  template <class T>
  double operator()(T a) const {
    return core::modulus(a);
  }
};

/// The sum of |x_i|; with a second place for each, also[i] += |x_i|.
template <bool twice, class T, class Modulus>
double add_moduli(index_t n, const T* __restrict x, double* __restrict also, Modulus modulus) {
  constexpr int lanes = is_complex<T> ? 16 : 8;
  double part[lanes] = {};
  index_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (int l = 0; l < lanes; ++l) {
      const double m = modulus(x[i + l]);
      part[l] += m;
      if constexpr (twice) also[i + l] += m;
    }
  for (int l = 0; i < n; ++i, ++l) {
    const double m = modulus(x[i]);
    part[l] += m;
    if constexpr (twice) also[i] += m;
  }
  for (int half = lanes / 2; half > 0; half /= 2)
    for (int l = 0; l < half; ++l) part[l] += part[l + half];
  return part[0];
}

/// Adds to norms what columns j0 .. j1 - 1 hold, and of one triangle what they hold of the other columns.
template <class T, class Modulus>
void add_columns(const Tile<const T>& a, NormOf of, index_t j0, index_t j1, double* norms, Modulus modulus) {
  for (index_t j = j0; j < j1; ++j) {
    const T* column = a.data + j * a.col_stride;
    if (of == NormOf::General)
      norms[j] += add_moduli<false>(a.rows, column, nullptr, modulus);
    else {
      const index_t begin = of == NormOf::HermitianLower ? j + 1 : 0, end = of == NormOf::HermitianLower ? a.rows : j;
      norms[j] += modulus(real(column[j])) + add_moduli<true>(end - begin, column + begin, norms + begin, modulus);
    }
  }
}

}  // namespace

template <class T>
void HostEngine::column_norms(Items<const T> A, NormOf of, double* norms) {
  constexpr double smallest = 0x1p-400, largest = 0x1p500;  // of sums in which no square matters that over- or underflowed
  const Tile<const T> a = A.item(0);
  const index_t n = a.cols, parts = blas_has_own_threads() ? 1 : team_for(threads_, double(a.rows) * double(n));
  // Of a triangle, every part has sums for all columns.
  const index_t copies = of == NormOf::General ? 1 : parts;
  auto scratch = arena_.take<double>((copies - 1) * n);
  if (arena_.planning()) return;
  const auto compute = [&](auto modulus) {
    std::fill_n(norms, n, 0.0);
    std::fill_n(scratch.data(), (copies - 1) * n, 0.0);
    const auto some = [&](index_t p) {  // every so many columns: those of a triangle are not equally long
      constexpr index_t block = 16;
      double* sums = copies == 1 || p == 0 ? norms : scratch.data() + (p - 1) * n;
      for (index_t j = p * block; j < n; j += parts * block)
        add_columns(a, of, j, core::min(n, j + block), sums, modulus);
    };
    if (parts == 1) return some(0);
#pragma omp parallel for schedule(static, 1) num_threads(int(parts))
    for (index_t p = 0; p < parts; ++p) some(p);
    for (index_t p = 1; p < copies; ++p)
      for (index_t j = 0; j < n; ++j) norms[j] += scratch.data()[(p - 1) * n + j];
  };
  compute(PlainModulus{});
  if constexpr (std::is_same_v<T, Complex<double>>)
    if (!std::all_of(norms, norms + n, [&](double sum) { return sum > smallest && sum < largest; })) compute(SafeModulus{});
}

#define TRIFACTOR_INSTANTIATE(T) template void HostEngine::column_norms<T>(Items<const T>, NormOf, double*);
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_INSTANTIATE)
#undef TRIFACTOR_INSTANTIATE

}  // namespace trifactor::host
