// Compiled once for each instruction set, with TRIFACTOR_ISA naming it. All but the table is in an unnamed namespace,
// and no function of a header is called that the compiler could emit: the linker must not share AVX code with others.
#include <host/interleaved.hpp>
#include <host/interleaved_lanes.hpp>
#include <host/interleaved_solve.hpp>

namespace trifactor::host::TRIFACTOR_ISA {
namespace {

/// Cholesky of a group.
template <class T>
struct Group : Lanes<T> {
  using typename Lanes<T>::R;
  using typename Lanes<T>::V;
  using typename Lanes<T>::Entry;
  using Lanes<T>::parts, Lanes<T>::W, Lanes<T>::U, Lanes<T>::lanes, Lanes<T>::B, Lanes<T>::H;
  using Lanes<T>::panel, Lanes<T>::scale;

  Operand<T, true> A;
  Entry* L[U];       // 1 / diagonal in place of the diagonal
  V inverse[U][B];   // 1 / diagonal of the present block column
  V check[U];        // finite as long as all pivots are good

  /// c -= a conj(b). Every entry of L is made of such steps, in the order of the columns, and one product with an
  /// inverse, in whichever block it lies: its bits depend neither on n nor on the other lanes.
  INLINE static void subtract_product(Entry& c, const Entry& a, const Entry& b) {
    c.part[0] -= a.part[0] * b.part[0];
    if constexpr (parts == 2) {
      c.part[0] -= a.part[1] * b.part[1];
      c.part[1] -= a.part[1] * b.part[0];
      c.part[1] += a.part[0] * b.part[1];
    }
  }

  /// Updates the C x C block at (j, j) by the columns before it and factors it, both vectors at once.
  template <int C> NOINLINE void diagonal_block(index_t j) {
    Entry c[U][C][C];
    const auto pivot = [&](int u, int s) INLINED {
      V& d = c[u][s][s].part[0];
      d = square_root(d);
      inverse[u][s] = 1 / d;
      check[u] += d + inverse[u][s];   // a bad pivot gives NaN or infinity here, and its lane goes on with that
      if constexpr (parts == 2) c[u][s][s].part[1] = V{};
    };
    UNROLL for (int u = 0; u < U; ++u) {
      A.template move<true, true>(u, c[u], j, j);
      const Entry* P = panel(L[u], j);
      for (index_t k = 0; k < j; ++k)
        UNROLL for (int r = 0; r < C; ++r)
          UNROLL for (int s = 0; s <= r; ++s) subtract_product(c[u][r][s], P[k * B + r], P[k * B + s]);
      pivot(u, 0);
    }
    UNROLL for (int s = 0; s + 1 < C; ++s)
      UNROLL for (int u = 0; u < U; ++u) {
        UNROLL for (int r = s + 1; r < C; ++r) {
          scale(c[u][r][s], inverse[u][s]);
          UNROLL for (int q = s + 1; q <= r; ++q) subtract_product(c[u][r][q], c[u][r][s], c[u][q][s]);
        }
        pivot(u, s + 1);
      }
    UNROLL for (int u = 0; u < U; ++u) {
      A.template move<false, true>(u, c[u], j, j);
      Entry* P = panel(L[u], j) + j * B;
      UNROLL for (int r = 0; r < C; ++r) {
        UNROLL for (int s = 0; s < r; ++s) P[s * B + r] = c[u][r][s];
        P[r * B + r] = {inverse[u][r]};   // as a solve wants it
      }
    }
  }

  /// The M x B block at (i, j), below the diagonal block of its columns.
  template <int M> NOINLINE void block_below(int u, index_t i, index_t j) {
    Entry c[M][B];
    Entry* P = panel(L[u], i - i % B) + i % B;
    const Entry* Q = panel(L[u], j);
    A.template move<true, false>(u, c, i, j);
    UNROLL for (int h = 0; h < B; h += H)
      for (index_t k = 0; k < j; ++k)
        UNROLL for (int r = 0; r < M; ++r)
          UNROLL for (int s = h; s < h + H; ++s) subtract_product(c[r][s], P[k * B + r], Q[k * B + s]);
    P += j * B, Q += j * B;
    UNROLL for (int s = 0; s < B; ++s)
      UNROLL for (int r = 0; r < M; ++r) {
        UNROLL for (int q = 0; q < s; ++q) subtract_product(c[r][s], c[r][q], Q[q * B + s]);
        scale(c[r][s], inverse[u][s]);
      }
    A.template move<false, false>(u, c, i, j);
    UNROLL for (int s = 0; s < B; ++s)
      UNROLL for (int r = 0; r < M; ++r) P[s * B + r] = c[r][s];
  }

  void block_column(index_t j) {
    switch (A.rows - j) {
      case 1: return diagonal_block<1>(j);
      case 2: return diagonal_block<2>(j);
      case 3: return diagonal_block<3>(j);
    }
    diagonal_block<B>(j);
    for (int u = 0; u < A.vectors; ++u) {
      index_t i = j + B;
      for (; i + B <= A.rows; i += B) block_below<B>(u, i, j);
      for (; i < A.rows; ++i) block_below<1>(u, i, j);
    }
  }

  /// Factors A, with L in scratch. A lane whose pivots are not good gets its info.
  void cholesky(const index_t* items, int size, int* info, Entry* scratch) {
    for (int u = 0; u < U; ++u) check[u] = V{}, L[u] = scratch + u * Lanes<T>::panel_entries(A.rows);
    for (index_t j = 0; j < A.rows; j += B) block_column(j);
    for (int l = 0; l < lanes && l < size; ++l) {
      const R sum = check[l / W][l % W];
      if (sum - sum == 0) continue;
      index_t k = 0;
      while (core::good_pivot(A.data[l][k * (A.stride[l] + parts)])) ++k;   // the diagonal of L
      info[items[l]] = int(k + 1);
    }
  }
};

template <class T> typename Lanes<T>::Entry* aligned(void* scratch) {
  constexpr std::uintptr_t alignment = vector_bytes;
  const auto address = (reinterpret_cast<std::uintptr_t>(scratch) + alignment - 1) / alignment * alignment;
  return reinterpret_cast<typename Lanes<T>::Entry*>(address);
}
template <class T> std::size_t scratch_bytes(index_t n, index_t columns) {
  return vector_bytes + std::size_t(Solver<T>::scratch_bytes(n, columns));
}

/// x := A^-1 x with the Cholesky factor that the solver holds: L^-H L^-1 x, or L^-T conj(L)^-1 x where it is flipped.
template <class T> void solve_both(Solver<T>& solver, bool flipped) {
  if (flipped) solver.conjugate();
  solver.forward();
  solver.conjugate();
  solver.backward();
  if (!flipped) solver.conjugate();
}

template <class T>
void cholesky(const core::Items<T>& A, bool flipped, const core::Items<T>* X, const index_t* items, int size, int* info,
              void* scratch) {
  Group<T> group;
  Solver<T> solver;
  for (; size > 0; items += group.lanes, size -= group.lanes) {
    group.A.take(A, items, size);
    group.cholesky(items, size, info, aligned<T>(scratch));
    if (!X || group.A.rows == 0) continue;
    solver.take(*X, items, size, group.A.rows, aligned<T>(scratch));
    solve_both(solver, flipped);
    for (int l = 0; l < solver.X.vectors * group.W; ++l)
      if (info[items[l < size ? l : l / group.W * group.W]] != 0) solver.X.leave_out(l);   // idle lanes repeat an item
    solver.give_back();
  }
}

template <class T>
void cholesky_solve(const core::Items<const T>& L, bool flipped, const core::Items<T>& X, const index_t* items, int size,
                    void* scratch) {
  const bool shared = !L.pointers && L.stride == 0;
  bool loaded = false;
  Operand<T, false> A;
  Solver<T> solver;
  for (; size > 0; items += solver.lanes, size -= solver.lanes) {
    A.take(L, items, size);
    if (A.rows == 0) continue;
    solver.take(X, items, size, A.rows, aligned<T>(scratch));
    if (!(shared && loaded)) solver.load(A, Diagonal::Real);
    loaded = true;
    solve_both(solver, flipped);
    solver.give_back();
  }
}

template <class T>
void lu_solve(const core::Items<const T>& LU, const core::Pivots<const int>& pivots, Op op, const core::Items<T>& X,
              const index_t* items, int size, void* scratch) {
  const core::Items<const T> flipped = LU.flipped();
  Operand<T, false> L, Ut;   // the lower triangles of LU and LU^T
  Solver<T> solver;
  for (; size > 0; items += solver.lanes, size -= solver.lanes) {
    L.take(LU, items, size);
    if (L.rows == 0) continue;
    Ut.take(flipped, items, size);
    solver.take(X, items, size, L.rows, aligned<T>(scratch));
    if (op == Op::None) {
      solver.swap_rows(pivots, items, size, false);   // x := P x
      solver.load(L, Diagonal::Unit);
      solver.forward();                               // x := L^-1 x
      solver.load(Ut, Diagonal::General);
      solver.backward();                              // x := U^-1 x
    } else {
      if (op == Op::ConjTranspose) solver.conjugate();
      solver.load(Ut, Diagonal::General);
      solver.forward();                               // x := U^-T x
      solver.load(L, Diagonal::Unit);
      solver.backward();                              // x := L^-T x
      if (op == Op::ConjTranspose) solver.conjugate();
      solver.swap_rows(pivots, items, size, true);    // x := P^T x
    }
    solver.give_back();
  }
}

template <class T>
constexpr InterleavedTable<T> table = {Lanes<T>::lanes, scratch_bytes<T>, cholesky<T>, cholesky_solve<T>, lu_solve<T>};

}  // namespace

template <class T> const InterleavedTable<T>& interleaved_table() { return table<T>; }

#define INSTANTIATE(T) template const InterleavedTable<T>& interleaved_table<T>();
TRIFACTOR_FOR_EACH_SCALAR(INSTANTIATE)

}  // namespace trifactor::host::TRIFACTOR_ISA
