// The machine itself: what it computes, and that it finds the mistakes of a kernel.
#include "support.hpp"

#include <cuda/device/cluster.cuh>
#include <cuda/device/instructions.cuh>
#include <cuda/device/signals.cuh>

namespace trifactor::cuda {
extern __shared__ unsigned char raw[];
}

namespace trifactor::simt {
namespace {

using namespace cuda;

TEST(Machine, ShufflesAndVotes) {
  int wrong = 0;
  run({{2}, 64}, [&] {
    const int l = int(threadIdx.x) % 32;
    bool right = __shfl_sync(~0u, l, 5) == 5 && __shfl_sync(~0u, l, l / 4, 8) == l / 8 * 8 + l / 4 % 8;
    right = right && __shfl_xor_sync(~0u, double(l), 3) == double(l ^ 3);
    right = right && __shfl_down_sync(~0u, l, 4) == (l < 28 ? l + 4 : l) &&
            __shfl_up_sync(~0u, l, 1) == max(l - 1, l == 0 ? 0 : l - 1);
    right =
        right && __ballot_sync(~0u, l % 3 == 0) == 0x49249249u && __any_sync(~0u, l == 7) && !__any_sync(~0u, l > 31);
    right = right && __reduce_max_sync(~0u, unsigned(l)) == 31 && __reduce_min_sync(~0u, l - 3) == -3 &&
            __reduce_or_sync(~0u, 1u << l) == ~0u;
    if (!right) std::atomic_ref(wrong).fetch_add(1);
  });
  EXPECT_EQ(wrong, 0);
}

TEST(Machine, MultipliesAsTensorCoresDo) {
  double a[16][8], b[8][8], c[16][8] = {}, expected[16][8] = {};
  for (int i = 0; i < 16; ++i)
    for (int k = 0; k < 8; ++k) a[i][k] = i - 3 * k, b[k][i % 8] = 2 * k + i % 8;
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 8; ++j)
      for (int k = 0; k < 8; ++k) expected[i][j] += a[i][k] * b[k][j];
  run({{1}, 32}, [&] {
    const int g = int(threadIdx.x) / 4, t = int(threadIdx.x) % 4;
    double x[4] = {};
    float y[4] = {};
    for (int h = 0; h < 2; ++h) mma(x, a[g][4 * h + t], a[g + 8][4 * h + t], b[4 * h + t][g]);
    const auto bits = [](double v) { return __float_as_uint(float(v)); };
    mma8_tf32(y, {{bits(a[g][t]), bits(a[g + 8][t])}, {bits(a[g][4 + t]), bits(a[g + 8][4 + t])}},
              {bits(b[t][g]), bits(b[4 + t][g])});
    for (int e = 0; e < 4; ++e) c[g + e / 2 * 8][2 * t + e % 2] = x[e] == double(y[e]) ? x[e] : -1;
  });
  EXPECT_EQ(std::memcmp(c, expected, sizeof c), 0);
}

TEST(Machine, CopiesArriveWhenTheyAreWaitedFor) {
  double from[64] = {}, to[64] = {};
  for (int i = 0; i < 64; ++i) from[i] = i;
  run({{1}, 32}, [&] {
    auto* const s = reinterpret_cast<double*>(raw);
    copy_async<16>(shared_address(s + 2 * threadIdx.x), from + 2 * threadIdx.x, 8);
    copy_wait_all();
    __syncwarp();
    for (int e = 0; e < 2; ++e) to[2 * threadIdx.x + e] = s[2 * threadIdx.x + e];
  });
  for (int i = 0; i < 64; ++i) EXPECT_EQ(to[i], i % 2 == 0 ? i : 0);
}

/// Every block tells the next one of its cluster its number, `turns` times.
void pass_messages(bool waits) {
  constexpr int turns = 6;
  std::vector<int> wrong(4);
  run({{4}, 32, 2}, [&] {
    struct Memory {
      ulonglong2 message[2];
      unsigned long long arrived[2];
    };
    auto& m = *reinterpret_cast<Memory*>(raw);
    if (threadIdx.x == 0)
      for (auto& b : m.arrived) barrier_init(shared_address(&b), 1);
    cluster_sync();
    for (int t = 0; t < turns; ++t) {
      const unsigned barrier = shared_address(&m.arrived[t % 2]);
      const int other = 1 - cluster_rank();
      if (threadIdx.x == 0) {
        barrier_arrive_expecting(barrier, 16);
        const ulonglong2 message{unsigned(t), unsigned(cluster_rank())};
        send_async(shared_address_of(shared_address(&m.message[t % 2]), other), message,
                   shared_address_of(barrier, other));
      }
      if (waits) barrier_wait(barrier, t / 2 % 2);
      const ulonglong2 got = m.message[t % 2];
      if (got.x != unsigned(t) || got.y != unsigned(other)) std::atomic_ref(wrong[blockIdx.x]).store(1);
      cluster_sync();  // all have read
    }
  });
  EXPECT_EQ(wrong, std::vector<int>(4, waits ? 0 : 1));
}
TEST(Machine, SendsMessages) {
  for (schedule().seed = 1; schedule().seed < (in_short ? 6 : 20); ++schedule().seed) pass_messages(true);
}
TEST(Machine, MessagesAreLate) {
  if (sanitized) GTEST_SKIP() << "the sanitizer would report it";
  pass_messages(false);
}

TEST(Machine, BlocksWaitForTicketsOfOthers) {
  for (unsigned resident : {1u, 2u, 5u}) {
    schedule().resident_blocks = resident;
    int ticket = 0, done = 0;
    run({{9}, 64}, [&] {
      thread_local int own;
      if (threadIdx.x == 0) own = atomicAdd(&ticket, 1), wait_for(&done, own);
      __syncthreads();
      if (threadIdx.x == 63) add_release(&done, 1);
    });
    EXPECT_EQ(done, 9);
  }
  schedule() = {};
}

void wait_for_nobody() {
  static int never = 0;
  wait_for(&never, 1);
}
void leave_a_warp_out() {
  if (threadIdx.x < 32) __syncthreads();
}
void part_ways() {
  if (threadIdx.x < 5)
    __syncwarp();
  else
    __any_sync(~0u, true);
}
void copy_to_the_middle() { copy_async<16>(shared_address(raw + 8), nullptr, 0); }
void address_a_third() { shared_address_of(shared_address(raw), 2); }

using MachineDeath = testing::Test;
TEST(MachineDeath, EndsWithAMessage) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(run({{2}, 32}, wait_for_nobody), "all wait for each other");
  EXPECT_DEATH(run({{1}, 64}, leave_a_warp_out), "all wait for each other");
  EXPECT_DEATH(run({{1}, 32}, part_ways), "meet at different calls");
  EXPECT_DEATH(run({{1}, 32}, copy_to_the_middle), "not aligned");
  EXPECT_DEATH(run({{2}, 32, 2}, address_a_third), "not in the cluster");
}

/// Every thread reads what its neighbour wrote. Ends the program.
template <class Order>
void write_and_read(int threads, const Order& order) {
  std::vector<int> got(std::size_t(threads), 0);
  run({{1}, unsigned(threads)}, [&] {
    auto* const s = reinterpret_cast<int*>(raw);
    s[threadIdx.x] = int(threadIdx.x);
    order();
    got[threadIdx.x] = s[(int(threadIdx.x) + threads - 1) % threads];
  });
  std::exit(0);  // the sanitizer's own code, if it has reported something
}
TEST(MachineDeath, SanitizerSeesWhatNothingOrders) {
  if (!sanitized) GTEST_SKIP() << "needs a build with -fsanitize=thread";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto reported = testing::ExitedWithCode(66), silent = testing::ExitedWithCode(0);
  EXPECT_EXIT(write_and_read(64, [] { __syncwarp(); }), reported, "data race");  // of two warps
  EXPECT_EXIT(write_and_read(32, [] { __ballot_sync(~0u, true); }), reported, "data race");
  EXPECT_EXIT(write_and_read(64, [] { __syncthreads(); }), silent, "");
  EXPECT_EXIT(write_and_read(32, [] { __syncwarp(); }), silent, "");
  EXPECT_EXIT(write_and_read(64, [] { sync_threads<1, 64>(); }), silent, "");
}

}  // namespace
}  // namespace trifactor::simt
