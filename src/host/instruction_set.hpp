// The widest instruction set that was compiled and that this CPU has, for files that cmake/instruction_sets.cmake
// compiles once for each.
#pragma once

namespace trifactor::host {

enum class InstructionSet { Baseline, Avx2, Avx512 };

inline InstructionSet widest_instruction_set() {
#ifdef TRIFACTOR_HAS_AVX512
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return InstructionSet::Avx512;
#endif
#ifdef TRIFACTOR_HAS_AVX2
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return InstructionSet::Avx2;
#endif
  return InstructionSet::Baseline;
}

/// As rows of tuning/*.txt name it.
inline const char* instruction_set_name() {
  switch (widest_instruction_set()) {
    case InstructionSet::Avx512: return "avx512";
    case InstructionSet::Avx2: return "avx2";
    default: return "baseline";
  }
}

}  // namespace trifactor::host
