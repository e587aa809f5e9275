#!/usr/bin/env bash
# bench/variants can be built, names what is wrong with its options, and factors rightly where there is a GPU.
# Usage: variants.sh SOURCE BUILD
set -euo pipefail
source=$1 build=$2
cmake -S "$source/bench/variants" -B "$build" -DTRIFACTOR_WERROR=ON >/dev/null
cmake --build "$build"
program=$build/trifactor_variants

# refuse WORDS OPTION...: the program ends with status 2, and its message has these words.
refuse() {
  local words=$1 status=0 message
  shift
  message=$("$program" "$@" 2>&1) || status=$?
  if [ "$status" != 2 ] || [[ "$message" != *"$words"* ]]; then
    echo "trifactor_variants $*: status $status, but should be 2 with '$words': $message"
    exit 1
  fi
}
refuse "Value 0 not in range 1" panel --m 0
refuse "--m 100 with --n 200: m must be at least n" panel --m 100 --n 200
refuse "d3 not in {d1,d2-greedy,d2-lazy}" panel --design d3
refuse "d1 not in {d2-greedy,d2-lazy}" trace --design d1 -o /dev/null
refuse "Value 24577 not in range 1 to 24576" trace -m 24577 -o /dev/null
refuse "Value 65 not in range 1 to 64" trace -n 65 -o /dev/null

if nvidia-smi -L >/dev/null 2>&1; then timeout 120 "$program" check; fi
echo "bench/variants is as it should be"
