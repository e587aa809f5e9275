// HostEngine: OpenBLAS and LAPACK for large items, tile routines and OpenMP for many small ones.
#pragma once

#include <core/engine.hpp>
#include <core/fronts.hpp>
#include <core/trace.hpp>
#include <host/copy_lane.hpp>

#include <string>

namespace trifactor::host {

using namespace core;

/// OpenBLAS has room for the buffers of so many callers and its own threads, whatever it was built for.
inline constexpr int max_threads = 512;

/// Operations are complete on return, so there is one lane: side() and background() are the engine itself. See core/engine.hpp for what
/// each operation does.
class HostEngine {
 public:
  using CopyLane = host::CopyLane;

  /// threads = 0: as many as OpenMP offers, up to the most.
  explicit HostEngine(int threads);
  HostEngine(const HostEngine&) = delete;

  int threads() const { return threads_; }
  Arena& arena() { return arena_; }
  template <class T>
  Arena::Scratch<T> take_spare(index_t) {
    return arena_.try_take<T>(0);
  }
  HostEngine& side() { return *this; }
  void fork() {}
  void join() {}
  HostEngine& background() { return *this; }
  void mark() {}
  void wait_for_mark(HostEngine&) {}
  template <class Run, class... A>
  void run_as_graph(const Run& run, const A&... arguments) {
    run(arguments...);
  }

  template <class T>
  void reset_info(Items<T> A, bool square, int* info);
  template <class T>
  void check_solve(Items<const T> L, Items<T> X, const int* info, int* skip);
  template <class T>
  bool cholesky_whole(Items<T> A, int* info, const CholeskyTuning&);
  template <class T>
  bool cholesky_solve_whole(Items<T> A, bool flipped, Items<T> X, int* info, const CholeskyTuning&);
  template <class T>
  bool cholesky_solved_whole(Items<const T> L, bool flipped, Items<T> X, const int* info, const SolveTuning&);
  template <class T>
  void cholesky_tile(Items<T> A, int* info, index_t first);
  template <class T>
  void trsm(Shape, Operand<T> A, Items<T> B, const int* info);
  template <class T>
  index_t trsm_limit(const Operand<T>&, const Items<T>&) const {
    return std::numeric_limits<int>::max();
  }
  // BLAS solves with a whole triangle: no other way is offered.
  template <class T>
  bool trsm_whole(Shape, Operand<T>, Items<T>, bool, const int*, const SolveTuning&) {
    return false;
  }
  template <class T>
  index_t inverse_edge(const Operand<T>&, const Items<T>&, const SolveTuning&) const {
    return 0;
  }
  template <class T>
  index_t inverses_size(const Operand<T>&) const {
    return 0;
  }
  template <class T>
  void invert_blocks(Shape, Operand<T>, T*, const int*) {}
  template <class T>
  void trsm_inverted(Shape, Operand<T>, const Inverses<T>&, Items<T>, const int*) {}
  index_t inverted_limit() const { return 0; }
  template <class T>
  void gemm(Operand<T> A, Operand<T> B, Items<T> C, const int* info);
  template <class T>
  void herk(std::type_identity_t<Items<const T>> A, Items<T> C, const int* info);
  template <class T>
  bool lu_whole(Items<T> A, Pivots<int> pivots, int* info, const LuTuning&);
  template <class T>
  void lu_tile(Items<T> A, Pivots<int> pivots, int* info, index_t left);
  template <class T>
  index_t lu_tile_limit(const Items<T>&) const {
    return std::numeric_limits<int>::max();
  }
  template <class T>
  bool lu_alone_is_better(const Items<T>&) const {
    return false;
  }
  template <class T>
  bool lu_solved_whole(Op op, Items<const T> LU, Pivots<const int> pivots, Items<T> X, const int* info,
                       const SolveTuning&);
  template <class T>
  bool lu_row_block(Items<const T>, Pivots<const int>, Items<T>, const int*) {
    return false;
  }
  template <class T>
  bool lu_trailing_update(Items<const T>, Pivots<const int>, Items<T>, const int*) {
    return false;
  }
  template <class T>
  bool lu_swaps_late(const Items<T>&) const {
    return false;
  }
  template <class T>
  bool lu_swap_left(Items<T>, Pivots<const int>, index_t) {
    return false;
  }
  template <class T>
  void copy_matrix(Items<const T>, Items<T>) {}  // take_spare gives nothing
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
  index_t saved_size(Items<T>, const int*) const {
    return 0;
  }  // every operation here does skip
  template <class T>
  void save(Items<T>, const int*, T*) {}
  template <class T>
  void restore(Items<T>, const int*, T*) {}

  template <class T>
  void assemble(const Fronts&, index_t begin, index_t end, index_t rows, const T* values, Real<T> shift, T* factor,
                T* updates, const T* offloaded);
  template <class T>
  void add_children(const Fronts&, index_t begin, index_t end, index_t columns, T* Z);
  template <class T>
  void copy_parents(const Fronts&, index_t begin, index_t end, index_t columns, T* Z);
  template <class T>
  void take_rows(const Fronts&, Items<const T> B, bool permute, T* Z);
  template <class T>
  void give_rows(const Fronts&, const T* Z, bool permute, const int* failed, Items<T> B);
  void first_failure(const Fronts&, const int* info, int* first, int* copy);
  template <class T>
  void diagonal(const Fronts&, const T* factor, T* out);
  template <class T>
  void residual(const MatrixRows&, const T* values, Real<T> shift, const T* b, const T* x, T* r, Real<T>* error);
  template <class T>
  void add(index_t n, const T* r, T* x);

  void start_trace(Trace& trace) { trace_ = &trace; }
  void finish_trace() { trace_ = nullptr; }
  Trace* trace() const { return trace_; }
  const char* lane() const { return "CPU"; }
  Moment moment() const { return {trace_->now(), nullptr}; }

 private:
  /// lu_whole of small square items in SIMD lanes; false: they are none.
  template <class T>
  bool lu_interleaved(Items<T> A, Pivots<int> pivots, int* info, const LuTuning&);

  int threads_;
  Arena arena_;
  Trace* trace_ = nullptr;
};

/// "OpenBLAS 0.3.21 ..., OpenMP".
std::string blas_name();

}  // namespace trifactor::host
