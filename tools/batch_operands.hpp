// Many random matrices, of one size or of several, and the views of them that calls of a batch take.
#pragma once

#include "bench.hpp"
#include "random_matrix.hpp"

#include <trifactor/trifactor.hpp>

#include <algorithm>

namespace program {

/// Orders that are uniform in least..n.
inline std::vector<int> uniform_sizes(index_t count, index_t least, index_t n, std::uint64_t seed) {
  std::vector<int> sizes(static_cast<std::size_t>(count));
  const index_t different = n - least + 1;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    sizes[i] = int(least + std::min(different - 1, index_t((random_number(seed, i) + 1) / 2 * double(different))));
  return sizes;
}

/// Matrices on the host one after the other, each with ld = its size, and where each starts. Positive definite ones, or
/// any.
template <Scalar T>
struct BatchItems {
  BatchItems(std::vector<int> sizes_of_items, std::uint64_t seed, bool definite = true)
      : sizes(std::move(sizes_of_items)), offsets(sizes.size()) {
    for (std::size_t i = 0; i < sizes.size(); ++i) offsets[i] = total, total += index_t(sizes[i]) * sizes[i];
    require_memory("this batch", 3.1 * double(total) * sizeof(T));
    values = Buffer<T>(total);
#pragma omp parallel for schedule(dynamic, 16) if (sizes.size() > 1)
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const MatrixView<T> A{values.data() + offsets[i], sizes[i], sizes[i], sizes[i]};
      definite ? fill_positive_definite(A, seed + i * 7919) : fill_random(A, seed + i * 7919);
    }
  }
  MatrixView<const T> item(std::size_t i, const T* data) const {
    return {data + offsets[i], sizes[i], sizes[i], sizes[i]};
  }

  std::vector<int> sizes;
  std::vector<index_t> offsets;
  index_t total = 0;
  Buffer<T> values;
};

/// Items in a queue's memory, with what each kind of batch needs to name them. Keeps a reference to their values.
template <Scalar T>
class BatchOperands {
 public:
  BatchOperands(Queue& queue, const BatchItems<T>& items)
      : operands(queue, items.values.data(), items.total),
        count_(index_t(items.sizes.size())),
        largest_(items.sizes.empty() ? 0 : *std::max_element(items.sizes.begin(), items.sizes.end())),
        info_(queue, count_),
        sizes_(queue, items.sizes) {
    std::vector<T*> starts(items.sizes.size());
    for (int k = 0; k < 2; ++k) {
      for (std::size_t i = 0; i < starts.size(); ++i) starts[i] = operands.buffer(k) + items.offsets[i];
      pointers_[k] = Buffer<T*>(queue, starts);
    }
  }

  index_t count() const { return count_; }
  index_t largest() const { return largest_; }
  Buffer<int>& info() { return info_; }
  T* const* starts(int k) const { return pointers_[k].data(); }

  // Buffer k, as a batch of each kind.
  auto strided(int k) const { return trifactor::strided(operands.buffer(k), largest_, largest_, {.count = count_}); }
  auto pointers(int k) const { return trifactor::pointers(pointers_[k], largest_, largest_, {.count = count_}); }
  auto ragged(int k) const { return trifactor::ragged(pointers_[k], sizes_, {.count = count_, .max_order = largest_}); }

  Operands<T> operands;

 private:
  index_t count_, largest_;
  Buffer<int> info_, sizes_;
  Buffer<T*> pointers_[2];
};

}  // namespace program
