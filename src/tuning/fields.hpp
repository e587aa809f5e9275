// The names by which rows and callers set the members of the tuning structs.
#pragma once

#include <core/tuning.hpp>

#include <limits>
#include <span>
#include <string>
#include <string_view>

namespace trifactor::tuning {

/// What trifactor tune tries for a field on one backend.
struct Candidates {
  enum class Calls { Any, One, Many };         // of one matrix; of batches

  std::span<const index_t> values = {};        // ascending; empty: the field is not searched
  Calls calls = Calls::Any;
  index_t min_order = 0, max_order = std::numeric_limits<index_t>::max();   // of calls that the field can matter for

  bool matter(index_t n, index_t count) const {
    return !values.empty() && min_order <= n && n <= max_order &&
           (calls == Calls::Any || (calls == Calls::One) == (count == 1));
  }
};

/// A member of a tuning struct.
struct Field {
  std::string_view name;
  index_t min_value, max_value;                // the numbers it takes
  std::span<const std::string_view> words;     // an enum's values by name, in its order; empty for a number
  void (*set)(void* tuning, index_t value);    // tuning points to the struct that the field belongs to
  index_t (*get)(const void* tuning);
  Candidates host, cuda;

  /// "nb=128", "looking=left"
  std::string text(index_t value) const;
};

/// What a row is for: one tuning struct.
struct Operation {
  std::string_view name;
  std::span<const Field> fields;
};

template <class Tuning> const Operation& operation_of();
template <> const Operation& operation_of<core::CholeskyTuning>();
template <> const Operation& operation_of<core::LuTuning>();
template <> const Operation& operation_of<core::SolveTuning>();
template <> const Operation& operation_of<core::ValueTuning>();
template <> const Operation& operation_of<core::SparseTuning>();

std::span<const Operation> operations();

}  // namespace trifactor::tuning
