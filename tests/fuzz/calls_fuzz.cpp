// Dense and batched calls with any sizes and numbers: refused, or factored as a plain loop over the definition does.
#include "input.hpp"

#include <trifactor/cholesky.hpp>
#include <trifactor/lu.hpp>

#include <algorithm>
#include <cmath>

using namespace trifactor;

std::vector<std::string> fuzz::seeds() {
  std::string numbers;
  for (int k = 0; k < 200; ++k) numbers += char(60 + k * 37 % 190);
  return {std::string("\x00\x05\x05\x05\x02\x01\x03", 7) + numbers,
          std::string("\x01\x12\x12\x14\x01\x01\x02", 7) + numbers,
          std::string("\x03\x02\x07\x02\x00\x02\x00", 7) + numbers};
}

namespace {

/// max |P A - L U|, or |A - L L^T| where there are no pivots, relative to the largest entry of what is subtracted.
double difference(const std::vector<double>& A, const std::vector<double>& F, const int* pivots, index_t m, index_t n) {
  std::vector<double> PA = A;
  for (index_t k = 0; pivots && k < std::min(m, n); ++k)
    for (index_t j = 0; j < n; ++j) std::swap(PA[k + j * m], PA[pivots[k] - 1 + j * m]);
  double worst = 0, scale = 0;
  for (index_t j = 0; j < n; ++j)
    for (index_t i = pivots ? 0 : j; i < m; ++i) {
      double sum = 0, size = 0;
      for (index_t k = 0; k <= std::min(i, std::min(j, m - 1)); ++k) {
        const double l = pivots && k == i ? 1 : F[i + k * m], u = pivots ? F[k + j * m] : F[j + k * m];
        sum += l * u, size += std::abs(l * u);
      }
      worst = std::max(worst, std::abs(sum - PA[i + j * m])), scale = std::max(scale, size);
    }
  return scale > 0 ? worst / scale : worst;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input in(data, size);
  static Queue q = Queue::host(2);
  const bool is_lu = in.flag(), odd_sizes = in.flag();
  const index_t m = in.number(odd_sizes ? -1 : 0, 40), n = is_lu ? in.number(odd_sizes ? -1 : 0, 40) : m;
  const index_t ld = std::max<index_t>(m, 1) + (odd_sizes ? in.number(-1, 1) : 0), count = in.number(1, 5);
  const index_t extent = std::max<index_t>(0, m) * std::max<index_t>(0, n);
  std::vector<double> A(std::size_t(extent * count));
  bool moderate = true;
  for (double& a : A) {
    a = in.real();
    moderate = moderate && (a == 0 || (std::abs(a) > 1e-100 && std::abs(a) < 1e100));
  }
  if (!is_lu)
    for (index_t b = 0; b < count; ++b)
      for (index_t j = 0; j < n; ++j) A[std::size_t(b * extent + j + j * n)] += 40.0 * double(n);
  std::vector<double> F(A.size() + std::size_t(40 * count + 2));  // a leading dimension may be one larger
  const index_t stride = ld * std::max<index_t>(n, 0);
  for (index_t b = 0; b < count && ld >= m; ++b)
    for (index_t j = 0; j < n; ++j)
      for (index_t i = 0; i < m; ++i) F[std::size_t(b * stride + i + j * ld)] = A[std::size_t(b * extent + i + j * m)];
  std::vector<int> info(std::size_t(count), -7), pivots(std::size_t(40 * count + 1), -7);
  const StridedBatch<double> batch{F.data(), m, n, ld, stride, count};
  const bool possible = m >= 0 && n >= 0 && ld >= std::max<index_t>(m, 1);
  try {
    if (is_lu)
      lu(q, batch, pivots.data(), info.data(), {.tuning = in.flag() ? "whole=0 nb=8 leaf=4" : ""});
    else
      cholesky(q, Uplo::Lower, batch, info.data(), {.tuning = in.flag() ? "whole=0 interleaved=0 nb=8 leaf=4" : ""});
    fuzz::require(possible, "impossible sizes are refused");
  } catch (const InvalidArgument&) {
    fuzz::require(!possible, "possible sizes are taken");
    return 0;
  }
  for (index_t b = 0; b < count; ++b) {
    const int k = info[std::size_t(b)];
    fuzz::require(k >= 0 && k <= std::min(m, n), "info is 0 or a column");
    std::vector<double> own(A.size() / std::size_t(count)), factor(own.size());
    for (index_t j = 0; j < n; ++j)
      for (index_t i = 0; i < m; ++i) {
        own[std::size_t(i + j * m)] = A[std::size_t(b * extent + i + j * m)];
        factor[std::size_t(i + j * m)] = F[std::size_t(b * stride + i + j * ld)];
      }
    const int* p = is_lu ? pivots.data() + b * std::min(m, n) : nullptr;
    if (moderate && (is_lu || k == 0)) {
      for (index_t i = 0; p && i < std::min(m, n); ++i) fuzz::require(p[i] > i && p[i] <= m, "pivots are rows");
      fuzz::require(difference(own, factor, p, m, n) < 1e-12, "the product of the factors is the matrix");
    }
  }
  return 0;
}
