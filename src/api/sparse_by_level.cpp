// SparseCholesky level by level on any engine: the lists in the engine's memory, and the drivers of sparse/numeric.hpp.
#include <api/sparse_numeric.hpp>
#include <core/path.hpp>
#include <sparse/numeric.hpp>
#include <tuning/rows.hpp>

#include <algorithm>
#include <cstring>

namespace trifactor::api {

namespace {

using core::Real;
using sparse::Plan;

/// Arrays that are collected on the host and then copied to a queue's memory, all at once.
class Lists {
 public:
  /// Once they are there, `place` points to the copy of the values. Returns where they lie in the list of all.
  template <class V>
  std::size_t add(const V*& place, const std::vector<V>& values) {
    constexpr std::size_t alignment = 256;
    const std::size_t at = staged_.size(), bytes = values.size() * sizeof(V);
    staged_.resize((at + bytes + alignment - 1) / alignment * alignment);
    set(at, values);
    places_.push_back({&place, at});
    place = reinterpret_cast<const V*>(std::uintptr_t(alignment));  // planning reads nothing, but tells null from a list
    return at;
  }
  template <class V>
  void set(std::size_t at, const std::vector<V>& values) {
    if (!values.empty()) std::memcpy(staged_.data() + at, values.data(), values.size() * sizeof(V));
  }
  std::size_t bytes() const { return staged_.size() + std::size_t(buffer_.size()); }

  void upload(const std::shared_ptr<detail::QueueState>& queue) {
    buffer_ = Buffer<char>(queue, index_t(staged_.size()));
    copy(*queue, staged_.data(), buffer_.data(), staged_.size());
    for (const auto& [place, at] : places_) {
      const void* address = buffer_.data() + at;
      std::memcpy(place, &address, sizeof address);  // pointers of any type
    }
    std::vector<char>().swap(staged_);
  }

 private:
  std::vector<char> staged_;
  std::vector<std::pair<void*, std::size_t>> places_;
  Buffer<char> buffer_;
};

template <class T>
class ByLevel final : public SparseNumeric<T> {
 public:
  ByLevel(std::shared_ptr<detail::QueueState> queue, const Plan& plan, const core::SparseTuning& tuning)
      : queue_(std::move(queue)), plan_(plan), tuning_(tuning), levels_(sparse::make_levels(plan, tuning)) {
    const auto find = [&]<class Tuning>(Tuning, index_t n, index_t count) {
      return tuning::find<Tuning>(queue_->architectures, core::scalar_name(T{}), n, count, "");
    };
    for (const sparse::Group& group : levels_.groups)
      cholesky_.push_back(find(core::CholeskyTuning{}, group.columns, group.count()));
    data_.solve = find(core::SolveTuning{}, plan.n, 1);

    collect_lists();
    const auto entries = [](index_t count) { return std::size_t(count) * sizeof(T); };
    memory_.factor = entries(plan.factor_entries);
    memory_.updates = entries(levels_.update_entries);
    memory_.vectors = entries(levels_.lines());
    memory_.lists = lists_.bytes() + levels_.front.size() * (2 * sizeof(T*) + sizeof(int));  // Z1, Z2 and info
    memory_.scratch = planned_scratch();
  }

  SparseMemory memory() const override { return memory_; }

  void allocate() override {
    const index_t fronts = index_t(levels_.front.size());
    factor_ = Buffer<T>(queue_, plan_.factor_entries);
    updates_ = Buffer<T>(queue_, levels_.update_entries);
    info_ = Buffer<int>(queue_, fronts);
    host_info_.resize(levels_.front.size());
    data_.factor = factor_.data(), data_.updates = updates_.data(), data_.info = info_.data();
    lists_.set(F11_at_, blocks(factor_.data(), levels_.factor_at, false));
    lists_.set(F21_at_, blocks(factor_.data(), levels_.factor_at, true));
    lists_.set(U_at_, blocks(updates_.data(), levels_.update_at, false));
    lists_.upload(queue_);
    Z1_ = Buffer<T*>(queue_, fronts);
    Z2_ = Buffer<T*>(queue_, fronts);
    data_.Z1 = Z1_.data(), data_.Z2 = Z2_.data();
    make_room(1);
    on_engine(*queue_, [&](auto& e) { e.arena().reserve(memory_.scratch); });
  }

  index_t factor(const T* values, Real<T> shift) override {
    on_engine(*queue_, [&](auto& e) { sparse::factor(e, data_, values, shift); });
    core::set_path("levels");
    copy(*queue_, info_.data(), host_info_.data(), host_info_.size() * sizeof(int));
    // A front that failed may make those above it fail, which come after it in the plan.
    index_t failed = -1;
    for (std::size_t t = 0; t < host_info_.size(); ++t)
      if (const index_t column = levels_.first[t] + host_info_[t] - 1;
          host_info_[t] != 0 && (failed < 0 || column < failed))
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
        e.residual(A, values, shift, static_cast<const T*>(column.data), static_cast<const T*>(x.data()), r.data(),
                   errors.data());
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

  /// Everything but the pointers to blocks, whose memory is not there yet. The drivers need no more of most lists.
  void collect_lists() {
    sparse::Levels& l = levels_;
    core::Fronts& f = data_.fronts;
    f.count = index_t(l.front.size()), f.lines = l.lines(), f.n = plan_.n;
    lists_.add(f.columns, l.columns);
    lists_.add(f.line_start, l.line_start);
    lists_.add(f.first, l.first);
    lists_.add(f.factor_at, l.factor_at);
    lists_.add(f.update_at, l.update_at);
    const auto move = [&](auto& place, auto& list) {
      lists_.add(place, list);
      std::remove_reference_t<decltype(list)>().swap(list);
    };
    move(f.front, l.line_front);
    move(f.parent_line, l.parent_line);
    move(f.child_start, l.child_start);
    move(f.child_line, l.child_line);
    move(f.line, l.line);
    move(f.permutation, l.permutation);
    move(f.entry_start, l.entry_start);
    move(f.entry_row, l.entry_row);
    move(f.entry_source, l.entry_source);
    move(data_.below, l.below);
    move(data_.rows, l.rows);
    move(data_.update_ld, l.update_ld);
    lists_.add(data_.line_ld, std::vector<int>(l.front.size(), int(std::max<index_t>(1, l.lines()))));
    lists_.add(data_.side, std::vector<int>(l.front.size(), int(tuning_.at_once)));
    const std::vector<T*> later(l.front.size());
    F11_at_ = lists_.add(data_.F11, later);
    F21_at_ = lists_.add(data_.F21, later);
    U_at_ = lists_.add(data_.U, later);
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
    copy(*queue_, first.data(), Z1_.data(), first.size() * sizeof(T*));
    copy(*queue_, second.data(), Z2_.data(), second.size() * sizeof(T*));
  }

  /// The drivers take their scratch memory and do nothing else.
  std::size_t planned_scratch() {
    sparse::LevelData<T> data = data_;
    // Planning reads no memory: any address will do, but none is computed from a null pointer.
    data.factor = data.updates = data.Z = reinterpret_cast<T*>(std::uintptr_t(256));
    data.Z1 = data.Z2 = reinterpret_cast<T**>(std::uintptr_t(256));
    return plan(*queue_, [&](auto& e) {
      sparse::factor(e, data, data.factor, Real<T>(0));
      sparse::forward(e, data, 1);
      sparse::backward(e, data, 1);
    });
  }

  const core::MatrixRows& matrix_rows() {
    if (rows_.n == plan_.n) return rows_;
    const sparse::MatrixRowLists A = sparse::rows_of_matrix(plan_);
    row_lists_ = Lists();
    row_lists_.add(rows_.start, A.start);
    row_lists_.add(rows_.column, A.column);
    row_lists_.add(rows_.source, A.source);
    row_lists_.upload(queue_);
    memory_.lists += row_lists_.bytes();
    rows_.n = plan_.n;
    return rows_;
  }

  const std::shared_ptr<detail::QueueState> queue_;
  const Plan& plan_;
  const core::SparseTuning tuning_;
  sparse::Levels levels_;
  std::vector<core::CholeskyTuning> cholesky_;
  SparseMemory memory_;
  Lists lists_, row_lists_;
  std::size_t F11_at_ = 0, F21_at_ = 0, U_at_ = 0;
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

#define TRIFACTOR_INSTANTIATE(T)                                                                                  \
  template std::unique_ptr<SparseNumeric<T>> sparse_by_level<T>(std::shared_ptr<detail::QueueState>, const Plan&, \
                                                                const core::SparseTuning&);
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_INSTANTIATE)
#undef TRIFACTOR_INSTANTIATE

}  // namespace trifactor::api
