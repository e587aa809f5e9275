// SparseCholesky level by level on any engine: the lists in the engine's memory, and the drivers of sparse/numeric.hpp.
#include <api/sparse_numeric.hpp>
#include <core/path.hpp>
#include <sparse/numeric.hpp>
#include <tuning/rows.hpp>

#include <algorithm>

namespace trifactor::api {

namespace {

using core::Real;
using sparse::Plan;

/// Arrays of a queue's memory, copied there once.
class Lists {
 public:
  explicit Lists(std::shared_ptr<detail::QueueState> queue) : queue_(std::move(queue)) {}

  template <class V>
  const V* add(const std::vector<V>& values) {
    Buffer<char> buffer(queue_, index_t(values.size() * sizeof(V)));
    copy(*queue_, values.data(), buffer.data(), values.size() * sizeof(V));
    arrays_.push_back(std::move(buffer));
    return reinterpret_cast<const V*>(arrays_.back().data());
  }

 private:
  const std::shared_ptr<detail::QueueState> queue_;
  std::vector<Buffer<char>> arrays_;
};

template <class... V>
std::size_t bytes_of(const std::vector<V>&... vectors) {
  return ((vectors.size() * sizeof(V)) + ...);
}

template <class T>
class ByLevel final : public SparseNumeric<T> {
 public:
  ByLevel(std::shared_ptr<detail::QueueState> queue, const Plan& plan, const core::SparseTuning& tuning)
      : queue_(std::move(queue)), plan_(plan), tuning_(tuning), levels_(sparse::make_levels(plan, tuning)), lists_(queue_) {
    const auto find = [&]<class Tuning>(Tuning, index_t n, index_t count) {
      return tuning::find<Tuning>(queue_->architectures, core::scalar_name(T{}), n, count, "");
    };
    for (const sparse::Group& group : levels_.groups)
      cholesky_.push_back(find(core::CholeskyTuning{}, group.columns, group.count()));
    data_.solve = find(core::SolveTuning{}, plan.n, 1);

    const auto entries = [](index_t count) { return std::size_t(count) * sizeof(T); };
    const sparse::Levels& l = levels_;
    const std::size_t fronts = l.front.size();
    memory_.factor = entries(plan.factor_entries);
    memory_.updates = entries(l.update_entries);
    memory_.vectors = entries(l.lines());
    memory_.lists = bytes_of(l.columns, l.line_start, l.first, l.factor_at, l.update_at, l.line_front, l.parent_line,
                             l.child_start, l.child_line, l.line, l.permutation, l.entry_start, l.entry_row,
                             l.entry_source, l.below, l.rows, l.update_ld) +
                    fronts * (5 * sizeof(T*) + 3 * sizeof(int));  // pointers to blocks; line_ld, side, info
    memory_.scratch = planned_scratch();
  }

  SparseMemory memory() const override { return memory_; }

  void allocate() override {
    sparse::Levels& l = levels_;
    factor_ = Buffer<T>(queue_, plan_.factor_entries);
    updates_ = Buffer<T>(queue_, l.update_entries);
    info_ = Buffer<int>(queue_, index_t(l.front.size()));
    host_info_.resize(l.front.size());
    core::Fronts& f = data_.fronts;
    f.count = index_t(l.front.size()), f.lines = l.lines(), f.n = plan_.n;
    f.columns = lists_.add(l.columns);
    f.line_start = lists_.add(l.line_start);
    f.first = lists_.add(l.first);
    f.factor_at = lists_.add(l.factor_at);
    f.update_at = lists_.add(l.update_at);
    f.front = lists_.add(l.line_front);
    f.parent_line = lists_.add(l.parent_line);
    f.child_start = lists_.add(l.child_start);
    f.child_line = lists_.add(l.child_line);
    f.line = lists_.add(l.line);
    f.permutation = lists_.add(l.permutation);
    f.entry_start = lists_.add(l.entry_start);
    f.entry_row = lists_.add(l.entry_row);
    f.entry_source = lists_.add(l.entry_source);
    data_.columns = f.columns;
    data_.below = lists_.add(l.below);
    data_.rows = lists_.add(l.rows);
    data_.update_ld = lists_.add(l.update_ld);
    data_.line_ld = lists_.add(std::vector<int>(l.front.size(), int(std::max<index_t>(1, l.lines()))));
    data_.side = lists_.add(std::vector<int>(l.front.size(), int(tuning_.at_once)));
    data_.factor = factor_.data(), data_.updates = updates_.data(), data_.info = info_.data();
    data_.F11 = lists_.add(blocks(factor_.data(), l.factor_at, false));
    data_.F21 = lists_.add(blocks(factor_.data(), l.factor_at, true));
    data_.U = lists_.add(blocks(updates_.data(), l.update_at, false));
    Z1_ = Buffer<T*>(queue_, index_t(l.front.size()));
    Z2_ = Buffer<T*>(queue_, index_t(l.front.size()));
    data_.Z1 = Z1_.data(), data_.Z2 = Z2_.data();
    make_room(1);
    on_engine(*queue_, [&](auto& e) { e.arena().reserve(memory_.scratch); });
    // The host needs these no more.
    for (auto* list : {&l.line_front, &l.parent_line, &l.child_start, &l.child_line, &l.line, &l.permutation, &l.entry_row})
      std::vector<int>().swap(*list);
    for (auto* list : {&l.entry_start, &l.entry_source}) std::vector<index_t>().swap(*list);
  }

  index_t factor(const T* values, Real<T> shift) override {
    on_engine(*queue_, [&](auto& e) { sparse::factor(e, data_, values, shift); });
    core::set_path("levels");
    copy(*queue_, info_.data(), host_info_.data(), host_info_.size() * sizeof(int));
    // A front that failed may make those above it fail, which come after it in the plan.
    index_t failed = -1;
    for (std::size_t t = 0; t < host_info_.size(); ++t)
      if (const index_t column = levels_.first[t] + host_info_[t] - 1; host_info_[t] != 0 && (failed < 0 || column < failed))
        failed = column;
    return failed;
  }

  void solve(MatrixView<T> B, SparsePart part) override {
    for (index_t done = 0; done < B.cols; done += tuning_.at_once) {
      const auto some = B.block(0, done, plan_.n, std::min(tuning_.at_once, B.cols - done));
      make_room(some.cols);
      on_engine(*queue_, [&](auto& e) { solve(e, core::one_matrix(some.data, some.rows, some.cols, some.ld), part); });
    }
  }

  typename SparseNumeric<T>::Refined refine(const T* values, Real<T> shift, MatrixView<T> column) override {
    const index_t n = plan_.n;
    const std::size_t bytes = std::size_t(n) * sizeof(T);
    const core::MatrixRows& A = matrix_rows();
    Buffer<T> r(queue_, n), x(queue_, n), best(queue_, n);
    Buffer<Real<T>> errors(queue_, n);
    std::vector<Real<T>> error(n);
    x.fill_zero();
    copy(*queue_, column.data, r.data(), bytes);
    const auto step = [&] {
      solve({r.data(), n, 1, std::max<index_t>(1, n)}, SparsePart::All);
      on_engine(*queue_, [&](auto& e) {
        e.add(n, static_cast<const T*>(r.data()), x.data());
        e.residual(A, values, shift, static_cast<const T*>(column.data), static_cast<const T*>(x.data()), r.data(), errors.data());
      });
      copy(*queue_, errors.data(), error.data(), error.size() * sizeof(error[0]));
      Real<T> largest = 0;
      for (const Real<T> e : error)
        if (!(e <= largest)) largest = e;  // a NaN stays
      return largest;
    };
    const auto result = refined<T>(step, [&] { copy(*queue_, x.data(), best.data(), bytes); });
    const bool found = result.error < std::numeric_limits<Real<T>>::infinity();
    copy(*queue_, found ? best.data() : x.data(), column.data, bytes);
    return result;
  }

  void diagonal(T* out) override {
    Buffer<T> d(queue_, plan_.n);
    on_engine(*queue_, [&](auto& e) { e.diagonal(data_.fronts, static_cast<const T*>(factor_.data()), d.data()); });
    copy(*queue_, d.data(), out, std::size_t(plan_.n) * sizeof(T));
  }
  void copy_factor(T* out) override {
    copy(*queue_, factor_.data(), out, std::size_t(plan_.factor_entries) * sizeof(T));
  }

 private:
  template <class E>
  void solve(E& e, core::Items<T> B, SparsePart part) {
    const bool all = part == SparsePart::All;
    const index_t k = B.cols;
    e.take_rows(data_.fronts, core::Items<const T>(B), all || part == SparsePart::Permute, data_.Z);
    if (all || part == SparsePart::Lower) sparse::forward(e, data_, k);
    if (all || part == SparsePart::LowerAdjoint) sparse::backward(e, data_, k);
    e.give_rows(data_.fronts, static_cast<const T*>(data_.Z), all || part == SparsePart::PermuteBack, B);
  }

  /// Pointers to a block of each front, the first one or the one below the columns.
  template <class At>
  std::vector<T*> blocks(T* base, const std::vector<At>& at, bool second) const {
    std::vector<T*> pointers(at.size());
    for (std::size_t t = 0; t < pointers.size(); ++t) pointers[t] = base + at[t] + (second ? levels_.columns[t] : 0);
    return pointers;
  }

  /// Room for so many right-hand sides: Z grows, and the pointers into it follow.
  void make_room(index_t columns) {
    if (Z_.size() >= levels_.lines() * columns) return;
    Z_ = Buffer<T>(queue_, levels_.lines() * columns);
    memory_.vectors = std::size_t(Z_.size()) * sizeof(T);
    data_.Z = Z_.data();
    std::vector<int> starts(levels_.line_start.begin(), levels_.line_start.end() - 1);
    const auto first = blocks(Z_.data(), starts, false), second = blocks(Z_.data(), starts, true);
    copy(*queue_, first.data(), Z1_.data(), bytes_of(first));
    copy(*queue_, second.data(), Z2_.data(), bytes_of(second));
  }

  /// The drivers take their scratch memory and do nothing else.
  std::size_t planned_scratch() {
    sparse::LevelData<T> data = data_;
    // Planning reads no memory: any address will do, but none is computed from a null pointer.
    data.factor = data.updates = data.Z = reinterpret_cast<T*>(std::uintptr_t(256));
    return plan(*queue_, [&](auto& e) {
      sparse::factor(e, data, data.factor, Real<T>(0));
      sparse::forward(e, data, 1);
      sparse::backward(e, data, 1);
    });
  }

  const core::MatrixRows& matrix_rows() {
    if (rows_.n == plan_.n) return rows_;
    const sparse::MatrixRowLists A = sparse::rows_of_matrix(plan_);
    core::MatrixRows rows;
    rows.start = lists_.add(A.start), rows.column = lists_.add(A.column), rows.source = lists_.add(A.source);
    memory_.lists += bytes_of(A.start, A.column, A.source);
    rows.n = plan_.n;
    return rows_ = rows;
  }

  const std::shared_ptr<detail::QueueState> queue_;
  const Plan& plan_;
  const core::SparseTuning tuning_;
  sparse::Levels levels_;
  std::vector<core::CholeskyTuning> cholesky_;
  SparseMemory memory_;
  Lists lists_;
  Buffer<T> factor_, updates_, Z_;
  Buffer<T*> Z1_, Z2_;
  Buffer<int> info_;
  std::vector<int> host_info_;
  core::MatrixRows rows_;
  sparse::LevelData<T> data_{levels_, cholesky_, {}, tuning_.at_once};
};

}  // namespace

template <class T>
std::unique_ptr<SparseNumeric<T>> sparse_by_level(std::shared_ptr<detail::QueueState> queue, const Plan& plan,
                                                  const core::SparseTuning& tuning) {
  return std::make_unique<ByLevel<T>>(std::move(queue), plan, tuning);
}

#define TRIFACTOR_INSTANTIATE(T)                                                                               \
  template std::unique_ptr<SparseNumeric<T>> sparse_by_level<T>(std::shared_ptr<detail::QueueState>,           \
                                                                const Plan&, const core::SparseTuning&);
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_INSTANTIATE)

}  // namespace trifactor::api
