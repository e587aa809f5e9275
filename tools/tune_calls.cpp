#include "tune_calls.hpp"

#include "batch_operands.hpp"

#include <fmt/core.h>
#include <trifactor/info.hpp>

#include <algorithm>
#include <cmath>
#include <set>

namespace program {
namespace {

using trifactor::Uplo;

/// One call of a class.
struct Call {
  std::function<void(const std::string& tuning)> run;
  std::function<void(const std::string& tuning)> prepare = [](const std::string&) {};
  bool waits = false;  // run() returns when the work is complete, on a device too
};
using Calls = std::vector<Call>;

/// Times the calls of a class.
class Stopwatch {
 public:
  Stopwatch(Queue& queue, Calls calls) : queue_(queue), calls_(std::move(calls)) {}

  double operator()(const std::string& tuning) {
    const bool is_new = warmed_.insert(tuning).second;
    double sum = 0;
    for (const Call& call : calls_) {
      const double first = is_new ? warm_up(call, tuning) : 0;
      sum += std::log(first > very_long_time ? first : seconds(call, tuning));
    }
    return std::exp(sum / double(calls_.size()));
  }

 private:
  // Runs below the first are repeated; above the second they do not become faster by repetition; above the third
  // nothing that happens once, such as loading kernels, counts.
  static constexpr double short_time = 2e-3, long_time = 20e-3, very_long_time = 0.5;
  static constexpr int max_repeats = 5;

  /// Returns the seconds of the first run. A device's call becomes a graph when it comes for the fourth time.
  double warm_up(const Call& call, const std::string& tuning) {
    const double first = seconds_once(call, tuning);
    double last = 0;
    for (int i = 1; i < (queue_.is_cuda() ? 4 : 1) && first < very_long_time && last < long_time; ++i)
      last = seconds_once(call, tuning);
    return first;
  }
  double seconds(const Call& call, const std::string& tuning) {
    std::vector<double> runs;
    for (double sum = 0; int(runs.size()) < max_repeats && sum < short_time; sum += runs.back())
      runs.push_back(std::max(seconds_once(call, tuning), 1e-9));
    std::nth_element(runs.begin(), runs.begin() + std::ptrdiff_t(runs.size() / 2), runs.end());
    return runs[runs.size() / 2];
  }
  double seconds_once(const Call& call, const std::string& tuning) {
    call.prepare(tuning);
    if (!call.waits) return trifactor::seconds_of(queue_, [&] { call.run(tuning); });
    queue_.sync();
    return trifactor::seconds_of(*host_, [&] { call.run(tuning), queue_.sync(); });
  }

  Queue& queue_;
  std::shared_ptr<Queue> host_ = std::make_shared<Queue>(Queue::host());
  Calls calls_;
  std::set<std::string> warmed_;
};

/// Matrices in a queue's memory, positive definite or not: calls overwrite the first buffer of them.
template <Scalar T>
struct TimedItems {
  TimedItems(Queue& q, std::vector<int> sizes, bool definite) : items(std::move(sizes), 0, definite), batch(q, items) {
    restore();
  }
  void restore() { batch.operands.restore(0); }
  index_t n() const { return batch.largest(); }
  index_t count() const { return batch.count(); }
  MatrixView<T> one() const { return square(batch.operands.buffer(0), n()); }

  BatchItems<T> items;
  BatchOperands<T> batch;
};

template <Scalar T>
auto alike_items(Queue& q, index_t n, index_t count, bool definite) {
  return std::make_shared<TimedItems<T>>(q, std::vector<int>(std::size_t(count), int(n)), definite);
}

/// Sizes from 1 to n, and one of n.
template <Scalar T>
auto mixed_items(Queue& q, index_t n, index_t count) {
  std::vector<int> sizes = uniform_sizes(count, 1, n, 1);
  sizes.front() = int(n);
  return std::make_shared<TimedItems<T>>(q, std::move(sizes), true);
}

template <Scalar T>
void add_cholesky(Calls& calls, Queue& q, const std::shared_ptr<TimedItems<T>>& items) {
  calls.push_back(
      {[&q, items](const std::string& tuning) {
         if (items->count() == 1)
           trifactor::cholesky(q, Uplo::Lower, items->one(), items->batch.info(), {.tuning = tuning});
         else if (items->items.total == items->count() * items->n() * items->n())
           trifactor::cholesky(q, Uplo::Lower, items->batch.strided(0), items->batch.info(), {.tuning = tuning});
         else
           trifactor::cholesky(q, Uplo::Lower, items->batch.ragged(0), items->batch.info(), {.tuning = tuning});
       },
       [items](const std::string&) { items->restore(); }});
}

/// Right-hand sides of every item, n x nrhs each.
template <Scalar T>
struct TimedSides {
  TimedSides(Queue& q, index_t n, index_t columns, index_t items) : nrhs(columns), count(items) {
    Buffer<T> values(n * nrhs * count);
    fill_random(MatrixView<T>{values.data(), n, nrhs * count, n}, 1);
    operands = std::make_unique<Operands<T>>(
        q, q.is_cuda() ? Buffer<T>(q, std::span(values.data(), std::size_t(values.size()))) : std::move(values));
  }
  auto strided(index_t n) const { return trifactor::strided(operands->buffer(0), n, nrhs, {.count = count}); }

  index_t nrhs, count;
  std::unique_ptr<Operands<T>> operands;
};

template <Scalar T>
void add_factor_solve(Calls& calls, Queue& q, const std::shared_ptr<TimedItems<T>>& items) {
  const auto sides = std::make_shared<TimedSides<T>>(q, items->n(), 1, items->count());
  calls.push_back({[&q, items, sides](const std::string& tuning) {
                     trifactor::cholesky_factor_solve(q, Uplo::Lower, items->batch.strided(0),
                                                      sides->strided(items->n()), items->batch.info(),
                                                      {.tuning = tuning});
                   },
                   [items, sides](const std::string&) { items->restore(), sides->operands->restore(0); }});
}

template <Scalar T>
void add_lu(Calls& calls, Queue& q, const std::shared_ptr<TimedItems<T>>& items) {
  const auto pivots = std::make_shared<Buffer<int>>(q, items->n() * items->count());
  calls.push_back({[&q, items, pivots](const std::string& tuning) {
                     if (items->count() == 1)
                       trifactor::lu(q, items->one(), *pivots, items->batch.info(), {.tuning = tuning});
                     else
                       trifactor::lu(q, items->batch.strided(0), *pivots, items->batch.info(), {.tuning = tuning});
                   },
                   [items](const std::string&) { items->restore(); }});
}

/// Solves with Cholesky factors, which are made now, and, of one matrix, the inverse.
template <Scalar T>
void add_solves(Calls& calls, Queue& q, index_t n, index_t count, const std::vector<index_t>& columns, bool inverts) {
  const auto items = alike_items<T>(q, n, count, true);
  trifactor::cholesky(q, Uplo::Lower, items->batch.strided(0), items->batch.info());
  q.sync();
  for (const index_t nrhs : columns) {
    const auto sides = std::make_shared<TimedSides<T>>(q, n, nrhs, count);
    calls.push_back({[&q, items, sides, n](const std::string& tuning) {
                       const trifactor::SolveOptions options{.tuning = tuning};
                       if (items->count() > 1)
                         return trifactor::cholesky_solve(q, Uplo::Lower, items->batch.strided(0), sides->strided(n),
                                                          nullptr, options);
                       const MatrixView<T> X{sides->operands->buffer(0), n, sides->nrhs, n};
                       trifactor::cholesky_solve(q, Uplo::Lower, items->one(), X, nullptr, options);
                     },
                     [sides](const std::string&) { sides->operands->restore(0); }});
  }
  if (inverts)
    calls.push_back({[&q, items, n](const std::string& tuning) {
      trifactor::cholesky_inverse(q, Uplo::Lower, items->one(), square(items->batch.operands.buffer(1), n), nullptr,
                                  {.tuning = tuning});
    }});
}

/// Data on the host, factored and solved with where gpu_from says.
template <Scalar T>
void add_value(Calls& calls, index_t n) {
  const auto A = std::make_shared<Matrix<T>>(n, n), B = std::make_shared<Matrix<T>>(n, 1);
  fill_positive_definite(A->view(), 1);
  fill_random(B->view(), 2);
  calls.push_back({[A, B, n](const std::string& tuning) {
                     const bool there = n >= std::stoll(tuning.substr(tuning.find('=') + 1));
                     const auto device = there ? trifactor::Device::Cuda : trifactor::Device::Host;
                     trifactor::cholesky(*A, {.device = device}).solve(*B);
                   },
                   [](const std::string&) {}, true});
}

/// Numeric phases of a sparse matrix: factor again, and solve for 1 and 64 right-hand sides.
template <Scalar T>
void add_sparse(Calls& calls, Queue& q, const char* matrix) {
  struct Held {
    Held(Queue& q, SparseMatrix<T> given)
        : A(std::move(given)), plan(trifactor::analyze(A.pattern())), values(q, A.value.data(), A.entries()) {}
    trifactor::SparseCholesky<T>& with(Queue& q, const std::string& tuning) {
      if (!L || tuning != used) {
        L.reset();
        L.emplace(q, plan, trifactor::SparseOptions{.tuning = tuning});
        L->factor(values.values());
        used = tuning;
      }
      return *L;
    }
    SparseMatrix<T> A;
    std::shared_ptr<const trifactor::SparsePlan> plan;
    InQueue<T> values;
    std::optional<trifactor::SparseCholesky<T>> L;
    std::string used;
  };
  const auto held = std::make_shared<Held>(q, converted<T>(SparseSource(matrix).load<double>()));
  // What a tuning needs once, such as lists and memory, is not timed.
  calls.push_back({[&q, held](const std::string& tuning) { held->with(q, tuning).factor(held->values.values()); },
                   [&q, held](const std::string& tuning) { held->with(q, tuning); }, true});
  for (const index_t nrhs : {1, 64}) {
    const auto sides = std::make_shared<TimedSides<T>>(q, held->A.n, nrhs, 1);
    calls.push_back(
        {[&q, held, sides](const std::string& tuning) {
           held->with(q, tuning).solve(MatrixView<T>{sides->operands->buffer(0), held->A.n, sides->nrhs, held->A.n});
         },
         [&q, held, sides](const std::string& tuning) {
           held->with(q, tuning);
           sides->operands->restore(0);
         },
         true});
  }
}

std::vector<index_t> default_orders(const std::string& op, const std::string& operation, bool cuda) {
  if (op == "batch")
    return cuda ? std::vector<index_t>{8, 16, 32, 64, 128, 256, 512, 1024} : std::vector<index_t>{8, 32, 64, 128, 256};
  if (operation == "value") return {64, 128, 256, 512, 1024, 2048};
  if (op == "solve-batch")
    return cuda ? std::vector<index_t>{8, 32, 128, 512} : std::vector<index_t>{8, 32, 64, 128, 256};
  if (op == "solve") return cuda ? std::vector<index_t>{512, 2048, 8192} : std::vector<index_t>{256, 1024};
  return cuda ? std::vector<index_t>{128, 512, 1024, 2048, 4096, 8192, 16384} : std::vector<index_t>{128, 512, 2048};
}

/// So many matrices of order n that a machine is busy with them.
index_t batch_count(index_t n, bool cuda) {
  return cuda ? std::clamp((index_t(1) << 24) / (n * n), index_t(128), index_t(10000))
              : std::clamp((index_t(1) << 21) / (n * n), index_t(8), index_t(1000));
}

}  // namespace

std::vector<CallClass> call_classes(const std::string& op, bool cuda, const std::vector<index_t>& sizes) {
  std::vector<CallClass> classes;
  const auto add = [&](const std::string& orders_of, const char* operation, bool many) {
    const auto orders = sizes.empty() ? default_orders(orders_of, operation, cuda) : sizes;
    for (std::size_t i = 0; i < orders.size(); ++i) {
      CallClass c{op, operation, orders[i], many ? batch_count(orders[i], cuda) : 1, many ? "count>1" : "count=1"};
      const auto middle = [&](std::size_t k) { return index_t(std::sqrt(double(orders[k]) * double(orders[k + 1]))); };
      if (i > 0) c.conditions += fmt::format(" n>{}", middle(i - 1));
      // A crossover that is on at the last order is not on at all of them: these rows end at twice that order.
      const bool ends = many || !sizes.empty();
      if (i + 1 < orders.size() || ends)
        c.conditions += fmt::format(" n<={}", i + 1 < orders.size() ? middle(i) : 2 * orders[i]);
      classes.push_back(c);
    }
  };
  if (op == "cholesky") add(op, "cholesky", false);
  if (op == "lu") add(op, "lu", false);
  if (op == "batch") add(op, "cholesky", true), add(op, "lu", true);
  if (op == "solve") add(op, "solve", false), add("solve-batch", "solve", true);
  if (op == "solve" && cuda) add(op, "value", false);
  if (op == "sparse") classes.push_back({op, "sparse", 30000, 1, ""});
  return classes;
}

template <Scalar T>
std::function<double(const std::string&)> timed_calls(Queue& q, const CallClass& c) {
  Calls calls;
  const bool cuda = q.is_cuda(), many = c.count > 1;
  if (c.operation == "cholesky") {
    const auto items = alike_items<T>(q, c.n, c.count, true);
    add_cholesky<T>(calls, q, items);
    if (many && c.n <= 128) add_factor_solve<T>(calls, q, items);
    if (many && c.n >= 32) add_cholesky<T>(calls, q, mixed_items<T>(q, c.n, c.count));
    if (many && cuda && c.n > 160)  // where order_per_item decides
      for (const index_t part : {48, 24, 12})
        add_cholesky<T>(calls, q, alike_items<T>(q, c.n, std::max(c.n / part, index_t(2)), true));
  } else if (c.operation == "lu") {
    add_lu<T>(calls, q, alike_items<T>(q, c.n, c.count, false));
  } else if (c.operation == "solve") {
    const bool small = c.n <= 128 || !cuda;
    add_solves<T>(calls, q, c.n, c.count,
                  many || small ? std::vector<index_t>{1, 8, 64} : std::vector<index_t>{1, 8, 64, 512},
                  !many && c.n <= 4096);
  } else if (c.operation == "value") {
    add_value<T>(calls, c.n);
  } else {
    for (const char* matrix : cuda ? std::vector{"elastic3d:20", "shell2d:100", "poisson3d:30"}
                                   : std::vector{"elastic3d:8", "shell2d:30", "poisson2d:60"})
      add_sparse<T>(calls, q, matrix);
  }
  return Stopwatch(q, std::move(calls));
}

#define TRIFACTOR_TIMED_CALLS(T) \
  template std::function<double(const std::string&)> timed_calls<T>(trifactor::Queue&, const CallClass&);
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_TIMED_CALLS)

}  // namespace program
