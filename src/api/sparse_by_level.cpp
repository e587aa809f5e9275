// SparseCholesky level by level on any engine: its memory, and the drivers of sparse/numeric.hpp.
#include <api/factor_stream.hpp>
#include <api/level_plan.hpp>
#include <core/path.hpp>

#include <algorithm>
#include <atomic>

namespace trifactor::api {

namespace {

using core::Real;
using sparse::Plan;

template <class T>
class ByLevel final : public SparseNumeric<T>, LevelPlan<T> {
  using Base = LevelPlan<T>;
  using Base::queue_, Base::given_, Base::split_, Base::plan_, Base::levels_, Base::data_, Base::lists_;
  using Base::solve_lists_, Base::memory_, Base::ring_, Base::at_once_, Base::streams, Base::by_level, Base::vector_entries, Base::lists_of_branch;
  using Base::host_part_;
  template <class E>
  static constexpr bool one_launch = Base::template one_launch<E>;

 public:
  ByLevel(const char* name, std::shared_ptr<detail::QueueState> queue, const Plan& plan,
          const core::SparseTuning& tuning, const SparseOptions& options)
      : Base(name, std::move(queue), plan, tuning, options) {}

  SparseMemory memory() const override { return memory_; }

  void allocate() override {
    const index_t fronts = index_t(levels_.front.size());
    factor_ = Buffer<T>(queue_, index_t(memory_.factor / sizeof(T)));
    updates_ = Buffer<T>(queue_, levels_.cut.updates.entries);
    info_ = Buffer<int>(queue_, fronts);
    failed_ = Buffer<int>(queue_, plan_.items);
    failed_.fill_zero();
    inexact_ = Buffer<int>(queue_, solve_lists_.backward_strips);
    data_.factor = factor_.data(), data_.updates = updates_.data(), data_.info = info_.data();
    if (streams())
      on_engine(*queue_, [&](auto& e) {
        auto stream = std::make_shared<Stream<decltype(e)>>(e, levels_, ring_, factor_.data(), updates_.data());
        data_.offloaded = stream->offloaded();
        stream_ = std::move(stream);
      });
    if (host_part_) {
      host_part_->allocate();
      on_engine(*queue_, [&](auto& e) {
        T* const stored = streams() ? stream_of(e).stored() : nullptr;
        T* const offloaded = streams() ? stream_of(e).offloaded() : nullptr;
        auto lane = std::make_shared<Host<decltype(e)>>(e, *host_part_, Base::value_count(), stored, offloaded,
                                                        Base::offloaded_entries());
        data_.offloaded = lane->offloaded();
        host_lane_ = std::move(lane);
      });
    }
    lists_.set(Base::F11_at_, factor_blocks(false));
    lists_.set(Base::F21_at_, factor_blocks(true));
    lists_.set(Base::U_at_, blocks(updates_.data(), levels_.update_at, false));
    lists_.upload(queue_);
    if (by_level()) {
      Z1_ = Buffer<T*>(queue_, fronts);
      Z2_ = Buffer<T*>(queue_, fronts);
      data_.Z1 = Z1_.data(), data_.Z2 = Z2_.data();
    }
    make_room(Base::columns_at_first());
    on_engine(*queue_, [&](auto& e) { e.arena().reserve(memory_.scratch); });
  }

  void factor(const T* values, Real<T> shift, int* info) override {
    on_engine(*queue_, [&](auto& e) {
      if (streams()) {
        auto& stream = stream_of(e);
        stream.factor([&](index_t b) {
          if (b == 0 && host_part_) host_lane(e).start(values, shift, nullptr, info_.data());
          if (levels_.cut.on_host(b))
            load_from_host(e, b);
          else
            sparse::factor(e, at_branch(stream.base(b)), levels_.branches[b], values, shift);
          if constexpr (one_launch<decltype(e)>)
            e.invert_fronts(this->lists_of_branch(b), stream.base(b), inexact_.data());
        });
        e.first_failure(data_.fronts, static_cast<const int*>(info_.data()), failed_.data(), info);
      } else {
        const index_t branches = index_t(levels_.branches.size());
        if (host_part_) {
          host_lane(e).start(values, shift, factor_.data(), info_.data());
          const auto beside = [&](std::uint64_t, const T* from, Real<T> by) {
            for (index_t b = 0; b < host_part_->first_branch(); ++b)
              sparse::factor(e, data_, levels_.branches[b], from, by);
          };
          e.run_as_graph(beside, number_, values, shift);
          host_lane(e).join();
        }
        const auto run = [&](std::uint64_t, const T* from, Real<T> by, int* out) {
          for (index_t b = host_part_ ? host_part_->last_branch() + 1 : 0; b < branches; ++b)
            sparse::factor(e, data_, levels_.branches[b], from, by);
          if constexpr (one_launch<decltype(e)>) e.invert_fronts(this->solve_lists_, factor_.data(), inexact_.data());
          e.first_failure(data_.fronts, static_cast<const int*>(info_.data()), failed_.data(), out);
        };
        e.run_as_graph(run, number_, values, shift, info);
      }
    });
    core::set_path(streams() ? "streamed" : "levels", host_part_ ? " hybrid" : "");
  }
  void failed(int* items) override {
    if (streams()) factor_on_host();  // copies are complete, too
    copy(*queue_, failed_.data(), items, std::size_t(failed_.size()) * sizeof(int));
    if (host_part_) on_engine(*queue_, [&](auto& e) { host_lane(e).check(); });
  }

  void solve(core::Items<T> B, SparsePart part) override {
    for (index_t done = 0; done < B.cols; done += at_once_) {
      const auto some = B.block(0, done, B.rows, std::min(at_once_, B.cols - done));
      make_room(some.cols);
      on_engine(*queue_, [&](auto& e) { solve(e, some, part); });
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
      solve(core::one_matrix(r.data(), n, 1, std::max<index_t>(1, n)), SparsePart::All);
      on_engine(*queue_, [&](auto& e) {
        e.add(n, static_cast<const T*>(r.data()), x.data());
        e.residual(A, values, shift, static_cast<const T*>(column.data), static_cast<const T*>(x.data()), r.data(),
                   errors.data());
      });
      copy(*queue_, errors.data(), error.data(), error.size() * sizeof(error[0]));
      Real<T> largest = 0;
      for (const Real<T> e : error) largest = core::max_or_nan(largest, e);
      return largest;
    };
    const auto result = refined<T>(step, [&] { copy(*queue_, x.data(), best.data(), bytes); });
    const bool found = result.error < std::numeric_limits<Real<T>>::infinity();
    copy(*queue_, found ? best.data() : x.data(), column.data, bytes);
    return result;
  }

  void diagonal(T* out) override {
    if (streams()) {
      const T* L = factor_on_host();
      return for_fronts(
          [&](index_t s, const T* front, const core::FrontShape& shape) {
            for (index_t c = 0; c < plan_.col_count(s); ++c) out[plan_.first[s] + c] = front[c * (shape.ld + 1)];
          },
          L);
    }
    Buffer<T> d(queue_, plan_.n);
    on_engine(*queue_, [&](auto& e) { e.diagonal(data_.fronts, static_cast<const T*>(factor_.data()), d.data()); });
    copy(*queue_, d.data(), out, std::size_t(plan_.n) * sizeof(T));
  }
  void copy_factor(T* out) override {
    std::vector<T> copied(streams() ? 0 : levels_.factor_entries);
    if (!streams()) copy(*queue_, factor_.data(), copied.data(), copied.size() * sizeof(T));
    for_fronts(
        [&](index_t s, const T* front, const core::FrontShape& shape) {
          const index_t m = plan_.row_count(s), w = plan_.col_count(s);
          const index_t whole = split_ ? split_->whole[s] : s, above = plan_.first[s] - given_.first[whole];
          const index_t ld = given_.row_count(whole);
          for (index_t c = 0; c < w; ++c) {
            T* to = out + given_.factor_start[whole] + (above + c) * ld + above;
            std::copy_n(front + c * shape.ld, w, to);
            std::copy_n(front + c * shape.ld + w + shape.gap, m - w, to + w);
          }
        },
        streams() ? factor_on_host() : copied.data());
  }

 private:
  template <class E>
  using Stream = FactorStream<T, std::remove_reference_t<E>>;
  template <class E>
  auto& stream_of(E&) {
    return *static_cast<Stream<E>*>(stream_.get());
  }
  template <class E>
  using Host = HostLane<T, std::remove_reference_t<E>>;
  template <class E>
  auto& host_lane(E&) {
    return *static_cast<Host<E>*>(host_lane_.get());
  }
  /// A branch that the host has factored, to the ring.
  template <class E>
  void load_from_host(E& e, index_t b) {
    host_lane(e).join();
    const index_t begin = levels_.branches[b].factor_begin, entries = levels_.branches[b].factor_end - begin;
    enqueue_copy(*queue_, stream_of(e).stored() + begin, stream_of(e).base(b) + begin,
                 std::size_t(entries) * sizeof(T));
  }
  const T* factor_on_host() {
    return on_engine(*queue_, [&](auto& e) { return stream_of(e).on_host(); });
  }

  /// f(front of the plan, where it is stored, how) for a factor in the host's memory.
  template <class F>
  void for_fronts(F f, const T* factor) const {
    for (std::size_t t = 0; t < levels_.front.size(); ++t) {
      const index_t s = levels_.front[t];
      f(s, factor + levels_.factor_at[t], core::FrontShape(plan_.row_count(s), plan_.col_count(s)));
    }
  }

  sparse::LevelData<T> at_branch(T* base) const {
    sparse::LevelData<T> data = data_;
    data.factor = base;
    return data;
  }

  template <class E>
  void solve(E& e, core::Items<T> B, SparsePart part) {
    const bool all = part == SparsePart::All;
    const bool forward = all || part == SparsePart::Lower, backward = all || part == SparsePart::LowerAdjoint;
    const index_t k = B.cols;
    if constexpr (one_launch<E>) {
      const auto with = [&](const core::SolveLists& lists, const T* factor, bool ahead, bool back, bool first) {
        e.solve_fronts(data_.fronts, lists, factor, static_cast<const int*>(inexact_.data()),
                       static_cast<const int*>(failed_.data()), B,
                       core::SolveSteps{ahead, back, forward, backward, first}, Z_.data());
      };
      if (!streams() && (forward || backward)) return with(solve_lists_, factor_.data(), forward, backward, true);
      const auto pass = [&](bool ahead) {
        auto& stream = stream_of(e);
        bool first = ahead || !forward;
        stream.pass(ahead, [&](index_t b) {
          with(lists_of_branch(b), stream.base(b), ahead, !ahead, std::exchange(first, false));
        });
      };
      if (forward) pass(true);
      if (backward) pass(false);
      if (forward || backward) return;
    }
    e.take_rows(data_.fronts, core::Items<const T>(B), all || part == SparsePart::Permute, data_.Z);
    if constexpr (!one_launch<E>) {
      if (failed_.size() == 1 && *failed_.data() != 0) return;  // memory of the host
      const auto pass = [&](bool ahead, auto work) {  // work(data, branch)
        if (streams()) {
          auto& stream = stream_of(e);
          return stream.pass(ahead, [&](index_t b) { work(at_branch(stream.base(b)), levels_.branches[b]); });
        }
        const index_t count = index_t(levels_.branches.size());
        for (index_t b = 0; b < count; ++b) work(data_, levels_.branches[ahead ? b : count - 1 - b]);
      };
      if (forward) pass(true, [&](const auto& data, const auto& branch) { sparse::forward(e, data, branch, k); });
      if (backward) pass(false, [&](const auto& data, const auto& branch) { sparse::backward(e, data, branch, k); });
    }
    e.give_rows(data_.fronts, static_cast<const T*>(data_.Z), all || part == SparsePart::PermuteBack,
                static_cast<const int*>(failed_.data()), B);
  }

  /// Pointers to a block of each front, the first one or the one below the columns.
  template <class At>
  std::vector<T*> blocks(T* base, const std::vector<At>& at, bool second) const {
    std::vector<T*> pointers(at.size());
    for (std::size_t t = 0; t < pointers.size(); ++t) pointers[t] = base + at[t] + (second ? levels_.columns[t] : 0);
    return pointers;
  }

  /// The same of the factor, wherever its branches lie.
  std::vector<T*> factor_blocks(bool second) {
    std::vector<T*> pointers(levels_.front.size());
    on_engine(*queue_, [&](auto& e) {
      for (index_t b = 0; b < index_t(levels_.branches.size()); ++b) {
        T* base = streams() ? stream_of(e).base(b) : factor_.data();
        const sparse::BranchLevels& branch = levels_.branches[b];
        const index_t begin = levels_.groups[levels_.levels[branch.begin].begin].begin;
        const index_t end = levels_.groups[levels_.levels[branch.end - 1].end - 1].end;
        for (index_t t = begin; t < end; ++t) {
          const index_t w = levels_.columns[t], below = w + core::FrontShape(plan_.row_count(levels_.front[t]), w).gap;
          pointers[t] = base + levels_.factor_at[t] + (second ? below : 0);
        }
      }
    });
    return pointers;
  }

  /// Room for so many right-hand sides: Z grows, and the pointers into it follow. All or nothing where memory runs out.
  void make_room(index_t columns) {
    const index_t entries = vector_entries(columns);
    if (Z_.size() >= entries) return;
    Buffer<T> Z(queue_, entries);
    if (by_level()) {
      std::vector<int> starts(levels_.line_start.begin(), levels_.line_start.end() - 1);
      const auto first = blocks(Z.data(), starts, false), second = blocks(Z.data(), starts, true);
      copy(*queue_, first.data(), Z1_.data(), first.size() * sizeof(T*));
      copy(*queue_, second.data(), Z2_.data(), second.size() * sizeof(T*));
    }
    Z_ = std::move(Z);
    memory_.vectors = std::size_t(Z_.size()) * sizeof(T);
    data_.Z = Z_.data();
  }

  const core::MatrixRows& matrix_rows() {
    if (rows_.n == plan_.n) return rows_;
    const sparse::MatrixRowLists A = sparse::rows_of_matrix(given_);
    row_lists_.clear();
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

  const std::uint64_t number_ = next_number();
  std::shared_ptr<void> stream_;     // Stream of the queue's engine
  std::shared_ptr<void> host_lane_;  // Host of the queue's engine; its end waits for the host
  Buffer<T> factor_, updates_, Z_;
  Buffer<T*> Z1_, Z2_;
  Buffer<int> info_, inexact_, failed_;  // failed_: of each item, as failed() tells
  UploadedLists row_lists_;
  core::MatrixRows rows_;
};

}  // namespace

template <class T>
std::unique_ptr<SparseNumeric<T>> sparse_by_level(const char* name, std::shared_ptr<detail::QueueState> queue,
                                                  const Plan& plan, const core::SparseTuning& tuning,
                                                  const SparseOptions& options) {
  return std::make_unique<ByLevel<T>>(name, std::move(queue), plan, tuning, options);
}

#define TRIFACTOR_INSTANTIATE(T)                                                                                   \
  template std::unique_ptr<SparseNumeric<T>> sparse_by_level<T>(const char*, std::shared_ptr<detail::QueueState>, \
                                                                const Plan&, const core::SparseTuning&,           \
                                                                const SparseOptions&);
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_INSTANTIATE)
#undef TRIFACTOR_INSTANTIATE

}  // namespace trifactor::api
