// The sparse classes of the extension; trifactor/sparse.py stands in front of them.
#pragma once

#include <nanobind/nanobind.h>

namespace trifactor::python {

void bind_sparse(nanobind::module_&);
/// A part of it.
void bind_sparse_batch(nanobind::module_&);

}  // namespace trifactor::python
