#include <lapack/settings.hpp>
#include <lapack/worker.hpp>

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

namespace trifactor::lapack {

namespace {

#define TRIFACTOR_FUNCTIONS(X)                                                                             \
  X(queue_host)                                                                                            \
  X(queue_cuda)                                                                                            \
  X(queue_sync)                                                                                            \
  X(allocate)                                                                                              \
  X(free) X(copy_columns) X(last_message) X(matrix) X(cholesky) X(cholesky_factor_solve) X(cholesky_solve) \
      X(cholesky_inverse) X(lu) X(lu_factor_solve) X(lu_solve) X(lu_inverse)

/// The C functions of libtrifactor.
struct Api {
#define TRIFACTOR_DECLARE(name) decltype(&trifactor_##name) name = nullptr;
  TRIFACTOR_FUNCTIONS(TRIFACTOR_DECLARE)
#undef TRIFACTOR_DECLARE
};

bool load(Api& api) {
  // DEEPBIND: libtrifactor's BLAS and LAPACK are those it was linked with, never this library's functions. Sanitizers
  // refuse it.
  const int deep = dlsym(RTLD_DEFAULT, "__asan_init") ? 0 : RTLD_DEEPBIND;
  void* library = dlopen(TRIFACTOR_LIBRARY, RTLD_NOW | RTLD_LOCAL | deep);
  if (!library) return say("calls are passed on: %s", dlerror()), false;
#define TRIFACTOR_LOAD(name)                                                           \
  api.name = reinterpret_cast<decltype(api.name)>(dlsym(library, "trifactor_" #name)); \
  if (!api.name) return say("calls are passed on: %s has no trifactor_" #name, TRIFACTOR_LIBRARY), false;
  TRIFACTOR_FUNCTIONS(TRIFACTOR_LOAD)
#undef TRIFACTOR_LOAD
  return true;
}
#undef TRIFACTOR_FUNCTIONS

Api functions;
const Api* api() {
  static const bool loaded = load(functions);
  return loaded ? &functions : nullptr;
}

/// Workers that no call uses, whether there has been one, and whether there can be any. They are never destroyed: at
/// exit the driver may be gone.
std::mutex mutex;
Worker* idle = nullptr;
bool was_made = false;
std::atomic<bool> can_work{true};

std::size_t size_of(trifactor_scalar scalar) {
  constexpr std::size_t sizes[] = {4, 8, 8, 16};
  return sizes[scalar];
}
/// Columns begin at multiples of 16 entries, as kernels like them.
std::int64_t device_ld(const HostMatrix& A) { return std::max<std::int64_t>((A.rows + 15) / 16 * 16, 16); }

/// How many columns are copied at a time. Of a triangle, the diagonal block of each chunk is copied as a whole.
std::int64_t chunk_of(const HostMatrix& A, Part part) {
  constexpr std::int64_t columns_of_triangle = 512;
  if (settings().chunk > 0) return settings().chunk;
  return part == Part::Whole ? A.cols : columns_of_triangle;
}

/// Begin and end of the rows outside of the diagonal block that columns begin .. end-1 have in a part; for Whole all
/// rows.
struct Rows {
  std::int64_t begin, end;
};
Rows rows_of(const HostMatrix& A, Part part, std::int64_t begin, std::int64_t end) {
  if (part == Part::Lower) return {end, A.rows};
  if (part == Part::Upper) return {0, begin};
  return {0, A.rows};
}

char* entry(void* data, std::int64_t ld, std::size_t size, std::int64_t i, std::int64_t j) {
  return static_cast<char*>(data) + std::size_t(i + j * ld) * size;
}

}  // namespace

const void* address_in_trifactor() {
  const Api* a = api();
  return a ? reinterpret_cast<const void*>(a->matrix) : nullptr;
}

Worker* Worker::take() {
  const Settings& s = settings();
  if (s.where == Where::Off || !can_work || in_forked_child()) return nullptr;
  const std::lock_guard lock(mutex);
  if (Worker* worker = idle) {
    idle = worker->rest_;
    return worker;
  }
  const bool cuda = s.where != Where::Host;
  const auto none = [&](const char* why) -> Worker* {
    if (s.where == Where::Cuda || s.verbose) say("calls are passed on: %s", why);
    can_work = false;
    return nullptr;
  };
  if (cuda && !dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL)) return none("no NVIDIA driver was found (libcuda.so.1)");
  if (!api()) return can_work = false, nullptr;
  trifactor_queue* queue = nullptr;
  const trifactor_status status = cuda ? api()->queue_cuda(0, &queue) : api()->queue_host(0, &queue);
  if (status != TRIFACTOR_OK && was_made && status != TRIFACTOR_DEVICE_FAULT)
    return nullptr;  // those that are there go on
  if (status != TRIFACTOR_OK) return none(api()->last_message());
  Worker* const worker = new (std::nothrow) Worker(queue, cuda);
  was_made = was_made || worker;
  return worker;
}

void Worker::give_back(Worker* worker) {
  constexpr std::size_t kept_bytes = std::size_t(256) << 20;  // allocating more costs little beside the work on it
  for (Memory& m : worker->memory_)
    if (m.bytes > kept_bytes) api()->free(worker->queue_, m.data), m = {};
  const std::lock_guard lock(mutex);
  worker->rest_ = idle, idle = worker;
}

bool Worker::works(trifactor_status status) {
  if (status == TRIFACTOR_OK) return true;
  if (settings().verbose) say("a call is passed on: %s", api()->last_message());
  if (status == TRIFACTOR_DEVICE_FAULT) can_work = false;
  return false;
}

bool Worker::make_room(Slot slot, std::size_t bytes) {
  Memory& m = memory_[slot];
  if (m.bytes >= bytes) return true;
  api()->free(queue_, m.data), m = {};
  if (!works(api()->allocate(queue_, bytes, &m.data))) return false;
  m.bytes = bytes;
  return true;
}

trifactor_view Worker::view(trifactor_scalar scalar, Slot slot, HostMatrix shape) const {
  return api()->matrix(scalar, memory_[slot].data, shape.rows, shape.cols, device_ld(shape));
}

bool Worker::send(trifactor_scalar scalar, Slot slot, HostMatrix A, Part part) {
  const std::size_t size = size_of(scalar);
  const std::int64_t ld = device_ld(A), chunk = chunk_of(A, part);
  if (!make_room(slot, std::size_t(ld * A.cols) * size)) return false;
  for (std::int64_t begin = 0; begin < A.cols; begin += chunk) {
    const std::int64_t end = std::min(begin + chunk, A.cols);
    Rows rows = rows_of(A, part, begin, end);
    if (part == Part::Lower) rows.begin = begin;  // the diagonal block as a whole: its other triangle is not used
    if (part == Part::Upper) rows.end = end;
    if (!works(api()->copy_columns(nullptr, entry(A.data, A.ld, size, rows.begin, begin), std::size_t(A.ld) * size,
                                   queue_, entry(memory_[slot].data, ld, size, rows.begin, begin),
                                   std::size_t(ld) * size, std::size_t(rows.end - rows.begin) * size,
                                   std::size_t(end - begin))))
      return false;
  }
  return true;
}

bool Worker::send(Slot slot, const int* values, std::int64_t count) {
  const std::size_t bytes = std::size_t(count) * sizeof(int);
  return make_room(slot, bytes) &&
         works(api()->copy_columns(nullptr, values, bytes, queue_, memory_[slot].data, bytes, bytes, 1));
}

void Worker::copy_back(const void* source, std::size_t source_ld, void* target, std::size_t target_ld, std::size_t rows,
                       std::size_t cols) {
  if (api()->copy_columns(queue_, source, source_ld, nullptr, target, target_ld, rows, cols) == TRIFACTOR_OK) return;
  say("the GPU failed while a result was copied from it: %s", api()->last_message());
  std::abort();
}

void Worker::fetch(trifactor_scalar scalar, Slot slot, HostMatrix A, Part part) {
  const std::size_t size = size_of(scalar);
  const std::int64_t ld = device_ld(A), chunk = chunk_of(A, part);
  for (std::int64_t begin = 0; begin < A.cols; begin += chunk) {
    const std::int64_t end = std::min(begin + chunk, A.cols);
    const Rows rows = rows_of(A, part, begin, end);
    if (rows.end > rows.begin)
      copy_back(entry(memory_[slot].data, ld, size, rows.begin, begin), std::size_t(ld) * size,
                entry(A.data, A.ld, size, rows.begin, begin), std::size_t(A.ld) * size,
                std::size_t(rows.end - rows.begin) * size, std::size_t(end - begin));
    if (part != Part::Whole) fetch_triangle(scalar, slot, A, part, begin, end);
  }
}

/// The diagonal block of columns begin .. end-1, without its other triangle.
void Worker::fetch_triangle(trifactor_scalar scalar, Slot slot, HostMatrix A, Part part, std::int64_t begin,
                            std::int64_t end) {
  const std::size_t size = size_of(scalar);
  const std::int64_t order = end - begin, ld = device_ld(A);
  std::vector<char> block(std::size_t(order * order) * size);
  copy_back(entry(memory_[slot].data, ld, size, begin, begin), std::size_t(ld) * size, block.data(),
            std::size_t(order) * size, std::size_t(order) * size, std::size_t(order));
  for (std::int64_t j = 0; j < order; ++j) {
    const std::int64_t first = part == Part::Lower ? j : 0, last = part == Part::Lower ? order : j + 1;
    std::memcpy(entry(A.data, A.ld, size, begin + first, begin + j), entry(block.data(), order, size, first, j),
                std::size_t(last - first) * size);
  }
}

void Worker::fetch(Slot slot, int* values, std::int64_t count) {
  const std::size_t bytes = std::size_t(count) * sizeof(int);
  copy_back(memory_[slot].data, bytes, values, bytes, bytes, 1);
}

bool Worker::complete() { return works(api()->queue_sync(queue_)); }

bool Worker::factor_cholesky(trifactor_scalar scalar, trifactor_uplo uplo, HostMatrix A, HostMatrix* X, int& info) {
  const Part part = uplo == TRIFACTOR_LOWER ? Part::Lower : Part::Upper;
  if (!make_room(InfoSlot, sizeof(int)) || !send(scalar, MatrixSlot, A, part)) return false;
  if (X && !send(scalar, SecondSlot, *X, Part::Whole)) return false;
  int* const at = static_cast<int*>(memory_[InfoSlot].data);
  const trifactor_view a = view(scalar, MatrixSlot, A);
  if (!works(X ? api()->cholesky_factor_solve(queue_, uplo, a, view(scalar, SecondSlot, *X), at, nullptr)
               : api()->cholesky(queue_, uplo, a, at, nullptr)) ||
      !complete())
    return false;
  fetch(InfoSlot, &info, 1);
  fetch(scalar, MatrixSlot, A, part);
  if (X && info == 0) fetch(scalar, SecondSlot, *X, Part::Whole);
  return true;
}

bool Worker::solve_cholesky(trifactor_scalar scalar, trifactor_uplo uplo, HostMatrix L, HostMatrix X) {
  if (!send(scalar, MatrixSlot, L, uplo == TRIFACTOR_LOWER ? Part::Lower : Part::Upper) ||
      !send(scalar, SecondSlot, X, Part::Whole) ||
      !works(api()->cholesky_solve(queue_, uplo, view(scalar, MatrixSlot, L), view(scalar, SecondSlot, X), nullptr,
                                   nullptr)) ||
      !complete())
    return false;
  fetch(scalar, SecondSlot, X, Part::Whole);
  return true;
}

bool Worker::invert_cholesky(trifactor_scalar scalar, trifactor_uplo uplo, HostMatrix L) {
  const Part part = uplo == TRIFACTOR_LOWER ? Part::Lower : Part::Upper;
  if (!send(scalar, MatrixSlot, L, part) ||
      !make_room(SecondSlot, std::size_t(device_ld(L) * L.cols) * size_of(scalar)) ||
      !works(api()->cholesky_inverse(queue_, uplo, view(scalar, MatrixSlot, L), view(scalar, SecondSlot, L), nullptr,
                                     nullptr)) ||
      !complete())
    return false;
  fetch(scalar, SecondSlot, L, part);
  return true;
}

bool Worker::factor_lu(trifactor_scalar scalar, HostMatrix A, int* pivots, HostMatrix* X, int& info) {
  const std::int64_t k = std::min(A.rows, A.cols);
  if (!make_room(InfoSlot, sizeof(int)) || !make_room(PivotsSlot, std::size_t(k) * sizeof(int)) ||
      !send(scalar, MatrixSlot, A, Part::Whole))
    return false;
  if (X && !send(scalar, SecondSlot, *X, Part::Whole)) return false;
  int *const at = static_cast<int*>(memory_[InfoSlot].data), *const p = static_cast<int*>(memory_[PivotsSlot].data);
  const trifactor_view a = view(scalar, MatrixSlot, A);
  if (!works(X ? api()->lu_factor_solve(queue_, a, p, view(scalar, SecondSlot, *X), at, nullptr)
               : api()->lu(queue_, a, p, at, nullptr)) ||
      !complete())
    return false;
  fetch(InfoSlot, &info, 1);
  fetch(PivotsSlot, pivots, k);
  fetch(scalar, MatrixSlot, A, Part::Whole);
  if (X && info == 0) fetch(scalar, SecondSlot, *X, Part::Whole);
  return true;
}

bool Worker::solve_lu(trifactor_scalar scalar, trifactor_op op, HostMatrix LU, const int* pivots, HostMatrix X) {
  if (!send(scalar, MatrixSlot, LU, Part::Whole) || !send(PivotsSlot, pivots, LU.rows) ||
      !send(scalar, SecondSlot, X, Part::Whole) ||
      !works(api()->lu_solve(queue_, op, view(scalar, MatrixSlot, LU),
                             static_cast<const int*>(memory_[PivotsSlot].data), view(scalar, SecondSlot, X), nullptr,
                             nullptr)) ||
      !complete())
    return false;
  fetch(scalar, SecondSlot, X, Part::Whole);
  return true;
}

bool Worker::invert_lu(trifactor_scalar scalar, HostMatrix LU, const int* pivots) {
  if (!send(scalar, MatrixSlot, LU, Part::Whole) || !send(PivotsSlot, pivots, LU.rows) ||
      !make_room(SecondSlot, std::size_t(device_ld(LU) * LU.cols) * size_of(scalar)) ||
      !works(api()->lu_inverse(queue_, view(scalar, MatrixSlot, LU), static_cast<const int*>(memory_[PivotsSlot].data),
                               view(scalar, SecondSlot, LU), nullptr, nullptr)) ||
      !complete())
    return false;
  fetch(scalar, SecondSlot, LU, Part::Whole);
  return true;
}

}  // namespace trifactor::lapack
