// Engine: the page of operations that a backend offers to the drivers. HostEngine and CudaEngine are its models.
#pragma once

#include <core/batch.hpp>
#include <core/memory.hpp>
#include <core/tuning.hpp>

#include <concepts>

namespace trifactor::core {

/// A matrix that is read: a view, perhaps conjugated.
template <class T>
struct Operand {
  Items<const T> items;
  bool conj = false;
};
template <class T> Operand<std::remove_const_t<T>> plain(const Items<T>& A) { return {A, false}; }              // A
template <class T> Operand<std::remove_const_t<T>> conjugate(const Items<T>& A) { return {A, true}; }           // conj(A)
template <class T> Operand<std::remove_const_t<T>> transpose(const Items<T>& A) { return {A.flipped(), false}; }  // A^T
template <class T> Operand<std::remove_const_t<T>> hermitian(const Items<T>& A) { return {A.flipped(), true}; }   // A^H

/// The triangle of an operand that takes part in a solve, and whether its diagonal is ones that are not stored.
struct Shape {
  bool lower = true;
  bool unit = false;
};
inline constexpr Shape lower{true, false}, upper{false, false}, unit_lower{true, true}, unit_upper{false, true};

/// Which entries of a matrix its norm is taken from: all, or one triangle of a hermitian one, which stands for both.
enum class NormOf { General, HermitianLower, HermitianUpper };

/// Inverses of the diagonal blocks of one triangle, and where a solve with them begins.
template <class T>
struct Inverses {
  const T* data;
  index_t first = 0;  // row and column, a multiple of their order
};

/// The entries of an item's packed lower triangle: column by column, without gaps.
template <class T> TF_HD index_t lower_size(const Items<T>& A) { return A.rows * (A.rows + 1) / 2; }
/// What shifts of a diagonal are relative to: its largest modulus, or 1 where that is zero or not a number.
template <class R> TF_HD R shift_scale(R largest) { return largest > 0 && largest < Limits<R>::infinity ? largest : R(1); }
/// In place of an item's info: the item took no part in another try.
inline constexpr int not_tried = -2;

/// What every operation has in common: it works on all items of its batches; windows are clipped to each item; items
/// whose info is not 0 are skipped (info may be null: none is); an operation that is one large BLAS call may compute
/// garbage in a failed item's own window instead of skipping it (see save). Operations are enqueued in order.
template <class E, class T>
concept EngineFor = requires(E e, Items<T> A, Items<const T> C, Operand<T> op, Shape shape, int* info, const int* read_info,
                             Pivots<int> pivots, Pivots<const int> read_pivots, index_t k, Real<T>* real_out, T* out, const T* read_out,
                             const CholeskyTuning& cholesky_tuning, const LuTuning& lu_tuning, const SolveTuning& solve_tuning,
                             Real<T> shift, double* shifts, NormOf norm_of, bool flag, const Inverses<T>& inverses) {
  // Scratch memory. While arena().planning(), operations take what they need and do nothing else.
  { e.arena() } -> std::same_as<Arena&>;
  // Scratch memory that only saves time: data() is null where it would be more than half of what is free.
  { e.template take_spare<T>(k) } -> std::same_as<Arena::Scratch<T>>;

  // A second lane beside this one: side() is an engine, fork() makes it wait for all that was enqueued here,
  // join() makes this one wait for all that was enqueued there.
  { e.side() } -> std::same_as<E&>;
  e.fork();
  e.join();
  // A lane for long work beside short work here. Where the engine can, it leaves room for the latter. It may be this lane.
  // Others than this one take no scratch memory.
  { e.background() } -> std::same_as<E&>;
  // mark() notes where a lane is; wait_for_mark(lane) makes this one wait for what was enqueued there up to its last mark.
  e.mark();
  e.wait_for_mark(e);

  // run(arguments...), which enqueues operations that follow from these alone: run_as_graph(run, arguments...). An engine that
  // can enqueues what such a call did, all at once, whatever the addresses: those of items, and in Arrays.
  e.run_as_graph([](Items<T>, Array<int>, index_t) {}, A, Array<int>{}, k);

  // info[b] = 0, or -1 where a ragged item's sizes are impossible (or not square, when `flag` asks for square).
  e.reset_info(A, flag, info);
  // skip[b] = info[b], or -1 where the sizes of a ragged item of C or A are impossible or the two do not fit.
  e.check_solve(C, A, read_info, info);

  // Cholesky of whole items as one operation, which also resets info, if the engine has one for this batch: true when it
  // was done.
  { e.cholesky_whole(A, info, cholesky_tuning) } -> std::same_as<bool>;
  // The same, and then B := A^-1 B, in one pass: cholesky_solve_whole(A, flipped, B, info, tuning). `flipped`: A is an upper
  // triangle seen flipped, A = conj(L) L^T. Ragged items that do not fit each other get info -1; B is left alone where info
  // is not 0.
  { e.cholesky_solve_whole(A, flag, A, info, cholesky_tuning) } -> std::same_as<bool>;
  // B := A^-1 B with the factor of A, both triangles as one operation, if the engine has one:
  // cholesky_solved_whole(L, flipped, B, info, tuning).
  { e.cholesky_solved_whole(C, flag, A, read_info, solve_tuning) } -> std::same_as<bool>;
  // Cholesky of the lower triangle of a window; a failure at its column c sets info to k + c + 1.
  e.cholesky_tile(A, info, k);

  // B := op^-1 B for the triangle `shape` of op.
  e.trsm(shape, op, A, read_info);
  // The largest order that trsm takes for this triangle and this B.
  { e.trsm_limit(op, A) } -> std::same_as<index_t>;
  // The same for a triangle of any order as one operation, if the engine has one for this triangle and this B: true
  // when it was done. With `flag`, B := op^-H op^-1 B.
  { e.trsm_whole(shape, op, A, flag, read_info, solve_tuning) } -> std::same_as<bool>;
  // The order of the diagonal blocks that the engine inverts to solve with this triangle for B; 0 where it does not.
  // inverses_size(op) is how many entries the inverses take; they serve the transpose of the triangle too.
  { e.inverse_edge(op, A, solve_tuning) } -> std::same_as<index_t>;
  { e.inverses_size(op) } -> std::same_as<index_t>;
  e.invert_blocks(shape, op, out, read_info);
  // B := op^-1 B with these inverses: trsm_inverted(shape, op, {out, first}, B, info), where op begins at row and
  // column `first` of the triangle that was inverted, a multiple of the edge. The largest order of op that it takes.
  e.trsm_inverted(shape, op, inverses, A, read_info);
  { e.inverted_limit() } -> std::same_as<index_t>;
  // C -= op op'
  e.gemm(op, op, A, read_info);
  // C -= A A^H, the lower triangle of C only.
  e.herk(C, A, read_info);

  // LU of whole items as one operation, which also resets info, if the engine has one for this batch: true when it was
  // done.
  { e.lu_whole(A, pivots, info, lu_tuning) } -> std::same_as<bool>;
  // LU of a narrow window whose first row is pivots.first, of items whose info is not negative. A zero pivot at its
  // column c sets info, if it is still 0, to pivots.first + c + 1. The interchanges are also made in so many columns to the
  // left of the window: lu_tile(A, pivots, info, left); 0 for batches.
  e.lu_tile(A, pivots, info, k);
  // The widest window of so many rows that lu_tile is good for.
  { e.lu_tile_limit(A) } -> std::same_as<index_t>;
  // Whether lu_tile takes less time for windows of so many rows on the main lane, while other lanes have no work.
  { e.lu_alone_is_better(A) } -> std::same_as<bool>;
  // X := op(A)^-1 X with P A = L U as one operation, if the engine has one: lu_solved_whole(op, LU, pivots, X, info, tuning).
  // True when it was done.
  { e.lu_solved_whole(Op::None, C, read_pivots, A, read_info, solve_tuning) } -> std::same_as<bool>;
  // The rows beside a panel as one operation, if the engine has one: lu_row_block(L, pivots, A, info) makes the pivots of L,
  // the panel's triangle, in A, and solves with L in A's first rows. True when it was done.
  { e.lu_row_block(C, read_pivots, A, read_info) } -> std::same_as<bool>;
  // What a panel does to the columns beside it as one operation, if the engine has one: lu_trailing_update(L, pivots, A, info) makes
  // the pivots of the panel L in A, solves with its triangle in A's first rows, and subtracts the rest of L times those from
  // A's other rows. True when it was done.
  { e.lu_trailing_update(C, read_pivots, A, read_info) } -> std::same_as<bool>;
  // Whether the interchanges to the left of panels are better made in the end, all of them at once.
  { e.lu_swaps_late(A) } -> std::same_as<bool>;
  // Those interchanges as one operation, if the engine has one: lu_swap_left(A, pivots, nb) makes in every panel of nb columns
  // the interchanges of the panels to the right of it. True when it was done.
  { e.lu_swap_left(A, read_pivots, k) } -> std::same_as<bool>;
  // to := from, of one matrix that lies by columns or by rows, into what take_spare gave or back: copy_matrix(from, to).
  e.copy_matrix(C, A);
  // Makes the next n interchanges, or takes them back: swap_rows(A, pivots, n, backward, info). Row 0 of A is row
  // pivots.first.
  e.swap_rows(A, read_pivots, k, flag, read_info);

  // out[b] = 2 sum log real(diag); NaN where info is not 0.
  e.log_det(C, real_out, read_info);
  // sign and log |det| of every item; NaN where its sizes are impossible or not square.
  e.lu_det(C, read_pivots, out, real_out);
  // p = the permutation that k interchanges make of 0 .. rows-1: row_permutation(pivots, k, p, rows).
  e.row_permutation(read_info, k, info, k);
  // A := I;  and the strict upper triangle := the conjugate of the lower one.
  e.set_identity(A, read_info);
  e.mirror_lower(A, read_info);

  // norms[j] = the sum of the moduli in column j of one matrix that is not flipped; of a hermitian one the imaginary parts on
  // the diagonal do not count: column_norms(A, of, norms).
  e.column_norms(C, norm_of, shifts);

  // Another try for items whose Cholesky factorization failed (info > 0). save_lower(A, saved, shifts) copies the lower
  // triangles, lower_size(A) entries for each item, and clears the shifts. shift_failed(A, saved, shift, info, retry, shifts)
  // gives failed items their triangle back with shifts[b] = shift * shift_scale(largest on the diagonal) added to the
  // diagonal; their retry becomes 0, that of the others not_tried. take_retry(count, retry, info) copies what became of
  // them. shifts may be null.
  e.save_lower(C, out, shifts);
  e.shift_failed(A, read_out, shift, read_info, info, shifts);
  e.take_retry(k, read_info, info);

  // For solves of one large matrix: save(X, info, saved) copies X when info is given, restore(X, info, saved) puts it
  // back when *info is not 0. saved_size(X, info) is how many entries `saved` needs; 0 where operations do skip.
  { e.saved_size(A, read_info) } -> std::same_as<index_t>;
  e.save(A, read_info, out);
  e.restore(A, read_info, out);
};

/// An engine apart from the host: what hybrid panels need besides.
template <class E, class T>
concept OffloadEngineFor = EngineFor<E, T> && requires(E e, Items<T> A, T* host, int* ints, const int* host_ints, index_t n) {
  // Memory that both sides reach: page-locked host memory.
  { e.pinned() } -> std::same_as<Arena&>;
  // Copies of a window of one matrix to and from such memory (leading dimension = rows), and of n integers.
  // wait_for_copies() returns when the copies of this lane have arrived.
  e.download(A, host);
  e.wait_for_copies();
  e.upload(A, host);
  e.upload(ints, host_ints, n);
};

}  // namespace trifactor::core
