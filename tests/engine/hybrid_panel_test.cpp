// dense::HybridPanel on an engine whose copies happen as late as they may: when somebody waits for its lane.
#include <dense/panel.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace trifactor::engine_test {
namespace {

using namespace core;

/// One lane for all. "Device" memory is the host's, too.
struct LateEngine {
  Arena scratch{host_memory_source()}, page_locked{host_memory_source()};
  std::vector<std::function<void()>> copies;

  Arena& arena() { return scratch; }
  Arena& pinned() { return page_locked; }
  LateEngine& side() { return *this; }
  void fork() {}
  void join() {}
  void begin(std::function<void()> copy) {
    if (!scratch.planning()) copies.push_back(std::move(copy));
  }
  void download(Items<double> A, double* host) {
    begin([=] {
      for (index_t j = 0; j < A.cols; ++j)
        for (index_t i = 0; i < A.rows; ++i) host[i + j * A.rows] = A.item(0)(i, j);
    });
  }
  void upload(Items<double> A, const double* host) {
    begin([=] {
      for (index_t j = 0; j < A.cols; ++j)
        for (index_t i = 0; i < A.rows; ++i) A.item(0)(i, j) = host[i + j * A.rows];
    });
  }
  void upload(int* target, const int* host, index_t n) {
    begin([=] { std::copy_n(host, n, target); });
  }
  void wait_for_copies() {
    for (const auto& copy : std::exchange(copies, {})) copy();
  }
};
struct Nobody {};

/// Doubles a panel of so many rows and columns, and makes info 7 if it `fails`.
void double_panel(LateEngine& e, std::vector<double>& entries, index_t rows, bool fails, int& info) {
  const index_t cols = index_t(entries.size()) / rows;
  Nobody host;
  dense::HybridPanel<LateEngine, Nobody, double> panel(e, host, rows * cols, 0);
  const auto window = one_matrix(entries.data(), rows, cols, rows);
  auto twice = [&](auto&, const auto& tile, Pivots<int>, int* panel_info, index_t) {
    for (index_t j = 0; j < cols; ++j)
      for (index_t i = 0; i < rows; ++i) tile.item(0)(i, j) *= 2;
    if (fails) *panel_info = 7;
  };
  panel.begin(window, {}, &info, 0, twice);
  panel.end(window, {}, &info, 0, twice);
}

TEST(HybridPanel, CopiesAreCompleteWhenItsMemoryIsGivenBack) {
  LateEngine e;
  std::vector<double> first(12, 1), second(12, 10);
  int first_info = 0, second_info = 0;
  double_panel(e, first, 4, true, first_info);
  double_panel(e, second, 4, false, second_info);  // in the same memory
  e.wait_for_copies();
  EXPECT_EQ(first, std::vector<double>(12, 2));
  EXPECT_EQ(second, std::vector<double>(12, 20));
  EXPECT_EQ(first_info, 7) << "a failure was lost";
  EXPECT_EQ(second_info, 0);
}

TEST(HybridPanel, AScratchQueryDoesNothing) {
  LateEngine e;
  const std::vector<double> given(12, 1);
  std::vector<double> entries = given;
  int info = 0;
  e.scratch.start_planning();
  double_panel(e, entries, 4, true, info);
  e.wait_for_copies();
  EXPECT_EQ(e.scratch.stop_planning(), 0u);
  EXPECT_EQ(entries, given);
  EXPECT_EQ(info, 0);
  EXPECT_FALSE(e.page_locked.has_room(1)) << "it has taken page-locked memory";
}

}  // namespace
}  // namespace trifactor::engine_test
