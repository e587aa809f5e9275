#!/usr/bin/env python3
"""Compiles kernels of a build again and lists what they spill, by kernel and by the functions that it calls.

    scripts/list_spills.py build cholesky_select_f cholesky_select_c       # of build/generated/kernels/cholesky_select_f.cu, ...
    scripts/list_spills.py build cholesky_select_f --save before.json      # and keeps the numbers
    scripts/list_spills.py build cholesky_select_f --against before.json   # only what is another number now

Worth a look after each change of a kernel whose registers are full: what it holds while it calls a function is missing there,
see bench/notebook/2026-11-16-batched.md. A new name of a function may change what it spills, too. Nothing of the build is
changed, and no GPU is needed. Of several architectures the last one counts.
"""
import argparse
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
FUNCTION = re.compile(r"Function properties for (\w+)")
SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")


def parse(log):
    """{kernel: {"registers": n, "functions": {name: [stored, loaded]}}} of what ptxas -v wrote; names are mangled."""
    kernels, kernel, function = {}, None, None
    for line in log.splitlines():
        if match := ENTRY.search(line):
            kernel = kernels.setdefault(match[1], {"registers": 0, "functions": {}})
        elif match := FUNCTION.search(line):
            function = match[1]
        elif (match := SPILLS.search(line)) and kernel is not None and function:
            kernel["functions"][function] = [int(match[2]), int(match[3])]
        elif (match := USED.search(line)) and kernel is not None:
            kernel["registers"] = int(match[1])
    return kernels


def readable(names):
    """Short names of mangled ones."""
    names = list(names)
    plain = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout
    short = {}
    for name, text in zip(names, plain.splitlines()):
        text = re.sub(r"\(\w+\)(\d+)", r"\1", re.sub(r"trifactor::(core|cuda)::", "", text))  # (int)2 is 2
        short[name] = re.sub(r"^(void|int|bool) ", "", text.split("(")[0]).strip()
    return short


def lines_of(kernels):
    """{(kernel, function): (registers, stored, loaded)}, with names that can be read; the kernel itself is called (itself)."""
    names = readable({n for k, v in kernels.items() for n in (k, *v["functions"])})
    lines = {}
    for kernel, numbers in kernels.items():
        for function, (stored, loaded) in numbers["functions"].items():
            called = "(itself)" if function == kernel else names[function].split("<")[0]
            lines[names[kernel], called] = (numbers["registers"], stored, loaded)
    return lines


def compile_again(build, name):
    commands = json.loads((build / "compile_commands.json").read_text())
    found = [c for c in commands if pathlib.Path(c["file"]).stem == name and c["file"].endswith(".cu")]
    if not found:
        known = sorted(pathlib.Path(c["file"]).stem for c in commands if c["file"].endswith(".cu"))
        sys.exit(f"list_spills: {build} has no {name}.cu; it has " + ", ".join(known))
    words = shlex.split(found[0]["command"])
    with tempfile.TemporaryDirectory() as folder:
        words[words.index("-o") + 1] = folder + "/again.o"
        result = subprocess.run(words + ["-Xptxas", "-v"], cwd=found[0]["directory"], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"list_spills: {name}.cu was not compiled\n{result.stderr}")
    return parse(result.stderr)


def table(lines, before):
    """Rows of what is spilled; with `before`, of what is another number than there."""
    rows = []
    for (kernel, function), now in sorted(lines.items()):
        was = before.get((kernel, function)) if before is not None else None
        if before is None and now[1:] == (0, 0) or before is not None and was == now:
            continue
        rows.append([kernel, function, *map(str, now)] + ([" ".join(map(str, was)) if was else "-"] if before is not None else []))
    head = ["kernel", "function", "registers", "stored B", "loaded B"] + (["before"] if before is not None else [])
    width = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    align = lambda row: "  ".join(x.ljust(w) if i < 2 else x.rjust(w) for i, (x, w) in enumerate(zip(row, width)))
    return "\n".join(map(align, [head, *rows])) if rows else ("no number changed" if before is not None else "nothing is spilled")


def self_test():
    log = """ptxas info    : Compiling entry function '_Z1aIdEvi' for 'sm_90'
ptxas info    : Function properties for _Z1aIdEvi
    64 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Function properties for _Z4workIdEvi
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 168 registers, used 2 barriers
ptxas info    : Compiling entry function '_Z1bILN9trifactor4cuda6TurnedE2EEvv' for 'sm_90'
ptxas info    : Function properties for _Z1bILN9trifactor4cuda6TurnedE2EEvv
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 40 registers
"""
    lines = lines_of(parse(log))
    expected = {("a<double>", "(itself)"): (168, 8, 12), ("a<double>", "work"): (168, 0, 0), ("b<2>", "(itself)"): (40, 0, 0)}
    shown = table(lines, None).splitlines()
    changed = table(lines, {**expected, ("a<double>", "work"): (168, 68, 312)}).splitlines()
    ok = (lines == expected and len(shown) == 2 and shown[1].split() == ["a<double>", "(itself)", "168", "8", "12"]
          and len(changed) == 2 and changed[1].split()[-3:] == ["168", "68", "312"]
          and table(lines, expected) == "no number changed")
    print("self-test passed" if ok else f"self-test failed: {lines}\n{shown}\n{changed}")
    return 0 if ok else 1


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="folder of a build with CUDA")
    parser.add_argument("names", nargs="+", help="kernel files of that build, such as cholesky_select_f")
    parser.add_argument("--save", type=pathlib.Path, help="writes all numbers to this file")
    parser.add_argument("--against", type=pathlib.Path, help="a file that --save wrote")
    options = parser.parse_args()
    if not (options.build / "compile_commands.json").exists():
        sys.exit(f"list_spills: {options.build} is no folder of a build: it has no compile_commands.json")
    before = None
    if options.against:
        before = {tuple(key): tuple(numbers) for key, numbers in json.loads(options.against.read_text())}
    lines = {}
    for name in options.names:
        if sys.stderr.isatty():
            print(f"compiling {name}.cu, which takes up to a minute", file=sys.stderr)
        lines |= lines_of(compile_again(options.build, name))
    print(table(lines, before))
    if options.save:
        options.save.write_text(json.dumps(list(lines.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
