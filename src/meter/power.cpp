#include <meter/power.hpp>

#include <meter/measure.hpp>
#include <trifactor/error.hpp>

#include <condition_variable>
#include <mutex>
#include <thread>

namespace trifactor {
namespace meter {

PowerTrace::PowerTrace(std::span<const Sensor> sensors, double now)
    : sensors_(sensors), start_(now), last_(sensors.size()) {
  sample(now);
}

void PowerTrace::sample(double now) {
  for (std::size_t i = 0; i < sensors_.size(); ++i) {
    const auto joules = sensors_[i].read();
    if (!joules) continue;
    if (!last_[i]) {
      last_[i] = {now, *joules};
      continue;
    }
    const double seconds = now - last_[i]->time;
    const double counted =
        *joules < last_[i]->joules ? *joules - last_[i]->joules + sensors_[i].range : *joules - last_[i]->joules;
    if (counted < 0) last_[i] = {now, *joules};  // started again from an unknown number
    if (!(counted > 0) || !(seconds > 0)) continue;
    samples_.push_back({int(i), last_[i]->time - start_, now - start_, counted / seconds});
    last_[i] = {now, *joules};
  }
}

}  // namespace meter

/// A thread that samples until it is told to stop.
struct PowerSampler::State {
  explicit State(double hertz)
      : instruments(meter::machine_instruments(true)),
        trace(instruments.sensors, instruments.now()),
        thread([this, hertz] { run(hertz); }) {}

  ~State() { stop(); }

  void run(double hertz) {
    std::unique_lock lock(mutex);
    const auto pause = std::chrono::duration<double>(1 / hertz);
    while (!stopped.wait_for(lock, pause, [this] { return stopping; })) trace.sample(instruments.now());
  }

  void stop() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    stopped.notify_all();
    if (thread.joinable()) thread.join();
  }

  meter::Instruments instruments;
  meter::PowerTrace trace;
  std::mutex mutex;
  std::condition_variable stopped;
  bool stopping = false;
  std::thread thread;  // after what it uses
};

PowerSampler::PowerSampler(double hertz) {
  if (!(hertz > 0 && hertz <= 1000))
    throw InvalidArgument("PowerSampler: hertz = " + std::to_string(hertz) + " must be above 0 and at most 1000");
  if (meter::machine_sensors().empty())
    throw DeviceFault(
        "there is no energy sensor: no NVIDIA driver with NVML that counts joules (libnvidia-ml.so.1), and no readable "
        "energy_uj of a CPU package below /sys/class/powercap (most kernels let only root read it; TRIFACTOR_POWERCAP "
        "names another folder)");
  state_ = std::make_unique<State>(hertz);
}

PowerSampler::~PowerSampler() = default;

double PowerSampler::seconds() const { return state_->instruments.now() - state_->trace.start(); }

std::vector<PowerSample> PowerSampler::finish() {
  state_->stop();
  state_->trace.sample(state_->instruments.now());
  return std::move(state_->trace).take();
}

}  // namespace trifactor
