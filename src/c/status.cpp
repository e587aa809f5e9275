#include <c/status.hpp>

#include <trifactor/error.hpp>

#include <cstdio>

namespace trifactor::c {

namespace {

/// Of the calling thread. A fixed room, since messages also tell that memory ran out.
struct LastError {
  char message[1024] = "";
  std::int64_t detail = 0;
};
LastError& last_error() {
  thread_local LastError last;
  return last;
}

trifactor_status keep(trifactor_status status, const char* message, std::int64_t detail = 0) {
  LastError& last = last_error();
  std::snprintf(last.message, sizeof last.message, "%s", message);
  last.detail = detail;
  return status;
}

}  // namespace

trifactor_status keep_exception() noexcept {
  try {
    throw;
  } catch (const InvalidArgument& e) {
    return keep(TRIFACTOR_INVALID_ARGUMENT, e.what());
  } catch (const OutOfMemory& e) {
    return keep(TRIFACTOR_OUT_OF_MEMORY, e.what(), std::int64_t(e.bytes()));
  } catch (const DeviceFault& e) {
    return keep(TRIFACTOR_DEVICE_FAULT, e.what());
  } catch (const NotPositiveDefinite& e) {
    return keep(TRIFACTOR_NOT_POSITIVE_DEFINITE, e.what(), e.order());
  } catch (const Singular& e) { return keep(TRIFACTOR_SINGULAR, e.what(), e.row()); } catch (const std::bad_alloc&) {
    return keep(TRIFACTOR_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& e) { return keep(TRIFACTOR_INTERNAL_ERROR, e.what()); } catch (...) {
    return keep(TRIFACTOR_INTERNAL_ERROR, "an exception of an unknown type");
  }
}

void fail(const char* call, const std::string& text) { throw InvalidArgument(std::string(call) + ": " + text); }

void check_word(const char* call, const char* name, int value, int count, const char* words) {
  if (value < 0 || value >= count) fail(call, std::string(name) + " = " + std::to_string(value) + " must be " + words);
}
Uplo uplo_of(const char* call, trifactor_uplo uplo) {
  check_word(call, "uplo", uplo, 2, "TRIFACTOR_LOWER or TRIFACTOR_UPPER");
  return Uplo(uplo);
}
Op op_of(const char* call, trifactor_op op) {
  check_word(call, "op", op, 3, "TRIFACTOR_NONE, TRIFACTOR_TRANSPOSE or TRIFACTOR_CONJ_TRANSPOSE");
  return Op(op);
}
Mode mode_of(const char* call, trifactor_mode mode) {
  check_word(call, "mode", mode, 3, "TRIFACTOR_MODE_AUTO, TRIFACTOR_MODE_NATIVE or TRIFACTOR_MODE_HYBRID");
  return Mode(mode);
}
Device device_of(const char* call, trifactor_device device) {
  check_word(call, "device", device, 3, "TRIFACTOR_DEVICE_AUTO, TRIFACTOR_DEVICE_HOST or TRIFACTOR_DEVICE_CUDA");
  return Device(device);
}

void check_struct(const char* call, const char* name, std::size_t size, std::size_t known) {
  if (size < sizeof(std::size_t) || size > known)
    fail(call, std::string(name) + " = " + std::to_string(size) + " must be sizeof of the struct, at most " +
                   std::to_string(known) + " in this version of the library");
}

// The enumerators are those of C++, in their order.
static_assert(int(Uplo::Upper) == TRIFACTOR_UPPER && int(Op::ConjTranspose) == TRIFACTOR_CONJ_TRANSPOSE &&
              int(Op::Transpose) == TRIFACTOR_TRANSPOSE && int(Mode::Native) == TRIFACTOR_MODE_NATIVE &&
              int(Mode::Hybrid) == TRIFACTOR_MODE_HYBRID && int(Device::Host) == TRIFACTOR_DEVICE_HOST &&
              int(Device::Cuda) == TRIFACTOR_DEVICE_CUDA);

}  // namespace trifactor::c

const char* trifactor_last_message(void) { return trifactor::c::last_error().message; }
int64_t trifactor_last_detail(void) { return trifactor::c::last_error().detail; }

const char* trifactor_status_name(trifactor_status status) {
  static const char* const names[] = {"TRIFACTOR_OK",
                                      "TRIFACTOR_INVALID_ARGUMENT",
                                      "TRIFACTOR_OUT_OF_MEMORY",
                                      "TRIFACTOR_DEVICE_FAULT",
                                      "TRIFACTOR_NOT_POSITIVE_DEFINITE",
                                      "TRIFACTOR_SINGULAR",
                                      "TRIFACTOR_INTERNAL_ERROR"};
  return status >= TRIFACTOR_OK && status <= TRIFACTOR_INTERNAL_ERROR ? names[status] : "no status of trifactor";
}
