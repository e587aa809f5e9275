// trifactor_variants: what the paper's LU panels take here, beside `trifactor bench panel`, and the blocks inside of
// D2.
#include "problem.hpp"

#include <commit.hpp>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <optional>

namespace {

using namespace variants;
using nlohmann::ordered_json;

enum ExitStatus { Done = 0, WrongResult = 1, BadUsage = 2, NoDevice = 3 };

const std::map<std::string, Design> designs{
    {"d1", Design::d1}, {"d2-greedy", Design::d2_greedy}, {"d2-lazy", Design::d2_lazy}};

/// The factorization as one CUDA graph, as the library runs its own.
class Graph {
 public:
  Graph(const Device& device, const std::function<void()>& enqueue) {
    require("capture", cudaStreamBeginCapture(device.stream, cudaStreamCaptureModeThreadLocal));
    cudaGraph_t captured = nullptr;
    try {
      enqueue();
    } catch (...) {
      cudaStreamEndCapture(device.stream, &captured);
      throw;
    }
    require("end of capture", cudaStreamEndCapture(device.stream, &captured));
    const cudaError_t made = cudaGraphInstantiate(&executable_, captured, 0);
    cudaGraphDestroy(captured);
    require("cudaGraphInstantiate", made);
  }
  Graph(const Graph&) = delete;
  ~Graph() { cudaGraphExecDestroy(executable_); }
  void launch(cudaStream_t stream) const { require("cudaGraphLaunch", cudaGraphLaunch(executable_, stream)); }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

struct Times {
  double median, spread;
  std::size_t runs;
};

/// Times by the device's clock. Several runs are enqueued at once, and the first does not count: the device waited for
/// it.
Times measure(const Problem& p, double seconds, const std::function<void()>& run) {
  constexpr int at_once = 8;
  const cudaStream_t stream = p.device.stream;
  std::vector<cudaEvent_t> begin(at_once), end(at_once);
  for (int k = 0; k < at_once; ++k)
    require("cudaEventCreate", cudaEventCreate(&begin[k])), require("cudaEventCreate", cudaEventCreate(&end[k]));
  std::vector<double> times;
  const auto start = std::chrono::steady_clock::now();
  do {
    for (int k = 0; k < at_once; ++k) {
      p.restore();
      require("cudaEventRecord", cudaEventRecord(begin[k], stream));
      run();
      require("cudaEventRecord", cudaEventRecord(end[k], stream));
    }
    p.device.wait();
    for (int k = 1; k < at_once; ++k) {
      float milliseconds = 0;
      require("cudaEventElapsedTime", cudaEventElapsedTime(&milliseconds, begin[k], end[k]));
      times.push_back(milliseconds * 1e-3);
    }
  } while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds);
  for (int k = 0; k < at_once; ++k) cudaEventDestroy(begin[k]), cudaEventDestroy(end[k]);
  std::sort(times.begin(), times.end());
  const std::size_t count = times.size();
  const double median = times[count / 2];
  return {median, (times[3 * count / 4] - times[count / 4]) / median, count};
}

struct Options {
  std::vector<int> m{1024, 2048, 4096}, n{256};
  std::vector<std::string> design{"d1", "d2-greedy", "d2-lazy"};
  int leaf = 0, traced_m = 8192, traced_n = 8;
  std::string traced = "d2-lazy", file, launch = "graph";
  double seconds = 0.2;
  std::uint64_t seed = 1;
  bool json = false;
};

/// The widths of narrow panels with which they are fastest on an H200. The paper takes up to 16 columns in D1 and 32 in
/// D2.
int leaf_of(const Options& o, Design design) { return o.leaf > 0 ? o.leaf : design == Design::d1 ? 16 : max_leaf; }

void require_tall(int m, int n) {
  if (m < n)
    throw std::invalid_argument("--m " + std::to_string(m) + " with --n " + std::to_string(n) +
                                ": m must be at least n");
}

double lu_flops(double m, double n) {
  return n * n * n * 2 / 3 - n * n / 2 + n * 5 / 6 +
         (m - n) * n * n;  // LAPACK's count, as `trifactor bench panel` has it
}

void run_panel(const Device& device, const Options& o, const std::string& name, int m, int n) {
  const Design design = designs.at(name);
  const int leaf = leaf_of(o, design);
  const Problem p(device, m, n, random_entries(m, n, o.seed));
  const auto enqueue = [&] { factor(design, leaf, p.panel(), device.blas, device.stream); };
  p.restore(), enqueue(), device.wait();  // kernels are loaded at the first call, which must not be captured
  std::optional<Graph> graph;
  if (o.launch == "graph") graph.emplace(device, enqueue);
  const Times times = measure(p, o.seconds, [&] { graph ? graph->launch(device.stream) : enqueue(); });
  const double residual = residual_of(p), gflops = lu_flops(m, n) / times.median * 1e-9;
  check_result(p, residual);
  const double us_per_column = times.median / n * 1e6;
  if (!o.json) {
    std::printf("%-10s %6d x %-4d leaf %-3d %9.4f ms  spread %4.1f %%  %9.2f Gflop/s  %8.3f us/column  residual %.3g\n",
                name.c_str(), m, n, leaf, times.median * 1e3, times.spread * 100, gflops, us_per_column, residual);
  } else {
    const ordered_json row = {{"op", "panel"},
                              {"scalar", "f64"},
                              {"m", m},
                              {"n", n},
                              {"ld", m},
                              {"count", 1},
                              {"device", "cuda"},
                              {"machine", device.name},
                              {"mode", name},
                              {"leaf", leaf},
                              {"launch", o.launch},
                              {"seconds", times.median},
                              {"spread", times.spread},
                              {"runs", times.runs},
                              {"gflops", gflops},
                              {"us_per_column", us_per_column},
                              {"residual", residual},
                              {"seed", o.seed},
                              {"commit", TRIFACTOR_COMMIT}};
    std::printf("%s\n", row.dump().c_str());
  }
  std::fflush(stdout);
}

// ---- trace

/// The notes of D2's blocks as states with a beginning and an end, in microseconds from the first one on; neighbours
/// that are the same state are one.
struct Piece {
  int block;
  State state;
  double begin, end;
};
std::vector<Piece> pieces_of(const std::vector<Note>& notes, int blocks) {
  const std::size_t each = notes.size() / std::size_t(blocks);
  unsigned long long first = std::numeric_limits<unsigned long long>::max();
  for (int b = 0; b < blocks; ++b) first = std::min(first, notes[b * each].nanoseconds);
  std::vector<Piece> pieces;
  for (int b = 0; b < blocks; ++b)
    for (std::size_t k = 1; k < each && notes[b * each + k].state != State::none; ++k) {
      const Note &before = notes[b * each + k - 1], &here = notes[b * each + k];
      const double end = double(here.nanoseconds - first) * 1e-3;
      if (k > 1 && pieces.back().state == here.state)
        pieces.back().end = end;
      else
        pieces.push_back({b, here.state, double(before.nanoseconds - first) * 1e-3, end});
    }
  return pieces;
}

/// The trace-event format of Chrome, as `trifactor trace` writes it: a track for each block.
ordered_json timeline(const Device& device, const Options& o, const std::vector<Piece>& pieces) {
  ordered_json events = ordered_json::array();
  for (int b = 0; b < o.traced_n; ++b)
    events.push_back({{"ph", "M"},
                      {"pid", 1},
                      {"tid", b + 1},
                      {"name", "thread_name"},
                      {"args", {{"name", "block " + std::to_string(b)}}}});
  for (const Piece& piece : pieces)
    events.push_back({{"ph", "X"},
                      {"pid", 1},
                      {"tid", piece.block + 1},
                      {"name", name_of(piece.state)},
                      {"ts", piece.begin},
                      {"dur", piece.end - piece.begin}});
  return {{"traceEvents", events},
          {"displayTimeUnit", "ns"},
          {"otherData",
           {{"op", "panel"},
            {"m", o.traced_m},
            {"n", o.traced_n},
            {"scalar", "f64"},
            {"mode", o.traced},
            {"machine", device.name},
            {"commit", TRIFACTOR_COMMIT}}}};
}

void run_trace(const Device& device, const Options& o) {
  const Design design = designs.at(o.traced);
  const int m = o.traced_m, n = o.traced_n;
  const Problem p(device, m, n, random_entries(m, n, o.seed));
  const OnDevice<Note> notes(std::size_t(n) * notes_of_a_block(m, n));
  for (int k = 0; k < 2; ++k) {  // the kernel is loaded at the first call
    p.restore();
    require("cudaMemsetAsync", cudaMemsetAsync(notes.data(), 0, notes.bytes(), device.stream));
    factor_with_notes(design, p.panel(), notes.data(), device.stream);
    device.wait();
  }
  const double residual = residual_of(p);
  check_result(p, residual);
  const std::vector<Piece> pieces = pieces_of(notes.to_host(), n);
  double whole = 0;
  std::map<std::string, double> by_state;
  for (const Piece& piece : pieces) {
    whole = std::max(whole, piece.end * 1e-6);
    by_state[name_of(piece.state)] += (piece.end - piece.begin) * 1e-6;
  }
  std::ofstream file(o.file);
  file << timeline(device, o, pieces).dump() << '\n';
  if (!file.flush()) throw std::runtime_error(o.file + ": cannot be written");
  const ordered_json row = {{"op", "panel"},
                            {"scalar", "f64"},
                            {"m", m},
                            {"n", n},
                            {"device", "cuda"},
                            {"machine", device.name},
                            {"mode", o.traced},
                            {"seconds", whole},
                            {"state_seconds", by_state},
                            {"residual", residual},
                            {"file", o.file},
                            {"seed", o.seed},
                            {"commit", TRIFACTOR_COMMIT}};
  if (o.json) return void(std::printf("%s\n", row.dump().c_str()));
  std::printf("%s: %s, %d x %d, %.1f us, %zu states of %d blocks in %s\n", device.name.c_str(), o.traced.c_str(), m, n,
              whole * 1e6, pieces.size(), n, o.file.c_str());
  for (const auto& [state, seconds] : by_state)
    std::printf("  %-16s %8.1f us, all blocks\n", state.c_str(), seconds * 1e6);
}

// ---- check

struct Case {
  std::string name;
  int m, n, leaf;
  std::vector<double> entries;
  int info = 0, first_pivot = 0;  // 0: the pivots are plain LU's
  bool has_nan = false;
};

std::vector<Case> cases() {
  std::vector<Case> cases;
  constexpr int sizes[][2] = {{1, 1},     {2, 1},     {5, 5},      {31, 17},   {64, 64},
                              {100, 64},  {512, 32},  {513, 33},   {700, 256}, {2049, 100},
                              {4500, 40}, {9000, 33}, {17000, 20}, {24576, 9}, {24700, 130}};
  for (const auto& [m, n] : sizes)
    for (const int leaf : {1, 8, 32}) cases.push_back({"random", m, n, leaf, random_entries(m, n, 7)});
  for (const int m : {128, 1500, 6000}) {
    const int n = 24;
    std::vector<double> A = random_entries(m, n, 3);
    for (int j = 0; j < n; ++j)
      std::copy_n(A.begin() + std::ptrdiff_t(j) * m, m / 2, A.begin() + std::ptrdiff_t(j) * m + m / 2);
    cases.push_back({"every row twice", m, n, n, A});
    A = random_entries(m, n, 4);
    std::fill_n(A.begin() + 5 * m, m, 0.0);
    cases.push_back({"column 6 zero", m, n, 8, A, 6});
    A = random_entries(m, n, 5);
    A[10] = std::numeric_limits<double>::infinity();
    A[m - 20] = A[m - 3] = std::numeric_limits<double>::quiet_NaN();
    cases.push_back({"NaN in column 1", m, n, 8, A, 0, m - 19, true});
  }
  return cases;
}

/// Throws ResultError where the factors are wrong.
void run_case(const Device& device, Design design, const Case& c) {
  const Problem p(device, c.m, c.n, c.entries);
  p.restore();
  factor(design, c.leaf, p.panel(), device.blas, device.stream);
  device.wait();
  const std::vector<int> flags = p.flags.to_host();
  if (c.first_pivot > 0 && flags[0] != c.first_pivot)
    throw ResultError("the first pivot is " + std::to_string(flags[0]) + ", but should be " +
                      std::to_string(c.first_pivot));
  if (c.has_nan) return;
  check_result(p, residual_of(p), c.info);
  if (c.info == 0 && double(c.m) * c.n * c.n < 5e7)
    if (const auto pivots = pivots_on_host(c.entries, c.m, c.n);
        !std::equal(pivots.begin(), pivots.end(), flags.begin()))
      throw ResultError("the pivots are not those of plain LU");
}

void run_check(const Device& device) {
  int failed = 0, all = 0;
  for (const Case& c : cases())
    for (const auto& [name, design] : designs) {
      ++all;
      try {
        run_case(device, design, c);
      } catch (const ResultError& e) {
        ++failed;
        std::printf("%s, %d x %d, leaf %d, %s: %s\n", name.c_str(), c.m, c.n, c.leaf, c.name.c_str(), e.what());
      }
    }
  std::printf("%d of %d cases are right\n", all - failed, all);
  if (failed > 0) throw ResultError(std::to_string(failed) + " cases are wrong");
}

// ---- The commands

/// A device that can be asked; exits with NoDevice otherwise.
void require_device() {
  int count = 0;
  if (const cudaError_t status = cudaGetDeviceCount(&count); status != cudaSuccess || count == 0) {
    std::fprintf(stderr, "trifactor_variants: there is no CUDA device: %s\n", cudaGetErrorString(status));
    std::exit(NoDevice);
  }
}

int run(int count, char** arguments) {
  Options o;
  CLI::App app("The LU panels of a paper that lost to the library's: bench/variants/README.md");
  app.require_subcommand(1);
  CLI::App* panel = app.add_subcommand("panel", "how long the designs take");
  panel->add_option("-m,--m", o.m, "rows")->delimiter(',')->check(CLI::Range(1, 1 << 20));
  panel->add_option("-n,--n", o.n, "columns")->delimiter(',')->check(CLI::Range(1, max_width));
  panel->add_option("--design", o.design, "d1, d2-greedy, d2-lazy")->delimiter(',')->check(CLI::IsMember(designs));
  panel->add_option("--leaf", o.leaf, "columns of narrow panels [16 in d1, 64 in d2]")->check(CLI::Range(1, max_leaf));
  panel->add_option("--launch", o.launch, "as one CUDA graph, or one after the other")
      ->check(CLI::IsMember({"graph", "stream"}));
  panel->add_option("--seconds", o.seconds, "for each row")->check(CLI::Range(0.0, 3600.0));
  CLI::App* trace = app.add_subcommand("trace", "the blocks inside of one launch of D2");
  trace->add_option("-m,--m", o.traced_m, "rows")->check(CLI::Range(1, d2_rows));
  trace->add_option("-n,--n", o.traced_n, "columns, a block for each")->check(CLI::Range(1, max_leaf));
  trace->add_option("--design", o.traced, "d2-greedy or d2-lazy; d1 has no kernel of several columns")
      ->check(CLI::IsMember({"d2-greedy", "d2-lazy"}));
  trace->add_option("-o", o.file, "the file to write, which Perfetto opens")->required();
  for (CLI::App* command : {panel, trace}) {
    command->add_option("--seed", o.seed, "of the random matrix");
    command->add_flag("--json", o.json, "rows as JSON, one a line");
  }
  CLI::App* check = app.add_subcommand("check", "factors small and difficult matrices with every design");
  try {
    app.parse(count, arguments);
    for (const int m : panel->parsed() ? o.m : std::vector{o.traced_m})
      for (const int n : panel->parsed() ? o.n : std::vector{o.traced_n}) require_tall(m, n);
  } catch (const CLI::ParseError& e) { return app.exit(e) == 0 ? Done : BadUsage; }
  require_device();
  const Device device;
  if (check->parsed()) run_check(device);
  if (trace->parsed()) run_trace(device, o);
  if (panel->parsed())
    for (const int m : o.m)
      for (const int n : o.n)
        for (const std::string& design : o.design) run_panel(device, o, design, m, n);
  return Done;
}

}  // namespace

int main(int count, char** arguments) {
  const auto fail = [](const std::exception& e, int status) {
    std::fprintf(stderr, "trifactor_variants: %s\n", e.what());
    return status;
  };
  try {
    return run(count, arguments);
  } catch (const ResultError& e) { return fail(e, WrongResult); } catch (const std::invalid_argument& e) {
    return fail(e, BadUsage);
  } catch (const std::exception& e) { return fail(e, NoDevice); }
}
