// What a fuzz target reads: bytes of the fuzzer, as numbers within a range and as the text that is left.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace trifactor::fuzz {

/// Inputs that a target takes apart deeply: where mutations begin when there is no libFuzzer. Each target defines it.
std::vector<std::string> seeds();

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : text_(reinterpret_cast<const char*>(data), size) {}

  /// least .. most; the least of them where no byte is left.
  std::int64_t number(std::int64_t least, std::int64_t most) {
    std::uint64_t value = 0;
    for (std::uint64_t range = std::uint64_t(most - least); range > 0 && !text_.empty(); range >>= 8) {
      value = value << 8 | std::uint8_t(text_.front());
      text_.remove_prefix(1);
    }
    return least + std::int64_t(value % (std::uint64_t(most - least) + 1));
  }
  bool flag() { return number(0, 1) == 1; }
  /// Small and whole, or one of those at which arithmetic ends.
  double real() {
    using Limits = std::numeric_limits<double>;
    constexpr double odd[] = {
        0.0, -0.0, 1e-315, 1e-308, 1e-160, 1e160, 1e308, Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()};
    const std::int64_t kind = number(0, 255);
    return kind < 10 ? odd[kind] : double(kind - 130) / 8;
  }
  std::string_view rest() const { return text_; }

 private:
  std::string_view text_;
};

/// A rule that does not hold ends the process, which is what a fuzzer looks for.
inline void require(bool holds, const char* rule) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", rule);
  std::abort();
}

}  // namespace trifactor::fuzz
