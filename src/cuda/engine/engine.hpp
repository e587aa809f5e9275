// CudaEngine: streams, events, an arena, cuBLAS where it serves, tile kernels for every batch kind.
// Declared without CUDA headers, so that drivers compile with the host compiler; streams and handles are void*.
#pragma once

#include <core/engine.hpp>
#include <core/fronts.hpp>
#include <core/trace.hpp>
#include <cuda/engine/confined_stream.hpp>
#include <cuda/engine/copy_lane.hpp>
#include <cuda/engine/graph_cache.hpp>
#include <trifactor/info.hpp>

#include <functional>
#include <memory>
#include <new>
#include <string>
#include <vector>

namespace trifactor::cuda {

using namespace core;

std::vector<DeviceInfo> devices();
/// "sm_90", for example.
std::string architecture_of(int device);
/// "NVIDIA H200", for example.
std::string name_of(int device);
/// Why there is no device that can be used; empty when there is one.
std::string why_no_device();

/// Makes a device current; the one before is current again at the end of the scope.
class DeviceScope {
 public:
  explicit DeviceScope(int device);
  DeviceScope(int device, std::nothrow_t) noexcept;  // where memory is given back, perhaps after a device fault
  DeviceScope(const DeviceScope&) = delete;
  ~DeviceScope();

 private:
  int before_;
};

/// One lane of a queue: a stream with a cuBLAS handle of its own. The main lane owns the others. Everything is
/// asynchronous. See core/engine.hpp for what each operation does. One that is a kernel is defined beside it, in the
/// kernel's header; the others in src/cuda/engine.
class CudaEngine {
 public:
  using CopyLane = cuda::CopyLane;

  /// A stream of its own, or one borrowed from the caller.
  CudaEngine(void* stream, bool borrowed, int device);
  CudaEngine(const CudaEngine&) = delete;
  ~CudaEngine();

  [[nodiscard]] DeviceScope enter() const { return DeviceScope(device_); }
  int device() const { return device_; }
  void* stream() const { return stream_; }
  std::string_view architecture() const { return architecture_; }
  bool capturing() const;
  void sync();
  /// Seconds between an event before what work() enqueues and one after it.
  double seconds_of(const std::function<void()>& work);

  /// Of the device.
  std::size_t free_bytes() const;
  /// Whether scratch memory of this size, which could be done without, is reserved, or is no more than half of what is free.
  bool may_spare(std::size_t bytes) const;
  void* allocate(std::size_t bytes);
  void deallocate(void*) noexcept;
  void fill_zero(void*, std::size_t bytes);
  void copy_columns(const void* source, std::size_t source_ld, void* target, std::size_t target_ld, std::size_t rows,
                    std::size_t cols);
  /// The same, complete on return. Large copies from and to pageable memory go through page-locked memory.
  void copy_columns_now(const void* source, std::size_t source_ld, void* target, std::size_t target_ld,
                        std::size_t rows, std::size_t cols);

  Arena& arena() { return main_->arena_; }
  template <class T>
  Arena::Scratch<T> take_spare(index_t size) {
    return arena().try_take<T>(may_spare(std::size_t(size) * sizeof(T)) ? size : 0);
  }
  Arena& pinned() { return main_->pinned_; }
  CudaEngine& side() { return *side_; }
  void fork();
  void join();
  CudaEngine& background();
  void mark();
  void wait_for_mark(CudaEngine& lane);
  /// run(arguments...). A call of the main lane is one graph from the second time on, wherever its arguments lie; see
  /// CachedCall and StagedArguments. Launch by launch where the caller captures, where somebody records a trace, and
  /// inside of another one.
  template <class Run, class... A>
  void run_as_graph(const Run& run, const A&... arguments) {
    if (main_ != this || inside_graph_) return run(arguments...);
    const InsideGraph inside(inside_graph_);
    StagedArguments staged(arena(), arguments...);
    if (arena().planning() || trace() || capturing() || !graphs_allowed()) return run(arguments...);
    CachedCall& direct = graphs_.find(CallKey<Run, A...>{{arguments...}});
    const auto run_direct = [&] { run(arguments...); };
    if (!staged.possible()) return enqueue_call(direct, std::cref(run_direct));
    const std::tuple<A...> there{staged(arguments)...};
    const auto run_staged = [&] { std::apply(run, there); };
    enqueue_call(direct, std::cref(run_direct), &graphs_.find(CallKey<Run, A...>{there}), std::cref(run_staged),
                 &staged);
  }

  template <class T>
  void reset_info(Items<T> A, bool square, int* info);
  template <class T>
  void check_solve(Items<const T> L, Items<T> X, const int* info, int* skip);
  template <class T>
  bool cholesky_whole(Items<T> A, int* info, const CholeskyTuning&);
  template <class T>
  bool cholesky_solve_whole(Items<T> A, bool flipped, Items<T> B, int* info, const CholeskyTuning&);
  template <class T>
  bool cholesky_solved_whole(Items<const T> L, bool flipped, Items<T> X, const int* info, const SolveTuning&);
  template <class T>
  void cholesky_tile(Items<T> A, int* info, index_t first);
  template <class T>
  void trsm(Shape, Operand<T> A, Items<T> B, const int* info);
  template <class T>
  index_t trsm_limit(const Operand<T>& A, const Items<T>& B) const;
  template <class T>
  bool trsm_whole(Shape, Operand<T> A, Items<T> B, bool twice, const int* info, const SolveTuning&);
  template <class T>
  index_t inverse_edge(const Operand<T>& A, const Items<T>& B, const SolveTuning&) const;
  template <class T>
  index_t inverses_size(const Operand<T>& A) const;
  template <class T>
  void invert_blocks(Shape, Operand<T> A, T* inverses, const int* info);
  template <class T>
  void trsm_inverted(Shape, Operand<T> A, const Inverses<T>&, Items<T> B, const int* info);
  index_t inverted_limit() const { return 256; }  // strips of B fit in shared memory
  template <class T>
  void gemm(Operand<T> A, Operand<T> B, Items<T> C, const int* info);
  template <class T>
  void herk(std::type_identity_t<Items<const T>> A, Items<T> C, const int* info);
  template <class T>
  bool lu_whole(Items<T> A, Pivots<int> pivots, int* info, const LuTuning&);
  template <class T>
  void lu_tile(Items<T> A, Pivots<int> pivots, int* info, index_t left);
  template <class T>
  index_t lu_tile_limit(const Items<T>& A) const;
  template <class T>
  bool lu_alone_is_better(const Items<T>& A) const;
  template <class T>
  bool lu_solved_whole(Op op, Items<const T> LU, Pivots<const int> pivots, Items<T> X, const int* info,
                       const SolveTuning&);
  template <class T>
  bool lu_row_block(Items<const T> L, Pivots<const int> pivots, Items<T> A, const int* info);
  template <class T>
  bool lu_trailing_update(Items<const T> L, Pivots<const int> pivots, Items<T> A, const int* info);
  template <class T>
  bool lu_swaps_late(const Items<T>& A) const;
  template <class T>
  bool lu_swap_left(Items<T> A, Pivots<const int> pivots, index_t nb);
  template <class T>
  void copy_matrix(Items<const T> from, Items<T> to);
  template <class T>
  void swap_rows(Items<T> A, Pivots<const int> pivots, index_t n, bool backward, const int* info);
  template <class T>
  void log_det(Items<const T> L, Real<T>* out, const int* info);
  template <class T>
  void lu_det(Items<const T> LU, Pivots<const int> pivots, T* sign, Real<T>* log_abs);
  void row_permutation(const int* pivots, index_t k, int* p, index_t rows);
  template <class T>
  void set_identity(Items<T> A, const int* info);
  template <class T>
  void mirror_lower(Items<T> A, const int* info);
  template <class T>
  void column_norms(Items<const T> A, NormOf of, double* norms);
  template <class T>
  void save_lower(Items<const T> A, T* saved, double* shifts);
  template <class T>
  void shift_failed(Items<T> A, const T* saved, Real<T> shift, const int* info, int* retry, double* shifts);
  void take_retry(index_t count, const int* retry, int* info);
  template <class T>
  index_t saved_size(Items<T> X, const int* info) const {
    return info && X.count == 1 && !X.pointers ? X.rows * X.cols : 0;
  }
  template <class T>
  void save(Items<T> X, const int* info, T* saved);
  template <class T>
  void restore(Items<T> X, const int* info, T* saved);

  template <class T>
  void assemble(const Fronts&, index_t begin, index_t end, index_t rows, const T* values, Real<T> shift, T* factor,
                T* updates, const T* offloaded);
  template <class T>
  void take_rows(const Fronts&, Items<const T> B, bool permute, T* Z);
  template <class T>
  void give_rows(const Fronts&, const T* Z, bool permute, const int* failed, Items<T> B);
  template <class T>
  FrontLimits small_front_limits() const;
  template <class T>
  void factor_small_fronts(const Fronts&, index_t begin, index_t end, FrontLimits largest, T* factor, T* updates,
                           int* info);
  template <class T>
  SolveLimits solve_limits() const;
  template <class T>
  void invert_fronts(const SolveLists&, T* factor, int* inexact);
  template <class T>
  index_t solve_vector_entries(const Fronts&, index_t columns) const;
  template <class T>
  void solve_fronts(const Fronts&, const SolveLists&, const T* factor, const int* inexact, const int* failed,
                    Items<T> B, const SolveSteps&, T* vectors);
  void first_failure(const Fronts&, const int* info, int* first, int* copy);
  template <class T>
  void diagonal(const Fronts&, const T* factor, T* out);
  template <class T>
  void residual(const MatrixRows&, const T* values, Real<T> shift, const T* b, const T* x, T* r, Real<T>* error);
  template <class T>
  void add(index_t n, const T* r, T* x);

  template <class T>
  void download(Items<T> A, T* host);
  void wait_for_copies();
  template <class T>
  void upload(Items<T> A, const T* host);
  void upload(int* target, const int* host, index_t n);

  /// From here on, events around every operation of both lanes; finish_trace() waits for them and makes them times.
  void start_trace(Trace&);
  void finish_trace();
  Trace* trace() const { return main_->trace_; }
  const char* lane() const { return lane_name_; }
  Moment moment() const noexcept;

 private:
  /// Marks inside the kernel that the next span of the trace is for, zero at first.
  struct MarkedSpan {
    std::size_t span;
    void* marks;
    index_t count;
  };
  void* take_marks(index_t count);
  void add_marks(Trace&, const MarkedSpan&);
  template <class T>
  bool narrow_update_pays(Items<const T> L, const Items<T>& A, index_t columns) const;
  template <class T>
  void lu_narrow_update(Items<const T> L, Pivots<const int> pivots, Items<T> A, const int* info);
  template <class T>
  void cholesky_persistent(Items<T> A, int band, bool resets, int* info, index_t first);
  /// The same in a copy whose lines are aligned; false, and nothing is done, if there is no memory for it.
  template <class T>
  bool cholesky_realigned(Items<T> A, int band, int* info);
  enum class Beside { Side, Background };
  CudaEngine(CudaEngine& main, Beside);  // another lane
  struct InsideGraph {
    bool& flag;
    explicit InsideGraph(bool& f) : flag(f) { flag = true; }
    InsideGraph(const InsideGraph&) = delete;
    ~InsideGraph() { flag = false; }
  };
  void enqueue_call(CachedCall& direct, const std::function<void()>& run, CachedCall* indirect = nullptr,
                    const std::function<void()>& run_staged = {}, StagedArguments* staged = nullptr);
  void capture(CachedCall&, const std::function<void()>& run);
  void use_stream(void* stream);
  void open_lane(void* stream, bool owned);
  void* new_stream(bool first) const;
  void close_lane() noexcept;

  static constexpr index_t flag_count = 1 << 15;  // enough for matrices of order 260,000, complex or not

  int device_;
  int multiprocessors_ = 0;
  CudaEngine* main_;
  const char* lane_name_ = "main lane";
  std::string architecture_;
  std::unique_ptr<ConfinedStream> confined_;  // of the background lane: its stream
  void* stream_ = nullptr;
  bool owns_stream_ = false;
  void* event_ = nullptr;
  void* blas_ = nullptr;
  void* blas_workspace_ = nullptr;
  void* flags_ = nullptr;             // messages between blocks: zero between launches
  GraphCache graphs_;                 // of the main lane
  void* capture_stream_ = nullptr;    // of the main lane: calls are captured from it
  bool inside_graph_ = false;         // of the main lane
  Arena arena_, pinned_;              // of the main lane
  std::unique_ptr<CudaEngine> side_, background_;  // of the main lane
  Trace* trace_ = nullptr;            // of the main lane
  Moment trace_start_;
  std::vector<MarkedSpan> marked_;  // of the main lane
};

}  // namespace trifactor::cuda
