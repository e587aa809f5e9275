#include "unfinished.hpp"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstring>
#include <mutex>

namespace program {
namespace {

// What a signal handler may read: no allocation, no lock.
struct Slot {
  std::atomic<bool> taken = false;  // by an Unfinished
  std::atomic<bool> valid = false;  // path is complete
  char path[PATH_MAX];
};
constexpr int slot_count = 16;
Slot slots[slot_count];
static_assert(std::atomic<bool>::is_always_lock_free);

void remove_and_end(int signal) {
  for (int i = slot_count - 1; i >= 0; --i)
    if (slots[i].valid && ::unlink(slots[i].path) != 0) ::rmdir(slots[i].path);
  ::signal(signal, SIG_DFL);
  ::raise(signal);  // comes when the handler returns
}

void install_handlers() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGALRM, SIGXCPU, SIGXFSZ}) {
    struct sigaction action = {};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_DFL) continue;
    action.sa_handler = remove_and_end;
    ::sigfillset(&action.sa_mask);
    ::sigaction(signal, &action, nullptr);
  }
}

}  // namespace

Unfinished::Unfinished(const std::string& path) : slot_(-1) {
  static std::once_flag once;
  std::call_once(once, install_handlers);
  if (path.size() >= PATH_MAX) return;  // no such file can be made
  for (int i = 0; i < slot_count && slot_ < 0; ++i)
    if (!slots[i].taken.exchange(true)) slot_ = i;
  if (slot_ < 0) return;
  std::memcpy(slots[slot_].path, path.c_str(), path.size() + 1);
  slots[slot_].valid = true;
}

Unfinished::~Unfinished() {
  if (slot_ < 0) return;
  slots[slot_].valid = false;
  slots[slot_].taken = false;
}

}  // namespace program
