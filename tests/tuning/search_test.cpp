// The search of trifactor tune, on timers that are made up.
#include <trifactor/error.hpp>
#include <tuning/parse.hpp>
#include <tuning/search.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

namespace trifactor::tuning {
namespace {

using Values = std::vector<index_t>;

// whole, nb and leaf of LU, whatever they would do.
const auto coordinates = coordinates_of(operation_of<core::LuTuning>(), false, 1000, 1);
const Values bad = {0, 4, 2}, planted = {0, 256, 32}, all_in_the_middle = {2147483647, 256, 256};

/// Seconds that grow with the distance from the planted optimum; without `whole` a fifth of that with it.
double planted_seconds(const Values& v) {
  const auto octaves = [](index_t a, index_t b) { return std::abs(std::log2(double(a)) - std::log2(double(b))); };
  return (v[0] > 0 ? 5 : 1) * (1 + 0.2 * octaves(v[1], planted[1]) + 0.1 * octaves(v[2], planted[2]));
}

bool never() { return false; }

TEST(TuningSearch, FindsAPlantedOptimumFromBadValues) {
  for (const Values& start : {bad, Values{2147483647, 4, 2}, Values{0, 2048, 2048}, planted}) {
    const Found found = search(coordinates, start, planted_seconds, never);
    EXPECT_EQ(found.values, planted);
    EXPECT_DOUBLE_EQ(found.seconds, planted_seconds(planted));
    EXPECT_DOUBLE_EQ(found.before, planted_seconds(start));
    EXPECT_EQ(found.gains(), start != planted);
  }
}

TEST(TuningSearch, FindsItWithNoiseAndOutliersToo) {
  int exact = 0, near = 0, gains = 0;
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> noise(0, 0.02);
    const auto measure = [&](const Values& v) {
      return planted_seconds(v) * (1 + std::abs(noise(random))) * (random() % 20 == 0 ? 3 : 1);
    };
    const Found found = search(coordinates, bad, measure, never);
    exact += found.values == planted;
    near += planted_seconds(found.values) < 1.25 * planted_seconds(planted);
    gains += found.gains();
  }
  EXPECT_GE(exact, 40);
  EXPECT_GE(near, 48);
  EXPECT_GE(gains, 48);
}

TEST(TuningSearch, NoiseAloneGainsNothing) {
  int gains = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> noise(0, 0.05);
    gains += search(
                 coordinates, {2147483647, 128, 16}, [&](const Values&) { return 1 + noise(random); }, never)
                 .gains();
  }
  EXPECT_LE(gains, 2);
}

TEST(TuningSearch, AGainBelowTheSpreadOrBelowOnePercentIsNone) {
  EXPECT_FALSE((Found{.values = {}, .before = 1.1, .seconds = 1, .spread = 0.11}.gains()));
  EXPECT_TRUE((Found{.values = {}, .before = 1.1, .seconds = 1, .spread = 0.09}.gains()));
  EXPECT_FALSE((Found{.values = {}, .before = 1.009, .seconds = 1, .spread = 0}.gains()));
  const auto slightly = [](const Values& v) { return v[1] == 256 ? 0.995 : 1; };
  EXPECT_FALSE(search(coordinates, bad, slightly, never).gains());
}

TEST(TuningSearch, WhatIsFarSlowerRunsOnceAndWhatDoesNotMatterIsNotTriedAtAll) {
  std::map<Values, int> runs;
  const auto measure = [&](const Values& v) {
    ++runs[v];
    return v[1] == 16 ? 5.0 : v[1] == 64 ? 0.9 : 1.0;  // leaf and whole change nothing
  };
  const Found found = search(coordinates, {0, 128, 16}, measure, never);
  EXPECT_EQ(found.values, (Values{0, 64, 16}));
  EXPECT_EQ(runs.at({0, 16, 16}), 1);
  for (const auto& [values, count] : runs) {
    EXPECT_TRUE(values[2] == 16 || values[2] == 2048 || values == all_in_the_middle) << values[2];
    EXPECT_LE(count, 5 + 9);
  }
  EXPECT_EQ(found.candidates, int(runs.size()) - 1);
}

TEST(TuningSearch, EndsWhenItIsToldToAndKeepsWhatItFound) {
  for (const double budget : {0.0, 3.0, 20.0, 60.0, 1000.0}) {
    double clock = 0, longest = 0;
    const auto measure = [&](const Values& v) {
      const double seconds = planted_seconds(v);
      clock += seconds, longest = std::max(longest, seconds);
      return seconds;
    };
    const Found found = search(coordinates, bad, measure, [&] { return clock >= budget; });
    EXPECT_LE(clock, budget + 7 * longest) << budget;  // the run that is under way, and three of each to confirm
    EXPECT_LE(planted_seconds(found.values), planted_seconds(bad));
    EXPECT_EQ(found.gains(), found.values != bad);
    if (budget == 0) { EXPECT_EQ(found.values, bad); }
    if (budget == 1000) { EXPECT_EQ(found.values, planted); }
  }
}

TEST(TuningSearch, ACandidateThatCannotRunIsDroppedAndAStartThatCannotIsPassedOn) {
  const auto measure = [](const Values& v) {
    if (v[1] > 64) throw OutOfMemory("no", 1);
    if (v[2] == 16) throw InvalidArgument("no");
    return planted_seconds(v);
  };
  EXPECT_EQ(search(coordinates, bad, measure, never).values, (Values{0, 64, 32}));
  EXPECT_THROW(search(coordinates, {0, 128, 2}, measure, never), OutOfMemory);
}

TEST(TuningSearch, FindsFieldsThatCountOnlyTogetherAndLeavesTheOthers) {
  const auto both = [](const Values& v) { return v[0] > 0 && v[1] >= 64 ? 1.0 : 2.0; };  // leaf changes nothing
  EXPECT_EQ(search(coordinates, bad, both, never).values, (Values{2147483647, 256, 2}));
}

TEST(TuningSearch, WithoutCoordinatesThereIsNothingToGain) {
  EXPECT_FALSE(search(
                   {}, {}, [](const Values&) { return 1.0; }, never)
                   .gains());
}

std::string names_of(const std::vector<Coordinate>& list) {
  std::string names;
  for (const Coordinate& c : list) names += std::string(c.field->name) + ' ';
  return names;
}

TEST(TuningSearch, LooksAtTheFieldsThatMatterForACall) {
  const Operation& cholesky = operation_of<core::CholeskyTuning>();
  EXPECT_EQ(names_of(coordinates_of(cholesky, true, 8, 1000)), "whole small fused persistent ");
  EXPECT_EQ(names_of(coordinates_of(cholesky, true, 8192, 1)), "persistent macro_tiles band nb leaf tile ib looking ");
  EXPECT_EQ(names_of(coordinates_of(cholesky, false, 8, 1000)), "whole fused interleaved ");
  EXPECT_EQ(names_of(coordinates_of(operation_of<core::ValueTuning>(), false, 8, 1)), "");
}

TEST(TuningFields, CandidatesAscendWithinTheRange) {
  for (const Operation& operation : operations())
    for (const Field& field : operation.fields)
      for (const Candidates& candidates : {field.host, field.cuda}) {
        SCOPED_TRACE(field.name);
        const auto values = candidates.values;
        EXPECT_NE(values.size(), 1u);
        EXPECT_EQ(std::adjacent_find(values.begin(), values.end(), std::greater_equal<>()), values.end());
        for (const index_t value : values) {
          EXPECT_GE(value, field.min_value);
          EXPECT_LE(value, field.max_value);
          EXPECT_EQ(parse_setting(operation, field.text(value), "").value, value);
        }
      }
}

}  // namespace
}  // namespace trifactor::tuning
