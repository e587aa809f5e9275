"""What calls return, beside arrays and factors."""

from typing import Any, NamedTuple


class SlogdetResult(NamedTuple):
    """det A = sign * exp(logabsdet)."""

    sign: Any
    logabsdet: Any


class RefinedSolution(NamedTuple):
    """A solution after iterative refinement."""

    x: Any
    steps: int
    backward_error: float
