#!/usr/bin/env bash
# Compiles the Fortran module and its example with all warnings, runs it, and compares the sizes of its types with C's.
# Without a Fortran compiler the test is skipped; where CI is set, that is a failure.
# Usage: fortran.sh SOURCE LIBRARY_FOLDER
set -euo pipefail
source=$1 library=$2
compiler=${FC:-gfortran}
if ! command -v "$compiler" >/dev/null; then
  echo "skipped: no Fortran compiler ($compiler) was found; scripts/install_packages installs one"
  [ -z "${CI:-}" ] || exit 1
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

types=$(grep -oE 'type, bind\(C\) :: \w+' "$source/examples/fortran/trifactor.f90" | awk '{print $NF}')
{
  echo '#include <trifactor.h>'
  echo '#include <stdio.h>'
  echo 'int main(void) {'
  for type in $types; do echo "  printf(\"$type %d\\n\", (int)sizeof($type));"; done
  echo '  return 0; }'
} >sizes.c
{
  echo 'program sizes'
  echo '  use trifactor'
  for type in $types; do echo "  type($type) :: v_$type"; done
  for type in $types; do
    echo "  print '(a, i0)', '$type ', c_sizeof(v_$type)"
    if sed -n "/:: $type\$/,/end type/p" "$source/examples/fortran/trifactor.f90" | grep -q ':: size ='; then
      echo "  if (v_$type%size /= c_sizeof(v_$type)) error stop '$type%size'"
    fi
  done
  echo 'end program'
} >sizes.f90

"$compiler" -std=f2018 -Wall -Wextra -pedantic -Werror -c "$source/examples/fortran/trifactor.f90"
"$compiler" -Wall -Wextra -Werror -Wno-unused-dummy-argument "$source/examples/fortran/solve.f90" trifactor.o -o solve \
  -L"$library" -ltrifactor -Wl,-rpath,"$library"
./solve
"$compiler" sizes.f90 trifactor.o -o sizes_fortran -L"$library" -ltrifactor -Wl,-rpath,"$library"
"${CC:-cc}" -I"$source/include" sizes.c -o sizes_c
./sizes_fortran >sizes_fortran.txt
./sizes_c >sizes_c.txt
diff sizes_c.txt sizes_fortran.txt || { echo "failed: types of different sizes in C (<) and Fortran (>)"; exit 1; }
echo "$(wc -l <sizes_c.txt) types have one size in C and Fortran"
