// B := A^-1 B for a triangle A and few right-hand sides in one launch, or B := A^-H A^-1 B: A is read once for each,
// near the speed of memory.
//
// The rows are cut into strips. A block takes the next strip by ticket, inverts its diagonal block, and multiplies the
// rest of the strip with the solved strips in their order, its tiles streaming through shared memory. A solved strip is
// a message to all other blocks: its entries lie in global memory as a NaN that arithmetic does not make until they are
// solved, so that whoever reads an entry sees whether it is there, and a flag's round trip is saved. Every wait is for
// an earlier ticket, whose holder is running already: a hang is impossible, wherever blocks are resident.
#pragma once

#include <cuda/device/pipeline.cuh>
#include <cuda/single/inverted_diagonal.cuh>
#include <cuda/batched/batched.hpp>
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
  static constexpr int width = 16 / int(sizeof(T));  // entries of one load
  static constexpr int line = edge / width;          // threads along the contiguous direction
  static constexpr int stride = threads / line, steps = edge / stride;
  static constexpr int own_rows = row_major ? steps : width;   // rows of a tile that a thread has a part in
  static constexpr int parts = row_major ? line / 4 : stride;  // partial sums of a row, four lanes' added already
  static constexpr int entries = edge * N;                     // of a strip of right-hand sides
  static_assert(entries * Message<T>::words <= threads);

  struct alignas(16) Vector {
    T entry[width];
  };
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
  T* messages;
  int* tickets;
  const T* given;   // messages of an earlier sweep that are the right-hand sides, instead of B; or null
  bool given_conj;  // and are to be conjugated
  bool passes_on;   // the solution is given to another sweep, not written to B

  __device__ int strips() const { return int((A.rows + edge - 1) / edge); }
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
          copy_async<int(sizeof(T))>(shared_address(tile[s][threadIdx.x].entry + e), inside ? p + e : A.data,
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
          to = minus_product(to, v.entry[e], x[(row_major ? fast() + e : slow(s)) * N + j]);
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
  __device__ void strip(Shared& s, int turn, index_t column, T* group_messages) const {
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
      return reinterpret_cast<const typename M::Word*>(group_messages + index_t(place(t)) * entries) + rank;
    };
    typename M::Word next = reads && turn > 0 ? M::load(word(0)) : 0;
    for (int t = 0; t < turn; ++t) {
      T* x = s.x[t % 2];
      if (reads) {
        while (next == M::unsolved) {
          if (turn - t > 1)
            __nanosleep(unsigned(min(turn - t, 16)) * 20);  // blocks with earlier strips are on the critical path
          next = M::load(word(t));
        }
        reinterpret_cast<typename M::Word*>(x)[rank] = next;
        if (t + 1 < turn) next = M::load(word(t + 1));
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
      do v = M::load(given + (group_messages - messages) + r0 * N + e);
      while (!M::is_solved(v));  // long ago
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
      M::store(group_messages + index_t(i) * entries + e, z);
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

/// A sweep with a column-major triangle and one with a row-major triangle: one of the two, or both, the second with the
/// transposed triangle and the first one's solution. One kernel for both orders: it is long to compile.
template <class T, int N>
__global__ void __launch_bounds__(invert_threads) sweep_kernel(Sweep<T, N, false> by_columns, Sweep<T, N, true> by_rows,
                                                               bool rows_first, bool twice, const int* info) {
  extern __shared__ __align__(16) unsigned char raw[];
  if (info && *info != 0) return;
  auto& ticket = reinterpret_cast<typename Sweep<T, N, false>::Shared*>(raw)->ticket;
  const int strips = by_columns.strips(), all = twice ? 2 * strips : strips;
  const index_t group = index_t(blockIdx.y) * strips * by_columns.entries;
  const auto take = [&](const auto& sweep, int turn) {
    using S = std::remove_cvref_t<decltype(sweep)>;
    sweep.strip(*reinterpret_cast<typename S::Shared*>(raw), turn, index_t(blockIdx.y) * N, sweep.messages + group);
  };
  for (;;) {
    if (threadIdx.x == 0) ticket = atomicAdd(by_columns.tickets + blockIdx.y, 1) + 1;  // from -1 on
    __syncthreads();                                                                   // the ticket is drawn
    const int turn = ticket;
    if (turn >= all) return;
    __syncthreads();  // everyone has read it
    const bool is_first = turn < strips;
    const int own_turn = is_first ? turn : turn - strips;
    if (is_first == rows_first)
      take(by_rows, own_turn);
    else
      take(by_columns, own_turn);
    __syncthreads();  // everyone is done with the shared memory
  }
}

inline constexpr index_t sweep_group = 4;  // right-hand sides that share one pass over the triangle
inline index_t sweep_groups(index_t columns) { return ceil_div(columns, sweep_group); }
template <class T>
index_t sweep_padded(index_t n) {
  return ceil_div(n, inverse_edge<T>) * inverse_edge<T>;
}

/// Twice: for two sweeps.
template <class T>
index_t sweep_message_bytes(index_t n, index_t columns, bool twice) {
  const index_t of_group = columns == 1 ? 1 : sweep_group;
  const index_t entries = of_group * sweep_padded<T>(n) * (twice ? 2 : 1);
  return sweep_groups(columns) * (entries * index_t(sizeof(T)) + index_t(sizeof(int)));
}

// Memory of the arena is for the main lane alone: both lanes take it from one arena, and what a lane gives back is
// still in use on its stream.
template <class T>
bool CudaEngine::trsm_whole(Shape shape, Operand<T> A, Items<T> B, bool twice, const int* info,
                            const SolveTuning& tuning) {
  constexpr index_t min_order = 65;  // less is halved once
  if (main_ != this || B.count != 1 || B.pointers || B.cols > tuning.sweep_columns || A.items.rows < min_order)
    return false;
  const Tile<const T> a = A.items.item(0);
  const Tile<T> b = B.item(0);
  const index_t groups = sweep_groups(b.cols), bytes = sweep_message_bytes<T>(a.rows, b.cols, twice);
  const auto scratch = arena().take<char>(bytes);
  if (arena().planning()) return true;
  T* messages = reinterpret_cast<T*>(scratch.data());
  int* tickets = reinterpret_cast<int*>(scratch.data() + bytes) - groups;
  check(cudaMemsetAsync(scratch.data(), 0xff, std::size_t(bytes), static_cast<cudaStream_t>(stream_)),
        "cudaMemsetAsync");  // unsolved, and tickets from -1 on
  const bool row_major = A.items.is_flipped;
  const index_t line = row_major ? a.row_stride : a.col_stride;
  const bool wide = lines_aligned(a.data, line);
  const dim3 grid(unsigned(min(ceil_div(a.rows, cuda::inverse_edge<T>) * (twice ? 2 : 1), index_t(multiprocessors_))),
                  unsigned(groups));
  const auto go = [&]<int N>() {
    T* after = messages + groups * N * sweep_padded<T>(a.rows);
    const auto sweep = [&]<bool is_row_major>() {
      using S = Sweep<T, N, is_row_major>;
      if (is_row_major == row_major) return S{shape, a, A.conj, wide, b, messages, tickets, nullptr, false, twice};
      return S{{!shape.lower, shape.unit}, a.flipped(), !A.conj, wide, b, after, tickets, messages, A.conj, false};
    };
    const auto by_columns = sweep.template operator()<false>();
    const auto by_rows = sweep.template operator()<true>();
    constexpr std::size_t shared =
        std::max(sizeof(typename Sweep<T, N, false>::Shared), sizeof(typename Sweep<T, N, true>::Shared));
    launch(stream_, sweep_kernel<T, N>, grid, invert_threads, shared, by_columns, by_rows, row_major, twice, info);
  };
  b.cols == 1 ? go.template operator()<1>() : go.template operator()<int(sweep_group)>();
  return true;
}

}  // namespace trifactor::cuda

#define TRIFACTOR_INSTANTIATE_KERNELS(T)                                                                  \
  template bool trifactor::cuda::CudaEngine::trsm_whole<T>(Shape, Operand<T>, Items<T>, bool, const int*, \
                                                           const SolveTuning&);
