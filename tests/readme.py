#!/usr/bin/env python3
"""What README.md and docs/getting-started.md show works: C++ and C blocks with a main() compile, link and run, the others compile
one after the other in one function, and the trifactor commands run. What they and the guides link to is there.

Usage: readme.py SOURCE BUILD CXX
"""
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

# The files that commands name.
FILES = {
    "A.mtx": "%%MatrixMarket matrix array real symmetric\n2 2\n4\n2\n3\n",
    "b.mtx": "%%MatrixMarket matrix array real general\n2 1\n2\n3\n",
}
# What the blocks without a main() take for granted.
GIVEN = """#include <trifactor/trifactor.hpp>
void given(const int64_t n, const int64_t* start, const int64_t* row, const std::vector<double>& values,
           const std::vector<double>& b) {
"""


def main(source, build, cxx):
    text = "".join((source / page).read_text() for page in ["README.md", "docs/getting-started.md"])
    blocks = re.findall(r"^```cpp\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    programs = [(body, "program.cpp") for body in blocks if "main(" in body]
    programs += [(body, "program.c") for body in re.findall(r"^```c\n(.*?)^```", text, re.MULTILINE | re.DOTALL)]
    fragments = [body for body in blocks if "main(" not in body]
    commands = re.findall(r"^ {4}(?:build/)?trifactor (.*)$", text, re.MULTILINE)
    if not programs or not commands:
        sys.exit("README.md shows no program or no command")
    for page in [source / "README.md", source / "CONTRIBUTING.md", *source.glob("docs/*.md"), *source.glob("bench/*/*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            if not (page.parent / link).exists():
                sys.exit(f"{page}: {link} is not there")
    pages = "".join(page.read_text() for page in [source / "README.md", *source.glob("docs/*.md"), *source.glob("bench/*/*.md")])
    for picture in source.glob("docs/pictures/*"):
        if picture.name not in pages:
            sys.exit(f"{picture}: no page shows it")
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        for name, content in FILES.items():
            (work / name).write_text(content)
        flags = ["-Wall", "-Wextra", "-Werror", f"-I{source}/include", f"-I{build}/generated", "-isystem", "/usr/include/eigen3"]
        compile_with = [cxx, "-std=c++20", *flags]
        for body, file in programs:
            (work / file).write_text(body)
            language = compile_with if file.endswith("cpp") else ["cc", "-std=c99", *flags]
            run([*language, file, f"-L{build}", "-ltrifactor", f"-Wl,-rpath,{build}", "-o", "program"], work)
            run(["./program"], work)
        (work / "fragments.cpp").write_text(GIVEN + "".join(fragments) + "}\n")
        run([*compile_with, "-fsyntax-only", "fragments.cpp"], work)
        for command in commands:
            words = shlex.split(command, comments=True)
            # Only what is measured takes that long, and it is of no account here.
            run([build / "trifactor", *words, *(["--seconds", "0.01"] if words[0] == "bench" else [])], work)


def run(command, folder):
    print("+", " ".join(map(str, command)), flush=True)
    subprocess.run(command, cwd=folder, check=True)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3])
