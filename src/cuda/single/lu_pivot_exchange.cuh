// How the threads that factor a panel agree on the pivot of a column. Each warp hands over its best candidate with its
// row, the speaker of a block sends the best of these to all blocks of the cluster, and every warp finds the best of
// all. Blocks of a grid: lu_grid_exchange.cuh.
#pragma once

#include <cuda/device/cluster.cuh>
#include <cuda/device/fragments.cuh>
#include <cuda/single/lu_messages.cuh>

namespace trifactor::cuda {

#if TRIFACTOR_HAS_CLUSTERS

/// What a thread of a panel of shape S knows of the exchange. Branches that are seldom taken, since candidates tie,
/// are out of the way: everything here lies on the critical path of a column. Messages are read and written by the
/// addresses of shared memory itself, without branches.
template <class T, class S>
class PivotExchange {
 public:
  using Memory = PanelMemory<T, S>;
  using Message = typename Memory::Message;
  using Words = PivotWords<T, S::step>;
  static constexpr bool two_words = sizeof(Real<T>) == 8;
  static constexpr int speaker = S::has_clerk ? S::row_warps : S::row_warps - 1;

  int block, lane, warp, blocks;
  unsigned turn = 0;  // columns whose pivots are chosen

  __device__ explicit PivotExchange(int blocks_)
      : block(S::one_block ? 0
              : S::is_grid ? int(blockIdx.x)
                           : cluster_rank()),
        lane(int(threadIdx.x) % 32),
        warp(int(threadIdx.x) / 32),
        blocks(blocks_),
        base(shared_address(&memory())) {
    asm volatile("" : "+r"(blocks), "+r"(base));  // otherwise they are found out again and again
    if constexpr (!S::one_block && !S::is_grid) {
      const int to = min(lane % max_cluster_blocks, blocks - 1);
      first_target.message =
          shared_address_of(base + unsigned(offsetof(Memory, candidates)) + block * message_bytes, to) +
          16u * unsigned(lane / max_cluster_blocks);
      first_target.barrier = shared_address_of(base + unsigned(offsetof(Memory, arrived)), to);
    }
  }
  __device__ static Memory& memory() {
    extern __shared__ __align__(32) unsigned char panel_memory[];
    return *reinterpret_cast<Memory*>(panel_memory);
  }
  /// By one thread, before any block sends.
  __device__ void make_barriers() const {
    for (auto& barrier : memory().arrived) barrier_init(shared_address(&barrier), 1);
    for (auto& barrier : memory().raw_arrived) barrier_init(shared_address(&barrier), 1);
    announce_barriers();
  }
  /// The blocks wait for each other, in two parts.
  __device__ static void arrive() { cluster_arrive(); }
  __device__ static void wait_for_blocks() { cluster_wait(); }
  /// In the end: all that blocks wrote is in memory, and where the first rows go, which block 0 has found out, is in
  /// every block's `moves`.
  __device__ void receive_list(int steps) const {
    int* const to = memory().moves.to + threadIdx.x;
    cluster_sync();
    if (block == 0) return;
    if (int(threadIdx.x) < steps) *to = load_shared_of(shared_address_of(shared_address(to), 0));
    __syncthreads();  // the list is here
  }
  __device__ bool has_rows() const { return !S::has_clerk || warp != speaker; }
  /// The number of this warp in the cluster.
  __device__ int holder() const { return block * S::row_warps + warp; }

  /// Where a lane of the speaker sends its part of the next candidate, and the barrier that counts it there.
  struct Target {
    unsigned message, barrier;
  };
  __device__ Target next_target() const {
    Target next{first_target.message + turn % 2 * unsigned(Memory::senders * message_bytes),
                first_target.barrier + turn % 2 * 8};
    asm volatile("" : "+r"(next.message), "+r"(next.barrier));  // now, not when others wait for it
    return next;
  }
  /// The candidate of this warp for column s of the step, which lane `winner` has.
  __device__ void hand_over(int s, bool winner, const Words& candidate) const {
    const unsigned to =
        base + (S::one_block ? candidates_of(s) : unsigned(offsetof(Memory, own))) + warp * message_bytes;
#pragma unroll
    for (int i = 0; i < Message::words; ++i)
      store_shared_if(winner && matters(i, s), to + 16u * unsigned(i), candidate.word[i]);
  }
  /// By all warps with rows, when they have handed over: the best candidate of the block goes to all blocks.
  __device__ void announce(const Target& target) {
    __syncwarp();  // the message is there
    if constexpr (!S::one_block) {
      if (!S::has_clerk && warp == speaker)
        relay(target);
      else
        arrive_threads<candidates_barrier, S::all_threads>();
      if (!S::has_clerk && warp == 0 && lane == 0) expect();
    }
  }
  /// By the clerk, for a column, in place of all that the others do.
  __device__ void relay() {
    if (lane == 0) expect();
    relay(next_target());
    ++turn;
  }
  /// Candidates for a column are sent when all warps of a block have read those for the last one. So no candidate is
  /// overwritten, two columns later, before it is read.
  __device__ void wait() const {
    if constexpr (S::one_block)
      __syncthreads();
    else
      barrier_wait(base + unsigned(offsetof(Memory, arrived)) + turn % 2 * 8, int(turn / 2 % 2));
  }
  /// The best candidate for column s of the step, and the largest tag. True if others have that tag: then
  /// exact_choice() finds the best.
  __device__ bool choose(int s, unsigned& top, Words& best) const {
    return choose(base + candidates_of(s), S::one_block ? S::row_warps : blocks, top,
                  [&](unsigned from) TF_INLINE_LAMBDA {
#pragma unroll
                    for (int i = 0; i < Message::words; ++i)
                      load_shared_if(matters(i, s), best.word[i], from + 16u * unsigned(i));
                  });
  }
  __device__ void exact_choice(int s, Words& best) const {
    const Message* const all = memory().candidates[S::one_block ? s : turn % 2];
    best.message() = all[exact_best(all, S::one_block ? S::row_warps : blocks)];
  }
  /// By a warp: the pivot row of column s of a step, with L in the step and what is right of it, to all blocks.
  __device__ void send_row(const T* row, int half, int s) const {
    const T* const place = memory().raw[half][s];
    const auto& arrived = memory().raw_arrived[half];
    constexpr int parts = int(sizeof(T)) * (S::step + S::rest) / 16;
    for (int e = lane; e < parts * blocks; e += 32) {
      const int to = e / parts, part = e % parts;
      send_async(shared_address_of(shared_address(place), to) + 16u * unsigned(part),
                 reinterpret_cast<const ulonglong2*>(row)[part], shared_address_of(shared_address(&arrived), to));
    }
  }
  /// By the speaker: waits for all pivot rows of a step.
  __device__ void receive_rows(int, int steps, int half, int parity) const {
    const unsigned arrived = shared_address(&memory().raw_arrived[half]);
    if (lane == 0) barrier_arrive_expecting(arrived, steps * (S::step + S::rest) * int(sizeof(T)));
    barrier_wait(arrived, parity);
  }

 protected:
  static constexpr int message_bytes = int(sizeof(Message)), candidates_barrier = 1;

  /// Whether word i of a message about column s of a step is used. Several blocks do not ask: it takes longer than it
  /// saves.
  __device__ static bool matters(int i, int s) {
    return !S::one_block || (i - 1) * Message::together < 1 + S::step - s;
  }
  __device__ unsigned candidates_of(int s) const {
    const unsigned set = S::one_block ? unsigned(s) : turn % 2;
    return unsigned(offsetof(Memory, candidates)) + set * unsigned(Memory::senders * message_bytes);
  }
  /// By one thread: so many bytes will arrive.
  __device__ void expect() const {
    barrier_arrive_expecting(base + unsigned(offsetof(Memory, arrived)) + turn % 2 * 8, blocks * Message::words * 16);
  }
  /// By the speaker: the best candidate of the warps of this block, 16 bytes at a time.
  __device__ void relay(const Target& target) const {
    constexpr int together = 32 / max_cluster_blocks, parts = (Message::words + together - 1) / together;
    const int to = lane % max_cluster_blocks, first_part = lane / max_cluster_blocks;
    const unsigned own = base + unsigned(offsetof(Memory, own));
    ulonglong2 x[parts]{};
    const auto read = [&](unsigned from) TF_INLINE_LAMBDA {
#pragma unroll
      for (int i = 0; i < parts; ++i) load_shared_if(true, x[i], from + 16u * unsigned(first_part + together * i));
    };
    sync_threads<candidates_barrier, S::all_threads>();
    unsigned top;
    if (__builtin_expect(choose(own, S::row_warps, top, read), false)) {
      read(own + exact_best(memory().own, S::row_warps) * message_bytes);
      __syncwarp();  // all lanes have read
    }
    order_after_vote();  // once a message is there, candidates of this block are written again
#pragma unroll
    for (int i = 0; i < parts; ++i)
      send_async_if(to < blocks && first_part + together * i < Message::words,
                    target.message + 16u * unsigned(together * i), x[i], target.barrier);
  }
  template <class Read>
  __device__ bool choose(unsigned messages, int count, unsigned& top, const Read& read) const {
    unsigned tag = 0;
    if (lane < count) load_shared(tag, messages + lane * message_bytes), tag |= unsigned(lane);
    top = __reduce_max_sync(~0u, tag);
    read(messages + top % 32 * message_bytes);
    const unsigned tied = __ballot_sync(~0u, same_upper_bits<5>(tag, top));
    return (tied & (tied - 1)) != 0;
  }
  __device__ int exact_best(const Message* messages, int count) const {
    PivotCandidate mine = no_candidate;
    if (lane < count && messages[lane].place >= 0)
      mine = {pivot_key(messages[lane].values[1]), messages[lane].place, 0};
    return max(31 - __clz(int(best_lane_mask<two_words>(mine))), 0);
  }

  unsigned base;  // of the shared memory

 private:
  Target first_target{};
};

#endif

}  // namespace trifactor::cuda
