// Sparse symmetric and hermitian positive definite matrices: analyse the pattern once, factor many times.
#pragma once

#include <trifactor/queue.hpp>

#include <limits>
#include <memory>
#include <span>
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

/// Metis: nested dissection as METIS does it, by code of our own on all threads. Amd: approximate minimum degree. Both give
/// the same order in every run and with any number of threads. Auto: Amd; where Metis may save more time than it takes
/// itself, both, and the one that needs fewer operations. What is saved depends on the threads that Queue::host() takes.
enum class Ordering { Auto, Metis, Amd, Natural, Given };

struct AnalyzeOptions {
  Ordering ordering = Ordering::Auto;
  /// For Ordering::Given: column j of the reordered matrix is column permutation[j].
  std::vector<index_t> permutation = {};
  /// For Ordering::Auto: how often the plan will be used to factor and solve, at least 1. The more often, the more time a
  /// better ordering may take.
  index_t expected_factorizations = 1;
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

  /// "graph", "amd", "metis", "tree", "fronts", "targets" in the order in which they ran, and how long they took. Ordering
  /// Auto with many threads runs "amd" beside "metis", each with a "tree" of its own.
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
/// not a matrix of fewer than 2^31 columns, and OutOfMemory. Runs on the threads of the host.
template <SparseIndex I>
TRIFACTOR_API std::shared_ptr<const SparsePlan> analyze(const Pattern<I>&, const AnalyzeOptions& = {});

/// How far rounding may part a_ij from the conjugate of a_ji, as a multiple of sqrt(|a_ii a_jj|).
template <Scalar T>
inline constexpr real_t<T> hermitian_tolerance = 16 * std::numeric_limits<real_t<T>>::epsilon();

/// Whether a matrix that is stored in full is symmetric (hermitian) by its values, so that Cholesky may take it:
/// |a_ij - conj(a_ji)| is at most tolerance sqrt(|a_ii a_jj|) everywhere, on the diagonal too; what is not stored is zero,
/// and entries of the same place are added up. Tolerance 0 asks for equality. The pattern is one that analyze has taken.
/// Host memory. Throws InvalidArgument and OutOfMemory.
template <BuiltScalar T, SparseIndex I>
TRIFACTOR_API bool is_hermitian(const Pattern<I>&, std::span<const T> values,
                                real_t<T> tolerance = hermitian_tolerance<T>);

/// One triangle of a matrix as compressed columns, counted from 0, rows ascending, the diagonal first where it is stored.
template <Scalar T>
struct CompressedColumns {
  std::vector<index_t> start;  // n + 1
  std::vector<index_t> index;
  std::vector<T> values;

  /// To be analysed; a view, valid while this object is.
  Pattern<index_t> pattern() const {
    const index_t n = start.empty() ? 0 : index_t(start.size()) - 1;
    return {.rows = n, .cols = n, .start = start.data(), .index = index.data(), .sorted = true};
  }
};

/// The lower triangle of (A + A^H) / 2: of a matrix that is hermitian up to rounding, the hermitian one to factor. It holds
/// every place that A stores on either side, each once, and a real diagonal. Pattern, memory and errors as of is_hermitian;
/// of a pattern that stores one triangle, A is that triangle and its mirror image.
template <BuiltScalar T, SparseIndex I>
TRIFACTOR_API CompressedColumns<T> hermitian_part(const Pattern<I>&, std::span<const T> values);

// The factorization.

/// Which part of a solve with P A P^T = L L^H is meant: all of A^-1, or one of its four factors P^T L^-H L^-1 P. Between
/// the parts, row i of B belongs to column i of L.
enum class SparsePart { All, Permute, Lower, LowerAdjoint, PermuteBack };

/// What refinement came to.
template <Scalar T>
struct Refinement {
  int steps = 0;                    // of the right-hand side that took the most
  real_t<T> backward_error = 0;     // largest |b - A x|_i / (|A| |x| + |b|)_i of all right-hand sides
};

struct SparseOptions {
  /// On a CUDA queue: bytes of the device that the object may take at most, with its part of the queue's scratch memory; 0:
  /// what is free. Where the factor does not fit, it lies in page-locked memory of the host, and passes through the device
  /// in every factorization and solve. Throws InvalidArgument, with the least that works, when this is too little.
  std::size_t max_device_bytes = 0;
  /// On a CUDA queue. Auto and Native: the GPU factors all. Hybrid: threads of the CPU factor the last subtrees while the GPU
  /// factors those before them, if that is expected to take less time; factor_async is not to be captured then.
  Mode mode = Mode::Auto;
  /// Overrides fields of the tuning row, such as "leaf=8 team=1000".
  std::string tuning = {};
};

/// Bytes of the queue's memory that a SparseCholesky or a SparseCholeskyBatch takes.
struct SparseMemory {
  std::size_t factor = 0;   // or the part of it that is there at a time
  std::size_t updates = 0;  // update matrices that are alive at once
  std::size_t lists = 0;    // of the plan, as the numeric phases read them; of a batch, for every item
  std::size_t vectors = 0;  // for one right-hand side; more of them take more
  std::size_t scratch = 0;  // of the queue, which all its calls share
  std::size_t values = 0;   // a copy of those that were factored
  std::size_t host = 0;     // of the host, for a factor that does not fit and what is factored there; no part of the total
  std::size_t total() const { return factor + updates + lists + vectors + scratch + values; }
};

/// A Cholesky factorization of matrices with the pattern of one plan. All memory is allocated by the constructor; factor
/// allocates nothing, and solve nothing for one right-hand side. One thread at a time uses an object; many objects may
/// share a plan. Spans and views are in the queue's memory, vectors in the host's. On a CUDA queue, solve and factor_async are
/// enqueued; all other calls are complete on return.
template <Scalar T>
class TRIFACTOR_API SparseCholesky {
  static_assert(BuiltScalar<T>, "this build of the library does not hold the scalar: see TRIFACTOR_SCALARS");

 public:
  SparseCholesky(Queue& q, std::shared_ptr<const SparsePlan> plan, const SparseOptions& = {});
  /// What the constructor will allocate, without doing so.
  static SparseMemory memory(Queue& q, const SparsePlan& plan, const SparseOptions& = {});
  SparseCholesky(SparseCholesky&&) noexcept;
  SparseCholesky& operator=(SparseCholesky&&) noexcept;
  ~SparseCholesky();

  /// Factors A + shift I, whose values come in the order of the pattern that was analysed. Throws NotPositiveDefinite when
  /// the pivot of a column is not positive and finite: order() is that column of A, counted from 1. The next call begins
  /// anew.
  void factor(std::span<const T> values, real_t<T> shift = 0);
  /// The same without the exception: returns info().
  index_t try_factor(std::span<const T> values, real_t<T> shift = 0);
  /// The same enqueued, for graphs and for streams side by side. info, in the queue's memory, becomes what info() would say,
  /// and solves leave B as it is where that is not 0; other calls wait for it, and throw. The values are read when the queue
  /// gets there.
  void factor_async(std::span<const T> values, int* info, real_t<T> shift = 0);
  /// Of the last factorization: 0, or the column that failed, counted from 1; -1 when there was none yet, or nothing waited
  /// for it since factor_async.
  index_t info() const noexcept;

  /// B := A^-1 B, or one part of it. Throws InvalidArgument unless the last factorization succeeded.
  void solve(MatrixView<T> B, SparsePart part = SparsePart::All) const;
  std::vector<T> solve(const std::vector<T>& b) const;
  std::vector<T> solve(std::initializer_list<T> b) const { return solve(std::vector<T>(b)); }
  /// The same with iterative refinement until the backward error is that of the scalar or no longer becomes smaller. The
  /// values are those of the last factorization, or those of a nearby matrix: B := A^-1 B for the matrix given here.
  Refinement<T> solve_refined(std::span<const T> values, MatrixView<T> B) const;

  /// An estimate of 1 / (|A + shift I| |(A + shift I)^-1|), one-norms: see CholeskyFactor::rcond. Complete on return; throws
  /// as solve does. The object keeps a copy of the values for it.
  real_t<T> rcond() const;
  /// log det (A + shift I).
  real_t<T> log_det() const;
  /// The diagonal of L: entry j belongs to column permutation()[j] of A.
  std::vector<real_t<T>> diagonal() const;
  /// L, with the zeros that fronts store.
  CompressedColumns<T> lower() const;

  const SparsePlan& plan() const noexcept;
  /// What this object holds now: more than at first when solves had several right-hand sides.
  SparseMemory memory() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Cholesky factorizations of `count` matrices with the pattern of one plan, all at once: what is too small to fill a device
/// or all threads does so together. Items fail alone, which is no exception, as in batches of dense matrices. Memory,
/// threads and queues as of SparseCholesky; the lists of the plan are repeated for every item.
template <Scalar T>
class TRIFACTOR_API SparseCholeskyBatch {
  static_assert(BuiltScalar<T>, "this build of the library does not hold the scalar: see TRIFACTOR_SCALARS");

 public:
  /// Throws InvalidArgument when there are not fewer than 2^31 columns in all items together.
  SparseCholeskyBatch(Queue& q, std::shared_ptr<const SparsePlan> plan, index_t count, const SparseOptions& = {});
  /// What the constructor will allocate, without doing so.
  static SparseMemory memory(Queue& q, const SparsePlan& plan, index_t count, const SparseOptions& = {});
  SparseCholeskyBatch(SparseCholeskyBatch&&) noexcept;
  SparseCholeskyBatch& operator=(SparseCholeskyBatch&&) noexcept;
  ~SparseCholeskyBatch();

  /// Factors A_i + shift I for every item i, whose values begin at values[i * entries], in the order of the pattern that was
  /// analysed. Returns how many items failed: info() says which, and where.
  index_t factor(std::span<const T> values, real_t<T> shift = 0);
  /// The same enqueued. info, in the queue's memory, becomes what info() would say; other calls than solve wait for it.
  /// The values are read when the queue gets there.
  void factor_async(std::span<const T> values, ArrayView<int> info, real_t<T> shift = 0);
  /// Of each item in the last factorization: 0, or the column whose pivot is not positive and finite, counted from 1; -1
  /// when there was none yet, or nothing waited for it since factor_async.
  const std::vector<int>& info() const noexcept;

  /// B_i := A_i^-1 B_i for every item, or one part of it. Items that failed keep their B. Throws InvalidArgument when nothing
  /// was factored.
  void solve(StridedBatch<T> B, SparsePart part = SparsePart::All) const;
  /// One right-hand side for each item, item after item.
  std::vector<T> solve(const std::vector<T>& b) const;

  /// log det (A_i + shift I) of each item; NaN where it failed.
  std::vector<real_t<T>> log_det() const;
  /// The diagonals of all L_i, item after item, each as SparseCholesky has it; NaN where it failed.
  std::vector<real_t<T>> diagonal() const;

  index_t count() const noexcept;
  const SparsePlan& plan() const noexcept;
  /// What this object holds now: more than at first when solves had several right-hand sides.
  SparseMemory memory() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The value form: no queue, everything in the host's memory, on the device that suits the matrix.

struct SparseValueOptions {
  /// Auto: the GPU, if there is one, where so many factorizations of this size are expected to take less time there.
  Device device = Device::Auto;
  Ordering ordering = Ordering::Auto;
  index_t expected_factorizations = 1;  // as in AnalyzeOptions
  double shift = 0;                     // A + shift I is factored
  std::size_t max_device_bytes = 0;     // as in SparseOptions
  Mode mode = Mode::Auto;               // likewise; Hybrid with Device::Auto: on a GPU
};

/// What sparse_cholesky returns.
template <Scalar T>
class TRIFACTOR_API SparseCholeskyFactor {
 public:
  /// With a plan that exists already: the ordering is that of the plan.
  SparseCholeskyFactor(std::shared_ptr<const SparsePlan> plan, std::span<const T> values, const SparseValueOptions& = {});
  SparseCholeskyFactor(SparseCholeskyFactor&&) noexcept;
  SparseCholeskyFactor& operator=(SparseCholeskyFactor&&) noexcept;
  ~SparseCholeskyFactor();

  /// Another matrix with the same pattern. Throws NotPositiveDefinite; other calls then throw InvalidArgument.
  void factor(std::span<const T> values, real_t<T> shift = 0);
  /// X with A X = B.
  Matrix<T> solve(MatrixView<const T> B) const;
  std::vector<T> solve(const std::vector<T>& b) const;
  /// As of SparseCholesky.
  real_t<T> log_det() const;
  real_t<T> rcond() const;
  Device device() const noexcept;
  const SparsePlan& plan() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Analyses and factors A. Throws NotPositiveDefinite with the column, InvalidArgument and OutOfMemory.
template <BuiltScalar T, SparseIndex I>
SparseCholeskyFactor<T> sparse_cholesky(const Pattern<I>& A, std::span<const T> values,
                                        const SparseValueOptions& o = {}) {
  const AnalyzeOptions analysis{.ordering = o.ordering, .expected_factorizations = o.expected_factorizations};
  return {analyze(A, analysis), values, o};
}
template <BuiltScalar T, SparseIndex I>
SparseCholeskyFactor<T> sparse_cholesky(const Pattern<I>& A, const std::vector<T>& values,
                                        const SparseValueOptions& o = {}) {
  return sparse_cholesky(A, std::span<const T>(values), o);
}
/// The same of the lower triangle of A.
template <BuiltScalar T>
SparseCholeskyFactor<T> sparse_cholesky(const CompressedColumns<T>& A, const SparseValueOptions& o = {}) {
  return sparse_cholesky(A.pattern(), A.values, o);
}

}  // namespace trifactor
