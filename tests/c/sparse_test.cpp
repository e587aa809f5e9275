// Sparse matrices through the C functions.
#include <c/support.hpp>

#include <limits>

namespace trifactor::test::c {
namespace {

template <class T>
struct CSparse : ::testing::Test {
  Handle<trifactor_queue> q = test_queue();
  Handle<trifactor_queue> host = made<trifactor_queue>([](auto q) { return trifactor_queue_host(1, q); });
};
TYPED_TEST_SUITE(CSparse, AllScalars, ScalarNames);

/// A band of small matrices as compressed columns, and its entries in full.
template <class T, class I>
struct Band {
  Band(index_t n, T (*entry)(index_t, index_t, index_t), trifactor_stored stored) : n(n), full(n * n, T(0)) {
    start.push_back(0);
    for (index_t j = 0; j < n; ++j) {
      for (index_t i = std::max<index_t>(0, j - 2); i < std::min(n, j + 3); ++i) {
        const T a = entry(n, i, j);
        full[i + j * n] = a;
        if (stored == TRIFACTOR_STORED_LOWER && i < j) continue;
        index.push_back(I(i)), values.push_back(a);
      }
      start.push_back(I(index.size()));
    }
    pattern = {n, n, start.data(), index.data(), int(8 * sizeof(I)), TRIFACTOR_COLUMNS, stored, 1};
  }
  Band(const Band&) = delete;
  index_t n;
  std::vector<I> start, index;
  std::vector<T> values, full;
  trifactor_pattern pattern;
  int64_t count() const { return int64_t(values.size()); }
};

constexpr index_t n = 40;

template <class T, class I>
Handle<trifactor_plan> plan_of(const Band<T, I>& A, const trifactor_analyze_options* options = nullptr) {
  return made<trifactor_plan>([&](auto p) { return trifactor_analyze(&A.pattern, options, p); });
}

TYPED_TEST(CSparse, PlansSayWhatTheyAre) {
  const Band<TypeParam, int32_t> A(n, spd_entry<TypeParam>, TRIFACTOR_STORED_LOWER);
  const auto plan = plan_of(A);
  trifactor_plan_info info = {};
  info.size = sizeof info;
  EXPECT_OK(trifactor_plan_report(plan.get(), &info));
  EXPECT_EQ(info.n, n);
  EXPECT_EQ(info.entries, A.count());
  EXPECT_GE(info.factor_nonzeros, A.count());
  EXPECT_GE(info.factor_entries, info.factor_nonzeros);
  EXPECT_GT(info.flops, 0);
  EXPECT_GE(info.front_flops, info.flops);
  EXPECT_GT(info.plan_bytes, 0u);
  EXPECT_NE(info.ordering, TRIFACTOR_ORDERING_AUTO);
  std::vector<bool> seen(n);
  for (index_t j = 0; j < n; ++j) seen[trifactor_plan_permutation(plan.get())[j]] = true;
  EXPECT_EQ(seen, std::vector<bool>(n, true));
  EXPECT_NE(std::string(trifactor_plan_text(plan.get())), "");
  EXPECT_STREQ(trifactor_plan_note(plan.get()), "");
  {
    const auto passing = plan_of(A);
    const char* const note = trifactor_plan_note(passing.get());
    EXPECT_STREQ(note, "");
    EXPECT_EQ(note, trifactor_plan_note(plan.get())) << "not part of a plan, which may end first";
  }
  int64_t columns = 0, count = 0, fronts = 0;
  for (int64_t s = 0; s < info.fronts; ++s) {
    trifactor_front front;
    EXPECT_OK(trifactor_plan_front(plan.get(), s, &front));
    columns += front.columns;
  }
  EXPECT_EQ(columns, n);
  EXPECT_OK(trifactor_plan_levels(plan.get(), nullptr, 0, &count));
  EXPECT_EQ(count, info.levels);
  std::vector<trifactor_level> levels(count);
  EXPECT_OK(trifactor_plan_levels(plan.get(), levels.data(), count, &count));
  for (const auto& level : levels) fronts += level.fronts;
  EXPECT_EQ(fronts, info.fronts);
  trifactor_width_bin bins[64];
  EXPECT_OK(trifactor_plan_widths(plan.get(), bins, 64, &count));
  fronts = 0;
  for (int64_t i = 0; i < count; ++i) fronts += bins[i].fronts;
  EXPECT_EQ(fronts, info.fronts);
  trifactor_step steps[16];
  EXPECT_OK(trifactor_plan_steps(plan.get(), steps, 16, &count));
  EXPECT_STREQ(steps[0].name, "graph");
  EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, "s = -1", trifactor_plan_front(plan.get(), -1, nullptr));
  // A program that was compiled with fewer fields gets those, and nothing is written beyond them.
  trifactor_plan_info older = {};
  older.size = offsetof(trifactor_plan_info, ordering), older.flops = -1;
  EXPECT_OK(trifactor_plan_report(plan.get(), &older));
  EXPECT_EQ(older.entries, A.count());
  EXPECT_EQ(older.flops, -1);
}

TYPED_TEST(CSparse, OrderingsAndDuplicates) {
  Band<TypeParam, int64_t> A(n, spd_entry<TypeParam>, TRIFACTOR_STORED_LOWER);
  std::vector<int64_t> backwards;
  for (index_t j = 0; j < n; ++j) backwards.push_back(n - 1 - j);
  trifactor_analyze_options options = {};
  options.size = sizeof options, options.expected_factorizations = 3;
  for (const trifactor_ordering ordering :
       {TRIFACTOR_ORDERING_METIS, TRIFACTOR_ORDERING_AMD, TRIFACTOR_ORDERING_NATURAL, TRIFACTOR_ORDERING_GIVEN}) {
    options.ordering = ordering;
    options.permutation = ordering == TRIFACTOR_ORDERING_GIVEN ? backwards.data() : nullptr;
    options.permutation_size = ordering == TRIFACTOR_ORDERING_GIVEN ? n : 0;
    const auto plan = plan_of(A, &options);
    trifactor_plan_info info = {};
    info.size = sizeof info;
    EXPECT_OK(trifactor_plan_report(plan.get(), &info));
    EXPECT_EQ(info.ordering, ordering);
  }
  trifactor_plan* none = nullptr;
  options.permutation_size = 7;
  EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, "permutation", trifactor_analyze(&A.pattern, &options, &none));
  options = {}, options.size = sizeof options, options.ordering = TRIFACTOR_ORDERING_COLAMD;
  EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, "ordering = 5", trifactor_analyze(&A.pattern, &options, &none));
  A.index[1] = 0, A.pattern.sorted = 0;
  EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, "trifactor_analyze", trifactor_analyze(nullptr, nullptr, &none));
  EXPECT_EQ(TRIFACTOR_INVALID_ARGUMENT, trifactor_analyze(&A.pattern, nullptr, &none)) << "a place that comes twice";
  options.ordering = TRIFACTOR_ORDERING_AMD, options.duplicates = 1;
  const auto plan = plan_of(A, &options);
  A.pattern.index_bits = 16;
  EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, "index_bits = 16", trifactor_analyze(&A.pattern, nullptr, &none));
  A.pattern.index_bits = 64, A.pattern.stored = 3;
  EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, "stored = 3", trifactor_analyze(&A.pattern, nullptr, &none));
  EXPECT_EQ(none, nullptr);
}

TYPED_TEST(CSparse, CholeskyFactorsAndSolves) {
  const Band<TypeParam, int32_t> A(n, spd_entry<TypeParam>, TRIFACTOR_STORED_LOWER);
  auto plan = plan_of(A);
  trifactor_sparse_memory needed = {}, held = {};
  needed.size = held.size = sizeof held;
  EXPECT_OK(trifactor_sparse_cholesky_memory_needed(this->q.get(), plan.get(), scalar<TypeParam>, nullptr, &needed));
  const auto F = made<trifactor_sparse_cholesky>([&](auto f) {
    return trifactor_sparse_cholesky_create(this->q.get(), plan.get(), scalar<TypeParam>, nullptr, f);
  });
  std::vector<int64_t> permutation(trifactor_plan_permutation(plan.get()), trifactor_plan_permutation(plan.get()) + n);
  plan.reset();  // the factor keeps what it needs
  EXPECT_OK(trifactor_sparse_cholesky_memory(F.get(), &held));
  EXPECT_EQ(held.total, needed.total);
  EXPECT_GT(held.factor, 0u);
  int64_t info = 0;
  EXPECT_OK(trifactor_sparse_cholesky_info(F.get(), &info));
  EXPECT_EQ(info, -1);
  const Uploaded<TypeParam> values(this->q, A.values), x(this->q, right_side(A.full, n)),
      y(this->q, right_side(A.full, n));
  const auto view = [&](const Uploaded<TypeParam>& b) {
    return trifactor_matrix(scalar<TypeParam>, b.data(), n, 1, n);
  };
  EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, "factor",
                trifactor_sparse_cholesky_solve(F.get(), TRIFACTOR_PART_ALL, view(x)));
  EXPECT_OK(trifactor_sparse_cholesky_factor(F.get(), values.data(), A.count(), 0));
  EXPECT_OK(trifactor_sparse_cholesky_solve(F.get(), TRIFACTOR_PART_ALL, view(x)));
  expect_solution(x.download().data(), n);
  for (const trifactor_part part :
       {TRIFACTOR_PART_PERMUTE, TRIFACTOR_PART_LOWER, TRIFACTOR_PART_LOWER_ADJOINT, TRIFACTOR_PART_PERMUTE_BACK})
    EXPECT_OK(trifactor_sparse_cholesky_solve(F.get(), part, view(y)));
  expect_solution(y.download().data(), n);
  const Uploaded<TypeParam> z(this->q, right_side(A.full, n));
  trifactor_refinement refinement = {-1, -1};
  EXPECT_OK(trifactor_sparse_cholesky_solve_refined(F.get(), values.data(), A.count(), view(z), &refinement));
  expect_solution(z.download().data(), n);
  EXPECT_GE(refinement.steps, 0);
  EXPECT_LT(refinement.backward_error, 10 * eps<TypeParam>);

  double log_det = 0, rcond = 0, sum = 0;
  std::vector<double> diagonal(n);
  trifactor_compressed_columns L = {};
  EXPECT_OK(trifactor_sparse_cholesky_log_det(F.get(), &log_det));
  EXPECT_OK(trifactor_sparse_cholesky_rcond(F.get(), &rcond));
  EXPECT_OK(trifactor_sparse_cholesky_diagonal(F.get(), diagonal.data(), n));
  EXPECT_OK(trifactor_sparse_cholesky_lower(F.get(), &L));
  for (const double d : diagonal) sum += 2 * std::log(d);
  EXPECT_NEAR(log_det, sum, 1e4 * eps<TypeParam>);
  EXPECT_GT(rcond, 0.1);
  EXPECT_EQ(L.n, n);
  EXPECT_EQ(L.start[n], L.entries);
  EXPECT_EQ(L.scalar, scalar<TypeParam>);
  for (index_t j = 0; j < n; ++j)
    EXPECT_EQ(double(real(static_cast<const TypeParam*>(L.values)[L.start[j]])), diagonal[j]);
  trifactor_compressed_columns_free(&L);
  EXPECT_EQ(L.values, nullptr);
  EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, "room = 3",
                trifactor_sparse_cholesky_diagonal(F.get(), diagonal.data(), 3));
  EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, "part = 9", trifactor_sparse_cholesky_solve(F.get(), 9, view(x)));
  EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, "values", trifactor_sparse_cholesky_factor(F.get(), values.data(), 3, 0));
  EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, "values is null", trifactor_sparse_cholesky_factor(F.get(), nullptr, 3, 0));
}

/// The least that works, as the message of a refusal names it.
std::size_t named_least() {
  const std::string message = trifactor_last_message(), before = "be at least ";
  const std::size_t at = message.find(before);
  EXPECT_NE(at, std::string::npos) << message;
  return at == std::string::npos ? 1 : std::stoull(message.substr(at + before.size()));
}

TYPED_TEST(CSparse, CholeskyOfManyMatricesOfOnePattern) {
  using T = TypeParam;
  constexpr index_t items = 4, bad = 2;
  const Band<T, int32_t> A(n, spd_entry<T>, TRIFACTOR_STORED_LOWER);
  const auto plan = plan_of(A);
  trifactor_sparse_memory needed = {}, held = {};
  needed.size = held.size = sizeof held;
  EXPECT_OK(trifactor_sparse_cholesky_batch_memory_needed(this->q.get(), plan.get(), scalar<T>, items, nullptr, &needed));
  const auto F = made<trifactor_sparse_cholesky_batch>([&](auto f) {
    return trifactor_sparse_cholesky_batch_create(this->q.get(), plan.get(), scalar<T>, items, nullptr, f);
  });
  EXPECT_OK(trifactor_sparse_cholesky_batch_memory(F.get(), &held));
  EXPECT_EQ(held.total, needed.total);
  EXPECT_EQ(held.values, sizeof(T) * items * std::size_t(A.count()));
  std::vector<T> values, b;
  for (index_t i = 0; i < items; ++i) {
    values.insert(values.end(), A.values.begin(), A.values.end());
    const auto side = right_side(A.full, n);
    b.insert(b.end(), side.begin(), side.end());
  }
  values[bad * A.count() + A.start[5]] = T(-1);  // the diagonal entry of column 5
  const int64_t count = items * A.count();
  const Uploaded<T> there(this->q, values), x(this->q, b);
  const auto view = trifactor_strided(scalar<T>, x.data(), n, 1, n, n, items);
  EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, "nothing has been factored",
                trifactor_sparse_cholesky_batch_solve(F.get(), TRIFACTOR_PART_ALL, view));
  int64_t failed = -1;
  int info[items] = {};
  EXPECT_OK(trifactor_sparse_cholesky_batch_factor(F.get(), there.data(), count, 0, &failed));
  EXPECT_EQ(failed, 1);
  EXPECT_OK(trifactor_sparse_cholesky_batch_info(F.get(), info, items));
  EXPECT_OK(trifactor_sparse_cholesky_batch_solve(F.get(), TRIFACTOR_PART_ALL, view));
  const auto solved = x.download();
  double log_det[items];
  std::vector<double> diagonal(items * n);
  EXPECT_OK(trifactor_sparse_cholesky_batch_log_det(F.get(), log_det, items));
  EXPECT_OK(trifactor_sparse_cholesky_batch_diagonal(F.get(), diagonal.data(), items * n));
  for (index_t i = 0; i < items; ++i) {
    EXPECT_EQ(info[i], i == bad ? 6 : 0);
    EXPECT_EQ(std::isnan(log_det[i]), i == bad);
    if (i == bad) {
      EXPECT_TRUE(std::equal(b.begin() + i * n, b.begin() + (i + 1) * n, solved.begin() + i * n));
      continue;
    }
    expect_solution(solved.data() + i * n, n);
    double sum = 0;
    for (index_t j = 0; j < n; ++j) sum += 2 * std::log(diagonal[i * n + j]);
    EXPECT_NEAR(log_det[i], sum, 1e4 * eps<T>);
  }
  EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, "room = 3", trifactor_sparse_cholesky_batch_info(F.get(), info, 3));
  EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, "must be TRIFACTOR_KIND_STRIDED",
                trifactor_sparse_cholesky_batch_solve(F.get(), 0, trifactor_matrix(scalar<T>, x.data(), n, 1, n)));
  EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, "part = 9", trifactor_sparse_cholesky_batch_solve(F.get(), 9, view));
  EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, "times count",
                trifactor_sparse_cholesky_batch_factor(F.get(), there.data(), 3, 0, &failed));
  EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, "failed",
                trifactor_sparse_cholesky_batch_factor(F.get(), there.data(), count, 0, nullptr));
  trifactor_sparse_cholesky_batch* none = nullptr;
  EXPECT_STATUS(
      TRIFACTOR_INVALID_ARGUMENT, "count = -1 must not be negative",
      trifactor_sparse_cholesky_batch_create(this->q.get(), plan.get(), scalar<T>, -1, nullptr, &none));
}

TYPED_TEST(CSparse, CholeskyWorksInTheLeastDeviceMemory) {
  using T = TypeParam;
  constexpr index_t order = 300;
  const Band<T, int32_t> A(order, spd_entry<T>, TRIFACTOR_STORED_LOWER);
  const auto plan = plan_of(A);
  trifactor_sparse_options options = {};
  options.size = sizeof options, options.tuning = "levels=1";  // with which the cap counts on a host queue too
  trifactor_sparse_memory all = {}, held = {};
  all.size = held.size = sizeof held;
  const auto needed = [&](trifactor_sparse_memory& memory) {
    return trifactor_sparse_cholesky_memory_needed(this->q.get(), plan.get(), scalar<T>, &options, &memory);
  };
  EXPECT_OK(needed(all));
  EXPECT_EQ(all.host, 0u);
  options.max_device_bytes = 1;
  trifactor_sparse_cholesky* none = nullptr;
  EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, "max_device_bytes = 1 must be at least ", needed(held));
  EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, "max_device_bytes = 1 must be at least ",
                trifactor_sparse_cholesky_create(this->q.get(), plan.get(), scalar<T>, &options, &none));
  EXPECT_EQ(none, nullptr);

  options.max_device_bytes = named_least();
  const bool streams = options.max_device_bytes < all.total;  // a device's lists may outweigh so small a factor
  EXPECT_TRUE(streams || trifactor_queue_is_cuda(this->q.get()));
  const auto F = made<trifactor_sparse_cholesky>(
      [&](auto f) { return trifactor_sparse_cholesky_create(this->q.get(), plan.get(), scalar<T>, &options, f); });
  EXPECT_OK(trifactor_sparse_cholesky_memory(F.get(), &held));
  EXPECT_LE(held.total, options.max_device_bytes);
  EXPECT_EQ(held.host >= all.factor, streams) << held.host;
  const Uploaded<T> values(this->q, A.values), x(this->q, right_side(A.full, order));
  EXPECT_OK(trifactor_sparse_cholesky_factor(F.get(), values.data(), A.count(), 0));
  EXPECT_OK(trifactor_sparse_cholesky_solve(F.get(), TRIFACTOR_PART_ALL,
                                            trifactor_matrix(scalar<T>, x.data(), order, 1, order)));
  expect_solution(x.download().data(), order);

  // A program that was compiled before these fields has no cap, and no room for the host's bytes.
  options.max_device_bytes = 1, options.size = offsetof(trifactor_sparse_options, max_device_bytes);
  held.host = 7, held.size = offsetof(trifactor_sparse_memory, host);
  EXPECT_OK(needed(held));
  EXPECT_EQ(held.total, all.total);
  EXPECT_EQ(held.host, 7u);
}

TYPED_TEST(CSparse, CholeskyMayShareTheWorkWithTheCpu) {
  using T = TypeParam;
  constexpr index_t order = 300;
  const Band<T, int32_t> A(order, spd_entry<T>, TRIFACTOR_STORED_LOWER);
  const auto plan = plan_of(A);
  trifactor_sparse_options options = {};
  options.size = sizeof options, options.mode = 9;
  trifactor_sparse_cholesky* none = nullptr;
  EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, "mode = 9",
                trifactor_sparse_cholesky_create(this->q.get(), plan.get(), scalar<T>, &options, &none));
  options.mode = TRIFACTOR_MODE_HYBRID, options.tuning = "levels=1 host_percent=100";
  const auto F = made<trifactor_sparse_cholesky>(
      [&](auto f) { return trifactor_sparse_cholesky_create(this->q.get(), plan.get(), scalar<T>, &options, f); });
  trifactor_sparse_memory held = {};
  held.size = sizeof held;
  EXPECT_OK(trifactor_sparse_cholesky_memory(F.get(), &held));
  EXPECT_GT(held.host, 0u);
  const Uploaded<T> values(this->q, A.values), x(this->q, right_side(A.full, order));
  EXPECT_OK(trifactor_sparse_cholesky_factor(F.get(), values.data(), A.count(), 0));
  EXPECT_OK(trifactor_sparse_cholesky_solve(F.get(), TRIFACTOR_PART_ALL,
                                            trifactor_matrix(scalar<T>, x.data(), order, 1, order)));
  expect_solution(x.download().data(), order);
}

TYPED_TEST(CSparse, CholeskyNamesTheColumnThatFails) {
  Band<TypeParam, int64_t> A(n, spd_entry<TypeParam>, TRIFACTOR_STORED_LOWER);
  const auto plan = plan_of(A);
  const auto F = made<trifactor_sparse_cholesky>([&](auto f) {
    return trifactor_sparse_cholesky_create(this->q.get(), plan.get(), scalar<TypeParam>, nullptr, f);
  });
  for (const real_t<TypeParam> bad : {real_t<TypeParam>(-200), nan<TypeParam>}) {
    A.values[A.start[n - 1]] = TypeParam(bad);  // the last diagonal entry
    const Uploaded<TypeParam> values(this->q, A.values);
    EXPECT_STATUS(TRIFACTOR_NOT_POSITIVE_DEFINITE, "not positive definite",
                  trifactor_sparse_cholesky_factor(F.get(), values.data(), A.count(), 0));
    int64_t info = 0;
    EXPECT_OK(trifactor_sparse_cholesky_info(F.get(), &info));
    EXPECT_GT(info, 0);
    EXPECT_EQ(info, trifactor_last_detail());
    if (bad < 0) {
      EXPECT_OK(trifactor_sparse_cholesky_factor(F.get(), values.data(), A.count(), 300)) << "with a shift";
    }
  }
}

TYPED_TEST(CSparse, LuFactorsAndSolves) {
  const Band<TypeParam, int32_t> A(n, general_entry<TypeParam>, TRIFACTOR_STORED_FULL);
  for (const trifactor_ordering ordering :
       {TRIFACTOR_ORDERING_AUTO, TRIFACTOR_ORDERING_AMD, TRIFACTOR_ORDERING_NATURAL}) {
    trifactor_analyze_options analysis = {};
    analysis.size = sizeof analysis, analysis.ordering = ordering;
    const auto plan = made<trifactor_lu_plan>([&](auto p) { return trifactor_analyze_lu(&A.pattern, &analysis, p); });
    trifactor_plan_info info = {};
    info.size = sizeof info;
    EXPECT_OK(trifactor_lu_plan_report(plan.get(), &info));
    EXPECT_EQ(info.n, n);
    EXPECT_EQ(info.entries, A.count());
    EXPECT_EQ(info.ordering, ordering == TRIFACTOR_ORDERING_AUTO ? TRIFACTOR_ORDERING_COLAMD : ordering);
    EXPECT_NE(trifactor_lu_plan_permutation(plan.get()), nullptr);
    EXPECT_NE(std::string(trifactor_lu_plan_text(plan.get())), "");
    int64_t steps = 0, failed = 0, nonzeros = 0;
    EXPECT_OK(trifactor_lu_plan_steps(plan.get(), nullptr, 0, &steps));
    EXPECT_GT(steps, 0);

    trifactor_sparse_options options = {};
    options.size = sizeof options, options.pivot_threshold = 0.5, options.no_equilibration = 1;
    const auto F = made<trifactor_sparse_lu>([&](auto f) {
      return trifactor_sparse_lu_create(this->host.get(), plan.get(), scalar<TypeParam>, &options, f);
    });
    EXPECT_OK(trifactor_sparse_lu_factor(F.get(), A.values.data(), A.count()));
    EXPECT_OK(trifactor_sparse_lu_info(F.get(), &failed));
    EXPECT_EQ(failed, 0);
    for (const trifactor_op op : {TRIFACTOR_NONE, TRIFACTOR_TRANSPOSE, TRIFACTOR_CONJ_TRANSPOSE}) {
      auto x = right_side(A.full, n, op), y = x;
      EXPECT_OK(trifactor_sparse_lu_solve(F.get(), op, trifactor_matrix(scalar<TypeParam>, x.data(), n, 1, n)));
      EXPECT_OK(trifactor_sparse_lu_solve_refined(F.get(), A.values.data(), A.count(), op,
                                                  trifactor_matrix(scalar<TypeParam>, y.data(), n, 1, n), nullptr));
      expect_solution(x.data(), n), expect_solution(y.data(), n);
    }
    TypeParam sign(0);
    double log_abs = 0, rcond = 0, norm = 0;
    trifactor_sparse_memory memory = {};
    memory.size = sizeof memory;
    EXPECT_OK(trifactor_sparse_lu_det(F.get(), &sign, &log_abs));
    EXPECT_OK(trifactor_sparse_lu_rcond(F.get(), &rcond));
    EXPECT_OK(trifactor_sparse_lu_norm1(F.get(), &norm));
    EXPECT_OK(trifactor_sparse_lu_factor_nonzeros(F.get(), &nonzeros));
    EXPECT_OK(trifactor_sparse_lu_memory(F.get(), &memory));
    EXPECT_NEAR(std::abs(sign), 1, 1e3 * eps<TypeParam>);
    EXPECT_GT(rcond, 0);
    EXPECT_GT(norm, double(n));
    EXPECT_GE(nonzeros, A.count() / 2);
    EXPECT_EQ(memory.total, memory.factor + memory.vectors);
  }
}

TYPED_TEST(CSparse, LuNamesTheColumnThatFails) {
  Band<TypeParam, int32_t> A(n, general_entry<TypeParam>, TRIFACTOR_STORED_FULL);
  for (index_t k = A.start[5]; k < A.start[6]; ++k) A.values[k] = TypeParam(0);
  const auto plan = made<trifactor_lu_plan>([&](auto p) { return trifactor_analyze_lu(&A.pattern, nullptr, p); });
  const auto F = made<trifactor_sparse_lu>(
      [&](auto f) { return trifactor_sparse_lu_create(this->host.get(), plan.get(), scalar<TypeParam>, nullptr, f); });
  EXPECT_STATUS(TRIFACTOR_SINGULAR, "6", trifactor_sparse_lu_factor(F.get(), A.values.data(), A.count()));
  EXPECT_EQ(trifactor_last_detail(), 6);
  trifactor_sparse_options options = {};
  options.size = sizeof options, options.pivot_threshold = 2;
  trifactor_sparse_lu* none = nullptr;
  EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, "2",
                trifactor_sparse_lu_create(this->host.get(), plan.get(), scalar<TypeParam>, &options, &none));
  EXPECT_EQ(none, nullptr);
}

TYPED_TEST(CSparse, HermitianOrNot) {
  Band<TypeParam, int32_t> A(n, spd_entry<TypeParam>, TRIFACTOR_STORED_FULL);
  int hermitian = -1;
  EXPECT_OK(trifactor_is_hermitian(&A.pattern, scalar<TypeParam>, A.values.data(), A.count(), 0, &hermitian));
  EXPECT_EQ(hermitian, 1);
  A.values[1] += TypeParam(1);
  EXPECT_OK(trifactor_is_hermitian(&A.pattern, scalar<TypeParam>, A.values.data(), A.count(), -1, &hermitian));
  EXPECT_EQ(hermitian, 0);
  trifactor_compressed_columns H = {};
  EXPECT_OK(trifactor_hermitian_part(&A.pattern, scalar<TypeParam>, A.values.data(), A.count(), &H));
  EXPECT_EQ(H.n, n);
  EXPECT_EQ(static_cast<const TypeParam*>(H.values)[1], A.values[1] - TypeParam(0.5));
  trifactor_compressed_columns_free(&H);
  EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, "result is null",
                trifactor_is_hermitian(&A.pattern, scalar<TypeParam>, A.values.data(), A.count(), 0, nullptr));
}

TYPED_TEST(CSparse, PatternsAreCheckedBeforeTheyAreRead) {
  Band<TypeParam, int32_t> A(n, spd_entry<TypeParam>, TRIFACTOR_STORED_FULL);
  const auto expect_refused = [&](const trifactor_pattern& bad, int64_t count, const char* why) {
    int hermitian = -1;
    trifactor_compressed_columns H;
    H.owner = &A;  // whatever it held
    EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, why,
                  trifactor_is_hermitian(&bad, scalar<TypeParam>, A.values.data(), count, 0, &hermitian));
    EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, why,
                  trifactor_hermitian_part(&bad, scalar<TypeParam>, A.values.data(), count, &H));
    trifactor_compressed_columns_free(&H);  // also where there is nothing
  };
  auto bad = A.pattern;
  bad.start = nullptr;
  expect_refused(bad, 0, "start is null");
  A.index[1] = n;
  expect_refused(A.pattern, A.count(), "must be at least 0 and less than n = 40");
}

}  // namespace
}  // namespace trifactor::test::c
