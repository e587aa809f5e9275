#include <lapack/settings.hpp>

#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace trifactor::lapack {

namespace {

bool is_word(const char* text, std::size_t length, const char* word) {
  return std::strlen(word) == length && std::strncmp(text, word, length) == 0;
}

void read_words(Settings& s, const char* text) {
  while (*text) {
    const std::size_t length = std::strcspn(text, ",");
    if (is_word(text, length, "off"))
      s.where = Where::Off;
    else if (is_word(text, length, "host"))
      s.where = Where::Host;
    else if (is_word(text, length, "cuda"))
      s.where = Where::Cuda;
    else if (is_word(text, length, "verbose"))
      s.verbose = true;
    else if (length > 0)
      say("TRIFACTOR_LAPACK=%.*s is none of off, host, cuda, verbose, and is ignored", int(length), text);
    text += length;
    if (*text == ',') ++text;
  }
}

/// A whole number that is not negative, or -1 where the variable is not set or not one.
std::int64_t read_number(const char* variable) {
  const char* text = std::getenv(variable);
  if (!text || !*text) return -1;
  char* end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text, &end, 10);
  if (*end == 0 && errno == 0 && value >= 0) return value;
  say("%s=%s is not a whole number from 0 on, and is ignored", variable, text);
  return -1;
}

Settings read() {
  Settings s;
  if (const char* words = std::getenv("TRIFACTOR_LAPACK")) read_words(s, words);
  if (const std::int64_t order = read_number("TRIFACTOR_LAPACK_MIN"); order >= 0) {
    s.min_order = s.min_solve_order = order;
    if (order < s.min_columns) s.min_columns = order;
  }
  if (const std::int64_t columns = read_number("TRIFACTOR_LAPACK_CHUNK"); columns >= 0) s.chunk = columns;
  return s;
}

struct Count {
  std::atomic<std::int64_t> calls{0}, smallest{INT64_MAX}, largest{0}, nanoseconds{0};
};
Count counts[3];
std::atomic<bool> is_forked_child{false};

[[gnu::constructor]] void watch_forks() {
  pthread_atfork(nullptr, nullptr, [] { is_forked_child = true; });
}

/// "cuda 3 calls of order 1024 to 4096 in 0.153 s"
int describe(char* line, std::size_t room, const char* name, const Count& c) {
  const std::int64_t calls = c.calls;
  if (calls == 0) return std::snprintf(line, room, "%s 0 calls", name);
  return std::snprintf(line, room, "%s %lld call%s of order %lld to %lld in %.3f s", name, (long long)calls,
                       calls == 1 ? "" : "s", (long long)c.smallest.load(), (long long)c.largest.load(),
                       1e-9 * double(c.nanoseconds));
}

[[gnu::destructor]] void report() {
  std::int64_t calls = 0;
  for (const Count& c : counts) calls += c.calls;
  if (calls == 0 || !settings().verbose) return;
  char cuda[160], host[160], passed[160];
  describe(cuda, sizeof cuda, "cuda", counts[int(Place::Cuda)]);
  describe(host, sizeof host, "host", counts[int(Place::Host)]);
  describe(passed, sizeof passed, "passed on", counts[int(Place::PassedOn)]);
  say("%s; %s; %s", cuda, host, passed);
}

}  // namespace

const Settings& settings() {
  static const Settings s = read();
  return s;
}

bool in_forked_child() { return is_forked_child.load(std::memory_order_relaxed); }

void count_call(Place place, std::int64_t n, double seconds) {
  Count& c = counts[int(place)];
  ++c.calls;
  c.nanoseconds += std::int64_t(1e9 * seconds);
  for (std::int64_t old = c.smallest; n < old && !c.smallest.compare_exchange_weak(old, n);) {}
  for (std::int64_t old = c.largest; n > old && !c.largest.compare_exchange_weak(old, n);) {}
}

void say(const char* format, ...) {
  char line[1024] = "trifactor_lapack: ";
  const std::size_t head = std::strlen(line);
  va_list values;
  va_start(values, format);
  std::vsnprintf(line + head, sizeof line - head - 1, format, values);
  va_end(values);
  std::strcat(line, "\n");
  const auto written = write(STDERR_FILENO, line, std::strlen(line));  // one piece, also when others write
  (void)written;
}

}  // namespace trifactor::lapack
