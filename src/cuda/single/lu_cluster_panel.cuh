// LU of a narrow panel by one cluster of blocks. A thread has rows of the panel, wherever interchanges
// would move them; at the end they go to where LAPACK's interchanges put them.
//
// A column: every warp finds its best candidate, and every block sends the best of its warps with its row to all blocks
// of the cluster. Each warp then finds the best of these, and goes on alone.
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
        block(S::one_block ? 0 : cluster_rank()),
        first(first_),
        pivots(pivots_),
        rank(int(threadIdx.x)),
        lane(rank % 32),
        warp(rank / 32),
        clerk(warp == Memory::warps),
        blocks(blocks_) {
    asm volatile("" : "+r"(blocks));  // otherwise it is read from the parameters again and again
  }

  /// Returns 0 or the first k + 1 whose pivot is zero, to lane 0 of the clerk; 0 to others.
  __device__ int factor() {
    if (!S::one_block && clerk && lane == 0) {
      for (auto& barrier : memory().arrived) barrier_init(shared_address(&barrier), 1);
      for (auto& barrier : memory().raw_arrived) barrier_init(shared_address(&barrier), 1);
      announce_barriers();
    }
    if constexpr (!S::one_block) cluster_arrive();
    if (!clerk) load();
    if constexpr (!S::one_block) cluster_wait();  // nobody sends before the barriers stand
#pragma unroll 1
    for (int k = 0, half = 0; k < n; k += S::step, half ^= 1) {
      const int steps = min(min(S::step, n - k), m - k), right = n - k - S::step;
      if (clerk) {
        note_pivots(k, steps);
        if (right > 0 && steps > 0) solve_step(right, steps, half, k / S::step / 2 % 2);
      } else {
        factor_step(k, steps, half, right > 0);
        if (S::one_block && right > 0 && steps > 0) meet<NamedBarrier::last_pivot_row, all_threads>();
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
  using Choice = PivotChoice<Message>;
  static constexpr int no_row = -1 - (1 << 30), all_threads = S::threads + 32;

  __device__ static Memory& memory() {
    extern __shared__ __align__(32) unsigned char panel_memory[];
    return *reinterpret_cast<Memory*>(panel_memory);
  }
  __device__ int own_row(int i) const { return i * S::threads + rank; }
  __device__ int row(int i) const { return block * S::block_rows + own_row(i); }

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
    }
  }

  /// The first columns in registers, of which `steps` have a pivot, the first that of column k0 of the panel. They move
  /// by one after each column, so that the code of one serves for all. First comes what others wait for: the next
  /// column and the candidate in it. L and the pivot row have time.
  __device__ void factor_step(int k0, int steps, int half, bool more) {
    T* to = A + row(0) + k0 * ld;
    T u[S::step], l[S::rows];
    if (steps > 0) offer([] {});
    if constexpr (!S::rest_in_registers) {
      copy_wait_all();  // what load() began, in the first step
      __syncwarp();     // give_raw reads rows of other lanes
    }
#pragma unroll 1
    for (int s = 0; s < steps; ++s, to += ld) {
      const int k = k0 + s;
      const Choice pivot = chosen<false>();
      const int p = pivot.message.candidate.place;
      read_vectors<S::step>(pivot.message.entries, u);
      const Quotient<T> divide(u[0], pivot.message.inverse, pivot.high_word_of_key);
#pragma unroll
      for (int i = 0; i < S::rows; ++i) {
        l[i] = divide(a[i][0]);
        a[i][0] = minus_product(a[i][1], l[i], u[1]);
        place[i] = place[i] == p ? ~k : place[i] == k ? p : place[i];
      }
      const auto update_others = [&]() TF_INLINE_LAMBDA {
#pragma unroll
        for (int j = 2; j < S::step; ++j)
#pragma unroll
          for (int i = 0; i < S::rows; ++i) a[i][j - 1] = minus_product(a[i][j], l[i], u[j]);
      };
      if (s + 1 < steps)
        offer(update_others);
      else
        update_others();
#pragma unroll
      for (int i = 0; i < S::rows; ++i) {
        if (place[i] >= 0) to[i * S::threads] = l[i];
        memory().lower[s][own_row(i)] = l[i];
      }
      if constexpr (S::rest > 0)
        if (more) give_raw(s, k0, half);
    }
  }
  /// The warp of the pivot row of column k0 + s sends what lies right of the step, and L in the step, to all blocks.
  __device__ void give_raw(int s, int k0, int half) {
    const int k = k0 + s;
    int mine = -1;
#pragma unroll
    for (int i = 0; i < S::rows; ++i) mine = place[i] == ~k ? i : mine;
    const unsigned holder = __ballot_sync(~0u, mine >= 0);
    if (holder == 0) return;
    const int own = __shfl_sync(~0u, own_row(mine), __ffs(int(holder)) - 1);
    T* const raw = S::one_block ? memory().raw[half][s] : memory().own_raw[half][s];
    if constexpr (S::rest_in_registers) {
      for_constants<S::rows>([&](auto i) TF_INLINE_LAMBDA {
        if (mine == i.value) {
          distinct_branch<i.value>();
#pragma unroll
          for (int j = 0; j < S::rest; ++j) raw[S::step + j] = a[i.value][S::step + j];
        }
      });
    } else {
      if (k0 + lane < S::rest) raw[S::step + lane] = memory().rest_columns[k0 + lane][own];
    }
    if (lane < s) raw[lane] = memory().lower[lane][own];
    __syncwarp();  // the row is there
    if constexpr (S::one_block) return;
    constexpr int parts = int(sizeof(T)) * (S::step + S::rest) / 16;
    for (int e = lane; e < parts * blocks; e += 32) {
      const int to = e / parts, part = e % parts;
      send_async(shared_address_of(shared_address(memory().raw[half][s]), to) + 16u * unsigned(part),
                 reinterpret_cast<const ulonglong2*>(raw)[part],
                 shared_address_of(shared_address(&memory().raw_arrived[half]), to));
    }
  }
  /// The best of this warp's rows in the first column in registers. Calls meanwhile() while the warp votes.
  template <class Meanwhile>
  __device__ void offer(const Meanwhile& meanwhile) {
    int mine = 0, at = place[0];
    T value = a[0][0];
    PivotKey key = pivot_key(value);
    if (at < 0) key = {0, 0};
#pragma unroll
    for (int i = 1; i < S::rows; ++i) {
      PivotKey other = pivot_key(a[i][0]);
      if (place[i] < 0) other = {0, 0};
      const bool better = beats(other, place[i], key, at);
      key.high = better ? other.high : key.high, key.low = better ? other.low : key.low;
      mine = better ? i : mine, at = better ? place[i] : at, value = better ? a[i][0] : value;
    }
    unsigned high;
    const unsigned best = best_lane_mask<two_words>({key, at, 0}, high, meanwhile);
    Message& message = S::one_block ? memory().candidates[slot][warp] : memory().own[turn % 2][warp];
    if (best == 0 && lane == 0) message.candidate = no_candidate;
    if (best >> lane & 1) {
      message.candidate = {key, at, row(mine)};
      message.inverse = reciprocal(value);
      for_constants<S::rows>([&](auto i) TF_INLINE_LAMBDA {
        if (mine == i.value) {
          distinct_branch<i.value>();
          const T(&columns)[S::step] = reinterpret_cast<const T(&)[S::step]>(a[i.value]);
          write_vectors<S::step>(message.entries, columns);
        }
      });
    }
    __syncwarp();                                                                  // the message is there
    if constexpr (!S::one_block) arrive<NamedBarrier::candidates, all_threads>();  // the clerk sends the best one
  }
  /// The candidate of this block to every block of the cluster, 16 bytes at a time.
  __device__ void send(const Message& message) {
    constexpr int together = 32 / max_cluster_blocks, parts = int(sizeof(Message)) / 16 / together;
    static_assert(int(sizeof(Message)) == 16 * together * parts);
    const int to = lane % max_cluster_blocks, first_part = lane / max_cluster_blocks;
    if (to >= blocks) return;
    const unsigned target = shared_address_of(shared_address(&memory().candidates[slot][block]), to);
    const unsigned arrived = shared_address_of(shared_address(&memory().arrived[slot]), to);
    ulonglong2 words[parts];
#pragma unroll
    for (int i = 0; i < parts; ++i) words[i] = reinterpret_cast<const ulonglong2*>(&message)[first_part + together * i];
#pragma unroll
    for (int i = 0; i < parts; ++i) send_async(target + 16u * unsigned(first_part + together * i), words[i], arrived);
  }

  /// The pivot, as every warp of the cluster finds it. Candidates for a column are sent when those for the last one are
  /// read, by all warps but the clerks. A clerk reads them before it lets its block read the next ones. So no candidate
  /// is overwritten, three columns later, before it is read.
  template <bool is_clerk>
  __device__ Choice chosen() {
    if constexpr (S::one_block) {
      meet<NamedBarrier::candidates, all_threads>();
    } else {
      const unsigned arrived = shared_address(&memory().arrived[slot]);
      if constexpr (is_clerk) {
        if (lane == 0) barrier_arrive_expecting(arrived, blocks * int(sizeof(Message)));
        meet<NamedBarrier::candidates, all_threads>();
        send(best_of(memory().own[turn % 2], Memory::warps).message);
      }
      barrier_wait(arrived, parity);
    }
    const Choice best = best_of(memory().candidates[slot], S::one_block ? Memory::warps : blocks);
    ++turn;
    if (++slot == Memory::slots) slot = 0, parity ^= 1;
    return best;
  }
  __device__ Choice best_of(const Message* messages, int count) const {
    const PivotCandidate mine = lane < count ? messages[lane].candidate : no_candidate;
    unsigned high;
    const unsigned best = best_lane_mask<two_words>(mine, high, [] {});
    return {messages[max(31 - __clz(int(best)), 0)], high};
  }
  /// By the clerk: what factor_step finds, into memory.
  __device__ void note_pivots(int k0, int steps) {
#pragma unroll 1
    for (int s = 0; s < steps; ++s) {
      const int k = k0 + s;
      const Message& pivot = chosen<true>().message;
      if (lane < S::step - s) {
        const T x = pivot.entries[lane];
        if (block == 0 && k + lane < n) A[pivot.candidate.row + (k + lane) * ld] = x;
        if (lane == 0 && x == T(0) && zero_at == 0) zero_at = k + 1;
      }
      if (lane == 0) {
        memory().moves.from[k] = pivot.candidate.row;
        if (block == 0) pivots[k] = first + pivot.candidate.place + 1;
      }
      __syncwarp();  // before the warp meets the others
    }
  }
  /// By the clerk: U in the `right` columns to the right of the step, a column to a lane.
  __device__ void solve_step(int right, int steps, int half, int parity) {
    if constexpr (S::one_block) {
      meet<NamedBarrier::last_pivot_row, all_threads>();
    } else {
      const unsigned arrived = shared_address(&memory().raw_arrived[half]);
      if (lane == 0) barrier_arrive_expecting(arrived, steps * (S::step + S::rest) * int(sizeof(T)));
      barrier_wait(arrived, parity);
    }
    if (lane >= right) return;
    T u[S::step];
#pragma unroll
    for (int s = 0; s < S::step; ++s) u[s] = memory().raw[half][s][S::step + lane];
#pragma unroll
    for (int i = 0; i + 1 < S::step; ++i)
#pragma unroll
      for (int s = i + 1; s < S::step; ++s) u[s] = minus_product(u[s], memory().raw[half][s][i], u[i]);
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
        T u[S::step], l[S::rows];
        read_vectors<S::step>(&memory().upper[s][j0], u);
#pragma unroll
        for (int i = 0; i < S::rows; ++i) l[i] = memory().lower[s][own_row(i)];
#pragma unroll
        for (int j = 0; j < S::step; ++j)
#pragma unroll
          for (int i = 0; i < S::rows; ++i)
            a[i][j0 + j] = minus_product(a[i][j0 + j + (s == 0 ? S::step : 0)], l[i], u[j]);
      }
    }
  }
  /// The same for those in shared memory, right of the step at column k. The first of them move to its place.
  __device__ void update_rest_in_memory(int k, int right) {
    if constexpr (S::rest > S::step) update_far_columns(k, right);
#pragma unroll
    for (int j = 0; j < S::step; ++j)
#pragma unroll
      for (int i = 0; i < S::rows; ++i) a[i][j] = memory().rest_columns[k + j][own_row(i)];
#pragma unroll
    for (int s = 0; s < S::step; ++s) {
      T u[S::step];
      read_vectors<S::step>(memory().upper[s], u);
#pragma unroll
      for (int i = 0; i < S::rows; ++i) {
        const T l = memory().lower[s][own_row(i)];
#pragma unroll
        for (int j = 0; j < S::step; ++j) a[i][j] = minus_product(a[i][j], l, u[j]);
      }
    }
  }
  /// Those that stay in shared memory.
  __device__ void update_far_columns(int k, int right) {
    T l[S::step][S::rows];
#pragma unroll
    for (int s = 0; s < S::step; ++s)
#pragma unroll
      for (int i = 0; i < S::rows; ++i) l[s][i] = memory().lower[s][own_row(i)];
#pragma unroll 1
    for (int j = S::step; j < right; ++j) {
      T u[S::step], x[S::rows];
#pragma unroll
      for (int i = 0; i < S::rows; ++i) x[i] = memory().rest_columns[k + j][own_row(i)];
#pragma unroll
      for (int s = 0; s < S::step; ++s) u[s] = memory().upper[s][j];
#pragma unroll
      for (int s = 0; s < S::step; ++s)
#pragma unroll
        for (int i = 0; i < S::rows; ++i) x[i] = minus_product(x[i], l[s][i], u[s]);
#pragma unroll
      for (int i = 0; i < S::rows; ++i) memory().rest_columns[k + j][own_row(i)] = x[i];
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
    S::one_block ? __syncthreads() : cluster_sync();  // all columns are in memory, and so is the list
    if (block != 0) {
      if (rank < steps)
        memory().moves.to[rank] = load_shared_of<int>(shared_address_of(shared_address(&memory().moves.to[rank]), 0));
      __syncthreads();  // the list is here
    }
    if constexpr (!S::one_block) cluster_arrive();  // this block needs nothing more of others
    constexpr int warps = Memory::warps + 1;
    memory().moves.apply(A - left * ld, ld, steps, block * warps + warp, blocks * warps, left + n);
    if constexpr (!S::one_block) cluster_wait();  // nobody leaves while others read its list
  }

  static constexpr bool two_words = sizeof(Real<T>) == 8;
  T* const A;
  const index_t ld;
  const int m, n, left, block, first;
  int* const pivots;
  const int rank, lane, warp;
  const bool clerk;
  int blocks;
  unsigned turn = 0;
  int slot = 0, parity = 0;  // of the next candidates
  int zero_at = 0;
  int place[S::rows];  // where interchanges have moved the rows; of the pivot of column k, ~k
  T a[S::rows][S::in_registers];
};

#endif

}  // namespace trifactor::cuda
