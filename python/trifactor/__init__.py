"""Cholesky and LU of dense and sparse matrices, one or many, on the host and on NVIDIA GPUs.

>>> F = trifactor.cholesky([[4., 2.], [2., 5.]])
>>> F.solve([8., 6.])
array([1.75, 0.5 ])
"""

import atexit as _atexit
import os as _os

from ._core import LU, Cholesky, __version__, cholesky, info, inv, lu, release_queues, slogdet, solve
from ._core import leave_parents_queues as _leave_parents_queues
from ._errors import DeviceFault, NotPositiveDefinite, OutOfMemory, Singular
from ._results import SlogdetResult

__all__ = ["LU", "Cholesky", "DeviceFault", "NotPositiveDefinite", "OutOfMemory", "Singular", "SlogdetResult",
           "__version__", "cholesky", "info", "inv", "lu", "release_queues", "slogdet", "solve", "sparse"]

_atexit.register(release_queues)   # while CUDA's libraries are still loaded
_os.register_at_fork(after_in_child=_leave_parents_queues)


def __getattr__(name):
    if name == "sparse":   # imports SciPy
        import importlib
        return importlib.import_module(".sparse", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
