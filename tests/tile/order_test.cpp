// The order of squares in the persistent kernel, walked ticket by ticket: every piece comes once, and after whatever it
// waits for. A kernel in which that is so cannot hang, however few of its blocks run.
#include <tile/order.hpp>

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

namespace trifactor::tile {
namespace {

struct Walk {
  int tiles, squares;
  std::vector<std::vector<bool>> drawn;  // squares
  std::set<std::pair<int, int>> tile;
  int diagonal = 0;  // the chain has what it needs for so many squares on the diagonal

  explicit Walk(int tiles_) : tiles(tiles_), squares((tiles_ + 1) / 2), drawn(squares, std::vector<bool>(squares)) {}
  /// Whether the chain can come to the end of square (J, J).
  bool chain(int J) {
    const auto has = [&](int row, int col) { return row >= tiles || tile.count({row, col}) > 0; };
    for (int I = diagonal; I <= J; ++I, ++diagonal)
      if (I > 0 && !(drawn[I][I - 1] && has(2 * I, 2 * I) && has(2 * I + 1, 2 * I) && has(2 * I + 1, 2 * I + 1)))
        return false;
    return true;
  }
  /// Whether columns of squares before J are solved, or will be by tickets that were drawn, in rows I and J.
  bool solved(int I, int J) {
    for (int k = 0; k < J; ++k)
      if (!drawn[I][k] || (I != J && !drawn[J][k])) return false;
    return J == 0 || chain(J - 1);
  }
};

void walk(int tiles, int band, int blocks) {
  SCOPED_TRACE(testing::Message() << "tiles " << tiles << ", band " << band << ", blocks " << blocks);
  Walk w(tiles);
  SquareOrder order(tiles, band, blocks);
  Piece p;
  int ticket = 1, turned = 0;
  for (; order.find(ticket, p); ++ticket) {
    SCOPED_TRACE(testing::Message() << (p.square ? "square " : "tile ") << p.row << ' ' << p.col);
    if (p.square) {
      ASSERT_TRUE(0 <= p.col && p.col < p.row && p.row < w.squares);
      ASSERT_FALSE(w.drawn[p.row][p.col]);
      ASSERT_TRUE(w.solved(p.row, p.col) && w.chain(p.col));
      ASSERT_TRUE(0 <= p.period && p.period <= p.col && 0 <= p.start && p.start < max(1, p.period));
      w.drawn[p.row][p.col] = true;
      turned += p.period > 0;
    } else {  // (2 I, 2 I), (2 I + 1, 2 I) or (2 I + 1, 2 I + 1)
      const int I = p.row / 2;
      ASSERT_TRUE(I > 0 && p.row < tiles && p.col <= p.row && p.col / 2 == I);
      ASSERT_TRUE(w.tile.insert({p.row, p.col}).second);
      ASSERT_TRUE(w.solved(I, I));
    }
  }
  ASSERT_TRUE(w.chain(w.squares - 1));  // nothing is missing on the diagonal,
  for (int I = 0; I < w.squares; ++I)   // nor left of it
    for (int J = 0; J < I; ++J) ASSERT_TRUE(w.drawn[I][J]);
  ASSERT_FALSE(order.find(ticket + 5, p));
  ASSERT_TRUE(band > 1 || turned == 0);
}

TEST(SquareOrder, DrawsEveryPieceOnceAndAfterWhatItWaitsFor) {
  for (int band : {1, 2, 3, 4, 6, 8})
    for (int blocks : {1, 2, 20, 131})
      for (int tiles = 1; tiles < 150; tiles = tiles < 30 ? tiles + 1 : tiles * 7 / 5) walk(tiles, band, blocks);
}

TEST(SquareOrder, BandsThatAreManyPiecesBeginWhereOthersAre) {
  SquareOrder order(320, 4, 131);
  Piece p;
  std::set<int> starts;
  for (int ticket = 1; order.find(ticket, p); ++ticket)
    if (p.period == 40) starts.insert(p.start);
  EXPECT_EQ(starts.size(), 40u);
}

}  // namespace
}  // namespace trifactor::tile
