// Plans of sparse factorizations, and what their bindings share with those of the factors.
#pragma once

#include "dense.hpp"

#include <trifactor/sparse.hpp>
#include <trifactor/sparse_lu.hpp>

#include <cstring>

namespace trifactor::python {

using Plan = std::shared_ptr<const SparsePlan>;
using LuPlan = std::shared_ptr<const SparseLuPlan>;
struct PlanObject {
  Plan plan;
};
struct LuPlanObject {
  LuPlan plan;
};

/// A new one-dimensional array of NumPy's.
template <class E>
nb::object vector_of(const std::vector<E>& values, const char* dtype) {
  nb::object made = nb::module_::import_("numpy").attr("empty")(values.size(), dtype);
  Py_buffer view;
  if (PyObject_GetBuffer(made.ptr(), &view, PyBUF_WRITABLE)) throw nb::python_error();
  std::memcpy(view.buf, values.data(), values.size() * sizeof(E));
  PyBuffer_Release(&view);
  return made;
}

/// The value that goes by a name, or a ValueError that lists the names.
template <class E>
E chosen(const char* what, const std::string& name, std::initializer_list<std::pair<const char*, E>> all) {
  std::string rule;
  for (auto& [known, value] : all) {
    if (name == known) return value;
    rule += std::string(rule.empty() ? "'" : ", '") + known + "'";
  }
  raise_value_error(std::string(what) + " = '" + name + "' must be one of " + rule);
}

void bind_plans(nb::module_&);

}  // namespace trifactor::python
