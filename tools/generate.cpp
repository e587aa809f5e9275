// trifactor generate, and the matrices themselves.
#include "generate.hpp"

#include "commands.hpp"
#include "failure.hpp"
#include "file_use.hpp"
#include "memory.hpp"
#include "printable.hpp"
#include "random_matrix.hpp"
#include "step.hpp"
#include "usage.hpp"

#include <fmt/core.h>
#include <commit.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>

namespace program {
namespace {

using Sparse = SparseMatrix<double>;

/// A matrix that is summed up from dense blocks, one for each pair of neighbouring nodes, `unknowns` rows a node.
class NodeMatrix {
 public:
  /// later(a, take) calls take(b) for every neighbour b > a of node a, ascending.
  template <class Later>
  NodeMatrix(index_t nodes, index_t unknowns, const Later& later) : nodes_(nodes), unknowns_(unknowns) {
    const auto require = [](double entries) {
      require_memory("this matrix", entries * (sizeof(index_t) + sizeof(double)));
    };
    double entries = double(nodes) * double(unknowns * (unknowns + 1) / 2);
    require(entries);  // before counting the others, which takes its time too
    for (index_t a = 0; a < nodes; ++a) {
      count_step(a, passes * nodes);
      later(a, [&](index_t) { entries += double(unknowns * unknowns); });
    }
    require(entries);
    A_.n = nodes * unknowns;
    A_.start.reserve(std::size_t(A_.n + 1));
    A_.row.reserve(std::size_t(entries));
    for (index_t a = 0; a < nodes; ++a) {
      count_step(nodes + a, passes * nodes);
      for (index_t c = 0; c < unknowns; ++c) {
        for (index_t r = c; r < unknowns; ++r) A_.row.push_back(a * unknowns + r);
        later(a, [&](index_t b) {
          for (index_t r = 0; r < unknowns; ++r) A_.row.push_back(b * unknowns + r);
        });
        A_.start.push_back(A_.entries());
      }
    }
    A_.value.resize(A_.row.size());
  }

  /// Adds block(r, c) to rows r of node b and columns c of node a; b >= a, and of b = a the lower triangle counts.
  template <class Block>
  void add(index_t b, index_t a, const Block& block) {
    if (a > last_) last_ = a, count_step(2 * nodes_ + a, passes * nodes_);
    for (index_t c = 0; c < unknowns_; ++c) {
      const index_t column = a * unknowns_ + c, first = b == a ? c : 0;
      const auto begin = A_.row.begin() + A_.start[std::size_t(column)];
      const auto end = A_.row.begin() + A_.start[std::size_t(column + 1)];
      auto place = std::lower_bound(begin, end, b * unknowns_ + first) - A_.row.begin();
      for (index_t r = first; r < unknowns_; ++r) A_.value[std::size_t(place++)] += block(r, c);
    }
  }

  Sparse finish() {
    count_step(passes * nodes_, passes * nodes_);
    return std::move(A_);
  }

 private:
  static constexpr index_t passes = 3;  // over the nodes: counting, the pattern, the values
  index_t nodes_, unknowns_, last_ = 0;  // the last node to which something was added
  Sparse A_;
};

/// A box of nodes, x fastest.
struct Grid {
  index_t x, y, z;
  index_t nodes() const { return x * y * z; }
  index_t node(index_t i, index_t j, index_t k) const { return i + x * (j + y * k); }

  /// The neighbours of a node after it: of the 26 around it those that `wanted` names by their distance in each
  /// direction.
  template <class Wanted, class Take>
  void later(index_t a, const Wanted& wanted, const Take& take) const {
    const index_t i = a % x, j = a / x % y, k = a / (x * y);
    for (index_t dk = 0; dk <= 1; ++dk)
      for (index_t dj = -1; dj <= 1; ++dj)
        for (index_t di = -1; di <= 1; ++di) {
          if (dk * 9 + dj * 3 + di <= 0 || !wanted(di, dj, dk)) continue;
          const bool inside = i + di >= 0 && i + di < x && j + dj >= 0 && j + dj < y && k + dk < z;
          if (inside) take(node(i + di, j + dj, k + dk));
        }
  }
};

constexpr auto touching = [](index_t, index_t, index_t) { return true; };
constexpr auto sharing_a_face = [](index_t di, index_t dj, index_t dk) {
  return std::abs(di) + std::abs(dj) + std::abs(dk) == 1;
};

/// The Laplacian with zero outside the grid: 2 for each dimension on the diagonal, -1 for a neighbour.
Sparse poisson(Grid grid, int dimensions) {
  const auto later = [&](index_t a, const auto& take) { grid.later(a, sharing_a_face, take); };
  NodeMatrix A(grid.nodes(), 1, later);
  for (index_t a = 0; a < grid.nodes(); ++a) {
    A.add(a, a, [&](index_t, index_t) { return 2.0 * dimensions; });
    later(a, [&](index_t b) { A.add(b, a, [](index_t, index_t) { return -1.0; }); });
  }
  return A.finish();
}

constexpr double poisson_ratio = 0.3;
using ElementMatrix = std::array<std::array<double, 24>, 24>;

/// The stiffness of a trilinear unit cube with Young's modulus 1: node 4 k + 2 j + i has three displacements.
ElementMatrix cube_stiffness() {
  const double lambda = poisson_ratio / ((1 + poisson_ratio) * (1 - 2 * poisson_ratio));
  const double mu = 1 / (2 * (1 + poisson_ratio));
  ElementMatrix K{};
  for (int point = 0; point < 8; ++point) {  // Gauss, two points a direction, weight 1/8
    double gradient[8][3];
    for (int node = 0; node < 8; ++node)
      for (int d = 0; d < 3; ++d) {
        double g = 1;  // the product of the three linear functions, that of direction d differentiated
        for (int e = 0; e < 3; ++e) {
          const double at = 0.5 + ((point >> e & 1) ? 0.5 : -0.5) / std::sqrt(3.0);
          const bool far = node >> e & 1;
          g *= e == d ? (far ? 1 : -1) : (far ? at : 1 - at);
        }
        gradient[node][d] = g;
      }
    for (int a = 0; a < 8; ++a)
      for (int b = 0; b < 8; ++b) {
        double dot = 0;
        for (int d = 0; d < 3; ++d) dot += gradient[a][d] * gradient[b][d];
        for (int r = 0; r < 3; ++r)
          for (int c = 0; c < 3; ++c)
            K[std::size_t(3 * a + r)][std::size_t(3 * b + c)] +=
                (lambda * gradient[a][r] * gradient[b][c] + mu * gradient[a][c] * gradient[b][r] +
                 (r == c ? mu * dot : 0)) /
                8;
      }
  }
  return K;
}

/// m^3 cubes, the nodes of the face x = 0 clamped and removed; each cube has a modulus of its own in [1, 10).
Sparse elastic3d(index_t m, std::uint64_t seed) {
  const Grid grid{m, m + 1, m + 1};
  NodeMatrix A(grid.nodes(), 3, [&](index_t a, const auto& take) { grid.later(a, touching, take); });
  const ElementMatrix K = cube_stiffness();
  for (index_t k = 0; k < m; ++k)
    for (index_t j = 0; j < m; ++j)
      for (index_t i = 0; i < m; ++i) {
        const double modulus = std::pow(10.0, 0.5 + 0.5 * random_number(seed, std::uint64_t(i + m * (j + m * k))));
        for (int p = 0; p < 8; ++p)
          for (int q = 0; q < 8; ++q) {
            const index_t xp = i + (p & 1) - 1, xq = i + (q & 1) - 1;  // -1: clamped
            const index_t b = grid.node(xp, j + (p >> 1 & 1), k + (p >> 2)),
                          a = grid.node(xq, j + (q >> 1 & 1), k + (q >> 2));
            if (xp < 0 || xq < 0 || b < a) continue;
            A.add(b, a,
                  [&](index_t r, index_t c) { return modulus * K[std::size_t(3 * p + r)][std::size_t(3 * q + c)]; });
          }
      }
  return A.finish();
}

/// Six unknowns a node, tied to those of its 8 neighbours by full blocks: S (x_a - x_b) with S = I + g g^T and a
/// random g for each pair, and every node tied weakly to the ground.
Sparse shell2d(index_t m, std::uint64_t seed) {
  constexpr index_t unknowns = 6;
  constexpr double ground = 0.01;
  const Grid grid{m, m, 1};
  const auto later = [&](index_t a, const auto& take) { grid.later(a, touching, take); };
  NodeMatrix A(grid.nodes(), unknowns, later);
  std::uint64_t place = 0;
  for (index_t a = 0; a < grid.nodes(); ++a) {
    A.add(a, a, [](index_t r, index_t c) { return r == c ? ground : 0.0; });
    later(a, [&](index_t b) {
      std::array<double, unknowns> g;
      for (double& component : g) component = random_number(seed, place++);
      const auto stiffness = [&](index_t r, index_t c) {
        return (r == c ? 1.0 : 0.0) + g[std::size_t(r)] * g[std::size_t(c)];
      };
      A.add(a, a, stiffness);
      A.add(b, b, stiffness);
      A.add(b, a, [&](index_t r, index_t c) { return -stiffness(r, c); });
    });
  }
  return A.finish();
}

/// -u off the diagonal with random u in (0, 1], and 1 more than the sum of their moduli in its row on the diagonal.
template <class Later>
Sparse dominant(index_t n, std::uint64_t seed, const Later& later) {
  NodeMatrix A(n, 1, later);
  std::uint64_t place = 0;
  for (index_t a = 0; a < n; ++a) {
    A.add(a, a, [](index_t, index_t) { return 1.0; });
    later(a, [&](index_t b) {
      const double u = 0.5 - 0.5 * random_number(seed, place++);
      A.add(b, a, [&](index_t, index_t) { return -u; });
      for (const index_t end : {a, b}) A.add(end, end, [&](index_t, index_t) { return u; });
    });
  }
  return A.finish();
}

/// A full last row.
Sparse arrow(index_t n, std::uint64_t seed) {
  return dominant(n, seed, [&](index_t a, const auto& take) {
    if (a < n - 1) take(n - 1);
  });
}

Sparse band(index_t n, index_t width, std::uint64_t seed) {
  return dominant(n, seed, [&](index_t a, const auto& take) {
    for (index_t b = a + 1; b <= std::min(a + width, n - 1); ++b) take(b);
  });
}

/// `each` rows a column, drawn anywhere; those below the diagonal count, each once.
Sparse random_pattern(index_t n, index_t each, std::uint64_t seed) {
  const auto later = [&](index_t a, const auto& take) {
    std::vector<index_t> rows;
    for (index_t k = 0; k < each; ++k) {
      const double at = 0.5 + 0.5 * random_number(~seed, std::uint64_t(a * each + k));
      rows.push_back(std::min(index_t(at * double(n)), n - 1));
    }
    std::sort(rows.begin(), rows.end());
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    for (const index_t b : rows)
      if (b > a) take(b);
  };
  return dominant(n, seed, later);
}

constexpr index_t largest_second = 100000;

struct Family {
  const char *name, *parameters, *what;
  index_t largest;         // of the first parameter
  index_t second_default;  // 0: there is no second one
  Sparse (*make)(index_t first, index_t second, std::uint64_t seed);
};

const Family families[] = {
    {"poisson2d", "M", "5-point Laplacian on an M x M grid", 30000, 0,
     [](index_t m, index_t, std::uint64_t) {
       return poisson({m, m, 1}, 2);
     }},
    {"poisson3d", "M", "7-point Laplacian on an M x M x M grid", 1000, 0,
     [](index_t m, index_t, std::uint64_t) {
       return poisson({m, m, m}, 3);
     }},
    {"elastic3d", "M", "a clamped block of M x M x M trilinear hexahedra, 3 displacements a node", 1000, 0,
     [](index_t m, index_t, std::uint64_t seed) { return elastic3d(m, seed); }},
    {"shell2d", "M", "an M x M grid, 6 unknowns a node, coupled to 8 neighbours", 10000, 0,
     [](index_t m, index_t, std::uint64_t seed) { return shell2d(m, seed); }},
    {"arrow", "N", "a diagonal and a full last row", 1000000000, 0,
     [](index_t n, index_t, std::uint64_t seed) { return arrow(n, seed); }},
    {"band", "N[:WIDTH]", "WIDTH full diagonals below the main one [8]", 1000000000, 8, band},
    {"random", "N[:EACH]", "EACH rows drawn for every column, those below the diagonal kept [4]", 1000000000, 4,
     random_pattern},
};

const Family* find_family(const std::string& word) {
  const std::string name = word.substr(0, word.find(':'));
  for (const Family& family : families)
    if (name == family.name) return &family;
  return nullptr;
}

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const Family& f : families) names.emplace_back(f.name);
  return names;
}

index_t parse_parameter(const std::string& word, const std::string& text, index_t largest) {
  index_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [past, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || past != end || value < 1 || value > largest)
    throw InputError(fmt::format("{}: '{}' is not a whole number in 1..{}", word, text, largest));
  return value;
}

}  // namespace

void write_generated(const GenerateOptions& o) {
  check_file_use({}, {o.output});
  Sparse A;
  const double made = timed_step("generating", [&] { A = generate(o.word, std::uint64_t(o.seed)); });
  const double written = timed_step("writing", [&] { write_matrix_market(o.output, A); });
  if (o.json) {
    std::error_code unknown;
    const auto bytes = std::filesystem::file_size(o.output, unknown);
    const nlohmann::ordered_json all = {{"matrix", o.word},
                                        {"family", find_family(o.word)->name},
                                        {"rows", A.n},
                                        {"columns", A.n},
                                        {"entries", A.entries()},
                                        {"seed", o.seed},
                                        {"file", o.output},
                                        {"seconds", made + written},
                                        {"write_seconds", written},
                                        {"bytes", unknown ? nlohmann::ordered_json() : nlohmann::ordered_json(bytes)},
                                        {"commit", TRIFACTOR_COMMIT}};
    return fmt::print("{}\n", json_text(all));
  }
  fmt::print("{}: {} x {}, {} entries of the lower triangle, made in {:.3f} s, written to {} in {:.3f} s\n", o.word,
             A.n, A.n, A.entries(), made, printable(o.output), written);
}

std::string generated_families() {
  std::string lines;
  for (const Family& f : families)
    lines += fmt::format("  {:<18}{}\n", fmt::format("{}:{}", f.name, f.parameters), f.what);
  return lines;
}

std::string closest_generated(const std::string& word) {
  const auto colon = word.find(':');
  const std::string family = closest(word.substr(0, colon), family_names());
  return family.empty() || colon == word.npos ? family : family + word.substr(colon);
}

bool is_generated(const std::string& word) { return word.find(':') != word.npos && find_family(word); }

SparseMatrix<double> generate(const std::string& word, std::uint64_t seed) {
  const Family* const family = find_family(word);
  if (!family)
    throw InputError(fmt::format("{}: there is no such family of matrices; there are {}{}", word, listed(family_names()),
                                 did_you_mean(closest_generated(word))));
  const auto colon = word.find(':');
  if (colon == word.npos)
    throw InputError(fmt::format("{}: its size is missing: {}:{}", word, family->name, family->parameters));
  std::string first = word.substr(colon + 1);
  std::optional<std::string> second;
  if (const auto next = first.find(':'); next != first.npos) second = first.substr(next + 1), first.resize(next);
  if (second && family->second_default == 0)
    throw InputError(fmt::format("{}: {} has one parameter, not two", word, family->name));
  const index_t size = parse_parameter(word, first, family->largest);
  const index_t other = second ? parse_parameter(word, *second, largest_second) : family->second_default;
  return family->make(size, other, seed);
}

}  // namespace program
