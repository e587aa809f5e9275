#include <meter/measure.hpp>

#include <trifactor/error.hpp>

#include <algorithm>
#include <chrono>

namespace trifactor {
namespace meter {

namespace {

void check(std::span<const Contender> contenders, const MeasureOptions& o) {
  const auto require = [](bool good, const char* name, auto value, const char* rule) {
    if (!good) throw InvalidArgument(std::string("measure: ") + name + " = " + std::to_string(value) + " " + rule);
  };
  require(o.warmups >= 0, "warmups", o.warmups, "must not be negative");
  require(o.min_runs >= 1, "min_runs", o.min_runs, "must be at least 1");
  require(o.max_runs >= o.min_runs, "max_runs", o.max_runs, "must be at least min_runs");
  require(o.max_seconds >= 0, "max_seconds", o.max_seconds, "must not be negative");
  require(o.target_spread >= 0, "target_spread", o.target_spread, "must not be negative");
  require(o.energy_seconds >= 0, "energy_seconds", o.energy_seconds, "must not be negative");
  for (std::size_t i = 0; i < contenders.size(); ++i)
    if (!contenders[i].run) throw InvalidArgument("measure: contenders[" + std::to_string(i) + "] must have a run()");
}

void prepare(const Contender& work) {
  if (work.prepare) work.prepare();
}

void wait(const Contender& work) {
  if (work.queue) work.queue->sync();
}

void complete(const Contender& work) {
  work.run();
  wait(work);
}

/// What was measured of one contender, in ascending order: seconds of run(), and until it returned.
struct Times {
  std::vector<double> all, host;
};

void insert(std::vector<double>& ascending, double seconds) {
  ascending.insert(std::upper_bound(ascending.begin(), ascending.end(), seconds), seconds);
}

void time_run(const Contender& work, const Instruments& with, Times& times) {
  double on_host = 0;
  const auto run = [&] {
    const double begin = with.now();
    work.run();
    on_host = with.now() - begin;
  };
  if (work.queue && work.queue->is_cuda()) {
    insert(times.all, seconds_of(*work.queue, run));
    insert(times.host, on_host);
  } else {
    run();
    insert(times.all, on_host);
  }
}

/// What calls cost their caller in a loop that enqueues one after the other. The runs that time the work do not tell
/// that: each comes after a wait, from which the caller's processor has yet to wake up, and takes 20 us where others
/// take 5. So it is here, too, if prepare() waits.
constexpr std::size_t host_calls = 40, calls_at_once = 4;  // so many launches of the largest drivers fit into a stream
constexpr double host_seconds = 0.3;                       // for large items, fewer calls

void time_calls(const Contender& work, const Instruments& with, Times& times) {
  times.host.clear();
  const double start = with.now();
  for (std::size_t i = 0; i < host_calls && with.now() - start < host_seconds; ++i) {
    if (i % calls_at_once == 0) work.queue->sync();
    prepare(work);
    const double begin = with.now();
    work.run();
    insert(times.host, with.now() - begin);
  }
  work.queue->sync();
}

struct Energy {
  double joules, seconds;  // of one call; that it was repeated for
};

/// Of step, repeated for this long.
template <class Step>
std::optional<Energy> energy_of(Step step, double seconds, const Instruments& with) {
  const EnergyInterval energy(with.sensors);
  const double begin = with.now();
  double repetitions = 0;
  do {
    step();
    ++repetitions;
  } while (with.now() - begin < seconds);
  const auto joules = energy.joules();
  if (!joules) return std::nullopt;
  return Energy{*joules / repetitions, with.now() - begin};
}

/// Of one run(). Sensors tick too slowly to be read around a single run, so run() and prepare() are repeated
/// together, and then prepare() alone, whose joules are taken off. Both loops take the same time, not the same number
/// of turns: in a few short turns of prepare() alone a sensor would not tick at all.
std::optional<Energy> energy_of_run(const Contender& work, double seconds, const Instruments& with) {
  if (with.sensors.empty()) return std::nullopt;
  auto both = energy_of([&] { prepare(work), complete(work); }, seconds, with);
  if (!both || !work.prepare) return both;
  const auto alone = energy_of([&] { prepare(work), wait(work); }, seconds, with);
  if (!alone || !(both->joules > alone->joules)) return std::nullopt;  // lost in the noise of prepare()
  both->joules -= alone->joules;
  return both;
}

}  // namespace

Instruments machine_instruments(bool with_sensors) {
  using Clock = std::chrono::steady_clock;
  // Counted from here, not from the clock's own beginning: after months of uptime a double would lose nanoseconds.
  const auto now = [begin = Clock::now()] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  return {now, with_sensors ? std::span<const Sensor>(machine_sensors()) : std::span<const Sensor>()};
}

Measurement summarize(std::span<const double> ascending) {
  const auto quantile = [&](double q) {
    const double position = q * double(ascending.size() - 1);
    const auto below = std::size_t(position);
    const auto above = std::min(below + 1, ascending.size() - 1);
    return ascending[below] + (position - double(below)) * (ascending[above] - ascending[below]);
  };
  Measurement m;
  m.seconds = quantile(0.5);
  m.spread = m.seconds > 0 ? (quantile(0.75) - quantile(0.25)) / m.seconds : 0;
  m.runs = int(ascending.size());
  return m;
}

std::vector<Measurement> measure(std::span<const Contender> contenders, const MeasureOptions& options,
                                 const Instruments& instruments) {
  check(contenders, options);
  std::vector<Measurement> results(contenders.size());
  if (contenders.empty()) return results;

  for (int i = 0; i < options.warmups; ++i)
    for (const Contender& work : contenders) prepare(work), complete(work);

  std::vector<Times> times(contenders.size());
  const double start = instruments.now();
  for (int runs = 1; runs <= options.max_runs; ++runs) {
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      prepare(contenders[i]);
      time_run(contenders[i], instruments, times[i]);
      results[i] = summarize(times[i].all);
    }
    const bool steady = std::all_of(results.begin(), results.end(),
                                    [&](const Measurement& m) { return m.spread < options.target_spread; });
    if (runs >= options.min_runs && (steady || instruments.now() - start >= options.max_seconds)) break;
  }

  for (std::size_t i = 0; i < contenders.size(); ++i)
    if (!times[i].host.empty()) {
      time_calls(contenders[i], instruments, times[i]);
      results[i].host_seconds = summarize(times[i].host).seconds;
    }
  if (options.energy_seconds > 0)
    for (std::size_t i = 0; i < contenders.size(); ++i)
      if (const auto energy = energy_of_run(contenders[i], options.energy_seconds, instruments))
        results[i].joules = energy->joules, results[i].energy_seconds = energy->seconds;
  return results;
}

}  // namespace meter

std::vector<Measurement> measure(std::span<const Contender> contenders, const MeasureOptions& options) {
  return meter::measure(contenders, options, meter::machine_instruments(options.energy_seconds > 0));
}

Measurement measure(const Contender& work, const MeasureOptions& options) {
  return measure(std::span(&work, 1), options).front();
}

}  // namespace trifactor
