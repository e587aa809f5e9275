// measure() with its clock and sensors as arguments, so that tests can bring their own.
#pragma once

#include <meter/sensors.hpp>
#include <trifactor/measure.hpp>

namespace trifactor::meter {

struct Instruments {
  std::function<double()> now;         // seconds since some moment
  std::span<const Sensor> sensors;
};

/// The steady clock and the machine's sensors; these are looked for only when energy is asked for.
Instruments machine_instruments(bool with_sensors);

/// As trifactor::measure says. Throws InvalidArgument for a contender without run() and for options that contradict
/// themselves; what run() and prepare() throw goes through.
std::vector<Measurement> measure(std::span<const Contender> contenders, const MeasureOptions& options,
                                 const Instruments& instruments);

/// Median and spread of times in ascending order, at least one. Quartiles are interpolated between neighbours.
Measurement summarize(std::span<const double> ascending);

}  // namespace trifactor::meter
