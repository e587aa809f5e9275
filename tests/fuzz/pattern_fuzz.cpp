// Sparse patterns: analyze takes them or refuses them, and what it took is factored and solved.
#include "input.hpp"

#include <trifactor/sparse.hpp>

#include <cmath>

using namespace trifactor;

std::vector<std::string> fuzz::seeds() {
  std::string grid("\x00\x00\x02\x00\x00\x08", 6);
  for (int k = 0; k < 60; ++k) grid += char(k * 7);
  return {grid, std::string(40, '\x01'), std::string("\x01\x01\x00\x01\x00\x04\x00\x01\x02\x03\x00\x01\x02\x03", 14)};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input in(data, size);
  const bool honest = in.flag();  // indices within the matrix
  AnalyzeOptions options{
      .ordering = Ordering(in.number(0, 3)), .permutation = {}, .duplicates = in.flag(), .tuning = {}};
  const Stored stored = Stored(in.number(0, 2));
  const Compressed compressed = Compressed(in.number(0, 1));
  const int n = int(in.number(0, 40));
  std::vector<int> start{0}, index;
  for (int j = 0; j < n; ++j) {
    const int count = int(in.number(0, 6));
    for (int k = 0; k < count; ++k) index.push_back(int(honest ? in.number(0, n - 1) : in.number(-1, n)));
    start.push_back(int(index.size()) + (honest ? 0 : int(in.number(-1, 1) * (j + 1 < n))));
  }
  index.push_back(0);  // data() is never null
  const Pattern<int> pattern{n, n, start.data(), index.data(), compressed, stored, in.flag()};
  try {
    const auto plan = analyze(pattern, options);
    fuzz::require(plan->n() == n && plan->entries() == start.back(), "the plan is that of the pattern");
    std::vector<bool> seen(std::size_t(n), false);
    for (const index_t j : plan->permutation()) {
      fuzz::require(j >= 0 && j < n && !seen[std::size_t(j)], "a permutation");
      seen[std::size_t(j)] = true;
    }
    std::vector<double> values(std::size_t(plan->entries()), 0.01);
    Queue q = Queue::host(1);
    SparseCholesky<double> F(q, plan, {.tuning = in.flag() ? "levels=1" : ""});
    F.factor(values, 1000);  // a small matrix and a large shift
    for (const double x : F.solve(std::vector<double>(std::size_t(n), 1)))
      fuzz::require(std::abs(x - 1e-3) < 1e-5, "the solution is right");
  } catch (const InvalidArgument&) {}
  return 0;
}
