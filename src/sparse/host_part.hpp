// CPU and GPU together: which fronts the CPU factors while the GPU factors the others.
#pragma once

#include <core/tuning.hpp>
#include <sparse/plan.hpp>

namespace trifactor::sparse {

/// What the CPU is: its threads, and how fast each of them is.
struct HostSpeed {
  int threads;
  core::SparseTuning tuning;
};

/// The last subtrees of the plan that the CPU factors in less time than the GPU takes for all fronts before them; then
/// the GPU, which has come to the end of these, goes on with the fronts above. `gpu` is its tuning; host_percent of
/// that, unless 0, is the part in percent instead. Small subtrees, whose fronts are marked in `in_subtree` unless it is
/// empty, are not cut. Empty where nothing is gained.
Branch choose_host_part(const Plan&, const std::vector<char>& in_subtree, const core::SparseTuning& gpu,
                        const HostSpeed&);

/// The plan of these fronts alone, whole subtrees. Front s there is front part.begin + s; columns, rows and values are
/// numbered as they are. Their roots have rows below, so that their update matrices are left over.
Plan plan_of_part(const Plan&, const Branch& part);

}  // namespace trifactor::sparse
