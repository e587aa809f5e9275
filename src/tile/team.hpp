// Team: the threads that work on one small matrix together.
#pragma once

#include <core/batch.hpp>

#include <concepts>

namespace trifactor::tile {

/// rank() is 0 .. size()-1; sync() returns when every rank has called it, and makes their writes visible.
template <class G>
concept Team = requires(const G& team) {
  { team.rank() } -> std::convertible_to<int>;
  { team.size() } -> std::convertible_to<int>;
  team.sync();
};

/// One thread: the host, and the reference for every other team.
struct SerialTeam {
  TF_HD int rank() const { return 0; }
  TF_HD int size() const { return 1; }
  TF_HD void sync() const {}
};

}  // namespace trifactor::tile
