// The one-norm of a matrix from the values that a plan's pattern was given.
#pragma once

#include <core/condition.hpp>
#include <sparse/entries.hpp>

#include <algorithm>

namespace trifactor::sparse {

/// |A + shift I|_1; entries of the same place are added up, and a NaN stays. Values are in host memory.
template <class T>
double norm1(const Plan& plan, const T* values, core::Real<T> shift) {
  const Entries entries = entries_by_front(plan);
  std::vector<double> sums(plan.n, 0.0), diagonal(plan.n, double(shift));
  std::vector<std::pair<index_t, T>> front;  // its values by place
  for (index_t s = 0; s < plan.fronts(); ++s) {
    front.clear();
    for (index_t k = entries.start[s]; k < entries.start[s + 1]; ++k) {
      const bool conjugated = entries.target[k] < 0;
      const index_t at = (conjugated ? ~entries.target[k] : entries.target[k]) - plan.factor_start[s];
      front.emplace_back(at, core::conj_if(conjugated, values[entries.source[k]]));
    }
    std::stable_sort(front.begin(), front.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    const index_t m = plan.row_count(s);
    for (std::size_t k = 0; k < front.size();) {
      const index_t at = front[k].first;
      T a = front[k].second;
      while (++k < front.size() && front[k].first == at) a += front[k].second;
      const index_t j = plan.first[s] + at / m, i = plan.rows[plan.row_start[s] + at % m];
      if (i == j)
        diagonal[j] += double(core::real(a));
      else
        sums[i] += core::modulus(a), sums[j] += core::modulus(a);
    }
  }
  double largest = 0;
  for (index_t j = 0; j < plan.n; ++j) largest = core::max_or_nan(largest, sums[j] + std::abs(diagonal[j]));
  return largest;
}

}  // namespace trifactor::sparse
