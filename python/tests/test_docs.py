"""Every public name has a docstring, every call and class an example, and the examples are right."""
import ast
import doctest
import importlib.resources
import inspect

import numpy as np
import pytest
import trifactor

sp = pytest.importorskip("scipy.sparse")


def documented(place=trifactor, prefix="trifactor"):
    members = place.__all__ if inspect.ismodule(place) else [m for m in vars(place) if not m.startswith("_")]
    for member in members:
        thing, name = getattr(place, member), f"{prefix}.{member}"
        if member.startswith("__"):
            continue
        yield name, thing
        if inspect.isclass(thing) or inspect.ismodule(thing):
            yield from documented(thing, name)


EVERYTHING = dict(documented())
WITHOUT_EXAMPLE = ("OutOfMemory", "DeviceFault", "SlogdetResult", "RefinedSolution", ".lower", ".shape", ".dtype",
                   ".sign", ".logabsdet", ".steps", ".x", ".backward_error")


@pytest.mark.parametrize("name", EVERYTHING)
def test_docstring(name):
    text = inspect.getdoc(EVERYTHING[name])
    assert text, f"{name} has no docstring"
    examples = doctest.DocTestParser().get_doctest(text, {"np": np, "sp": sp, "trifactor": trifactor}, name, None, None)
    if not name.endswith(WITHOUT_EXAMPLE):
        assert examples.examples, f"{name} has no example"
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    report = []
    runner.run(examples, out=report.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(report)


def test_every_function_is_typed():
    package = importlib.resources.files(trifactor)
    assert (package / "py.typed").is_file()
    for module in ("sparse.py", "_sparse_batch.py", "_sparse_lu.py"):
        for node in ast.walk(ast.parse((package / module).read_text())):
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                assert node.returns is not None, node.name
                assert all(a.annotation for a in node.args.args if a.arg != "self"), node.name
    tree = ast.parse((package / "_core.pyi").read_text())
    names = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    assert {"Cholesky", "LU", "cholesky", "lu", "solve", "inv", "slogdet"} <= names
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            assert node.returns is not None, node.name
            every = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
            assert all(a.annotation for a in every if a.arg != "self"), node.name
