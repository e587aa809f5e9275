#include "power_log.hpp"

#include "new_file.hpp"
#include "printable.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace program {
namespace {

/// A name as a field of a CSV file.
std::string csv_field(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

PowerLog::PowerLog(const std::string& file, double hertz) : file_(file), sampler_(hertz) {}

void PowerLog::note(const std::string& what, double begin) { notes_.push_back({what, begin, seconds()}); }

std::vector<PowerLog::Total> PowerLog::finish() {
  const std::vector<trifactor::PowerSample> samples = sampler_.finish();
  const bool csv = file_.ends_with(".csv");
  std::string text = csv ? "what,begin_s,end_s,watts\n" : "";
  for (const Note& note : notes_)
    text += csv ? fmt::format("{},{:.6f},{:.6f},\n", csv_field("measured " + note.what), note.begin, note.end)
                : json_text({{"measured", note.what}, {"begin", note.begin}, {"end", note.end}}) + "\n";
  std::vector<Total> totals;
  for (std::size_t i = 0; i < sensors_.size(); ++i) {
    Total total{sensors_[i], 0, 0, 0, 0};
    for (const trifactor::PowerSample& s : samples) {
      if (s.sensor != int(i)) continue;
      total.joules += s.watts * (s.end - s.begin), total.seconds += s.end - s.begin;
      total.highest = std::max(total.highest, s.watts);
      text += csv ? fmt::format("{},{:.6f},{:.6f},{:.3f}\n", csv_field(sensors_[i]), s.begin, s.end, s.watts)
                  : json_text({{"sensor", sensors_[i]}, {"begin", s.begin}, {"end", s.end}, {"watts", s.watts}}) + "\n";
    }
    if (total.seconds > 0) total.average = total.joules / total.seconds;
    totals.push_back(total);
  }
  NewFile file(file_);
  file.append(text);
  file.finish();
  return totals;
}

}  // namespace program
