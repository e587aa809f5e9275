#include "step.hpp"

#include <fmt/core.h>

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

namespace program {
namespace {

using std::chrono::steady_clock;

std::atomic<Step*> innermost_step = nullptr;

/// "12 s", "3 min 20 s", "2 h 05 min"
std::string readable_seconds(double seconds) {
  const auto whole = std::int64_t(std::min(seconds, 1e9) + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

double seconds_before_a_step_is_shown() {
  constexpr double usual = 2;
  const char* const given = std::getenv("TRIFACTOR_PROGRESS_AFTER");
  return given ? std::strtod(given, nullptr) : usual;
}

std::size_t terminal_width() {
  constexpr std::size_t usual = 80;
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : usual;
}

/// The line at the bottom of the terminal. It is blanked and overwritten, so that every terminal shows it.
class StepLine {
 public:
  static StepLine& shared() {
    static StepLine line;
    return line;
  }

  void begin(Step* step) {
    const std::lock_guard lock(mutex);
    steps_.push_back(step);
    draw();
    if (!watch_.joinable()) watch_ = std::jthread([this](std::stop_token stop) { watch(stop); });
    wake_.notify_one();
  }
  void end() {
    const std::lock_guard lock(mutex);
    draw();
    steps_.pop_back();
    draw();
  }

  std::mutex mutex;

  // The others are called with the mutex locked.
  void erase() { show(""); }
  void draw() {
    std::string line;
    for (const Step* step : steps_)
      if (step->seconds() >= after_) line += (line.empty() ? "trifactor: " : "; ") + step->text();
    show(line);
  }

 private:
  void watch(std::stop_token stop) {
    constexpr auto interval = std::chrono::milliseconds(250);
    std::unique_lock lock(mutex);
    while (!stop.stop_requested()) {
      wake_.wait(lock, stop, [&] { return !steps_.empty(); });
      if (!wake_.wait_for(lock, stop, interval, [&] { return stop.stop_requested(); })) draw();
    }
  }

  void show(std::string line) {
    line.resize(std::min(line.size(), terminal_width() - 1));
    if (line == shown_) return;
    const std::size_t gone = shown_.size() - std::min(line.size(), shown_.size());
    fmt::print(stderr, "\r{}{:{}}{}", line, "", gone, line.empty() ? "\r" : "");
    std::fflush(stderr);
    shown_ = std::move(line);
  }

  const double after_ = seconds_before_a_step_is_shown();
  std::vector<const Step*> steps_;  // the outermost first
  std::string shown_;
  std::condition_variable_any wake_;
  std::jthread watch_;
};

}  // namespace

bool steps_are_shown() {
  static const bool on_terminal = ::isatty(STDERR_FILENO) != 0;
  return on_terminal;
}

Step::Step(std::string name, std::function<double()> part)
    : name_(std::move(name)), part_(std::move(part)), outer_(innermost_step.load()) {
  if (!steps_are_shown()) return;
  innermost_step = this;
  StepLine::shared().begin(this);
}

Step::~Step() {
  if (!steps_are_shown()) return;
  StepLine::shared().end();
  innermost_step = outer_;
}

double Step::seconds() const { return std::chrono::duration<double>(steady_clock::now() - begin_).count(); }

std::string Step::text() const {
  const double elapsed = seconds();
  const std::int64_t total = total_.load(std::memory_order_relaxed), done = done_.load(std::memory_order_relaxed);
  const double told = part_ ? part_() : 0;
  if (total <= 0 && !(told > 0)) return fmt::format("{}, {}", name_, readable_seconds(elapsed));
  const double part = std::clamp(told > 0 ? told : double(done) / double(total), 0.0, 1.0);
  const std::string left = part > 0 ? fmt::format(", {} left", readable_seconds(elapsed * (1 - part) / part)) : "";
  return fmt::format("{} {:.0f} %{}", name_, std::floor(part * 100), left);
}

void count_step(std::int64_t done, std::int64_t total) {
  if (Step* const step = innermost_step.load(std::memory_order_relaxed)) step->count(done, total);
}

StepsHidden::StepsHidden() {
  if (!steps_are_shown()) return;
  lock_ = std::unique_lock(StepLine::shared().mutex);
  StepLine::shared().erase();
}

StepsHidden::~StepsHidden() {
  if (lock_) StepLine::shared().draw();
}

}  // namespace program
