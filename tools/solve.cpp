// trifactor solve: one system from Matrix Market files.
#include "commands.hpp"
#include "condition.hpp"
#include "device.hpp"
#include "failure.hpp"
#include "file_use.hpp"
#include "matrix_market.hpp"
#include "memory.hpp"
#include "printable.hpp"
#include "residual.hpp"
#include "sparse_matrix.hpp"
#include "standard_streams.hpp"
#include "step.hpp"
#include "symmetry.hpp"

#include <fmt/core.h>
#include <commit.hpp>
#include <nlohmann/json.hpp>
#include <trifactor/inspect.hpp>
#include <trifactor/trifactor.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

namespace program {
namespace {

using nlohmann::ordered_json;
using trifactor::Device;

Device wanted(const SolveOptions& o) {
  return o.device == "host" ? Device::Host : o.device == "cuda" ? Device::Cuda : Device::Auto;
}

/// What is told on the way: lines for people, or one JSON object at the end.
class Report {
 public:
  explicit Report(bool json) : json_(json) {}

  void line(const char* label, const std::string& text) const {
    if (json_) return;
    fmt::print("{:<10}{}\n", label, text);
    flush_standard_output();
  }
  ordered_json& values() { return values_; }
  void finish() const {
    if (json_) fmt::print("{}\n", json_text(values_));
  }

 private:
  bool json_;
  ordered_json values_;
};

/// Bytes of device memory that are free on the first GPU; 0 where there is none.
std::size_t free_device_memory() {
  for (const auto& device : trifactor::devices())
    if (device.number >= 0) return device.free_bytes;
  return 0;
}

/// Throws unless a dense copy of A, its factor and `columns` right-hand sides fit in memory. Where the choice is
/// free, a matrix too large for the device's memory goes to the host.
Device choose_device(const SolveOptions& o, const MatrixMarketFile& A, double columns, std::size_t scalar) {
  const double n = double(A.header().rows), factor = 1.2 * n * n * double(scalar);  // with scratch memory
  const double rest = 4 * n * columns * double(scalar);
  const auto require = [&](const char* memory, double bytes, double available) {
    if (bytes <= available) return;
    const bool sparse = A.header().format == MatrixMarketHeader::Format::Coordinate;
    A.refuse_size(
        fmt::format("solving this {} x {} matrix as a dense one takes {} of {} memory, but {} are available{}",
                    A.header().rows, A.header().cols, readable_bytes(bytes), memory, readable_bytes(available),
                    sparse ? "; --method sparse-lu takes only what its factors hold" : ""));
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
void check_finite(const SolveOptions& o, MatrixView<const T> X) {
  for (index_t j = 0; j < X.cols; ++j)
    for (index_t i = 0; i < X.rows; ++i)
      if (!std::isfinite(std::abs(X(i, j))))
        throw MatrixError(
            fmt::format("{}: the solution is not finite at row {}: A is singular to working precision, or "
                        "the input holds NaN, infinite or huge numbers",
                        shown_input(o.matrix), i + 1));
}

template <class T>
double distance_from_ones(MatrixView<const T> X) {
  double error = 0;
  for (index_t i = 0; i < X.rows; ++i) error = std::max(error, double(std::abs(X(i, 0) - T(1))));
  return error;
}

/// What a solver did, and how good it is.
template <class T>
struct Outcome {
  std::string method, why, device;
  std::optional<index_t> not_positive_definite_at;
  double read = 0, factored = 0, solved = 0;
  Matrix<T> X;
  double residual = 0;
  Condition<trifactor::real_t<T>> condition;
  Asymmetry evened;

  // Of the sparse solver.
  std::optional<double> analyzed;
  std::string ordering;
  index_t factor_nonzeros = 0;
  std::optional<double> flops;
  std::optional<trifactor::Refinement<T>> refined;
};

ordered_json evened_json(const Asymmetry& evened) {
  if (!evened) return {};
  return {{"pairs", evened.pairs},
          {"largest_pair", evened.largest_pair},
          {"diagonals", evened.diagonals},
          {"largest_diagonal", evened.largest_diagonal}};
}

/// Writes the solution and tells the rest.
template <class T>
void finish(const SolveOptions& o, const MatrixMarketHeader& h, bool has_rhs, Report& report, const Outcome<T>& done) {
  const MatrixView<const T> x = done.X.view();
  std::optional<double> error, written;
  if (!has_rhs) error = distance_from_ones(x);
  if (!o.output.empty()) written = timed_step("writing", [&] { write_matrix_market(o.output, x); });

  report.line("read", fmt::format("{:.6f} s", done.read));
  if (done.analyzed) report.line("analyze", fmt::format("{:.6f} s", *done.analyzed));
  report.line("factor", fmt::format("{:.6f} s", done.factored));
  report.line("solve", fmt::format("{:.6f} s", done.solved));
  report.line("write", written ? fmt::format("{:.6f} s  {}", *written, printable(o.output))
                               : "nothing (-o FILE keeps the solution)");
  report.line("residual", fmt::format("{:.3g}  |B - A X| / (|A| |X| eps)", done.residual));
  if (error) report.line("error", fmt::format("{:.3g}  largest distance of a component from 1", *error));

  if (done.refined)
    report.line("refined",
                fmt::format("{} steps, backward error {:.3g}", done.refined->steps, done.refined->backward_error));

  report.line("condition", done.condition.text());
  const std::string warning = done.condition.warning();
  if (!warning.empty()) fmt::print(stderr, "trifactor: warning: {}: {}\n", o.matrix, warning);

  const auto or_null = [](const auto& value) { return value ? ordered_json(*value) : ordered_json(); };
  report.values() = {{"matrix", o.matrix},
                     {"rhs", has_rhs ? ordered_json(o.rhs) : ordered_json()},
                     {"n", h.rows},
                     {"nrhs", x.cols},
                     {"entries", h.entries},
                     {"form", h.words()},
                     {"scalar", trifactor::ComplexScalar<T> ? "c64" : "f64"},
                     {"method", done.method},
                     {"why", done.why},
                     {"shift", o.shift},
                     {"evened", evened_json(done.evened)},
                     {"not_positive_definite_at", or_null(done.not_positive_definite_at)},
                     {"device", done.device},
                     {"read_seconds", done.read},
                     {"factor_seconds", done.factored},
                     {"solve_seconds", done.solved},
                     {"write_seconds", or_null(written)},
                     {"residual", done.residual},
                     {"error", or_null(error)},
                     {"rcond", done.condition.rcond},
                     {"warning", warning.empty() ? ordered_json() : ordered_json(warning)},
                     {"output", o.output.empty() ? ordered_json() : ordered_json(o.output)},
                     {"commit", TRIFACTOR_COMMIT}};
  if (done.analyzed)
    report.values().update(
        {{"analyze_seconds", *done.analyzed},
         {"ordering", done.ordering},
         {"factor_nonzeros", done.factor_nonzeros},
         {"flops", or_null(done.flops)},
         {"refine_steps", done.refined ? ordered_json(done.refined->steps) : ordered_json()},
         {"backward_error", done.refined ? ordered_json(done.refined->backward_error) : ordered_json()}});
  report.finish();
}

/// Why Cholesky does not take a matrix.
struct Objection {
  std::string why;
  std::optional<index_t> not_positive_definite_at;
};

/// Whether a sparse solver takes the matrix. A small matrix is solved as a dense one before an analysis pays, unless
/// something was asked for that only sparse solvers have; so is one whose factors would be all but dense.
bool is_sparse(const SolveOptions& o, const MatrixMarketHeader& h) {
  constexpr double least_order = 1000, most_filled = 0.1;
  if (o.method != "auto") return o.method == "sparse" || o.method == "sparse-lu";
  const double n = double(h.rows);
  const bool worth_it = n >= least_order && double(h.entries) < most_filled * n * n;
  return h.format == MatrixMarketHeader::Format::Coordinate && (worth_it || o.refine || !o.ordering.empty());
}

/// A queue on the device that was asked for; where the choice is free, on a GPU whose memory holds all that is needed
/// if there is enough to compute.
template <class T>
trifactor::Queue sparse_queue(const SolveOptions& o, const trifactor::SparsePlan& plan, double sides) {
  constexpr double worth_moving = 1e10;  // flops: more than a second of a CPU's time
  if (wanted(o) == Device::Cuda) return trifactor::Queue::cuda();
  if (wanted(o) == Device::Auto && plan.flops() >= worth_moving && free_device_memory() > 0) {
    auto queue = trifactor::Queue::cuda();
    const auto values = double(plan.entries()) * sizeof(T);
    if (double(trifactor::SparseCholesky<T>::memory(queue, plan).total()) + values + sides <=
        double(free_device_memory()))
      return queue;
  }
  return trifactor::Queue::host();
}

/// Bytes of the right-hand sides and of the solution. Throws unless the file is sparse and there is memory for them.
template <class T>
double sparse_sides(const MatrixMarketFile& A_file, const MatrixMarketFile* B_file) {
  const MatrixMarketHeader& h = A_file.header();
  if (h.format != MatrixMarketHeader::Format::Coordinate)
    A_file.refuse_size(fmt::format("the sparse solver takes coordinate files, not {}", h.words()));
  const double columns = B_file ? double(B_file->header().cols) : 1;
  const double sides = 3 * double(h.rows) * columns * sizeof(T);
  if (const auto available = double(available_memory()); sides > available)
    A_file.refuse_size(fmt::format("{} x {:.0f} right-hand sides and solutions take {} of memory, but {} are available",
                                   h.rows, columns, readable_bytes(sides), readable_bytes(available)));
  return sides;
}

/// Those of the file, or A times ones.
template <class T, class Sparse>
Matrix<T> right_hand_sides(const MatrixMarketFile* B_file, const Sparse& A) {
  if (B_file) return B_file->dense<T>();
  Matrix<T> ones(A.n, 1);
  std::fill_n(ones.data(), A.n, T(1));
  return product<T>(A, std::as_const(ones).view());
}

/// Cholesky of the sparse matrix. Objects when A is not symmetric (hermitian) or not positive definite;
/// throws instead when this method was asked for.
template <class T>
std::optional<Objection> solve_sparse(const SolveOptions& o, const MatrixMarketFile& A_file,
                                      const MatrixMarketFile* B_file, Report& report) {
  const bool asked = o.method == "sparse";
  const char* const symmetric = trifactor::ComplexScalar<T> ? "hermitian" : "symmetric";
  const MatrixMarketHeader& h = A_file.header();
  const double sides = sparse_sides<T>(A_file, B_file);

  Outcome<T> done;
  done.method = "sparse";
  std::variant<SparseMatrix<T>, Place> found;
  done.read = timed_step("reading", [&] { found = A_file.sparse<T>(); });
  if (const auto* const place = std::get_if<Place>(&found)) {
    if (asked)
      A_file.refuse_size(fmt::format("Cholesky needs a {} matrix, but entries ({}, {}) and ({}, {}) do not agree",
                                     symmetric, place->row + 1, place->column + 1, place->column + 1, place->row + 1));
    return Objection{fmt::format("A is not {}", symmetric), {}};
  }
  SparseMatrix<T>& A = std::get<SparseMatrix<T>>(found);
  done.evened = A.evened;
  if (o.shift != 0) shift_diagonal(A, o.shift);
  if (const auto row = find_not_positive(A); row && !asked)
    return Objection{fmt::format("the diagonal of A is not positive at row {}", *row + 1), {}};
  done.why = asked ? "as asked" : fmt::format("A is {} with a positive diagonal, and sparse", symmetric);
  report.line("method", "sparse Cholesky: " + done.why);
  if (done.evened) report.line("symmetry", done.evened.text());

  std::shared_ptr<const trifactor::SparsePlan> shared;
  done.analyzed = timed_step("analysing", [&] {
    const auto ordering = ordering_named(o.ordering.empty() ? "auto" : o.ordering);
    shared = trifactor::analyze(A.pattern(), {.ordering = ordering});
  });
  const trifactor::SparsePlan& plan = *shared;
  done.ordering = name_of(plan.ordering()), done.factor_nonzeros = plan.factor_nonzeros(), done.flops = plan.flops();
  report.line("plan", fmt::format("{} ordering, {} nonzeros in L, {:.3g} flops, {} fronts in {} levels",
                                  name_of(plan.ordering()), plan.factor_nonzeros(), plan.flops(), plan.fronts(),
                                  plan.levels()));
  auto queue = sparse_queue<T>(o, plan, sides);
  auto host = trifactor::Queue::host();
  done.device = queue.is_cuda() ? "cuda" : "host";
  const auto memory = trifactor::SparseCholesky<T>::memory(queue, plan);
  require_memory("factoring this matrix", (queue.is_cuda() ? 0 : double(memory.total())) + sides);
  std::optional<trifactor::SparseCholesky<T>> L;
  std::optional<InQueue<T>> values;
  index_t failed = 0;
  std::optional<trifactor::inspect::FlopCounter> flops;  // shared by all threads: not for nothing
  if (steps_are_shown()) flops.emplace();
  const auto factor_values = [&] {
    values.emplace(queue, A.value.data(), A.entries());
    L.emplace(queue, shared);
    failed = L->try_factor(values->values());
  };
  done.factored = timed_step("factoring", factor_values, [&] { return flops->done() / plan.front_flops(); });
  if (failed != 0) {
    const std::string why = fmt::format("A is not positive definite: the pivot of row {} is not positive", failed);
    if (asked) throw MatrixError(fmt::format("{}: {}", shown_input(o.matrix), why));
    return Objection{why, failed};
  }

  Matrix<T> B;
  done.read += timed_step("reading", [&] { B = right_hand_sides<T>(B_file, A); });
  done.X = Matrix<T>(B.rows(), B.cols());
  done.solved = timed_step("solving", [&] {
    Matrix<T> X(queue, B.rows(), B.cols());
    trifactor::copy<T>(host, std::as_const(B).view(), queue, X.view());
    if (o.refine)
      done.refined = L->solve_refined(values->values(), X.view());
    else
      L->solve(X.view());
    trifactor::copy<T>(queue, std::as_const(X).view(), host, done.X.view());
  });
  timed_step("estimating the condition", [&] { done.condition.rcond = double(L->rcond()); });
  report.line("device", done.device);
  timed_step("checking", [&] {
    check_finite(o, std::as_const(done.X).view());
    done.residual = solve_ratio<T>(A, std::as_const(done.X).view(), std::as_const(B).view());
  });
  finish(o, h, B_file != nullptr, report, done);
  return std::nullopt;
}

/// The ordering of sparse LU that was asked for.
trifactor::LuOrdering lu_ordering(const SolveOptions& o) {
  using trifactor::LuOrdering;
  if (o.ordering.empty() || o.ordering == "auto" || o.ordering == "colamd") return LuOrdering::Colamd;
  if (o.ordering == "amd") return LuOrdering::Amd;
  if (o.ordering == "natural") return LuOrdering::Natural;
  throw InputError(fmt::format("{}: --ordering {} belongs to Cholesky; sparse LU has colamd, amd, natural",
                               shown_input(o.matrix), o.ordering));
}

/// LU of the sparse matrix, on the host: what was asked for, or what Cholesky objects to.
template <class T>
void solve_sparse_lu(const SolveOptions& o, const MatrixMarketFile& A_file, const MatrixMarketFile* B_file,
                     Report& report, const Objection& objection) {
  const MatrixMarketHeader& h = A_file.header();
  const auto ordering = lu_ordering(o);
  const double sides = sparse_sides<T>(A_file, B_file);
  if (wanted(o) == Device::Cuda)
    throw InputError(
        fmt::format("{}: sparse LU runs on the host only{}; --method lu solves it on the GPU as a dense one",
                    shown_input(o.matrix), objection.why.empty() ? "" : ", and Cholesky cannot: " + objection.why));
  Outcome<T> done;
  done.method = "sparse-lu";
  done.device = "host";
  done.why = objection.why.empty() ? "as asked" : objection.why;
  done.not_positive_definite_at = objection.not_positive_definite_at;
  report.line("method", fmt::format("sparse LU: {}", done.why));
  GeneralMatrix<T> A;
  done.read = timed_step("reading", [&] { A = A_file.general<T>(o.shift); });
  done.evened = A.evened;
  if (done.evened) report.line("symmetry", done.evened.text());

  // Above the entries, a panel of columns and lists of rows; the factors come on top, and grow as they need.
  require_memory("factoring this matrix", 20.0 * (sizeof(T) + 8) * double(A.n) + 100.0 * double(A.n) +
                                              double(A.entries()) * (5.0 * sizeof(T) + 40) + sides);
  std::shared_ptr<const trifactor::SparseLuPlan> plan;
  done.analyzed = timed_step("analysing", [&] { plan = trifactor::analyze_lu(A.pattern(), {.ordering = ordering}); });
  done.ordering = o.ordering.empty() || o.ordering == "auto" ? "colamd" : o.ordering;
  auto queue = trifactor::Queue::host();
  trifactor::SparseLu<T> F(queue, plan);
  index_t failed = 0;
  done.factored = timed_step("factoring", [&] { failed = F.try_factor(A.value); });
  if (failed != 0)
    throw MatrixError(fmt::format("{}: A is singular: the pivot of column {} is zero", shown_input(o.matrix), failed));
  done.factor_nonzeros = F.factor_nonzeros();
  report.line("plan", fmt::format("{} ordering, {} nonzeros in L and U", done.ordering, done.factor_nonzeros));
  report.line("device", done.device);

  Matrix<T> B;
  done.read += timed_step("reading", [&] { B = right_hand_sides<T>(B_file, A); });
  done.X = Matrix<T>(B.rows(), B.cols());
  trifactor::copy<T>(queue, std::as_const(B).view(), queue, done.X.view());
  done.solved = timed_step("solving", [&] {
    if (o.refine)
      done.refined = F.solve_refined(A.value, done.X.view());
    else
      F.solve(done.X.view());
  });
  timed_step("estimating the condition", [&] { done.condition.rcond = double(F.rcond()); });
  check_finite(o, std::as_const(done.X).view());
  done.residual = solve_ratio<T>(A, std::as_const(done.X).view(), std::as_const(B).view());
  finish(o, h, B_file != nullptr, report, done);
}

template <class T>
void solve_dense(const SolveOptions& o, const MatrixMarketFile& A_file, const MatrixMarketFile* B_file,
                 Report& report) {
  const MatrixMarketHeader& h = A_file.header();
  for (const auto& [asked, option] : {std::pair{o.refine, "--refine"}, {!o.ordering.empty(), "--ordering"}})
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
