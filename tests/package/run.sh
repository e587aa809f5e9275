#!/usr/bin/env bash
# Installs the library into an empty folder, builds examples/ against it in another, runs them, and looks at what was
# installed and exported.
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

[ -z "$(find "$work/installed" -name 'testing.hpp' -o -name 'inspect.hpp' -o -name '*.in' -o -path '*/src/*')" ] || fail "private files are installed"
for header in "$source"/include/trifactor/*.hpp; do
  name=$(basename "$header")
  case $name in testing.hpp | inspect.hpp) continue ;; esac
  [ -n "$(find "$work/installed" -path "*/include/trifactor/$name")" ] || fail "$name is not installed"
done

library=$(find "$work/installed" -name 'libtrifactor.so')
[ -n "$library" ] || { echo "no shared library: exports are not checked"; exit 0; }
exported=$(nm -D --defined-only "$library" | awk '{print $3}' | sed 's/@.*//')   # mangled: names carry their length
grep -q '^_ZN9trifactor5Queue4syncEv$' <<<"$exported" || fail "Queue::sync is not exported"
ours='^_Z(T[ISV])?NK?9trifactor'
foreign=$(grep -vE "$ours" <<<"$exported" || true)
[ -z "$foreign" ] || fail "exported, but not trifactor's: $(c++filt <<<"$foreign")"
inner=$(grep -E "$ours(4core|4tile|5dense|6sparse|4host|4cuda|6tuning|5meter|3api)" <<<"$exported" || true)
[ -z "$inner" ] || fail "exported, but not public: $(c++filt <<<"$inner")"
echo "$(wc -l <<<"$exported") symbols exported, all public"
