// Compiled without the thread sanitizer, which is told here what the hardware orders, and nothing else.
#include "machine.hpp"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <vector>

#if TRIFACTOR_SIMT_SANITIZED
#include <sanitizer/tsan_interface.h>
extern "C" {
void __tsan_write_range(void*, unsigned long);
void __tsan_read_range(void*, unsigned long);
}
#endif

namespace trifactor::simt {
namespace {

#if TRIFACTOR_SIMT_SANITIZED
constexpr unsigned no_order = __tsan_switch_to_fiber_no_sync;
void release(void* p) { __tsan_release(p); }
void acquire(void* p) { __tsan_acquire(p); }
// Contexts serve again: they are long to make. One worker at a time takes and gives them, in room for all threads of a
// launch: workers that allocate some are a race to the sanitizer.
std::vector<void*> spare_contexts = [] {
  std::vector<void*> contexts;
  contexts.reserve(1 << 16);
  return contexts;
}();
void* make_context() {
  if (spare_contexts.empty()) return __tsan_create_fiber(0);
  void* const c = spare_contexts.back();
  spare_contexts.pop_back();
  return c;
}
void end_context(void* c) { spare_contexts.push_back(c); }
void* this_context() { return __tsan_get_current_fiber(); }
void enter_context(void* c) { __tsan_switch_to_fiber(c, no_order); }
void note_write(void* p, std::size_t n) { __tsan_write_range(p, n); }
void note_read(const void* p, std::size_t n) { __tsan_read_range(const_cast<void*>(p), n); }
#else
void release(void*) {}
void acquire(void*) {}
void* make_context() { return nullptr; }
void end_context(void*) {}
void* this_context() { return nullptr; }
void enter_context(void*) {}
void note_write(void*, std::size_t) {}
void note_read(const void*, std::size_t) {}
#endif

constexpr std::size_t stack_bytes = 128 << 10;
constexpr int lanes = 32, max_bytes = 16, hardware_barriers = 16;
constexpr std::size_t max_messages = 1 << 14, max_copies = 256;
constexpr long patience = 2'000'000;  // looks without anything new, until nobody is expected to go on

/// A place where threads wait for the others.
struct Meeting {
  int arrived = 0;
  unsigned phase = 0;
  char order[2] = {};  // what arrivals release and waiting threads acquire, of even and odd phases
  void* token() { return &order[phase % 2]; }
  void* last_token() { return &order[(phase + 1) % 2]; }
};

struct Warp {
  Meeting meeting;
  alignas(16) unsigned char values[2][lanes][max_bytes];
  int alive = lanes;
  Where where = Where::current();
};

/// What a thread has asked for, and not yet waited for.
struct Copy {
  unsigned char* to;
  const unsigned char* from;
  int bytes, inside, group;
};

struct Fiber {
  ucontext_t context;
  void* sanitizer = nullptr;
  Index thread;
  const Meeting* meeting = nullptr;  // where it waits
  bool (*ready)(Fiber&) = nullptr;   // or for what
  void* waits_for = nullptr;
  unsigned phase = 0, cluster_phase = 0;
  Where where = Where::current();
  bool ended = false;
  std::vector<Copy> copies;
  int group = 0;
};

/// A barrier in shared memory, as 64 bits.
struct SharedBarrier {
  std::int32_t bytes : 24;  // that are expected, less those that have arrived
  std::uint32_t phase : 8;  // its lowest bit counts
  std::uint16_t pending, count;
};
static_assert(sizeof(SharedBarrier) == 8);

/// A message that is under way.
struct Delivery {
  unsigned char* to;
  Sent sent;
  SharedBarrier* barrier;
};

struct Cluster {
  int arrived = 0;
  unsigned phase = 0;
  char order[2], begun;
  std::vector<unsigned char*> shared;  // of its blocks
};

struct Machine;
/// Runs blocks, one after the other.
struct Worker {
  Machine* machine;
  int number;
  std::uint32_t turn = 0;  // a futex: its turn
  bool idle = false;       // no block is left for it
  pthread_t thread;
  ucontext_t context;
  void* sanitizer = nullptr;  // of the worker itself
  // Writes what was sent, with a stack of its own.
  ucontext_t messenger;
  void* messenger_sanitizer = nullptr;
  Delivery* delivery = nullptr;
  ucontext_t* back = nullptr;  // to who let it write
  unsigned char* stacks = nullptr;
  std::vector<Fiber> fibers;
  std::vector<int> ready, waiting;
  std::vector<Warp> warps;
  Meeting barriers[hardware_barriers];
  Index block;
  unsigned rank = 0;
  Cluster* cluster = nullptr;
  Fiber* current = nullptr;
  int alive = 0;
};

struct Machine {
  Grid grid;
  const std::function<void()>* kernel;
  std::uint64_t random;
  unsigned ended = 0, all_blocks;
  std::vector<Worker> workers;
  std::vector<Delivery> messages;
  std::deque<Cluster> clusters;
  std::vector<Delivery*> deliveries, spare;  // nothing is freed while kernels run: the sanitizer would see that
  long looks = 0;                            // since something happened
  char begin, end;

  unsigned choose(unsigned n) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return unsigned(random >> 33) % n;
  }
};

thread_local Worker* self = nullptr;
// Where shared memory lies, as seen from here: the same for all threads of the program. Addresses are aligned as memory
// is.
alignas(1024) thread_local unsigned char anchor = 0;
constexpr std::ptrdiff_t anchor_at = 1 << 23;
constexpr unsigned rank_shift = 24;

void futex(std::uint32_t* p, int operation, std::uint32_t value) {
  syscall(SYS_futex, p, operation, value, nullptr, nullptr, 0);
}

void give_turn(Worker& to) {
  std::atomic_ref<std::uint32_t>(to.turn).store(1, std::memory_order_release);
  futex(&to.turn, FUTEX_WAKE_PRIVATE, 1);
}
void await_turn(Worker& w) {
  std::atomic_ref<std::uint32_t> turn(w.turn);
  while (turn.load(std::memory_order_acquire) == 0) futex(&w.turn, FUTEX_WAIT_PRIVATE, 0);
  turn.store(0, std::memory_order_relaxed);
}
/// Lets another worker go on, if there is another one, and returns when it is this one's turn again.
void pass_turn() {
  Machine& m = *self->machine;
  const unsigned n = unsigned(m.workers.size()), from = m.choose(n);
  for (unsigned i = 0; i < n; ++i) {
    Worker& w = m.workers[(from + i) % n];
    if (&w == self || w.idle) continue;
    Worker& me = *self;
    give_turn(w);
    await_turn(me);
    return;
  }
}

void happened() { self->machine->looks = 0; }
void looked() {
  if (++self->machine->looks > patience) fail("no thread goes on: all wait for each other");
}

void complete(SharedBarrier& b) {
  if (b.pending == 0 && b.bytes == 0) ++b.phase, b.pending = b.count, happened();
}

void run_messenger() {
  Worker& w = *self;
  while (true) {
    Delivery& d = *w.delivery;
    acquire(&d);
    d.sent.write(d.to, d.sent.what);
    d.barrier->bytes -= d.sent.bytes;
    release(d.barrier);
    swapcontext(&w.messenger, w.back);
  }
}
/// Writes one of the messages that are under way.
bool deliver() {
  Machine& m = *self->machine;
  if (m.deliveries.empty()) return false;
  const unsigned i = m.choose(unsigned(m.deliveries.size()));
  Delivery* const d = m.deliveries[i];
  m.deliveries[i] = m.deliveries.back();
  m.deliveries.pop_back();
  self->delivery = d;
  void* const sanitizer = this_context();
  ucontext_t here;
  self->back = &here;
  enter_context(self->messenger_sanitizer);
  swapcontext(&here, &self->messenger);
  enter_context(sanitizer);
  complete(*d->barrier);
  m.spare.push_back(d);
  happened();
  return true;
}

/// A fiber of this block that can go on, or null.
Fiber* pick(Worker& w) {
  Machine& m = *w.machine;
  if (!w.ready.empty() && (w.waiting.empty() || m.choose(8) != 0)) {
    const unsigned i = m.choose(unsigned(w.ready.size()));
    Fiber& f = w.fibers[std::size_t(w.ready[i])];
    w.ready[i] = w.ready.back(), w.ready.pop_back();
    return &f;
  }
  if (!w.waiting.empty()) {
    const unsigned n = unsigned(w.waiting.size()), from = m.choose(n);
    for (unsigned k = 0; k < n; ++k) {
      const unsigned i = (from + k) % n;
      Fiber& f = w.fibers[std::size_t(w.waiting[i])];
      if (!f.ready(f)) continue;
      w.waiting[i] = w.waiting.back(), w.waiting.pop_back();
      return &f;
    }
  }
  if (w.ready.empty()) return nullptr;
  Fiber& f = w.fibers[std::size_t(w.ready.back())];
  w.ready.pop_back();
  return &f;
}

/// From the fiber or worker that calls to a fiber that can go on.
void switch_from(ucontext_t& here) {
  Worker& w = *self;
  Machine& m = *w.machine;
  while (true) {
    if (!m.deliveries.empty() && m.choose(4) == 0) deliver();
    if (m.choose(64) == 0) pass_turn();
    Fiber* const next = pick(w);
    if (next) {
      if (&next->context == &here) {
        w.current = next;
        return;
      }
      w.current = next;
      enter_context(next->sanitizer);
      swapcontext(&here, &next->context);
      return;
    }
    looked();
    if (!deliver()) pass_turn();
  }
}

int number_of(const Fiber& f) { return int(&f - self->fibers.data()); }

void wait_at(const Meeting& place, Where where) {
  Fiber& f = *self->current;
  f.meeting = &place, f.where = where;
  switch_from(f.context);
}
void open(Meeting& place) {
  place.arrived = 0, ++place.phase;
  for (Fiber& f : self->fibers)
    if (f.meeting == &place) f.meeting = nullptr, self->ready.push_back(number_of(f));
}
void wait_until(bool (*ready)(Fiber&), void* what, unsigned phase, Where where) {
  Fiber& f = *self->current;
  f.waits_for = what, f.phase = phase, f.ready = ready, f.where = where;
  if (ready(f) && self->machine->choose(2) == 0) return;
  self->waiting.push_back(number_of(f));
  switch_from(f.context);
}

void run_thread() {
  Fiber& f = *self->current;
  acquire(&self->machine->begin);
  (*self->machine->kernel)();
  if (!f.copies.empty()) wait_for_copies(-1);
  release(&self->machine->end);
  f.ended = true;
  --self->alive, happened();
  Warp& warp = self->warps[f.thread.x / lanes];
  if (--warp.alive > 0 && warp.meeting.arrived == warp.alive) open(warp.meeting);
  if (self->alive == 0) {
    enter_context(self->sanitizer);
    setcontext(&self->context);
  }
  switch_from(f.context);  // and never back
}

void start(ucontext_t& context, unsigned char* stack, void (*f)()) {
  getcontext(&context);
  context.uc_stack.ss_sp = stack, context.uc_stack.ss_size = stack_bytes;
  context.uc_link = nullptr;
  makecontext(&context, f, 0);
}

void run_block(Worker& w, unsigned number) {
  Machine& m = *w.machine;
  const unsigned threads = m.grid.threads;
  w.block = {number % m.grid.blocks.x, number / m.grid.blocks.x % m.grid.blocks.y,
             number / m.grid.blocks.x / m.grid.blocks.y};
  w.rank = number % m.grid.cluster;
  w.cluster = &m.clusters[number / m.grid.cluster];
  w.cluster->shared[w.rank] = &anchor;
  w.warps.assign((threads + lanes - 1) / lanes, Warp{});
  for (std::size_t i = 0; i < w.warps.size(); ++i) w.warps[i].alive = int(std::min(32u, threads - 32 * unsigned(i)));
  for (Meeting& b : w.barriers) b.arrived = 0;
  w.alive = int(threads);
  acquire(&m.end);
  spoil_shared_memory();
  release(&m.begin), release(&w.cluster->begun);
  for (unsigned t = 0; t < threads; ++t) {
    Fiber& f = w.fibers[t];
    f.thread = {t, 0, 0}, f.ended = false, f.meeting = nullptr, f.group = 0;
    start(f.context, w.stacks + t * stack_bytes, run_thread);
    w.ready.push_back(int(t));
  }
  switch_from(w.context);
}

void* work(void* p) {
  Worker& w = *static_cast<Worker*>(p);
  Machine& m = *w.machine;
  self = &w;
  await_turn(w);
  const unsigned threads = m.grid.threads;
  w.stacks = static_cast<unsigned char*>(mmap(nullptr, (threads + 1) * stack_bytes, PROT_READ | PROT_WRITE,
                                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (w.stacks == MAP_FAILED) fail("no memory for stacks");
  w.sanitizer = this_context(), w.messenger_sanitizer = make_context();
  w.fibers = std::vector<Fiber>(threads);
  start(w.messenger, w.stacks + threads * stack_bytes, run_messenger);
  w.ready.reserve(threads), w.waiting.reserve(threads);
  for (Fiber& f : w.fibers) f.sanitizer = make_context(), f.copies.reserve(max_copies);
  // Neighbours, so the blocks of a cluster, go to different workers.
  for (unsigned number = unsigned(w.number); number < m.all_blocks; number += unsigned(m.workers.size()))
    run_block(w, number), ++m.ended;
  w.idle = true;
  for (Fiber& f : w.fibers) end_context(f.sanitizer);
  end_context(w.messenger_sanitizer);
  munmap(w.stacks, (threads + 1) * stack_bytes);
  for (Worker& other : m.workers)
    if (!other.idle) {
      give_turn(other);
      break;
    }
  return nullptr;
}

SharedBarrier& shared_barrier(unsigned address) {
  auto* const p = static_cast<unsigned char*>(shared_memory(address));
  if (reinterpret_cast<std::uintptr_t>(p) % 8 != 0) fail("a barrier in shared memory that is not aligned");
  return *reinterpret_cast<SharedBarrier*>(p);
}

}  // namespace

void fail(const char* what) {
  std::fprintf(stderr, "simt: %s\n", what);
  if (self) {
    for (const Worker& w : self->machine->workers) {
      if (w.idle) continue;
      std::fprintf(stderr, "block %u %u:\n", w.block.x, w.block.y);
      for (const Fiber& f : w.fibers)
        if (!f.ended && f.thread.x % lanes == 0)
          std::fprintf(stderr, "  thread %u: %s:%u\n", f.thread.x, f.where.file_name(), unsigned(f.where.line()));
    }
  }
  std::abort();
}

Schedule& schedule() {
  thread_local Schedule of_thread;
  return of_thread;
}

void run(const Grid& grid, const std::function<void()>& kernel) {
  Machine m;
  m.grid = grid, m.kernel = &kernel;
  m.random = schedule().seed * 0x9e3779b97f4a7c15u + 1;
  m.all_blocks = grid.blocks.x * grid.blocks.y * grid.blocks.z;
  if (m.all_blocks == 0 || grid.threads == 0 || grid.threads > 1024)
    fail("a launch without blocks or with no such threads");
  if (m.all_blocks % grid.cluster != 0) fail("a grid that is no multiple of its clusters");
  const unsigned at_once = std::max(1u, std::min(schedule().resident_blocks, 32u) / grid.cluster) * grid.cluster;
  m.workers = std::vector<Worker>(std::min(m.all_blocks, at_once));
  for (unsigned c = 0; c < m.all_blocks / grid.cluster; ++c) m.clusters.emplace_back().shared.resize(grid.cluster);
  m.messages.resize(max_messages), m.deliveries.reserve(max_messages);
  for (Delivery& d : m.messages) m.spare.push_back(&d);
  release(&m.begin);
  for (unsigned i = 0; i < m.workers.size(); ++i) {
    Worker& w = m.workers[i];
    w.machine = &m, w.number = int(i);
    if (pthread_create(&w.thread, nullptr, work, &w) != 0) fail("no thread for a block");
  }
  give_turn(m.workers[m.choose(unsigned(m.workers.size()))]);
  for (Worker& w : m.workers) pthread_join(w.thread, nullptr);
  acquire(&m.end);
  if (m.ended != m.all_blocks) fail("not all blocks ended");
}

const Index& thread_index() { return self->current->thread; }
const Index& block_index() { return self->block; }
const Index& block_size() {
  thread_local Index size;
  size.x = self->machine->grid.threads;
  return size;
}
const Index& grid_size() { return self->machine->grid.blocks; }
unsigned cluster_rank() { return self->rank; }
unsigned lane() { return self->current->thread.x % lanes; }

void gather(const void* own, std::size_t size, void* all, Where where) {
  Warp& warp = self->warps[self->current->thread.x / lanes];
  if (size > max_bytes) fail("a shuffle of more than 16 bytes");
  self->current->where = where;
  if (warp.meeting.arrived == 0) warp.where = where;
  if (warp.where.line() != where.line() || warp.where.column() != where.column() ||
      std::strcmp(warp.where.file_name(), where.file_name()) != 0)
    fail("lanes of a warp meet at different calls");
  auto& values = warp.values[warp.meeting.phase % 2];  // of the call but one, they were read by all lanes
  const auto move = [size](unsigned char* to, const unsigned char* from, int n) {
    for (std::size_t i = 0; i < size * std::size_t(n); ++i) to[i] = from[i];  // the sanitizer sees memcpy
  };
  move(values[0] + lane() * size, static_cast<const unsigned char*>(own), 1);
  release(warp.meeting.token());
  if (++warp.meeting.arrived == warp.alive)
    open(warp.meeting);
  else
    wait_at(warp.meeting, where);
  move(static_cast<unsigned char*>(all), values[0], lanes);
}
void sync_warp(Where where) {
  const char nothing = 0;
  char all[lanes];
  gather(&nothing, 1, all, where);
  order_after_vote();
}
void order_after_vote() { acquire(self->warps[self->current->thread.x / lanes].meeting.last_token()); }

void sync_block(int barrier, int threads, Where where) {
  Meeting& place = self->barriers[barrier];
  void* const token = place.token();
  release(token);
  happened();
  if (++place.arrived == threads)
    open(place);
  else
    wait_at(place, where);
  acquire(token);
}
void arrive_block(int barrier, int threads, Where) {
  Meeting& place = self->barriers[barrier];
  release(place.token());
  happened();
  if (++place.arrived == threads) open(place);
}

void arrive_cluster(bool releases) {
  Cluster& c = *self->cluster;
  const unsigned phase = self->current->cluster_phase = c.phase;
  if (releases) release(&c.order[phase % 2]);
  if (++c.arrived == int(self->machine->grid.threads * self->machine->grid.cluster)) c.arrived = 0, ++c.phase;
  happened();
}
void wait_cluster(Where where) {
  Cluster& c = *self->cluster;
  const unsigned phase = self->current->cluster_phase;
  wait_until([](Fiber& f) { return static_cast<Cluster*>(f.waits_for)->phase != f.phase; }, &c, phase, where);
  acquire(&c.order[phase % 2]), acquire(&c.begun);
}

unsigned shared_address(const void* own) {
  const std::ptrdiff_t at = static_cast<const unsigned char*>(own) - &anchor + anchor_at;
  if (at < 0 || at >= 2 * anchor_at) fail("an address that is not in shared memory");
  return (self->rank + 1) << rank_shift | unsigned(at);
}
unsigned shared_address_of(unsigned address, int block) {
  if (block < 0 || unsigned(block) >= self->machine->grid.cluster)
    fail("an address of a block that is not in the cluster");
  return unsigned(block + 1) << rank_shift | (address & ((1u << rank_shift) - 1));
}
void* shared_memory(unsigned address) {
  const unsigned rank = (address >> rank_shift) - 1;
  if (rank >= self->machine->grid.cluster || !self->cluster->shared[rank])
    fail("an address of a block that has not begun");
  return self->cluster->shared[rank] + (std::ptrdiff_t(address & ((1u << rank_shift) - 1)) - anchor_at);
}

void barrier_init(unsigned barrier, int count) {
  SharedBarrier& b = shared_barrier(barrier);
  b = {};
  b.pending = b.count = std::uint16_t(count);
}
void barrier_arrive(unsigned barrier, int expected_bytes) {
  SharedBarrier& b = shared_barrier(barrier);
  release(&b);
  if (b.pending == 0) fail("too many threads arrive at a barrier in shared memory");
  b.bytes += expected_bytes, --b.pending;
  happened();
  complete(b);
}
void barrier_wait(unsigned barrier, int parity, Where where) {
  SharedBarrier& b = shared_barrier(barrier);
  wait_until([](Fiber& f) { return static_cast<SharedBarrier*>(f.waits_for)->phase % 2 != f.phase; }, &b,
             unsigned(parity), where);
  acquire(&b);
}
void send(unsigned address, const Sent& sent, unsigned barrier) {
  Machine& m = *self->machine;
  if (m.spare.empty()) fail("too many messages under way");
  Delivery* const d = m.spare.back();
  m.spare.pop_back();
  d->to = static_cast<unsigned char*>(shared_memory(address)), d->barrier = &shared_barrier(barrier);
  if (reinterpret_cast<std::uintptr_t>(d->to) % 16 != 0) fail("a message to an address that is not aligned");
  for (std::size_t i = 0; i < sizeof sent.what; ++i) d->sent.what[i] = sent.what[i];
  d->sent.write = sent.write, d->sent.bytes = sent.bytes;
  release(d);
  m.deliveries.push_back(d);
}

namespace {
void finish(const Copy& c) {
  note_read(c.from, std::size_t(c.inside));
  note_write(c.to, std::size_t(c.bytes));
  std::memcpy(c.to, c.from, std::size_t(c.inside));
  std::memset(c.to + c.inside, 0, std::size_t(c.bytes - c.inside));
}
}  // namespace

void copy(unsigned to, const void* from, int bytes, int inside) {
  Fiber& f = *self->current;
  auto* const there = static_cast<unsigned char*>(shared_memory(to));
  if ((reinterpret_cast<std::uintptr_t>(there) | reinterpret_cast<std::uintptr_t>(inside > 0 ? from : nullptr)) %
          std::uintptr_t(bytes) !=
      0)
    fail("a copy from or to an address that is not aligned");
  const Copy c{there, static_cast<const unsigned char*>(from), bytes, inside, f.group};
  if (self->machine->choose(2) == 0 || f.copies.size() == max_copies)
    finish(c);
  else
    f.copies.push_back(c);
}
void commit_copies() { ++self->current->group; }
void wait_for_copies(int pending) {
  Fiber& f = *self->current;
  const int last = pending < 0 ? INT_MAX : f.group - 1 - pending;
  std::size_t left = 0;
  for (const Copy& c : f.copies)
    if (c.group <= last)
      finish(c);
    else
      f.copies[left++] = c;
  f.copies.erase(f.copies.begin() + std::ptrdiff_t(left), f.copies.end());
}

void order_from(const void* p) { release(const_cast<void*>(p)); }
void order_to(const void* p) { acquire(const_cast<void*>(p)); }

void pause(Where where) {
  Fiber& f = *self->current;
  f.where = where;
  looked();
  self->ready.push_back(number_of(f));
  switch_from(f.context);
}
void may_switch() {
  Fiber& f = *self->current;
  if (self->machine->choose(4) != 0) return;
  self->ready.push_back(number_of(f));
  switch_from(f.context);
}

}  // namespace trifactor::simt
