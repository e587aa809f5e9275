// A machine of 32-lane warps on the host: it runs the kernels of src/cuda, each of their threads as a fiber, in an
// order that a seed decides. So their logic is tested where no GPU is, and the thread sanitizer, for which every fiber
// is a thread of its own, finds what no barrier orders.
//
// A thread goes on until it meets others: at a barrier, a vote, a flag. Then any other one may run. Blocks have
// operating-system threads of their own, of which one runs at a time, so a seed repeats a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <source_location>
#include <type_traits>

namespace trifactor::simt {

using Where = std::source_location;

struct Index {
  unsigned x = 1, y = 1, z = 1;
};

struct Grid {
  Index blocks;
  unsigned threads = 32, cluster = 1;
};

/// How the next launches of this thread run.
struct Schedule {
  unsigned seed = 1;
  unsigned resident_blocks = ~0u;  // so many at a time, or one cluster; the next one starts when one has ended
  unsigned largest_cluster = 16;
};
Schedule& schedule();

/// Runs kernel() once for each thread of a grid. A mistake of the kernel, such as lanes that meet at different votes or
/// blocks that wait for each other for ever, ends the program with a message.
void run(const Grid& grid, const std::function<void()>& kernel);

[[noreturn]] void fail(const char* what);

/// Each test program defines this: fills the dynamic shared memory of its kernels, in the thread that calls, with
/// garbage. Called before each block.
void spoil_shared_memory();

// What the thread that calls knows of itself.
const Index& thread_index();
const Index& block_index();
const Index& block_size();
const Index& grid_size();
unsigned cluster_rank();

// The warp. All lanes that have not ended come to the same call.
void sync_warp(Where = Where::current());
/// What all lanes did before the last vote or shuffle is done before what the caller does next.
void order_after_vote();
/// What every lane has, up to 16 bytes each, in the order of lanes.
void gather(const void* own, std::size_t size, void* all, Where);
unsigned lane();

// The block: barriers of the hardware, 0 to 15. Threads that only arrive do not wait.
void sync_block(int barrier, int threads, Where = Where::current());
void arrive_block(int barrier, int threads, Where = Where::current());

// The cluster.
void arrive_cluster(bool release);
void wait_cluster(Where = Where::current());

// Shared memory by addresses of 32 bits, which name the block of the cluster too.
unsigned shared_address(const void* own);
unsigned shared_address_of(unsigned address, int block);
void* shared_memory(unsigned address);

// Barriers in shared memory.
void barrier_init(unsigned barrier, int count);
void barrier_arrive(unsigned barrier, int expected_bytes);
void barrier_wait(unsigned barrier, int parity, Where = Where::current());
/// What is written to shared memory at some later time: write(to, what) writes `bytes` there.
struct Sent {
  alignas(16) unsigned char what[48];
  void (*write)(unsigned char* to, const unsigned char* what);
  int bytes;
};
/// The barrier, in the same block's shared memory, counts the bytes.
void send(unsigned address, const Sent& sent, unsigned barrier);

// Copies that a thread starts and waits for: bytes arrive at once, or as late as they may.
void copy(unsigned to, const void* from, int bytes, int inside);
void commit_copies();
/// Waits until at most so many of the latest groups are under way; -1: for all copies.
void wait_for_copies(int pending);

// What the sanitizer takes for an order: what is done before the one, and after the other.
void order_from(const void*);
void order_to(const void*);

/// Lets others run, in a loop that waits for what they do.
void pause(Where = Where::current());
/// Lets others run, perhaps.
void may_switch();

}  // namespace trifactor::simt
