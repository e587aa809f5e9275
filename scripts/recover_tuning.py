#!/usr/bin/env python3
"""From rows that are bad on purpose, trifactor tune has to find back to the speed of the built-in ones.

Tunes from tiny blocks and wrong crossovers. Then measures bench --preset guard three times: with the bad rows, with the
rows that were found in front of the bad ones, and with the built-in rows. Fails where a row has less than 95 % of the
built-in speed. Rows of scalars that were not tuned do not count, nor do sparse phases that are not searched."""
import argparse
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

BAD = {
    "cuda": """
cuda cholesky any count=1 : whole=0 persistent=0 nb=32 leaf=16 tile=exclusive ib=8 looking=left
cuda cholesky any : whole=0 small=0 resident=0 sorted=1000000000 order_per_item=1000 fused=0 persistent=0 nb=16 leaf=8
cuda lu any count=1 : whole=0 nb=16 leaf=4
cuda lu any : whole=0 nb=8 leaf=4
cuda solve any : sweep_columns=0 fused=0 invert=2147483647 nb=64 halve=1 columns=64
cuda value any : gpu_from=2147483647
cuda sparse any : alone=16 alone_below=64 at_once=1
""",
    "host": """
host cholesky any : whole=0 interleaved=0 fused=0 nb=8 leaf=4 looking=left
host lu any : whole=0 nb=4 leaf=2
host solve any : interleaved=0 fused=0 columns=16
host sparse any : leaf=1 strip=8 update_order=0 update_columns=0 tiles_down=1 tile_least=8 tile_most=16 at_once=1
"""}
NOT_SEARCHED = ("analyze", "construct", "factor")
LEAST = 0.95


def measure(options, tuning, rows):
    """Adds what bench prints with this tuning in force to a file of rows."""
    environment = dict(os.environ, TRIFACTOR_TUNING=str(tuning))
    for line in options.bench or [f"--preset guard --seconds {options.seconds} --device {options.device}"]:
        with rows.open("a") as file:
            subprocess.run([options.program, "bench", *shlex.split(line), "--json"], env=environment, check=True,
                           stdout=file)


def compare(options, before, after):
    """{what was measured: (seconds of one file of rows, of another)}"""
    done = subprocess.run([options.program, "bench", "compare", before, after, "--all", "--json"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode not in (0, 1):            # 1: something is slower
        sys.exit(done.stderr)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return {row["what"]: (row["before"], row["after"]) for row in found
            if row.get("phase") not in NOT_SEARCHED and (options.bench or row["scalar"] in options.scalar.split(","))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="path of trifactor")
    parser.add_argument("--device", choices=["host", "cuda"], default="cuda")
    parser.add_argument("--scalar", default="f64", help="of trifactor tune, as f64,f32 [%(default)s]")
    parser.add_argument("--budget", default="90s", help="of trifactor tune [%(default)s]")
    parser.add_argument("--seconds", default="0.3", help="to spend on a row of the preset [%(default)s]")
    parser.add_argument("--rounds", type=int, default=1, help="of measurements; the median counts [%(default)s]")
    parser.add_argument("--bench", action="append", metavar="ARGUMENTS",
                        help="of trifactor bench, in place of --preset guard; may be given several times")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bad, found, both = (pathlib.Path(folder) / name for name in ("bad.txt", "found.txt", "both.txt"))
        bad.write_text(BAD[options.device])
        subprocess.run([options.program, "tune", "--device", options.device, "--scalar", options.scalar, "--budget",
                        options.budget, "--from", bad, "-o", found], check=True)
        if not found.exists():
            sys.exit("no row was found")
        print("\n" + found.read_text(), flush=True)
        both.write_text(bad.read_text() + found.read_text())  # rows that were found name the closer architecture
        rows = {tuning: pathlib.Path(folder) / (pathlib.Path(tuning).stem + ".jsonl") for tuning in (bad, both, "off")}
        for _ in range(options.rounds):
            for tuning, file in rows.items():
                measure(options, tuning, file)
        slow, tuned = compare(options, rows["off"], rows[bad]), compare(options, rows["off"], rows[both])
    return report(slow, tuned)


def report(slow, tuned):
    """Prints both beside the built-in rows. Returns whether a row is too slow."""
    width = max(map(len, tuned))
    print(f"{'row':{width}}  {'bad ms':>10}  {'tuned ms':>10}  {'built-in ms':>11}  {'bad %':>6}  {'tuned %':>7}")
    for name, (built_in, seconds) in tuned.items():
        bad = slow[name][1]
        print(f"{name:{width}}  {bad * 1e3:10.4f}  {seconds * 1e3:10.4f}  {built_in * 1e3:11.4f}"
              f"  {built_in / bad * 100:6.1f}  {built_in / seconds * 100:7.1f}")
    name, (built_in, seconds) = max(tuned.items(), key=lambda row: row[1][1] / row[1][0])
    print(f"least: {built_in / seconds * 100:.1f} % of the built-in speed, {name}")
    return built_in / seconds < LEAST


if __name__ == "__main__":
    sys.exit(main())
