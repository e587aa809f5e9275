// Matrix Market files: array and coordinate; real, integer, complex and pattern; all four symmetries.
#pragma once

#include "input_file.hpp"
#include "sparse_matrix.hpp"

#include <trifactor/queue.hpp>

#include <string>
#include <variant>

namespace program {

struct MatrixMarketHeader {
  enum class Format { Array, Coordinate };
  enum class Field { Real, Integer, Complex, Pattern };
  enum class Symmetry { General, Symmetric, Hermitian, SkewSymmetric };

  Format format = Format::Array;
  Field field = Field::Real;
  Symmetry symmetry = Symmetry::General;
  index_t rows = 0, cols = 0;
  index_t entries = 0;        // that the file stores
  std::size_t size_line = 0;  // the line that says so

  bool is_complex() const noexcept { return field == Field::Complex; }
  /// "coordinate real symmetric"
  std::string words() const;
};

/// A row and a column, counted from 0.
struct Place {
  index_t row = 0, column = 0;
};

/// Where reading stands in a file.
struct TextPosition {
  std::size_t offset = 0;
  std::size_t line = 1;
};

class LineReader;

/// A file whose banner and sizes are read when it is opened, and its entries when they are asked for. Words are
/// separated by any blanks; blank lines and comments (from % to the end of the line) may stand anywhere after the
/// banner. Everything else that the format does not allow throws InputError "file:line: rule", and so does a line
/// longer than LineReader::longest_line and a text much longer than its entries need.
class MatrixMarketFile {
 public:
  /// "-" is standard input; what gzip compressed is unpacked.
  explicit MatrixMarketFile(const std::string& path);

  const MatrixMarketHeader& header() const noexcept { return header_; }

  /// All entries, both triangles; repeated entries of a coordinate file are summed. The diagonal of a hermitian file is
  /// made real, which may be told in `evened`. A complex file needs a complex T.
  template <Scalar T>
  Matrix<T> dense(Asymmetry* evened = nullptr) const;

  /// The lower triangle of a square coordinate file that is symmetric (hermitian for a complex T) by its values, up to
  /// rounding: the mean of an entry and its mirror image. Otherwise the first entry below the diagonal or on it, by
  /// columns, that is not the conjugate of its mirror image. Repeated entries are summed. Throws OutOfMemory where
  /// memory does not hold it.
  template <Scalar T>
  std::variant<SparseMatrix<T>, Place> sparse() const;

  /// All entries of A + shift I from a square coordinate file, both triangles; repeated entries are summed. Throws
  /// OutOfMemory where memory does not hold it.
  template <Scalar T>
  GeneralMatrix<T> general(double shift) const;

  /// Throws "file:line: rule", where the line is the one that gives the sizes.
  [[noreturn]] void refuse_size(const std::string& rule) const;
  /// The same as OutOfMemory, for a good file of so many bytes in memory.
  [[noreturn]] void refuse_memory(const std::string& rule, double bytes) const;

 private:
  LineReader body() const;  // at the first entry
  /// Throws unless there is memory to read and analyse so many entries.
  void require_memory_for(double entries, std::size_t scalar) const;

  mutable InputFile file_;  // reading moves on in it
  MatrixMarketHeader header_;
  TextPosition body_;
};

/// Writes X as an array file with 17 significant digits. "-" is standard output. See NewFile for what becomes of a file
/// that is there.
template <Scalar T>
void write_matrix_market(const std::string& path, MatrixView<const T> X);

}  // namespace program
