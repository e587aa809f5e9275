// B := A^-1 B for a triangle A and few right-hand sides in one launch, or B := A^-H A^-1 B: A is read once for each,
// near the speed of memory. Or the same for all items of a batch.
//
// The rows are cut into strips. A block takes the next strip by ticket, inverts its diagonal block, and multiplies the
// rest of the strip with the solved strips in their order, its tiles streaming through shared memory. A solved strip is
// a message to all other blocks: its entries lie in global memory as a NaN that arithmetic does not make until they are
// solved, so that whoever reads an entry sees whether it is there, and a flag's round trip is saved. Every wait is for
// an earlier ticket, whose holder is running already: a hang is impossible, wherever blocks are resident.
#pragma once

#include <cuda/device/mma.cuh>
#include <cuda/device/pipeline.cuh>
#include <cuda/single/inverted_diagonal.cuh>
#include <cuda/engine/engine.hpp>
#include <cuda/engine/launch.cuh>
#include <cuda/single/single.hpp>
#include <cuda/device/sentinels.cuh>

#include <algorithm>

namespace trifactor::cuda {

/// Up to N right-hand sides; A is row-major or column-major.
template <class T, int N, bool row_major>
struct Sweep {
  static constexpr int edge = DiagonalShape<T>::edge, threads = invert_threads;
  static constexpr int width = vector_of<T>;
  static constexpr int line = edge / width;  // threads along the contiguous direction
  static constexpr int stride = threads / line, steps = edge / stride;
  static constexpr int own_rows = row_major ? steps : width;   // rows of a tile that a thread has a part in
  static constexpr int parts = row_major ? line / 4 : stride;  // partial sums of a row, four lanes' added already
  static constexpr int entries = edge * N;                     // of a strip of right-hand sides
  static_assert(entries * Message<T>::words <= threads);

  using Vector = EntryVector<T, width>;
  struct Shared {
    Vector tiles[2][steps][threads];  // two tiles on their way; a thread reads what it fetched itself
    T D[DiagonalShape<T>::size], V[DiagonalShape<T>::size];
    T x[2][entries];  // the solved strip that is multiplied with, and the next
    T y[entries], z[entries];
    T sums[entries * (parts + 1)];
    Real<T> row_sums[edge];
    int ticket;
  };

  Shape shape;
  Tile<const T> A;
  bool conj;  // conj(A) X = B is solved as A conj(X) = conj(B)
  bool wide;  // lines of A start at multiples of 16 bytes
  Tile<T> B;
  T* messages;      // of the right-hand sides that are solved for
  const T* given;   // messages of an earlier sweep that are these right-hand sides, instead of those in B; or null
  bool given_conj;  // and are to be conjugated
  bool passes_on;   // the solution is given to another sweep, not written to B

  __device__ int strips() const { return int(ceil_div(A.rows, edge)); }
  __device__ static int fast() { return int(threadIdx.x) % line * width; }
  __device__ static int slow(int step) { return int(threadIdx.x) / line + step * stride; }

  /// The thread's part of tile (i, j), zero outside A, without waiting.
  __device__ void fetch(Vector (&tile)[steps][threads], int i, int j) const {
    const index_t fast0 = index_t(row_major ? j : i) * edge, slow0 = index_t(row_major ? i : j) * edge;
    const index_t line_stride = row_major ? A.row_stride : A.col_stride, step = line_stride * stride;
    const T* p = A.data + fast0 + fast() + (slow0 + slow(0)) * line_stride;
    if (wide && max(fast0, slow0) + edge <= A.rows) {
#pragma unroll
      for (int s = 0; s < steps; ++s, p += step) copy_async<16>(shared_address(&tile[s][threadIdx.x]), p);
    } else {
      const int fast_count = int(min(index_t(edge), A.rows - fast0)) - fast();
      const int slow_count = int(min(index_t(edge), A.rows - slow0)) - slow(0);
      for (int s = 0; s < steps; ++s, p += step)
        for (int e = 0; e < width; ++e) {
          const bool inside = e < fast_count && s * stride < slow_count;
          copy_async<int(sizeof(T))>(shared_address(tile[s][threadIdx.x].v + e), inside ? p + e : A.data,
                                     inside ? int(sizeof(T)) : 0);
        }
    }
  }

  /// sum -= tile x
  __device__ static void multiply(T (&sum)[own_rows][N], const Vector (&tile)[steps][threads], const T* x) {
#pragma unroll
    for (int s = 0; s < steps; ++s) {
      const Vector v = tile[s][threadIdx.x];
#pragma unroll
      for (int e = 0; e < width; ++e)
#pragma unroll
        for (int j = 0; j < N; ++j) {
          T& to = sum[row_major ? s : e][j];
          to = minus_product(to, v.v[e], x[(row_major ? fast() + e : slow(s)) * N + j]);
        }
    }
  }

  /// The thread's partial sums where gather() finds them.
  __device__ static void spread(const T (&sum)[own_rows][N], T* sums) {
    const int rank = int(threadIdx.x);
#pragma unroll
    for (int o = 0; o < own_rows; ++o)
#pragma unroll
      for (int j = 0; j < N; ++j) {
        const int row = row_major ? slow(o) : fast() + o;
        const T part = row_major ? sum_of_four(sum[o][j]) : sum[o][j];
        if (!row_major || rank % 4 == 0)
          sums[(row * N + j) * (parts + 1) + (row_major ? rank % line / 4 : rank / line)] = part;
      }
  }

  /// f(e, the sum of term(e, k) over those k < count that belong to the sum), by four neighbours for each entry e of a
  /// strip; one of them calls f. Many terms are loaded at once: one after the other, each would wait for its own.
  template <int count, class Belongs, class Term, class F>
  __device__ static void for_sums(Belongs belongs, Term term, F f) {
    constexpr int at_once = N == 1 ? count / 4 : 4;
    const int rank = int(threadIdx.x);
    for (int e = rank / 4; e < entries; e += threads / 4) {  // whole warps
      T sum(0);
#pragma unroll at_once
      for (int j = 0; j < count; j += 4)
        if (const int k = j + rank % 4; belongs(e, k)) sum = sum + term(e, k);
      sum = sum_of_four(sum);
      if (rank % 4 == 0) f(e, sum);
    }
  }

  /// The strip with the number `turn` in the order of the solve, for the right-hand sides from `column` on.
  __device__ void strip(Shared& s, int turn, index_t column) const {
    using M = Message<T>;
    constexpr int ld = DiagonalShape<T>::ld;
    const int rank = int(threadIdx.x), all = strips();
    const auto place = [&](int t) { return shape.lower ? t : all - 1 - t; };
    const int i = place(turn);
    const index_t r0 = index_t(i) * edge;
    const int columns = int(min(index_t(N), B.cols - column));
    const auto fetch_turn = [&](int t) {
      if (t < turn) fetch(s.tiles[t % 2], i, place(t));
      copy_commit();  // perhaps of nothing, so that the number of groups is that of turns
    };
    fetch_turn(0), fetch_turn(1);  // on their way while the diagonal block is inverted
    const bool refine = invert_diagonal(shape, A, r0, s.D, s.V, s.row_sums);
    T sum[own_rows][N] = {};
    const bool reads = rank < entries * M::words;
    const auto word = [&](int t) {
      return reinterpret_cast<const typename M::Word*>(messages + index_t(place(t)) * entries) + rank;
    };
    typename M::Word next = reads && turn > 0 ? load_relaxed(word(0)) : 0;
    for (int t = 0; t < turn; ++t) {
      T* x = s.x[t % 2];
      if (reads) {
        while (next == M::unsolved) {
          if (turn - t > 1)
            __nanosleep(unsigned(min(turn - t, 16)) * 20);  // blocks with earlier strips are on the critical path
          next = load_relaxed(word(t));
        }
        reinterpret_cast<typename M::Word*>(x)[rank] = next;
        if (t + 1 < turn) next = load_relaxed(word(t + 1));
      }
      copy_wait<1>();
      __syncthreads();  // strip t is there; the one before it, in the other half of s.x, was read before that
      multiply(sum, s.tiles[t % 2], x);
      fetch_turn(t + 2);
    }
    spread(sum, s.sums);
    __syncthreads();  // the partial sums are there
    const auto row_of = [](int e) { return e / N; };
    const auto right_side = [&](int e, index_t row) {
      if (!given) return B(row, column + e % N);
      T v;
      do v = M::load(given + r0 * N + e);
      while (!M::is_solved(v));            // long ago
      M::order_after(given + r0 * N + e);  // the right-hand side was read, and may be written
      return conj_if(given_conj, v);
    };
    for_sums<parts>([](int, int k) { return k < parts; }, [&](int e, int k) { return s.sums[e * (parts + 1) + k]; },
                    [&](int e, T sum_of_parts) {
                      const index_t row = r0 + row_of(e);
                      const bool inside = row < A.rows && e % N < columns;
                      s.y[e] = inside ? conj_if(conj, right_side(e, row)) + sum_of_parts : T(0);
                    });
    __syncthreads();  // y, of which the diagonal block makes the solution, is there
    const auto in_triangle = [&](int e, int k) { return shape.lower ? k <= row_of(e) : k >= row_of(e); };
    const auto product = [](const T* block, const T* v) {
      return [block, v](int e, int k) { return block[k * ld + e / N] * v[k * N + e % N]; };
    };
    const auto publish = [&](int e, T z) {
      M::store(messages + index_t(i) * entries + e, z);
      const index_t row = r0 + row_of(e);
      if (!passes_on && row < A.rows && e % N < columns) B(row, column + e % N) = conj_if(conj, z);
    };
    if (!refine) return for_sums<edge>(in_triangle, product(s.V, s.y), publish);
    for_sums<edge>(in_triangle, product(s.V, s.y), [&](int e, T z) { s.z[e] = z; });  // z = V y
    __syncthreads();                                                                  // z is there
    for_sums<edge>(in_triangle, product(s.D, s.z), [&](int e, T Dz) { s.y[e] = s.y[e] - Dz; });
    __syncthreads();  // y is the residual
    for_sums<edge>(in_triangle, product(s.V, s.y), [&](int e, T c) { publish(e, s.z[e] + c); });
  }
};

/// X := A^-1 X for every item, or A^-H A^-1 X.
template <class T>
struct SweepCall {
  Shape shape;
  Items<const T> A;
  bool conj, twice;
  Items<T> X;
  const int* info;      // items whose info is not 0 are left alone
  T *messages, *after;  // of the first sweep and of the second one
  int* tickets;         // of each group, from -1 on
};

inline constexpr index_t sweep_group = 4;  // right-hand sides that share one pass over the triangle
/// The order n, rounded up to whole strips.
template <class T>
TF_HD index_t sweep_padded(index_t n) {
  return ceil_div(n, inverse_edge<T>) * inverse_edge<T>;
}

/// A group is up to N right-hand sides of an item. Blocks with the same blockIdx.y work on one group after the other.
/// The first sweep goes over A as it is; the second, over its conjugate transpose, takes the first one's solution.
/// Whether A is row-major is known at run time: one kernel for both orders, since it is long to compile.
template <class T, int N>
__global__ void __launch_bounds__(invert_threads) sweep_kernel(SweepCall<T> call) {
  using ByColumns = Sweep<T, N, false>;
  using ByRows = Sweep<T, N, true>;
  extern __shared__ __align__(16) unsigned char raw[];
  auto& ticket = reinterpret_cast<typename ByColumns::Shared*>(raw)->ticket;
  const int groups_each = int(ceil_div(call.X.cols, N)), groups = groups_each * int(call.X.count);
  for (int g = int(blockIdx.y); g < groups; g += int(gridDim.y)) {
    const int item = g / groups_each;
    const index_t column = index_t(g % groups_each) * N, at = index_t(g) * N * sweep_padded<T>(call.A.rows);
    if (call.info && call.info[item] != 0) continue;
    const Tile<const T> a = call.A.item(item);
    const Tile<T> x = call.X.item(item);
    if (x.cols <= column) continue;
    const int strips = int(ceil_div(a.rows, ByColumns::edge)), all = call.twice ? 2 * strips : strips;
    const bool row_major = call.A.is_flipped, wide = lines_aligned(a.data, row_major ? a.row_stride : a.col_stride);
    for (;;) {
      if (threadIdx.x == 0) ticket = atomicAdd(call.tickets + g, 1) + 1;
      __syncthreads();  // the ticket is drawn
      const int turn = ticket;
      if (turn >= all) break;
      __syncthreads();  // everyone has read it
      const bool first = turn < strips;
      const auto take = [&]<class S>() {
        S sweep{call.shape, a, call.conj, wide, x, call.messages + at, nullptr, false, call.twice};
        if (!first) {
          sweep.shape.lower = !sweep.shape.lower, sweep.A = a.flipped(), sweep.conj = !call.conj;
          sweep.given = sweep.messages, sweep.given_conj = call.conj;
          sweep.messages = call.after + at, sweep.passes_on = false;
        }
        sweep.strip(*reinterpret_cast<typename S::Shared*>(raw), first ? turn : turn - strips, column);
      };
      if (first == row_major)
        take.template operator()<ByRows>();
      else
        take.template operator()<ByColumns>();
      __syncthreads();  // everyone is done with the shared memory
    }
    __syncthreads();  // everyone has read the last ticket
  }
}

// Memory of the arena is for the main lane alone: both lanes take it from one arena, and what a lane gives back is
// still in use on its stream.
template <class T>
bool CudaEngine::trsm_whole(Shape shape, Operand<T> A, Items<T> B, bool twice, const int* info,
                            const SolveTuning& tuning) {
  constexpr index_t min_order = 65;  // less is halved once
  if (main_ != this || B.cols > tuning.sweep_columns || A.items.rows < min_order) return false;
  const index_t N = B.cols == 1 ? 1 : sweep_group, groups_each = ceil_div(B.cols, N);
  if (B.count > 1 && B.count > tuning.sweep_groups / groups_each) return false;
  const index_t groups = B.count * groups_each, entries = groups * N * sweep_padded<T>(A.items.rows);
  const index_t bytes = (twice ? 2 : 1) * entries * index_t(sizeof(T)) + groups * index_t(sizeof(int));
  const auto scratch = arena().take<char>(bytes);
  if (arena().planning()) return true;
  T* const messages = reinterpret_cast<T*>(scratch.data());
  int* const tickets = reinterpret_cast<int*>(scratch.data() + bytes) - groups;
  check(cudaMemsetAsync(scratch.data(), 0xff, std::size_t(bytes), static_cast<cudaStream_t>(stream_)),
        "cudaMemsetAsync");  // unsolved, and tickets from -1 on
  const index_t turns = ceil_div(A.items.rows, cuda::inverse_edge<T>) * (twice ? 2 : 1);
  const dim3 grid(unsigned(min(turns, ceil_div(index_t(multiprocessors_), groups))),
                  unsigned(min(groups, index_t(65535))));
  const SweepCall<T> call{shape, A.items, A.conj, twice, B, info, messages, messages + entries, tickets};
  const auto go = [&]<int N>() {
    constexpr std::size_t shared =
        std::max(sizeof(typename Sweep<T, N, false>::Shared), sizeof(typename Sweep<T, N, true>::Shared));
    launch(stream_, sweep_kernel<T, N>, grid, invert_threads, shared, call);
  };
  B.cols == 1 ? go.template operator()<1>() : go.template operator()<int(sweep_group)>();
  return true;
}

}  // namespace trifactor::cuda

#define TRIFACTOR_INSTANTIATE_KERNELS(T)                                                                  \
  template bool trifactor::cuda::CudaEngine::trsm_whole<T>(Shape, Operand<T>, Items<T>, bool, const int*, \
                                                           const SolveTuning&);
