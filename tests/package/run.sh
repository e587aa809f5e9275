#!/usr/bin/env bash
# Installs the library into an empty folder, builds examples/ against it in another, by CMake and by pkg-config, runs them, and
# looks at what was installed and exported.
# Usage: run.sh CMAKE SOURCE BUILD CXX
set -euo pipefail
cmake=$1 source=$2 build=$3 cxx=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "failed: $*"; exit 1; }

"$cmake" --install "$build" --prefix "$work/installed" >"$work/log" || { cat "$work/log"; fail "install"; }
cp -r "$source/examples" "$work/examples"
"$cmake" -G Ninja -S "$work/examples" -B "$work/build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="$cxx" \
  -DCMAKE_PREFIX_PATH="$work/installed"
"$cmake" --build "$work/build"
for example in "$source"/examples/*.cpp; do
  name=$(basename "$example" .cpp)
  echo "== $name"
  "$work/build/$name" || fail "example $name"
done

echo "== solve.c"
"$work/build/solve_c" || fail "example c/solve.c"

# The same by pkg-config, after the installation has moved.
if [ -z "$(find "$work/installed" -name trifactor.pc)" ]; then
  echo "trifactor.pc comes with a shared library alone"
elif command -v pkg-config >/dev/null; then
  mv "$work/installed" "$work/moved"
  export PKG_CONFIG_PATH=$(dirname "$(find "$work/moved" -name trifactor.pc)")
  pkg-config --exists --print-errors 'trifactor >= 0.1' || fail "pkg-config does not take trifactor.pc"
  "${CC:-cc}" -std=c99 -Wall -Wextra -pedantic -Werror $(pkg-config --cflags trifactor) -o "$work/by_pkg_config" \
    "$source/examples/c/solve.c" $(pkg-config --libs trifactor) -lm
  library_folder=$(dirname "$(find "$work/moved" -name 'libtrifactor.*' | head -n 1)")
  LD_LIBRARY_PATH=$library_folder "$work/by_pkg_config" >/dev/null || fail "example c/solve.c by pkg-config"
  sed -n '/^```c$/,/^```$/p;/^```$/q' "$source/docs/c.md" | sed '/^```/d' >"$work/docs.c"
  "${CC:-cc}" -std=c99 -Wall -Wextra -Werror $(pkg-config --cflags trifactor) -o "$work/docs" "$work/docs.c" \
    $(pkg-config --libs trifactor) || fail "the program of docs/c.md"
  [ "$(LD_LIBRARY_PATH=$library_folder "$work/docs")" = "x = (0.0909091, 0.636364)" ] || fail "the result of docs/c.md"
  mv "$work/moved" "$work/installed"
else
  echo "pkg-config was not found: trifactor.pc is not tried"
fi

[ -z "$(find "$work/installed" -name 'testing.hpp' -o -name 'inspect.hpp' -o -name '*.in' -o -path '*/src/*')" ] || fail "private files are installed"
for header in "$source"/include/trifactor/*.h "$source"/include/trifactor/*.hpp "$source"/include/*.h; do
  name=${header#"$source"/}
  case $name in */testing.hpp | */inspect.hpp) continue ;; esac
  [ -n "$(find "$work/installed" -path "*/$name")" ] || fail "$name is not installed"
done
[ -n "$(find "$work/installed" -name trifactor.f90)" ] || fail "trifactor.f90 is not installed"

drop_in=$(find "$work/installed" -name 'libtrifactor_lapack.so')
[ -z "$drop_in" ] || bash "$source/tests/lapack/names.sh" "$drop_in" || fail "the LAPACK drop-in where it is installed"

library=$(find "$work/installed" -name 'libtrifactor.so')
[ -n "$library" ] || { echo "no shared library: exports are not checked"; exit 0; }
exported=$(nm -D --defined-only "$library" | awk '{print $3}' | sed 's/@.*//')   # mangled: names carry their length
grep -q '^_ZN9trifactor5Queue4syncEv$' <<<"$exported" || fail "Queue::sync is not exported"
ours='^_Z(T[ISV])?NK?9trifactor'
for name in $(grep -ohE '\btrifactor_\w+\(' "$source"/include/trifactor/*.h | tr -d '('); do
  grep -qx "$name" <<<"$exported" || fail "$name of the C headers is not exported"
done
foreign=$(grep -vE "$ours|^trifactor_" <<<"$exported" || true)
[ -z "$foreign" ] || fail "exported, but not trifactor's: $(c++filt <<<"$foreign")"
inner=$(grep -E "$ours(4core|4tile|5dense|6sparse|4host|4cuda|6tuning|5meter|3api|1cE?[0-9])" <<<"$exported" || true)
[ -z "$inner" ] || fail "exported, but not public: $(c++filt <<<"$inner")"
echo "$(wc -l <<<"$exported") symbols exported, all public"
