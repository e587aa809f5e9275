// The analysis, step by step.
#pragma once

#include <core/tuning.hpp>
#include <sparse/plan.hpp>
#include <trifactor/sparse.hpp>

namespace trifactor::sparse {

struct Analysis {
  Plan plan;
  Ordering ordering = Ordering::Natural;  // the one that was used
  std::string note;
  std::vector<SparsePlan::Step> steps;
};

/// threads: that a factorization on the host is expected to have.
template <SparseIndex I>
Analysis analyze(const Pattern<I>&, const AnalyzeOptions&, const core::SparseTuning&, int threads);

}  // namespace trifactor::sparse
