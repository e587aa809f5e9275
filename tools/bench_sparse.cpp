// Rows of a sparse Cholesky factorization: analyze, factor, refactor, solve.
#include "bench.hpp"
#include "child_process.hpp"
#include "failure.hpp"
#include "generate.hpp"
#include "new_file.hpp"
#include "residual.hpp"
#include "scalars.hpp"
#include "sparse_matrix.hpp"
#include "step.hpp"

#include <fmt/core.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <trifactor/makers.hpp>
#include <trifactor/sparse.hpp>

#include <algorithm>
#include <concepts>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

namespace program {
namespace {

using trifactor::SparseCholesky;
using trifactor::SparseCholeskyBatch;
using trifactor::SparsePlan;

constexpr int least_runs = 3, most_peer_runs = 20;

template <class Value>
void append(NewFile& file, const std::vector<Value>& values) {
  file.append({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value)});
}

/// The seconds of CHOLMOD or cuDSS as their programs print them. cholmod-given takes over the permutation of our plan.
nlohmann::json ask_peer(const std::string& peer, const SparseMatrix<double>& A, const SparsePlan& plan,
                        const std::vector<index_t>& columns, int runs) {
  TemporaryFolder folder;
  const std::string matrix = folder.file("matrix"), order = folder.file("order");
  NewFile file(matrix);
  append(file, std::vector<index_t>{A.n, A.entries()});
  append(file, A.start), append(file, A.row), append(file, A.value);
  file.finish();
  const std::string sides = fmt::format("{}", fmt::join(columns, ","));
  if (peer == "cudss") {
    std::vector<std::string> command{peer_program(peer), matrix, fmt::format("{}", runs), sides};
    if (const char* layer = std::getenv("CUDSS_THREADING_LIB")) command.push_back(layer);  // as cuDSS itself calls it
    return nlohmann::json::parse(output_of(command));
  }
  std::string ordering = name_of(plan.ordering());
  if (peer == "cholmod-given") {
    NewFile permutation(order);
    append(permutation, plan.permutation());
    permutation.finish();
    ordering = "given=" + order;
  }
  return nlohmann::json::parse(
      output_of({peer_program(peer), matrix, ordering, fmt::format("{}", runs), sides}));
}

/// What was measured of a phase; flops are those of real arithmetic.
template <Scalar T>
Row phase_row(const Bench& bench, const SparseMatrix<T>& A, const SparsePlan& plan, const trifactor::Measurement& time,
              double flops) {
  Row row = start_row(bench, scalar_name<T>, A.n);
  row.ordering = name_of(plan.ordering());
  if (bench.options.max_device_bytes > 0) row.max_device_bytes = std::int64_t(bench.options.max_device_bytes);
  row.entries = A.entries();
  row.factor_nonzeros = plan.factor_nonzeros();
  row.columns = double(A.n);
  row.flops = flops * (trifactor::ComplexScalar<T> ? 4 : 1);
  row.seconds = time.seconds, row.spread = time.spread, row.runs = time.runs;
  row.joules = time.joules, row.energy_seconds = time.energy_seconds;
  return row;
}

/// What the peer told of a phase.
void add_peer(Row& row, const std::string& name, const nlohmann::json& peer, const std::string& phase) {
  row.peer = name;
  row.peer_seconds = peer.at(phase + "_seconds").get<double>();
  row.peer_spread = peer.at(phase + "_spread").get<double>();
  row.peer_memory = peer.at("peak_bytes").get<double>();
  if (peer.at("residual").is_number()) row.peer_residual = peer.at("residual").get<double>();  // else not finite
}

/// Factors and solves of so many matrices of one pattern, beside as many with one object that takes them one by one.
template <Scalar T>
void bench_one_pattern(Bench& bench, const std::string& name, const SparseMatrix<T>& A,
                       const std::shared_ptr<const SparsePlan>& plan, const trifactor::SparseOptions& options,
                       const std::function<void(const Row&)>& take) {
  const BenchOptions& o = bench.options;
  const index_t count = o.sparse_count, entries = A.entries();
  const auto memory = SparseCholeskyBatch<T>::memory(bench.queue, *plan, count, options);
  require_memory("this row", double(bench.queue.is_cuda() ? memory.host : memory.total()));
  const auto scale = [](index_t item) { return T(1 + item % 8); };
  std::vector<T> all;
  for (index_t i = 0; i < count; ++i)
    for (const T value : A.value) all.push_back(value * scale(i));
  const InQueue<T> values(bench.queue, all.data(), index_t(all.size()));
  SparseCholesky<T> one(bench.queue, plan, options);
  std::optional<SparseCholeskyBatch<T>> L;
  Buffer<int> info(bench.queue, 1);

  const auto row = [&](const char* phase, double flops, index_t columns, const Contender& ours,
                       const Contender& peers) {
    const Step step(fmt::format("measuring {} of {}", phase, count));
    std::vector<Contender> both{ours};
    if (peers.run) both.push_back(peers);
    const auto times = measure_noted(o, fmt::format("sparse {} {} {} {}", scalar_name<T>, name, phase, count), both,
                                     {.warmups = 1,
                                      .min_runs = least_runs,
                                      .max_seconds = o.seconds,
                                      .energy_seconds = flops > 0 ? o.energy : 0});
    Row result = phase_row(bench, A, *plan, times[0], flops * double(count));
    result.matrix = name, result.phase = phase, result.nrhs = columns, result.count = count;
    result.memory = double(memory.total());
    if (peers.run) {
      result.peer = "one by one", result.peer_seconds = times[1].seconds, result.peer_spread = times[1].spread;
      result.peer_joules = times[1].joules, result.peer_energy_seconds = times[1].energy_seconds;
    }
    return result;
  };
  take(row("construct", 0, 1,
           {.run =
                [&] {
                  L.emplace(bench.queue, plan, count, options);
                  bench.queue.sync();
                },
            .prepare = [&] { L.reset(); }},
           {}));
  const auto factor_one_by_one = [&] {
    for (index_t i = 0; i < count; ++i)
      one.factor_async(values.values().subspan(std::size_t(i * entries), std::size_t(entries)), info.data());
    bench.queue.sync();
  };
  take(row("refactor", plan->flops(), 1, {.run = [&] { L->factor(values.values()); }, .prepare = {}},
           {.run = factor_one_by_one, .prepare = {}}));

  for (const index_t columns : o.nrhs) {
    const index_t size = A.n * columns;
    std::vector<T> B(std::size_t(size * count), T(1));
    Buffer<T> there(bench.queue, index_t(B.size()));
    const auto restore = [&] { trifactor::copy(bench.host, B.data(), bench.queue, there.data(), there.size()); };
    const auto solve_one_by_one = [&] {
      for (index_t i = 0; i < count; ++i)
        one.solve(trifactor::MatrixView<T>{there.data() + i * size, A.n, columns, std::max<index_t>(1, A.n)});
      bench.queue.sync();
    };
    const auto solve = [&] {
      L->solve(trifactor::strided(there.data(), A.n, columns, {.count = count}));
      bench.queue.sync();
    };
    Row result = row("solve", 4 * double(plan->factor_nonzeros()) * double(columns), columns,
                     {.run = solve, .prepare = restore}, {.run = solve_one_by_one, .prepare = restore});
    restore(), solve();
    double worst = 0;
    for (const index_t i : {index_t(0), count - 1}) {
      SparseMatrix<T> item = A;
      for (T& value : item.value) value *= scale(i);
      Matrix<T> X(A.n, columns), ones(A.n, columns);
      std::fill_n(ones.data(), size, T(1));
      trifactor::copy(bench.queue, static_cast<const T*>(there.data() + i * size), bench.host, X.data(), size);
      worst = worst_of(worst, solve_ratio<T>(item, X, ones));
    }
    result.residual = worst;
    take(result);
  }
}

}  // namespace

std::string peer_program(const std::string& peer) {
  const auto path = program_folder() / (peer == "cudss" ? "trifactor_cudss" : "trifactor_cholmod");
  std::error_code ignored;
  return std::filesystem::exists(path, ignored) ? path.string() : "";
}

template <Scalar T>
void bench_sparse(Bench& bench, const SparseSource& source, const std::function<void(const Row&)>& take) {
  const BenchOptions& o = bench.options;
  SparseMatrix<double> real;
  timed_step(is_generated(source.word()) ? "generating" : "reading", [&] { real = source.load<double>(); });

  std::shared_ptr<const SparsePlan> plan;
  const trifactor::AnalyzeOptions how{.ordering = ordering_named(o.ordering), .tuning = o.tuning};
  const auto analyze = [&] { plan = trifactor::analyze(real.pattern(), how); };
  const auto measured = [&](const char* phase, const Contender& work, double energy = 0) {
    const Step step(fmt::format("measuring {}", phase));
    return measure_noted(o, fmt::format("sparse {} {} {}", scalar_name<T>, source.word(), phase), {&work, 1},
                         {.warmups = 1, .min_runs = least_runs, .max_seconds = o.seconds, .energy_seconds = energy})
        .front();
  };
  const trifactor::SparseOptions options{
      .max_device_bytes = std::size_t(o.max_device_bytes), .mode = o.panels(), .tuning = o.tuning};
  if (o.sparse_count > 1) {
    timed_step("analysing", analyze);
    return bench_one_pattern<T>(bench, source.word(), converted<T>(real), plan, options, take);
  }
  const auto analyzed = measured("analyze", {.run = analyze, .prepare = {}});
  const auto memory = SparseCholesky<T>::memory(bench.queue, *plan, options);
  require_memory("this row", double(bench.queue.is_cuda() ? memory.host : memory.total()));

  const SparseMatrix<T> A = converted<T>(real);
  const InQueue<T> values(bench.queue, A.value.data(), A.entries());
  Matrix<T> right_hand_sides(bench.queue, A.n, std::ranges::max(o.nrhs));  // L may take all memory that is left
  std::optional<SparseCholesky<T>> L;
  const auto constructed = measured("construct", {.run =
                                                      [&] {
                                                        L.emplace(bench.queue, plan, options);
                                                        bench.queue.sync();
                                                      },
                                                  .prepare = [&] { L.reset(); }});
  const auto factored = measured("factor", {.run =
                                                [&] {
                                                  L.emplace(bench.queue, plan, options);
                                                  L->factor(values.values());
                                                },
                                            .prepare = [&] { L.reset(); }});
  const auto refactored = measured("refactor", {.run = [&] { L->factor(values.values()); }, .prepare = {}}, o.energy);

  struct Solved {
    index_t columns;
    trifactor::Measurement time;
    double residual;
  };
  std::vector<Solved> solves;
  for (const index_t columns : o.nrhs) {
    Matrix<T> B(A.n, columns), X(A.n, columns);
    const MatrixView<T> there{right_hand_sides.data(), A.n, columns, right_hand_sides.ld()};
    std::fill_n(B.data(), A.n * columns, T(1));
    const auto restore = [&] { trifactor::copy(bench.host, B, bench.queue, there); };
    const auto solved = measured("solve",
                                 {.run =
                                      [&] {
                                        L->solve(there);
                                        bench.queue.sync();
                                      },
                                  .prepare = restore},
                                 o.energy);
    restore(), L->solve(there);  // sensors are read while restoring alone, too
    trifactor::copy(bench.queue, there, bench.host, X);
    solves.push_back({columns, solved, solve_ratio<T>(A, X, B)});
  }

  nlohmann::json peer;
  if (o.against != "none" && std::same_as<T, double>) {
    L.reset();  // the peer gets the memory
    const Step step(o.against == "cudss" ? "running cuDSS" : "running CHOLMOD");
    peer = ask_peer(o.against, real, *plan, o.nrhs, std::clamp(refactored.runs, least_runs, most_peer_runs));
  }
  const auto print = [&](const char* phase, const trifactor::Measurement& time, double flops,
                         std::optional<double> ratio = {}, index_t columns = 1) {
    Row row = phase_row(bench, A, *plan, time, flops);
    row.matrix = source.word(), row.phase = phase, row.nrhs = columns;
    row.memory = double(memory.total()), row.residual = ratio;
    const std::string key = phase == std::string("solve") ? fmt::format("solve_{}", columns) : phase;
    if (!peer.is_null() && peer.contains(key + "_seconds")) add_peer(row, o.against, peer, key);
    take(row);
  };
  print("analyze", analyzed, 0);
  print("construct", constructed, 0);
  print("factor", factored, plan->flops(), solves.front().residual);
  print("refactor", refactored, plan->flops(), solves.front().residual);
  for (const Solved& s : solves)
    print("solve", s.time, 4 * double(plan->factor_nonzeros()) * double(s.columns), s.residual, s.columns);
}

#define INSTANTIATE(T) \
  template void bench_sparse<T>(Bench&, const SparseSource&, const std::function<void(const Row&)>&);
TRIFACTOR_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace program
