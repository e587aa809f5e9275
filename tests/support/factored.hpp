// One call on the queue under test, from host data to host results.
#pragma once

#include <support/device.hpp>
#include <trifactor/cholesky.hpp>
#include <trifactor/lu.hpp>
#include <trifactor/testing.hpp>

namespace trifactor::test {

inline constexpr Uplo both_uplos[] = {Uplo::Lower, Uplo::Upper};
inline constexpr Op all_ops[] = {Op::None, Op::Transpose, Op::ConjTranspose};
inline const char* name(Uplo uplo) { return uplo == Uplo::Lower ? "lower" : "upper"; }
inline const char* name(Op op) { return op == Op::None ? "A" : op == Op::Transpose ? "A^T" : "A^H"; }

/// What info holds before a call: the call must clear it.
inline constexpr int garbage = 0x5a5a5a5a;

template <class T>
struct Factored {
  HostMatrix<T> F;
  int info;
  std::string path;
  std::vector<int> pivots = {};
};

template <class T>
Factored<T> factor_cholesky(Queue& q, Uplo uplo, const HostMatrix<T>& A, const CholeskyOptions& options = {}) {
  DeviceMatrix<T> F(q, A);
  DeviceArray<int> info(q, 1, garbage);
  cholesky(q, uplo, F.view(), info.data(), options);
  std::string path = testing::path_taken();
  q.sync();
  return {F.download(), info.download()[0], std::move(path)};
}

template <class T>
Factored<T> factor_lu(Queue& q, const HostMatrix<T>& A, const LuOptions& options = {}) {
  DeviceMatrix<T> F(q, A);
  DeviceArray<int> info(q, 1, garbage);
  DeviceArray<int> pivots(q, std::min(A.rows, A.cols) + 1, garbage);  // one more than is written
  lu(q, F.view(), pivots.data(), info.data(), options);
  std::string path = testing::path_taken();
  q.sync();
  Factored<T> result{F.download(), info.download()[0], std::move(path), pivots.download()};
  EXPECT_EQ(result.pivots.back(), garbage) << "lu wrote behind the pivots";
  result.pivots.pop_back();
  return result;
}

/// X with the factor F; info is what the solve is told.
template <class T>
HostMatrix<T> solve_cholesky(Queue& q, Uplo uplo, const HostMatrix<T>& F, const HostMatrix<T>& B, int info = 0,
                             const SolveOptions& options = {}) {
  DeviceMatrix<T> L(q, F), X(q, B);
  DeviceArray<int> device_info(q, 1, info);
  cholesky_solve(q, uplo, L.view(), X.view(), device_info.data(), options);
  q.sync();
  EXPECT_TRUE(same_bits(L.download(), F)) << "the solve wrote to the factor";
  EXPECT_EQ(device_info.download()[0], info) << "the solve wrote to info";
  return X.download();
}

template <class T>
HostMatrix<T> solve_lu(Queue& q, Op op, const Factored<T>& lu, const HostMatrix<T>& B, int info = 0,
                       const SolveOptions& options = {}) {
  DeviceMatrix<T> F(q, lu.F), X(q, B);
  DeviceArray<int> device_info(q, 1, info), pivots(q, lu.pivots);
  lu_solve(q, op, F.view(), pivots.data(), X.view(), device_info.data(), options);
  q.sync();
  EXPECT_TRUE(same_bits(F.download(), lu.F)) << "the solve wrote to the factors";
  EXPECT_EQ(device_info.download()[0], info) << "the solve wrote to info";
  return X.download();
}

#define TRIFACTOR_TEST_INSTANCES(T)                                                                                \
  TRIFACTOR_TEST_CALLS class DeviceMatrix<T>;                                                                      \
  TRIFACTOR_TEST_CALLS class DeviceBatch<T>;                                                                       \
  TRIFACTOR_TEST_CALLS Factored<T> factor_cholesky(Queue&, Uplo, const HostMatrix<T>&, const CholeskyOptions&);    \
  TRIFACTOR_TEST_CALLS Factored<T> factor_lu(Queue&, const HostMatrix<T>&, const LuOptions&);                      \
  TRIFACTOR_TEST_CALLS HostMatrix<T> solve_cholesky(Queue&, Uplo, const HostMatrix<T>&, const HostMatrix<T>&, int, \
                                                    const SolveOptions&);                                          \
  TRIFACTOR_TEST_CALLS HostMatrix<T> solve_lu(Queue&, Op, const Factored<T>&, const HostMatrix<T>&, int,           \
                                              const SolveOptions&);
TRIFACTOR_TEST_EACH_SCALAR(TRIFACTOR_TEST_INSTANCES)
#undef TRIFACTOR_TEST_INSTANCES

}  // namespace trifactor::test
