#include "tree_picture.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace program {
namespace {

using trifactor::index_t;
using trifactor::SparsePlan;

constexpr double width = 960, top = 64, bottom = 44, bars_left = 56, bars_width = 150, tree_left = 250, tree_right = 24;
constexpr double least_height = 260, most_height = 720, level_height = 26;
constexpr std::size_t most_fronts = 3000;  // beyond this, circles only hide each other
constexpr double largest_radius = 13, least_radius = 1.1;
const char* const grey = "#9aa0a6";
const char* const green = "#2d8a4e";

class Svg {
 public:
  Svg(double height, const std::string& title) {
    add("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:g} {:g}\" font-family=\"sans-serif\" "
        "font-size=\"12\">\n",
        width, height);
    add("<title>{}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n", escaped(title));
  }

  void line(double x1, double y1, double x2, double y2, const char* colour, double thickness) {
    add("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" stroke-width=\"{:g}\"/>\n", x1, y1,
        x2, y2, colour, thickness);
  }
  void bar(double x, double y, double w, double h, const char* colour) {
    add("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n", x, y, w, h, colour);
  }
  void circle(double x, double y, double r, const std::string& colour, const std::string& hint) {
    add("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"{}\"><title>{}</title></circle>\n", x, y, r, colour,
        escaped(hint));
  }
  void text(double x, double y, const std::string& words, const char* anchor, const char* colour = "#222",
            int size = 12) {
    add("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" fill=\"{}\" font-size=\"{}\">{}</text>\n", x, y, anchor,
        colour, size, escaped(words));
  }
  std::string done() {
    add("</svg>\n");
    return std::move(text_);
  }

 private:
  template <class... Values>
  void add(fmt::format_string<Values...> format, Values&&... values) {
    fmt::vformat_to(std::back_inserter(text_), format, fmt::make_format_args(values...));
  }
  static std::string escaped(const std::string& words) {
    std::string safe;
    for (const char c : words)
      if (c == '<')
        safe += "&lt;";
      else if (c == '>')
        safe += "&gt;";
      else if (c == '&')
        safe += "&amp;";
      else
        safe += c;
    return safe;
  }

  std::string text_;
};

/// The fronts that are drawn and where each stands between 0 and 1. Parents come after their children.
struct Layout {
  std::vector<SparsePlan::Front> fronts;
  std::vector<bool> drawn;
  std::vector<double> place;
  std::size_t left_out = 0;

  explicit Layout(const SparsePlan& plan) {
    const auto count = std::size_t(plan.fronts());
    for (index_t s = 0; s < plan.fronts(); ++s) fronts.push_back(plan.front(s));
    choose(count);
    spread(count);
  }

 private:
  /// Those whose subtrees have the most operations: with a front its parent is always there too.
  void choose(std::size_t count) {
    std::vector<double> subtree(count);
    for (std::size_t s = 0; s < count; ++s) {
      subtree[s] += fronts[s].flops;
      if (fronts[s].parent >= 0) subtree[std::size_t(fronts[s].parent)] += subtree[s];
    }
    std::vector<std::size_t> order(count);
    std::iota(order.rbegin(), order.rend(), std::size_t(0));
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return subtree[a] > subtree[b]; });
    drawn.assign(count, false);
    for (std::size_t k = 0; k < std::min(count, most_fronts); ++k) drawn[order[k]] = true;
    left_out = count - std::min(count, most_fronts);
  }

  /// Every drawn leaf has the same space; a parent stands in the middle of its children's space.
  void spread(std::size_t count) {
    std::vector<double> leaves(count), first(count);
    for (std::size_t s = 0; s < count; ++s) {
      if (!drawn[s]) continue;
      leaves[s] = std::max(leaves[s], 1.0);
      if (fronts[s].parent >= 0) leaves[std::size_t(fronts[s].parent)] += leaves[s];
    }
    double all = 0;
    std::vector<double> taken(count);
    place.assign(count, 0);
    for (std::size_t s = count; s-- > 0;) {
      if (!drawn[s]) continue;
      double& next = fronts[s].parent >= 0 ? taken[std::size_t(fronts[s].parent)] : all;
      const double base = fronts[s].parent >= 0 ? first[std::size_t(fronts[s].parent)] : 0;
      first[s] = base + next;
      next += leaves[s];
      place[s] = first[s] + leaves[s] / 2;
    }
    for (double& x : place) x /= std::max(all, 1.0);
  }
};

/// From pale to dark blue with the logarithm of the columns.
std::string shade(double columns, double widest) {
  const double t = widest > 1 ? std::log(columns) / std::log(widest) : 1;
  const auto mix = [t](int pale, int dark) { return int(pale + t * (dark - pale)); };
  return fmt::format("#{:02x}{:02x}{:02x}", mix(0xa9, 0x0b), mix(0xcf, 0x3c), mix(0xe8, 0x6b));
}

}  // namespace

std::string tree_picture(const SparsePlan& plan, const std::string& title) {
  const auto levels = plan.level_summary();
  const double body = std::clamp(level_height * double(levels.size()), least_height, most_height);
  const double step = body / double(std::max<std::size_t>(levels.size(), 1));
  const auto height_of = [&](index_t level) { return top + body - (double(level) + 0.5) * step; };
  Svg svg(top + body + bottom, title);
  svg.text(width / 2, 22, title, "middle", "#222", 14);

  double most_per_level = 1, flops_per_level = 1;
  for (const auto& level : levels) {
    most_per_level = std::max(most_per_level, double(level.fronts));
    flops_per_level = std::max(flops_per_level, level.flops);
  }
  const double bar = std::min(step * 0.36, 8.0);
  const std::size_t every = std::size_t(std::ceil(14 / step));  // numbers that do not touch
  svg.text(bars_left, top - 22, "fronts, logarithmic", "start", grey, 11);
  svg.text(bars_left, top - 8, "operations", "start", green, 11);
  for (std::size_t l = 0; l < levels.size(); ++l) {
    const double y = height_of(index_t(l));
    if (l % every == 0) svg.text(bars_left - 8, y + 4, fmt::format("{}", l), "end", "#555", 11);
    svg.bar(bars_left, y - bar, bars_width * std::log1p(double(levels[l].fronts)) / std::log1p(most_per_level), bar,
            grey);
    svg.bar(bars_left, y, bars_width * levels[l].flops / flops_per_level, bar, green);
  }
  svg.text(bars_left - 8, top - 8, "level", "end", "#555", 11);

  const Layout layout(plan);
  const auto x_of = [&](std::size_t s) { return tree_left + layout.place[s] * (width - tree_left - tree_right); };
  double largest = 1, widest = 1;
  for (const auto& front : layout.fronts)
    largest = std::max(largest, front.flops), widest = std::max(widest, double(front.columns));
  for (std::size_t s = 0; s < layout.fronts.size(); ++s)
    if (const auto& front = layout.fronts[s]; layout.drawn[s] && front.parent >= 0) {
      const auto p = std::size_t(front.parent);
      svg.line(x_of(s), height_of(front.level), x_of(p), height_of(layout.fronts[p].level), "#bbb", 0.5);
    }
  for (std::size_t s = 0; s < layout.fronts.size(); ++s)
    if (const auto& front = layout.fronts[s]; layout.drawn[s])
      svg.circle(x_of(s), height_of(front.level),
                 std::max(least_radius, largest_radius * std::sqrt(front.flops / largest)),
                 shade(double(front.columns), widest),
                 fmt::format("{} columns, {} rows, {:.3g} flops", front.columns, front.rows, front.flops));
  const std::string left_out =
      layout.left_out > 0
          ? fmt::format("; {} fronts with the fewest operations below them are left out", layout.left_out)
          : "";
  svg.text(tree_left, top + body + 24,
           fmt::format("circles: area by operations, darker with more columns (up to {:.0f}){}", widest, left_out),
           "start", "#555", 11);
  return svg.done();
}

}  // namespace program
