// What tests make matrices with and judge results by.
#define TRIFACTOR_TEST_REFERENCE template
#include <support/matrices.hpp>
#include <support/ratios.hpp>
