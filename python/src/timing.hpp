// Seconds of calls in C++.
#pragma once

#include <nanobind/nanobind.h>

namespace trifactor::python {

void bind_timing(nanobind::module_&);

}  // namespace trifactor::python
