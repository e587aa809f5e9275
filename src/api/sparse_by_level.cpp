// SparseCholesky level by level on any engine: the lists in the engine's memory, and the drivers of sparse/numeric.hpp.
#include <api/sparse_numeric.hpp>
#include <core/path.hpp>
#include <sparse/numeric.hpp>
#include <sparse/solve_lists.hpp>
#include <tuning/rows.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>

namespace trifactor::api {

namespace {

using core::Real;
using sparse::Plan;

/// Arrays of the host that are copied to a queue's memory, into one buffer.
class Lists {
 public:
  /// Once they are there, `place` points to the copy of the values. Returns the number of the list.
  template <class V, class A>
  std::size_t add(const V*& place, std::vector<V, A> values) {
    const std::size_t size = values.size() * sizeof(V);
    const auto kept = std::make_shared<std::vector<V, A>>(std::move(values));
    lists_.push_back({&place, bytes_, size, kept->data(), kept});
    bytes_ += (size + alignment - 1) / alignment * alignment;
    place = reinterpret_cast<const V*>(std::uintptr_t(alignment));  // planning reads nothing, but tells null from a list
    return lists_.size() - 1;
  }
  /// Other values for a list of that size.
  template <class V>
  void set(std::size_t number, std::vector<V> values) {
    const auto kept = std::make_shared<std::vector<V>>(std::move(values));
    lists_[number].data = kept->data(), lists_[number].keeper = kept;
  }
  std::size_t bytes() const { return bytes_; }

  void upload(const std::shared_ptr<detail::QueueState>& queue) {
    buffer_ = Buffer<char>(queue, index_t(bytes_));
    for (const List& list : lists_) {
      char* const address = buffer_.data() + list.at;
      if (list.size > 0) copy(*queue, list.data, address, list.size);
      std::memcpy(list.place, &address, sizeof address);  // pointers of any type
    }
    lists_.clear();
  }

 private:
  static constexpr std::size_t alignment = 256;
  struct List {
    void* place;
    std::size_t at, size;
    const void* data;
    std::shared_ptr<void> keeper;
  };
  std::vector<List> lists_;
  std::size_t bytes_ = 0;
  Buffer<char> buffer_;
};

template <class T>
class ByLevel final : public SparseNumeric<T> {
 public:
  ByLevel(std::shared_ptr<detail::QueueState> queue, const Plan& plan, const core::SparseTuning& tuning)
      : queue_(std::move(queue)), plan_(plan), tuning_(tuning), levels_(sparse::make_levels(plan, tuning, small_fronts(), queue_->host.threads())) {
    const auto find = [&]<class Tuning>(Tuning, index_t n, index_t count) {
      return tuning::find<Tuning>(queue_->machine(), core::scalar_name(T{}), n, count, "");
    };
    for (const sparse::Group& group : levels_.groups)
      cholesky_.push_back(find(core::CholeskyTuning{}, group.columns, group.count()));
    data_.solve = find(core::SolveTuning{}, plan.n, 1);

    collect_solve_lists();
    collect_lists();
    const auto entries = [](index_t count) { return std::size_t(count) * sizeof(T); };
    memory_.factor = entries(plan.factor_entries);
    memory_.updates = entries(levels_.update_entries);
    memory_.vectors = entries(vector_entries(1));
    memory_.lists = lists_.bytes() + levels_.front.size() * (2 * sizeof(T*) + sizeof(int)) +  // Z1, Z2 and info
                    std::size_t(solve_lists_.backward_strips) * sizeof(int);                  // inexact
    memory_.scratch = planned_scratch();
  }

  SparseMemory memory() const override { return memory_; }

  void allocate() override {
    const index_t fronts = index_t(levels_.front.size());
    factor_ = Buffer<T>(queue_, plan_.factor_entries);
    updates_ = Buffer<T>(queue_, levels_.update_entries);
    info_ = Buffer<int>(queue_, fronts);
    inexact_ = Buffer<int>(queue_, solve_lists_.backward_strips);
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
    on_engine(*queue_, [&](auto& e) {
      const auto run = [&](std::uint64_t, const T* from, Real<T> by) {
        sparse::factor(e, data_, from, by);
        if constexpr (one_launch<decltype(e)>) e.invert_fronts(solve_lists_, factor_.data(), inexact_.data());
      };
      e.run_as_graph(run, number_, values, shift);
    });
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
    const bool forward = all || part == SparsePart::Lower, backward = all || part == SparsePart::LowerAdjoint;
    const index_t k = B.cols;
    if constexpr (one_launch<E>) {
      if (forward || backward)
        return e.solve_fronts(data_.fronts, solve_lists_, static_cast<const T*>(factor_.data()),
                              static_cast<const int*>(inexact_.data()), B, forward, backward, Z_.data());
    }
    e.take_rows(data_.fronts, core::Items<const T>(B), all || part == SparsePart::Permute, data_.Z);
    if (forward) sparse::forward(e, data_, k);
    if (backward) sparse::backward(e, data_, k);
    e.give_rows(data_.fronts, static_cast<const T*>(data_.Z), all || part == SparsePart::PermuteBack, B);
  }

  template <class E>
  static constexpr bool one_launch = core::SolvesFrontsFor<std::remove_reference_t<E>, T>;

  core::FrontLimits small_fronts() {
    return on_engine(*queue_, [](auto& e) {
      if constexpr (core::FactorsSmallFrontsFor<std::remove_reference_t<decltype(e)>, T>)
        return e.template small_front_limits<T>();
      else
        return core::FrontLimits();
    });
  }

  void collect_solve_lists() {
    on_engine(*queue_, [&](auto& e) {
      if constexpr (one_launch<decltype(e)>) {
        const auto limits = e.template solve_limits<T>();
        sparse::SolveLists l = sparse::make_solve_lists(plan_, levels_, limits);
        core::SolveLists& to = solve_lists_;
        to.subtree_groups = int(l.subtree_start.size()) - 1;
        to.forward_strips = int(l.forward.size()), to.backward_strips = int(l.backward.size());
        lists_.add(to.subtree_start, std::move(l.subtree_start));
        lists_.add(to.subtree_fronts, std::move(l.subtree_fronts));
        lists_.add(to.forward, std::move(l.forward));
        lists_.add(to.backward, std::move(l.backward));
      }
    });
  }
  /// Of Z, for so many right-hand sides.
  index_t vector_entries(index_t columns) {
    return on_engine(*queue_, [&](auto& e) {
      if constexpr (one_launch<decltype(e)>) {
        core::Fronts f;
        f.n = plan_.n, f.lines = levels_.lines();
        return e.template solve_vector_entries<T>(f, columns);
      } else {
        return levels_.lines() * columns;
      }
    });
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
    const auto move = [&](auto& place, auto& list) { lists_.add(place, std::move(list)); };
    move(f.front, l.line_front);
    move(f.parent_line, l.parent_line);
    move(f.child_start, l.child_start);
    move(f.child_line, l.child_line);
    move(f.column, l.line_column);
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
    const index_t entries = vector_entries(columns);
    if (Z_.size() >= entries) return;
    Z_ = Buffer<T>(queue_, entries);
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
      if constexpr (one_launch<decltype(e)>) return;
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

  /// Tells objects apart, also those that lie where another one was.
  static std::uint64_t next_number() {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
  }

  const std::shared_ptr<detail::QueueState> queue_;
  const std::uint64_t number_ = next_number();
  const Plan& plan_;
  const core::SparseTuning tuning_;
  sparse::Levels levels_;
  std::vector<core::CholeskyTuning> cholesky_;
  SparseMemory memory_;
  Lists lists_, row_lists_;
  std::size_t F11_at_ = 0, F21_at_ = 0, U_at_ = 0;
  Buffer<T> factor_, updates_, Z_;
  Buffer<T*> Z1_, Z2_;
  Buffer<int> info_, inexact_;
  core::SolveLists solve_lists_;
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
