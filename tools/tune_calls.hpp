// The calls that trifactor tune measures: one kind of call for each row that it may write.
#pragma once

#include "scalars.hpp"

#include <trifactor/queue.hpp>

#include <functional>
#include <string>
#include <vector>

namespace program {

using trifactor::index_t;
using trifactor::Scalar;

/// Calls that a row is for.
struct CallClass {
  std::string op, operation;  // of --ops; of the row
  index_t n = 0, count = 1;   // what stands for the class
  std::string conditions;     // of the row: "count=1 n>724 n<=1448"
};

/// The classes of an operation of --ops, small orders first. sizes: orders in place of those of the operation.
std::vector<CallClass> call_classes(const std::string& op, bool cuda, const std::vector<index_t>& sizes);

/// Makes the matrices of a class. The result is the seconds of one run with a tuning: the geometric mean of all calls
/// of the class. Throws OutOfMemory where they do not fit.
template <Scalar T>
std::function<double(const std::string& tuning)> timed_calls(trifactor::Queue&, const CallClass&);

}  // namespace program
