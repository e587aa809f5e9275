// CHOLMOD on a matrix that `trifactor bench sparse` wrote: seconds for each phase as one JSON object. A program of its
// own, so that neither the library nor the trifactor program links SuiteSparse.
//
//   trifactor_cholmod MATRIX metis|amd|natural|given=FILE RUNS COLUMNS
//
// MATRIX: 64-bit n and entries, then n + 1 column starts, the rows, the values (double) of the lower triangle; FILE: n
// 64-bit numbers, the column of the matrix that comes first, second and so on. Both in this machine's byte order.
#include <cholmod.h>

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

namespace {

using Index = SuiteSparse_long;
static_assert(sizeof(Index) == sizeof(std::int64_t));

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

  cholmod_sparse view() {
    cholmod_sparse A{};
    A.nrow = A.ncol = std::size_t(n);
    A.nzmax = row.size();
    A.p = start.data(), A.i = row.data(), A.x = value.data();
    A.stype = -1;  // the lower triangle
    A.itype = CHOLMOD_LONG, A.xtype = CHOLMOD_REAL, A.dtype = CHOLMOD_DOUBLE;
    A.sorted = A.packed = 1;
    return A;
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

struct Cholmod {
  cholmod_common common;
  Cholmod() { cholmod_l_start(&common); }
  ~Cholmod() { cholmod_l_finish(&common); }
  Cholmod(const Cholmod&) = delete;
  Cholmod& operator=(const Cholmod&) = delete;

  void require(const char* what, bool good) const {
    if (!good || common.status != CHOLMOD_OK)
      throw std::runtime_error(std::string("CHOLMOD: ") + what + " failed with status " +
                               std::to_string(common.status));
  }
};

/// |B - A X| / (|A| |X| eps), 1-norms, of a single right-hand side.
double residual_ratio(const Matrix& A, const double* x, const double* b) {
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

void run(const std::string& path, const std::string& ordering, int runs, Index columns) {
  Matrix matrix(path);
  cholmod_sparse A = matrix.view();
  Cholmod cholmod;
  cholmod_common* const c = &cholmod.common;
  c->supernodal = CHOLMOD_SUPERNODAL;
  c->print = 0;
  c->useGPU = 0;
  c->nmethods = 1;
  std::vector<Index> given;
  if (ordering.rfind("given=", 0) == 0) {
    given = Input(ordering.substr(6)).take<Index>(std::size_t(matrix.n));
    c->method[0].ordering = CHOLMOD_GIVEN;
  } else if (ordering == "metis" || ordering == "amd" || ordering == "natural") {
    c->method[0].ordering = ordering == "metis" ? CHOLMOD_METIS : ordering == "amd" ? CHOLMOD_AMD : CHOLMOD_NATURAL;
  } else {
    throw std::runtime_error("'" + ordering + "' is not one of metis, amd, natural, given=FILE");
  }

  // Every phase runs once before it counts: the first call starts the threads of BLAS and touches new memory.
  cholmod_factor* symbolic = nullptr;
  std::vector<double> analyze, first, again, solve;
  const auto keep = [](std::vector<double>& times, int k, double time) {
    if (k > 0) times.push_back(time);
  };
  for (int k = 0; k <= runs; ++k) {
    if (symbolic) cholmod_l_free_factor(&symbolic, c);
    keep(analyze, k,
         seconds([&] { symbolic = cholmod_l_analyze_p(&A, given.empty() ? nullptr : given.data(), nullptr, 0, c); }));
    cholmod.require("analyze", symbolic);
  }
  const double flops = c->fl, nonzeros = c->lnz;

  cholmod_factor* L = nullptr;
  for (int k = 0; k <= runs; ++k) {  // a new factor each time, memory and all
    if (L) cholmod_l_free_factor(&L, c);
    L = cholmod_l_copy_factor(symbolic, c);
    keep(first, k, seconds([&] { cholmod_l_factorize(&A, L, c); }));
    cholmod.require("factorize", L->minor == L->n);
  }
  for (int k = 0; k <= runs; ++k) keep(again, k, seconds([&] { cholmod_l_factorize(&A, L, c); }));
  cholmod.require("factorize", L->minor == L->n);

  cholmod_dense* B = cholmod_l_ones(std::size_t(matrix.n), std::size_t(columns), CHOLMOD_REAL, c);
  cholmod_dense *X = nullptr, *Y = nullptr, *E = nullptr;
  for (int k = 0; k <= runs; ++k)
    keep(solve, k, seconds([&] { cholmod_l_solve2(CHOLMOD_A, L, B, nullptr, &X, nullptr, &Y, &E, c); }));
  cholmod.require("solve", X);
  std::printf("{\"n\": %lld, ", static_cast<long long>(matrix.n));
  const auto print = [](const char* phase, const std::vector<double>& times) {
    const Summary summary(times);
    std::printf("\"%s_seconds\": %.9g, \"%s_spread\": %.6g, ", phase, summary.median, phase, summary.spread);
  };
  print("analyze", analyze), print("factor", first), print("refactor", again), print("solve", solve);
  std::printf(
      "\"factor_nonzeros\": %.17g, \"flops\": %.17g, \"peak_bytes\": %zu, \"residual\": %.6g, \"version\": "
      "\"%d.%d.%d\"}\n",
      nonzeros, flops, c->memory_usage, residual_ratio(matrix, static_cast<double*>(X->x), static_cast<double*>(B->x)),
      CHOLMOD_MAIN_VERSION, CHOLMOD_SUB_VERSION, CHOLMOD_SUBSUB_VERSION);
  for (cholmod_dense** dense : {&B, &X, &Y, &E}) cholmod_l_free_dense(dense, c);
  for (cholmod_factor** factor : {&L, &symbolic}) cholmod_l_free_factor(factor, c);
}

}  // namespace

int main(int count, char** arguments) {
  try {
    if (count != 5)
      throw std::runtime_error("usage: trifactor_cholmod MATRIX metis|amd|natural|given=FILE RUNS COLUMNS");
    run(arguments[1], arguments[2], std::max(1, std::atoi(arguments[3])), std::max(1, std::atoi(arguments[4])));
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "trifactor_cholmod: %s\n", e.what());
    return 1;
  }
}
