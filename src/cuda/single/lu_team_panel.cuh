// LU of a narrow panel by one block, a cluster or a grid. A thread has rows of the panel, wherever interchanges
// would move them; at the end they go to where LAPACK's interchanges put them.
//
// A column: every warp finds its best candidate, PivotExchange the best of all, and each warp goes on alone.
#pragma once

#include <cuda/engine/launch.cuh>
#include <cuda/single/lu_grid_exchange.cuh>

#include <bit>

namespace trifactor::cuda {

#if TRIFACTOR_HAS_CLUSTERS

/// Factors a panel of m rows and n columns, n <= width, and makes its interchanges in `left` columns to the left of it.
template <class T, class S>
class TeamPanel : PanelExchange<T, S> {
 public:
  using Exchange = PanelExchange<T, S>;
  using Message = typename Exchange::Message;
  using Words = typename Exchange::Words;

  /// Further arguments are the exchange's.
  template <class... More>
  __device__ TeamPanel(const Tile<T>& panel, int left_, int blocks_, int* pivots_, int first_, More... more)
      : Exchange(blocks_, more...),
        A(panel.data),
        ld(panel.col_stride),
        m(int(panel.rows)),
        n(int(panel.cols)),
        left(left_),
        first(first_),
        pivots(pivots_),
        rank(int(threadIdx.x)) {}

  /// Returns 0 or the first k + 1 whose pivot is zero; to a clerk 0.
  __device__ int factor() {
    if constexpr (!S::one_block) {
      if (rank == 0) this->make_barriers();
      this->arrive();
    }
    if (has_rows()) load();
    if constexpr (!S::one_block) this->wait_for_blocks();  // nobody sends before the barriers stand
#pragma unroll 1
    for (int k = 0, half = 0; k < n; k += S::step, half ^= 1) {
      const int steps = min(min(S::step, n - k), m - k), right = n - k - S::step;
      if (has_rows())
        factor_step(k, steps, half, right > 0);
      else
        for (int s = 0; s < steps; ++s) this->relay();
      if (right <= 0) break;
      if constexpr (S::one_block) __syncthreads();  // the pivot rows are there
      if (warp == speaker && steps > 0) solve_step(k, right, steps, half, k / S::step / 2 % 2);
      __syncthreads();  // the rows of U are there
      if (block == 0 && warp == speaker && lane < right) store_upper(k, lane);
      if (!has_rows()) continue;
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
  using Exchange::block, Exchange::blocks, Exchange::lane, Exchange::warp, Exchange::turn, Exchange::speaker;
  using Exchange::has_rows, Exchange::memory, Exchange::two_words;
  static constexpr int no_row = -1 - (1 << 30);
  static constexpr int number_bits = std::bit_width(32u * S::rows - 1);  // of a row of a warp

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
    T l[S::rows];
    Words pivot{};
    int noted_place = 0, noted_row = 0, noted_holder = 0;  // of the pivot of column k0 + lane
    int last = -1;
#pragma unroll
    for (int i = 0; i < S::rows; ++i) last = max(last, place[i]);
    const bool candidates = __any_sync(~0u, last >= 0);
    if (steps > 0) offer(0, candidates, [] {});
    if constexpr (!S::rest_in_registers) {
      copy_wait_all();  // what load() began, in the first step
      __syncwarp();     // give_raw reads rows of other lanes
    }
#pragma unroll 1
    for (int s = 0; s < steps; ++s, to += ld) {
      const int k = k0 + s;
      this->wait();
      unsigned top;
      const bool several = this->choose(s, top, pivot);
      const T* const u = pivot.message().values + 1;
#pragma unroll
      for (int i = 0; i < S::rows; ++i) l[i] = a[i][0] * u[-1];
      if (__builtin_expect(several || !tag_has_safe_reciprocal<Real<T>>(top), false)) {
        if (several) this->exact_choice(s, pivot);
        if (u[0] == T(0) && zero_at == 0) zero_at = k + 1;
        const Quotient<T> divide(u[0], u[-1], pivot_key(u[0]).high);
#pragma unroll
        for (int i = 0; i < S::rows; ++i) l[i] = divide(a[i][0]);
      }
      const unsigned its_turn = turn++;
      const int p = pivot.message().place, lies = pivot.message().row, holder = pivot.message().holder;
#pragma unroll
      for (int i = 0; i < S::rows; ++i) {
        a[i][0] = minus_product(a[i][1], l[i], u[1]);
        place[i] = place[i] == p ? ~k : place[i] == k ? p : place[i];
      }
      const auto update_others = [&]() TF_INLINE_LAMBDA {
#pragma unroll
        for (int j = 2; j < S::step; ++j)
#pragma unroll
          for (int i = 0; i < S::rows; ++i) a[i][j - 1] = minus_product(a[i][j], l[i], u[j]);
      };
      s + 1 < steps ? offer(s + 1, candidates, update_others) : update_others();
      if (lane == s) noted_place = p, noted_row = lies, noted_holder = holder;
#pragma unroll
      for (int i = 0; i < S::rows; ++i) {
        if (place[i] >= 0) to[i * S::threads] = l[i];
        memory().lower[s][own_row(i)] = l[i];
      }
      if constexpr (!S::one_block)
        if (holder == this->holder()) {
          const int sender = S::is_grid ? 0 : block;
          const T* const handed_over = memory().candidates[its_turn % 2][sender].values + 1;  // until the next but one
          if (k + lane < n && lane < S::step - s) A[lies + (k + lane) * ld] = handed_over[lane];
          if (more) give_raw(s, k, lies - block * S::block_rows, half);
        }
    }
    if constexpr (S::one_block) {
      if (warp == 0) store_pivot_rows(k0, steps, noted_row, noted_holder);
      if (more) keep_pivot_rows(k0, half);
    }
    if (warp == 0 && lane < steps) {
      memory().moves.from[k0 + lane] = noted_row;
      if (block == 0) pivots[k0 + lane] = first + noted_place + 1;
    }
  }
  /// By the warp that has it: what the pivot row of column k, number s of its step, has right of the step, and L in the
  /// step, to all blocks. It is the block's row `own`.
  __device__ void give_raw(int s, int k, int own, int half) {
    T* const raw = memory().own_raw[s];
    if constexpr (S::rest_in_registers) {
      for_constants<S::rows>([&](auto i) TF_INLINE_LAMBDA {
        if (place[i.value] == ~k) copy_rest<i.value>(raw);
      });
    } else {
      if (k - s + lane < S::rest) raw[S::step + lane] = memory().rest_columns[k - s + lane][own];
    }
    __syncwarp();  // L of all lanes is there
    if (lane < s) raw[lane] = memory().lower[lane][own];
    __syncwarp();  // the row is there
    this->send_row(raw, half, s);
  }
  template <int i>
  __device__ void copy_rest(T* raw) const {
    distinct_branch<i>();
    write_vectors<S::rest>(raw + S::step, reinterpret_cast<const T(&)[S::rest]>(a[i][S::step]));
  }
  /// One block alone has time for its pivot rows at the end of a step. By a warp: what they have in the step, as their
  /// warps handed it over. Lane s has the row and the warp of column k0 + s.
  __device__ void store_pivot_rows(int k0, int steps, int noted_row, int noted_holder) const {
#pragma unroll
    for (int s0 = 0; s0 < S::step; s0 += 32 / S::step) {
      const int s = s0 + lane / S::step, j = lane % S::step;
      const int lies = __shfl_sync(~0u, noted_row, s), holder = __shfl_sync(~0u, noted_holder, s);
      if (s < steps && s + j < S::step && k0 + s + j < n)
        A[lies + (k0 + s + j) * ld] = memory().candidates[s][holder].values[1 + j];
    }
  }
  /// By every thread: what its pivot rows have right of the step that begins at column k0.
  __device__ void keep_pivot_rows(int k0, int half) {
    for_constants<S::rows>([&](auto i) TF_INLINE_LAMBDA {
      const int s = ~place[i.value] - k0;
      if (place[i.value] < 0 && s >= 0 && s < S::step) copy_rest<i.value>(memory().raw[half][s]);
    });
  }

  /// The best of this warp's rows in the first column in registers, for column s of the step; `candidates`: it had some
  /// when the step began. Calls meanwhile() while the warp votes.
  template <class Meanwhile>
  __device__ void offer(int s, bool candidates, const Meanwhile& meanwhile) {
    const auto target = !S::one_block && !S::has_clerk ? this->next_target() : typename Exchange::Target{};
    unsigned tag = 0, second = 0;  // the two largest of this thread
    T value = a[0][0];
    int mine = 0;
#pragma unroll
    for (int i = 0; i < S::rows; ++i) {
      const unsigned other = place[i] < 0 ? 0 : pivot_tag<number_bits>(pivot_key(a[i][0]).high, 32 * i + lane);
      if (i > 0) mine = other > tag ? i : mine, value = other > tag ? a[i][0] : value;
      second = max(second, min(tag, other)), tag = max(tag, other);
    }
    const T inverse = is_complex<T> ? T(0) : reciprocal(value);  // while the warp votes
    const unsigned top = __reduce_max_sync(~0u, tag);
    meanwhile();
    Words words{};
    if constexpr (S::rows <= 2) fill_from_two(words.message(), mine);
    words.message().values[0] = inverse;
    const unsigned tied = __ballot_sync(~0u, same_upper_bits<number_bits>(tag, top));
    bool several = (tied & (tied - 1)) != 0;
    if constexpr (S::rows > 1) several = several | __any_sync(~0u, same_upper_bits<number_bits>(second, top));
    if (top >> number_bits == 0) several = candidates;  // zeros, or rows that are none
    int number = int(top % (1u << number_bits));
    if (__builtin_expect(several, false)) {
      number = exact_best_row();
      if constexpr (S::rows <= 2) {
        fill_from_two(words.message(), max(number, 0) / 32);
        words.message().values[0] = reciprocal(words.message().values[1]);
      }
    }
    const bool winner = lane == max(number, 0) % 32;
    if constexpr (S::rows > 2)
      for_constants<S::rows>([&](auto i) TF_INLINE_LAMBDA {
        if (max(number, 0) / 32 == i.value) distinct_branch<i.value>(), fill<i.value>(words.message());
      });
    if (winner && (is_complex<T> || (several && S::rows > 2)))
      words.message().values[0] = reciprocal(words.message().values[1]);
    if (number < 0) words.message().place = -1;
    words.message().tag = top & ~0u << number_bits, words.message().holder = this->holder();
    this->hand_over(s, winner, words);
    this->announce(target);
  }
  template <int i>
  __device__ void fill(Message& message) const {
    message.place = place[i], message.row = row(i);
#pragma unroll
    for (int j = 0; j < S::step; ++j) message.values[1 + j] = a[i][j];
  }
  /// From row i of a thread with one or two, without a branch.
  __device__ void fill_from_two(Message& message, int i) const {
    constexpr int last = S::rows > 1;
    message.place = i == last ? place[last] : place[0], message.row = row(i);
#pragma unroll
    for (int j = 0; j < S::step; ++j) message.values[1 + j] = i == last ? a[last][j] : a[0][j];
  }
  /// The number of the best row of this warp, -1 if it has no candidate.
  __device__ int exact_best_row() const {
    PivotCandidate best = no_candidate;
    int number = -1;
#pragma unroll
    for (int i = 0; i < S::rows; ++i) {
      const PivotKey key = pivot_key(a[i][0]);
      if (place[i] >= 0 && beats(key, place[i], best.key, best.place))
        best = {key, place[i], 0}, number = 32 * i + lane;
    }
    if (__ballot_sync(~0u, number >= 0) == 0) return -1;
    const unsigned mask = best_lane_mask<two_words>(best);
    return __shfl_sync(~0u, number, __ffs(int(mask)) - 1);
  }

  /// By the speaker: U in the `right` columns to the right of the step, a column to a lane.
  __device__ void solve_step(int k0, int right, int steps, int half, int parity) {
    if constexpr (S::one_block) {  // L of the pivot rows, in the step
#pragma unroll
      for (int s0 = 0; s0 < S::step; s0 += 32 / S::step) {
        const int s = s0 + lane / S::step, i = lane % S::step;
        if (s < steps && i < s) memory().raw[half][s][i] = memory().lower[i][memory().moves.from[k0 + s]];
      }
      __syncwarp();
    } else {
      this->receive_rows(k0, steps, half, parity);
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
    if (block == 0 && has_rows()) {
#pragma unroll
      for (int i = 0; i < S::rows; ++i)
        if (row(i) < steps) memory().moves.to[row(i)] = place[i];  // negative: it was a pivot
    }
    S::one_block ? __syncthreads() : this->receive_list(steps);  // all columns are in memory, and the list is here
    if constexpr (!S::one_block) this->arrive();                 // this block needs nothing more of others
    constexpr int warps = S::all_threads / 32;
    memory().moves.apply(A - left * ld, ld, steps, block * warps + warp, blocks * warps, left + n);
    if constexpr (!S::one_block) this->wait_for_blocks();  // nobody leaves while others read its list
  }

  T* const A;
  const index_t ld;
  const int m, n, left, first;
  int* const pivots;
  const int rank;
  int zero_at = 0;
  int place[S::rows];  // where interchanges have moved the rows; of the pivot of column k, ~k
  T a[S::rows][S::in_registers];
};

#endif

}  // namespace trifactor::cuda
