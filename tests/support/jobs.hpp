// Every expert routine as a job that can be prepared, run and checked again and again: for tests of memory and capture.
#pragma once

#include <support/batches.hpp>

#include <functional>

namespace trifactor::test {

/// One call with data of its own in a queue's memory.
struct Job {
  const char* name;
  std::function<void()> prepare;              // new data, in the same places
  std::function<void()> run;                  // the call alone
  std::function<void()> check;                // the results, against the newest data
  std::function<std::size_t()> scratch = {};  // the query that belongs to the call, where there is one
};
inline Job prepared(Job job) {
  job.prepare();
  return job;
}

/// Cholesky of A and what is done with its factor.
template <class T>
struct CholeskyData {
  Queue& q;
  Random& random;
  Uplo uplo;
  index_t n;
  HostMatrix<T> A, B, F;
  DeviceMatrix<T> L, X;
  DeviceArray<int> info;
  DeviceArray<real_t<T>> log_det;

  CholeskyData(Queue& queue, Random& r, Uplo u, index_t order, index_t rhs)
      : q(queue),
        random(r),
        uplo(u),
        n(order),
        A(n, n),
        B(n, rhs),
        F(n, n),
        L(q, A),
        X(q, B),
        info(q, 1, garbage),
        log_det(q, 1, 0) {}
  /// A new A, whole or factored on the host, and a new B.
  void renew(bool factored) {
    A = random_spd<T>(random, n), B = random_matrix<T>(random, n, B.cols);
    F = factored ? factor_cholesky(host_queue(), uplo, A).F : A;
    L.upload(F), X.upload(B), info.upload({factored ? 0 : garbage});
  }
  void check_factor() {
    EXPECT_EQ(info.download()[0], 0);
    EXPECT_LT(cholesky_ratio(A, L.download(), uplo), threshold);
  }
};

template <class T>
struct LuData {
  Queue& q;
  Random& random;
  index_t n;
  HostMatrix<T> A, B;
  Factored<T> host;
  DeviceMatrix<T> F, X;
  DeviceArray<int> pivots, info, p;
  DeviceArray<T> sign;
  DeviceArray<real_t<T>> log_abs;

  LuData(Queue& queue, Random& r, index_t order, index_t rhs)
      : q(queue),
        random(r),
        n(order),
        A(n, n),
        B(n, rhs),
        F(q, A),
        X(q, B),
        pivots(q, n, garbage),
        info(q, 1, garbage),
        p(q, n, garbage),
        sign(q, 1, T(0)),
        log_abs(q, 1, 0) {}
  void renew(bool factored) {
    A = random_matrix<T>(random, n, n), B = random_matrix<T>(random, n, B.cols);
    host = factored ? factor_lu(host_queue(), A) : Factored<T>{A, garbage, "", std::vector<int>(n, garbage)};
    F.upload(host.F), X.upload(B), pivots.upload(host.pivots), info.upload({host.info});
  }
};

template <class T>
Job cholesky_job(Queue& q, Random& random, const char* name, Uplo uplo, index_t n,
                 const CholeskyOptions& options = {}) {
  auto d = std::make_shared<CholeskyData<T>>(q, random, uplo, n, 1);
  return prepared(
      {name, [d] { d->renew(false); }, [d, options] { cholesky(d->q, d->uplo, d->L.view(), d->info.data(), options); },
       [d] { d->check_factor(); }, [d, options] { return cholesky_scratch(d->q, d->uplo, d->L.view(), options); }});
}

template <class T>
Job cholesky_solve_job(Queue& q, Random& random, const char* name, Uplo uplo, index_t n, index_t rhs) {
  auto d = std::make_shared<CholeskyData<T>>(q, random, uplo, n, rhs);
  return prepared({name, [d] { d->renew(true); },
                   [d] { cholesky_solve(d->q, d->uplo, d->L.view(), d->X.view(), d->info.data()); },
                   [d] { EXPECT_LT(solve_ratio(Op::None, d->A, d->X.download(), d->B), threshold); },
                   [d] { return cholesky_solve_scratch(d->q, d->uplo, d->L.view(), d->X.view()); }});
}

template <class T>
Job cholesky_inverse_job(Queue& q, Random& random, const char* name, Uplo uplo, index_t n) {
  auto d = std::make_shared<CholeskyData<T>>(q, random, uplo, n, n);
  return prepared({name, [d] { d->renew(true); },
                   [d] { cholesky_inverse(d->q, d->uplo, d->L.view(), d->X.view(), d->info.data()); },
                   [d] { EXPECT_LT(inverse_ratio(d->A, d->X.download()), threshold); },
                   [d] { return cholesky_inverse_scratch(d->q, d->uplo, d->L.view(), d->X.view()); }});
}

template <class T>
Job log_det_job(Queue& q, Random& random, const char* name, Uplo uplo, index_t n) {
  auto d = std::make_shared<CholeskyData<T>>(q, random, uplo, n, 1);
  return prepared(
      {name, [d] { d->renew(true); },
       [d] { cholesky_log_det(d->q, d->uplo, d->L.view(), d->log_det.data(), d->info.data()); },
       [d] { EXPECT_LT(std::abs(double(d->log_det.download()[0]) - log_det_of(d->F)), log_tolerance(d->F)); }});
}

/// What is done with a batch of positive definite items, of order n or of orders up to n: those that begin with factors
/// get them from the host.
enum class CholeskyCall { Factor, FactorSolve, Solve, Inverse, LogDet };
template <class T>
Job batch_job(Queue& q, Random& random, const char* name, Kind kind, Uplo uplo, CholeskyCall call, index_t count,
              index_t n, index_t rhs = 0, const CholeskyOptions& options = {}) {
  struct Data {
    Items<T> A, B, F;
    std::unique_ptr<DeviceBatch<T>> L, X;
    std::unique_ptr<DeviceArray<int>> info;
    std::unique_ptr<DeviceArray<real_t<T>>> log_det;
  };
  const bool factored = call != CholeskyCall::Factor && call != CholeskyCall::FactorSolve;
  auto d = std::make_shared<Data>();
  for (index_t i = 0; i < count; ++i) {
    const index_t own = kind == Kind::Ragged ? n - i * n / count : n;
    d->A.push_back(HostMatrix<T>(own, own));
    d->B.push_back(HostMatrix<T>(own, call == CholeskyCall::Inverse ? own : rhs));
  }
  d->L = std::make_unique<DeviceBatch<T>>(q, d->A), d->X = std::make_unique<DeviceBatch<T>>(q, d->B);
  d->info = std::make_unique<DeviceArray<int>>(q, count, garbage);
  d->log_det = std::make_unique<DeviceArray<real_t<T>>>(q, count, real_t<T>(garbage));
  const auto renew = [d, &random, kind, uplo, factored, count] {
    for (auto& A : d->A) A = random_spd<T>(random, A.rows);
    for (auto& B : d->B) B = random_matrix<T>(random, B.rows, B.cols);
    d->F = factored ? factor_cholesky(host_queue(), kind, uplo, d->A).F : d->A;
    d->L->upload(d->F), d->X->upload(d->B), d->info->upload(std::vector<int>(count, factored ? 0 : garbage));
  };
  const auto run = [d, &q, kind, uplo, call, options] {
    int* info = d->info->data();
    as(kind, *d->L, *d->X, [&](auto l, auto x) {
      if (call == CholeskyCall::Factor) cholesky(q, uplo, l, info, options);
      if (call == CholeskyCall::FactorSolve) cholesky_factor_solve(q, uplo, l, x, info, options);
      if (call == CholeskyCall::Solve) cholesky_solve(q, uplo, l, x, info);
      if (call == CholeskyCall::Inverse) cholesky_inverse(q, uplo, l, x, info);
      if (call == CholeskyCall::LogDet) cholesky_log_det(q, uplo, l, d->log_det->data(), info);
    });
  };
  const auto check = [d, uplo, call, factored] {
    const auto X = d->X->download();
    if (!factored) expect_right<T>(uplo, d->A, {d->L->download(), d->info->download(), ""});
    if (call == CholeskyCall::FactorSolve || call == CholeskyCall::Solve) expect_solved(d->A, X, d->B);
    if (call == CholeskyCall::Inverse) expect_inverted(d->A, d->B, X, d->A.size());
    if (call == CholeskyCall::LogDet) {
      const auto values = d->log_det->download();
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_NEAR(values[i], log_det_of(d->F[i]), log_tolerance(d->F[i])) << "item " << i;
    }
  };
  const auto scratch = [d, &q, kind, uplo, call, options] {
    std::size_t bytes = 0;
    as(kind, *d->L, *d->X, [&](auto l, auto x) {
      if (call == CholeskyCall::Factor) bytes = cholesky_scratch(q, uplo, l, options);
      if (call == CholeskyCall::FactorSolve) bytes = cholesky_factor_solve_scratch(q, uplo, l, x, options);
      if (call == CholeskyCall::Solve) bytes = cholesky_solve_scratch(q, uplo, l, x);
      if (call == CholeskyCall::Inverse) bytes = cholesky_inverse_scratch(q, uplo, l, x);
    });
    return bytes;
  };
  return prepared({name, renew, run, check, scratch});
}

template <class T>
Job lu_job(Queue& q, Random& random, const char* name, index_t n, const LuOptions& options = {}) {
  auto d = std::make_shared<LuData<T>>(q, random, n, 1);
  return prepared({name, [d] { d->renew(false); },
                   [d, options] { lu(d->q, d->F.view(), d->pivots.data(), d->info.data(), options); },
                   [d] {
                     EXPECT_EQ(d->info.download()[0], 0);
                     EXPECT_LT(lu_ratio(d->A, d->F.download(), d->pivots.download()), threshold);
                   },
                   [d, options] { return lu_scratch(d->q, d->F.view(), options); }});
}

template <class T>
Job lu_solve_job(Queue& q, Random& random, const char* name, Op op, index_t n, index_t rhs) {
  auto d = std::make_shared<LuData<T>>(q, random, n, rhs);
  return prepared({name, [d] { d->renew(true); },
                   [d, op] { lu_solve(d->q, op, d->F.view(), d->pivots.data(), d->X.view(), d->info.data()); },
                   [d, op] { EXPECT_LT(solve_ratio(op, d->A, d->X.download(), d->B), threshold); },
                   [d, op] { return lu_solve_scratch(d->q, op, d->F.view(), d->X.view()); }});
}

template <class T>
Job lu_inverse_job(Queue& q, Random& random, const char* name, index_t n) {
  auto d = std::make_shared<LuData<T>>(q, random, n, n);
  return prepared({name, [d] { d->renew(true); },
                   [d] { lu_inverse(d->q, d->F.view(), d->pivots.data(), d->X.view(), d->info.data()); },
                   [d] { EXPECT_LT(inverse_ratio(d->A, d->X.download()), threshold); },
                   [d] { return lu_inverse_scratch(d->q, d->F.view(), d->X.view()); }});
}

template <class T>
Job lu_det_job(Queue& q, Random& random, const char* name, index_t n) {
  auto d = std::make_shared<LuData<T>>(q, random, n, 1);
  return prepared({name, [d] { d->renew(true); },
                   [d] { lu_det(d->q, d->F.view(), d->pivots.data(), d->sign.data(), d->log_abs.data()); },
                   [d] {
                     double sum = 0;
                     for (index_t k = 0; k < d->n; ++k) sum += std::log(std::abs(widen(d->host.F(k, k))));
                     EXPECT_LT(std::abs(double(d->log_abs.download()[0]) - sum), log_tolerance(d->host.F));
                     EXPECT_LT(std::abs(std::abs(widen(d->sign.download()[0])) - 1), 30 * double(d->n) * eps<T>);
                   }});
}

template <class T>
Job permutation_job(Queue& q, Random& random, const char* name, index_t n) {
  auto d = std::make_shared<LuData<T>>(q, random, n, 1);
  return prepared({name, [d] { d->renew(true); }, [d] { lu_row_permutation(d->q, d->pivots.data(), d->n, d->p.data(), d->n); },
                   [d] {
                     const auto p = d->p.download();
                     const auto PA = interchange(d->A, d->host.pivots);
                     for (index_t i = 0; i < d->n; ++i) ASSERT_EQ(PA(i, 0), d->A(p[i], 0)) << i;
                   }});
}

/// A batch of general items that is factored, or factored and solved, or inverted from its factors.
enum class LuCall { Factor, FactorSolve, Solve, Inverse };
template <class T>
Job lu_batch_job(Queue& q, Random& random, const char* name, Kind kind, LuCall call, index_t count, index_t n,
                 index_t rhs, const LuOptions& options = {}) {
  struct Data {
    Items<T> A, B;
    LuItems<T> host;
    std::unique_ptr<DeviceBatch<T>> F, X;
    std::unique_ptr<DeviceArray<int>> info, pivots;
  };
  const bool factored = call == LuCall::Solve || call == LuCall::Inverse;
  auto d = std::make_shared<Data>();
  for (index_t i = 0; i < count; ++i) {
    const index_t own = kind == Kind::Ragged ? n - i % n : n;
    d->A.push_back(HostMatrix<T>(own, own));
    d->B.push_back(HostMatrix<T>(own, call == LuCall::Inverse ? own : rhs));
  }
  d->F = std::make_unique<DeviceBatch<T>>(q, d->A), d->X = std::make_unique<DeviceBatch<T>>(q, d->B);
  d->info = std::make_unique<DeviceArray<int>>(q, count, garbage);
  d->pivots = std::make_unique<DeviceArray<int>>(q, count * n + 1, garbage);
  const auto renew = [d, &random, kind, factored, count, n] {
    for (auto& A : d->A) A = random_matrix<T>(random, A.rows, A.rows);
    for (auto& B : d->B) B = random_matrix<T>(random, B.rows, B.cols);
    if (factored) d->host = factor_lu(host_queue(), kind, d->A);
    d->F->upload(factored ? d->host.F : d->A), d->X->upload(d->B);
    d->info->upload(std::vector<int>(count, factored ? 0 : garbage));
    d->pivots->upload(factored ? joined_pivots(d->host) : std::vector<int>(count * n + 1, garbage));
  };
  const auto run = [d, &q, kind, call, options] {
    as(kind, *d->F, *d->X, [&](auto f, auto x) {
      if (call == LuCall::Factor) lu(q, f, d->pivots->data(), d->info->data(), options);
      if (call == LuCall::FactorSolve) lu_factor_solve(q, f, d->pivots->data(), x, d->info->data(), options);
      if (call == LuCall::Solve) lu_solve(q, Op::None, f, d->pivots->data(), x, d->info->data());
      if (call == LuCall::Inverse) lu_inverse(q, f, d->pivots->data(), x, d->info->data());
    });
  };
  const auto check = [d, call, factored] {
    const auto F = d->F->download(), X = d->X->download();
    const auto pivots = split_pivots(d->A, d->pivots->download());
    for (std::size_t i = 0; i < d->A.size(); ++i) {
      const double ratio = call == LuCall::Factor    ? 0
                           : call == LuCall::Inverse ? inverse_ratio(d->A[i], X[i])
                                                     : solve_ratio(Op::None, d->A[i], X[i], d->B[i]);
      ASSERT_LT(ratio, threshold) << "item " << i;
      ASSERT_LT(factored ? 0 : lu_ratio(d->A[i], F[i], pivots[i]), threshold) << "item " << i;
    }
  };
  const auto scratch = [d, &q, kind, call, options] {
    std::size_t bytes = 0;
    as(kind, *d->F, *d->X, [&](auto f, auto x) {
      bytes = call == LuCall::Factor        ? lu_scratch(q, f, options)
              : call == LuCall::FactorSolve ? lu_factor_solve_scratch(q, f, x, options)
              : call == LuCall::Inverse     ? lu_inverse_scratch(q, f, x)
                                            : lu_solve_scratch(q, Op::None, f, x);
    });
    return bytes;
  };
  return prepared({name, renew, run, check, scratch});
}

/// Items of which some are indefinite: factored and solved with a shift where it is needed.
template <class T>
Job shift_job(Queue& q, Random& random, const char* name, Kind kind, index_t n) {
  struct Data {
    Items<T> A, B;
    std::unique_ptr<DeviceBatch<T>> F, X;
    std::unique_ptr<DeviceArray<int>> info;
    std::unique_ptr<DeviceArray<double>> used;
    CholeskyOptions options;
  };
  auto d = std::make_shared<Data>();
  d->A = Items<T>(5, HostMatrix<T>(n, n)), d->B = Items<T>(5, HostMatrix<T>(n, 2));
  d->F = std::make_unique<DeviceBatch<T>>(q, d->A), d->X = std::make_unique<DeviceBatch<T>>(q, d->B);
  d->info = std::make_unique<DeviceArray<int>>(q, 5, garbage);
  d->used = std::make_unique<DeviceArray<double>>(q, 5, 0.0);
  d->options = {.shift_tries = 3, .shift_first = 1e-2, .shift_used = d->used->data()};
  const auto renew = [d, &random, n] {
    for (std::size_t i = 0; i < 5; ++i) {
      std::vector<double> values(n, 1.0);
      values[0] = i % 2 ? -0.05 : 1;
      d->A[i] = with_eigenvalues<T>(random, values), d->B[i] = random_matrix<T>(random, n, 2);
    }
    d->F->upload(d->A), d->X->upload(d->B), d->info->upload(std::vector<int>(5, garbage));
  };
  return prepared({name, renew,
                   [d, &q, kind] {
                     as(kind, *d->F, *d->X, [&](auto f, auto x) {
                       cholesky_factor_solve(q, Uplo::Lower, f, x, d->info->data(), d->options);
                     });
                   },
                   [d, n] {
                     const auto F = d->F->download(), X = d->X->download();
                     const auto used = d->used->download();
                     EXPECT_EQ(d->info->download(), std::vector<int>(5, 0));
                     for (std::size_t i = 0; i < 5; ++i) {
                       EXPECT_EQ(used[i] != 0, i % 2 != 0) << "item " << i;
                       auto A = d->A[i];
                       for (index_t j = 0; j < n; ++j) A(j, j) += T(real_t<T>(used[i]));
                       ASSERT_LT(cholesky_ratio(A, F[i], Uplo::Lower), threshold) << "item " << i;
                       ASSERT_LT(solve_ratio(Op::None, A, X[i], d->B[i]), threshold) << "item " << i;
                     }
                   },
                   [d, &q, kind] {
                     std::size_t bytes = 0;
                     as(kind, *d->F, *d->X, [&](auto f, auto x) {
                       bytes = cholesky_factor_solve_scratch(q, Uplo::Lower, f, x, d->options);
                     });
                     return bytes;
                   }});
}

/// One job for each routine and way through it; f(make) is called with each. Not a template of f: what calls f is long
/// and would be compiled for every test.
using MakeJob = std::function<Job(Queue&)>;
template <class T>
void for_every_job(Random& random, const std::function<void(const MakeJob&)>& f) {
  const CholeskyOptions right{.tuning = "whole=0 persistent=0 interleaved=0 nb=8 leaf=8 looking=right"},
      left{.tuning = "whole=0 persistent=0 interleaved=0 nb=8 leaf=3 looking=left"};
  f([&](Queue& q) { return cholesky_job<T>(q, random, "cholesky, small", Uplo::Lower, 20); });
  f([&](Queue& q) { return cholesky_job<T>(q, random, "cholesky, larger", Uplo::Upper, 160); });
  f([&](Queue& q) { return cholesky_job<T>(q, random, "cholesky, blocked right", Uplo::Lower, 50, right); });
  f([&](Queue& q) { return cholesky_job<T>(q, random, "cholesky, blocked left", Uplo::Upper, 50, left); });
  for (Kind kind : all_kinds)
    for (Uplo uplo : both_uplos) {
      const auto batch = [&](const char* name, CholeskyCall call, index_t count, index_t n, index_t rhs = 0,
                             const CholeskyOptions& options = {}) {
        f([&](Queue& q) { return batch_job<T>(q, random, name, kind, uplo, call, count, n, rhs, options); });
      };
      batch("cholesky of a batch of small items", CholeskyCall::Factor, 40, 9);
      batch("cholesky of a batch of larger items", CholeskyCall::Factor, 3, 100);
      batch("cholesky of a batch, blocked right", CholeskyCall::Factor, 5, 30, 0, right);
      batch("cholesky_solve of a batch of small items", CholeskyCall::Solve, 40, 9, 2);
      batch("cholesky_solve of a batch of larger items", CholeskyCall::Solve, 3, 100, 7);
      batch("cholesky_inverse of a batch", CholeskyCall::Inverse, 4, 40);
      if (uplo == (kind == Kind::Pointers ? Uplo::Upper : Uplo::Lower)) {  // the other triangle is no other way
        batch("cholesky_factor_solve of a batch of small items", CholeskyCall::FactorSolve, 7, 20, 1);
        batch("cholesky_factor_solve of a batch of larger items", CholeskyCall::FactorSolve, 3, 80, 3);
        batch("cholesky_log_det of a batch", CholeskyCall::LogDet, 5, 20);
      }
      if (kind == Kind::Ragged) {
        batch("cholesky of a ragged batch, sorted", CholeskyCall::Factor, 6, 140, 0, {.tuning = "whole=1000 sorted=1"});
      }
    }
  for (Uplo uplo : both_uplos) {
    f([&](Queue& q) { return cholesky_solve_job<T>(q, random, "cholesky_solve, small", uplo, 20, 2); });
    f([&](Queue& q) { return cholesky_solve_job<T>(q, random, "cholesky_solve, larger", uplo, 160, 40); });
    f([&](Queue& q) { return cholesky_solve_job<T>(q, random, "cholesky_solve, in a sweep", uplo, 160, 2); });
    f([&](Queue& q) { return cholesky_inverse_job<T>(q, random, "cholesky_inverse, small", uplo, 20); });
    f([&](Queue& q) { return cholesky_inverse_job<T>(q, random, "cholesky_inverse, larger", uplo, 160); });
    f([&](Queue& q) { return log_det_job<T>(q, random, "cholesky_log_det", uplo, 70); });
  }
  f([&](Queue& q) { return lu_job<T>(q, random, "lu, small", 20); });
  f([&](Queue& q) { return lu_job<T>(q, random, "lu, larger", 160); });
  f([&](Queue& q) { return lu_job<T>(q, random, "lu, blocked", 50, {.tuning = "whole=0 nb=8 leaf=3"}); });
  for (Op op : all_ops) {
    f([&](Queue& q) { return lu_solve_job<T>(q, random, "lu_solve, small", op, 20, 2); });
    f([&](Queue& q) { return lu_solve_job<T>(q, random, "lu_solve, larger", op, 160, 40); });
    f([&](Queue& q) { return lu_solve_job<T>(q, random, "lu_solve, in a sweep", op, 160, 1); });
  }
  f([&](Queue& q) { return lu_inverse_job<T>(q, random, "lu_inverse, small", 20); });
  f([&](Queue& q) { return lu_inverse_job<T>(q, random, "lu_inverse, larger", 160); });
  f([&](Queue& q) { return lu_det_job<T>(q, random, "lu_det", 70); });
  for (Kind kind : all_kinds) {
    f([&](Queue& q) { return lu_batch_job<T>(q, random, "lu, batch", kind, LuCall::Factor, 9, 16, 1); });
    f([&](Queue& q) {
      return lu_batch_job<T>(q, random, "lu, batch, blocked", kind, LuCall::Factor, 4, 40, 1,
                             {.tuning = "whole=0 nb=8 leaf=3"});
    });
    f([&](Queue& q) {
      return lu_batch_job<T>(q, random, "lu_factor_solve, batch", kind, LuCall::FactorSolve, 5, 70, 2);
    });
    f([&](Queue& q) { return lu_batch_job<T>(q, random, "lu_solve, batch", kind, LuCall::Solve, 5, 40, 3); });
    f([&](Queue& q) { return lu_batch_job<T>(q, random, "lu_inverse, batch", kind, LuCall::Inverse, 5, 40, 0); });
    f([&](Queue& q) { return shift_job<T>(q, random, "cholesky_factor_solve with a shift, batch", kind, 24); });
  }
  f([&](Queue& q) { return permutation_job<T>(q, random, "permutation", 70); });
}

#define TRIFACTOR_TEST_INSTANCES(T) \
  TRIFACTOR_TEST_JOBS void for_every_job<T>(Random&, const std::function<void(const MakeJob&)>&);
TRIFACTOR_TEST_EACH_TYPED(TRIFACTOR_TEST_INSTANCES)
#undef TRIFACTOR_TEST_INSTANCES

}  // namespace trifactor::test
