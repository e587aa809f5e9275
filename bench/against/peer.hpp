// What the peers of `trifactor bench sparse` share: the matrix that it wrote, times, and how they are printed.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace peer {

using Index = std::int64_t;

class Input {
 public:
  explicit Input(const std::string& path) : path_(path), file_(path, std::ios::binary) {}

  template <class T>
  std::vector<T> take(std::size_t count) {
    std::vector<T> values(count);
    if (!file_.read(reinterpret_cast<char*>(values.data()), std::streamsize(count * sizeof(T))))
      throw std::runtime_error(path_ + ": cannot be read, or is too short");
    return values;
  }

 private:
  std::string path_;
  std::ifstream file_;
};

struct Matrix {
  Index n = 0;
  std::vector<Index> start, row;
  std::vector<double> value;

  explicit Matrix(const std::string& path) {
    Input in(path);
    const auto sizes = in.take<Index>(2);
    n = sizes[0];
    start = in.take<Index>(std::size_t(n + 1));
    row = in.take<Index>(std::size_t(sizes[1]));
    value = in.take<double>(std::size_t(sizes[1]));
  }
};

template <class Work>
double seconds(const Work& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Median and (third quartile - first quartile) / median, as trifactor::measure has them.
struct Summary {
  double median, spread;
  explicit Summary(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t count = values.size();
    median = values[count / 2];
    spread = (values[3 * count / 4] - values[count / 4]) / median;
  }
};

/// The times of one phase. It runs once before it counts: the first call starts threads and touches new memory.
template <class Work>
std::vector<double> times_of(int runs, const Work& work) {
  std::vector<double> times;
  for (int k = 0; k <= runs; ++k)
    if (const double time = work(); k > 0) times.push_back(time);
  return times;
}
/// A number as JSON has it; null where it is not finite.
inline std::string json_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  return std::isfinite(value) ? text : "null";
}
inline void print_phase(const std::string& phase, const std::vector<double>& times) {
  const Summary summary(times);
  std::printf("\"%s_seconds\": %.9g, \"%s_spread\": %.6g, ", phase.c_str(), summary.median, phase.c_str(), summary.spread);
}

/// "1,64": how many right-hand sides, one solve for each.
inline std::vector<Index> column_counts(const std::string& list) {
  std::vector<Index> counts;
  for (std::size_t at = 0; at <= list.size(); at = list.find(',', at) + 1) {
    counts.push_back(std::max(1, std::atoi(list.c_str() + at)));
    if (list.find(',', at) == std::string::npos) break;
  }
  return counts;
}
/// The name of the solve's phase.
inline std::string solve_phase(Index columns) { return "solve_" + std::to_string(columns); }

/// |B - A X| / (|A| |X| eps), 1-norms, of a single right-hand side.
inline double residual_ratio(const Matrix& A, const double* x, const double* b) {
  std::vector<double> r(b, b + A.n), sums(std::size_t(A.n), 0);
  for (Index j = 0; j < A.n; ++j)
    for (Index k = A.start[j]; k < A.start[j + 1]; ++k) {
      const Index i = A.row[k];
      const double a = A.value[k];
      r[i] -= a * x[j], sums[j] += std::abs(a);
      if (i != j) r[j] -= a * x[i], sums[i] += std::abs(a);
    }
  double residual = 0, size = 0;
  for (Index i = 0; i < A.n; ++i) residual += std::abs(r[i]), size += std::abs(x[i]);
  return residual == 0 ? 0 : residual / (*std::max_element(sums.begin(), sums.end()) * size * 0x1p-53);
}

}  // namespace peer
