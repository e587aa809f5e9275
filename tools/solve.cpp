// trifactor solve: one system from Matrix Market files.
#include "file_use.hpp"
#include "solve_sparse.hpp"

namespace program {
namespace {

/// Throws unless a dense copy of A, its factor and `columns` right-hand sides fit in memory. Where the choice is
/// free, a matrix too large for the device's memory goes to the host.
Device choose_device(const SolveOptions& o, const MatrixMarketFile& A, double columns, std::size_t scalar) {
  const double n = double(A.header().rows), factor = 1.2 * n * n * double(scalar);  // with scratch memory
  const double rest = 4 * n * columns * double(scalar);
  const auto require = [&](const char* memory, double bytes, double available) {
    if (bytes <= available) return;
    const bool sparse = A.header().format == MatrixMarketHeader::Format::Coordinate;
    A.refuse_memory(
        fmt::format("solving this {} x {} matrix as a dense one takes {} of {} memory, but {} are available{}",
                    A.header().rows, A.header().cols, readable_bytes(bytes), memory, readable_bytes(available),
                    sparse ? "; --method sparse-lu takes only what its factors hold" : ""),
        bytes);
  };
  Device device = wanted(o);
  if (device != Device::Host) {
    const auto free = double(free_device_memory());
    if (device == Device::Cuda && free > 0) require("device", factor + rest, free);
    if (device == Device::Auto && factor + rest > free) device = Device::Host;
  }
  const double copy = n * n * double(scalar);
  require("host", device == Device::Cuda ? 1.2 * copy + rest : copy + factor + rest, double(available_memory()));
  return device;
}

struct Choice {
  bool cholesky;
  std::string why;
};

/// The method, from the options and the values of A. A symmetric or hermitian A is evened out.
template <class T>
Choice choose_method(const SolveOptions& o, const MatrixMarketFile& file, MatrixView<T> A, Asymmetry& evened) {
  const char* const symmetric = trifactor::ComplexScalar<T> ? "hermitian" : "symmetric";
  if (o.method == "lu") return {false, "as asked"};
  if (const auto entry = find_asymmetry<T>(A)) {
    const auto [i, j] = *entry;
    if (o.method == "cholesky")
      file.refuse_size(fmt::format("Cholesky needs a {} matrix, but entries ({}, {}) and ({}, {}) do not agree",
                                   symmetric, i + 1, j + 1, j + 1, i + 1));
    return {false, fmt::format("A is not {}", symmetric)};
  }
  even_out(A, evened);
  if (o.method == "cholesky") return {true, "as asked"};
  for (index_t j = 0; j < A.rows; ++j)
    if (!(std::real(A(j, j)) > 0)) return {false, fmt::format("the diagonal of A is not positive at row {}", j + 1)};
  return {true, fmt::format("A is {} with a positive diagonal", symmetric)};
}

template <class T>
using Factor = std::variant<trifactor::CholeskyFactor<T>, trifactor::LuFactor<T>>;

/// Factors A by Cholesky, or by LU where that was chosen or Cholesky fails and the choice was free.
template <class T>
Factor<T> factor(const SolveOptions& o, Device device, const Choice& choice, const Matrix<T>& A,
                 std::optional<index_t>& not_positive_definite_at) {
  if (choice.cholesky) {
    try {
      return trifactor::cholesky(A, {.device = device});
    } catch (const trifactor::NotPositiveDefinite& e) {
      if (o.method == "cholesky")
        throw MatrixError(fmt::format("{}: A is not positive definite: the pivot of row {} is not positive",
                                      shown_input(o.matrix), e.order()));
      not_positive_definite_at = e.order();
    }
  }
  auto F = trifactor::lu(A, {.device = device});
  if (F.singular_at() != 0)
    throw MatrixError(
        fmt::format("{}: A is singular: the pivot of row {} is zero", shown_input(o.matrix), F.singular_at()));
  return F;
}

/// B = A times ones
template <class T>
Matrix<T> row_sums(MatrixView<const T> A) {
  constexpr index_t strip = 256;
  Matrix<T> B(A.rows, 1);
  const MatrixView<T> b = B.view();
#pragma omp parallel for
  for (index_t i0 = 0; i0 < A.rows; i0 += strip)
    for (index_t j = 0; j < A.cols; ++j)
      for (index_t i = i0; i < std::min(i0 + strip, A.rows); ++i) b(i, 0) += A(i, j);
  return B;
}

template <class T>
void solve_dense(const SolveOptions& o, const MatrixMarketFile& A_file, const MatrixMarketFile* B_file,
                 Report& report) {
  const MatrixMarketHeader& h = A_file.header();
  for (const auto& [asked, option] : {std::pair{o.refine, "--refine"},
                                      {!o.ordering.empty(), "--ordering"},
                                      {o.max_device_bytes > 0, "--max-device-bytes"}})
    if (asked)
      A_file.refuse_size(fmt::format("{} belongs to the sparse solver, which does not take this matrix: {}", option,
                                     o.method == "auto" ? "it is an array" : "--method " + o.method));
  const index_t columns = B_file ? B_file->header().cols : 1;
  const Device wanted = choose_device(o, A_file, double(columns), sizeof(T));
  Outcome<T> done;
  Matrix<T> A, B;
  done.read = timed_step("reading", [&] {
    A = A_file.dense<T>(&done.evened);
    for (index_t j = 0; j < A.rows() && o.shift != 0; ++j) A(j, j) += T(o.shift);
    B = B_file ? B_file->dense<T>() : row_sums(std::as_const(A).view());
  });
  const MatrixView<const T> a = A.view(), b = B.view();

  const Choice choice = choose_method(o, A_file, A.view(), done.evened);
  if (done.evened) report.line("symmetry", done.evened.text());
  report.line("method", fmt::format("{}: {}", choice.cholesky ? "Cholesky" : "LU", choice.why));
  std::optional<Factor<T>> F;
  std::optional<index_t>& failed_at = done.not_positive_definite_at;
  done.factored = timed_step("factoring", [&] { F = factor(o, wanted, choice, A, failed_at); });
  if (failed_at && choice.cholesky)
    report.line("", fmt::format("A is not positive definite (the pivot of row {} is not positive): fell back to LU",
                                *failed_at));
  done.device = std::visit([](const auto& f) { return f.device(); }, *F) == Device::Cuda ? "cuda" : "host";
  report.line("device", done.device);
  done.method = choice.cholesky && !failed_at ? "cholesky" : "lu";
  done.why = choice.why;

  done.solved = timed_step("solving", [&] { done.X = std::visit([&](const auto& f) { return f.solve(b); }, *F); });
  timed_step("estimating the condition",
             [&] { done.condition.rcond = std::visit([](const auto& f) { return double(f.rcond()); }, *F); });
  const MatrixView<const T> x = std::as_const(done.X).view();
  timed_step("checking", [&] {
    check_finite(o, x);
    done.residual = solve_ratio(a, x, b);
  });
  finish(o, h, B_file != nullptr, report, done);
}

template <class T>
void solve_as(const SolveOptions& o, const MatrixMarketFile& A_file, const MatrixMarketFile* B_file) {
  const MatrixMarketHeader& h = A_file.header();
  const bool sparse = is_sparse(o, h);
  if (!sparse) choose_device(o, A_file, B_file ? double(B_file->header().cols) : 1, sizeof(T));
  Report report(o.json);
  report.line("matrix", fmt::format("{}: {} x {}, {}, {} entries, {}", shown_input(o.matrix), h.rows, h.cols, h.words(),
                                    h.entries, trifactor::ComplexScalar<T> ? "c64" : "f64"));
  report.line("rhs", B_file
                         ? fmt::format("{}: {} x {}", shown_input(o.rhs), B_file->header().rows, B_file->header().cols)
                         : "A times ones");
  if (o.shift != 0) report.line("shift", fmt::format("{:g}: A + {:g} I takes the place of A", o.shift, o.shift));
  if (!sparse) return solve_dense<T>(o, A_file, B_file, report);
  Objection objection;
  if (o.method == "sparse" || (o.method == "auto" && o.ordering != "colamd")) {
    const auto found = solve_sparse<T>(o, A_file, B_file, report);
    if (!found) return;
    objection = *found;
  }
  solve_sparse_lu<T>(o, A_file, B_file, report, objection);
}

}  // namespace

void solve(const SolveOptions& o) {
  require_device(o.device);
  if (!std::isfinite(o.shift)) throw InputError(fmt::format("--shift: {} is not a finite number", o.shift));
  if (o.max_device_bytes > 0 && (o.device == "host" || o.method == "sparse-lu"))
    throw InputError(fmt::format("--max-device-bytes is of sparse Cholesky on a GPU: {} does without one",
                                 o.device == "host" ? "--device host" : "--method sparse-lu"));
  check_file_use({o.matrix, o.rhs}, {o.output});
  const MatrixMarketFile A(o.matrix);
  if (A.header().rows != A.header().cols)
    A.refuse_size(
        fmt::format("A must be square to be solved with, but it is {} x {}", A.header().rows, A.header().cols));
  std::unique_ptr<MatrixMarketFile> B;
  if (!o.rhs.empty()) {
    B = std::make_unique<MatrixMarketFile>(o.rhs);
    if (B->header().rows != A.header().rows)
      B->refuse_size(fmt::format("the right-hand side has {} rows, but A has {}", B->header().rows, A.header().rows));
    if (B->header().cols > std::numeric_limits<int>::max())
      B->refuse_size(
          fmt::format("{} right-hand sides are more than {}", B->header().cols, std::numeric_limits<int>::max()));
  }
  [[maybe_unused]] const bool is_complex = A.header().is_complex() || (B && B->header().is_complex());
#if TRIFACTOR_HAS_F64
  if (!is_complex) return solve_as<double>(o, A, B.get());
#endif
#if TRIFACTOR_HAS_C64
  return solve_as<std::complex<double>>(o, A, B.get());  // real files too, where f64 is left out
#else
  throw InputError(fmt::format("{}: this build cannot solve {} files: it leaves c64 out", shown_input(o.matrix),
                               is_complex ? "complex" : "real"));
#endif
}

}  // namespace program
