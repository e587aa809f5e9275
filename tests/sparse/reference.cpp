// What tests make sparse matrices with and judge results by.
#include <support/matrices.hpp>
#undef TRIFACTOR_TEST_REFERENCE
#define TRIFACTOR_TEST_REFERENCE template
#include <sparse/matrices.hpp>
