// Teams of real threads, so that the thread sanitizer sees what a GPU's threads would do.
#pragma once

#include <tile/team.hpp>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <thread>
#include <vector>

namespace trifactor::tile_test {

/// Orders the ranks at each phase and nowhere else. A mutex would order a rank that wakes late after all that the
/// others did before they arrived at the next phase, so would the waiting in std::barrier; either hides a missing sync
/// from the sanitizer, the sooner the fewer the cores. A rank that waits sleeps in the kernel, of which the sanitizer
/// sees nothing: beside other programs, ranks that spin take the processors from the one that they wait for.
class Barrier {
 public:
  explicit Barrier(int size) : size(size) {}

  void arrive_and_wait() {
    const int my_phase = phase.load(std::memory_order_relaxed);  // does not change before this rank arrives
    if (arrived.fetch_add(1, std::memory_order_acq_rel) == size - 1) {
      arrived.store(0, std::memory_order_relaxed);
      phase.store(my_phase + 1, std::memory_order_release);
      futex(FUTEX_WAKE_PRIVATE, INT_MAX);
    } else {
      while (phase.load(std::memory_order_acquire) == my_phase) futex(FUTEX_WAIT_PRIVATE, my_phase);
    }
  }

 private:
  void futex(int operation, int value) { syscall(SYS_futex, &phase, operation, value, nullptr, nullptr, 0); }

  const int size;
  std::atomic<int> arrived = 0, phase = 0;
};

/// One rank of a team of threads that share a barrier.
class ThreadTeam {
 public:
  ThreadTeam(int rank, int size, Barrier& barrier) : my_rank(rank), my_size(size), barrier(&barrier) {}

  int rank() const { return my_rank; }
  int size() const { return my_size; }
  void sync() const { barrier->arrive_and_wait(); }

 private:
  int my_rank, my_size;
  Barrier* barrier;
};

/// A team that forgets every sync.
class BrokenTeam {
 public:
  BrokenTeam(int rank, int size, Barrier&) : my_rank(rank), my_size(size) {}

  int rank() const { return my_rank; }
  int size() const { return my_size; }
  void sync() const {}

 private:
  int my_rank, my_size;
};

/// A ThreadTeam that forgets one sync, counted from 0, on all ranks alike.
class ForgetfulTeam {
 public:
  ForgetfulTeam(const ThreadTeam& team, int forgotten) : team(team), forgotten(forgotten) {}

  int rank() const { return team.rank(); }
  int size() const { return team.size(); }
  void sync() const {
    if (calls++ != forgotten) team.sync();
  }
  /// How many syncs this rank has called.
  int count() const { return calls; }

 private:
  ThreadTeam team;
  int forgotten;
  mutable int calls = 0;
};

/// Calls f(team) on every rank of a team of `size` threads, and returns when all are done.
template <class G = ThreadTeam, class F>
void run_team(int size, F f) {
  Barrier barrier(size);
  std::vector<std::thread> threads;
  threads.reserve(size);
  for (int rank = 0; rank < size; ++rank) threads.emplace_back([&, rank] { f(G(rank, size, barrier)); });
  for (auto& thread : threads) thread.join();
}

static_assert(tile::Team<ThreadTeam> && tile::Team<BrokenTeam> && tile::Team<ForgetfulTeam>);

}  // namespace trifactor::tile_test
