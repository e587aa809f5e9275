// CHOLMOD on a matrix that `trifactor bench sparse` wrote: seconds for each phase as one JSON object. A program of its
// own, so that neither the library nor the trifactor program links SuiteSparse.
//
//   trifactor_cholmod MATRIX metis|amd|natural|given=FILE RUNS COLUMNS[,COLUMNS...]
//
// MATRIX: 64-bit n and entries, then n + 1 column starts, the rows, the values (double) of the lower triangle; FILE: n
// 64-bit numbers, the column of the matrix that comes first, second and so on. Both in this machine's byte order.
#include "peer.hpp"

#include <cholmod.h>

namespace {

using namespace peer;
static_assert(sizeof(SuiteSparse_long) == sizeof(Index));

cholmod_sparse view_of(Matrix& matrix) {
  cholmod_sparse A{};
  A.nrow = A.ncol = std::size_t(matrix.n);
  A.nzmax = matrix.row.size();
  A.p = matrix.start.data(), A.i = matrix.row.data(), A.x = matrix.value.data();
  A.stype = -1;  // the lower triangle
  A.itype = CHOLMOD_LONG, A.xtype = CHOLMOD_REAL, A.dtype = CHOLMOD_DOUBLE;
  A.sorted = A.packed = 1;
  return A;
}

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

void run(const std::string& path, const std::string& ordering, int runs, const std::vector<Index>& columns) {
  Matrix matrix(path);
  cholmod_sparse A = view_of(matrix);
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

  cholmod_factor* symbolic = nullptr;
  const auto analyze = times_of(runs, [&] {
    if (symbolic) cholmod_l_free_factor(&symbolic, c);
    return seconds([&] {
      symbolic = cholmod_l_analyze_p(&A, given.empty() ? nullptr : reinterpret_cast<SuiteSparse_long*>(given.data()),
                                     nullptr, 0, c);
    });
  });
  cholmod.require("analyze", symbolic);
  const double flops = c->fl, nonzeros = c->lnz;

  cholmod_factor* L = nullptr;
  const auto first = times_of(runs, [&] {  // a new factor each time, memory and all
    if (L) cholmod_l_free_factor(&L, c);
    L = cholmod_l_copy_factor(symbolic, c);
    return seconds([&] { cholmod_l_factorize(&A, L, c); });
  });
  const auto again = times_of(runs, [&] { return seconds([&] { cholmod_l_factorize(&A, L, c); }); });
  cholmod.require("factorize", L->minor == L->n);

  std::printf("{\"n\": %lld, ", static_cast<long long>(matrix.n));
  print_phase("analyze", analyze), print_phase("factor", first), print_phase("refactor", again);
  double residual = 0;
  for (const Index k : columns) {
    cholmod_dense* B = cholmod_l_ones(std::size_t(matrix.n), std::size_t(k), CHOLMOD_REAL, c);
    cholmod_dense *X = nullptr, *Y = nullptr, *E = nullptr;
    print_phase(solve_phase(k), times_of(runs, [&] {
      return seconds([&] { cholmod_l_solve2(CHOLMOD_A, L, B, nullptr, &X, nullptr, &Y, &E, c); });
    }));
    cholmod.require("solve", X);
    residual = residual_ratio(matrix, static_cast<double*>(X->x), static_cast<double*>(B->x));
    for (cholmod_dense** dense : {&B, &X, &Y, &E}) cholmod_l_free_dense(dense, c);
  }
  std::printf(
      "\"factor_nonzeros\": %.17g, \"flops\": %.17g, \"peak_bytes\": %zu, \"residual\": %s, \"version\": "
      "\"%d.%d.%d\"}\n",
      nonzeros, flops, c->memory_usage, json_number(residual).c_str(), CHOLMOD_MAIN_VERSION,
      CHOLMOD_SUB_VERSION, CHOLMOD_SUBSUB_VERSION);
  for (cholmod_factor** factor : {&L, &symbolic}) cholmod_l_free_factor(factor, c);
}

}  // namespace

int main(int count, char** arguments) {
  try {
    if (count != 5)
      throw std::runtime_error("usage: trifactor_cholmod MATRIX metis|amd|natural|given=FILE RUNS COLUMNS[,COLUMNS...]");
    run(arguments[1], arguments[2], std::max(1, std::atoi(arguments[3])), column_counts(arguments[4]));
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "trifactor_cholmod: %s\n", e.what());
    return 1;
  }
}
