// trifactor.solve, trifactor.inv and trifactor.slogdet.
#pragma once

#include <nanobind/nanobind.h>

namespace trifactor::python {

void bind_solve(nanobind::module_&);

}  // namespace trifactor::python
