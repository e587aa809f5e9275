#include "matrix_market.hpp"

#include "failure.hpp"
#include "line_reader.hpp"
#include "memory.hpp"
#include "step.hpp"
#include "symmetry.hpp"

#include <fmt/core.h>
#include <trifactor/error.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

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

constexpr std::string_view banner = "%%matrixmarket", byte_order_mark = "\xef\xbb\xbf";

/// Throws at once where the first bytes are no banner: what is no Matrix Market file may be one endless line.
void check_beginning(const InputFile& file) {
  std::string_view begin = file.beginning();
  if (begin.starts_with(byte_order_mark)) begin.remove_prefix(byte_order_mark.size());
  const std::string_view word = begin.substr(0, begin.find_first_of(" \t\r\n\v\f"));
  if (lower_case(word) != banner)
    throw InputError(file.name() +
                     ":1: a Matrix Market file starts with '%%MatrixMarket matrix', but this one does not");
}

/// %%MatrixMarket matrix FORMAT FIELD SYMMETRY
Header read_banner(LineReader& in) {
  if (in.ahead().starts_with(byte_order_mark)) in.skip(byte_order_mark.size());
  in.skip(banner.size());
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

/// The longest text for so many entries, beyond which it counts as endless: megabytes of comments, and lines of a
/// kilobyte.
double most_text(index_t entries) {
  constexpr double comments = 64 << 20, line = 1 << 10;
  return comments + line * double(entries);
}

/// Throws when the rest of the text, of which `remaining` bytes are left, is too short for its entries however they are
/// written, so that a wrong size is found before memory is taken for it.
void check_length(LineReader in, const Header& h, std::size_t remaining) {
  const double numbers = (h.format == Format::Coordinate ? 2 : 0) + (h.field == Field::Pattern ? 0
                                                                     : h.is_complex()          ? 2
                                                                                               : 1);
  if (2 * numbers * double(h.entries) - 1 <= double(remaining)) return;
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

/// An imaginary part on the diagonal of a hermitian matrix is dropped where it is rounding.
template <class T>
void check_diagonal(const LineReader& in, Symmetry symmetry, index_t row, T& value, Asymmetry& evened) {
  if (symmetry == Symmetry::Hermitian && !make_real(value, evened))
    in.reject(
        fmt::format("diagonal entry {} of a hermitian matrix is not real: its imaginary part is {:g}, more than {:.2g} "
                    "times its modulus",
                    row + 1, std::imag(value), trifactor::hermitian_tolerance<T> / 2));
  if (symmetry == Symmetry::SkewSymmetric && value != T(0))
    in.reject(fmt::format("diagonal entry {} of a skew-symmetric matrix is not zero", row + 1));
}

index_t read_index(LineReader& in, const char* what, index_t size) {
  const index_t index = in.integer(what);
  if (index < 1 || index > size) in.reject(fmt::format("{} {} is not in 1..{}", what, index, size));
  return index - 1;
}

/// Calls take(i, j, value) for every entry that the file stores.
template <class T, class Take>
void read_coordinates(LineReader& in, const Header& h, Asymmetry& evened, const Take& take) {
  const bool general = h.symmetry == Symmetry::General;
  for (index_t k = 0; k < h.entries; ++k) {
    if (!in.next_line()) reject_short(in, h.entries, k);
    count_step(k + 1, h.entries);
    const index_t i = read_index(in, "the row", h.rows), j = read_index(in, "the column", h.cols);
    T value = read_value<T>(in, h.field);
    in.end_line();
    if (!general && i < j)
      in.reject(fmt::format("entry ({}, {}) lies above the diagonal, but a {} file holds the lower triangle", i + 1,
                            j + 1, symmetries[std::size_t(h.symmetry)]));
    if (i == j) check_diagonal(in, h.symmetry, i, value, evened);
    take(i, j, value);
  }
}

template <class T>
void read_array(LineReader& in, const Header& h, MatrixView<T> A, Asymmetry& evened) {
  index_t k = 0;
  for (index_t j = 0; j < h.cols; ++j) {
    const index_t first = h.symmetry == Symmetry::General ? 0 : h.symmetry == Symmetry::SkewSymmetric ? j + 1 : j;
    for (index_t i = first; i < h.rows; ++i, ++k) {
      if (!in.next_line()) reject_short(in, h.entries, k);
      count_step(k + 1, h.entries);
      A(i, j) = read_value<T>(in, h.field);
      in.end_line();
      if (i == j) check_diagonal(in, h.symmetry, i, A(i, j), evened);
    }
  }
}

void expect_end(LineReader& in, const Header& h) {
  if (in.next_line()) in.reject(fmt::format("an entry more than the {} that were announced", h.entries));
}

/// The entry above the diagonal that belongs to one below it.
template <class T>
T mirrored(Symmetry symmetry, T a) {
  return symmetry == Symmetry::Symmetric ? a : symmetry == Symmetry::Hermitian ? conjugate(a) : -a;
}

/// Fills the upper triangle from the lower one.
template <class T>
void mirror(Symmetry symmetry, MatrixView<T> A) {
  if (symmetry == Symmetry::General) return;
  for_each_below_diagonal(A.rows, [&](index_t i, index_t j) { A(j, i) = mirrored(symmetry, A(i, j)); });
}

/// Entries one after the other.
template <class T>
struct Triplets {
  std::vector<index_t> row, column;
  std::vector<T> value;

  void add(index_t i, index_t j, T a) { row.push_back(i), column.push_back(j), value.push_back(a); }

  /// The same by ascending keys, of which there are n; what has the same key keeps its order.
  Triplets sorted(std::vector<index_t> Triplets::*key, index_t n) const {
    std::vector<std::size_t> next(std::size_t(n) + 1, 0);
    for (const index_t k : this->*key) ++next[std::size_t(k) + 1];
    for (std::size_t k = 0; k < std::size_t(n); ++k) next[k + 1] += next[k];
    Triplets to;
    to.row.resize(row.size()), to.column.resize(row.size()), to.value.resize(row.size());
    for (std::size_t k = 0; k < row.size(); ++k) {
      const std::size_t place = next[std::size_t((this->*key)[k])]++;
      to.row[place] = row[k], to.column[place] = column[k], to.value[place] = value[k];
    }
    return to;
  }
};

/// Columns with ascending rows; entries of one place are summed in the order of the file.
template <class T>
SparseMatrix<T> compressed(Triplets<T> entries, index_t n) {
  entries = entries.sorted(&Triplets<T>::row, n);
  entries = entries.sorted(&Triplets<T>::column, n);
  SparseMatrix<T> A;
  A.n = n;
  A.start.assign(std::size_t(n) + 1, 0);
  A.row.reserve(entries.row.size()), A.value.reserve(entries.row.size());
  for (std::size_t k = 0; k < entries.row.size(); ++k) {
    const index_t i = entries.row[k], j = entries.column[k];
    if (k > 0 && entries.row[k - 1] == i && entries.column[k - 1] == j) {
      A.value.back() += entries.value[k];
    } else {
      A.row.push_back(i), A.value.push_back(entries.value[k]);
      ++A.start[std::size_t(j) + 1];
    }
  }
  for (std::size_t j = 0; j < std::size_t(n); ++j) A.start[j + 1] += A.start[j];
  return A;
}

/// Makes `lower` the mean of itself and of `mirror`, which holds the mirror images of what lies above the diagonal;
/// entries that are not stored are zero. Returns the first place in which the two differ by more than rounding.
template <class T>
std::optional<Place> even_out(SparseMatrix<T>& lower, const SparseMatrix<T>& mirror) {
  std::vector<double> root(std::size_t(lower.n), 0);  // of the moduli on the diagonal
  for (std::size_t j = 0; j < root.size(); ++j)
    if (const auto k = std::size_t(lower.start[j]); lower.start[j] < lower.start[j + 1] && lower.row[k] == index_t(j))
      root[j] = std::sqrt(std::abs(lower.value[k]));
  Triplets<T> missing;
  for (index_t j = 0; j < lower.n; ++j) {
    index_t p = lower.start[std::size_t(j)], q = mirror.start[std::size_t(j)];
    const index_t p_end = lower.start[std::size_t(j + 1)], q_end = mirror.start[std::size_t(j + 1)];
    while (p < p_end || q < q_end) {
      const index_t row_p = p < p_end ? lower.row[std::size_t(p)] : lower.n;
      const index_t row_q = q < q_end ? mirror.row[std::size_t(q)] : lower.n;
      const index_t i = std::min(row_p, row_q);
      T* const stored = row_p == i ? &lower.value[std::size_t(p++)] : nullptr;
      const T a = stored ? *stored : T(0);
      const T b = conjugate(row_q == i ? mirror.value[std::size_t(q++)] : i == j ? a : T(0));
      if (!agree(a, b, root[std::size_t(i)], root[std::size_t(j)])) return Place{i, j};
      if (same(a, b)) continue;
      if (i == j) {
        make_real(*stored, lower.evened);
        continue;
      }
      lower.evened.add_pair(std::abs(a - b));
      if (stored)
        *stored = mean(a, b);
      else
        missing.add(i, j, mean(a, b));
    }
  }
  if (!missing.row.empty()) {
    for (index_t j = 0; j < lower.n; ++j)
      for (index_t k = lower.start[std::size_t(j)]; k < lower.start[std::size_t(j + 1)]; ++k)
        missing.add(lower.row[std::size_t(k)], j, lower.value[std::size_t(k)]);
    const Asymmetry evened = lower.evened;
    lower = compressed(std::move(missing), lower.n);
    lower.evened = evened;
  }
  return std::nullopt;
}

}  // namespace

std::string MatrixMarketHeader::words() const {
  return fmt::format("{} {} {}", formats[std::size_t(format)], fields[std::size_t(field)],
                     symmetries[std::size_t(symmetry)]);
}

MatrixMarketFile::MatrixMarketFile(const std::string& path) : file_(path) {
  check_beginning(file_);
  LineReader in(file_, {}, most_text(0));
  header_ = read_banner(in);
  read_sizes(in, header_);
  body_ = in.position();
  if (const auto size = file_.size()) check_length(body(), header_, *size - std::min(*size, body_.offset));
}

LineReader MatrixMarketFile::body() const { return {file_, body_, most_text(header_.entries)}; }

template <Scalar T>
Matrix<T> MatrixMarketFile::dense(Asymmetry* told) const {
  Matrix<T> A(header_.rows, header_.cols);
  Asymmetry evened;
  LineReader in = body();
  if (header_.format == Format::Coordinate)
    read_coordinates<T>(in, header_, evened, [a = A.view()](index_t i, index_t j, T value) { a(i, j) += value; });
  else
    read_array<T>(in, header_, A.view(), evened);
  expect_end(in, header_);
  mirror(header_.symmetry, A.view());
  if (told) *told = evened;
  return A;
}

template <Scalar T>
std::variant<SparseMatrix<T>, Place> MatrixMarketFile::sparse() const {
  const index_t n = header_.rows;
  require_memory_for(double(header_.entries), sizeof(T));
  Triplets<T> lower, above;
  Asymmetry evened;
  LineReader in = body();
  read_coordinates<T>(in, header_, evened, [&](index_t i, index_t j, T value) {
    if (i >= j)
      lower.add(i, j, value);
    else
      above.add(j, i, value);
  });
  expect_end(in, header_);
  SparseMatrix<T> A = compressed(std::move(lower), n), mirror;
  A.evened = evened;
  if (header_.symmetry == Symmetry::General)
    mirror = compressed(std::move(above), n);
  else if (trifactor::ComplexScalar<T> || header_.symmetry == Symmetry::SkewSymmetric) {
    mirror = A;
    for (T& a : mirror.value) a = mirrored(header_.symmetry, a);
  } else {
    return A;
  }
  if (const auto place = even_out(A, mirror)) return *place;
  return A;
}

template <Scalar T>
GeneralMatrix<T> MatrixMarketFile::general(double shift) const {
  const bool mirrors = header_.symmetry != Symmetry::General;
  require_memory_for(double(header_.entries) * (mirrors ? 2 : 1), sizeof(T));
  Triplets<T> entries;
  Asymmetry evened;
  LineReader in = body();
  read_coordinates<T>(in, header_, evened, [&](index_t i, index_t j, T value) {
    entries.add(i, j, value);
    if (mirrors && i != j) entries.add(j, i, mirrored(header_.symmetry, value));
  });
  expect_end(in, header_);
  for (index_t i = 0; i < header_.rows && shift != 0; ++i) entries.add(i, i, T(shift));
  SparseMatrix<T> A = compressed(std::move(entries), header_.rows);
  return {A.n, std::move(A.start), std::move(A.row), std::move(A.value), evened};
}

void MatrixMarketFile::require_memory_for(double entries, std::size_t scalar) const {
  const double bytes = analysis_bytes(header_.rows, entries, scalar);
  if (const auto available = double(available_memory()); bytes > available)
    refuse_memory(fmt::format("reading and analysing this {} x {} matrix takes {} of memory, but {} are available",
                              header_.rows, header_.cols, readable_bytes(bytes), readable_bytes(available)),
                  bytes);
}

void MatrixMarketFile::refuse_size(const std::string& rule) const {
  throw InputError(fmt::format("{}:{}: {}", file_.name(), header_.size_line, rule));
}

void MatrixMarketFile::refuse_memory(const std::string& rule, double bytes) const {
  throw trifactor::OutOfMemory(fmt::format("{}:{}: {}", file_.name(), header_.size_line, rule),
                               bytes < 1e19 ? std::size_t(bytes) : std::numeric_limits<std::size_t>::max());
}

template Matrix<double> MatrixMarketFile::dense<double>(Asymmetry*) const;
template Matrix<std::complex<double>> MatrixMarketFile::dense<std::complex<double>>(Asymmetry*) const;
template std::variant<SparseMatrix<double>, Place> MatrixMarketFile::sparse<double>() const;
template std::variant<SparseMatrix<std::complex<double>>, Place> MatrixMarketFile::sparse<std::complex<double>>() const;
template GeneralMatrix<double> MatrixMarketFile::general<double>(double) const;
template GeneralMatrix<std::complex<double>> MatrixMarketFile::general<std::complex<double>>(double) const;

}  // namespace program
