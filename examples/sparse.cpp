// Analyse a sparse matrix once, factor it twice: heat in a rod, with two time steps.
#include <trifactor/trifactor.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

int main() {
  using trifactor::index_t;
  // The lower triangle of the second difference, by columns: 2 on the diagonal, -1 below it.
  const index_t n = 1000;
  std::vector<index_t> start = {0}, row;
  std::vector<double> value;
  for (index_t j = 0; j < n; ++j) {
    row.push_back(j), value.push_back(2);
    if (j + 1 < n) row.push_back(j + 1), value.push_back(-1);
    start.push_back(index_t(row.size()));
  }

  const auto plan = trifactor::analyze(
      trifactor::Pattern<index_t>{.rows = n, .cols = n, .start = start.data(), .index = row.data()});
  std::printf("%lld nonzeros in L, %lld fronts\n", static_cast<long long>(plan->factor_nonzeros()),
              static_cast<long long>(plan->fronts()));

  auto q = trifactor::Queue::host();
  trifactor::SparseCholesky<double> L(q, plan);  // takes all memory; factor takes none
  double worst = 0;
  for (const double shift : {1.0, 0.01}) {
    L.factor(value, shift);  // A + shift I
    const std::vector<double> x = L.solve(std::vector<double>(n, 1.0));
    worst = std::max(worst, std::abs((2 + shift) * x[0] - x[1] - 1));
    std::printf("shift %.2f: x in the middle %.6f, log det %.4f\n", shift, x[n / 2], L.log_det());
  }
  return worst < 1e-10 ? 0 : 1;
}
