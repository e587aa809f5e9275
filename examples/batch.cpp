// Factors and solves 1000 small systems at once with the expert forms, on the first GPU or else on the host: everything
// is enqueued on one queue, in the queue's memory, and the host waits once.
#include <trifactor/trifactor.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

using namespace trifactor;

int main() {
  const index_t n = 12, count = 1000;
  Queue q = devices().size() > 1 ? Queue::cuda() : Queue::host();

  // On the host: item k is n x n with k + n on its diagonal and 1 elsewhere; its right-hand side is A times ones.
  std::vector<double> A(n * n * count), B(n * count);
  for (index_t k = 0; k < count; ++k)
    for (index_t j = 0; j < n; ++j) {
      for (index_t i = 0; i < n; ++i) A[k * n * n + j * n + i] = i == j ? double(k + n) : 1.0;
      B[k * n + j] = double(k + n) + double(n - 1);
    }

  Buffer<double> factors(q, A), solutions(q, B);   // copies in the queue's memory
  Buffer<int> info(q, count);
  const auto matrices = strided(factors, n, n, {.count = count});
  const auto right_sides = strided(solutions, n, 1, {.count = count});
  q.reserve(std::max(cholesky_scratch(q, Uplo::Lower, matrices),
                     cholesky_solve_scratch(q, Uplo::Lower, matrices, right_sides)));
  cholesky(q, Uplo::Lower, matrices, info);
  cholesky_solve(q, Uplo::Lower, matrices, right_sides, info);   // skips items that failed

  double error = 0;
  index_t failed = 0;
  for (const int k : info.to_host()) failed += k != 0;   // waits for the queue
  for (const double x : solutions.to_host()) error = std::max(error, std::abs(x - 1));
  std::printf("%d systems of order %d on %s: %d failed, largest error %.1e\n", int(count), int(n),
              q.is_cuda() ? "the GPU" : "the host", int(failed), error);
  return failed == 0 && error < 1e-12 ? 0 : 1;
}
