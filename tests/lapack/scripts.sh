#!/usr/bin/env bash
# Unmodified programs of NumPy, R and Octave solve through the drop-in, where they are installed; NumPy must be where CI is set.
# Usage: scripts.sh DROP_IN numpy|r|octave [PYTHON]
set -euo pipefail
drop_in=$1 language=$2 python=${3:-python3}
here=$(cd "$(dirname "$0")" && pwd)
skip() { echo "skipped: $*"; exit 77; }
case $language in
  numpy)
    command=
    for candidate in "$python" /usr/bin/python3; do   # Debian's NumPy is that of Debian's Python
      if "$candidate" -c 'import numpy' 2>/dev/null; then command=("$candidate" "$here/solve_numpy.py"); break; fi
    done
    if [ -z "${command[*]}" ]; then
      [ -z "${CI:-}" ] || { echo "failed: NumPy was not found; scripts/install_packages installs it"; exit 1; }
      skip "NumPy was not found (python3-numpy)"
    fi
    ;;
  r) command -v Rscript >/dev/null || skip "R was not found (r-base-core)"; command=(Rscript --vanilla "$here/solve.R") ;;
  octave) command -v octave-cli >/dev/null || skip "Octave was not found (octave)"; command=(octave-cli --norc "$here/solve.m") ;;
esac
report=$(mktemp)
trap 'rm -f "$report"' EXIT

LD_PRELOAD=$drop_in TRIFACTOR_LAPACK=${TRIFACTOR_LAPACK:-host},verbose TRIFACTOR_LAPACK_MIN=100 "${command[@]}" 2>"$report" ||
  { cat "$report"; exit 1; }
cat "$report"
grep -qE "${TRIFACTOR_LAPACK:-host} [1-9][0-9]* calls?( of order 150)" "$report" || { echo "failed: no call went through the drop-in"; exit 1; }
LD_PRELOAD=$drop_in "${command[@]}"   # and with no setting at all
