// What sparse factorizations and solves ask of an engine besides the operations of dense matrices.
#pragma once

#include <core/engine.hpp>
#include <core/fronts.hpp>

#include <functional>

namespace trifactor::core {

/// What a sparse factorization by level needs besides. Z is (f.lines, columns) without padding, a row for each line;
/// sums are added in the same order in every run.
template <class E, class T>
concept SparseEngineFor = EngineFor<E, T> &&
    requires(E e, const Fronts& f, const MatrixRows& rows, index_t k, const T* values, Real<T> shift, T* out,
             Items<const T> B, Items<T> X, bool permute, Real<T>* error, const int* read_info, int* info) {
  // The columns `begin` to `end` - 1 of fronts with at most so many rows := the values given for them, the shift on
  // the diagonal and the update matrices of their children, some of which may be in page-locked memory of the host:
  // assemble(f, begin, end, rows, values, shift, factor, updates, offloaded).
  e.assemble(f, k, k, k, values, shift, out, out, values);
  // The rows of Z that are columns of the factor := those of B, in its own order or permuted; and back, but for items
  // that have failed: give_rows(f, Z, permute, failed, B). B has f.items items.
  e.take_rows(f, B, permute, out);
  e.give_rows(f, values, permute, read_info, X);
  // Of what fronts report, 0 or a column of theirs from 1 on: first[i] = the first column of item i, from 1 on, or 0; and
  // copy[i], unless copy is null: first_failure(f, info, first, copy).
  e.first_failure(f, read_info, info, info);
  // out[j] = the diagonal of the factor.
  e.diagonal(f, values, out);
  // r := b - (A + shift I) x, and error[i] = |r_i| / (|b| + |A + shift I| |x|)_i: residual(rows, values, shift, b, x,
  // r, error). x += r: add(n, r, x).
  e.residual(rows, values, shift, values, values, out, error);
  e.add(k, values, out);
};

/// An engine that solves with the fronts of a level by the operations of dense matrices.
template <class E, class T>
concept SolvesByLevelFor = SparseEngineFor<E, T> && requires(E e, const Fronts& f, index_t k, T* Z) {
  // Rows of Z += those of the children that are the same; and rows below the columns of a front := those of the parent:
  // add_children(f, begin, end, columns, Z).
  e.add_children(f, k, k, k, Z);
  e.copy_parents(f, k, k, k, Z);
};

/// An engine that factors many small fronts in one call.
template <class E, class T>
concept FactorsSmallFrontsFor = requires(E e, const Fronts& f, index_t k, FrontLimits largest, T* out, int* info) {
  // Which fronts are small.
  { e.template small_front_limits<T>() } -> std::same_as<FrontLimits>;
  // Those from `begin` to `end` - 1, assembled, with at most so many rows and entries: factor_small_fronts(f, begin,
  // end, largest, factor, updates, info).
  e.factor_small_fronts(f, k, k, largest, out, out, info);
};

/// An engine that solves with many fronts in one call.
template <class E, class T>
concept SolvesFrontsFor = requires(E e, const Fronts& f, const SolveLists& lists, T* factor, const T* L, int* flags,
                                   Items<T> B, SolveSteps steps, index_t k) {
  // How the lists are made.
  { e.template solve_limits<T>() } -> std::same_as<SolveLimits>;
  // After a factorization: inverts the diagonal blocks of strips, into the triangle of the factor that is not used, and
  // notes which of them are inexact.
  e.invert_fronts(lists, factor, flags);
  // B := L^-1 B (forward) or L^-H B (backward), or both; then B's rows are permuted before and after. With so many
  // entries of scratch memory: solve_fronts(f, lists, L, inexact, failed, B, steps, scratch). B has
  // f.items items; item i stays if failed[i] is not 0.
  { e.template solve_vector_entries<T>(f, k) } -> std::same_as<index_t>;
  e.solve_fronts(f, lists, L, flags, flags, B, steps, factor);
};

/// An engine with lanes for copies between its memory and page-locked memory of the host, beside its operations. Work and
/// copies pass numbered moments, which the other may wait for; a moment that is passed again counts from then on.
template <class E>
concept CopiesBesideWork = requires(E e, typename E::CopyLane lane, index_t k, const char* name, const void* from, void* to,
                                    std::function<void()> f) {
  typename E::CopyLane;
  requires std::constructible_from<typename E::CopyLane, E&, index_t, const char*>;  // so many moments; its name in a trace
  { lane.allocate(std::size_t()) } -> std::same_as<void*>;              // page-locked, read by operations, too; the lane's
  lane.copy(name, from, to, std::size_t());
  lane.call(name, f);  // on a thread of the host, when the copies before it are complete; f throws nothing
  lane.work_is_at(k), lane.copies_are_at(k);
  lane.work_waits_for_copies(k), lane.copies_wait_for_work(k);
  { lane.captured() } -> std::same_as<bool>;  // whether work is captured now, to run later
  lane.finish();                              // returns when all copies are complete
};

}  // namespace trifactor::core
