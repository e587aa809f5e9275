// solve with sparse Cholesky and sparse LU. Included by solve.cpp alone.
#pragma once

#include "memory.hpp"
#include "solve_report.hpp"
#include "sparse_matrix.hpp"

#include <trifactor/inspect.hpp>

#include <memory>
#include <variant>

namespace program {

inline Device wanted(const SolveOptions& o) {
  return o.device == "host" ? Device::Host : o.device == "cuda" ? Device::Cuda : Device::Auto;
}

/// Bytes of device memory that are free on the first GPU; 0 where there is none.
inline std::size_t free_device_memory() {
  for (const auto& device : trifactor::devices())
    if (device.number >= 0) return device.free_bytes;
  return 0;
}

/// Why Cholesky does not take a matrix.
struct Objection {
  std::string why;
  std::optional<index_t> not_positive_definite_at;
};

/// Whether a sparse solver takes the matrix. A small matrix is solved as a dense one before an analysis pays, unless
/// something was asked for that only sparse solvers have; so is one whose factors would be all but dense.
inline bool is_sparse(const SolveOptions& o, const MatrixMarketHeader& h) {
  constexpr double least_order = 1000, most_filled = 0.1;
  if (o.method != "auto") return o.method == "sparse" || o.method == "sparse-lu";
  const double n = double(h.rows);
  const bool worth_it = n >= least_order && double(h.entries) < most_filled * n * n;
  return h.format == MatrixMarketHeader::Format::Coordinate &&
         (worth_it || o.refine || !o.ordering.empty() || o.max_device_bytes > 0);
}

inline trifactor::SparseOptions sparse_options(const SolveOptions& o) {
  return {.max_device_bytes = std::size_t(o.max_device_bytes)};
}

/// What sparse Cholesky takes on the queue; nothing where there is too little memory for it.
template <class T>
std::optional<trifactor::SparseMemory> memory_if_enough(const SolveOptions& o, const trifactor::SparsePlan& plan,
                                                        trifactor::Queue& queue) {
  try {
    return trifactor::SparseCholesky<T>::memory(queue, plan, sparse_options(o));
  } catch (const trifactor::OutOfMemory&) {
  } catch (const trifactor::InvalidArgument&) {  // --max-device-bytes is too little
  }
  return std::nullopt;
}

/// A queue on the device that was asked for; where the choice is free, on a GPU if there is enough to compute and its
/// memory holds all that is needed, or all but the factor.
template <class T>
trifactor::Queue sparse_queue(const SolveOptions& o, const trifactor::SparsePlan& plan, double sides) {
  constexpr double worth_moving = 1e10;  // flops: more than a second of a CPU's time
  if (wanted(o) == Device::Cuda) return trifactor::Queue::cuda();
  if (wanted(o) == Device::Auto && plan.flops() >= worth_moving && free_device_memory() > 0) {
    auto queue = trifactor::Queue::cuda();
    const auto values = double(plan.entries()) * sizeof(T);
    const auto memory = memory_if_enough<T>(o, plan, queue);
    if (memory && double(memory->total()) + values + sides <= double(free_device_memory())) return queue;
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
    A_file.refuse_memory(
        fmt::format("{} x {:.0f} right-hand sides and solutions take {} of memory, but {} are available", h.rows,
                    columns, readable_bytes(sides), readable_bytes(available)),
        sides);
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
  const auto memory = trifactor::SparseCholesky<T>::memory(queue, plan, sparse_options(o));
  done.memory = memory;
  require_memory("factoring this matrix", double(queue.is_cuda() ? memory.host : memory.total()) + sides);
  std::optional<trifactor::SparseCholesky<T>> L;
  std::optional<InQueue<T>> values;
  index_t failed = 0;
  std::optional<trifactor::inspect::FlopCounter> flops;  // shared by all threads: not for nothing
  if (steps_are_shown()) flops.emplace();
  const auto factor_values = [&] {
    values.emplace(queue, A.value.data(), A.entries());
    L.emplace(queue, shared, sparse_options(o));
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
  const std::string on_host = memory.host > 0 ? readable_bytes(double(memory.host)) : "";
  report.line("memory",
              fmt::format("{} of the {}{}", readable_bytes(double(memory.total())), queue.is_cuda() ? "device" : "host",
                          on_host.empty() ? "" : "; the factor lies in " + on_host + " of the host"));
  timed_step("checking", [&] {
    check_finite(o, std::as_const(done.X).view());
    done.residual = solve_ratio<T>(A, std::as_const(done.X).view(), std::as_const(B).view());
  });
  finish(o, h, B_file != nullptr, report, done);
  return std::nullopt;
}

/// The ordering of sparse LU that was asked for.
inline trifactor::LuOrdering lu_ordering(const SolveOptions& o) {
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

}  // namespace program
