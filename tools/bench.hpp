// trifactor bench: what is measured, and the pieces that every kind of row shares.
#pragma once

#include "peers.hpp"
#include "rows.hpp"

#include <trifactor/measure.hpp>
#include <trifactor/queue.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace program {

using trifactor::Buffer;
using trifactor::Contender;

struct BenchOptions {
  std::string op;  // cholesky, lu, solve, inverse or batch
  std::vector<index_t> n, nrhs = {1};
  std::vector<std::string> scalars;
  std::string method = "cholesky";  // of a solve or an inverse
  std::string uplo = "lower", mode = "auto", tuning;
  std::string device, against;                    // host or cuda; lapack, cusolver or none
  std::string kind = "strided", sizes = "fixed";  // of a batch; sizes uniform in 1..n need kind ragged
  index_t count = 10000;
  double seconds = 2, energy = 0;  // to spend on a row; to watch the sensors
  std::uint64_t seed = 0;
  bool json = false;

  Uplo triangle() const { return uplo == "lower" ? Uplo::Lower : Uplo::Upper; }
  trifactor::Mode panels() const;
  bool is_ragged() const { return kind == "ragged"; }
};

/// Where the rows of one run are measured.
struct Bench {
  const BenchOptions& options;
  Queue queue;
  Queue host = Queue::host();
  std::string machine;
};

template <Scalar T>
Row bench_cholesky(Bench&, index_t n);
template <Scalar T>
Row bench_lu(Bench&, index_t n);
template <Scalar T>
Row bench_solve(Bench&, index_t n, index_t nrhs);
template <Scalar T>
Row bench_inverse(Bench&, index_t n);
template <Scalar T>
Row bench_batch(Bench&, index_t n);

/// The fields that do not depend on the measurement.
Row start_row(const Bench&, const char* scalar, index_t n);

/// Measures ours and, unless its run() is empty, the peer's, in turn.
void measure_row(const BenchOptions&, Row&, const Contender& ours, const Contender& peers);

/// The peer that was asked for; nothing for none.
template <Scalar T>
std::unique_ptr<Peer<T>> make_peer(Bench& bench) {
  if (bench.options.against == "lapack") return make_lapack_peer<T>();
  if (bench.options.against == "cusolver") return make_cusolver_peer<T>(bench.queue);
  return nullptr;
}

/// Operands that calls destroy: a pristine copy in the queue's memory and two buffers that calls take in turn.
template <class T>
class Operands {
 public:
  Operands(Queue& queue, Queue& host, const T* values, index_t size)
      : queue_(queue), size_(size), pristine_(values), buffers_{Buffer<T>(queue, size), Buffer<T>(queue, size)} {
    if (!queue.is_cuda()) return;  // the caller's copy serves
    on_device_ = Buffer<T>(queue, size);
    trifactor::copy(host, values, queue, on_device_.data(), size);
    pristine_ = on_device_.data();
  }

  T* buffer(int k) const { return buffers_[k].data(); }
  void restore(int k) { trifactor::copy(queue_, pristine_, queue_, buffer(k), size_); }

 private:
  Queue& queue_;
  index_t size_;
  const T* pristine_;
  Buffer<T> on_device_;
  Buffer<T> buffers_[2];
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
