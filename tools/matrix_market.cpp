#include "matrix_market.hpp"

#include "failure.hpp"
#include "line_reader.hpp"
#include "symmetry.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace program {
namespace {

using Header = MatrixMarketHeader;
using Format = Header::Format;
using Field = Header::Field;
using Symmetry = Header::Symmetry;

constexpr std::array<const char*, 2> formats = {"array", "coordinate"};
constexpr std::array<const char*, 4> fields = {"real", "integer", "complex", "pattern"};
constexpr std::array<const char*, 4> symmetries = {"general", "symmetric", "hermitian", "skew-symmetric"};

std::string lower_case(std::string_view word) {
  std::string lower(word);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  return lower;
}

/// The next word of the banner, which has to be one of `words`.
template <class Choice, std::size_t count>
Choice choose(LineReader& in, const char* what, const std::array<const char*, count>& words) {
  const std::string_view found = in.word();
  const auto at = std::find(words.begin(), words.end(), lower_case(found));
  if (at != words.end()) return Choice(at - words.begin());
  std::string allowed;
  for (const char* w : words) allowed += (allowed.empty() ? "" : ", ") + std::string(w);
  in.reject(
      fmt::format("the banner's {} is {}, not one of {}", what, found.empty() ? "missing" : quoted(found), allowed));
}

/// %%MatrixMarket matrix FORMAT FIELD SYMMETRY
Header read_banner(LineReader& in, std::string_view opening) {
  if (lower_case(opening) != "%%matrixmarket")
    in.reject("a Matrix Market file starts with '%%MatrixMarket matrix', but this one does not");
  const std::string_view object = in.word();
  if (lower_case(object) != "matrix")
    in.reject(fmt::format("the banner's object is {}, not matrix", object.empty() ? "missing" : quoted(object)));
  Header header;
  header.format = choose<Format>(in, "format", formats);
  header.field = choose<Field>(in, "field", fields);
  header.symmetry = choose<Symmetry>(in, "symmetry", symmetries);
  in.end_line();
  if (header.format == Format::Array && header.field == Field::Pattern) in.reject("an array file cannot be a pattern");
  if (header.symmetry == Symmetry::Hermitian && header.field != Field::Complex)
    in.reject(fmt::format("a hermitian file is complex, not {}", fields[std::size_t(header.field)]));
  if (header.symmetry == Symmetry::SkewSymmetric && header.field == Field::Pattern)
    in.reject("a pattern file cannot be skew-symmetric");
  return header;
}

index_t read_count(LineReader& in, const char* what) {
  const index_t count = in.integer(what);
  if (count < 0) in.reject(fmt::format("{} {} is negative", what, count));
  return count;
}

/// How many entries an array file of this size stores, or throws when that is no index_t.
index_t array_entries(const LineReader& in, const Header& h) {
  index_t all = 0;
  if (__builtin_mul_overflow(h.rows, h.cols, &all))
    in.reject(fmt::format("{} x {} entries are more than can be counted in 64 bits", h.rows, h.cols));
  if (h.symmetry == Symmetry::General) return all;
  return h.symmetry == Symmetry::SkewSymmetric ? (all - h.rows) / 2 : (all - h.rows) / 2 + h.rows;
}

void read_sizes(LineReader& in, Header& h) {
  if (!in.next_line()) in.reject("the line with the sizes is missing");
  h.size_line = in.position().line;
  h.rows = read_count(in, "the number of rows");
  h.cols = read_count(in, "the number of columns");
  if (h.format == Format::Coordinate) h.entries = read_count(in, "the number of entries");
  in.end_line();
  if (h.symmetry != Symmetry::General && h.rows != h.cols)
    in.reject(fmt::format("a {} matrix is square, not {} x {}", symmetries[std::size_t(h.symmetry)], h.rows, h.cols));
  const index_t all = array_entries(in, h);
  if (h.format == Format::Array) h.entries = all;
}

[[noreturn]] void reject_short(const LineReader& in, index_t announced, index_t found) {
  in.reject(fmt::format("the file ends after {} of {} entries", found, announced));
}

/// Throws when the rest of the text is too short for its entries however they are written, so that a wrong size is
/// found before memory is taken for it.
void check_length(LineReader in, const Header& h) {
  const double numbers = (h.format == Format::Coordinate ? 2 : 0) + (h.field == Field::Pattern ? 0
                                                                     : h.is_complex()          ? 2
                                                                                               : 1);
  if (2 * numbers * double(h.entries) - 1 <= double(in.remaining())) return;
  index_t lines = 0;
  for (; in.next_line(); ++lines)
    while (!in.word().empty()) {}
  if (lines < h.entries) reject_short(in, h.entries, lines);
}

template <class T>
T read_value(LineReader& in, Field field) {
  if (field == Field::Pattern) return T(1);
  if (field == Field::Integer) return T(in.whole("the value"));
  const double re = in.real("the value");
  if constexpr (trifactor::ComplexScalar<T>)
    if (field == Field::Complex) return T(re, in.real("the imaginary part"));
  return T(re);
}

template <class T>
void check_diagonal(const LineReader& in, Symmetry symmetry, index_t row, T value) {
  if (symmetry == Symmetry::Hermitian && std::imag(value) != 0)
    in.reject(fmt::format("diagonal entry {} of a hermitian matrix is not real", row + 1));
  if (symmetry == Symmetry::SkewSymmetric && value != T(0))
    in.reject(fmt::format("diagonal entry {} of a skew-symmetric matrix is not zero", row + 1));
}

index_t read_index(LineReader& in, const char* what, index_t size) {
  const index_t index = in.integer(what);
  if (index < 1 || index > size) in.reject(fmt::format("{} {} is not in 1..{}", what, index, size));
  return index - 1;
}

template <class T>
void read_coordinates(LineReader& in, const Header& h, MatrixView<T> A) {
  const bool general = h.symmetry == Symmetry::General;
  for (index_t k = 0; k < h.entries; ++k) {
    if (!in.next_line()) reject_short(in, h.entries, k);
    const index_t i = read_index(in, "the row", h.rows), j = read_index(in, "the column", h.cols);
    const T value = read_value<T>(in, h.field);
    in.end_line();
    if (!general && i < j)
      in.reject(fmt::format("entry ({}, {}) lies above the diagonal, but a {} file holds the lower triangle", i + 1,
                            j + 1, symmetries[std::size_t(h.symmetry)]));
    if (i == j) check_diagonal(in, h.symmetry, i, value);
    A(i, j) += value;
  }
}

template <class T>
void read_array(LineReader& in, const Header& h, MatrixView<T> A) {
  index_t k = 0;
  for (index_t j = 0; j < h.cols; ++j) {
    const index_t first = h.symmetry == Symmetry::General ? 0 : h.symmetry == Symmetry::SkewSymmetric ? j + 1 : j;
    for (index_t i = first; i < h.rows; ++i, ++k) {
      if (!in.next_line()) reject_short(in, h.entries, k);
      A(i, j) = read_value<T>(in, h.field);
      in.end_line();
      if (i == j) check_diagonal(in, h.symmetry, i, A(i, j));
    }
  }
}

/// Fills the upper triangle from the lower one.
template <class T>
void mirror(Symmetry symmetry, MatrixView<T> A) {
  if (symmetry == Symmetry::General) return;
  for_each_below_diagonal(A.rows, [&](index_t i, index_t j) {
    const T a = A(i, j);
    A(j, i) = symmetry == Symmetry::Symmetric ? a : symmetry == Symmetry::Hermitian ? conjugate(a) : -a;
  });
}

}  // namespace

std::string MatrixMarketHeader::words() const {
  return fmt::format("{} {} {}", formats[std::size_t(format)], fields[std::size_t(field)],
                     symmetries[std::size_t(symmetry)]);
}

MatrixMarketFile::MatrixMarketFile(const std::string& path) : path_(path), file_(path) {
  std::string_view text = file_.text();
  if (text.substr(0, 3) == "\xef\xbb\xbf") text.remove_prefix(3);  // a byte order mark
  const std::string_view opening = text.substr(0, text.find_first_of(" \t\r\n\v\f"));
  LineReader in(path_, text, {text.data() + opening.size(), 1});
  header_ = read_banner(in, opening);
  read_sizes(in, header_);
  check_length(in, header_);
  body_ = in.position();
}

template <Scalar T>
Matrix<T> MatrixMarketFile::dense() const {
  Matrix<T> A(header_.rows, header_.cols);
  LineReader in(path_, file_.text(), body_);
  if (header_.format == Format::Coordinate)
    read_coordinates<T>(in, header_, A.view());
  else
    read_array<T>(in, header_, A.view());
  if (in.next_line()) in.reject(fmt::format("an entry more than the {} that were announced", header_.entries));
  mirror(header_.symmetry, A.view());
  return A;
}

void MatrixMarketFile::refuse_size(const std::string& rule) const {
  throw InputError(fmt::format("{}:{}: {}", path_, header_.size_line, rule));
}

template Matrix<double> MatrixMarketFile::dense<double>() const;
template Matrix<std::complex<double>> MatrixMarketFile::dense<std::complex<double>>() const;

}  // namespace program
