#!/usr/bin/env bash
# Every public header compiles as a file of its own, without any CUDA header; and nvcc takes them all. Those of C compile as
# C99 and as C++11, without a warning of a pedant.
# Usage: headers_alone.sh INCLUDE GENERATED CXX NVCC|none
set -euo pipefail
include=$1 generated=$2 cxx=$3 nvcc=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

headers=$(cd "$include" && ls trifactor/*.hpp | grep -v eigen; echo trifactor/config.hpp)
for header in $headers; do
  name=$(basename "$header" .hpp)
  printf '#include <%s>\n#include <%s>\n' "$header" "$header" >"$work/$name.cpp"   # the second must do nothing
  printf '#include <%s>\n' "$header" >>"$work/all.cu"
done
eigen=$(compgen -G '/usr/include/eigen3' || compgen -G '/usr/local/include/eigen3' || true)
if [ -n "$eigen" ]; then printf '#include <trifactor/eigen.hpp>\n#include <trifactor/eigen.hpp>\n' >"$work/eigen.cpp"; fi
ls "$work"/*.cpp | xargs -P "$(nproc)" -n 1 \
  "$cxx" -std=c++20 -Wall -Wextra -Werror -I"$include" -I"$generated" ${eigen:+-isystem "$eigen"} -fsyntax-only
for header in trifactor.h trifactor/dense.h trifactor/sparse.h; do
  printf '#include <%s>\n#include <%s>\nint main(void) { return TRIFACTOR_OK; }\n' "$header" "$header" >"$work/header.c"
  "${CC:-cc}" -std=c99 -Wall -Wextra -pedantic -Wstrict-prototypes -Werror -I"$include" -fsyntax-only "$work/header.c"
  "$cxx" -x c++ -std=c++11 -Wall -Wextra -pedantic -Werror -I"$include" -fsyntax-only "$work/header.c"
done
if [ "$nvcc" != none ]; then
  "$nvcc" -std=c++20 -arch=sm_90 -Werror=all-warnings -I"$include" -I"$generated" -ptx -o "$work/all.ptx" "$work/all.cu"
fi
echo "$(wc -w <<<"$headers") headers compile alone, and three of C"
