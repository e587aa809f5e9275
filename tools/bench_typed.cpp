#include "bench_typed.hpp"

#include "device.hpp"
#include "failure.hpp"
#include "scalars.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <random>

namespace program {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text)
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

index_t parse_size(const char* option, const std::string& text) {
  index_t value = 0;
  const auto [past, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || past != text.data() + text.size() || value < 1 || value > largest_size)
    throw InputError(fmt::format("{}: '{}' is not a whole number in 1..{}", option, text, largest_size));
  return value;
}

/// "512,1024" or "100:500:100", or both: 8,16:64:16
std::vector<index_t> parse_sizes(const char* option, const std::string& text) {
  std::vector<index_t> sizes;
  for (const std::string& part : split(text, ',')) {
    const std::vector<std::string> range = split(part, ':');
    if (range.size() != 1 && range.size() != 3)
      throw InputError(fmt::format("{}: '{}' is neither a size nor a range first:last:step", option, part));
    const index_t first = parse_size(option, range[0]);
    const index_t last = range.size() == 1 ? first : parse_size(option, range[1]);
    const index_t step = range.size() == 1 ? 1 : parse_size(option, range[2]);
    if (last < first) throw InputError(fmt::format("{}: the range '{}' is empty", option, part));
    for (index_t n = first; n <= last; n += step) sizes.push_back(n);
  }
  return sizes;
}

void require_each_of(const char* option, const Words& given, const Words& words) {
  for (const std::string& word : given)
    if (const std::string wrong = not_one_of(words, word); !wrong.empty())
      throw InputError(fmt::format("{}: {}", option, wrong));
}

/// Parts of a Cholesky factorization.
bool is_part(const std::string& op) { return op == "update" || op == "tile"; }

/// CHOLMOD, on the host, is the peer of the sparse solver where that was built; cuDSS where it is asked for.
void complete_sparse(BenchOptions& o, const std::string& matrices) {
  if (o.mode == "hybrid" && o.device != "cuda") throw InputError("--mode: 'hybrid' needs --device cuda");
  o.matrices = split(matrices.empty() ? default_matrices : matrices, ',');
  const bool asked = !o.against.empty() && o.against != "none";
  if (asked && peer_program(o.against).empty()) {
    const bool cudss = o.against == "cudss";
    throw InputError(
        fmt::format("--against {}: trifactor_{} is not beside this program: it is in the folder where trifactor is "
                    "built with {}, and is not installed; or take none",
                    o.against, cudss ? "cudss" : "cholmod", cudss ? "cuDSS" : "libsuitesparse-dev"));
  }
  if (asked && std::ranges::find(o.scalars, "f64") == o.scalars.end())
    throw InputError(fmt::format("--against {}: it is measured in f64, which is not in --scalar", o.against));
  if (o.against.empty()) o.against = peer_program("cholmod").empty() ? "none" : "cholmod";
}

/// Factorizations of one matrix take a list of modes or all of them.
void complete_modes(BenchOptions& o) {
  o.modes = o.mode == "all" ? all_modes(o.op, o.device == "cuda") : split(o.mode, ',');
  for (std::size_t i = 0; i < o.modes.size(); ++i) {
    if (factor_mode(o.op, o.modes[i]).needs_cuda && o.device != "cuda")
      throw InputError(fmt::format("--mode: '{}' needs --device cuda", o.modes[i]));
    for (std::size_t j = 0; j < i; ++j)
      if (o.modes[i] == o.modes[j]) throw InputError(fmt::format("--mode: '{}' is named twice", o.modes[i]));
  }
}

/// A preset takes the place of what says which batches are measured.
void complete_preset(Typed& typed) {
  if (typed.preset.empty()) return;
  const BatchPreset& preset = batch_preset(typed.preset);
  typed.options.preset = typed.preset;
  typed.kind = preset.kind;
  typed.sizes = preset.sizes;
  typed.n = preset.n;
  typed.options.method = preset.method;
  if (typed.nrhs.empty()) typed.nrhs = preset.nrhs;
  if (!typed.has_count && preset.count > 0) typed.options.count = preset.count;
  for (const char* tuning : preset.tunings)
    typed.options.tunings.push_back(joined_tuning(typed.options.tuning, tuning));
}

}  // namespace

std::string not_one_of(const Words& words, const std::string& word) {
  if (std::find(words.begin(), words.end(), word) != words.end()) return {};
  std::string all;
  for (const std::string& known : words) all += (all.empty() ? "" : ", ") + known;
  return fmt::format("'{}' is not one of {}", word, all);
}

std::string default_sizes(const std::string& op, const std::string& device) {
  if (op == "batch") return "8,16,32,64,128";
  if (op == "solve") return "1024,4096";
  if (op == "tile") return "128,256,512,1024";
  if (op == "panel") return "256";
  if (op == "swap") return "1024";
  if (op == "update") return device == "cuda" ? "10240" : "2048";
  if (op == "value") return "64,128,256,512,1024,2048,4096";
  if (op == "cholesky" && device == "cuda") return "512,1024,2048,4096,5001,10001";  // with odd leading dimensions
  return "512,1024,2048,4096";
}

BenchOptions complete(Typed typed) {
  complete_preset(typed);
  BenchOptions o = typed.options;
  if (o.preset.empty()) o.preset = typed.part_of;
  if (o.tunings.empty()) o.tunings = {o.tuning};
  o.device = device_or_default(o.device);
  o.n = parse_sizes("--n", typed.n.empty() ? default_sizes(o.op, o.device) : typed.n);
  o.m = parse_sizes("--m", typed.m.empty() ? default_rows : typed.m);
  if (!typed.nrhs.empty()) o.nrhs = parse_sizes("--rhs", typed.nrhs);
  o.nb = parse_sizes("--nb", !typed.nb.empty() ? typed.nb : o.op == "swap" ? "256" : "64,128,256,512,1024");
  if (!typed.leaf.empty()) o.leaf = parse_sizes("--leaf", typed.leaf);
  o.ib = parse_sizes("--ib", typed.ib.empty() ? "16,32,64" : typed.ib);
  o.forms = typed.forms.empty() ? std::vector<std::string>{"inclusive", "exclusive"} : split(typed.forms, ',');
  require_each_of("--form", o.forms, {"inclusive", "exclusive"});
  o.looking = typed.looking.empty() ? std::vector<std::string>{"left", "right"} : split(typed.looking, ',');
  require_each_of("--looking", o.looking, {"left", "right"});
  o.scalars = typed.scalars.empty() ? std::vector{default_scalar()} : split(typed.scalars, ',');
  for (const std::string& scalar : o.scalars) with_scalar(scalar, [](auto) {});
  if (o.op == "sparse") complete_sparse(o, typed.matrices);
  o.kind = !typed.kind.empty() ? typed.kind : !typed.sizes.empty() && typed.sizes != "fixed" ? "ragged" : "strided";
  o.sizes = !typed.sizes.empty() ? typed.sizes : o.kind == "ragged" ? "uniform" : "fixed";
  if (o.sizes != "fixed" && o.kind != "ragged")
    throw InputError(fmt::format("--sizes {} needs --kind ragged, not {}", o.sizes, o.kind));
  if (o.sizes != "fixed" && o.sizes != "uniform" && o.sizes != "one-large") {
    if (o.sizes.find_first_not_of("0123456789") != std::string::npos)
      throw InputError(
          fmt::format("--sizes: '{}' is not one of fixed, uniform, one-large, nor a number, the mean", o.sizes));
    o.mean = parse_size("--sizes", o.sizes);
    for (const index_t n : o.n)
      if (n < o.mean || n >= 2 * o.mean)
        throw InputError(
            fmt::format("--n: {} must be in {}..{} where --sizes {} is the mean", n, o.mean, 2 * o.mean - 1, o.mean));
  }
  if (is_part(o.op) || o.op == "value") o.against = "none";  // they have no peer
  if (is_part(o.op)) o.mode = "native";
  if (o.against.empty()) o.against = o.device == "cuda" ? "cusolver" : "lapack";
  if (o.against == "cusolver" && o.device != "cuda") throw InputError("--against cusolver needs --device cuda");
  if (o.op == "cholesky" || o.factors_lu()) complete_modes(o);
  o.seed = typed.seed >= 0 ? std::uint64_t(typed.seed) : o.op == "sparse" ? 0 : std::random_device{}();
  return o;
}

}  // namespace program
