// Rows for the value form: where data on the host are worth a way to the device and back.
#include "bench.hpp"
#include "flops.hpp"
#include "random_matrix.hpp"
#include "residual.hpp"
#include "scalars.hpp"

#include <trifactor/trifactor.hpp>

namespace program {

template <Scalar T>
Row bench_value(Bench& bench, index_t n) {
  using trifactor::Device;
  const BenchOptions& o = bench.options;
  require_copies<T>(2.1, n);
  Matrix<T> A(n, n), B(n, 1), X;
  fill_positive_definite(A.view(), o.seed);
  fill_random(B.view(), o.seed + 1);
  const auto solve_on = [&](Device device) {
    return [&, device] { X = trifactor::cholesky(A, {.uplo = o.triangle(), .device = device}).solve(B); };
  };
  const bool cuda = bench.queue.is_cuda();
  const Contender ours{solve_on(cuda ? Device::Cuda : Device::Host)};
  Row row = start_row(bench, scalar_name<T>, n);
  row.uplo = o.uplo;
  row.nrhs = 1;
  row.flops = cholesky_flops<T>(double(n)) + solve_flops<T>(double(n), 1);
  row.columns = double(n);
  if (cuda) row.peer = "host";
  measure_row(o, row, ours, cuda ? Contender{solve_on(Device::Host)} : Contender{});
  ours.run();
  row.residual = solve_ratio<T>(A.view(), X.view(), B.view());
  return row;
}

#define TRIFACTOR_BENCH_VALUE(T) template Row bench_value<T>(Bench&, index_t);
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_BENCH_VALUE)

}  // namespace program
