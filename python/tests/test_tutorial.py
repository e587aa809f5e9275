"""docs/python.md: its blocks run in order, and what they print is what it says. README.md's run, too."""
import contextlib
import importlib.util
import io
import os
import pathlib
import re

import pytest
import trifactor

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "python.md"
BLOCK = re.compile(r"^```python ?([\w ]*)\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


def blocks():
    for match in BLOCK.finditer(PAGE.read_text()):
        line = PAGE.read_text()[:match.start()].count("\n") + 1
        yield line, match[1].split(), match[2], match[3]


def missing(need):
    if need == "cuda":
        return trifactor.info()["why_no_cuda"] and os.environ.get("TRIFACTOR_REQUIRE_CUDA") != "1"
    return importlib.util.find_spec(need) is None


def test_tutorial():
    pytest.importorskip("scipy")
    names, ran = {}, 0
    for line, needs, code, expected in blocks():
        program = compile("\n" * line + code, str(PAGE), "exec")
        if any(missing(need) for need in needs):
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(program, names)
        if expected is not None:
            assert printed.getvalue() == expected, f"{PAGE.name}:{line}"
        else:
            assert not printed.getvalue(), f"{PAGE.name}:{line} prints something that the page does not show"
        ran += 1
    assert ran >= 10


def test_readme(capsys):
    found = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert found
    for code in found:
        exec(code, {})
    assert "2.079" in capsys.readouterr().out
