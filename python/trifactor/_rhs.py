"""Right-hand sides of sparse factors, as callers give them."""

import numpy as np

from . import _kinds
from ._patterns import HELD, HELD_BY_PARTS, NAMES, check_held, of_known_dtype
from ._results import RefinedSolution


def solved(b, dtype, solve):
    """solve(x) with x an array of what b holds: any array, a list, or a sparse matrix, for which one is returned.

    dtype: the factor's. Where that is real and b complex, solve is called for both parts.
    """
    x = b.toarray() if hasattr(b, "tocsc") else b
    if _kinds.find(x) is None:
        x = np.asarray(x)
        x = of_known_dtype(x.astype(dtype) if x.dtype.kind in "iub" else x, "b has")
    given = NAMES.get(x.dtype) or str(x.dtype).rpartition(".")[2]   # PyTorch writes torch.float64
    parts = given.startswith("complex") and dtype.startswith("float")
    if given in HELD:   # the extension refuses others
        check_held("b", given, dtype, HELD_BY_PARTS if parts else HELD)
    x = solve(x.real) + 1j * solve(x.imag) if parts else solve(x)
    return type(b.tocsc())(x) if hasattr(b, "tocsc") else x


def refined(b, dtype, solve):
    """The same where solve returns a solution, the steps and the backward error: of two parts the larger ones."""
    found = []

    def one(x):
        found.append(solve(x))
        return found[-1][0]

    x = solved(b, dtype, one)
    return RefinedSolution(x, max(f[1] for f in found), float(np.max([f[2] for f in found])))
