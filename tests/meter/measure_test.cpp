// measure(), with a clock and sensors that the tests move by hand.
#include <meter/measure.hpp>
#include <trifactor/error.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include <unistd.h>

namespace trifactor::meter {
namespace {

/// A machine whose time and energy pass only when work says so.
class FakeMachine {
 public:
  double seconds = 0, joules = 0;
  std::vector<Sensor> sensors;

  void add_sensor() { sensors.push_back({"fake", [this] { return std::optional(joules); }}); }
  Instruments instruments() { return {[this] { return seconds; }, sensors}; }
  void work(double s, double j) { seconds += s, joules += j; }
  auto working(double s, double j = 0) { return [this, s, j] { work(s, j); }; }
};

MeasureOptions exactly(int runs) {
  return {.warmups = 0, .min_runs = runs, .max_runs = runs, .max_seconds = 1e9, .target_spread = 0};
}

TEST(Summary, MedianAndSpreadOfKnownTimes) {
  const double odd[] = {1, 2, 4, 7, 11};
  EXPECT_DOUBLE_EQ(summarize(odd).seconds, 4);
  EXPECT_DOUBLE_EQ(summarize(odd).spread, (7.0 - 2.0) / 4.0);
  EXPECT_EQ(summarize(odd).runs, 5);
  const double even[] = {1, 2, 3, 10};
  EXPECT_DOUBLE_EQ(summarize(even).seconds, 2.5);
  EXPECT_DOUBLE_EQ(summarize(even).spread, (4.75 - 1.75) / 2.5);
  const double one[] = {3};
  EXPECT_DOUBLE_EQ(summarize(one).seconds, 3);
  EXPECT_DOUBLE_EQ(summarize(one).spread, 0);
  const double zeros[] = {0, 0, 0};
  EXPECT_DOUBLE_EQ(summarize(zeros).spread, 0);
}

TEST(Measure, TakesTheMedianOfUnorderedTimesAndDoesNotTimePrepare) {
  FakeMachine m;
  const double times[] = {7, 1, 4, 11, 2};
  std::size_t next = 0;
  const Contender work{.run = [&] { m.work(times[next++], 0); }, .prepare = m.working(100)};
  const auto result = measure({&work, 1}, exactly(5), m.instruments()).front();
  EXPECT_DOUBLE_EQ(result.seconds, 4);
  EXPECT_DOUBLE_EQ(result.spread, 1.25);
  EXPECT_EQ(result.runs, 5);
  EXPECT_FALSE(result.joules);
}

TEST(Measure, AHostQueueIsTimedByTheClock) {
  FakeMachine m;
  Queue queue = Queue::host();
  const Contender work{.run = m.working(3), .prepare = m.working(100), .queue = &queue};
  const auto result = measure({&work, 1}, exactly(4), m.instruments()).front();
  EXPECT_DOUBLE_EQ(result.seconds, 3);
  EXPECT_FALSE(result.host_seconds);
}

TEST(Measure, AlternatesContendersAndPreparesBeforeEachRun) {
  FakeMachine m;
  std::string order;
  const Contender contenders[] = {
      {.run = [&] { order += 'a', m.work(1, 0); }, .prepare = [&] { order += '1'; }},
      {.run = [&] { order += 'b', m.work(2, 0); }},
  };
  auto options = exactly(2);
  options.warmups = 1;
  const auto results = measure(contenders, options, m.instruments());
  EXPECT_EQ(order, "1ab1ab1ab");
  ASSERT_EQ(results.size(), 2u);
  EXPECT_DOUBLE_EQ(results[0].seconds, 1);
  EXPECT_DOUBLE_EQ(results[1].seconds, 2);
}

TEST(Measure, DoesNotTimeTheWarmUp) {
  FakeMachine m;
  int calls = 0;
  const Contender work{.run = [&] { m.work(++calls <= 3 ? 50 : 1, 0); }};
  const auto result = measure({&work, 1}, {.warmups = 3, .max_seconds = 1e9}, m.instruments()).front();
  EXPECT_DOUBLE_EQ(result.seconds, 1);
  EXPECT_DOUBLE_EQ(result.spread, 0);
  EXPECT_EQ(result.runs + 3, calls);
}

TEST(Measure, StopsAfterMinRunsWhenEveryContenderIsSteady) {
  FakeMachine m;
  int calls = 0;
  const Contender steady{.run = m.working(1)}, restless{.run = [&] { m.work(++calls % 2 ? 1 : 2, 0); }};
  const MeasureOptions options{.warmups = 0, .min_runs = 4, .max_runs = 30, .max_seconds = 1e9, .target_spread = 0.1};
  EXPECT_EQ(measure({&steady, 1}, options, m.instruments()).front().runs, 4);
  const Contender both[] = {steady, restless};
  for (const auto& result : measure(both, options, m.instruments())) EXPECT_EQ(result.runs, 30);
}

TEST(Measure, StopsWhenTheTimeIsUpButNotBeforeMinRuns) {
  FakeMachine m;
  const Contender both[] = {{.run = m.working(1), .prepare = m.working(2)}, {.run = m.working(3)}};  // 6 s a round
  MeasureOptions options{.warmups = 0, .min_runs = 2, .max_runs = 30, .max_seconds = 30, .target_spread = 0};
  for (const auto& result : measure(both, options, m.instruments())) EXPECT_EQ(result.runs, 5);
  options.max_seconds = 0;
  for (const auto& result : measure(both, options, m.instruments())) EXPECT_EQ(result.runs, 2);
}

TEST(Measure, NoContendersGiveNoResults) {
  FakeMachine m;
  EXPECT_TRUE(measure({}, {}, m.instruments()).empty());
}

TEST(Measure, ExceptionsGoThrough) {
  FakeMachine m;
  struct Broken {};
  int calls = 0;
  const Contender in_run{.run = [&] { if (++calls == 3) throw Broken{}; }};
  EXPECT_THROW(measure({&in_run, 1}, exactly(5), m.instruments()), Broken);
  EXPECT_EQ(calls, 3);
  const Contender in_prepare{.run = [] {}, .prepare = [] { throw Broken{}; }};
  EXPECT_THROW(measure({&in_prepare, 1}, exactly(5), m.instruments()), Broken);
}

TEST(Measure, ContradictionsAreRefusedBeforeAnythingRuns) {
  FakeMachine m;
  int calls = 0;
  const Contender work{.run = [&] { ++calls; }};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const MeasureOptions& wrong : {MeasureOptions{.warmups = -1}, MeasureOptions{.min_runs = 0},
                                      MeasureOptions{.min_runs = 6, .max_runs = 5}, MeasureOptions{.max_seconds = -1},
                                      MeasureOptions{.max_seconds = nan}, MeasureOptions{.target_spread = nan},
                                      MeasureOptions{.energy_seconds = -1}})
    EXPECT_THROW(measure({&work, 1}, wrong, m.instruments()), InvalidArgument);
  const Contender second_is_empty[] = {work, {}};
  EXPECT_THROW(measure(second_is_empty, {}, m.instruments()), InvalidArgument);
  EXPECT_EQ(calls, 0);
}

TEST(Measure, PublicFormsCountRealTime) {
  int calls = 0;
  const Contender work{.run = [&] { ++calls; }};
  const MeasureOptions options{.warmups = 2, .min_runs = 3, .max_runs = 3};
  const auto result = trifactor::measure(work, options);
  EXPECT_EQ(calls, 5);
  EXPECT_EQ(result.runs, 3);
  EXPECT_GE(result.seconds, 0);
  EXPECT_TRUE(std::isfinite(result.spread));
  EXPECT_FALSE(result.joules);  // not asked for
  const Contender both[] = {work, work};
  EXPECT_EQ(trifactor::measure(both, options).size(), 2u);
}

TEST(Energy, IsThatOfOneRun) {
  FakeMachine m;
  m.add_sensor();
  const Contender contenders[] = {{.run = m.working(0.25, 3)}, {.run = m.working(0.5, 7)}};
  auto options = exactly(1);
  options.energy_seconds = 2;
  const auto results = measure(contenders, options, m.instruments());
  ASSERT_TRUE(results[0].joules && results[1].joules);
  EXPECT_DOUBLE_EQ(*results[0].joules, 3);
  EXPECT_DOUBLE_EQ(*results[1].joules, 7);
}

TEST(Energy, RepeatsForAsLongAsAskedAndPreparesEachTime) {
  FakeMachine m;
  m.add_sensor();
  std::string order;
  const Contender work{.run = [&] { order += 'r', m.work(1, 5); }, .prepare = [&] { order += 'p', m.work(1, 2); }};
  auto options = exactly(1);
  options.energy_seconds = 3;
  const auto result = measure({&work, 1}, options, m.instruments()).front();
  EXPECT_EQ(order, "pr" "prpr" "ppp");
  ASSERT_TRUE(result.joules);
  EXPECT_DOUBLE_EQ(*result.joules, 5);  // without prepare's 2
  EXPECT_DOUBLE_EQ(result.energy_seconds, 4);
}

TEST(Energy, SumsAllSensors) {
  FakeMachine m;
  m.add_sensor();
  m.add_sensor();
  const Contender work{.run = m.working(1, 3)};
  auto options = exactly(1);
  options.energy_seconds = 2;
  EXPECT_DOUBLE_EQ(measure({&work, 1}, options, m.instruments()).front().joules.value_or(0), 6);
}

TEST(Energy, IsNothingAndNeverZeroWhereItIsNotKnown) {
  auto options = exactly(1);
  options.energy_seconds = 2;
  const auto joules = [&](FakeMachine& m, double run, double prepare = 0) {
    Contender work{.run = m.working(1, run)};
    if (prepare > 0) work.prepare = m.working(1, prepare);
    return measure({&work, 1}, options, m.instruments()).front().joules;
  };
  FakeMachine without, still, partly_still, broken, drowned;
  EXPECT_FALSE(joules(without, 3));
  const Contender work{.run = without.working(1, 3)};
  EXPECT_EQ(measure({&work, 1}, options, without.instruments()).front().energy_seconds, 0);

  still.add_sensor();
  EXPECT_FALSE(joules(still, 0));

  partly_still.add_sensor();
  partly_still.sensors.push_back({"still", [] { return std::optional(8.0); }});
  EXPECT_FALSE(joules(partly_still, 3));

  broken.add_sensor();
  broken.sensors.push_back({"broken", []() -> std::optional<double> { return std::nullopt; }});
  EXPECT_FALSE(joules(broken, 3));

  drowned.add_sensor();
  EXPECT_TRUE(joules(drowned, 3, 5));
  EXPECT_FALSE(joules(drowned, 0, 5));
}

TEST(Energy, SensorsAreNotReadUnlessAskedFor) {
  FakeMachine m;
  int reads = 0;
  m.sensors.push_back({"counted", [&] { return ++reads, std::optional(m.joules); }});
  const Contender work{.run = m.working(1, 3)};
  EXPECT_FALSE(measure({&work, 1}, exactly(3), m.instruments()).front().joules);
  EXPECT_EQ(reads, 0);
}

TEST(EnergyInterval, AddsTheRangeWhenACounterWraps) {
  double counter = 90;
  const auto read = [&] { return std::optional(counter); };
  const Sensor wrapping{"wrapping", read, 100}, endless{"endless", read, 0};
  const EnergyInterval energy({&wrapping, 1}), backwards({&endless, 1});
  counter = 98;
  EXPECT_DOUBLE_EQ(energy.joules().value_or(0), 8);
  counter = 15;
  EXPECT_DOUBLE_EQ(energy.joules().value_or(0), 25);
  EXPECT_FALSE(backwards.joules());  // no range is known: it was reset
}

class Rapl : public ::testing::Test {
 protected:
  std::filesystem::path root =
      std::filesystem::path(::testing::TempDir()) / ("trifactor_rapl_test_" + std::to_string(::getpid()));

  void zone(const std::string& folder, const std::string& name, const std::string& energy, const std::string& range) {
    std::filesystem::create_directories(root / folder);
    std::ofstream(root / folder / "name") << name << '\n';
    if (!energy.empty()) std::ofstream(root / folder / "energy_uj") << energy << '\n';
    if (!range.empty()) std::ofstream(root / folder / "max_energy_range_uj") << range << '\n';
  }
  ~Rapl() override { std::filesystem::remove_all(root); }
};

TEST_F(Rapl, CountsPackagesOnce) {
  zone("intel-rapl:1", "package-1", "7000000", "262143328850");
  zone("intel-rapl:0", "package-0", "5000000", "262143328850");
  zone("intel-rapl:0:0", "core", "1000000", "262143328850");
  zone("intel-rapl:0:1", "package-0", "1000000", "262143328850");
  zone("intel-rapl:2", "psys", "9000000", "262143328850");
  zone("intel-rapl-mmio:0", "package-0", "5000000", "262143328850");
  zone("intel-rapl", "package-9", "5000000", "262143328850");
  const auto sensors = rapl_sensors(root);
  ASSERT_EQ(sensors.size(), 2u);
  EXPECT_EQ(sensors[0].name, "RAPL package-0");
  EXPECT_EQ(sensors[1].name, "RAPL package-1");
  EXPECT_DOUBLE_EQ(sensors[0].read().value_or(0), 5);
  EXPECT_DOUBLE_EQ(sensors[1].read().value_or(0), 7);
}

TEST_F(Rapl, FollowsTheFileAndItsWrapAround) {
  zone("intel-rapl:0", "package-0", "900000", "1000000");
  const auto sensors = rapl_sensors(root);
  ASSERT_EQ(sensors.size(), 1u);
  const EnergyInterval energy(sensors);
  EXPECT_FALSE(energy.joules());
  zone("intel-rapl:0", "package-0", "950000", "1000000");
  EXPECT_NEAR(energy.joules().value_or(0), 0.05, 1e-9);
  zone("intel-rapl:0", "package-0", "100000", "1000000");
  EXPECT_NEAR(energy.joules().value_or(0), 0.2, 1e-9);
  std::filesystem::remove(root / "intel-rapl:0" / "energy_uj");
  EXPECT_FALSE(energy.joules());
}

TEST_F(Rapl, WhatCannotBeReadIsNoSensor) {
  EXPECT_TRUE(rapl_sensors(root).empty());  // no such folder
  zone("intel-rapl:0", "package-0", "", "1000000");
  zone("intel-rapl:1", "package-1", "none", "1000000");
  EXPECT_TRUE(rapl_sensors(root).empty());
}

TEST(Sensors, NoNvmlLibraryMeansNoSensor) { EXPECT_TRUE(nvml_sensors("libnot-there.so.1").empty()); }

TEST(Sensors, ALibraryThatIsNotNvmlMeansNoSensor) { EXPECT_TRUE(nvml_sensors("libm.so.6").empty()); }

TEST(Sensors, EveryListedOneHasANameAndCanBeRead) {
  const auto names = energy_sensors();
  ASSERT_EQ(names.size(), machine_sensors().size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_TRUE(names[i].starts_with("NVML ") || names[i].starts_with("RAPL ")) << names[i];
    EXPECT_TRUE(machine_sensors()[i].read()) << names[i];
  }
}

TEST(Sensors, MeasuredJoulesArePositiveOrNothing) {
  volatile double sink = 0;
  const Contender work{.run = [&] { for (int i = 0; i < 100000; ++i) sink = sink + i; }};
  const auto result = trifactor::measure(work, {.min_runs = 1, .max_runs = 1, .energy_seconds = 0.01});
  EXPECT_GT(result.joules.value_or(1), 0);
  EXPECT_TRUE(!result.joules || !energy_sensors().empty());
}

}  // namespace
}  // namespace trifactor::meter
