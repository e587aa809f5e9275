// The search of tuning fields for one kind of call, over a function that measures one run.
#pragma once

#include <tuning/fields.hpp>

#include <functional>
#include <vector>

namespace trifactor::tuning {

/// A coordinate of the search: a field, and the values that are tried for it beside the one it starts from.
struct Coordinate {
  const Field* field;
  std::span<const index_t> values;  // ascending
};

/// The fields of an operation that can matter for calls of order n and count items on a backend, in their order.
std::vector<Coordinate> coordinates_of(const Operation&, bool cuda, index_t n, index_t count);

/// What the search came to.
struct Found {
  std::vector<index_t> values;     // of the coordinates
  double before = 0, seconds = 0;  // medians, of the start and of these values, measured in turn
  double spread = 0;               // (third quartile - first quartile) / median, the larger of both
  int candidates = 0, runs = 0;    // that were measured

  /// Whether the values differ from the start and are faster by more than the spread and by 1 % at least.
  bool gains() const;
};

/// Seconds of one run with these values of the coordinates.
using Measure = std::function<double(const std::vector<index_t>&)>;

/// First all coordinates at once, in their middle and at their end, then one by one, until none improves. A candidate
/// is dropped as soon as its runs are slower than the best; one that is 4 times faster or slower needs a single
/// run, 1.5 times two, others up to five, in turn with the best. A field whose lowest and highest value are both as
/// fast as the best does not matter here, and its other values are not tried. At the end, start and result are measured
/// in turn. stop() is asked before every run: once it says so, what was found is measured with three runs each, and the
/// search ends. Exceptions of measure are passed on, but a candidate whose first run throws InvalidArgument or
/// OutOfMemory is only dropped.
Found search(std::span<const Coordinate>, const std::vector<index_t>& start, const Measure&,
             const std::function<bool()>& stop);

}  // namespace trifactor::tuning
