// How the blocks of a grid that all run at once agree on the pivot of a column: as blocks of a cluster do, but by
// messages in global memory. The clerk of a block publishes its candidate there, reads those of the others, and gives
// the best of all to the warps of its block.
#pragma once

#include <cuda/device/signals.cuh>
#include <cuda/single/lu_pivot_exchange.cuh>

#include <cstring>

namespace trifactor::cuda {

#if TRIFACTOR_HAS_CLUSTERS

template <class T, class S>
class GridExchange : public PivotExchange<T, S> {
 public:
  using Base = PivotExchange<T, S>;
  using Message = typename Base::Message;
  using Words = typename Base::Words;
  using Base::block, Base::blocks, Base::lane, Base::turn, Base::memory, Base::two_words;

  __device__ GridExchange(int blocks_, GridMemory<T, S>* messages) : Base(blocks_), global(*messages) {}

  /// In the beginning a block waits for itself alone: messages are read when they are there.
  __device__ static void arrive() {}
  __device__ static void wait_for_blocks() { __syncthreads(); }

  /// By the clerk, for a column.
  __device__ void relay() {
    publish();
    const Word* const best = best_of_all();
    auto* const to = reinterpret_cast<unsigned*>(memory().candidates[turn % 2]);
    unsigned x[words_of_lane];
    for_words([&](int i, int w) TF_INLINE_LAMBDA { x[i] = word(best + w); });
    for_words([&](int i, int w) TF_INLINE_LAMBDA { to[w] = x[i]; });
    __syncwarp();  // the message is there
    if (lane == 0) barrier_arrive(base + unsigned(offsetof(typename Base::Memory, arrived)) + turn % 2 * 8);
    ++turn;
  }
  /// By all warps with rows: what their clerk has chosen.
  __device__ bool choose(int, unsigned& top, Words& best) const {
#pragma unroll
    for (int i = 0; i < Message::words; ++i)
      load_shared_if(true, best.word[i], base + this->candidates_of(0) + 16u * unsigned(i));
    top = best.message().tag;
    return false;
  }
  __device__ void send_row(const T* row, int half, int s) const {
    auto* const to = reinterpret_cast<ulonglong2*>(global.raw[half][s]);
    for (int part = lane; part < row_parts; part += 32) to[part] = reinterpret_cast<const ulonglong2*>(row)[part];
    __syncwarp();                                                           // the row is there
    if (lane == 0) store_release(&global.raw_columns[half][s], int(turn));  // one more than its column
  }
  __device__ void receive_rows(int k0, int steps, int half, int) const {
    const int* const column = &global.raw_columns[half][min(lane, S::step - 1)];
    while (!__all_sync(~0u, lane >= steps || load_acquire(column) == k0 + lane + 1)) continue;
    __syncwarp();  // what one lane has seen all may read
    const auto* const from = reinterpret_cast<const ulonglong2*>(global.raw[half]);
    auto* const to = reinterpret_cast<ulonglong2*>(memory().raw[half]);
    for (int part = lane; part < steps * row_parts; part += 32) to[part] = load_l2(from + part);
    __syncwarp();  // the rows are here
  }
  /// As in a cluster; and leaves zeros in global memory.
  __device__ void receive_list(int steps) const {
    const int rank = int(threadIdx.x);
    int* const to = memory().moves.to + rank;
    __syncthreads();  // the first block has its list
    if (block == 0 && rank < steps) global.rows_to[rank] = *to;
    __syncthreads();  // the block is done with all columns
    if (rank == 0) add_release(&global.arrived, 1), wait_for(&global.arrived, blocks);
    __syncthreads();  // all blocks are
    if (block != 0 && rank < steps) *to = load_l2(global.rows_to + rank);
    clear_messages();
    __syncthreads();  // the list is here
    if (rank == 0 && add_both(&global.left, 1) == blocks - 1) {
      for (int& row : global.rows_to) row = 0;
      global.arrived = global.left = 0;
    }
  }

 private:
  using Base::base;
  using Global = GridMemory<T, S>;
  using Word = typename Global::Word;
  static constexpr int words_of_lane = (Global::words + 31) / 32;  // of a message
  static constexpr int row_parts = int(sizeof(T)) * (S::step + S::rest) / 16;
  static constexpr int tags_of_lane = max_grid_blocks / 32;  // that a lane reads

  /// f(i, word) for the words of a message that a lane has a part in.
  template <class F>
  __device__ void for_words(F f) const {
#pragma unroll
    for (int i = 0; i < words_of_lane; ++i)
      if (lane + 32 * i < Global::words) f(i, lane + 32 * i);
  }
  /// Four bytes of a message for this column, once they are there.
  __device__ unsigned word(const Word* p) const {
    Word w;
    do w = load_relaxed(p);
    while (unsigned(w >> 32) != turn + 1);
    order_after_value(p);
    return unsigned(w);
  }
  __device__ void store_word(Word* p, unsigned x) const { store_relaxed(p, Word(turn + 1) << 32 | x); }

  /// The best candidate of this block, to global.
  __device__ void publish() const {
    const unsigned own = base + unsigned(offsetof(typename Base::Memory, own));
    unsigned x[words_of_lane];
    const auto read = [&](unsigned from) TF_INLINE_LAMBDA {
      for_words([&](int i, int w) TF_INLINE_LAMBDA { load_shared(x[i], from + 4u * unsigned(w)); });
    };
    sync_threads<Base::candidates_barrier, S::all_threads>();
    unsigned top;
    if (Base::choose(own, S::row_warps, top, read))
      read(own + this->exact_best(memory().own, S::row_warps) * Base::message_bytes);
    order_after_vote();  // once the word is there, candidates of this block are written again
    if (lane == 0) store_word(&global.tags[turn % 2][block], top & ~0u << lane_bits);
    for_words([&](int i, int w) TF_INLINE_LAMBDA { store_word(&global.candidates[turn % 2][block][w], x[i]); });
    __syncwarp();  // all lanes have read
  }
  /// Waits for the tags of all blocks.
  __device__ const Word* best_of_all() const {
    const Word* const tags = global.tags[turn % 2];
    Word seen[tags_of_lane];
    bool complete;
    do {
      complete = true;
#pragma unroll
      for (int i = 0; i < tags_of_lane; ++i) seen[i] = load_relaxed(tags + min(lane + 32 * i, blocks - 1));
#pragma unroll
      for (int i = 0; i < tags_of_lane; ++i) complete = complete & (unsigned(seen[i] >> 32) == turn + 1);
    } while (!__all_sync(~0u, complete));
    // A block that has published its tag has read the pivot rows of earlier steps, so these may be overwritten.
#pragma unroll
    for (int i = 0; i < tags_of_lane; ++i) order_after_value(tags + min(lane + 32 * i, blocks - 1));
    unsigned tag = 0, second = 0;  // the two largest of this lane
    int from = lane;
#pragma unroll
    for (int i = 0; i < tags_of_lane; ++i) {
      const unsigned other = lane + 32 * i < blocks ? unsigned(seen[i]) : 0;
      if (other > tag) from = lane + 32 * i;
      second = max(second, min(tag, other)), tag = max(tag, other);
    }
    const unsigned top = __reduce_max_sync(~0u, tag | unsigned(lane));
    const unsigned tied = __ballot_sync(~0u, same_upper_bits<lane_bits>(tag, top));
    const bool several = (tied & (tied - 1)) != 0;
    int winner = int(top % 32);
    if (several | __any_sync(~0u, same_upper_bits<lane_bits>(second, top))) winner = exact_winner(from);
    return global.candidates[turn % 2][__shfl_sync(~0u, from, winner)];
  }
  /// The lane that has the best candidate of all; `from` becomes the block that it is from.
  __device__ int exact_winner(int& from) const {
    PivotCandidate best = no_candidate;
    from = 0;
#pragma unroll 1
    for (int b = lane; b < blocks; b += 32) {
      const Word* const candidate = global.candidates[turn % 2][b];
      const int place = int(word(candidate + offsetof(Message, place) / 4));
      unsigned x[sizeof(T) / 4];
#pragma unroll
      for (int i = 0; i < int(sizeof(T) / 4); ++i)
        x[i] = word(candidate + (offsetof(Message, values) + sizeof(T)) / 4 + i);
      T value;
      memcpy(&value, x, sizeof(T));
      const PivotKey key = pivot_key(value);
      if (place >= 0 && beats(key, place, best.key, best.place)) best = {key, place, 0}, from = b;
    }
    return max(31 - __clz(int(best_lane_mask<two_words>(best))), 0);
  }
  /// Of this block, and of all by the first one: zeros again.
  __device__ void clear_messages() const {
    const auto clear = [](void* p, std::size_t bytes) {
      for (std::size_t i = threadIdx.x; i < bytes / 4; i += S::all_threads) static_cast<int*>(p)[i] = 0;
    };
    for (int set : {0, 1}) {
      clear(global.candidates[set][block], sizeof global.candidates[set][block]);
      clear(&global.tags[set][block], sizeof(Word));
    }
    if (block == 0) clear(global.raw, sizeof global.raw), clear(global.raw_columns, sizeof global.raw_columns);
  }

  static constexpr int lane_bits = 5;
  Global& global;
};

template <class T, class S>
using PanelExchange = std::conditional_t<S::is_grid, GridExchange<T, S>, PivotExchange<T, S>>;

#endif

}  // namespace trifactor::cuda
