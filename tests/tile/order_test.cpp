// The orders of the persistent kernel, walked ticket by ticket: every piece comes once. And simulated: with the chain
// and any number of other blocks, one included, everything ends.
#include <tile/order.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <utility>
#include <vector>

namespace trifactor::tile {
namespace {

struct Walk {
  int tiles, macro_tiles;
  std::vector<std::vector<bool>> drawn;  // macro tiles
  std::set<std::pair<int, int>> tile;
  int diagonal = 0;  // the chain has what it needs for so many macro tiles on the diagonal

  explicit Walk(int tiles_)
      : tiles(tiles_), macro_tiles((tiles_ + 1) / 2), drawn(macro_tiles, std::vector<bool>(macro_tiles)) {}
  /// Whether the chain can come to the end of macro tile (J, J).
  bool chain(int J) {
    const auto has = [&](int row, int col) { return row >= tiles || tile.count({row, col}) > 0; };
    for (int I = diagonal; I <= J; ++I, ++diagonal)
      if (I > 0 && !(drawn[I][I - 1] && has(2 * I, 2 * I) && has(2 * I + 1, 2 * I) && has(2 * I + 1, 2 * I + 1)))
        return false;
    return true;
  }
  /// Whether columns of macro tiles before J are solved, or will be by tickets that were drawn, in rows I and J.
  bool solved(int I, int J) {
    for (int k = 0; k < J; ++k)
      if (!drawn[I][k] || (I != J && !drawn[J][k])) return false;
    return J == 0 || chain(J - 1);
  }
};

void walk(int tiles, int band, int blocks) {
  SCOPED_TRACE(testing::Message() << "tiles " << tiles << ", band " << band << ", blocks " << blocks);
  Walk w(tiles);
  MacroTileOrder order(tiles, band, blocks);
  Piece p;
  int ticket = 1, turned = 0;
  for (; order.find(ticket, p); ++ticket) {
    SCOPED_TRACE(testing::Message() << (p.is_macro_tile ? "macro tile " : "tile ") << p.row << ' ' << p.col);
    if (p.is_macro_tile) {
      ASSERT_TRUE(0 <= p.col && p.col < p.row && p.row < w.macro_tiles);
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
  ASSERT_TRUE(w.chain(w.macro_tiles - 1));  // nothing is missing on the diagonal,
  for (int I = 0; I < w.macro_tiles; ++I)   // nor left of it
    for (int J = 0; J < I; ++J) ASSERT_TRUE(w.drawn[I][J]);
  ASSERT_FALSE(order.find(ticket + 5, p));
  ASSERT_TRUE(band > 1 || turned == 0);
}

TEST(MacroTileOrder, DrawsEveryPieceOnceAndAfterWhatItWaitsFor) {
  for (int band : {1, 2, 3, 4, 6, 8})
    for (int blocks : {1, 2, 20, 131})
      for (int tiles = 1; tiles < 150; tiles = tiles < 30 ? tiles + 1 : tiles * 7 / 5) walk(tiles, band, blocks);
}

/// A matrix whose pieces are worked on by a chain and some workers. Each takes a step whenever what it waits for is
/// there; steps and waits are those of the kernel.
struct Simulated {
  int tiles;
  std::vector<int> final;                      // of each tile row: tiles from the left
  std::vector<bool> sent_last, sent_diagonal;  // of each tile row: to the chain
  std::vector<bool> factored;                  // of each column: all of its diagonal tile
  int chain = 0;                               // the diagonal tile that the chain is at
  bool waits_before_publishing;                // for the letters of the next row, which would be wrong

  explicit Simulated(int tiles_, bool waits_first = false)
      : tiles(tiles_),
        final(tiles_ + 2),
        sent_last(tiles_ + 2),
        sent_diagonal(tiles_ + 2),
        factored(tiles_ + 2),
        waits_before_publishing(waits_first) {}

  bool chain_ended() const { return chain == tiles; }
  /// Whether the chain came further.
  bool step_chain() {
    if (chain_ended()) return false;
    const int k = chain, next = k + 1;
    const bool here = k == 0 || next == tiles || (sent_last[next] && sent_diagonal[next]);
    if (!here && (waits_before_publishing || factored[k])) return false;
    factored[k] = true;
    if (!here) return true;
    if (next < tiles) ++final[next];
    ++chain;
    return true;
  }
  int final_in(int row) const { return final[min(row, tiles - 1)]; }
  void send(int i, int j) { (i == j ? sent_diagonal : sent_last)[i] = true; }

  /// Whether a tile is done, which happens in one step.
  bool step_tile(int i, int j) {
    const int wanted = i == j ? j - 1 : j;
    if (final_in(i) < wanted || final_in(j) < wanted) return false;
    if (j >= i - 1) return send(i, j), true;
    if (!factored[j]) return false;
    ++final[i];
    return true;
  }
  /// The next of the four waits of a macro tile, of which `phase` are over.
  bool step_macro_tile(const Piece& p, int& phase) {
    const int i = 2 * p.row, j = 2 * p.col;
    const bool near = p.row == p.col + 1;
    switch (phase) {
      case 0: {
        const int least = min(min(final_in(i), final_in(i + 1)), min(final_in(j), final_in(j + 1)));
        return least >= j && ++phase;
      }
      case 1:
        return factored[j] && ++phase;
      case 2:
        if (final[j + 1] < j + 1) return false;
        ++final[i], ++final[i + 1];
        if (near) send(i, i - 1);
        return ++phase;
      default:
        if (!factored[j + 1]) return false;
        if (!near) ++final[i];
        ++final[i + 1];
        return ++phase;
    }
  }
};

/// Whether the chain and so many workers end. draw(ticket) gives a function that takes a step of its piece, says
/// whether it did, and sets `done`; an empty one: there are no more tickets.
using Work = std::function<bool(bool& done)>;
bool ends(int workers, const std::function<bool()>& step_chain, const std::function<bool()>& chain_ended,
          const std::function<Work(int worker)>& draw) {
  std::vector<Work> work(workers);
  std::vector<bool> idle(workers), out(workers);
  idle.assign(workers, true);
  for (bool progress = true; progress;) {
    progress = false;
    while (step_chain()) progress = true;
    for (int w = 0; w < workers; ++w) {
      while (!out[w]) {
        if (idle[w]) {
          work[w] = draw(w);
          out[w] = !work[w], idle[w] = false, progress = true;
          continue;
        }
        bool done = false;
        if (!work[w](done)) break;
        idle[w] = done, progress = true;
      }
    }
  }
  for (int w = 0; w < workers; ++w)
    if (!out[w]) return false;
  return chain_ended();
}

bool macro_tiles_end(int tiles, int band, int grid, int workers, bool waits_first = false) {
  Simulated s(tiles, waits_first);
  std::vector<MacroTileOrder> order(workers, MacroTileOrder(tiles, band, grid - 1));
  int ticket = 1;
  return ends(
      workers, [&] { return s.step_chain(); }, [&] { return s.chain_ended(); },
      [&](int w) -> Work {
        Piece p;
        if (!order[w].find(ticket++, p)) return {};
        if (!p.is_macro_tile) return [&s, p](bool& done) { return done = s.step_tile(p.row, p.col); };
        return [&s, p, phase = 0](bool& done) mutable {
          const bool did = s.step_macro_tile(p, phase);
          done = phase == 4;
          return did;
        };
      });
}

bool tiles_end(int tiles, int workers) {
  Simulated s(tiles);
  std::vector<TileOrder> order(workers, TileOrder(tiles));
  int ticket = 1;
  return ends(
      workers, [&] { return s.step_chain(); }, [&] { return s.chain_ended(); },
      [&](int w) -> Work {
        const int t = ticket++;
        if (!order[w].find(t)) return {};
        return [&s, p = order[w].tile(t)](bool& done) { return done = s.step_tile(p.row, p.col); };
      });
}

/// The items of a list, `together` at a time: blocks draw chains and pieces alike.
bool list_ends(const std::vector<int>& tiles, int together, int blocks) {
  std::vector<Simulated> s(tiles.begin(), tiles.end());
  int next = 0;
  return ends(
      blocks, [] { return false; }, [] { return true; },
      [&](int) -> Work {
        const int t = next++;
        for (int k = 0, before = 0; k < int(s.size()); k += together) {
          const int members = min(together, int(s.size()) - k);
          int after = before;
          for (int m = 0; m < members; ++m) after += TileOrder(tiles[k + m]).tickets();
          if (t >= after) {
            before = after;
            continue;
          }
          GroupOrder group(members, before);
          group.find(t, [&](int m, int j) { return TileOrder(tiles[k + m]).tickets(j); });
          Simulated& item = s[k + group.member];
          if (group.column < 0)
            return [&item](bool& done) {
              const bool did = item.step_chain();
              done = item.chain_ended();
              return did;
            };
          TileOrder order(item.tiles);
          order.j = group.column, order.before = group.before;
          return [&item, p = order.tile(t)](bool& done) { return done = item.step_tile(p.row, p.col); };
        }
        return {};
      });
}

TEST(MacroTileOrder, EndsHoweverFewBlocksRun) {
  for (int band : {1, 2, 4})
    for (int grid : {2, 20, 132})
      for (int tiles : {1, 2, 3, 4, 5, 8, 13, 40, 71, 94, 150})
        for (int workers : {1, 2, 3, 11, 71, 131}) {
          if (workers >= grid || (tiles > 100 && workers > 2)) continue;
          ASSERT_TRUE(macro_tiles_end(tiles, band, grid, workers))
              << "tiles " << tiles << ", band " << band << ", grid " << grid << ", workers " << workers;
        }
}

TEST(MacroTileOrder, ChainThatWaitsBeforeItPublishesHangs) {
  EXPECT_FALSE(macro_tiles_end(94, 1, 132, 11, true));
  EXPECT_TRUE(macro_tiles_end(94, 1, 132, 71, true));
}

TEST(TileOrder, DrawsEveryTileOnce) {
  for (int tiles = 1; tiles < 40; ++tiles) {
    TileOrder order(tiles);
    std::set<std::pair<int, int>> drawn;
    int ticket = 1;
    for (; order.find(ticket); ++ticket) {
      const TileIndex p = order.tile(ticket);
      ASSERT_TRUE(2 <= p.row && p.row < tiles && 0 <= p.col && p.col <= p.row);
      ASSERT_TRUE(drawn.insert({p.row, p.col}).second) << p.row << ' ' << p.col;
    }
    ASSERT_EQ(ticket, order.tickets());
    for (int i = 2; i < tiles; ++i)
      for (int j = 0; j <= i; ++j) ASSERT_EQ(drawn.count({i, j}), 1u) << tiles << ": " << i << ' ' << j;
  }
}

TEST(TileOrder, EndsHoweverFewBlocksRun) {
  for (int tiles : {1, 2, 3, 4, 5, 8, 13, 32, 71})
    for (int workers : {1, 2, 3, 11, 131})
      ASSERT_TRUE(tiles_end(tiles, workers)) << "tiles " << tiles << ", workers " << workers;
}

TEST(GroupOrder, EndsWithOneBlockMoreThanChains) {
  for (int together : {1, 2, 3})
    for (int blocks : {2, 3, 4, 12}) {
      const bool ended = list_ends({7, 3, 1, 9, 2, 8, 5}, together, blocks);
      if (blocks > together) { EXPECT_TRUE(ended) << "together " << together << ", blocks " << blocks; }
    }
  EXPECT_FALSE(list_ends({9, 8, 7}, 2, 2));
}

TEST(MacroTileOrder, BandsThatAreManyPiecesBeginWhereOthersAre) {
  MacroTileOrder order(320, 4, 131);
  Piece p;
  std::set<int> starts;
  for (int ticket = 1; order.find(ticket, p); ++ticket)
    if (p.period == 40) starts.insert(p.start);
  EXPECT_EQ(starts.size(), 40u);
}

}  // namespace
}  // namespace trifactor::tile
