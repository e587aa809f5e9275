// Plans of sparse factorizations.
#include <c/plan.hpp>

using namespace trifactor::c;
using trifactor::SparsePlan;

namespace trifactor::c {
namespace {

template <class I>
Pattern<I> pattern_of(const char* call, const trifactor_pattern& p) {
  check_word(call, "compressed", p.compressed, 2, "TRIFACTOR_COLUMNS or TRIFACTOR_ROWS");
  check_word(call, "stored", p.stored, 3, "TRIFACTOR_STORED_LOWER, TRIFACTOR_STORED_UPPER or TRIFACTOR_STORED_FULL");
  return {.rows = p.rows,
          .cols = p.cols,
          .start = static_cast<const I*>(p.start),
          .index = static_cast<const I*>(p.index),
          .compressed = Compressed(p.compressed),
          .stored = Stored(p.stored),
          .sorted = p.sorted != 0};
}

/// f(pattern) for the type of its indices.
template <class F>
void with_pattern(const char* call, const trifactor_pattern* given, F&& f) {
  const trifactor_pattern& p = need(call, "pattern", given);
  if (p.index_bits == 32) return f(pattern_of<std::int32_t>(call, p));
  if (p.index_bits == 64) return f(pattern_of<std::int64_t>(call, p));
  fail(call, "index_bits = " + std::to_string(p.index_bits) + " must be 32 or 64");
}

std::vector<index_t> permutation_of(const char* call, const trifactor_analyze_options& o) {
  if (o.permutation_size < 0)
    fail(call, "permutation_size = " + std::to_string(o.permutation_size) + " must not be negative");
  if (o.permutation_size > 0) need(call, "permutation", o.permutation);
  return {o.permutation, o.permutation + o.permutation_size};
}

LuOrdering lu_ordering(const char* call, trifactor_ordering ordering) {
  switch (ordering) {
    case TRIFACTOR_ORDERING_AUTO:
    case TRIFACTOR_ORDERING_COLAMD:
      return LuOrdering::Colamd;
    case TRIFACTOR_ORDERING_AMD:
      return LuOrdering::Amd;
    case TRIFACTOR_ORDERING_NATURAL:
      return LuOrdering::Natural;
    case TRIFACTOR_ORDERING_GIVEN:
      return LuOrdering::Given;
    default:
      fail(call, "ordering = " + std::to_string(ordering) + " must be AUTO, COLAMD, AMD, NATURAL or GIVEN");
  }
}
trifactor_ordering from_lu_ordering(LuOrdering ordering) {
  switch (ordering) {
    case LuOrdering::Colamd:
      return TRIFACTOR_ORDERING_COLAMD;
    case LuOrdering::Amd:
      return TRIFACTOR_ORDERING_AMD;
    case LuOrdering::Natural:
      return TRIFACTOR_ORDERING_NATURAL;
    default:
      return TRIFACTOR_ORDERING_GIVEN;
  }
}
static_assert(int(Ordering::Metis) == TRIFACTOR_ORDERING_METIS && int(Ordering::Amd) == TRIFACTOR_ORDERING_AMD &&
              int(Ordering::Natural) == TRIFACTOR_ORDERING_NATURAL && int(Ordering::Given) == TRIFACTOR_ORDERING_GIVEN);

/// Writes the first `room` entries of a list as `convert` makes them, and how many there are.
template <class From, class To, class Convert>
void copy_list(const char* call, const std::vector<From>& list, To* target, int64_t room, int64_t* count,
               Convert convert) {
  if (room < 0) fail(call, "room = " + std::to_string(room) + " must not be negative");
  if (room > 0) need(call, "the list", target);
  need(call, "count", count) = int64_t(list.size());
  for (std::size_t i = 0; i < list.size() && i < std::size_t(room); ++i) target[i] = convert(list[i]);
}
trifactor_step step_of(const SparsePlan::Step& step) {
  trifactor_step s{};
  copy_text(s.name, step.name);
  s.seconds = step.seconds;
  return s;
}

}  // namespace
}  // namespace trifactor::c

trifactor_status trifactor_analyze(const trifactor_pattern* pattern, const trifactor_analyze_options* given,
                                   trifactor_plan** plan) {
  return guard([&] {
    const char* call = "trifactor_analyze";
    need(call, "the place for the plan", plan) = nullptr;
    const auto o = options_of(call, given);
    check_word(call, "ordering", o.ordering, 5, "AUTO, METIS, AMD, NATURAL or GIVEN");
    const trifactor::AnalyzeOptions options{
        .ordering = trifactor::Ordering(o.ordering),
        .permutation = permutation_of(call, o),
        .expected_factorizations = o.expected_factorizations == 0 ? 1 : o.expected_factorizations,
        .duplicates = o.duplicates != 0,
        .tuning = string_of(o.tuning)};
    with_pattern(call, pattern, [&](const auto& p) { *plan = new trifactor_plan{trifactor::analyze(p, options)}; });
  });
}
trifactor_status trifactor_analyze_lu(const trifactor_pattern* pattern, const trifactor_analyze_options* given,
                                      trifactor_lu_plan** plan) {
  return guard([&] {
    const char* call = "trifactor_analyze_lu";
    need(call, "the place for the plan", plan) = nullptr;
    const auto o = options_of(call, given);
    const trifactor::AnalyzeLuOptions options{.ordering = lu_ordering(call, o.ordering),
                                              .permutation = permutation_of(call, o),
                                              .duplicates = o.duplicates != 0};
    with_pattern(call, pattern,
                 [&](const auto& p) { *plan = new trifactor_lu_plan{trifactor::analyze_lu(p, options)}; });
  });
}
void trifactor_plan_destroy(trifactor_plan* plan) { delete plan; }
void trifactor_lu_plan_destroy(trifactor_lu_plan* plan) { delete plan; }

trifactor_status trifactor_plan_report(const trifactor_plan* handle, trifactor_plan_info* info) {
  return guard([&] {
    const char* call = "trifactor_plan_report";
    const SparsePlan& plan = *need(call, "plan", handle).plan;
    trifactor_plan_info found{};
    found.n = plan.n(), found.entries = plan.entries(), found.ordering = int(plan.ordering());
    found.plan_bytes = plan.plan_bytes(), found.factor_nonzeros = plan.factor_nonzeros();
    found.fronts = plan.fronts(), found.levels = plan.levels();
    found.flops = plan.flops(), found.front_flops = plan.front_flops();
    found.factor_entries = plan.factor_entries(), found.stack_entries = plan.stack_entries();
    report(call, "the report", info, found);
  });
}
trifactor_status trifactor_lu_plan_report(const trifactor_lu_plan* handle, trifactor_plan_info* info) {
  return guard([&] {
    const char* call = "trifactor_lu_plan_report";
    const trifactor::SparseLuPlan& plan = *need(call, "plan", handle).plan;
    trifactor_plan_info found{};
    found.n = plan.n(), found.entries = plan.entries(), found.ordering = from_lu_ordering(plan.ordering());
    found.plan_bytes = plan.plan_bytes();
    report(call, "the report", info, found);
  });
}
const int64_t* trifactor_plan_permutation(const trifactor_plan* plan) {
  return plan ? plan->plan->permutation().data() : nullptr;
}
const int64_t* trifactor_lu_plan_permutation(const trifactor_lu_plan* plan) {
  return plan ? plan->plan->column_permutation().data() : nullptr;
}
const char* trifactor_plan_text(const trifactor_plan* plan) {
  thread_local std::string room;
  return text_of(room, [&] { return need("trifactor_plan_text", "plan", plan).plan->text(); });
}
const char* trifactor_lu_plan_text(const trifactor_lu_plan* plan) {
  thread_local std::string room;
  return text_of(room, [&] { return need("trifactor_lu_plan_text", "plan", plan).plan->text(); });
}
const char* trifactor_plan_note(const trifactor_plan* plan) {
  thread_local std::string room;
  return text_of(room, [&] { return need("trifactor_plan_note", "plan", plan).plan->note(); });
}

trifactor_status trifactor_plan_front(const trifactor_plan* handle, int64_t s, trifactor_front* front) {
  return guard([&] {
    const char* call = "trifactor_plan_front";
    const SparsePlan& plan = *need(call, "plan", handle).plan;
    if (s < 0 || s >= plan.fronts())
      fail(call, "s = " + std::to_string(s) + " must be from 0 to " + std::to_string(plan.fronts() - 1));
    const SparsePlan::Front f = plan.front(s);
    need(call, "front", front) = {f.parent, f.level, f.columns, f.rows, f.flops};
  });
}
trifactor_status trifactor_plan_levels(const trifactor_plan* plan, trifactor_level* levels, int64_t room,
                                       int64_t* count) {
  return guard([&] {
    const char* call = "trifactor_plan_levels";
    copy_list(call, need(call, "plan", plan).plan->level_summary(), levels, room, count,
              [](const SparsePlan::Level& l) {
                return trifactor_level{l.fronts, l.columns, l.flops};
              });
  });
}
trifactor_status trifactor_plan_widths(const trifactor_plan* plan, trifactor_width_bin* bins, int64_t room,
                                       int64_t* count) {
  return guard([&] {
    const char* call = "trifactor_plan_widths";
    copy_list(call, need(call, "plan", plan).plan->width_histogram(), bins, room, count,
              [](const SparsePlan::WidthBin& b) {
                return trifactor_width_bin{b.from, b.to, b.fronts, b.flops};
              });
  });
}
trifactor_status trifactor_plan_steps(const trifactor_plan* plan, trifactor_step* steps, int64_t room, int64_t* count) {
  return guard([&] {
    const char* call = "trifactor_plan_steps";
    copy_list(call, need(call, "plan", plan).plan->steps(), steps, room, count, step_of);
  });
}
trifactor_status trifactor_lu_plan_steps(const trifactor_lu_plan* plan, trifactor_step* steps, int64_t room,
                                         int64_t* count) {
  return guard([&] {
    const char* call = "trifactor_lu_plan_steps";
    copy_list(call, need(call, "plan", plan).plan->steps(), steps, room, count, step_of);
  });
}

namespace trifactor::c {
void give(const char* call, CompressedColumnsOf any, trifactor_compressed_columns* target) {
  auto& columns = need(call, "the place for the columns", target);
  columns = any.view;
  columns.owner = new std::shared_ptr<void>(std::move(any.owner));
}
}  // namespace trifactor::c

void trifactor_compressed_columns_free(trifactor_compressed_columns* columns) {
  if (!columns) return;
  delete static_cast<std::shared_ptr<void>*>(columns->owner);
  *columns = {};
}

trifactor_status trifactor_is_hermitian(const trifactor_pattern* pattern, trifactor_scalar scalar, const void* values,
                                        int64_t count, double tolerance, int* result) {
  return guard([&] {
    const char* call = "trifactor_is_hermitian";
    need(call, "result", result);
    with_scalar(call, scalar, [&]<class T>() {
      using R = trifactor::real_t<T>;
      const R bound = tolerance < 0 ? trifactor::hermitian_tolerance<T> : R(tolerance);
      with_pattern(call, pattern, [&](const auto& p) {
        *result = trifactor::is_hermitian<T>(p, values_of<T>(call, values, count), bound);
      });
    });
  });
}
trifactor_status trifactor_hermitian_part(const trifactor_pattern* pattern, trifactor_scalar scalar, const void* values,
                                          int64_t count, trifactor_compressed_columns* columns) {
  return guard([&] {
    const char* call = "trifactor_hermitian_part";
    need(call, "the place for the columns", columns) = {};
    with_scalar(call, scalar, [&]<class T>() {
      with_pattern(call, pattern, [&](const auto& p) {
        give(call, columns_of(scalar, trifactor::hermitian_part<T>(p, values_of<T>(call, values, count))), columns);
      });
    });
  });
}
