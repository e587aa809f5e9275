// One job of every routine.
#define TRIFACTOR_TEST_JOBS template
#include <support/jobs.hpp>
