#include <tuning/search.hpp>

#include <trifactor/error.hpp>

#include <algorithm>
#include <cmath>
#include <map>

namespace trifactor::tuning {

namespace {

constexpr int most_runs = 5, final_runs = 9, stopped_runs = 3, max_sweeps = 4;
constexpr int alike_runs = 3;                    // of two candidates that are within 1 % of each other
constexpr double least_gain = 0.01;              // below, a row is not worth having
constexpr double far_once = 4, far_twice = 1.5;  // so many times slower shows in one run, or in two of both

/// The runs of one candidate.
struct Runs {
  std::vector<double> seconds;

  double quantile(double part) const {
    std::vector<double> sorted = seconds;
    std::sort(sorted.begin(), sorted.end());
    const double at = part * double(sorted.size() - 1);
    const auto below = std::size_t(at), above = std::min(below + 1, sorted.size() - 1);
    return std::lerp(sorted[below], sorted[above], at - double(below));
  }
  double fastest() const { return quantile(0); }
  double median() const { return quantile(0.5); }
  double slowest() const { return quantile(1); }
  double spread() const { return (quantile(0.75) - quantile(0.25)) / median(); }
  int count() const { return int(seconds.size()); }
};

using Values = std::vector<index_t>;

class Searcher {
 public:
  Searcher(std::span<const Coordinate> coordinates, const Values& start, const Measure& measure,
           const std::function<bool()>& stop)
      : coordinates_(coordinates), start_(start), measure_(measure), stop_(stop), best_(start) {}

  Found run() {
    add_run(start_);
    // Fields that only count together, such as two crossovers, are found by setting all of them at once.
    if (coordinates_.size() > 1) {
      take(all_with([](std::span<const index_t> values) { return values[values.size() / 2]; }));
      take(all_with([](std::span<const index_t> values) { return values.back(); }));
    }
    bool improved = true;
    for (int sweep = 0; sweep < max_sweeps && improved; ++sweep) {
      improved = false;
      for (std::size_t i = 0; i < coordinates_.size() && !stop_(); ++i) improved = search_along(i) || improved;
    }
    if (best_ != start_) return_what_costs_nothing();
    return confirm();
  }

 private:
  template <class Choose>
  Values all_with(Choose choose) const {
    Values values;
    for (const Coordinate& c : coordinates_) values.push_back(choose(c.values));
    return values;
  }

  void add_run(const Values& values) {
    ++found_.runs;
    known_[values].seconds.push_back(measure_(values));
  }

  /// Whether a candidate runs: it becomes part of what is known.
  bool try_first_run(const Values& values) {
    ++found_.candidates;
    try {
      add_run(values);
      return true;
    } catch (const InvalidArgument&) {
    } catch (const OutOfMemory&) {}
    known_[values].seconds = {std::numeric_limits<double>::infinity()};
    return false;
  }

  /// By so much two measurements of the same may differ.
  double noise() {
    const Runs& runs = known_[best_];  // outliers are slow, and the fastest run is none
    return std::max(least_gain, std::min(runs.spread(), 1 - runs.fastest() / runs.median()));
  }

  static bool is_far_below(const Runs& a, const Runs& b) {
    const bool twice = a.count() > 1 && b.count() > 1;
    return a.slowest() * (twice ? far_twice : far_once) < b.fastest();
  }

  /// Whether a candidate is faster than the best. Both are run, in turn, until that is clear.
  bool beats_best(const Values& values) {
    if (values == best_ || stop_()) return false;
    if (!known_.count(values) && !try_first_run(values)) return false;
    while (true) {
      const Runs &candidate = known_[values], &best = known_[best_];
      if (is_far_below(candidate, best)) return true;
      if (candidate.fastest() > far_once * best.median()) return false;
      const bool twice = candidate.count() > 1 && best.count() > 1;
      if (twice && candidate.fastest() > best.median() * (1 + noise())) return false;
      if (candidate.count() >= most_runs && best.count() >= most_runs)
        return candidate.median() < best.median() * (1 - noise());
      if (std::min(candidate.count(), best.count()) >= alike_runs &&
          std::abs(candidate.median() / best.median() - 1) < least_gain)
        return false;
      if (stop_()) return false;
      add_run(candidate.count() <= best.count() ? values : best_);
    }
  }

  bool take(const Values& values) {
    const bool better = beats_best(values);
    if (better) best_ = values;
    return better;
  }

  bool is_as_fast(const Values& values) {
    return known_.count(values) && std::abs(known_[values].median() / known_[best_].median() - 1) <= noise();
  }

  Values best_with(std::size_t i, index_t value) const {
    Values values = best_;
    values[i] = value;
    return values;
  }

  /// Tries the values of one coordinate, from the ends inwards. Returns whether one is better than the best so far.
  bool search_along(std::size_t i) {
    const auto tried = coordinates_[i].values;
    const Values low = best_with(i, tried.front()), high = best_with(i, tried.back());
    const bool low_better = take(low), high_better = take(high);
    bool improved = low_better || high_better;
    if (!improved && is_as_fast(low) && is_as_fast(high)) return false;
    for (std::size_t k = 1; k + 1 < tried.size(); ++k) improved = take(best_with(i, tried[k])) || improved;
    return improved;
  }

  /// Fields that were changed together with others and do not matter have their value of the start again.
  void return_what_costs_nothing() {
    for (std::size_t i = 0; i < coordinates_.size() && !stop_(); ++i) {
      const Values values = best_with(i, start_[i]);
      if (values == best_ || take(values)) continue;
      const auto known = known_.find(values);
      if (known != known_.end() && known->second.count() >= alike_runs &&
          known->second.median() < known_[best_].median() * (1 + least_gain))
        best_ = values;
    }
  }

  /// The start against the best, in turn; what is far apart is known already.
  Found confirm() {
    found_.values = best_;
    Runs before, after;
    if (best_ == start_ || is_far_below(known_[best_], known_[start_])) {
      before = known_[start_], after = known_[best_];
      while (best_ != start_ && after.count() < most_runs && (after.count() < stopped_runs || !stop_()))
        add_run(best_), after = known_[best_];
    } else {
      for (int i = 0; i < final_runs && (i < stopped_runs || !stop_()); ++i) {
        before.seconds.push_back(measure_(start_)), after.seconds.push_back(measure_(best_));
        found_.runs += 2;
      }
    }
    found_.before = before.median(), found_.seconds = after.median();
    found_.spread = std::max(before.spread(), after.spread());
    return found_;
  }

  std::span<const Coordinate> coordinates_;
  const Values start_;
  const Measure& measure_;
  const std::function<bool()>& stop_;
  Values best_;
  std::map<Values, Runs> known_;
  Found found_;
};

}  // namespace

std::vector<Coordinate> coordinates_of(const Operation& operation, bool cuda, index_t n, index_t count) {
  std::vector<Coordinate> coordinates;
  for (const Field& field : operation.fields) {
    const Candidates& candidates = cuda ? field.cuda : field.host;
    if (candidates.matter(n, count)) coordinates.push_back({&field, candidates.values});
  }
  return coordinates;
}

bool Found::gains() const { return before / seconds - 1 > std::max(spread, least_gain); }

Found search(std::span<const Coordinate> coordinates, const std::vector<index_t>& start, const Measure& measure,
             const std::function<bool()>& stop) {
  return Searcher(coordinates, start, measure, stop).run();
}

}  // namespace trifactor::tuning
