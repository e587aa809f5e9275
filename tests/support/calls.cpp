// Calls from host data to host results.
#define TRIFACTOR_TEST_CALLS template
#include <support/batches.hpp>
