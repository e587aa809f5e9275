// trifactor tune: measures which tuning serves this machine, and writes the rows that gain.
#include "commands.hpp"
#include "device.hpp"
#include "failure.hpp"
#include "file_use.hpp"
#include "new_file.hpp"
#include "printable.hpp"
#include "standard_streams.hpp"
#include "step.hpp"
#include "table.hpp"
#include "tune_calls.hpp"
#include "usage.hpp"

#include <CLI/CLI.hpp>
#include <commit.hpp>
#include <fmt/chrono.h>
#include <nlohmann/json.hpp>
#include <trifactor/info.hpp>
#include <trifactor/inspect.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>

namespace program {
namespace {

using nlohmann::ordered_json;
using trifactor::Queue;
using trifactor::inspect::TuningDecision;

struct TuneOptions {
  std::vector<std::string> ops = {"cholesky", "lu", "batch", "solve", "sparse"}, scalars = {default_scalar()};
  std::vector<index_t> n;  // in place of the orders of each operation
  std::string budget = "10m", device, from, output;
  bool json = false;
};

/// "90", "90s", "10m" or "1.5h" in seconds.
double parse_budget(const std::string& text) {
  const std::map<std::string, double> units = {{"", 1}, {"s", 1}, {"m", 60}, {"h", 3600}};
  std::istringstream stream(text);
  double number = 0;
  std::string unit;
  stream >> number;
  const bool is_number = !stream.fail();
  stream.clear();
  std::getline(stream, unit);
  if (!is_number || !(number > 0) || number > 1e6 || !units.count(unit))
    throw InputError(fmt::format("--budget: '{}' is not a time such as 90s, 10m or 1h", printable(text)));
  return number * units.at(unit);
}

/// A tuning file to which rows of one device are added. What it held for other machines stays, and what it held for
/// this one where nothing else was measured.
class RowsFile {
 public:
  /// Throws InvalidArgument with the line where a file of that name is none.
  RowsFile(std::string path, const std::string& device) : path_(std::move(path)) {
    section_ = fmt::format("[trifactor {} on {}]", trifactor::version(), device);
    if (streams_ || !std::filesystem::exists(path_)) {
      kept_ = "# Rows that trifactor tune found: they count on the device and with the version in brackets alone.\n";
      return;
    }
    trifactor::inspect::read_tuning_file(path_);
    std::ifstream file(path_);
    const std::string of_device = fmt::format(" on {}]", device);
    bool ours = false, stale = false;
    for (std::string line; std::getline(file, line);) {
      const bool begins = line.starts_with('[');
      if (begins) ours = line == section_, stale = !ours && line.ends_with(of_device);
      if (ours && !begins && !line.empty()) old_.push_back(line);
      if (!ours && !stale) kept_ += line + '\n';
    }
    while (kept_.ends_with("\n\n")) kept_.pop_back();
  }

  /// head is what stands before a row's colon. A row of that head is replaced, or goes where `row` is empty.
  void decide(const std::string& head, const std::string& row) {
    std::erase_if(old_, [&](const std::string& line) { return line.starts_with(head + " :"); });
    if (!row.empty()) found_.push_back(row);
    if (!streams_ && (!row.empty() || std::filesystem::exists(path_))) write();
  }
  /// For what takes everything once.
  void finish() {
    if (streams_) write();
  }

 private:
  void write() const {
    NewFile file(path_);
    file.append(kept_);
    if (!found_.empty() || !old_.empty()) file.append('\n' + section_ + '\n');
    for (const std::string& row : found_) file.append(row + '\n');
    for (const std::string& row : old_) file.append(row + '\n');
    file.finish();
  }

  static bool is_stream(const std::string& path) {
    std::error_code none;
    return is_standard_output(path) ||
           (std::filesystem::exists(path, none) && !std::filesystem::is_regular_file(path, none));
  }

  std::string path_, section_, kept_;
  bool streams_ = is_stream(path_);       // standard output, a pipe or a device: nothing can be read back
  std::vector<std::string> old_, found_;  // rows of the section
};

std::string date() { return fmt::format("{:%F}", fmt::localtime(std::time(nullptr))); }

/// One decision, as a line of the table or as JSON.
class Report {
 public:
  Report(const TuneOptions& o, std::string machine) : options_(o), machine_(std::move(machine)) {
    if (!o.json) table_.heading();
  }

  void print(const CallClass& c, const std::string& scalar, const TuningDecision& d, const std::string& row) {
    const StepsHidden hidden;
    const double gain = d.before / d.seconds - 1;
    if (!options_.json)
      return table_.row({c.operation, scalar, fmt::format("{}", c.n), fmt::format("{}", c.count),
                         fmt::format("{:.4f}", d.before * 1e3), fmt::format("{:.4f}", d.seconds * 1e3),
                         fmt::format("{:.1f}", gain * 100), fmt::format("{:.1f}", d.spread * 100),
                         fmt::format("{}", d.candidates), d.gains ? d.changed : "-"});
    const ordered_json j = {{"op", c.op},
                            {"operation", c.operation},
                            {"scalar", scalar},
                            {"n", c.n},
                            {"count", c.count},
                            {"conditions", c.conditions},
                            {"machine", machine_},
                            {"before_seconds", d.before},
                            {"seconds", d.seconds},
                            {"gain", gain},
                            {"spread", d.spread},
                            {"candidates", d.candidates},
                            {"runs", d.runs},
                            {"changed", d.changed},
                            {"row", row.empty() ? ordered_json() : ordered_json(row)},
                            {"file", options_.output},
                            {"commit", TRIFACTOR_COMMIT}};
    fmt::print("{}\n", json_text(j));
    require_standard_output();
  }

 private:
  const TuneOptions& options_;
  std::string machine_;
  Table table_{{{"row", 8, true},
                {"scalar", 6, true},
                {"n", 5},
                {"count", 5},
                {"before ms", 10},
                {"after ms", 10},
                {"gain %", 7},
                {"spread %"},
                {"tried"},
                {"changed", 0, true}}};
};

/// A class of calls with a scalar.
struct Piece {
  CallClass calls;
  std::string scalar;
};

class Tuner {
 public:
  Tuner(const TuneOptions& o, Queue queue, const std::string& machine)
      : options_(o), queue_(std::move(queue)), file_(o.output, machine), report_(o, machine) {}

  void run(double budget) {
    std::vector<Piece> pieces;
    for (const std::string& scalar : options_.scalars)
      for (const std::string& op : options_.ops)
        for (const CallClass& calls : call_classes(op, queue_.is_cuda(), options_.n)) pieces.push_back({calls, scalar});
    const auto end = Clock::now() + std::chrono::duration<double>(budget);
    Step step("tuning");
    for (std::size_t i = 0; i < pieces.size() && Clock::now() < end; ++i) {
      step.count(std::int64_t(i), std::int64_t(pieces.size()));
      const auto share = (end - Clock::now()) / double(pieces.size() - i);
      tune(pieces[i], Clock::now() + share);
      ++measured_;
    }
    step.count(1, 1);
    file_.finish();
    total_ = pieces.size();
  }

  void print_summary() const {
    if (options_.json) return;
    std::string text = fmt::format("{} of {} classes of calls measured; {} rows gained", measured_, total_, gained_);
    if (gained_ > 0)
      text += fmt::format(" and are in {}",
                          is_standard_output(options_.output) ? "standard output" : printable(options_.output));
    fmt::print("{}\n", text);
  }

 private:
  using Clock = std::chrono::steady_clock;

  template <class Deadline>
  void tune(const Piece& piece, Deadline deadline) {
    const CallClass& c = piece.calls;
    const Step step(fmt::format("{} {} n = {}", c.operation, piece.scalar, c.n));
    try {
      const auto seconds =
          with_scalar(piece.scalar, [&]<class T>(std::type_identity<T>) { return timed_calls<T>(queue_, c); });
      const auto d = trifactor::inspect::search_tuning(queue_, c.operation, piece.scalar, c.n, c.count, seconds,
                                                       [&] { return Clock::now() > deadline; });
      const std::string head = c.conditions.empty() ? d.row : d.row + ' ' + c.conditions;
      std::string row;
      if (d.gains)
        row = fmt::format("{} : {}   # {}, {:.2f} times {} at n = {}, spread {:.1f} %", head, d.settings, date(),
                          d.before / d.seconds, options_.from.empty() ? "the built-in row" : "the row before", c.n,
                          d.spread * 100);
      gained_ += d.gains;
      file_.decide(head, row);
      report_.print(c, piece.scalar, d, row);
    } catch (const trifactor::OutOfMemory& e) {
      const StepsHidden hidden;
      flush_standard_output();
      std::fputs(
          fmt::format("trifactor: {} {} n = {} is left out: {}\n", c.operation, piece.scalar, c.n, e.what()).c_str(),
          stderr);
    }
  }

  const TuneOptions& options_;
  Queue queue_;
  RowsFile file_;
  Report report_;
  std::size_t measured_ = 0, total_ = 0, gained_ = 0;
};

void tune(TuneOptions o) {
  const double budget = parse_budget(o.budget);
  if (o.output.empty()) {
    o.output = trifactor::inspect::home_tuning_file();
    if (o.output.empty()) throw InputError("there is no home folder for tuning.txt: name a file with -o");
    std::error_code ignored;  // NewFile says what is wrong
    std::filesystem::create_directories(std::filesystem::path(o.output).parent_path(), ignored);
  }
  if (!o.from.empty()) trifactor::inspect::read_tuning_file(o.from);
  // Before the library reads rows: those it begins with are its own, or those of --from.
  ::setenv("TRIFACTOR_TUNING", o.from.empty() ? "off" : o.from.c_str(), 1);
  check_file_use({}, {o.output});
  require_device(o.device);
  o.device = device_or_default(o.device);
  for (const std::string& scalar : o.scalars) with_scalar(scalar, [](auto) {});
  if (!o.n.empty() && std::ranges::all_of(o.ops, [](const std::string& op) { return op == "sparse"; }))
    throw InputError("--n is of dense operations: sparse has matrices of its own");
  std::sort(o.n.begin(), o.n.end());
  o.n.erase(std::unique(o.n.begin(), o.n.end()), o.n.end());
  Queue queue = o.device == "cuda" ? Queue::cuda() : Queue::host();
  std::string machine = "unknown";
  for (const auto& device : trifactor::devices())
    if (device.number == queue.device()) machine = device.name;
  Tuner tuner(o, std::move(queue), machine);
  tuner.run(budget);
  tuner.print_summary();
}

}  // namespace

void add_tune(CLI::App& app) {
  const auto o = std::make_shared<TuneOptions>();
  CLI::App* const command =
      app.add_subcommand("tune", "find the tuning rows that serve this machine best, and write those that gain");
  command->add_option("--ops", o->ops, "of cholesky,lu,batch,solve,sparse [all]")
      ->delimiter(',')
      ->check(CLI::IsMember({"cholesky", "lu", "batch", "solve", "sparse"}));
  command->add_option("--budget", o->budget, "time to spend, such as 90s, 10m or 1h")->capture_default_str();
  command->add_option("--n", o->n, "orders in place of those of each operation, as 512,2048")
      ->delimiter(',')
      ->check(CLI::Range(index_t(1), index_t(65536)));
  command->add_option("--scalar", o->scalars, "of f32,f64,c32,c64 [f64]")->delimiter(',');
  command->add_option("--device", o->device, "host or cuda [cuda where there is a GPU]")
      ->check(CLI::IsMember({"host", "cuda"}));
  command->add_option("--from", o->from, "begin with the rows of this file before the built-in ones")
      ->check(CLI::Validator(not_a_file_name, ""));
  command
      ->add_option("-o,--output", o->output,
                   "the file to write or to add to; - is standard output [tuning.txt in ~/.config/trifactor, where "
                   "the library finds it]")
      ->check(CLI::Validator(not_a_file_name, ""));
  command->add_flag("--json", o->json, "print one JSON object a line");
  command->callback([o] { tune(*o); });
}

}  // namespace program
