#include "matrix_market.hpp"
#include "new_file.hpp"
#include "sparse_matrix.hpp"
#include "step.hpp"

#include <fmt/core.h>

namespace program {
namespace {

constexpr std::size_t block = 1 << 20;

template <Scalar T>
constexpr const char* field = trifactor::ComplexScalar<T> ? "complex" : "real";

/// Text on its way into a file, a block at a time.
class Text {
 public:
  explicit Text(const std::string& path) : file_(path) {}

  template <class... Values>
  void add(fmt::format_string<Values...> format, Values&&... values) {
    fmt::vformat_to(std::back_inserter(text_), format, fmt::make_format_args(values...));
    if (text_.size() >= block) flush();
  }
  void finish() {
    flush();
    file_.finish();
  }

 private:
  void flush() {
    file_.append(text_);
    text_.clear();
  }

  NewFile file_;
  std::string text_;
};

}  // namespace

template <Scalar T>
void write_matrix_market(const std::string& path, MatrixView<const T> X) {
  Text text(path);
  text.add("%%MatrixMarket matrix array {} general\n{} {}\n", field<T>, X.rows, X.cols);
  for (index_t j = 0; j < X.cols; ++j)
    for (index_t i = 0; i < X.rows; ++i) {
      count_step(j * X.rows + i + 1, X.rows * X.cols);
      const T x = X(i, j);
      if constexpr (trifactor::ComplexScalar<T>)
        text.add("{:.17g} {:.17g}\n", x.real(), x.imag());
      else
        text.add("{:.17g}\n", x);
    }
  text.finish();
}

template <Scalar T>
void write_matrix_market(const std::string& path, const SparseMatrix<T>& A) {
  Text text(path);
  text.add("%%MatrixMarket matrix coordinate {} {}\n{} {} {}\n", field<T>,
           trifactor::ComplexScalar<T> ? "hermitian" : "symmetric", A.n, A.n, A.entries());
  for (index_t j = 0; j < A.n; ++j) {
    count_step(j + 1, A.n);
    for (index_t k = A.start[std::size_t(j)]; k < A.start[std::size_t(j + 1)]; ++k) {
      const index_t i = A.row[std::size_t(k)];
      const T a = A.value[std::size_t(k)];
      if constexpr (trifactor::ComplexScalar<T>)
        text.add("{} {} {} {}\n", i + 1, j + 1, a.real(), a.imag());
      else
        text.add("{} {} {}\n", i + 1, j + 1, a);
    }
  }
  text.finish();
}

template void write_matrix_market<double>(const std::string&, MatrixView<const double>);
template void write_matrix_market<std::complex<double>>(const std::string&, MatrixView<const std::complex<double>>);
template void write_matrix_market<double>(const std::string&, const SparseMatrix<double>&);

}  // namespace program
