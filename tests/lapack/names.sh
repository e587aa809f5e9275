#!/usr/bin/env bash
# Which LAPACK a call reaches: libraries with a LAPACK of their own, as inside Python's wheels, with 32- and 64-bit integers,
# the program's, in threads and after fork(); what is said about settings; and that nothing is loaded without need.
# Usage: names.sh DROP_IN
set -euo pipefail
drop_in=$1
here=$(cd "$(dirname "$0")" && pwd)
cc=${CC:-cc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "failed: $*"; cat "$work/out" "$work/err" 2>/dev/null; exit 1; }

for wide in "" -DWIDE; do
  $cc -shared -fPIC -Wall -Wextra -Werror $wide -o "$work/libfake$wide.so" "$here/fake.c"
  $cc -shared -fPIC -Wall -Wextra -Werror $wide -o "$work/libcaller$wide.so" "$here/caller.c" -L"$work" "-l:libfake$wide.so" \
    -Wl,-rpath,"$work"
done
$cc -Wall -Wextra -Werror -rdynamic -o "$work/program" "$here/program.c" -ldl -lpthread -llapack
# The drop-in linked before LAPACK, without LD_PRELOAD.
$cc -Wall -Wextra -Werror -rdynamic -o "$work/linked" "$here/program.c" "$drop_in" -Wl,-rpath,"$(dirname "$drop_in")" \
  -ldl -lpthread -llapack

# run SETTINGS... : the program with the drop-in and these variables.
run() {
  env LD_PRELOAD="$drop_in" "$@" "$work/program" "$work/libcaller.so" "$work/libcaller-DWIDE.so" \
    >"$work/out" 2>"$work/err" || fail "$*"
}
has() { grep -qF -- "$1" "$work/$2" || fail "'$1' is not in $2"; }
# What the libraries and the program get: from their own LAPACK, or from trifactor.
expect() {
  local potrf=$1
  for library in libcaller.so libcaller-DWIDE.so; do
    [ "$(grep -cxF "$library potrf $potrf getrf $potrf" "$work/out")" -ge 2 ] || fail "$library does not get $potrf"
  done
  has "program 2" out   # not positive definite
  has "xerbla DPOTRF 2" out
  has "xerbla DPOTRF 1" out
  has "singular 2 2" out
  has "visible 0" out   # libtrifactor's names, after it has been loaded
  has "threads 0" out
  has "libcaller.so potrf 42 getrf 42" out   # the child's, always
}

run TRIFACTOR_LAPACK=off TRIFACTOR_LAPACK_MIN=0
expect 42
run TRIFACTOR_LAPACK=host,verbose TRIFACTOR_LAPACK_MIN=3
expect 42
has "host 800 calls of order 30 to 30" err
run TRIFACTOR_LAPACK=host,verbose TRIFACTOR_LAPACK_MIN=0
expect 0
has "host 809 calls of order 2 to 30" err
has "passed on 4 calls of order -1 to 2" err
run TRIFACTOR_LAPACK_MIN=0   # no line unless it is asked for, with a GPU or without
[ ! -s "$work/err" ] || fail "standard error is not empty"

run TRIFACTOR_LAPACK=gpu,verbose TRIFACTOR_LAPACK_MIN=many
has "TRIFACTOR_LAPACK=gpu is none of off, host, cuda, verbose" err
has "TRIFACTOR_LAPACK_MIN=many is not a whole number" err

"$work/linked" "$work/libcaller.so" >"$work/out" 2>"$work/err" || fail "linked before LAPACK"
has "program 2" out
TRIFACTOR_LAPACK=host,verbose TRIFACTOR_LAPACK_MIN=0 "$work/linked" "$work/libcaller.so" >"$work/out" 2>"$work/err" || fail linked
has "program 2" out
has "host 805 calls" err

# Without any other LAPACK, small calls reach the one that libtrifactor was linked with.
$cc -Wall -Wextra -Werror -rdynamic -o "$work/alone" "$here/program.c" "$drop_in" -Wl,-rpath,"$(dirname "$drop_in")" -ldl -lpthread
"$work/alone" >"$work/out" 2>"$work/err" || fail "without another LAPACK"
has "program 2" out
has "singular 2 2" out

# libtrifactor comes only with the first large call, and stays out of the way of the program's names.
loaded() { env LD_DEBUG=files LD_PRELOAD="$drop_in" "$@" "$work/program" 2>&1 | grep -c 'calling init:.*libtrifactor\.so' || true; }
[ "$(loaded TRIFACTOR_LAPACK=host)" = 0 ] || fail "libtrifactor was loaded without a large call"
[ "$(loaded TRIFACTOR_LAPACK=host TRIFACTOR_LAPACK_MIN=0)" = 1 ] || fail "libtrifactor was not loaded"
needed=$(objdump -p "$drop_in" | awk '/NEEDED/ { print $2 }' | grep -vE '^(libc\.so\.6|libm\.so\.6|libdl\.so\.2|libpthread\.so\.0|ld-linux.*)$' || true)
[ -z "$needed" ] || fail "the drop-in brings $needed into every program"

# Each routine under four names, and nothing else.
exported=$(nm -D --defined-only "$drop_in" | awk '{ print $3 }' | sort)
expected=$(for scalar in s d c z; do
  for routine in potrf potrs potri posv potrf2 getrf getrs getri gesv getrf2; do
    printf '%s\n' "$scalar${routine}_" "$scalar${routine}_64_" "scipy_$scalar${routine}_" "scipy_$scalar${routine}_64_"
  done
done | sort)
diff <(echo "$expected") <(echo "$exported") || fail "exported names (>) differ from those that should be (<)"
echo "every call reached the LAPACK that it should"
