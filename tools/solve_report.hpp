// What solve tells: lines on the way, the outcome of a method, and the solution in a file. Included by solve.cpp alone.
#pragma once

#include "commands.hpp"
#include "condition.hpp"
#include "device.hpp"
#include "failure.hpp"
#include "matrix_market.hpp"
#include "printable.hpp"
#include "residual.hpp"
#include "standard_streams.hpp"
#include "step.hpp"
#include "symmetry.hpp"

#include <fmt/core.h>
#include <commit.hpp>
#include <nlohmann/json.hpp>
#include <trifactor/trifactor.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

namespace program {

using nlohmann::ordered_json;
using trifactor::Device;

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
  std::optional<trifactor::SparseMemory> memory;
  std::optional<trifactor::Refinement<T>> refined;
};

inline ordered_json evened_json(const Asymmetry& evened) {
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
  if (!warning.empty()) fmt::print(stderr, "trifactor: warning: {}: {}\n", shown_input(o.matrix), warning);

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
         {"memory_bytes", done.memory ? ordered_json(done.memory->total()) : ordered_json()},
         {"host_bytes", done.memory ? ordered_json(done.memory->host) : ordered_json()},
         {"refine_steps", done.refined ? ordered_json(done.refined->steps) : ordered_json()},
         {"backward_error", done.refined ? ordered_json(done.refined->backward_error) : ordered_json()}});
  report.finish();
}

}  // namespace program
