#!/usr/bin/env python3
"""Speed and energy by the clock of the GPU: Cholesky and LU of one matrix at each of some clocks, in one table.

    scripts/measure_clocks.py                            # n = 16384 at five clocks, three minutes on an H200
    scripts/measure_clocks.py --clocks 1980,1200 --n 8192 --json rows.jsonl

nvidia-smi holds the clock, which needs root and a driver that allows it, and gives it back at the end. A GPU that reaches its power
limit runs slower than the clock that is asked for: the table has watts beside it.
"""
import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def hold_clock(megahertz):
    words = ["nvidia-smi", "-lgc", f"{megahertz},{megahertz}"]
    try:
        done = subprocess.run(words, capture_output=True, text=True)
    except FileNotFoundError:
        sys.exit("measure_clocks: nvidia-smi was not found; it comes with the driver of the GPU")
    if done.returncode != 0:
        sys.exit(f"measure_clocks: {' '.join(words)} failed: {(done.stdout + done.stderr).strip()}")


def measure(options, operation):
    """The row of trifactor bench for one operation."""
    words = [options.program, "bench", operation, "--n", str(options.n), "--against", "none", "--seconds", "1",
             "--energy", str(options.energy), "--json"] + (["--device", options.device] if options.device else [])
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"measure_clocks: {' '.join(words)} failed: {done.stderr.strip()}")
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clocks", default="1980,1755,1500,1245,990", help="MHz [%(default)s]")
    parser.add_argument("--n", type=int, default=16384, help="order of the matrices [%(default)s]")
    parser.add_argument("--ops", default="cholesky,lu", help="operations of trifactor bench [%(default)s]")
    parser.add_argument("--energy", type=float, default=5, help="seconds for each figure [%(default)s]")
    parser.add_argument("--device", help="host or cuda [cuda where there is a GPU]")
    parser.add_argument("--program", default=str(ROOT / "build" / "trifactor"), help="[build/trifactor]")
    parser.add_argument("--json", metavar="FILE", help="write the rows of trifactor bench, each with its clock")
    options = parser.parse_args()
    operations = options.ops.split(",")
    rows = []
    print("clock, MHz" + "".join(f" | {o + ', Tflop/s':>18} {'watts':>7} {'Gflop/s/W':>10}" for o in operations))
    try:
        for clock in [int(word) for word in options.clocks.split(",")]:
            hold_clock(clock)
            line = f"{clock:10d}"
            for operation in operations:
                row = measure(options, operation)
                rows.append({"clock_mhz": clock, **row})
                per_watt = row["gflops_per_watt"]
                watts = f"{row['gflops'] / per_watt:7.0f} {per_watt:10.1f}" if per_watt else f"{'-':>7} {'-':>10}"
                line += f" | {row['gflops'] / 1e3:18.3g} {watts}"
            print(line, flush=True)
    finally:
        subprocess.run(["nvidia-smi", "-rgc"], capture_output=True)
    if options.json:
        pathlib.Path(options.json).write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    main()
