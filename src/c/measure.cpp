// Seconds and joules.
#include <c/status.hpp>

#include <trifactor/measure.hpp>

#include <cmath>

using namespace trifactor::c;

namespace {

trifactor::MeasureOptions measure_options(const char* call, const trifactor_measure_options* given) {
  const auto o = options_of(call, given);
  trifactor::MeasureOptions options;
  if (o.warmups != 0) options.warmups = o.warmups > 0 ? o.warmups : 0;
  if (o.min_runs != 0) options.min_runs = o.min_runs;
  if (o.max_runs != 0) options.max_runs = o.max_runs;
  if (o.max_seconds != 0) options.max_seconds = o.max_seconds;
  if (o.target_spread != 0) options.target_spread = o.target_spread;
  options.energy_seconds = o.energy_seconds;
  return options;
}

std::function<void()> bound(void (*work)(void*), void* context) {
  return work ? std::function<void()>([=] { work(context); }) : std::function<void()>();
}

}  // namespace

trifactor_status trifactor_measure(const trifactor_contender* contenders, int64_t count,
                                   const trifactor_measure_options* options, trifactor_measurement* results) {
  return guard([&] {
    const char* call = "trifactor_measure";
    if (count < 0) fail(call, "count = " + std::to_string(count) + " must not be negative");
    if (count == 0) return;
    need(call, "contenders", contenders), need(call, "results", results);
    std::vector<trifactor::Contender> works;
    for (int64_t i = 0; i < count; ++i) {
      const trifactor_contender& c = contenders[i];
      if (!c.run) fail(call, "run of contender " + std::to_string(i) + " is null");
      works.push_back({bound(c.run, c.context), bound(c.prepare, c.context), c.queue ? &c.queue->queue : nullptr});
    }
    const auto found = trifactor::measure(works, measure_options(call, options));
    for (int64_t i = 0; i < count; ++i) {
      const trifactor::Measurement& m = found[std::size_t(i)];
      results[i] = {m.seconds,       m.spread, m.runs, m.host_seconds.value_or(NAN), m.joules.value_or(NAN),
                    m.energy_seconds};
    }
  });
}

trifactor_status trifactor_seconds_of(trifactor_queue* queue, void (*work)(void*), void* context, double* seconds) {
  return guard([&] {
    const char* call = "trifactor_seconds_of";
    if (!work) fail(call, "work is null");
    need(call, "seconds", seconds) = trifactor::seconds_of(need(call, "queue", queue).queue, [&] { work(context); });
  });
}

const char* trifactor_energy_sensors(void) {
  thread_local std::string room;
  return text_of(room, [] {
    std::string lines;
    for (const std::string& name : trifactor::energy_sensors()) lines += name + "\n";
    return lines;
  });
}
