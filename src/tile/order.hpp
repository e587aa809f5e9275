// The order in which the persistent kernel works off a matrix, in macro tiles or in tiles; on the host, so that tests
// can walk it.
#pragma once

#include <core/scalar.hpp>

namespace trifactor::tile {

using namespace core;

/// A macro tile of 2 x 2 tiles, or a tile; rows and columns count either. Of the columns of macro tiles to the left of
/// one, those before `period` are subtracted first, cyclically from `start` on, and then the others.
struct Piece {
  bool is_macro_tile;
  int row, col;
  int period, start;
};

/// Macro tiles, and the tiles of those on the diagonal, in the order of their tickets: band after band of columns, row
/// by row, since the macro tiles of a row read the same strip. The triangle of the next band on the diagonal waits for
/// the rows beside it, which come first; so it comes when half of the blocks have drawn others: 3 % of the time was
/// waiting there. Strips of large matrices do not fit into the cache. Of a band of several columns, blocks therefore
/// begin where the others are: tickets are drawn at an even pace, and what lies left of the band before, which is
/// final, can be subtracted from any column on, round and round. The place is chosen by the ticket, not by the clock,
/// so that a sum has the same order in every run.
struct MacroTileOrder {
  int tiles, macro_tiles, band, blocks;
  int last = 0, first = 0, end = 0,
      next;        // the band before is [last, first), this one [first, end), the next [end, next)
  int before = 1;  // tickets before this band's

  TF_HD MacroTileOrder(int tiles_, int band_, int blocks_)
      : tiles(tiles_), macro_tiles((tiles_ + 1) / 2), band(band_), blocks(blocks_), next(end_of(0)) {}
  /// One column at a time where a band would be fewer pieces than there are blocks.
  TF_HD int end_of(int column) const {
    return min(macro_tiles, column + ((macro_tiles - column) * band > blocks ? band : 1));
  }
  /// Tiles of a macro tile on the diagonal that are pieces: those of the first one belong to the chain.
  TF_HD int on_diagonal(int I) const { return I == 0 ? 0 : 2 * I + 1 < tiles ? 3 : 1; }
  /// Those of column c in the triangle of the next band.
  TF_HD int in_triangle(int c) const { return on_diagonal(c) + next - c - 1; }

  /// False when there are no more. Tickets must not become less.
  TF_HD bool find(int ticket, Piece& piece) {
    for (;;) {
      const int width = end - first, rows = (macro_tiles - end) * width,
                head = min(rows, (next - end) * width + blocks / 2);
      const int period = first - last > 1 ? last : 0, start = ticket % blocks * period / blocks;
      int triangle = 0, t = ticket - before;
      for (int c = end; c < next; ++c) triangle += in_triangle(c);
      if (t >= head && t < head + triangle) {
        int c = end;
        for (t -= head; t >= in_triangle(c); ++c) t -= in_triangle(c);
        const int own = on_diagonal(c);
        if (t < own)
          piece = {false, 2 * c + (t + 1) / 2, 2 * c + t / 2, 0, 0};
        else
          piece = {true, c + 1 + t - own, c, period, start};
        return true;
      }
      if (t >= head) t -= triangle;
      if (t < rows) {
        piece = {true, end + t / width, first + t % width, period, start};
        return true;
      }
      if (end >= macro_tiles) return false;
      before += rows + triangle;
      last = first, first = end, end = next, next = end_of(next);
    }
  }
};

struct TileIndex {
  int row, col;
};

/// Tiles in the order of their tickets. Column j: first those that lead to the next diagonal tile, (j+2, j), (j+2,
/// j+1), (j+2, j+2), then what lies below. Tickets come in ascending order, and from 1 on.
struct TileOrder {
  int tiles;
  int j = 0, before = 1;  // tickets of the columns before j

  TF_HD explicit TileOrder(int tile_rows) : tiles(tile_rows) {}
  TF_HD int leading(int column) const { return tiles - column <= 2 ? 0 : 3; }
  TF_HD int below(int column) const { return max(0, tiles - column - 3); }
  TF_HD int tickets(int column) const { return leading(column) + below(column); }
  TF_HD int tickets() const {
    const int columns = max(0, tiles - 2);
    return 1 + columns * leading(0) + columns * (columns - 1) / 2;
  }
  /// Whether there is such a ticket.
  TF_HD bool find(int t) {
    while (j < tiles && t >= before + tickets(j)) before += tickets(j), ++j;
    return j < tiles;
  }
  /// The tile of a ticket that was found.
  TF_HD TileIndex tile(int t) const {
    const int place = t - before, lower = place - leading(j);
    return {lower < 0 ? j + 2 : j + 3 + lower, lower < 0 ? j + place : j};
  }
};

/// Some matrices that are worked on alike: their chains, then column after column of each. Tickets come in ascending
/// order.
struct GroupOrder {
  int members, before;          // before: tickets before those of this column
  int member = 0, column = -1;  // column -1 is the chain

  TF_HD GroupOrder(int members_, int before_) : members(members_), before(before_) {}
  /// Finds the member and the column of ticket t, which the group has; tickets(m, j): of column j of member m.
  template <class Tickets>
  TF_HD void find(int t, Tickets tickets) {
    for (int own; t >= before + (own = column < 0 ? 1 : tickets(member, column)); before += own)
      if (++member == members) member = 0, ++column;
  }
};

}  // namespace trifactor::tile
