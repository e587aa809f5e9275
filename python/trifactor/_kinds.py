"""Arrays of other libraries: how the extension looks at them, and makes results of their kind.

An adaptor has, beside its name:
  immutable                       arrays that callers hold never change
  export(x)                       (x, a DLPack capsule), in the order of stream(...); or another array in place of x,
                                  whose memory does not hold its entries as they are
  stream(device)                  (address, owner) of the caller's current stream, or None where there is no such thing
  empty(like, shape, dtype, columns), copy(x, shape, dtype, columns)
                                  (array, address); address 0: the extension exports it. With columns, the entries of
                                  a column are neighbours; an immutable array then holds the transposes
  conj(x)                         in place, or (array, address) of an immutable one
  assign(target, x), shaped(x, size, shape), from_numpy(x, like), ones_like(x)
  nan(like)                       one entry, without dimensions
  transpose(x), adjoint(x), triangle(x, lower), unit_lower(x), upper(x)
  clear(x, lower)                 zeros in the other triangle, in place
"""

import numpy as np


class _Adaptor:
    """What array libraries with NumPy's names have in common; xp is the library."""

    name = "numpy"
    immutable = False

    def __init__(self, xp):
        self.xp = xp

    def assign(self, target, x):
        target[...] = x

    def shaped(self, x, size, shape):
        return x[:size].reshape(shape)

    def from_numpy(self, x, like):
        return x

    def ones_like(self, x):
        return self.xp.ones_like(x)

    def nan(self, like):
        return self.xp.full((), np.nan, like.dtype)

    def transpose(self, x):
        return self.xp.swapaxes(x, -1, -2)

    def adjoint(self, x):
        x = self.xp.swapaxes(x, -1, -2)
        return x.conj() if "complex" in str(x.dtype) else x

    def triangle(self, x, lower):
        return self.xp.tril(x) if lower else self.xp.triu(x)

    def unit_lower(self, x):
        k = min(x.shape[-2:])
        return self.xp.tril(x[..., :k], -1) + self.xp.eye(x.shape[-2], k, dtype=x.dtype)

    def upper(self, x):
        return self.xp.triu(x[..., :min(x.shape[-2:]), :])


def _swapped(shape):
    return (*shape[:-2], shape[-1], shape[-2])


class _Torch(_Adaptor):
    name = "torch"

    def __init__(self, torch):
        super().__init__(torch)
        self.types = {name: getattr(torch, name) for name in ("float32", "float64", "complex64", "complex128", "int32")}
        self.to_dlpack = torch.utils.dlpack.to_dlpack
        self.raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)

    def export(self, x):
        if x.requires_grad:
            raise TypeError("the tensor requires gradients, which trifactor does not record: pass x.detach()")
        if x.is_conj() or x.is_neg():
            x = x.resolve_conj().resolve_neg()
        if x.layout != self.xp.strided:
            raise TypeError(f"the tensor has layout {x.layout} but must be strided")
        return x, self.to_dlpack(x)   # PyTorch's own current stream is used, so there is nothing to wait for

    def stream(self, device):
        if self.raw_stream is not None:
            return self.raw_stream(device), None
        return self.xp.cuda.current_stream(device).cuda_stream, None

    def empty(self, like, shape, dtype, columns):
        if columns:
            *outer, m, n = shape
            strides, step = [1, max(m, 1)], m * n
            for extent in reversed(outer):
                strides.insert(0, step)
                step *= extent
            x = like.new_empty_strided(shape, strides, dtype=self.types[dtype])
        else:
            x = like.new_empty(shape, dtype=self.types[dtype])
        return x, x.data_ptr()

    def copy(self, x, shape, dtype, columns):
        y, address = self.empty(x, shape, dtype, columns)
        y.copy_(x)
        return y, address

    def assign(self, target, x):
        target.copy_(x)

    def conj(self, x):
        x.conj_physical_()

    def from_numpy(self, x, like):
        return self.xp.from_numpy(x).to(like.device)

    def nan(self, like):
        return like.new_full((), np.nan)

    def clear(self, x, lower):
        x.tril_() if lower else x.triu_()

    def transpose(self, x):
        return x.mT

    def adjoint(self, x):
        return x.mH

    def unit_lower(self, x):
        k = min(x.shape[-2:])
        return self.xp.tril(x[..., :k], -1) + self.xp.eye(x.shape[-2], k, dtype=x.dtype, device=x.device)


class _Cupy(_Adaptor):
    name = "cupy"

    def export(self, x):
        return x, x.__dlpack__(stream=self.stream(x.device.id)[0] or 1)   # 1 is the default stream

    def stream(self, device):
        with self.xp.cuda.Device(device):
            current = self.xp.cuda.get_current_stream()
        return current.ptr, current

    def empty(self, like, shape, dtype, columns):
        with like.device:
            x = self.xp.empty(_swapped(shape) if columns else shape, dtype=dtype)
        return (self.xp.swapaxes(x, -1, -2) if columns else x), x.data.ptr

    def copy(self, x, shape, dtype, columns):
        y, address = self.empty(x, shape, dtype, columns)
        with x.device:
            y[...] = x
        return y, address

    def conj(self, x):
        with x.device:
            self.xp.conjugate(x, out=x)

    def assign(self, target, x):
        with target.device:
            target[...] = x

    def clear(self, x, lower):
        with x.device:
            x[...] = self.triangle(x, lower)

    def nan(self, like):
        with like.device:
            return super().nan(like)

    def from_numpy(self, x, like):
        with like.device:
            return self.xp.asarray(x)


class _Jax(_Adaptor):
    """A new array is written before anybody else sees it."""

    name = "jax"
    immutable = True

    def __init__(self, jax):
        import jax.numpy as jnp
        super().__init__(jnp)
        self.jax = jax

    def export(self, x):
        if isinstance(x, self.jax.core.Tracer):
            raise TypeError("the array is traced: trifactor works on JAX's arrays outside of jit, grad and vmap")
        kind, device = x.__dlpack_device__()
        if int(kind) != 2:
            return x, x.block_until_ready().__dlpack__()
        from ._core import own_stream
        return x, x.__dlpack__(stream=own_stream(device))

    def stream(self, device):
        return None

    def _made(self, x, dtype):
        if str(x.dtype) != dtype:
            raise TypeError(f"JAX makes {x.dtype} in place of {dtype}: set jax_enable_x64")
        return x.block_until_ready(), 0

    def _beside(self, like, make):
        """make() on the device of `like`, and bound to it: later work on the result stays there too."""
        device = next(iter(like.devices()))
        with self.jax.default_device(device):
            return self.jax.device_put(make(), device)

    def empty(self, like, shape, dtype, columns):
        x = self._beside(like, lambda: self.xp.empty(_swapped(shape) if columns else shape, dtype=dtype))
        return self._made(x, dtype)

    def copy(self, x, shape, dtype, columns):
        x = self.xp.broadcast_to(x, shape)
        return self._made(self.xp.array(self.xp.swapaxes(x, -1, -2) if columns else x, dtype=dtype, copy=True), dtype)

    def assign(self, target, x):
        raise TypeError("JAX's arrays do not change: out must be None")

    def conj(self, x):
        return self._beside(x, lambda: self.xp.array(self.xp.conj(x), copy=True)), 0

    def nan(self, like):
        return self._beside(like, lambda: super(_Jax, self).nan(like))

    def from_numpy(self, x, like):
        return self.jax.device_put(x, next(iter(like.devices())))


NUMPY = _Adaptor(np)
_found = {}


def find(x):
    """The adaptor for an object, or None where NumPy takes it."""
    for base in type(x).__mro__:
        library = base.__module__.partition(".")[0]
        if library in ("torch", "cupy", "jax", "jaxlib") and hasattr(x, "shape"):
            return _adaptor("jax" if library == "jaxlib" else library)
        if library == "numpy":
            return None
    if hasattr(x, "__dlpack__") and not hasattr(x, "__array__") and not isinstance(x, (list, tuple)):
        raise TypeError(f"arrays of {type(x).__module__}.{type(x).__qualname__} are not known: pass one of NumPy, "
                        "PyTorch, CuPy or JAX, which from_dlpack of these makes without a copy")
    return None


def _adaptor(library):
    if library not in _found:
        import importlib
        _found[library] = {"torch": _Torch, "cupy": _Cupy, "jax": _Jax}[library](importlib.import_module(library))
    return _found[library]
