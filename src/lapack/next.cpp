#include <lapack/next.hpp>
#include <lapack/worker.hpp>

#include <dlfcn.h>
#include <link.h>

#include <cstring>
#include <new>

namespace trifactor::lapack {

namespace {

const void* library_of(const void* address) {
  Dl_info info;
  return dladdr(address, &info) ? info.dli_fbase : nullptr;
}
bool is_ours(const void* function) {
  static const void* const us = library_of(reinterpret_cast<const void*>(&is_ours));
  return library_of(function) == us;
}

/// The function in the caller's library, or in what that depends on. The handle is kept, so that it stays there.
void* in_scope_of(const void* caller, const char* name) {
  Dl_info info;
  link_map* map = nullptr;
  if (!dladdr1(caller, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) || !map || !*map->l_name) return nullptr;
  void* library = dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);
  void* function = library ? dlsym(library, name) : nullptr;
  return function && !is_ours(function) ? function : nullptr;
}

/// "dpotrf_" of "scipy_dpotrf_"; null for names with 64-bit integers, which libtrifactor's LAPACK does not have.
const char* plain_name(const char* name) {
  if (std::strstr(name, "64_")) return nullptr;
  return std::strncmp(name, "scipy_", 6) == 0 ? name + 6 : name;
}

void* resolve(const void* caller, const char* name) {
  if (void* function = in_scope_of(caller, name)) return function;
  if (void* function = dlsym(RTLD_NEXT, name); function && !is_ours(function)) return function;
  const char* plain = plain_name(name);
  return plain ? in_scope_of(address_in_trifactor(), plain) : nullptr;
}

}  // namespace

void* Next::of(const void* caller) {
  for (const Found* f = found_.load(std::memory_order_acquire); f; f = f->rest)
    if (f->caller == caller) return f->function;
  void* const function = resolve(caller, name_);
  if (auto* f = new (std::nothrow) Found{caller, function, found_.load()})
    while (!found_.compare_exchange_weak(f->rest, f, std::memory_order_release)) {}
  return function;
}

}  // namespace trifactor::lapack
