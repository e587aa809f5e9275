// The names by which rows and callers set the members of the tuning structs.
#pragma once

#include <core/tuning.hpp>

#include <span>
#include <string_view>

namespace trifactor::tuning {

/// A member of a tuning struct.
struct Field {
  std::string_view name;
  index_t min_value, max_value;                         // the numbers it takes
  std::span<const std::string_view> words;     // an enum's values by name, in its order; empty for a number
  void (*set)(void* tuning, index_t value);    // tuning points to the struct that the field belongs to
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
