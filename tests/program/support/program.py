"""The program under test, run from outside, and Matrix Market files written and read without its help."""
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else None


def main():
    """Runs the tests of the calling script: python3 test_x.py PATH_OF_TRIFACTOR [unittest's own arguments]"""
    if PROGRAM is None or not os.access(PROGRAM, os.X_OK):
        sys.exit("usage: %s PATH_OF_TRIFACTOR" % sys.argv[0])
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:])


def run(*arguments, **options):
    """What `trifactor arguments...` did: returncode, stdout, stderr."""
    return subprocess.run([PROGRAM] + [str(a) for a in arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=300, **options)


@functools.cache
def info():
    return json.loads(run("info", "--json").stdout)


def has_scalar(name):
    return name in info()["scalars"]


def has_gpu():
    return any(device["number"] is not None for device in info()["devices"])


def why_no_gpu():
    """What --device cuda is answered where there is no GPU."""
    return info()["why_no_cuda"] + "; run without --device cuda"


def has_address_sanitizer():
    with open(PROGRAM, "rb") as file:
        return b"__asan_init" in file.read()


class ProgramTest(unittest.TestCase):
    """A test with an empty folder of its own, in which the program runs."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="trifactor-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        return name

    def read(self, name):
        with open(self.path(name)) as file:
            return file.read()

    def files(self):
        return sorted(os.listdir(self.folder))

    def run_here(self, *arguments, **options):
        return run(*arguments, cwd=self.folder, **options)

    def succeed(self, *arguments, **options):
        done = self.run_here(*arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def succeed_json(self, *arguments, **options):
        """The objects that the program printed, one a line."""
        return [json.loads(line) for line in self.succeed(*arguments, "--json", **options).splitlines()]

    def fail_with(self, status, message, *arguments, **options):
        done = self.run_here(*arguments, **options)
        self.assertEqual(done.returncode, status, done.stderr + done.stdout)
        self.assertRegex(done.stderr, "^trifactor: ")
        self.assertIn(message, done.stderr)
        return done


def misaligned(lines):
    """The cells of a table, its heading and its rows, that begin and end elsewhere than their title; a title or cell ends at
    two blanks."""
    titles, *rows = [[(m.group(), m.start(), m.end()) for m in re.finditer(r"\S+( \S+)*", line)] for line in lines]
    return [(cell, title) for row in rows for cell, title in zip(row, titles, strict=True)
            if cell[1] != title[1] and cell[2] != title[2]]


def word(value, field):
    if field == "complex":
        return "%r %r" % (complex(value).real, complex(value).imag)
    return "%d" % value if field == "integer" else repr(float(value))


def matrix_market(rows, format, field, symmetry):
    """The file that holds a dense matrix, given as a list of rows."""
    m, n = len(rows), len(rows[0]) if rows else 0
    first = {"general": lambda j: 0, "skew-symmetric": lambda j: j + 1}.get(symmetry, lambda j: j)
    places = [(i, j) for j in range(n) for i in range(first(j), m)]
    lines = ["%%%%MatrixMarket matrix %s %s %s" % (format, field, symmetry)]
    if format == "array":
        lines.append("%d %d" % (m, n))
        lines += [word(rows[i][j], field) for i, j in places]
    else:
        places = [(i, j) for i, j in places if rows[i][j] != 0]
        lines.append("%d %d %d" % (m, n, len(places)))
        for i, j in places:
            lines.append("%d %d%s" % (i + 1, j + 1, "" if field == "pattern" else " " + word(rows[i][j], field)))
    return "\n".join(lines) + "\n"


def parse_array(text):
    """The rows of an array file as the program writes it."""
    lines = text.splitlines()
    banner = lines[0].split()
    assert banner[:3] == ["%%MatrixMarket", "matrix", "array"] and banner[4] == "general", lines[0]
    m, n = map(int, lines[1].split())
    numbers = [list(map(float, line.split())) for line in lines[2:]]
    assert len(numbers) == m * n and all(len(v) == (2 if banner[3] == "complex" else 1) for v in numbers), text
    values = [complex(*v) if len(v) == 2 else v[0] for v in numbers]
    return [[values[i + j * m] for j in range(n)] for i in range(m)]


def product(A, X):
    return [[sum(A[i][k] * X[k][j] for k in range(len(X))) for j in range(len(X[0]))] for i in range(len(A))]
