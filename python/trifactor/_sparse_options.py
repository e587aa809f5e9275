"""Arguments of sparse Cholesky: what the caller says, checked, as the extension takes it."""

import operator
import reprlib

import numpy as np

from ._patterns import is_cupy, to_host

ORDERINGS = {"default": "auto", "best": "auto", "auto": "auto", "amd": "amd", "colamd": "amd", "metis": "metis",
             "nesdis": "metis", "natural": "natural"}
LU_ORDERINGS = {name: name for name in ("colamd", "amd", "natural")}


def ordering_named(argument, value, known):
    """The extension's name of an ordering, and its permutation or None."""
    if isinstance(value, str):
        if value in known:
            return known[value], None
    else:
        permutation = np.asarray(to_host(value))
        if permutation.ndim == 1 and (permutation.dtype.kind in "iu" or permutation.size == 0):
            return "given", permutation
    raise ValueError(f"{argument} = {reprlib.repr(value)} must be one of {', '.join(map(repr, known))}, or a "
                     "permutation of integers")


def device_number(device, A):
    """The number of a CUDA device, or -1."""
    if device is None:
        return A.data.device.id if is_cupy(A) else -1
    name, _, number = str(device).partition(":")
    if name in ("cpu", "host") and not number:
        return -1
    if name == "cuda" and (number.isdigit() or not number):
        return int(number or 0)
    raise ValueError(f"device = {device!r} must be 'cpu', 'cuda', 'cuda:1' or None")


def byte_count(name, value):
    """A number of bytes, or 0 for None."""
    if value is None:
        return 0
    try:
        count = 0 if isinstance(value, (bool, np.bool_)) else operator.index(value)
    except TypeError:
        count = 0
    if not 1 <= count < 2 ** 63:
        raise ValueError(f"{name} = {value!r} must be a whole number from 1 to 2**63 - 1, or None")
    return count
