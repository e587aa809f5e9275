#!/usr/bin/env bash
# LAPACK's own test programs (Debian's liblapack-test) with the drop-in before their LAPACK: every order goes through it, in
# chunks of 8 columns and with blocks of 8. Fails where a test fails that passes without it.
# Where the programs are missing it is skipped; where CI is set, that is a failure.
# Usage: suite.sh DROP_IN s|d|c|z factorizations|everything
#   factorizations: the paths GE and PO, which call what the drop-in has, at orders up to 132; everything: all paths.
# TRIFACTOR_LAPACK=cuda runs it on the GPU.
set -euo pipefail
drop_in=$1 scalar=$2 paths=$3
here=$(cd "$(dirname "$0")" && pwd)
folder=$({ compgen -G '/usr/lib/*/lapack/xlintstd' || true; } | head -n 1 | xargs -r dirname)
folder=${TRIFACTOR_LAPACK_TESTS:-$folder}
if [ -z "$folder" ]; then
  echo "skipped: LAPACK's test programs were not found; scripts/install_packages installs them (liblapack-test)"
  [ -z "${CI:-}" ] || exit 1
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
program=$folder/xlintst$scalar input=$work/input
if [ "$paths" = everything ]; then
  cp "$folder/${scalar}test.in" "$input"
else   # one more order, and two paths
  sed -E 's/^7( +Number of values of [MN]\b)/8\1/; s/^0 1 2 3 5 10 50 /0 1 2 3 5 10 50 132 /' "$folder/${scalar}test.in" |
    awk -v s="${scalar^^}" 'NR <= 17 || $1 == s "GE" || $1 == s "PO"' >"$input"
fi

export OMP_NUM_THREADS=1   # the matrices are small
LD_PRELOAD=$drop_in TRIFACTOR_LAPACK=${TRIFACTOR_LAPACK:-host},verbose TRIFACTOR_LAPACK_MIN=0 TRIFACTOR_LAPACK_CHUNK=8 \
  TRIFACTOR_TUNING=$here/blocks.txt "$program" <"$input" >"$work/ours" 2>"$work/report" || { cat "$work/report"; exit 1; }
cat "$work/report"

if [ "${TRIFACTOR_LAPACK:-host}" = cuda ] && grep -q 'calls are passed on' "$work/report"; then
  echo "skipped: no GPU"
  [ "${TRIFACTOR_REQUIRE_CUDA:-0}" != 1 ] || exit 1
  exit 77
fi

# What the drop-in must have been called for, and what the program must have come to.
where=${TRIFACTOR_LAPACK:-host}
calls=$(grep -oE "$where [0-9]+ calls" "$work/report" | grep -oE '[0-9]+')
[ "${calls:-0}" -gt 10000 ] || { echo "failed: only ${calls:-0} calls went through the drop-in"; exit 1; }
grep -q 'End of tests' "$work/ours" || { echo "failed: the program did not come to its end"; tail "$work/ours"; exit 1; }
for line in "${scalar^^}GE routines passed the tests of the error exits" "${scalar^^}PO drivers passed the tests of the error exits"; do
  grep -q "$line" "$work/ours" || { echo "failed: not '$line'"; exit 1; }
done

failures() { grep -E 'failed|did not pass|illegal|\*\*\*' "$1" | sort || true; }
failures "$work/ours" >"$work/ours.failures"
if [ -s "$work/ours.failures" ]; then   # does LAPACK alone have them too?
  "$program" <"$input" >"$work/plain" 2>&1
  failures "$work/plain" >"$work/plain.failures"
  if ! diff "$work/plain.failures" "$work/ours.failures"; then
    echo "failed: tests of LAPACK fail with the drop-in (>) that pass without it"
    exit 1
  fi
  echo "LAPACK alone has the same failures:"
  cat "$work/plain.failures"
fi
echo "$(grep -oE '[0-9]+ tests run' "$work/ours" | awk '{ n += $1 } END { print n }') tests of LAPACK passed"
