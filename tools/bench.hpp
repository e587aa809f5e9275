// trifactor bench: what is measured, and the pieces that every kind of row shares.
#pragma once

#include "memory.hpp"
#include "on_device.hpp"
#include "peers.hpp"
#include "power_log.hpp"
#include "rows.hpp"
#include "sparse_matrix.hpp"

#include <trifactor/measure.hpp>
#include <trifactor/queue.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace program {

using trifactor::Buffer;
using trifactor::Contender;

struct BenchOptions {
  std::string op;  // cholesky, lu, panel, swap, solve, inverse, batch, value, update, tile or sparse
  std::vector<index_t> n, m, nrhs = {1}, nb, leaf, ib;  // m: rows of panels
  std::vector<std::string> scalars;
  std::string method = "cholesky";  // of a solve, an inverse or a batch
  std::string uplo = "lower", mode = "auto", tuning;
  double max_device_bytes = 0;                     // of a sparse factorization; 0: what is free
  index_t sparse_count = 1;                        // matrices of one pattern that are factored at once
  std::vector<std::string> modes, looking, forms;  // of one matrix, side by side; of updates; of tiles
  index_t pad = 0;                                 // of Cholesky: so much more than n the leading dimension is
  bool each = false;                               // a row for each step of an update
  std::string device, against;                     // host or cuda; lapack, cusolver, cholmod, cudss or none
  std::vector<std::string> matrices;               // sparse ones: files or generated
  std::string ordering = "auto";                   // of those
  std::string kind = "strided", sizes = "fixed";   // of a batch; other sizes than fixed need kind ragged
  index_t mean = 0;                                // of sizes that are a number
  index_t count = 10000;
  std::string preset;                // of a batch, or nothing
  std::vector<std::string> tunings;  // of the preset, one after the other; else the one above
  double seconds = 2, energy = 0;    // to spend on a row; to watch the sensors
  std::uint64_t seed = 0;
  bool json = false;
  std::string power;                    // the file for watts over time, or nothing
  std::shared_ptr<PowerLog> power_log;  // while rows are measured

  Uplo triangle() const { return uplo == "lower" ? Uplo::Lower : Uplo::Upper; }
  trifactor::Mode panels() const;
  bool factors_lu() const { return op == "lu" || op == "panel"; }
  bool is_ragged() const { return kind == "ragged"; }
  bool solves_batch() const { return method == "solve" || method == "factor-solve"; }
};

/// Measures and prints all rows. Throws MatrixError at the end where a residual ratio is not good.
void run_bench(BenchOptions);

/// Where the rows of one run are measured.
struct Bench {
  const BenchOptions& options;
  Queue queue;
  Queue host = Queue::host();
  std::string machine;
  std::optional<double> copy_rate;  // bytes read and written in a second by a copy in the queue's memory, once measured
};
/// That rate.
double copy_rate(Bench&);

/// What bench batch --preset runs: these sizes, each with these settings.
struct BatchPreset {
  const char *name, *what;
  const char *kind, *n;
  std::vector<const char*> tunings;
  index_t count = 0;  // unless --count says otherwise
  const char* method = "cholesky";
  const char* nrhs = "1";
  const char* sizes = "";  // those of the kind
};
/// Throws InputError where there is no such.
const BatchPreset& batch_preset(const std::string& name);

/// Cholesky, LU or a panel of LU: a row for each mode.
template <Scalar T>
std::vector<Row> bench_factor(Bench&, index_t m, index_t n);
/// The row interchanges of LU alone: the pivots of a panel of nb columns, made in a matrix of m rows and n columns.
template <Scalar T>
Row bench_swap(Bench&, index_t m, index_t n, index_t nb);
template <Scalar T>
Row bench_solve(Bench&, index_t n, index_t nrhs);
template <Scalar T>
Row bench_inverse(Bench&, index_t n);
template <Scalar T>
Row bench_batch(Bench&, index_t n);
template <Scalar T>
Row bench_lu_batch(Bench&, index_t n);
/// Solves with the Cholesky factors of many matrices.
template <Scalar T>
Row bench_solve_batch(Bench&, index_t n, index_t nrhs);
/// The value form with data on the host: factor and solve for one right-hand side, on the device with all copies
/// against the same on the host.
template <Scalar T>
Row bench_value(Bench&, index_t n);
/// All the updates of a factorization with blocks of nb, a row for each way of looking; or a row for each step.
template <Scalar T>
void bench_update(Bench&, index_t n, index_t nb, const std::function<void(const Row&)>& take);
/// The diagonal tile alone, halved down to `leaf`; ib counts for the form "exclusive".
template <Scalar T>
Row bench_tile(Bench&, index_t n, index_t leaf, const std::string& form, index_t ib);

/// A row for each phase: analyze, factor (memory and all), refactor, solve.
template <Scalar T>
void bench_sparse(Bench&, const SparseSource& source, const std::function<void(const Row&)>& take);
/// The program that runs CHOLMOD, beside this one; empty where it was not built.
std::string peer_program(const std::string& peer);

/// A way to factor one matrix that --mode names.
struct FactorMode {
  const char* name;
  trifactor::Mode panels = trifactor::Mode::Auto;
  const char* tuning = "";  // forces the path
  bool needs_cuda = false;
  bool on_host = false;           // in host memory, whatever the device
  bool is_peer = false;           // cuSOLVER or LAPACK itself
  const char* only_of = nullptr;  // the factorization that has it, cholesky or lu; null: both
};
/// op: cholesky, lu or panel. Throws InputError where there is no such.
const FactorMode& factor_mode(const std::string& op, const std::string& name);
/// Those that go side by side on a device with --mode all.
std::vector<std::string> all_modes(const std::string& op, bool cuda);

/// The fields that do not depend on the measurement.
Row start_row(const Bench&, const char* scalar, index_t n);

/// The caller's settings and then those that force what is measured: the last one of a field counts.
inline std::string joined_tuning(const std::string& callers, const std::string& forced) {
  return callers.empty() || forced.empty() ? callers + forced : callers + " " + forced;
}

/// Throws OutOfMemory unless the host has room for that many matrices.
template <Scalar T>
void require_copies(double matrices, index_t n) {
  require_memory("this row", matrices * double(n) * double(n) * sizeof(T));
}

/// Throws when the factorization of a matrix that has one reported otherwise; info is the queue's.
void require_success(const std::string& what, const Buffer<int>& info);

template <Scalar T>
MatrixView<T> square(T* data, index_t n, index_t pad = 0) {
  return {data, n, n, n + pad};
}

/// trifactor::measure, with a note beside the watts that are sampled meanwhile.
std::vector<trifactor::Measurement> measure_noted(const BenchOptions&, const std::string& what,
                                                  std::span<const Contender> contenders,
                                                  const trifactor::MeasureOptions& how);

/// Measures ours and, unless its run() is empty, the peer's, in turn.
void measure_row(const BenchOptions&, Row&, const Contender& ours, const Contender& peers);

/// The peer that was asked for; nothing for none.
template <Scalar T>
std::unique_ptr<Peer<T>> make_peer(Bench& bench, const std::string& name) {
  if (name == "lapack") return make_lapack_peer<T>();
  if (name == "cusolver") return make_cusolver_peer<T>(bench.queue);
  return nullptr;
}
template <Scalar T>
std::unique_ptr<Peer<T>> make_peer(Bench& bench) {
  return make_peer<T>(bench, bench.options.against);
}

/// Operands that calls destroy: a pristine copy in the queue's memory and two buffers that calls take in turn.
template <class T>
class Operands {
 public:
  Operands(Queue& queue, const T* values, index_t size)
      : queue_(queue), size_(size), pristine_(values), buffers_{Buffer<T>(queue, size), Buffer<T>(queue, size)} {
    if (!queue.is_cuda()) return;  // the caller's copy serves
    on_device_ = Buffer<T>(queue, std::span(values, std::size_t(size)));
    pristine_ = on_device_.data();
  }
  /// The same from values that are in the queue's memory already.
  Operands(Queue& queue, Buffer<T> values)
      : queue_(queue),
        size_(values.size()),
        pristine_(values.data()),
        on_device_(std::move(values)),
        buffers_{Buffer<T>(queue, size_), Buffer<T>(queue, size_)} {}

  T* buffer(int k) const { return buffers_[k].data(); }
  /// In the queue's order: a caller that had to wait here would be slow to enqueue what it times.
  void restore(int k) {
    if constexpr (TRIFACTOR_HAS_CUDA)
      if (queue_.is_cuda()) return enqueue_copy(queue_, pristine_, buffer(k), std::size_t(size_) * sizeof(T));
    trifactor::copy(queue_, pristine_, queue_, buffer(k), size_);
  }

 private:
  Queue& queue_;
  index_t size_;
  const T* pristine_;
  Buffer<T> on_device_;
  Buffer<T> buffers_[2];
};

/// Where the items of both buffers of some operands begin, `size` entries each, in the queue's memory.
template <class T>
struct Starts {
  Starts(Queue& queue, const Operands<T>& operands, index_t size, index_t count) {
    std::vector<T*> items(static_cast<std::size_t>(count));
    for (int k = 0; k < 2; ++k) {
      for (index_t i = 0; i < count; ++i) items[std::size_t(i)] = operands.buffer(k) + i * size;
      pointers[k] = Buffer<T*>(queue, items);
    }
  }
  Buffer<T*> pointers[2];
};

/// One contender's way through the operands: every restore() goes on to the other buffer.
template <class T>
class Turn {
 public:
  explicit Turn(Operands<T>& operands) : operands_(operands) {}
  void restore() { operands_.restore(k_ = 1 - k_); }
  int index() const { return k_; }
  T* data() const { return operands_.buffer(k_); }

 private:
  Operands<T>& operands_;
  int k_ = 0;
};

/// Values of a queue's memory on the host: copied only when they are elsewhere.
template <class T>
class OnHost {
 public:
  OnHost(Queue& queue, Queue& host, const T* values, index_t size) : values_(values) {
    if (!queue.is_cuda()) return;
    copy_ = Buffer<T>(host, size);
    trifactor::copy(queue, values, host, copy_.data(), size);
    values_ = copy_.data();
  }
  const T* data() const { return values_; }

 private:
  Buffer<T> copy_;
  const T* values_;
};

}  // namespace program
