// Watts over time beside a command or a benchmark, written as CSV or as JSON lines.
#pragma once

#include <trifactor/measure.hpp>

#include <string>
#include <vector>

namespace program {

/// Samples from its construction to finish(). Notes beside them say what was done meanwhile.
class PowerLog {
 public:
  /// file: NAME.csv, or JSON lines, which check_file_use() has seen. Throws DeviceFault where there is no sensor.
  PowerLog(const std::string& file, double hertz);

  double seconds() const { return sampler_.seconds(); }
  /// From `begin` until now this was done.
  void note(const std::string& what, double begin);

  struct Total {
    std::string sensor;
    double joules, seconds, average, highest;  // watts; seconds: from its first to its last tick
  };
  /// Writes the file. One for each sensor that counted.
  std::vector<Total> finish();

 private:
  struct Note {
    std::string what;
    double begin, end;
  };
  std::string file_;
  std::vector<std::string> sensors_ = trifactor::energy_sensors();
  trifactor::PowerSampler sampler_;
  std::vector<Note> notes_;
};

}  // namespace program
