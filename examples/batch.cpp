// Factors and solves 1000 small systems at once with the expert forms, on the first GPU or else on the host: everything
// is enqueued on one queue, in the queue's memory, and the host waits once.
#include <trifactor/trifactor.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace trifactor;

int main() {
  const index_t n = 12, count = 1000;
  Queue host = Queue::host();
  Queue q = devices().size() > 1 ? Queue::cuda() : Queue::host();

  // On the host: item k is n x n with k + n on its diagonal and 1 elsewhere; its right-hand side is A times ones.
  Buffer<double> A(host, n * n * count), X(host, n * count);
  for (index_t k = 0; k < count; ++k)
    for (index_t j = 0; j < n; ++j) {
      for (index_t i = 0; i < n; ++i) A[k * n * n + j * n + i] = i == j ? double(k + n) : 1.0;
      X[k * n + j] = double(k + n) + double(n - 1);
    }

  Buffer<double> device_A(q, A.size()), device_X(q, X.size());
  Buffer<int> device_info(q, count);
  copy(host, A.data(), q, device_A.data(), A.size());
  copy(host, X.data(), q, device_X.data(), X.size());

  const StridedBatch<double> matrices{device_A.data(), n, n, n, n * n, count};
  const StridedBatch<double> right_sides{device_X.data(), n, 1, n, n, count};
  q.reserve(std::max(cholesky_scratch(q, Uplo::Lower, matrices),
                     cholesky_solve_scratch(q, Uplo::Lower, matrices, right_sides)));
  cholesky(q, Uplo::Lower, matrices, device_info.data());
  cholesky_solve(q, Uplo::Lower, matrices, right_sides, device_info.data());   // skips items that failed

  Buffer<int> info(host, count);
  copy(q, device_info.data(), host, info.data(), count);   // waits for the queue
  copy(q, device_X.data(), host, X.data(), X.size());

  double error = 0;
  index_t failed = 0;
  for (index_t k = 0; k < count; ++k) failed += info[k] != 0;
  for (index_t i = 0; i < n * count; ++i) error = std::max(error, std::abs(X[i] - 1));
  std::printf("%d systems of order %d on %s: %d failed, largest error %.1e\n", int(count), int(n),
              q.is_cuda() ? "the GPU" : "the host", int(failed), error);
  return failed == 0 && error < 1e-12 ? 0 : 1;
}
