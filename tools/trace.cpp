// trifactor trace: the timeline of one factorization, a track for each lane, in the trace-event format of Chrome, which
// Perfetto opens.
#include "commands.hpp"
#include "device.hpp"
#include "failure.hpp"
#include "file_use.hpp"
#include "memory.hpp"
#include "new_file.hpp"
#include "printable.hpp"
#include "random_matrix.hpp"
#include "scalars.hpp"
#include "sparse_matrix.hpp"
#include "step.hpp"
#include "table.hpp"

#include <commit.hpp>
#include <nlohmann/json.hpp>
#include <trifactor/info.hpp>
#include <trifactor/inspect.hpp>
#include <trifactor/trifactor.hpp>

#include <map>
#include <set>

namespace program {
namespace {

using nlohmann::ordered_json;
using trifactor::Buffer;
using trifactor::Queue;
using trifactor::inspect::Operation;

std::string shape_of(const Operation& o) {
  return o.depth > 0 ? fmt::format("{} x {} x {}", o.rows, o.cols, o.depth) : fmt::format("{} x {}", o.rows, o.cols);
}

/// The lanes in which something was done, the main lane first; then blocks inside a kernel.
std::vector<std::string> lanes_of(const std::vector<Operation>& operations) {
  std::set<std::string> found;
  for (const Operation& o : operations) found.insert(o.lane);
  std::vector<std::string> lanes;
  for (const char* lane : {"main lane", "side lane", "background lane", "CPU"})
    if (found.erase(lane) > 0) lanes.emplace_back(lane);
  lanes.insert(lanes.end(), found.begin(), found.end());
  return lanes;
}

using Intervals = std::vector<std::pair<double, double>>;  // disjoint, in ascending order

/// Tracks that show what operations of other lanes belong to.
bool is_summary(const std::string& lane) { return lane == "branches" || lane == "levels"; }

/// When a lane had something to do, or, if `others`, one of the others had. Wants the operations in the order of their
/// beginnings.
Intervals busy(const std::vector<Operation>& operations, const std::string& lane, bool others = false) {
  Intervals busy;
  for (const Operation& o : operations) {
    if ((o.lane != lane) != others || (others && is_summary(o.lane))) continue;
    if (busy.empty() || o.begin > busy.back().second) busy.emplace_back(o.begin, o.end);
    busy.back().second = std::max(busy.back().second, o.end);
  }
  return busy;
}

double length(const Intervals& intervals) {
  double sum = 0;
  for (const auto& [begin, end] : intervals) sum += end - begin;
  return sum;
}

Intervals intersection(const Intervals& a, const Intervals& b) {
  Intervals both;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const double begin = std::max(a[i].first, b[j].first), end = std::min(a[i].second, b[j].second);
    if (begin < end) both.emplace_back(begin, end);
    ++(a[i].second < b[j].second ? i : j);
  }
  return both;
}

ordered_json timeline(const TraceOptions& o, const std::string& machine, const std::vector<Operation>& operations) {
  ordered_json events = ordered_json::array();
  const std::vector<std::string> lanes = lanes_of(operations);
  events.push_back({{"ph", "M"}, {"pid", 1}, {"name", "process_name"}, {"args", {{"name", machine}}}});
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    events.push_back(
        {{"ph", "M"}, {"pid", 1}, {"tid", i + 1}, {"name", "thread_name"}, {"args", {{"name", lanes[i]}}}});
    events.push_back(
        {{"ph", "M"}, {"pid", 1}, {"tid", i + 1}, {"name", "thread_sort_index"}, {"args", {{"sort_index", i + 1}}}});
  }
  for (const Operation& op : operations) {
    const auto lane = std::find(lanes.begin(), lanes.end(), op.lane) - lanes.begin();
    events.push_back({{"ph", "X"},
                      {"pid", 1},
                      {"tid", lane + 1},
                      {"name", op.name},
                      {"ts", op.begin * 1e6},
                      {"dur", (op.end - op.begin) * 1e6},
                      {"args", {{"shape", shape_of(op)}}}});
  }
  return {{"traceEvents", events},
          {"displayTimeUnit", "ns"},
          {"otherData",
           {{"op", o.op},
            {"n", o.n},
            {"scalar", o.scalar},
            {"uplo", o.uplo.empty() ? ordered_json() : ordered_json(o.uplo)},
            {"device", o.device},
            {"mode", o.mode},
            {"tuning", o.tuning},
            {"machine", machine},
            {"commit", TRIFACTOR_COMMIT}}}};
}

void write_timeline(const std::string& path, const ordered_json& content) {
  const Step step("writing");
  NewFile file(path);
  file.append(json_text(content) + '\n');
  file.finish();
}

struct Total {
  index_t count = 0;
  double seconds = 0;
};

/// What each lane did, and how much of that lay beside the work of other lanes.
void summarize(const TraceOptions& o, const std::string& machine, const std::vector<Operation>& operations) {
  const std::vector<std::string> lanes = lanes_of(operations);
  double end = 0;
  for (const Operation& op : operations) end = std::max(end, op.end);
  const double whole = operations.empty() ? 0 : end - operations.front().begin;
  ordered_json totals = ordered_json::array(), tracks = ordered_json::array();
  std::vector<std::vector<std::string>> cells;
  std::string overlaps;
  for (const std::string& lane : lanes) {
    std::map<std::string, Total> by_name;
    for (const Operation& op : operations)
      if (op.lane == lane) ++by_name[op.name].count, by_name[op.name].seconds += op.end - op.begin;
    for (const auto& [name, total] : by_name) {
      cells.push_back({lane, name, fmt::format("{}", total.count), fmt::format("{:.4f}", total.seconds * 1e3)});
      totals.push_back({{"lane", lane}, {"operation", name}, {"count", total.count}, {"seconds", total.seconds}});
    }
    const Intervals own = busy(operations, lane);
    ordered_json track = {{"lane", lane}, {"busy_seconds", length(own)}};
    overlaps += fmt::format("{}: busy {:.4f} ms", lane, length(own) * 1e3);
    if (lane != lanes.front() && !is_summary(lane)) {
      const double beside = length(intersection(own, busy(operations, lane, true)));
      track["overlap_seconds"] = beside;
      overlaps += fmt::format(", of which {:.4f} ms ({:.1f} %) while another lane worked", beside * 1e3,
                              length(own) > 0 ? beside / length(own) * 100 : 0);
    }
    tracks.push_back(track);
    overlaps += '\n';
  }
  if (o.json) {
    const ordered_json j = {{"op", o.op},         {"n", o.n},           {"scalar", o.scalar},
                            {"device", o.device}, {"machine", machine}, {"mode", o.mode},
                            {"tuning", o.tuning}, {"seconds", whole},   {"operations", totals},
                            {"lanes", tracks},    {"file", o.file},     {"commit", TRIFACTOR_COMMIT}};
    return fmt::print("{}\n", json_text(j));
  }
  fmt::print("{}: {} of order {} in {}, {:.4f} ms, {} operations in {}\n", machine, o.op, o.n, o.scalar, whole * 1e3,
             operations.size(), printable(o.file));
  print_table({"lane", "operation", "count", "ms"}, cells);
  fmt::print("{}", overlaps);
}

template <Scalar T>
std::vector<Operation> record(const TraceOptions& o, Queue& q) {
  Queue host = Queue::host();
  const index_t n = o.n;
  require_memory("this trace", 2.1 * double(n) * double(n) * sizeof(T));
  const bool general = o.op == "lu";
  Matrix<T> A(n, n), F(q, n, n);
  timed_step("generating", [&] { general ? fill_random(A.view(), o.seed) : fill_positive_definite(A.view(), o.seed); });
  Buffer<int> info(q, 1), pivots(q, general ? n : 0);
  const auto mode = mode_named(o.mode);
  const auto uplo = o.uplo == "upper" ? trifactor::Uplo::Upper : trifactor::Uplo::Lower;
  const auto factor = [&] {
    const Step step("factoring");
    trifactor::copy(host, A, q, F);
    trifactor::inspect::Recording recording(q);
    if (general)
      trifactor::lu(q, F, pivots, info, {.mode = mode, .tuning = o.tuning});
    else
      trifactor::cholesky(q, uplo, F, info, {.mode = mode, .tuning = o.tuning});
    return recording.finish();
  };
  factor();  // libraries load their kernels at the first call
  const auto operations = factor();
  if (const int failed = info.to_host()[0]; failed != 0)
    throw MatrixError(fmt::format("{} failed with info = {}", o.op, failed));
  return operations;
}

/// A sparse factorization and a solve with it: on the host level by level too, since its own way has no operations.
template <Scalar T>
std::vector<Operation> record_sparse(TraceOptions& o, Queue& q) {
  const SparseSource source(o.matrix, o.seed);
  SparseMatrix<double> real;
  timed_step("reading", [&] { real = source.load<double>(); });
  const SparseMatrix<T> A = converted<T>(real);
  o.n = A.n;
  std::shared_ptr<const trifactor::SparsePlan> plan;
  timed_step("analysing", [&] { plan = trifactor::analyze(A.pattern(), {.ordering = ordering_named(o.ordering)}); });
  const std::string tuning = (q.is_cuda() ? "" : "levels=1 ") + o.tuning;
  trifactor::SparseCholesky<T> L(
      q, plan, {.max_device_bytes = std::size_t(o.max_device_bytes), .mode = mode_named(o.mode), .tuning = tuning});
  const Buffer<T> values(q, std::span<const T>(A.value));
  Buffer<T> x(q, A.n);
  const auto run = [&] {
    const Step step("factoring");
    x.fill_zero();
    trifactor::inspect::Recording recording(q);
    L.factor(values);
    L.solve(x.view());
    return recording.finish();
  };
  run();  // libraries load their kernels at the first call
  return run();
}

}  // namespace

void trace(TraceOptions o) {
  if (o.op == "lu" && !o.uplo.empty()) throw InputError("--uplo is of cholesky: lu factors a general matrix");
  if (o.op == "sparse" && !o.uplo.empty())
    throw InputError("--uplo is of cholesky: sparse reads what the matrix stores");
  check_file_use({o.matrix}, {o.file});
  require_device(o.device);
  if (o.op == "cholesky" && o.uplo.empty()) o.uplo = "lower";
  o.device = device_or_default(o.device);
  Queue q = o.device == "cuda" ? Queue::cuda() : Queue::host();
  std::string machine = "unknown";
  for (const auto& device : trifactor::devices())
    if (device.number == q.device()) machine = device.name;
  const auto operations = with_scalar(o.scalar, [&]<class T>(std::type_identity<T>) {
    return o.op == "sparse" ? record_sparse<T>(o, q) : record<T>(o, q);
  });
  write_timeline(o.file, timeline(o, machine, operations));
  summarize(o, machine, operations);
}

}  // namespace program
