// trifactor power: runs a command and writes how many watts the CPU and the GPU draw meanwhile.
#include "child_process.hpp"
#include "commands.hpp"
#include "failure.hpp"
#include "file_use.hpp"
#include "power_log.hpp"
#include "printable.hpp"
#include "usage.hpp"

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <memory>

namespace program {
namespace {

struct PowerOptions {
  std::string file = "power.csv";
  double hertz = 50;
  std::vector<std::string> command;
  bool json = false;
};

int run_power(const PowerOptions& o) {
  if (o.file == "-") throw InputError("--output: standard output is the command's; the watts need a file");
  check_file_use({}, {o.file});
  PowerLog log(o.file, o.hertz);
  const int status = status_of_child(o.command);
  const double seconds = log.seconds();
  const auto totals = log.finish();
  if (o.json) {
    auto sensors = nlohmann::ordered_json::array();
    for (const PowerLog::Total& t : totals)
      sensors.push_back({{"sensor", t.sensor},
                         {"joules", t.joules},
                         {"seconds", t.seconds},
                         {"watts", t.average},
                         {"most_watts", t.highest}});
    std::fputs(
        (json_text({{"file", o.file}, {"seconds", seconds}, {"status", status}, {"sensors", sensors}}) + "\n").c_str(),
        stderr);
  } else {
    std::string text = fmt::format("{}: {:.3f} s\n", printable(o.file), seconds);
    for (const PowerLog::Total& t : totals)
      text += fmt::format("{}: {:.1f} J, {:.1f} W on average, {:.1f} W at most\n", t.sensor, t.joules, t.average,
                          t.highest);
    std::fputs(text.c_str(), stderr);
  }
  return status;
}

}  // namespace

void add_power(CLI::App& app, int& status) {
  CLI::App* const command = app.add_subcommand("power", "run a command and write the watts of CPU and GPU over time");
  const auto o = std::make_shared<PowerOptions>();
  command->add_option("COMMAND", o->command, "the program and its arguments, behind --")->required();
  command->add_option("-o,--output", o->file, "the file to write: NAME.csv, or JSON lines")
      ->check(CLI::Validator(not_a_file_name, ""))
      ->capture_default_str();
  command->add_option("--hertz", o->hertz, "how often sensors are read; one that ticks more slowly has fewer samples")
      ->check(CLI::Range(0.1, 1000.0))
      ->capture_default_str();
  command->add_flag("--json", o->json, "print the summary, on standard error, as one JSON object");
  command->footer(
      "Example: trifactor power -- trifactor bench lu --n 16384\n"
      "The exit status is the command's; 128 and the signal's number where a signal ended it. scripts/plot_results.py\n"
      "draws the file.");
  command->callback([o, &status] { status = run_power(*o); });
}

}  // namespace program
