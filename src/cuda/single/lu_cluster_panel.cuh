// LU of a narrow panel of one matrix by one cluster of blocks. A thread has rows of the panel, wherever interchanges
// would move them; at the end they go to where LAPACK's interchanges put them.
//
// A column: every warp finds its best candidate, and sends it with its row to all blocks of the cluster; where these
// would be more than 32, every block sends the best of its warps. Each warp then finds the best of these, and goes on
// alone.
#pragma once

#include <cuda/device/cluster.cuh>
#include <cuda/device/fragments.cuh>
#include <cuda/engine/launch.cuh>
#include <cuda/single/lu_messages.cuh>

namespace trifactor::cuda {

#if TRIFACTOR_HAS_CLUSTERS

/// Factors a panel of m rows and n columns, n <= width, and makes its interchanges in `left` columns to the left of it.
/// The last warp of a block is the clerk: it has no rows, and notes what was chosen.
template <class T, class S>
class ClusterPanel {
 public:
  using Memory = PanelMemory<T, S>;
  using Message = typename Memory::Message;

  __device__ ClusterPanel(const Tile<T>& panel, int left_, int blocks_, int* pivots_, int first_)
      : A(panel.data),
        ld(panel.col_stride),
        m(int(panel.rows)),
        n(int(panel.cols)),
        left(left_),
        blocks(blocks_),
        block(blocks > 1 ? cluster_rank() : 0),
        first(first_),
        pivots(pivots_),
        rank(int(threadIdx.x)),
        lane(rank % 32),
        warp(rank / 32),
        clerk(warp == Memory::warps),
        direct(blocks * Memory::warps <= 32) {}

  /// Returns 0 or the first k + 1 whose pivot is zero, to a lane of the clerk.
  __device__ int factor() {
    if (clerk && lane == 0) {
      for (auto& barrier : memory().arrived) barrier_init(shared_address(&barrier), 1);
      for (auto& barrier : memory().raw_arrived) barrier_init(shared_address(&barrier), 1);
    }
    if (!clerk) load();
    sync_all();  // nobody sends before the barriers stand
#pragma unroll 1
    for (int k = 0, half = 0; k < n; k += S::step, half ^= 1) {
      const int steps = min(min(S::step, n - k), m - k), right = n - k - S::step;
      if (clerk) {
        note_pivots(k, steps);
        if (right > 0 && steps > 0) solve_step(right, steps, half, k / S::step / 2 % 2);
      } else {
        factor_step(k, steps, half, right > 0);
        if (blocks == 1 && right > 0 && steps > 0) meet<NamedBarrier::last_pivot_row, all_threads>();
        store_step(k);
      }
      if (right <= 0) break;
      __syncthreads();  // the rows of U are there
      if (clerk && block == 0 && lane < right) store_upper(k, lane);
      if (clerk) continue;
      if constexpr (S::rest_in_registers)
        update_rest(right);
      else
        update_rest_in_memory(k, right);
    }
    let_next_start();  // not earlier: its blocks would take multiprocessors from others while they wait
    exchange_rows();
    return zero_at;
  }

 private:
  static constexpr int no_row = -1 - (1 << 30), all_threads = S::threads + 32;

  __device__ static Memory& memory() {
    extern __shared__ __align__(16) unsigned char panel_memory[];
    return *reinterpret_cast<Memory*>(panel_memory);
  }
  __device__ int own_row(int i) const { return i * S::threads + rank; }
  __device__ int row(int i) const { return block * S::block_rows + own_row(i); }
  __device__ void sync_all() const {
    if (blocks > 1)
      cluster_sync();
    else
      __syncthreads();
  }

  __device__ void load() {
    const T* from = A + row(0);
#pragma unroll
    for (int i = 0; i < S::rows; ++i) place[i] = row(i) < m ? row(i) : no_row;
#pragma unroll
    for (int j = 0; j < S::in_registers; ++j, from += ld) {
      asm volatile("" : "+l"(from));  // addresses that are computed ahead would spill
#pragma unroll
      for (int i = 0; i < S::rows; ++i) a[i][j] = place[i] >= 0 && j < n ? from[i * S::threads] : T(0);
    }
    if constexpr (!S::rest_in_registers) {
#pragma unroll 1
      for (int j = 0; j < n - S::step; ++j, from += ld)
#pragma unroll
        for (int i = 0; i < S::rows; ++i)
          if (place[i] >= 0)
            copy_async<int(sizeof(T))>(shared_address(&memory().rest_columns[j][own_row(i)]), from + i * S::threads);
      copy_wait_all();
    }
  }
  /// What is L of the step.
  __device__ void store_step(int k) {
    T* to = A + row(0) + k * ld;
#pragma unroll
    for (int s = 0; s < S::step; ++s, to += ld) {
      asm volatile("" : "+l"(to));
#pragma unroll
      for (int i = 0; i < S::rows; ++i)
        if (place[i] >= 0 && k + s < n) to[i * S::threads] = a[i][s];
    }
  }

  /// The first columns in registers, of which `steps` have a pivot, the first that of column k0 of the panel. Registers
  /// of pivot rows are garbage from then on.
  __device__ void factor_step(int k0, int steps, int half, bool more) {
#pragma unroll
    for (int s = 0; s < S::step; ++s) {
      if (s >= steps) break;
      const int k = k0 + s;
      offer(s);
      const Message& pivot = chosen();
      const int p = pivot.place;
      T u[S::step];
      read_vectors<S::step>(pivot.entries, u);
      const Quotient<T> divide(u[s], pivot.inverse);
#pragma unroll
      for (int i = 0; i < S::rows; ++i) {
        const T l = divide(a[i][s]);
        a[i][s] = l;
#pragma unroll
        for (int j = s + 1; j < S::step; ++j) a[i][j] = minus_product(a[i][j], l, u[j]);
      }
      if constexpr (S::rest > 0)
        if (more) give_raw(p, s, k0, half);
#pragma unroll
      for (int i = 0; i < S::rows; ++i) place[i] = place[i] == p ? ~k : place[i] == k ? p : place[i];
    }
  }
  /// The warp of the pivot row sends what lies right of the step to all blocks.
  __device__ void give_raw(int p, int s, int k0, int half) {
    int mine = -1;
#pragma unroll
    for (int i = 0; i < S::rows; ++i) mine = place[i] == p ? i : mine;
    const unsigned holder = __ballot_sync(~0u, mine >= 0);
    if (holder == 0) return;
    T* const raw = blocks == 1 ? memory().raw[half][s] : memory().own_raw[half][s];
    if constexpr (S::rest_in_registers) {
      for_constants<S::rows>([&](auto i) TF_INLINE_LAMBDA {
        if (mine == i.value) {
          distinct_branch<i.value>();
#pragma unroll
          for (int j = 0; j < S::rest; ++j) raw[j] = a[i.value][S::step + j];
        }
      });
    } else {
      const int own = __shfl_sync(~0u, own_row(mine), __ffs(int(holder)) - 1);
      if (k0 + lane < S::rest) raw[lane] = memory().rest_columns[k0 + lane][own];
    }
    __syncwarp();  // the row is there
    if (blocks == 1) return;
    constexpr int parts = int(sizeof(T)) * S::rest / 16;
    for (int e = lane; e < parts * blocks; e += 32) {
      const int to = e / parts, part = e % parts;
      send_async(shared_address_of(shared_address(memory().raw[half][s]), to) + 16u * unsigned(part),
                 reinterpret_cast<const ulonglong2*>(raw)[part],
                 shared_address_of(shared_address(&memory().raw_arrived[half]), to));
    }
  }
  /// The best of this warp's rows for column s of the registers.
  __device__ void offer(int s) {
    int mine = 0, at = place[0];
    T value = a[0][s];
    PivotKey key = pivot_key(value);
    if (at < 0) key = {0, 0};
#pragma unroll
    for (int i = 1; i < S::rows; ++i) {
      PivotKey other = pivot_key(a[i][s]);
      if (place[i] < 0) other = {0, 0};
      const bool better = beats(other, place[i], key, at);
      key.high = better ? other.high : key.high, key.low = better ? other.low : key.low;
      mine = better ? i : mine, at = better ? place[i] : at, value = better ? a[i][s] : value;
    }
    const T inverse = reciprocal(value);  // while the warp votes
    const unsigned best = Warp::best_mask<two_words>(at >= 0, key, at);
    Message& message = blocks == 1 ? memory().candidates[slot][warp] : memory().own[turn % 2][warp];
    if (best == 0 && lane == 0) message.key = {0, 0}, message.place = -1;
    if (best >> lane & 1) {
      message.key = key, message.place = at, message.row = row(mine);
      message.inverse = inverse;
      for_constants<S::rows>([&](auto i) TF_INLINE_LAMBDA {
        if (mine == i.value) {
          distinct_branch<i.value>();
          const T(&columns)[S::step] = reinterpret_cast<const T(&)[S::step]>(a[i.value]);
          write_vectors<S::step>(message.entries, columns);
        }
      });
    }
    __syncwarp();  // the message is there
    if (blocks == 1) return;
    if (direct)
      send(message, block * Memory::warps + warp);
    else
      arrive<NamedBarrier::candidates, all_threads>();  // the clerk sends the best one
  }
  /// A candidate to every block of the cluster, 16 bytes at a time.
  __device__ void send(const Message& message, int number) {
    constexpr int parts = int(sizeof(Message)) / 16;
    const int to = lane % max_cluster_blocks;
    if (to >= blocks) return;
    const unsigned target = shared_address_of(shared_address(&memory().candidates[slot][number]), to);
    const unsigned arrived = shared_address_of(shared_address(&memory().arrived[slot]), to);
#pragma unroll
    for (int part = lane / max_cluster_blocks; part < parts; part += 32 / max_cluster_blocks)
      send_async(target + 16u * unsigned(part), reinterpret_cast<const ulonglong2*>(&message)[part], arrived);
  }

  /// The pivot, as every warp of the cluster finds it. Candidates for a column are sent when those for the last one are
  /// read, by all warps but the clerks. A clerk reads them before it lets its block read the next ones. So no candidate
  /// is overwritten, three columns later, before it is read.
  __device__ const Message& chosen() {
    const unsigned arrived = shared_address(&memory().arrived[slot]);
    const int count = direct ? blocks * Memory::warps : blocks;
    if (blocks == 1) {
      meet<NamedBarrier::candidates, all_threads>();
    } else {
      if (clerk) {
        if (lane == 0) barrier_arrive_expecting(arrived, count * int(sizeof(Message)));
        if (!direct) {
          meet<NamedBarrier::candidates, all_threads>();
          send(best_of(memory().own[turn % 2], Memory::warps), block);
        }
      }
      barrier_wait(arrived, parity);
    }
    const Message& best = best_of(memory().candidates[slot], count);
    ++turn;
    if (++slot == Memory::slots) slot = 0, parity ^= 1;
    return best;
  }
  __device__ const Message& best_of(const Message* messages, int count) const {
    const int at = lane < count ? messages[lane].place : -1;
    const PivotKey key = lane < count ? messages[lane].key : PivotKey{0, 0};
    return messages[max(31 - __clz(int(Warp::best_mask<two_words>(at >= 0, key, at))), 0)];
  }
  /// Whether one candidate is better than another; those that are none have a key of 0 and a negative place.
  __device__ static bool beats(PivotKey a, int place_a, PivotKey b, int place_b) {
    const bool equal = (a.high == b.high) & (a.low == b.low);
    return (a.high > b.high) | ((a.high == b.high) & (a.low > b.low)) |
           (equal & (unsigned(place_a) < unsigned(place_b)));
  }

  /// By the clerk: what factor_step finds, into memory.
  __device__ void note_pivots(int k0, int steps) {
#pragma unroll 1
    for (int s = 0; s < steps; ++s) {
      const int k = k0 + s;
      const Message& pivot = chosen();
      if (lane < S::step) {
        const T x = pivot.entries[lane];
        memory().factor[lane][s] = x;
        if (block == 0 && k0 + lane < n) A[pivot.row + (k0 + lane) * ld] = x;
        if (lane == s && x == T(0) && zero_at == 0) zero_at = k + 1;
      }
      if (lane == 0) {
        memory().moves.from[k] = pivot.row;
        if (block == 0) pivots[k] = first + pivot.place + 1;
      }
      __syncwarp();  // before the warp meets the others
    }
  }
  /// By the clerk: U in the `right` columns to the right of the step, a column to a lane.
  __device__ void solve_step(int right, int steps, int half, int parity) {
    if (blocks == 1) {
      meet<NamedBarrier::last_pivot_row, all_threads>();
    } else {
      const unsigned arrived = shared_address(&memory().raw_arrived[half]);
      if (lane == 0) barrier_arrive_expecting(arrived, steps * S::rest * int(sizeof(T)));
      barrier_wait(arrived, parity);
    }
    if (lane >= right) return;
    T u[S::step];
#pragma unroll
    for (int s = 0; s < S::step; ++s) u[s] = memory().raw[half][s][lane];
#pragma unroll
    for (int i = 0; i + 1 < S::step; ++i) {
      T l[S::step];
      read_vectors<S::step>(memory().factor[i], l);
#pragma unroll
      for (int s = i + 1; s < S::step; ++s) u[s] = minus_product(u[s], l[s], u[i]);
    }
#pragma unroll
    for (int s = 0; s < S::step; ++s) memory().upper[s][lane] = u[s];
  }
  __device__ void store_upper(int k, int j) {
    T* const column = A + (k + S::step + j) * ld;
    for (int s = 0; s < min(S::step, m - k); ++s) column[memory().moves.from[k + s]] = memory().upper[s][j];
  }
  /// The columns in registers to the right of the step, `right` of them, -= L U. They move to its place.
  __device__ void update_rest(int right) {
#pragma unroll
    for (int j0 = 0; j0 < S::rest; j0 += S::step) {
      if (j0 >= right) break;
#pragma unroll
      for (int s = 0; s < S::step; ++s) {
        T u[S::step];
        read_vectors<S::step>(&memory().upper[s][j0], u);
#pragma unroll
        for (int j = 0; j < S::step; ++j)
#pragma unroll
          for (int i = 0; i < S::rows; ++i)
            a[i][S::step + j0 + j] = minus_product(a[i][S::step + j0 + j], a[i][s], u[j]);
      }
    }
#pragma unroll
    for (int i = 0; i < S::rows; ++i)
#pragma unroll
      for (int j = 0; j < S::rest; ++j) a[i][j] = a[i][S::step + j];
  }
  /// The same for those in shared memory, right of the step at column k. The first of them move to its place.
  __device__ void update_rest_in_memory(int k, int right) {
#pragma unroll 2
    for (int j = S::step; j < right; ++j) {
      T u[S::step], x[S::rows];
#pragma unroll
      for (int i = 0; i < S::rows; ++i) x[i] = memory().rest_columns[k + j][own_row(i)];
#pragma unroll
      for (int s = 0; s < S::step; ++s) u[s] = memory().upper[s][j];
#pragma unroll
      for (int s = 0; s < S::step; ++s)
#pragma unroll
        for (int i = 0; i < S::rows; ++i) x[i] = minus_product(x[i], a[i][s], u[s]);
#pragma unroll
      for (int i = 0; i < S::rows; ++i) memory().rest_columns[k + j][own_row(i)] = x[i];
    }
#pragma unroll
    for (int i = 0; i < S::rows; ++i) {
      T x[S::step];
#pragma unroll
      for (int j = 0; j < S::step; ++j) x[j] = memory().rest_columns[k + j][own_row(i)];
#pragma unroll
      for (int s = 0; s < S::step; ++s) {
        T u[S::step];
        read_vectors<S::step>(memory().upper[s], u);
#pragma unroll
        for (int j = 0; j < S::step; ++j) x[j] = minus_product(x[j], a[i][s], u[j]);
      }
#pragma unroll
      for (int j = 0; j < S::step; ++j) a[i][j] = x[j];
    }
  }

  /// All rows to where the interchanges move them, in the columns to the left too.
  __device__ void exchange_rows() {
    const int steps = min(m, n);  // these rows are in the first block
    if (!clerk && block == 0) {
#pragma unroll
      for (int i = 0; i < S::rows; ++i)
        if (row(i) < steps) memory().moves.to[row(i)] = place[i];  // negative: it was a pivot
    }
    sync_all();  // all columns are in memory, and so is the list
    if (block != 0) {
      if (rank < steps)
        memory().moves.to[rank] = load_shared_of<int>(shared_address_of(shared_address(&memory().moves.to[rank]), 0));
      __syncthreads();  // the list is here
    }
    constexpr int warps = Memory::warps + 1;
    memory().moves.apply(A - left * ld, ld, steps, block * warps + warp, blocks * warps, left + n);
    if (blocks > 1) cluster_sync();  // nobody leaves while others read its list
  }

  static constexpr bool two_words = sizeof(Real<T>) == 8;
  using Warp = LaneGroup<32>;
  T* const A;
  const index_t ld;
  const int m, n, left, blocks, block, first;
  int* const pivots;
  const int rank, lane, warp;
  const bool clerk;
  const bool direct;  // every warp sends its candidate
  unsigned turn = 0;
  int slot = 0, parity = 0;  // of the next candidates
  int zero_at = 0;
  int place[S::rows];  // where interchanges have moved the rows; of the pivot of column k, ~k
  T a[S::rows][S::in_registers];
};

#endif

}  // namespace trifactor::cuda
