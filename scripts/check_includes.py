#!/usr/bin/env python3
"""Who may include whom, and where PTX stands. Fails with file:line and the rule that is broken; --self-test shows that it
catches violations."""
import pathlib
import re
import sys
import tempfile

# folder: the folders it may include beside itself. The most specific folder counts; "include" are the public headers.
ALLOWED = {
    "include": [],
    "src/core": ["include"],
    "src/tile": ["include", "src/core"],
    "src/dense": ["include", "src/core"],
    "src/sparse": ["include", "src/core", "src/dense"],
    "src/host": ["include", "src/core", "src/tile", "src/sparse"],
    "src/cuda": ["include", "src/core", "src/tile", "src/cuda/device"],
    "src/cuda/device": ["include", "src/core", "src/tile"],
    "src/tuning": ["include", "src/core"],
    "src/meter": ["include", "src/core"],
    "src/api": ["include", "src/core", "src/tile", "src/dense", "src/sparse", "src/host", "src/cuda", "src/cuda/device",
                "src/tuning", "src/meter"],
    "src/c": ["include"],          # the C interface is written over the public headers, as a user's would be
    "src/lapack": ["include"],     # so is the LAPACK drop-in, by the C interface alone
    "tests": ["include"],
    "tests/tile": ["include", "tests", "src/core", "src/tile"],
    "tests/engine": ["include", "src/core", "src/dense", "src/cuda"],   # how drivers and engines work together
    "tests/simt": ["include", "src/core", "src/tile", "src/cuda", "src/cuda/device"],
    "tests/sparse": ["include", "tests", "src/core", "src/sparse"],
    "tests/tuning": ["include", "tests", "src/core", "src/tuning"],
    "tests/meter": ["include", "tests", "src/core", "src/meter"],
    "tests/fuzz": ["include", "tests", "src/core", "src/tuning", "tools"],
    "tools": ["include"],
    "bench": ["include"],
    "bench/variants": ["src/core", "src/tile", "src/cuda/device"],   # designs that lost, from the same building blocks
    "python": ["include"],
    "examples": ["include"],
}

# (which headers, the folders that may include them, why)
OUTSIDE = [
    (r"cu(da|blas|solver|sparse|rand|pti|Complex)\w*(\.h|\.hpp|/.*)|cub/.*|thrust/.*|cooperative_groups.*|nvml\.h",
     ["src/cuda", "tests", "tools", "bench"], "CUDA stays in src/cuda; streams cross as void*"),
    (r"cblas\.h|lapacke?\w*\.h|openblas_config\.h|f77blas\.h",
     ["src/host", "tests", "tools", "bench"], "BLAS stays in src/host"),
    (r"metis\.h|(suitesparse/)?(amd|colamd|cholmod)\w*\.h", ["src/sparse", "tests", "bench"],
     "orderings stay in src/sparse"),
    (r"(superlu/)?(slu_\w+|supermatrix)\.h", ["src/host"], "SuperLU stays in src/host"),
    (r"Eigen/\w+", ["include", "tests"], "Eigen is for trifactor/eigen.hpp and its test"),
    (r"trifactor/testing\.hpp", ["src", "tests", "bench"], "testing.hpp is for this project's own tests"),
    (r"commit\.hpp", ["tools", "bench"], "commit.hpp is written for the tools"),
]
FORBIDDEN_NAMES = ("util", "utils", "common", "misc")
SUFFIXES = (".hpp", ".h", ".cpp", ".cuh", ".cu")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


# Instructions of the GPU: not an empty asm, nor a comment in one. tests/simt has a twin of each header that holds them.
PTX = re.compile(r'\basm\s*(?:volatile\s*)?\(\s*"(?!"|//)')


def folder_of(path):
    """The most specific folder of the table that holds a path, or None."""
    parts = pathlib.PurePosixPath(path).parts
    for length in range(len(parts) - 1, 0, -1):
        folder = "/".join(parts[:length])
        if folder in ALLOWED:
            return folder
    return None


def within(folder, roots):
    return any(folder == root or folder.startswith(root + "/") for root in roots)


def target_of(root, file, quoted, name):
    """The file of this repository that an include means, as a path from the root, or None."""
    places = [root / "include", root / "src", root / "tests", root / "tools", root / "bench"]
    if quoted:
        places.insert(0, file.parent)
    for place in places:
        candidate = (place / name).resolve()
        if candidate.is_file() and candidate.is_relative_to(root):
            return candidate.relative_to(root).as_posix()
    if name.startswith("trifactor/"):
        return "include/" + name       # config.hpp is generated
    layer = "src/" + name.split("/")[0]
    if layer in ALLOWED and name.endswith(SUFFIXES):
        return "src/" + name           # <cuda/engine/engine.hpp>; the toolkit's own <cuda/atomic> has no suffix
    return None


def check(root):
    """All violations, as file:line: rule."""
    root = root.resolve()
    errors = []
    for top in ("include", "src", "tests", "tools", "bench", "python", "examples"):
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in SUFFIXES:
                continue
            path = file.relative_to(root).as_posix()
            folder = folder_of(path)
            if folder is None:
                errors.append(f"{path}:1: its folder is not in the table of scripts/check_includes.py")
                continue
            if file.stem in FORBIDDEN_NAMES or file.parent.name in FORBIDDEN_NAMES:
                errors.append(f"{path}:1: '{file.stem}' says nothing: name the concept")
            text = file.read_text()
            if path.startswith("src/cuda/") and not (root / "tests/simt" / path.removeprefix("src/")).is_file():
                for match in PTX.finditer(text):
                    errors.append(f"{path}:{text.count(chr(10), 0, match.start()) + 1}: PTX in a file without a twin in tests/simt")
            for number, line in enumerate(text.splitlines(), 1):
                if match := INCLUDE.match(line):
                    rule = broken_rule(root, file, folder, match[1] == '"', match[2])
                    if rule:
                        errors.append(f"{path}:{number}: {line.strip()}: {rule}")
    return errors


def broken_rule(root, file, folder, quoted, name):
    target = target_of(root, file, quoted, name)
    for pattern, folders, why in OUTSIDE:
        foreign = target is None or target.startswith("include/")
        if foreign and re.fullmatch(pattern, name) and not within(folder, folders):
            return f"{why} (only {', '.join(folders)} may)"
    if target is None:
        return None
    other = folder_of(target)
    if other is None:
        return f"{target} is in no folder of the table"
    allowed = [folder, *ALLOWED[folder]]
    if other in allowed or (folder.startswith("tests/") and other == "tests"):
        return None
    return f"{folder} may include {', '.join(allowed)}, but not {other}"


def self_test():
    good = {
        "include/trifactor/a.hpp": "#include <vector>\n#include <trifactor/config.hpp>\n",
        "src/core/a.hpp": "#include <trifactor/a.hpp>\n",
        "src/tile/a.hpp": "#include <core/a.hpp>\n",
        "src/dense/a.hpp": "#include <core/a.hpp>\n",
        "src/host/a.cpp": "#include <tile/a.hpp>\n#include <cblas.h>\n#include <slu_ddefs.h>\n",
        "src/cuda/kernels/a.cuh": "#include <tile/a.hpp>\n#include <cuda_runtime.h>\n",
        "src/cuda/a.cu": '#include "kernels/a.cuh"\n#include <cuda/kernels/a.cuh>\n',
        "src/api/a.cpp": "#include <dense/a.hpp>\n  #  include <cuda/kernels/a.cuh>\n",
        "src/c/a.cpp": "#include <trifactor/a.hpp>\n",
        "tests/tile/a.cpp": "#include <tile/a.hpp>\n",
        "tests/dense/a.cpp": "#include <trifactor/testing.hpp>\n#include <trifactor/a.hpp>\n",
        "src/cuda/device/a.cuh": "#include <core/a.hpp>\n#include <tile/a.hpp>\n",
        "bench/variants/a.cu": '#include "a.hpp"\n#include <cuda/device/a.cuh>\n#include <tile/a.hpp>\n',
        "bench/variants/a.hpp": "#include <cublas_v2.h>\n",
        "src/cuda/device/mma.cuh": 'asm volatile("mma.sync;");\n',
        "tests/simt/cuda/device/mma.cuh": "#include <core/a.hpp>\n",
        "src/cuda/device/c.cuh": 'asm volatile("" : "+r"(x));\nasm("// branch");\n',
        "tools/a.cpp": "#include <commit.hpp>\n#include <trifactor/a.hpp>\n",
    }
    bad = {
        "include/trifactor/b.hpp": "#include <cuda_runtime.h>\n",
        "include/trifactor/c.hpp": "#include <core/a.hpp>\n",
        "src/core/b.hpp": '#include "../tile/a.hpp"\n',
        "src/dense/b.hpp": "#include <tile/a.hpp>\n",
        "src/dense/c.cpp": "#include <cblas.h>\n",
        "src/host/b.cpp": "#include <cuda/kernels/a.cuh>\n",
        "src/api/b.cpp": "#include <cublas_v2.h>\n",
        "src/api/c.cpp": "#include <metis.h>\n",
        "src/api/d.cpp": "#include <slu_ddefs.h>\n",
        "src/c/b.cpp": "#include <api/a.hpp>\n",
        "src/other/b.cpp": "\n",
        "src/core/utils.hpp": "\n",
        "tests/dense/b.cpp": "#include <core/a.hpp>\n",
        "tools/b.cpp": "#include <trifactor/testing.hpp>\n",
        "examples/b.cpp": "#include <tile/a.hpp>\n",
        "src/cuda/device/b.cuh": "#include <cuda/kernels/a.cuh>\n",
        "src/cuda/kernels/c.cuh": 'asm volatile(\n    "cp.async.wait_all;" ::: "memory");\n',
        "bench/b.cpp": "#include <tile/a.hpp>\n",
        "bench/variants/b.cu": "#include <cuda/kernels/a.cuh>\n",
        "bench/variants/c.cu": "#include <dense/a.hpp>\n",
        "bench/variants/d.cu": "#include <trifactor/a.hpp>\n",
    }
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in {**good, **bad}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        found = check(root)
        caught = {error.split(":")[0] for error in found}
        for name in bad.keys() - caught:
            print(f"self-test: the violation in {name} was not caught")
        for name in caught - bad.keys():
            print(f"self-test: {name} is in order but was refused")
        ok = caught == bad.keys() and all(re.match(r"[\w/.]+:1: ", error) for error in found)
    print("self-test passed" if ok else "self-test failed")
    return 0 if ok else 1


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(self_test())
    violations = check(pathlib.Path(__file__).parent.parent)
    print("\n".join(violations) or "every include keeps the table")
    sys.exit(1 if violations else 0)
