#!/usr/bin/env bash
# An object compiled for one instruction set defines nothing that the linker could share with code for all CPUs: every
# weak symbol is in the namespace of that instruction set.
# Usage: instruction_sets.sh ISA "OBJECT..."
set -euo pipefail
isa=$1
for object in $2; do
  shared=$(nm -C --defined-only "$object" | awk '$2 ~ /^[WVu]$/' | grep -v "::$isa::" || true)
  if [ -n "$shared" ]; then
    echo "$object: these may be called on CPUs without $isa:"
    echo "$shared"
    exit 1
  fi
  echo "$object: nothing but $isa::"
done
