#include <sparse/forest.hpp>

#include <sparse/tasks.hpp>
#include <trifactor/error.hpp>

#include <limits>
#include <new>
#include <string>

namespace trifactor::sparse {

namespace {

constexpr index_t most_columns = (index_t(1) << 31) - 1;

void check(const Plan& one, index_t count) {
  const auto refuse = [&](const std::string& rule) {
    throw InvalidArgument("SparseCholeskyBatch: count = " + std::to_string(count) + " must " + rule);
  };
  if (count < 0) refuse("not be negative");
  const index_t most = most_columns / std::max<index_t>(1, one.n);
  if (count > most)
    refuse("be at most " + std::to_string(most) + ", so that matrices of order " + std::to_string(one.n) +
           " have fewer than 2^31 columns in all");
  constexpr index_t addressable = std::numeric_limits<index_t>::max() / index_t(sizeof(index_t));
  const auto largest = std::max({index_t(one.rows.size()), index_t(one.target.size()), one.factor_entries});
  if (count > addressable / std::max<index_t>(1, largest)) throw std::bad_alloc();
}

/// all := `size` numbers of one item, moved(number, item) for every item.
template <class List, class Moved>
void repeat(const List& one, index_t size, index_t count, List& all, Moved moved) {
  all.resize(std::size_t(size * count));
  constexpr index_t grain = 1 << 15;  // numbers that a thread writes at once
  for_ranges(count, grain / (size + 1) + 1, [&](index_t, index_t begin, index_t end) {
    for (index_t item = begin; item < end; ++item)
      for (index_t k = 0; k < size; ++k) all[item * size + k] = moved(one[k], item);
  });
}

/// Every item's numbers, moved by `step` from item to item.
void repeat(const std::vector<index_t>& one, index_t step, index_t count, std::vector<index_t>& all) {
  repeat(one, index_t(one.size()), count, all, [=](index_t number, index_t item) { return number + item * step; });
}
/// The same of a list that ends with where the next item's begins.
void repeat_starts(const std::vector<index_t>& one, index_t count, std::vector<index_t>& all) {
  const index_t step = one.back();
  repeat(one, index_t(one.size()) - 1, count, all, [=](index_t start, index_t item) { return start + item * step; });
  all.push_back(step * count);
}

}  // namespace

Plan forest_of(const Plan& one, index_t count) {
  check(one, count);
  Plan all;
  all.n = one.n * count, all.items = count;
  with_threads(index_t(one.rows.size() + one.target.size()) * count < 20 * worth_waking ? 1 : omp_get_max_threads(),
               [&] {
                 repeat(one.permutation, one.n, count, all.permutation);
                 repeat(one.inverse, one.n, count, all.inverse);
                 repeat_starts(one.first, count, all.first);
                 repeat_starts(one.row_start, count, all.row_start);
                 repeat_starts(one.factor_start, count, all.factor_start);
                 repeat(one.rows, one.n, count, all.rows);
                 repeat(one.place, 0, count, all.place);
                 repeat(one.parent, one.fronts(), count, all.parent,
                        [&](index_t p, index_t item) { return p < 0 ? p : p + item * one.fronts(); });
                 repeat(one.target, index_t(one.target.size()), count, all.target, [&](index_t target, index_t item) {
                   const index_t step = item * one.factor_entries;
                   return target == Plan::nowhere ? target : target < 0 ? ~(~target + step) : target + step;
                 });
               });
  all.level_start.push_back(0);
  for (std::size_t l = 0; l + 1 < one.level_start.size(); ++l) {
    for (index_t item = 0; item < count; ++item)
      for (index_t k = one.level_start[l]; k < one.level_start[l + 1]; ++k)
        all.level_fronts.push_back(one.level_fronts[k] + item * one.fronts());
    all.level_start.push_back(index_t(all.level_fronts.size()));
  }
  all.factor_entries = one.factor_entries * count;
  all.stack_entries = count > 0 ? one.stack_entries : 0;  // a root leaves nothing
  all.factor_nonzeros = one.factor_nonzeros * count;
  all.flops = one.flops * double(count), all.front_flops = one.front_flops * double(count);
  return all;
}

}  // namespace trifactor::sparse
