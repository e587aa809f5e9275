// LU with partial pivoting of many small matrices side by side. Compiled once for each instruction set; interleaved.cpp
// says what is allowed here.
#include <host/interleaved.hpp>
#include <host/interleaved_lanes.hpp>
#include <host/interleaved_solve.hpp>

namespace trifactor::host::TRIFACTOR_ISA {
namespace {

/// LU of W items, left-looking, by block columns of B. Rows stay where they are: each lane has its own order of them,
/// and items are written in that order at the end. Until then they are as they were, so that one which needs care can
/// be left alone. One that is not finite has factors that are not finite, too.
template <class T>
struct RowOrderLu : Lanes<T> {
  using typename Lanes<T>::R;
  using typename Lanes<T>::V;
  using typename Lanes<T>::Entry;
  using Lanes<T>::parts, Lanes<T>::W, Lanes<T>::lanes, Lanes<T>::B, Lanes<T>::H;
  using Bits = decltype(V{} < V{});
  static constexpr int row_reals = B * parts * W;   // from a row of a block column to the next
  static constexpr R done = R(1 << 20);             // the place of a row that was a pivot: below all others

  Operand<T, true> A;
  index_t n, padded;     // the largest order, and that as a multiple of B
  Entry* factors;        // L and U in block columns, row by row
  Entry* multipliers;    // L, and zeros where a row was a pivot before the column's
  Entry* corners;        // the unit triangles of the pivot rows of each block column, B x B
  V* place;              // of each row: where interchanges would have moved it
  int* row_at;           // the row at each place, lane by lane
  int* partner;          // the place that was exchanged with that of column k, lane by lane
  int* pivot_offset;     // of the pivot row of column k, within a block column
  V zero_at, check;      // the first zero pivot, counted from 1; NaN where an item needs care

  static constexpr index_t padding(index_t n) { return core::ceil_div(n, B) * B; }
  static std::size_t scratch_bytes(index_t n) {
    const index_t p = padding(n);
    return std::size_t(vector_bytes + (2 * p + B) * p * index_t(sizeof(Entry)) + p * index_t(sizeof(V)) +
                       3 * p * W * index_t(sizeof(int)));
  }
  void take(const core::Items<T>& items_of, const index_t* items, int size, void* scratch) {
    A.take(items_of, items, size);
    n = A.rows, padded = padding(n);
    const auto address = (reinterpret_cast<std::uintptr_t>(scratch) + vector_bytes - 1) / vector_bytes * vector_bytes;
    factors = reinterpret_cast<Entry*>(address);
    multipliers = factors + padded * padded;
    corners = multipliers + padded * padded;
    place = reinterpret_cast<V*>(corners + B * padded);
    row_at = reinterpret_cast<int*>(place + padded);
    partner = row_at + padded * W, pivot_offset = partner + padded * W;
  }

  INLINE static V modulus(V a) {
    constexpr auto all_but_sign = sizeof(R) == 8 ? 0x7fffffffffffffff : 0x7fffffff;
    return V(Bits(a) & (Bits{} + decltype(Bits{}[0] + 0)(all_but_sign)));
  }
  INLINE static V abs1(const Entry& a) {
    if constexpr (parts == 2) return modulus(a.part[0]) + modulus(a.part[1]);
    else return modulus(a.part[0]);
  }
  INLINE static Entry chosen(Bits where, const Entry& a, const Entry& b) {
    Entry c;
    UNROLL for (int p = 0; p < parts; ++p) c.part[p] = where ? a.part[p] : b.part[p];
    return c;
  }
  /// Column s of each lane's row, in a block column. Plain loads: AVX-512's gather takes 1.2 times as long on a Xeon.
  INLINE static Entry gather(const Entry* C, int s, const int* offset) {
    Entry a;
    UNROLL for (int p = 0; p < parts; ++p) {
      const R* from = reinterpret_cast<const R*>(C + s) + p * W;
      V x;
      UNROLL for (int l = 0; l < W; ++l) x[l] = from[offset[l]];
      a.part[p] = x;
    }
    return a;
  }

  void load(int u, index_t j) {
    Entry* C = factors + j * padded;
    const index_t common = A.common_rows[u];
    for (index_t i = 0; i < n; i += B)
      if (core::max(i, j) + B <= common) load_block(u, C + i * B, i, j);
      else load_edge(u, C + i * B, i, j);
  }
  NOINLINE void load_block(int u, Entry* C, index_t i, index_t j) const {
    Entry c[B][B];
    A.template move_whole<true, false, true>(u, c, i, j);
    UNROLL for (int r = 0; r < B; ++r)
      UNROLL for (int s = 0; s < B; ++s) C[r * B + s] = c[r][s];
  }
  /// A block that reaches beyond some items, where the identity lies.
  NOINLINE void load_edge(int u, Entry* C, index_t i, index_t j) const {
    for (int r = 0; r < B; ++r)
      for (int s = 0; s < B; ++s)
        UNROLL for (int p = 0; p < parts; ++p) C[r * B + s].part[p] = at_edge(u, i + r, j + s, p);
  }
  INLINE V at_edge(int u, index_t i, index_t j, int p) const {
    V x = V{} + R(i == j && p == 0);
    if (core::max(i, j) >= n) return x;
    const bool common = core::max(i, j) < A.common_rows[u];
    UNROLL for (int l = 0; l < W; ++l) {
      const int m = u * W + l;
      if (common || core::max(i, j) < A.rows_of[m]) x[l] = A.data[m][j * A.stride[m] + i * parts + p];
    }
    return x;
  }

  /// Block column j by block column k to its left.
  NOINLINE void update(index_t j, index_t k) {
    Entry* C = factors + j * padded;
    const Entry *L = multipliers + k * padded, *corner = corners + k * B;
    UNROLL for (int h = 0; h < B; h += H) {
      Entry u[B][H];
      UNROLL for (int q = 0; q < B; ++q)
        UNROLL for (int s = 0; s < H; ++s) {
          u[q][s] = gather(C, h + s, pivot_offset + (k + q) * W);
          UNROLL for (int r = 0; r < q; ++r) Solver<T>::subtract_product(u[q][s], corner[q * B + r], u[r][s]);
        }
      for (index_t i = 0; i < n; ++i)
        UNROLL for (int s = 0; s < H; ++s) {
          Entry c = C[i * B + h + s];
          UNROLL for (int q = 0; q < B; ++q) Solver<T>::subtract_product(c, L[i * B + q], u[q][s]);
          C[i * B + h + s] = c;
        }
    }
  }

  /// Chooses the pivot of column k, that is column q of C: the uppermost of the largest.
  INLINE void choose(index_t k, int q, const Entry* C, V best) {
    V first = V{} + done;
    for (index_t i = 0; i < n; ++i) first = ((abs1(C[i * B + q]) == best) & (place[i] < first)) ? place[i] : first;
    R* const places = reinterpret_cast<R*>(place);
    for (int l = 0; l < W; ++l) {
      int* const rows = row_at + l * padded;
      const int at = first[l] < R(n) ? int(first[l]) : int(k);   // a column of NaN has none
      const int row = rows[at], other = rows[k];
      rows[at] = other, rows[k] = row;
      places[other * W + l] = R(at), places[row * W + l] = done;
      partner[l * padded + k] = at, pivot_offset[k * W + l] = row * row_reals + l;
    }
  }
  /// Column k, that is column Q of C, when it is up to date. `best` is its largest modulus; returns that of the next.
  template <int Q> INLINE V eliminate(index_t k, Entry* C, Entry* L, V best) {
    choose(k, Q, C, best);
    Entry u[B];   // the pivot row
    UNROLL for (int r = Q; r < B; ++r) u[r] = gather(C, r, pivot_offset + k * W);
    const Bits zero = best == 0;
    zero_at = (zero & (zero_at == 0)) ? V{} + R(k + 1) : zero_at;
    V extreme{};
    const Entry pivot = chosen(zero, Entry{V{} + 1}, u[Q]);   // a column of zeros stays as it is
    const Entry inverse = Solver<T>::template reciprocal<Diagonal::General>(pivot, extreme);
    check = extreme > 0 ? V{} + core::Limits<R>::nan : check;
    best = V{};
    for (index_t i = 0; i < n; ++i) {
      const Bits below = place[i] < done;
      Entry* row = C + i * B;
      const Entry l = chosen(below, Solver<T>::product(row[Q], inverse), Entry{});
      L[i * B + Q] = l;
      row[Q] = chosen(below, l, row[Q]);
      UNROLL for (int r = Q + 1; r < B; ++r) Solver<T>::subtract_product(row[r], l, u[r]);
      if constexpr (Q + 1 < B) {
        const V size = below ? abs1(row[Q + 1]) : V{};
        best = size > best ? size : best;
      }
    }
    return best;
  }
  NOINLINE void panel(index_t k) {
    Entry *C = factors + k * padded, *L = multipliers + k * padded;
    V best{}, not_finite[B] = {};
    for (index_t i = 0; i < n; ++i) {
      const V size = place[i] < done ? abs1(C[i * B]) : V{};
      best = size > best ? size : best;
    }
    best = eliminate<0>(k, C, L, best);
    if (k + 1 < n) best = eliminate<1>(k + 1, C, L, best);
    if (k + 2 < n) best = eliminate<2>(k + 2, C, L, best);
    if (k + 3 < n) eliminate<3>(k + 3, C, L, best);
    for (index_t i = 0; i < n; ++i)
      UNROLL for (int s = 0; s < B; ++s)
        UNROLL for (int p = 0; p < parts; ++p) not_finite[s] += C[i * B + s].part[p] * 0;   // becomes NaN
    UNROLL for (int s = 0; s < B; ++s) check += not_finite[s];
    if (k + B < n)
      UNROLL for (int q = 1; q < B; ++q)
        UNROLL for (int r = 0; r < q; ++r) corners[k * B + q * B + r] = gather(L, r, pivot_offset + (k + q) * W);
  }
  static_assert(B == 4, "as panel has it");

  void factor(int u) {
    zero_at = check = V{};
    for (index_t i = 0; i < n; ++i) {
      place[i] = V{} + R(i);
      for (int l = 0; l < W; ++l) row_at[l * padded + i] = int(i);
    }
    for (index_t j = 0; j < n; j += B) {
      load(u, j);
      for (index_t k = 0; k < j; k += B) update(j, k);
      panel(j);
    }
  }
  /// Writes vector u to its items, but for lanes that need care.
  NOINLINE void store(int u, const core::Pivots<int>& pivots, const index_t* items, int size) {
    const int used = core::min(W, size - u * W);
    for (int l = 0; l < used; ++l) {
      if (check[l] != 0) continue;
      int *rows = row_at + l * padded, *own_pivots = pivots.item(items[u * W + l]);
      for (index_t i = 0; i < A.rows_of[u * W + l]; ++i)
        own_pivots[i] = partner[l * padded + i] + 1, rows[i] = rows[i] * row_reals + l;
    }
    for (index_t j = 0; j < n; ++j)
      for (int l = 0; l < used; ++l) {
        const int m = u * W + l;
        const index_t own = A.rows_of[m];
        if (check[l] != 0 || j >= own) continue;
        const int* offset = row_at + l * padded;
        const R* from = reinterpret_cast<const R*>(factors + j / B * B * padded + j % B);
        R* to = A.data[m] + j * A.stride[m];
        index_t i = 0;
        for (; i + B <= own; i += B) store_rows<B>(to + i * parts, from, offset + i);
        for (; i < own; ++i) store_rows<1>(to + i * parts, from, offset + i);
      }
  }
  template <int M> INLINE static void store_rows(R* to, const R* from, const int* offset) {
    R x[M * parts];
    UNROLL for (int r = 0; r < M; ++r)
      UNROLL for (int p = 0; p < parts; ++p) x[r * parts + p] = from[offset[r] + p * W];
    UNROLL for (int e = 0; e < M * parts; ++e) to[e] = x[e];
  }
};

template <class T>
int lu(const core::Items<T>& A, const core::Pivots<int>& pivots, const index_t* items, int size, int* info,
       index_t* left_out, void* scratch) {
  RowOrderLu<T> group;
  int left = 0;
  for (; size > 0; items += group.lanes, size -= group.lanes) {
    group.take(A, items, size, scratch);
    for (int u = 0; u < group.A.vectors; ++u) {
      group.factor(u);
      group.store(u, pivots, items, size);
      for (int l = 0; l < group.W && u * group.W + l < size; ++l) {
        const index_t item = items[u * group.W + l];
        info[item] = int(group.zero_at[l]);
        if (group.check[l] != 0) left_out[left++] = item;
      }
    }
  }
  return left;
}

template <class T>
constexpr InterleavedLuTable<T> table = {Lanes<T>::lanes, RowOrderLu<T>::scratch_bytes, lu<T>};

}  // namespace

template <class T> const InterleavedLuTable<T>& interleaved_lu_table() { return table<T>; }

#define INSTANTIATE(T) template const InterleavedLuTable<T>& interleaved_lu_table<T>();
TRIFACTOR_FOR_EACH_SCALAR(INSTANTIATE)

}  // namespace trifactor::host::TRIFACTOR_ISA
