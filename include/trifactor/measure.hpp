// measure(): seconds and joules of a piece of work, alone or against others in the same run. seconds_of(): of one call.
// PowerSampler: watts over time.
#pragma once

#include <trifactor/queue.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace trifactor {

/// One piece of work. prepare() is not timed (it restores what run() destroys). With a CUDA queue, run() enqueues the work
/// there, and the device's clock counts, see seconds_of; otherwise run() returns when the work is complete.
struct Contender {
  std::function<void()> run;
  std::function<void()> prepare = {};
  Queue* queue = nullptr;
};

struct MeasureOptions {
  int warmups = 1;
  int min_runs = 5;
  int max_runs = 100;
  double max_seconds = 2.0;        // stop then, all contenders and their prepare() together, after min_runs
  double target_spread = 0.02;     // stop earlier when the spread of every contender is below this
  // If > 0 and a sensor exists: repeat run() this long and read the sensors. They count in steps of up to 0.1 s: 5 s bound
  // the error by some 4 %.
  double energy_seconds = 0.0;
};

struct Measurement {
  double seconds = 0;              // median of one run
  double spread = 0;               // (third quartile - first quartile) / median
  int runs = 0;
  std::optional<double> host_seconds;  // median time until run() returned, of up to 40 calls in a loop, where the work was
                                       // enqueued on a CUDA queue
  std::optional<double> joules;    // of one run; nothing where no sensor exists or the time was too short, never 0
  double energy_seconds = 0;       // that run() and prepare() were repeated for, to know them; 0 where joules is nothing
};

/// Runs the contenders in turn (a b a b ...), so that clocks and neighbours disturb all alike.
TRIFACTOR_API std::vector<Measurement> measure(std::span<const Contender> contenders, const MeasureOptions& = {});
TRIFACTOR_API Measurement measure(const Contender& work, const MeasureOptions& = {});

/// Seconds from the begin to the end of what work() enqueues on q, by the device's clock, while the device does not wait for
/// the host; on a host queue the seconds that work() takes. Returns when the work is complete.
TRIFACTOR_API double seconds_of(Queue& q, const std::function<void()>& work);

/// A sensor that counts joules: "NVML NVIDIA H200", "RAPL package-0".
TRIFACTOR_API std::vector<std::string> energy_sensors();

/// What a sensor counted between two moments, as watts.
struct PowerSample {
  int sensor;                      // its place in energy_sensors()
  double begin, end;               // seconds since the sampler was made
  double watts;
};

/// Reads all energy sensors again and again, in a thread of its own, from here on. A sensor that ticks more slowly
/// gives a sample for each of its ticks. Throws DeviceFault where there is no sensor.
class TRIFACTOR_API PowerSampler {
 public:
  explicit PowerSampler(double hertz = 50);
  PowerSampler(const PowerSampler&) = delete;
  ~PowerSampler();

  /// Since it was made, by the clock of its samples.
  double seconds() const;
  /// Ends it and returns all samples, in the order of their ends. To be called once.
  std::vector<PowerSample> finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trifactor
