// What trifactor is measured against: LAPACK on the host and cuSOLVER on the GPU, each at its best.
#pragma once

#include <trifactor/queue.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace program {

using trifactor::index_t;
using trifactor::MatrixView;
using trifactor::Queue;
using trifactor::Scalar;
using trifactor::Uplo;

/// The peer's routines in the memory of its queue. Each function makes the workspace for one shape and returns the
/// call, which only computes; on a CUDA queue it only enqueues. check() throws when the last call of this peer
/// failed.
template <Scalar T>
class Peer {
 public:
  using OnMatrix = std::function<void(MatrixView<T> A)>;  // factors A in place
  using OnSides = std::function<void(MatrixView<T> factor, MatrixView<T> X)>;
  using OnItems = std::function<void(T* const* items)>;  // pointers in the queue's memory, ld = size
  using OnItemSides = std::function<void(T* const* factors, T* const* X)>;
  using FreshItems = std::function<T* const*()>;         // items that a trial may destroy

  virtual ~Peer() = default;
  virtual const char* name() const = 0;
  virtual Queue& queue() = 0;
  virtual OnMatrix cholesky(Uplo, index_t n) = 0;
  virtual OnMatrix lu(index_t m, index_t n) = 0;  // keeps its pivots for lu_solve
  virtual std::vector<int> last_pivots() = 0;     // of the last call of lu()
  /// Makes k interchanges of rows; LAPACK's pivots, in the queue's memory.
  virtual OnMatrix swap_rows(const int* pivots, index_t k) = 0;
  virtual OnSides cholesky_solve(Uplo, index_t n, index_t columns) = 0;
  virtual OnSides lu_solve(index_t n, index_t columns) = 0;
  virtual OnMatrix cholesky_inverse(Uplo, index_t n) = 0;  // one triangle of the inverse, over the factor
  /// Items of the given sizes; empty where the peer has no routine for them.
  virtual OnItems cholesky_batch(Uplo, const std::vector<int>& sizes, const FreshItems& fresh) = 0;
  virtual OnItems lu_batch(index_t n, index_t count) = 0;  // of square items
  virtual OnItemSides cholesky_solve_batch(Uplo, index_t n, index_t columns, index_t count) = 0;
  /// Factors and solves: all items and then all sides, unless the peer has a better way.
  virtual OnItemSides cholesky_factor_solve_batch(Uplo uplo, index_t n, index_t columns, index_t count,
                                                  const FreshItems& fresh) {
    return [factor = cholesky_batch(uplo, std::vector<int>(std::size_t(count), int(n)), fresh),
            solve = cholesky_solve_batch(uplo, n, columns, count)](T* const* items, T* const* X) {
      factor(items);
      solve(items, X);
    };
  }
  virtual void check() = 0;
};

/// Works in host memory, whatever the queue.
template <Scalar T>
std::unique_ptr<Peer<T>> make_lapack_peer();

/// Works on the stream of a CUDA queue. Throws InputError where the program is built without CUDA.
template <Scalar T>
std::unique_ptr<Peer<T>> make_cusolver_peer(Queue&);

}  // namespace program
