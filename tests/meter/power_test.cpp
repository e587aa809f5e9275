// Watts over time, with a clock and sensors that the tests move by hand.
#include <meter/power.hpp>
#include <trifactor/error.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace trifactor::meter {
namespace {

/// The joules that the samples of a sensor make.
double integral(const std::vector<PowerSample>& samples, int sensor) {
  double joules = 0;
  for (const PowerSample& s : samples)
    if (s.sensor == sensor) joules += s.watts * (s.end - s.begin);
  return joules;
}

TEST(Power, IntegratesToTheJouleAtUnevenTimes) {
  double joules = 1000;
  const Sensor sensor{"fake", [&] { return std::optional(joules); }};
  PowerTrace trace({&sensor, 1}, 7);
  double now = 7, spent = 0;
  for (const auto& [seconds, watts] :
       {std::pair{0.02, 300.0}, {0.5, 10.0}, {0.001, 700.0}, {0.1, 0.0}, {0.25, 420.0}}) {
    now += seconds, joules += seconds * watts, spent += seconds * watts;
    trace.sample(now);
  }
  const auto samples = std::move(trace).take();
  EXPECT_NEAR(integral(samples, 0), spent, 1e-9);
  ASSERT_EQ(samples.size(), 4u);
  EXPECT_DOUBLE_EQ(samples[0].begin, 0);
  EXPECT_NEAR(samples[0].watts, 300, 1e-6);
  EXPECT_NEAR(samples[3].begin, 0.521, 1e-12);  // from its last tick, the still time included
  EXPECT_NEAR(samples[3].watts, 420 * 0.25 / 0.35, 1e-6);
}

TEST(Power, ASlowSensorHasASampleForEachOfItsTicks) {
  double now = 0;
  const Sensor sensors[] = {{"every 0.1 s", [&] { return std::optional(50 * 0.1 * std::floor(now / 0.1 + 1e-9)); }},
                            {"always", [&] { return std::optional(20 * now); }}};
  PowerTrace trace(sensors, 0);
  for (int i = 1; i <= 100; ++i) trace.sample(now = i * 0.01);
  const auto samples = std::move(trace).take();
  EXPECT_EQ(samples.size(), 110u);
  EXPECT_NEAR(integral(samples, 0), 50, 1e-9);
  EXPECT_NEAR(integral(samples, 1), 20, 1e-9);
  for (const PowerSample& s : samples) EXPECT_NEAR(s.watts, s.sensor == 0 ? 50 : 20, 1e-6);
}

TEST(Power, CountersMayWrapAndReadingsMayFail) {
  std::optional<double> joules = 90;
  const Sensor sensor{"small", [&] { return joules; }, 100};
  PowerTrace trace({&sensor, 1}, 0);
  joules = 5, trace.sample(1);  // 90 .. 100, 0 .. 5
  joules.reset(), trace.sample(2);
  joules = 25, trace.sample(3);
  const auto samples = std::move(trace).take();
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_DOUBLE_EQ(samples[0].watts, 15);
  EXPECT_DOUBLE_EQ(samples[1].watts, 10);
  EXPECT_DOUBLE_EQ(samples[1].begin, 1);
}

TEST(Power, ACounterThatStartsAgainUnexpectedlyGivesNoSample) {
  double joules = 90;
  const Sensor sensor{"restarted", [&] { return std::optional(joules); }};
  PowerTrace trace({&sensor, 1}, 0);
  joules = 2, trace.sample(1);
  joules = 8, trace.sample(2);
  const auto samples = std::move(trace).take();
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_DOUBLE_EQ(samples[0].watts, 6);
}

TEST(Power, ASamplerNamesWhatIsMissing) {
  EXPECT_THROW(PowerSampler(0), InvalidArgument);
  EXPECT_THROW(PowerSampler(2000), InvalidArgument);
  if (!energy_sensors().empty()) {
    PowerSampler sampler(200);
    EXPECT_GE(sampler.seconds(), 0);
    for (const PowerSample& s : sampler.finish()) EXPECT_GT(s.watts, 0);
    return;
  }
  try {
    PowerSampler sampler;
    FAIL() << "a sampler without a sensor";
  } catch (const DeviceFault& fault) {
    EXPECT_NE(std::string(fault.what()).find("no energy sensor"), std::string::npos);
  }
}

}  // namespace
}  // namespace trifactor::meter
