// Watts over time, from sensors that count joules, with the clock as an argument, so that tests can bring their own.
#pragma once

#include <meter/sensors.hpp>
#include <trifactor/measure.hpp>

namespace trifactor::meter {

/// Samples that are made of what sensors count. Not for several threads at once.
class PowerTrace {
 public:
  /// now: seconds since some moment, from which samples count.
  PowerTrace(std::span<const Sensor> sensors, double now);

  /// Reads every sensor. One that has moved since its last sample, or since the beginning, gives a sample; one that
  /// stood still or could not be read gives none, and its next one is longer: sensors tick at rates of their own. So
  /// the sum of watts times seconds is what a sensor counted, to the joule. A counter may start again from 0 once
  /// between two readings.
  void sample(double now);

  double start() const noexcept { return start_; }
  std::vector<PowerSample> take() && { return std::move(samples_); }

 private:
  struct Reading {
    double time, joules;
  };
  std::span<const Sensor> sensors_;
  double start_;
  std::vector<std::optional<Reading>> last_;
  std::vector<PowerSample> samples_;
};

}  // namespace trifactor::meter
