// Queues, memory, messages and what is there, through the C functions.
#include <c/support.hpp>
#include <trifactor/testing.hpp>

#include <cstring>
#include <thread>

namespace trifactor::test::c {
namespace {

TEST(CQueue, SaysWhatItIs) {
  const auto q = test_queue(), host = made<trifactor_queue>([](auto p) { return trifactor_queue_host(1, p); });
  EXPECT_OK(trifactor_queue_reserve(q.get(), 1000));
  EXPECT_OK(trifactor_queue_sync(q.get()));
  EXPECT_EQ(trifactor_queue_is_cuda(host.get()), 0);
  EXPECT_EQ(trifactor_queue_device(host.get()), -1);
  EXPECT_EQ(trifactor_queue_stream(host.get()), nullptr);
  trifactor_queue* none = host.get();
  EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, "threads = -3", trifactor_queue_host(-3, &none));
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(TRIFACTOR_DEVICE_FAULT, trifactor_queue_cuda(12345, &none));
  EXPECT_EQ(TRIFACTOR_DEVICE_FAULT, trifactor_queue_wrap_cuda_stream(nullptr, 12345, &none));
}

TEST(CQueue, CopiesAndFills) {
  const auto q = test_queue();
  const Uploaded<int> a(q, {1, 2, 3, 4, 5, 6}), b(q, {0, 0, 0, 0, 0, 0});
  EXPECT_OK(trifactor_copy_columns(q.get(), a.data(), 12, q.get(), b.data(), 8, 8, 2));  // two rows of three
  EXPECT_EQ(b.download(), (std::vector<int>{1, 2, 4, 5, 0, 0}));
  EXPECT_OK(trifactor_fill_zero(q.get(), b.data(), 8));
  EXPECT_EQ(b.download(), (std::vector<int>{0, 0, 4, 5, 0, 0}));
  int near[2] = {7, 8}, far[2] = {0, 0};
  EXPECT_OK(trifactor_copy_bytes(nullptr, near, nullptr, far, sizeof near));
  EXPECT_EQ(far[1], 8);
  EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, "target is null", trifactor_copy_bytes(nullptr, near, q.get(), nullptr, 8));
  EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, "trifactor_copy_bytes: source is null",
                trifactor_copy_bytes(q.get(), nullptr, q.get(), near, 8));
  EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, "source_ld = 4",
                trifactor_copy_columns(nullptr, near, 4, q.get(), b.data(), 8, 8, 2));
  void* memory = near;
  trifactor::testing::fail_allocation(1);
  EXPECT_STATUS(TRIFACTOR_OUT_OF_MEMORY, "4096", trifactor_allocate(q.get(), 4096, &memory));
  trifactor::testing::fail_allocation(0);
  EXPECT_EQ(memory, nullptr);
  EXPECT_EQ(trifactor_last_detail(), 4096);
}

TEST(CQueue, NullsAreRefusedEverywhere) {
  const auto A = trifactor_matrix(TRIFACTOR_C64, nullptr, 0, 0, 1);
  const trifactor_status refused[] = {trifactor_queue_host(0, nullptr),
                                      trifactor_queue_sync(nullptr),
                                      trifactor_queue_reserve(nullptr, 1),
                                      trifactor_allocate(nullptr, 1, nullptr),
                                      trifactor_device_count(nullptr),
                                      trifactor_device_report(0, nullptr),
                                      trifactor_tuning_row_count(nullptr),
                                      trifactor_tuning_row(0, nullptr, nullptr),
                                      trifactor_lu(nullptr, A, nullptr, nullptr, nullptr),
                                      trifactor_lu_solve(nullptr, 0, A, nullptr, A, nullptr, nullptr),
                                      trifactor_lu_row_permutation(nullptr, nullptr, 0, nullptr, 0),
                                      trifactor_dense_cholesky_create(A, nullptr, nullptr),
                                      trifactor_dense_cholesky_solve(nullptr, A),
                                      trifactor_dense_cholesky_log_det(nullptr, nullptr),
                                      trifactor_dense_lu_create(A, nullptr, nullptr),
                                      trifactor_dense_lu_solve(nullptr, 0, A),
                                      trifactor_analyze(nullptr, nullptr, nullptr),
                                      trifactor_analyze_lu(nullptr, nullptr, nullptr),
                                      trifactor_plan_report(nullptr, nullptr),
                                      trifactor_lu_plan_report(nullptr, nullptr),
                                      trifactor_plan_front(nullptr, 0, nullptr),
                                      trifactor_plan_levels(nullptr, nullptr, 0, nullptr),
                                      trifactor_sparse_cholesky_create(nullptr, nullptr, 0, nullptr, nullptr),
                                      trifactor_sparse_cholesky_factor(nullptr, nullptr, 0, 0),
                                      trifactor_sparse_cholesky_solve(nullptr, 0, A),
                                      trifactor_sparse_cholesky_lower(nullptr, nullptr),
                                      trifactor_sparse_lu_factor(nullptr, nullptr, 0),
                                      trifactor_sparse_lu_create(nullptr, nullptr, 0, nullptr, nullptr),
                                      trifactor_sparse_lu_det(nullptr, nullptr, nullptr),
                                      trifactor_measure(nullptr, 1, nullptr, nullptr),
                                      trifactor_seconds_of(nullptr, nullptr, nullptr, nullptr)};
  for (const trifactor_status status : refused) EXPECT_EQ(status, TRIFACTOR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(trifactor_last_message()).find("null"), std::string::npos);
  EXPECT_EQ(trifactor_plan_permutation(nullptr), nullptr);
  EXPECT_STREQ(trifactor_plan_text(nullptr), "");
  trifactor_queue_destroy(nullptr), trifactor_plan_destroy(nullptr), trifactor_sparse_lu_destroy(nullptr);
  trifactor_compressed_columns_free(nullptr), trifactor_free(nullptr, nullptr);
}

TEST(CQueue, MessagesBelongToTheirThread) {
  trifactor_queue* none = nullptr;
  EXPECT_EQ(TRIFACTOR_INVALID_ARGUMENT, trifactor_queue_host(-3, &none));
  const std::string mine = trifactor_last_message();
  std::string before, after;
  std::thread([&] {
    before = trifactor_last_message();
    trifactor_queue* other = nullptr;
    trifactor_queue_host(-77, &other);
    after = trifactor_last_message();
  }).join();
  EXPECT_EQ(before, "");
  EXPECT_NE(after.find("-77"), std::string::npos);
  EXPECT_EQ(mine, trifactor_last_message());
  const auto q = test_queue();
  EXPECT_EQ(mine, trifactor_last_message()) << "calls that succeed leave it alone";
}

TEST(CQueue, WhatIsThere) {
  EXPECT_STREQ(trifactor_version(), TRIFACTOR_VERSION);
  EXPECT_NE(std::string(trifactor_blas()), "");
  EXPECT_STREQ(trifactor_status_name(TRIFACTOR_SINGULAR), "TRIFACTOR_SINGULAR");
  EXPECT_STREQ(trifactor_status_name(99), "no status of trifactor");
  int64_t devices = 0, rows = 0;
  EXPECT_OK(trifactor_device_count(&devices));
  EXPECT_EQ(devices == 1, std::string(trifactor_why_no_cuda()) != "");
  trifactor_device_info info = {};
  info.size = sizeof info;
  EXPECT_OK(trifactor_device_report(0, &info));
  EXPECT_EQ(info.number, -1);
  EXPECT_GT(info.cores, 0);
  EXPECT_NE(std::strlen(info.name), 0u);
  EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, "i = 99", trifactor_device_report(99, &info));
  info.size = 0;
  EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, "= 0", trifactor_device_report(0, &info));
  const char *text = nullptr, *source = nullptr;
  EXPECT_OK(trifactor_tuning_row_count(&rows));
  EXPECT_OK(trifactor_tuning_row(rows - 1, &text, &source));
  EXPECT_NE(std::string(source).find(".txt:"), std::string::npos);
  EXPECT_NE(trifactor_energy_sensors(), nullptr);
}

TEST(CQueue, Measures) {
  int runs = 0, prepared = 0;
  struct Counts {
    int &runs, &prepared;
  } counts{runs, prepared};
  trifactor_contender contenders[2] = {};
  for (auto& c : contenders) {
    c.run = [](void* p) { ++static_cast<Counts*>(p)->runs; };
    c.prepare = [](void* p) { ++static_cast<Counts*>(p)->prepared; };
    c.context = &counts;
  }
  contenders[1].prepare = nullptr;
  trifactor_measure_options options = {};
  options.size = sizeof options, options.min_runs = options.max_runs = 3, options.warmups = -1;
  trifactor_measurement results[2] = {};
  EXPECT_OK(trifactor_measure(contenders, 2, &options, results));
  EXPECT_EQ(results[0].runs, 3);
  EXPECT_EQ(results[1].runs, 3);
  EXPECT_EQ(runs, 6);
  EXPECT_EQ(prepared, 3);
  EXPECT_TRUE(std::isnan(results[0].joules));
  EXPECT_GE(results[0].seconds, 0);
  double seconds = -1;
  const auto q = made<trifactor_queue>([](auto p) { return trifactor_queue_host(1, p); });
  EXPECT_OK(trifactor_seconds_of(q.get(), contenders[0].run, &counts, &seconds));
  EXPECT_GE(seconds, 0);
  EXPECT_EQ(runs, 7);
  // What a callback throws does not cross.
  EXPECT_STATUS(TRIFACTOR_INTERNAL_ERROR, "of the callback",
                trifactor_seconds_of(
                    q.get(), [](void*) { throw std::runtime_error("of the callback"); }, nullptr, &seconds));
}

}  // namespace
}  // namespace trifactor::test::c
