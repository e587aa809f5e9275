// How the host engine uses its threads: over items when there are many, inside BLAS when there is one.
#pragma once

#include <core/interruption.hpp>
#include <core/scalar.hpp>
#include <tile/team.hpp>

#include <cblas.h>
#include <omp.h>

#include <condition_variable>
#include <mutex>

namespace trifactor::host {

/// The team of every tile routine here: threads share items, not tiles.
inline constexpr tile::SerialTeam alone;

/// BLAS has threads of its own, beside OpenMP's. Those of a loop spin for some milliseconds after its end, so that BLAS's
/// would share the cores with them: operations of one matrix use either the ones or the others.
inline bool blas_has_own_threads() { return openblas_get_parallel() == OPENBLAS_THREAD; }

/// The number of BLAS's threads is that of all its callers. BLAS on OpenMP has buffers for as many as its last caller had:
/// when a call with fewer begins, buffers are taken from calls that are under way, and their results are wrong (OpenBLAS
/// 0.3.21). BLAS with threads of its own has one number for the process. So teams of different sizes take turns, first
/// come, first served.
class BlasTeams {
 public:
  void enter(int threads) {
    std::unique_lock lock(mutex_);
    const unsigned long ticket = arrived_++;
    turn_.wait(lock, [&] { return ticket == admitted_ && (users_ == 0 || size_ == threads); });
    if (users_ == 0 && blas_has_own_threads()) before_ = openblas_get_num_threads(), openblas_set_num_threads(threads);
    ++admitted_, ++users_, size_ = threads;
    turn_.notify_all();
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    if (--users_ > 0) return;
    if (blas_has_own_threads()) openblas_set_num_threads(before_);
    turn_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable turn_;
  unsigned long arrived_ = 0, admitted_ = 0;
  int users_ = 0, size_ = 0;
  int before_ = 0;  // the number of BLAS's own threads before the first user
};
inline BlasTeams blas_teams;
inline thread_local int blas_team_size = 0;  // of the team in which this thread is; 0: none

/// No team of OpenMP has more threads, by OMP_THREAD_LIMIT and OMP_MAX_ACTIVE_LEVELS.
inline int openmp_thread_limit() { return omp_get_max_active_levels() > 0 ? omp_get_thread_limit() : 1; }

/// For the length of one operation, BLAS uses so many threads: of one item; many items are worked on side by side, with a
/// thread each. BLAS built on OpenMP goes by OpenMP's number, so parallel regions in this scope name theirs; there, a team
/// of one has no part in the turns. OMP_DYNAMIC is off meanwhile: BLAS waits without end for threads that OpenMP does not
/// give it.
class ThreadScope {
 public:
  ThreadScope(int threads, bool many_items) : omp_before_(omp_get_max_threads()), threads_(many_items ? 1 : threads) {
    const bool inside = blas_team_size > 0;
    if (inside && blas_team_size != threads_) threads_ = 1;  // of a call with another team
    enters_ = !inside && (threads_ > 1 || blas_has_own_threads());
    if (enters_) blas_teams.enter(threads_), blas_team_size = threads_;
    if (threads_ != omp_before_) omp_set_num_threads(threads_);
    if (dynamic_before_) omp_set_dynamic(false);
  }
  ThreadScope(const ThreadScope&) = delete;
  ~ThreadScope() {
    if (dynamic_before_) omp_set_dynamic(true);
    if (threads_ != omp_before_) omp_set_num_threads(omp_before_);
    if (enters_) blas_team_size = 0, blas_teams.leave();
  }

 private:
  int omp_before_, threads_;
  bool enters_, dynamic_before_ = omp_get_dynamic();
};

/// Threads for so much work, in flops or entries moved, about a nanosecond each: all of them, or one where waking the
/// others costs more than they save. No number between: libgomp ends the threads that a smaller team leaves out, and
/// creates them again for the next larger one (8, 4, 8 threads in turn: 300 us).
inline int team_for(int threads, double work) {
  constexpr double worth_waking = 1e4;   // for each thread
  return work < worth_waking * threads ? 1 : threads;
}

/// From so many flops on, one item is worth four threads inside BLAS, eight, and all of them.
struct WorthATeam {
  double four, eight = four, all = 3e8;
};

/// Threads of an operation that calls BLAS for `count` items of so many flops each: all of them for several items. A
/// single one gets one thread where it is not worth waking the others inside BLAS, and few below worth.all. BLAS's own
/// threads sleep when they are left out, so that a team between one and all costs nothing. BLAS on OpenMP gets all: see
/// team_for.
inline int blas_team(int threads, index_t count, double flops, const WorthATeam& worth) {
  // 16 cores of a Xeon, 8 and 16 threads: two triangles of order 500 with 64 right-hand sides, 2e7 flops each, 0.43 and
  // 0.49 ms.
  if (count > 1) return threads;
  if (flops < worth.four) return 1;
  if (flops >= worth.all || !blas_has_own_threads()) return threads;
  // LU of order 500 there with 1, 2 and 4: 3.4 to 4.2, 4.6 to 5.4 and 3.0 to 3.3 ms. Two are not worth waking, either.
  if (flops < worth.eight) return threads < 4 ? 1 : 4;
  return core::min(threads, 8);
}

/// f(b) for every item whose info is 0; work_each as in team_for. A ThreadScope is the caller's where f calls BLAS.
template <class F>
void for_items(int threads, index_t count, const int* info, double work_each, F f) {
  if (count == 1) {
    if (!info || info[0] == 0) f(index_t(0));
    return;
  }
  const int team = team_for(threads, double(count) * work_each);
  const index_t chunk = core::max(index_t(1), core::min(index_t(256), count / (16 * team)));   // 16 turns each balance sizes
  core::Interruption stop;
#pragma omp parallel for schedule(dynamic, chunk) num_threads(team)
  for (index_t b = 0; b < count; ++b)
    if (!stop.requested() && (!info || info[b] == 0)) f(b);
  stop.throw_if_requested();
}

/// f(j) for the columns of one large matrix, before or after BLAS works on it.
template <class F>
void for_columns(int threads, index_t cols, index_t work_each, F f) {
  constexpr index_t worth_a_team = 1 << 16;   // entries; below it, waking threads costs more than it gains
  const int team = cols * work_each > worth_a_team && !blas_has_own_threads() ? threads : 1;
#pragma omp parallel for schedule(static) num_threads(team)
  for (index_t j = 0; j < cols; ++j) f(j);
}

}  // namespace trifactor::host
