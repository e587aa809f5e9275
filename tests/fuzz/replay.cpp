// Runs a fuzz target without libFuzzer: over the files that are named, or over a fixed pseudo-random corpus, mutations
// of the target's seeds. Usage: TARGET [runs=N] [FILE...]
#include "input.hpp"

#include <fstream>
#include <iterator>
#include <random>

namespace {

void run(const std::string& bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

std::string mutated(std::string bytes, std::mt19937_64& random, const std::vector<std::string>& seeds) {
  const auto below = [&](std::size_t n) { return std::size_t(random() % (n + 1)); };
  for (std::size_t steps = 1 + below(7); steps > 0; --steps) {
    const std::size_t at = below(bytes.size());
    switch (random() % 6) {
      case 0:
        bytes.insert(at, 1, char(random()));
        break;
      case 1:
        bytes.erase(at, 1 + below(8));
        break;
      case 2:
        bytes = bytes.substr(0, at);
        break;
      case 3:
        bytes.insert(at, bytes.substr(below(bytes.size()), 1 + below(16)));
        break;
      case 4: {
        const std::string& other = seeds[below(seeds.size() - 1)];
        bytes.insert(at, other.substr(below(other.size()), 1 + below(32)));
        break;
      }
      default:
        if (at < bytes.size()) bytes[at] = random() % 2 ? char(random()) : "0123456789-.e \n"[random() % 15];
    }
  }
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  unsigned long runs = 20000;
  int files = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.starts_with("runs=")) {
      runs = std::strtoul(word.c_str() + 5, nullptr, 10);
      continue;
    }
    std::ifstream file(word, std::ios::binary);
    if (!file) {
      std::fprintf(stderr, "%s cannot be read\n", argv[i]);
      return 2;
    }
    run({std::istreambuf_iterator<char>(file), {}});
    ++files;
  }
  if (files > 0) return 0;
  std::mt19937_64 random(20);
  const auto seeds = trifactor::fuzz::seeds();
  for (const std::string& seed : seeds) run(seed);
  for (unsigned long k = 0; k < runs; ++k) run(mutated(seeds[random() % seeds.size()], random, seeds));
  std::printf("%lu runs\n", runs + seeds.size());
  return 0;
}
