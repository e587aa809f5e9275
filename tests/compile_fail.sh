#!/usr/bin/env bash
# What a caller may not write does not compile, and the compiler's words name the rule.
# Usage: compile_fail.sh INCLUDE GENERATED CXX
set -euo pipefail
include=$1 generated=$2 cxx=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A build with double alone.
mkdir -p "$work/only_f64/trifactor"
sed -E -e 's/(TRIFACTOR_HAS_(F32|C32|C64)) .*/\1 0/' -e 's/(TRIFACTOR_HAS_F64) .*/\1 1/' \
  "$generated/trifactor/config.hpp" >"$work/only_f64/trifactor/config.hpp"

flags=(-std=c++20 -Wall -Wextra -Werror -I"$work/only_f64" -I"$include")
# write NAME BODY: BODY as a function NAME that has a queue q, a matrix A, one that is const, C, an array of ints, and buffers: x, b,
# which is const, and i of ints. The compiler takes NAME for its file.
write() {
  cat <<CODE
#line 1 "$1"
void $1(Queue& q, Matrix<double>& A, const Matrix<double>& C, int* ints, Buffer<double>& x, const Buffer<double>& b,
        Buffer<int>& i) {
  (void)q, (void)A, (void)C, (void)ints, (void)x, (void)b, (void)i;
  $2
}
CODE
}
# compile NAME: what was written to NAME.cpp, with the compiler's words in NAME.words.
compile() {
  "$cxx" "${flags[@]}" -fmax-errors=0 -fsyntax-only "$work/$1.cpp" >"$work/$1.words" 2>&1
}
for name in taken refused; do
  printf '#include <trifactor/trifactor.hpp>\n#include <complex>\nusing namespace trifactor;\n' >"$work/$name.cpp"
done
# taken BODY: it compiles.
taken() { write "taken_$((++takes))" "$1" >>"$work/taken.cpp"; }
# refused BODY WORDS: it does not compile, and the compiler says WORDS.
refused() {
  write "refused_${#bodies[@]}" "$1" >>"$work/refused.cpp"
  bodies+=("$1") expected+=("$2")
}
takes=0 bodies=() expected=()

taken 'cholesky(q, Uplo::Lower, A.view(), ints); lu(q, A.view(), ints, ints);'
taken 'cholesky_solve(q, Uplo::Lower, C.view(), A.view()); lu_solve(q, Op::None, C.view(), ints, A.view());'
taken 'double d; cholesky_log_det(q, Uplo::Lower, C.view(), &d); lu_det(q, C.view(), ints, &d, &d);'
taken 'cholesky(C).solve({1., 2.}); lu(C).solve({1., 2.}, Op::Transpose); cholesky(C).solve(A); lu(C).solve({1, 2});'
taken 'Matrix<double> B = C.clone(); Buffer<int> k = Buffer<int>(3).clone();'
taken 'cholesky(q, Uplo::Lower, A, i); cholesky_solve(q, Uplo::Lower, C, x, i); cholesky_factor_solve(q, Uplo::Lower, A, x, ints);'
taken 'cholesky_solve(q, Uplo::Lower, A, A.view()); cholesky_solve(q, Uplo::Lower, A.view(), A); cholesky_inverse(q, Uplo::Lower, C, A);'
taken 'lu(q, A, i, i); lu_solve(q, Op::None, C, std::as_const(i), x); double d; lu_det(q, C, i, &d, x); cholesky_log_det(q, Uplo::Upper, C, x);'
taken 'cholesky(q, Uplo::Lower, strided(x, 2, 2, {.count = 3}), i); auto L = strided(b, 2, 2, {.count = 3, .stride = 0}); (void)L;'
taken 'cholesky(C, {.uplo = Uplo::Upper, .tuning = "nb=128"}).solve(b); lu(C, {.device = Device::Host, .mode = Mode::Native});'
taken 'Matrix<double> there(q, C); std::vector<double> v = b.to_host(); Buffer<double> back(q, v); Matrix<double> M = C.to_host();'
refused 'cholesky(q, Uplo::Lower, C, i);' WritableBatch
refused 'cholesky_solve(q, Uplo::Lower, A, b);' WritableBatch
refused 'cholesky_inverse(q, Uplo::Lower, A, C);' WritableBatch
refused 'lu(q, C, i, i);' WritableBatch
refused 'lu_solve(q, Op::None, A, i, C);' WritableBatch
refused 'cholesky(q, Uplo::Lower, strided(b, 2, 2, {.count = 3}), i);' WritableBatch
refused 'cholesky_factor_solve(q, Uplo::Lower, A, b, i);' 'MatrixView<double>'
refused 'cholesky(q, Uplo::Lower, A, std::as_const(i));' 'ArrayView<int>'
refused 'cholesky(q, Uplo::Lower, A, x);' 'ArrayView<int>'
refused 'cholesky(q, Uplo::Lower, A, i, {.uplo = Uplo::Upper});' uplo
refused 'cholesky(C, {.options = {.tuning = "nb=128"}});' options
refused 'strided(i, 2, 2, {.count = 3});' Scalar
refused 'strided(x, 2, 2, 2, 4, 3);' strided
refused 'cholesky(q, Uplo::Lower, C.view(), ints);' WritableBatch
refused 'cholesky_solve(q, Uplo::Lower, C.view(), C.view());' WritableBatch
refused 'cholesky_factor_solve(q, Uplo::Lower, C.view(), C.view(), ints);' WritableBatch
refused 'lu(q, C.view(), ints, ints);' WritableBatch
refused 'lu_solve(q, Op::None, C.view(), ints, C.view());' WritableBatch
refused 'Matrix<float> F(2, 2); cholesky(q, Uplo::Lower, F.view(), ints);' BuiltScalar
refused 'Matrix<std::complex<double>> F(2, 2); lu(q, F.view(), ints, ints);' BuiltScalar
refused 'cholesky(Matrix<float>(2, 2));' 'see TRIFACTOR_SCALARS'
refused 'lu(Matrix<std::complex<float>>(2, 2));' 'see TRIFACTOR_SCALARS'
refused 'SparseCholesky<float> F(q, nullptr);' 'see TRIFACTOR_SCALARS'
refused 'Matrix<double> B = A;' deleted

compile taken || { cat "$work/taken.words"; exit 1; }
compile refused && { echo "these compile:" "${bodies[@]}"; exit 1; }
for k in "${!bodies[@]}"; do   # each line of words is of the function that was last named at the beginning of one
  awk -v name="refused_$k:" '/^refused_[0-9]+:/ { now = $1 } index(now, name) == 1' "$work/refused.words" >"$work/words"
  grep -q 'error:' "$work/words" || { echo "this compiles: ${bodies[k]}"; exit 1; }
  grep -qF -- "${expected[k]}" "$work/words" || { cat "$work/words"; echo "no \"${expected[k]}\" in the words for: ${bodies[k]}"; exit 1; }
done
echo "all refused as they should be"
