// Sparse matrices, one triangle of a symmetric or hermitian one or all entries, and what the program asks of them.
#pragma once

#include "symmetry.hpp"

#include <trifactor/queue.hpp>
#include <trifactor/sparse.hpp>

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace program {

using trifactor::index_t;
using trifactor::Matrix;
using trifactor::MatrixView;
using trifactor::Scalar;

/// The lower triangle by columns: rows ascending, none twice. A diagonal entry that is not stored is zero.
template <Scalar T>
struct SparseMatrix {
  index_t n = 0;
  std::vector<index_t> start = {0};  // n + 1, into row and value
  std::vector<index_t> row;
  std::vector<T> value;
  Asymmetry evened = {};  // what the file held instead

  index_t entries() const { return index_t(row.size()); }
  trifactor::Pattern<index_t> pattern() const {
    return {.rows = n, .cols = n, .start = start.data(), .index = row.data(), .sorted = true};
  }
};

/// The same matrix with another scalar.
template <Scalar T>
SparseMatrix<T> converted(SparseMatrix<double> A) {
  if constexpr (std::same_as<T, double>)
    return A;
  else
    return {A.n, std::move(A.start), std::move(A.row), {A.value.begin(), A.value.end()}};
}

/// All entries by columns: rows ascending, none twice.
template <Scalar T>
struct GeneralMatrix {
  index_t n = 0;
  std::vector<index_t> start = {0};  // n + 1, into row and value
  std::vector<index_t> row;
  std::vector<T> value;
  Asymmetry evened = {};  // what a hermitian file held instead

  index_t entries() const { return index_t(row.size()); }
  trifactor::Pattern<index_t> pattern() const {
    return {.rows = n,
            .cols = n,
            .start = start.data(),
            .index = row.data(),
            .stored = trifactor::Stored::Full,
            .sorted = true};
  }
};

/// What reading and analysing a matrix takes at its peak, in bytes, as measured with AMD and nested dissection: 211 a row
/// without entries, where every row is a front of its own, and 26 to 56 an entry of the triangle, values included. Large
/// fill comes on top.
inline double analysis_bytes(index_t n, double entries, std::size_t scalar) {
  constexpr double row = 210, place = 48;
  return row * double(n) + (place + double(scalar)) * entries;
}

/// Values of the host in a queue's memory: copied only where that is another.
template <class T>
class InQueue {
 public:
  InQueue(trifactor::Queue& queue, const T* values, index_t size) : values_(values), size_(size) {
    if (!queue.is_cuda()) return;
    copy_ = trifactor::Buffer<T>(queue, std::span(values, std::size_t(size)));
    values_ = copy_.data();
  }
  std::span<const T> values() const { return {values_, std::size_t(size_)}; }

 private:
  trifactor::Buffer<T> copy_;
  const T* values_;
  index_t size_;
};

/// Both triangles applied: Y = A X
template <Scalar T>
Matrix<T> product(const SparseMatrix<T>& A, MatrixView<const T> X);
template <Scalar T>
Matrix<T> product(const GeneralMatrix<T>& A, MatrixView<const T> X);

/// The 1-norm of the whole matrix.
template <Scalar T>
double norm1(const SparseMatrix<T>& A);

template <Scalar T>
double norm1(const GeneralMatrix<T>& A);

/// |B - A X| / (|A| |X| eps)
template <Scalar T>
double solve_ratio(const SparseMatrix<T>& A, MatrixView<const T> X, MatrixView<const T> B);
template <Scalar T>
double solve_ratio(const GeneralMatrix<T>& A, MatrixView<const T> X, MatrixView<const T> B);

/// The first row whose diagonal entry is not positive; nothing when all are.
template <Scalar T>
std::optional<index_t> find_not_positive(const SparseMatrix<T>& A);

/// A := A + shift I, and every diagonal entry is stored then.
template <Scalar T>
void shift_diagonal(SparseMatrix<T>& A, double shift);

/// "coordinate real symmetric" or "coordinate complex hermitian", with as many digits as tell the numbers apart. Like
/// every output it takes its name when it is complete.
template <Scalar T>
void write_matrix_market(const std::string& path, const SparseMatrix<T>& A);

class MatrixMarketFile;

/// A generated matrix ("poisson3d:40") or a coordinate file, which is opened once, so that it may be a pipe.
class SparseSource {
 public:
  explicit SparseSource(const std::string& word, std::uint64_t seed = 0);

  const std::string& word() const noexcept { return word_; }
  bool is_complex() const;
  /// The matrix, which has to be symmetric or hermitian by its values. Throws InputError, also where a complex file is
  /// read with a real T.
  template <Scalar T>
  SparseMatrix<T> load() const;

 private:
  std::string word_;
  std::uint64_t seed_;
  std::shared_ptr<const MatrixMarketFile> file_;  // null for a generated matrix
};

/// "auto", "metis", "amd", "natural" and back.
trifactor::Ordering ordering_named(const std::string& name);
const char* name_of(trifactor::Ordering);

}  // namespace program
