#include "failure.hpp"
#include "generate.hpp"
#include "matrix_market.hpp"
#include "printable.hpp"
#include "sparse_matrix.hpp"
#include "usage.hpp"

#include <fmt/core.h>

#include <filesystem>
#include <utility>

namespace program {
namespace {

using trifactor::Ordering;

constexpr std::pair<const char*, Ordering> orderings[] = {{"auto", Ordering::Auto},
                                                          {"metis", Ordering::Metis},
                                                          {"amd", Ordering::Amd},
                                                          {"natural", Ordering::Natural},
                                                          {"given", Ordering::Given}};

template <class T>
SparseMatrix<T> read_sparse(const MatrixMarketFile& file) {
  const MatrixMarketHeader& h = file.header();
  if (h.format != MatrixMarketHeader::Format::Coordinate)
    file.refuse_size(fmt::format("a sparse matrix is a coordinate file, not {}", h.words()));
  if (h.rows != h.cols) file.refuse_size(fmt::format("A must be square, but it is {} x {}", h.rows, h.cols));
  if (h.is_complex() && !trifactor::ComplexScalar<T>) file.refuse_size("this file holds complex numbers");
  auto found = file.sparse<T>();
  if (const auto* const place = std::get_if<Place>(&found))
    file.refuse_size(fmt::format("Cholesky needs a {} matrix, but entries ({}, {}) and ({}, {}) do not agree",
                                 trifactor::ComplexScalar<T> ? "hermitian" : "symmetric", place->row + 1,
                                 place->column + 1, place->column + 1, place->row + 1));
  return std::get<SparseMatrix<T>>(std::move(found));
}

}  // namespace

SparseSource::SparseSource(const std::string& word, std::uint64_t seed) : word_(word), seed_(seed) {
  if (is_generated(word)) return;
  std::error_code ignored;
  if (word.find(':') != word.npos && !std::filesystem::exists(word, ignored))
    if (const std::string meant = closest_generated(word); !meant.empty())
      throw InputError(fmt::format("{}: there is no such file or family of matrices{}", printable(word), did_you_mean(meant)));
  file_ = std::make_shared<MatrixMarketFile>(word);
}

bool SparseSource::is_complex() const { return file_ && file_->header().is_complex(); }

template <Scalar T>
SparseMatrix<T> SparseSource::load() const {
  if (file_) return read_sparse<T>(*file_);
  return converted<T>(generate(word_, seed_));
}

Ordering ordering_named(const std::string& name) {
  for (const auto& [known, ordering] : orderings)
    if (name == known) return ordering;
  throw InputError(fmt::format("--ordering: '{}' is not one of auto, metis, amd, natural", name));
}

const char* name_of(Ordering ordering) {
  for (const auto& [name, known] : orderings)
    if (ordering == known) return name;
  return "unknown";
}

template SparseMatrix<double> SparseSource::load() const;
template SparseMatrix<std::complex<double>> SparseSource::load() const;

}  // namespace program
