#!/usr/bin/env python3
"""What README.md shows works: C++ blocks with a main() compile, link and run; lines that start with build/trifactor run.

Usage: readme.py SOURCE BUILD CXX
"""
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile


def main(source, build, cxx):
    text = (source / "README.md").read_text()
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    ran = 0
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        for number, (language, body) in enumerate(blocks):
            if language == "cpp" and "main(" in body:
                program = work / f"block{number}"
                program.with_suffix(".cpp").write_text(body)
                run([cxx, "-std=c++20", "-Wall", "-Wextra", "-Werror", f"-I{source}/include", f"-I{build}/generated",
                     program.with_suffix(".cpp"), f"-L{build}", "-ltrifactor", f"-Wl,-rpath,{build}", "-o", program], work)
                run([program], work)
                ran += 1
            if language in ("sh", "bash", "console"):
                for line in body.splitlines():
                    words = shlex.split(line.removeprefix("$ "), comments=True)
                    if words and words[0] == "build/trifactor":
                        run([build / "trifactor", *words[1:]], source)
                        ran += 1
    print(f"{ran} commands and programs of README.md ran")


def run(command, folder):
    print("+", " ".join(map(str, command)), flush=True)
    subprocess.run(command, cwd=folder, check=True)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3])
