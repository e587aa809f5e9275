#include "cholesky.hpp"
#include "docs.hpp"
#include "lu.hpp"
#include "queues.hpp"
#include "signals.hpp"
#include "solve.hpp"
#include "sparse.hpp"
#include "timing.hpp"

#include <trifactor/info.hpp>
#include <trifactor/measure.hpp>

namespace trifactor::python {

namespace {

/// The classes of trifactor/_errors.py, and Python's own.
void raise(const char* type, const char* text) {
  nb::object error = nb::module_::import_("trifactor._errors").attr(type);
  PyErr_SetString(error.ptr(), text);
}

void translate(const std::exception_ptr& p, void*) {
  try {
    std::rethrow_exception(p);
  } catch (const InvalidArgument& e) { PyErr_SetString(PyExc_ValueError, e.what()); } catch (const OutOfMemory& e) {
    raise("OutOfMemory", e.what());
  } catch (const DeviceFault& e) { raise("DeviceFault", e.what()); } catch (const NotPositiveDefinite& e) {
    nb::object type = nb::module_::import_("trifactor._errors").attr("NotPositiveDefinite");
    PyErr_SetObject(type.ptr(), type(e.order(), nb::none(), true).ptr());
  } catch (const Singular& e) {
    nb::object type = nb::module_::import_("trifactor._errors").attr("Singular");
    PyErr_SetObject(type.ptr(), type(e.row(), nb::none(), true).ptr());
  } catch (const Error& e) { PyErr_SetString(PyExc_RuntimeError, e.what()); }
}

nb::dict info() {
  nb::dict all;
  nb::list found;
  for (const DeviceInfo& d : devices()) {
    nb::dict one;
    one["name"] = d.name.c_str(), one["architecture"] = d.architecture.c_str(), one["number"] = d.number;
    one["cores"] = d.cores, one["memory_bytes"] = d.memory_bytes, one["free_bytes"] = d.free_bytes;
    found.append(one);
  }
  nb::list sensors;
  for (const std::string& s : energy_sensors()) sensors.append(s.c_str());
  all["version"] = version(), all["devices"] = found, all["blas"] = blas().c_str();
  all["why_no_cuda"] = why_no_cuda().c_str(), all["energy_sensors"] = sensors;
  all["tuning_rows"] = tuning_rows().size();
  return all;
}

}  // namespace

}  // namespace trifactor::python

NB_MODULE(_core, m) {
  using namespace trifactor::python;
  nb::set_leak_warnings(false);  // factors may live until the interpreter ends
  prepare_arrays();
  set_main_thread(nb::cast<unsigned long>(nb::module_::import_("threading").attr("main_thread")().attr("ident")));
  m.doc() = "The extension behind trifactor.";
  m.attr("Array") = nb::module_::import_("typing").attr("TypeVar")("Array");
  nb::register_exception_translator(translate);
  bind_cholesky(m);
  bind_lu(m);
  bind_solve(m);
  bind_sparse(m);
  bind_timing(m);
  m.def("info", &info, nb::sig("def info() -> dict[str, typing.Any]"), docs::info);
  m.def("release_queues", &release_queues, docs::release_queues);
  m.def("leave_parents_queues", &leave_parents_queues, "To be called in the child of a fork.");
  m.def(
      "own_stream", [](int device) { return reinterpret_cast<std::uintptr_t>(own_queue(device).stream()); },
      nb::arg("device"), "The address of the stream that this thread's work for arrays without streams goes to.");
  m.attr("__version__") = trifactor::version();
}
