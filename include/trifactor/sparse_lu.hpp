// Sparse general matrices: analyse the pattern once, factor P A Q = L U many times. On the host, with SuperLU's
// kernels.
#pragma once

#include <trifactor/lu.hpp>
#include <trifactor/sparse.hpp>

#include <optional>

namespace trifactor {

// The analysis.

/// Which columns come first. Colamd: approximate minimum degree of A^T A, which bounds the fill for every choice of
/// pivots. Amd: approximate minimum degree of A + A^T, for patterns that are nearly symmetric where pivots can stay on
/// the diagonal, as with a dominant one: about half the fill there, but several times as much where they cannot.
enum class LuOrdering { Colamd, Amd, Natural, Given };

struct AnalyzeLuOptions {
  LuOrdering ordering = LuOrdering::Colamd;
  /// For LuOrdering::Given: column j of the reordered matrix is column permutation[j].
  std::vector<index_t> permutation = {};
  /// Entries of the same place are added up. Otherwise they are an error.
  bool duplicates = false;
};

namespace sparse {
struct LuPlan;
}

/// In which order the columns of a matrix with a certain pattern are eliminated. It depends on neither values nor
/// scalar, does not change, and may be shared by many factorizations and threads. The factors' nonzeros depend on the
/// pivots, and so on the values: SparseLu knows them.
class TRIFACTOR_API SparseLuPlan {
 public:
  /// The order of the matrix.
  index_t n() const noexcept;
  /// Entries of the pattern that was given, in whose order values are given.
  index_t entries() const noexcept;
  /// Column j of A Q is column column_permutation()[j] of A: the ordering, in a postorder of the column elimination tree.
  const std::vector<index_t>& column_permutation() const noexcept;
  LuOrdering ordering() const noexcept;
  /// Bytes of the plan itself.
  std::size_t plan_bytes() const noexcept;
  /// "columns"; "colamd", "graph" and "amd", "natural" or "given"; "tree", in the order in which they ran, and how long
  /// they took.
  const std::vector<SparsePlan::Step>& steps() const noexcept;
  /// Some lines for a person.
  std::string text() const;

  /// The plan as the numeric phases read it; its type is internal.
  const sparse::LuPlan& data() const noexcept;

  struct State;
  explicit SparseLuPlan(std::unique_ptr<State>);
  SparseLuPlan(const SparseLuPlan&) = delete;
  SparseLuPlan& operator=(const SparseLuPlan&) = delete;
  ~SparseLuPlan();

 private:
  std::unique_ptr<State> state_;
};

/// Plans the factorization of every matrix with this pattern, which is stored in full. Throws InvalidArgument when the
/// pattern breaks a rule or has 2^31 columns or entries, and OutOfMemory. Runs on the host.
template <SparseIndex I>
TRIFACTOR_API std::shared_ptr<const SparseLuPlan> analyze_lu(const Pattern<I>&, const AnalyzeLuOptions& = {});

// The factorization.

struct SparseLuOptions {
  /// The diagonal entry of a column is its pivot where its modulus is at least this times the largest of the column;
  /// otherwise the largest is. From 0 to 1; 1 is partial pivoting, less keeps more of the plan's order. Not set: 0.1
  /// where the plan's ordering is Amd, otherwise 1.
  std::optional<double> pivot_threshold = {};
  /// Rows and columns are scaled by powers of 2, so that the largest entry of each is near 1. Nothing is rounded.
  bool equilibrate = true;
};

/// Bytes that a SparseLu holds.
struct SparseLuMemory {
  std::size_t factor = 0;   // L and U, with room to grow
  std::size_t vectors = 0;  // scalings, pivots, right-hand sides
  std::size_t total() const { return factor + vectors; }
};

/// An LU factorization with threshold partial pivoting of matrices with the pattern of one plan. The memory of the
/// factors grows while they are computed; a later factorization takes what is there. One thread at a time uses an
/// object; many objects may share a plan. All memory is the host's: the queue must not be a CUDA queue.
///
/// A pivot that is exactly zero is an error. Values that are not finite are none: a NaN wins the pivot search, the
/// factorization is complete, and solutions are NaN where they depend on it; infinity is taken as the arithmetic takes
/// it.
template <Scalar T>
class TRIFACTOR_API SparseLu {
  static_assert(BuiltScalar<T>, "this build of the library does not hold the scalar: see TRIFACTOR_SCALARS");

 public:
  SparseLu(Queue& q, std::shared_ptr<const SparseLuPlan> plan, const SparseLuOptions& = {});
  SparseLu(SparseLu&&) noexcept;
  SparseLu& operator=(SparseLu&&) noexcept;
  ~SparseLu();

  /// Factors A, whose values come in the order of the pattern that was analysed. Throws Singular when the pivot of a
  /// column is exactly zero: row() is that column of A, counted from 1. Throws OutOfMemory when L and U do not fit, or
  /// have 2^31 entries. The next call begins anew.
  void factor(std::span<const T> values);
  /// The same without the exception Singular: returns info().
  index_t try_factor(std::span<const T> values);
  /// Of the last factorization: 0, or the column whose pivot is zero, counted from 1; -1 when there was none yet.
  index_t info() const noexcept;

  /// B := A^-1 B, A^-T B or A^-H B. Throws InvalidArgument unless the last factorization succeeded.
  void solve(MatrixView<T> B, Op = Op::None) const;
  std::vector<T> solve(const std::vector<T>& b, Op = Op::None) const;
  std::vector<T> solve(std::initializer_list<T> b, Op op = Op::None) const { return solve(std::vector<T>(b), op); }
  /// The same with iterative refinement until the backward error is that of the scalar or no longer becomes smaller.
  /// The values are those of the last factorization, or those of a nearby matrix: B := A^-1 B for the matrix given
  /// here.
  Refinement<T> solve_refined(std::span<const T> values, MatrixView<T> B, Op = Op::None) const;

  /// det A; the sign is 0 and log_abs = -inf after a factorization that failed.
  Determinant<T> det() const;
  /// An estimate of 1 / (|A| |A^-1|), one-norms: see CholeskyFactor::rcond. Throws as solve does.
  real_t<T> rcond() const;
  /// The 1-norm of the matrix that was factored last.
  real_t<T> norm1() const;
  /// Entries of L and U without L's diagonal of ones, zeros inside dense blocks among them.
  index_t factor_nonzeros() const;

  const SparseLuPlan& plan() const noexcept;
  /// What this object holds now.
  SparseLuMemory memory() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trifactor
