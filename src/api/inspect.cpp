// Recordings of what an engine does, the updates of Cholesky alone, and the interchanges of LU alone.
#include <api/check.hpp>
#include <api/queue_state.hpp>
#include <core/flop_counter.hpp>
#include <core/trace.hpp>
#include <trifactor/inspect.hpp>
#include <tuning/rows.hpp>

#include <algorithm>

namespace trifactor::inspect {

struct Recording::State {
  explicit State(Queue& q) : queue(q.state()) {
#if TRIFACTOR_HAS_CUDA
    if (queue->cuda) queue->cuda->start_trace(trace);
#endif
    queue->host.start_trace(trace);
  }

  void finish() {
    queue->host.finish_trace();
#if TRIFACTOR_HAS_CUDA
    if (queue->cuda) queue->cuda->finish_trace();
#endif
  }

  std::shared_ptr<detail::QueueState> queue;
  core::Trace trace;
};

Recording::Recording(Queue& q) try : state_(std::make_unique<State>(q)) {
} TRIFACTOR_CATCH_BAD_ALLOC

Recording::~Recording() {
  try {
    state_->finish();
  } catch (...) {  // a device fault, which surfaces at the next call too, or no memory for the times
  }
}

std::vector<Operation> Recording::finish() try {
  state_->finish();
  std::vector<Operation> operations;
  for (const core::Span& s : state_->trace.spans)
    if (s.begin.seconds >= 0 && s.end.seconds >= s.begin.seconds)  // both moments were noted
      operations.push_back({s.lane, s.name, s.rows, s.cols, s.depth, s.begin.seconds, s.end.seconds});
  std::stable_sort(operations.begin(), operations.end(), [](auto& a, auto& b) { return a.begin < b.begin; });
  return operations;
} TRIFACTOR_CATCH_BAD_ALLOC

FlopCounter::FlopCounter() {
  if (core::flop_watchers.fetch_add(1) == 0) core::flops_done = 0;
}
FlopCounter::~FlopCounter() { --core::flop_watchers; }
double FlopCounter::done() const noexcept { return double(core::flops_done.load(std::memory_order_relaxed)); }

namespace {

using namespace core;

// The updates of dense::cholesky_blocked, with L in place of the columns that are factored already.
template <class T, EngineFor<T> E>
void left_update(E& e, Items<const T> L, Items<T> C, index_t k, index_t nb) {
  const index_t n = C.rows, w = min(nb, n - k), k1 = k + w, rest = n - k1;
  const auto L10 = L.block(k, 0, w, k), L20 = L.block(k1, 0, rest, k);   // (w, k)  (rest, k)
  e.herk(L10, C.block(k, k, w, w), nullptr);                             // C11 -= L10 L10^H
  e.gemm(plain(L20), hermitian(L10), C.block(k1, k, rest, w), nullptr);  // C21 -= L20 L10^H
}

template <class T, EngineFor<T> E>
void right_update(E& e, Items<const T> L, Items<T> C, index_t k, index_t nb) {
  const index_t n = C.rows, k1 = k + nb, w = min(nb, n - k1), k2 = k1 + w, rest = n - k2;
  if (k1 >= n) return;
  const auto P = L.block(k1, k, w, nb), Q = L.block(k2, k, rest, nb);  // (w, nb)  (rest, nb)
  e.herk(P, C.block(k1, k1, w, w), nullptr);                           // next -= P P^H
  e.gemm(plain(Q), hermitian(P), C.block(k2, k1, rest, w), nullptr);   // below next -= Q P^H
  e.herk(Q, C.block(k2, k2, rest, rest), nullptr);                     // the rest -= Q Q^H
}

}  // namespace

template <Scalar T>
void cholesky_updates(Queue& q, Uplo uplo, std::type_identity_t<MatrixView<const T>> L, MatrixView<T> C, index_t first,
                      index_t last, const std::string& overrides) try {
  const char* const call = "cholesky_updates";
  const auto l = api::items(call, "L", L);
  const auto c = api::items(call, "C", C);
  api::check_fit(call, "L", l, c, "C");
  api::check_square(call, "C", c);
  if (first < 0 || first > last) api::fail(call, "first", first, "be in 0..last = " + std::to_string(last));
  if (last > C.rows) api::fail(call, "last", last, "be at most C.rows = " + std::to_string(C.rows));
  const auto tuning =
      tuning::find<CholeskyTuning>(q.state()->machine(), scalar_name(inner_t<T>{}), C.rows, 1, overrides);
  const bool flip = uplo == Uplo::Upper;
  api::on_engine(q, [&](auto& e) {
    const Items<const inner_t<T>> factor = flip ? l.flipped() : l;
    const Items<inner_t<T>> target = flip ? c.flipped() : c;
    for (index_t k = first; k < last; k += tuning.nb)
      if (tuning.looking == Looking::Left)
        left_update(e, factor, target, k, tuning.nb);
      else
        right_update(e, factor, target, k, tuning.nb);
  });
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
void swap_rows(Queue& q, MatrixView<T> A, ArrayView<const int> pivots, index_t k) try {
  const char* const call = "swap_rows";
  const auto a = api::items(call, "A", A);
  if (k < 0 || k > A.rows) api::fail(call, "k", k, "be in 0..A.rows = " + std::to_string(A.rows));
  if (k > 0) api::check_array(call, "pivots", pivots, k, "k");
  const int* const interchanges = pivots.data;
  api::on_engine(q, [&](auto& e) {
    e.swap_rows(a, Pivots<const int>{.data = interchanges, .stride = k}, k, false, static_cast<const int*>(nullptr));
  });
} TRIFACTOR_CATCH_BAD_ALLOC

#define TRIFACTOR_INSTANTIATE_SCALAR(T)                                                                               \
  template TRIFACTOR_API void cholesky_updates<T>(Queue&, Uplo, MatrixView<const T>, MatrixView<T>, index_t, index_t, \
                                                  const std::string&);                                               \
  template TRIFACTOR_API void swap_rows<T>(Queue&, MatrixView<T>, ArrayView<const int>, index_t);
#define TRIFACTOR_INSTANTIATE(T) TRIFACTOR_INSTANTIATE_SCALAR(core::ScalarTraits<T>::Public)
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_INSTANTIATE)
#undef TRIFACTOR_INSTANTIATE_SCALAR
#undef TRIFACTOR_INSTANTIATE

}  // namespace trifactor::inspect
