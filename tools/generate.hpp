// Sparse positive definite matrices that anyone can rebuild from a few characters, such as "elastic3d:30".
#pragma once

#include "sparse_matrix.hpp"

#include <cstdint>
#include <string>

namespace program {

/// For the help: every family with its parameters and what it is, a line each.
std::string generated_families();

/// Whether a word means a generated matrix, "family:...", with a family that there is, rather than a file.
bool is_generated(const std::string& word);

/// The generated matrix that a word with a misspelt family most likely means, "poisson3d:12" for "poison3d:12"; empty
/// where no family is near.
std::string closest_generated(const std::string& word);

/// The matrix that `word` names; the same for the same seed. Throws InputError when there is no such family or its
/// parameters are out of range, and OutOfMemory when the host has no room for it.
SparseMatrix<double> generate(const std::string& word, std::uint64_t seed = 0);

}  // namespace program
