// Sparse symmetric and hermitian positive definite matrices: analyse the pattern once, factor many times.
#pragma once

#include <trifactor/types.hpp>

#include <memory>
#include <string>
#include <vector>

namespace trifactor {

// The analysis.

/// What the compressed direction of a sparse matrix is.
enum class Compressed { Columns, Rows };

/// Which entries of a symmetric or hermitian matrix are given. Full: both triangles, of which the lower one is read.
enum class Stored { Lower, Upper, Full };

template <class I>
concept SparseIndex = std::same_as<I, std::int32_t> || std::same_as<I, std::int64_t>;

/// Where the entries of a square sparse matrix are, not what they are: a view of the caller's arrays, counted from 0.
/// Column (row) j holds entries start[j] to start[j + 1] - 1, and index[k] is the row (column) of entry k. The diagonal
/// may have gaps.
template <SparseIndex I>
struct Pattern {
  index_t rows = 0, cols = 0;
  const I* start = nullptr;  // cols + 1, or rows + 1
  const I* index = nullptr;  // start[cols], or start[rows]
  Compressed compressed = Compressed::Columns;
  Stored stored = Stored::Lower;
  /// A promise that the indices of every column (row) ascend. It is checked.
  bool sorted = false;

  index_t entries() const {
    const index_t n = compressed == Compressed::Columns ? cols : rows;
    return n > 0 && start ? start[n] : 0;
  }
};

/// Metis: nested dissection, always with the same seed. Amd: approximate minimum degree. Auto: one of the two, or the one
/// that needs fewer operations.
enum class Ordering { Auto, Metis, Amd, Natural, Given };

struct AnalyzeOptions {
  Ordering ordering = Ordering::Auto;
  /// For Ordering::Given: column j of the reordered matrix is column permutation[j].
  std::vector<index_t> permutation = {};
  /// Entries of the same place are added up. Otherwise they are an error.
  bool duplicates = false;
  /// Overrides fields of the tuning row, such as "tiny=8 wide_zeros=10".
  std::string tuning = {};
};

namespace sparse {
struct Plan;
}

/// How a matrix with a certain pattern is factored: the order of its columns, and the fronts (dense blocks of columns that
/// share their rows) as a tree. It depends on neither values nor scalar nor device, does not change, and may be shared by
/// many factorizations and threads.
class TRIFACTOR_API SparsePlan {
 public:
  /// The order of the matrix.
  index_t n() const noexcept;
  /// Entries of the pattern that was given, in whose order values are given.
  index_t entries() const noexcept;
  /// Of the factor L, with its diagonal.
  index_t factor_nonzeros() const noexcept;
  /// Additions and multiplications of a factorization, in real arithmetic.
  double flops() const noexcept;
  /// The same when zeros count that fronts store beside the nonzeros of L.
  double front_flops() const noexcept;
  index_t fronts() const noexcept;
  index_t levels() const noexcept;
  /// Column j of P A P^T is column permutation()[j] of A.
  const std::vector<index_t>& permutation() const noexcept;
  /// The ordering that was used: never Auto.
  Ordering ordering() const noexcept;
  /// What the caller should know, such as why another ordering was used than asked for; mostly empty.
  const std::string& note() const noexcept;

  /// Bytes of the factor, and of all update matrices that are alive at once when fronts are taken in their order.
  template <Scalar T> std::size_t factor_bytes() const noexcept { return sizeof(T) * std::size_t(factor_entries()); }
  template <Scalar T> std::size_t stack_bytes() const noexcept { return sizeof(T) * std::size_t(stack_entries()); }
  /// Bytes of the plan itself.
  std::size_t plan_bytes() const noexcept;
  index_t factor_entries() const noexcept;
  index_t stack_entries() const noexcept;

  /// One dense block: `columns` columns of L with `rows` rows, its own columns among them.
  struct Front {
    index_t parent;  // a later front, or -1
    index_t level;   // 0 for a leaf
    index_t columns, rows;
    double flops;
  };
  Front front(index_t s) const;

  struct Level {
    index_t fronts = 0, columns = 0;
    double flops = 0;
  };
  /// Leaves first.
  std::vector<Level> level_summary() const;

  /// Fronts of at least `from` and at most `to` columns: the inner dimension of their update.
  struct WidthBin {
    index_t from = 0, to = 0, fronts = 0;
    double flops = 0;
  };
  /// By powers of two, up to the widest front.
  std::vector<WidthBin> width_histogram() const;

  /// "graph", "amd", "metis", "tree", "fronts", "targets" in the order in which they ran, and how long they took.
  struct Step {
    std::string name;
    double seconds = 0;
  };
  const std::vector<Step>& steps() const noexcept;

  /// Some lines for a person.
  std::string text() const;

  /// The plan as the numeric phases read it; its type is internal.
  const sparse::Plan& data() const noexcept;

  struct State;
  explicit SparsePlan(std::unique_ptr<State>);
  SparsePlan(const SparsePlan&) = delete;
  SparsePlan& operator=(const SparsePlan&) = delete;
  ~SparsePlan();

 private:
  std::unique_ptr<State> state_;
};

/// Plans the factorization of every matrix with this pattern. Throws InvalidArgument when the pattern breaks a rule or is
/// not a matrix of fewer than 2^31 columns, and OutOfMemory. Runs on the host, and calls into METIS one at a time.
template <SparseIndex I>
TRIFACTOR_API std::shared_ptr<const SparsePlan> analyze(const Pattern<I>&, const AnalyzeOptions& = {});

}  // namespace trifactor
