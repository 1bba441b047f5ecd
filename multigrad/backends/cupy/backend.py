"""CuPy, through array-api-compat: atomic scatters, ownership by reference count, device arrays.

An out-of-bounds index wraps around in CuPy, both when reading and when adding, so the two stay
adjoint. Atomic additions have no fixed order, so the last bits of a sum over repeated indices may
differ from run to run.
"""

from __future__ import annotations

import operator
import sys
from functools import lru_cache, partial
from typing import Any

from ...errors import NoDeviceError
from ..kernels import SOLE_OWNER, kernels_of
from ..raw import form
from ..spec import Backend

cp: Any
cupyx: Any
xp: Any


def make() -> Backend:
    """Make the backend of CuPy arrays. Raises NoDeviceError if there is no driver or no device."""
    global cp, cupyx, xp
    import cupy as cp

    count = _count_devices()
    import array_api_compat.cupy as xp
    import cupyx

    return Backend(
        "cupy",
        xp,
        (cp.ndarray,),
        functions={
            "add": operator.add,
            "subtract": operator.sub,
            "multiply": operator.mul,
            "divide": operator.truediv,
            "negative": operator.neg,
            "abs": operator.abs,
            "matmul": operator.matmul,
            "pow": operator.pow,
            "clip": form("clip", xp),
            "isdtype": lru_cache(maxsize=1024)(xp.isdtype),
            "scatter_add": scatter_add,
            "setitem": setitem,
            "unindex": unindex,
        },
        kernels=kernels_of(globals()),
        # CuPy ignores the device of the operands: each variant makes a device the current one
        variants={f"device{i}": partial(cp.cuda.Device, i) for i in range(1, count)},
    )


def _count_devices() -> int:
    """The number of CUDA devices.

    CuPy imports without a device; then even an empty array raises.
    """
    cause = None
    try:
        count = int(cp.cuda.runtime.getDeviceCount())
    except cp.cuda.runtime.CUDARuntimeError as error:
        count, cause = 0, error
    if count == 0:
        reason = "" if cause is None else f" ({cause})"
        raise NoDeviceError(
            f"backend 'cupy': CuPy {cp.__version__} is installed but finds no CUDA device{reason}. "
            "Check with nvidia-smi that a driver is installed, and that CUDA_VISIBLE_DEVICES "
            "hides no device."
        ) from cause
    return count


# ----- scatters -----


def scatter_add(values: Any, indices: Any, /, n: int) -> Any:
    return _added(values, indices, (n, *values.shape[1:]))


def unindex(values: Any, /, key: Any, shape: tuple[int, ...]) -> Any:
    entries = key if isinstance(key, tuple) else (key,)
    # no element is selected twice
    if all(not hasattr(k, "dtype") or k.dtype.kind == "b" for k in entries):
        with values.device:
            result = cp.zeros(shape, values.dtype)
            result[key] = values
        return result
    return _added(values, key, shape)


def _added(values: Any, key: Any, shape: tuple[int, ...]) -> Any:
    dtype = values.dtype
    with values.device:
        if dtype.kind in "fc" or dtype in (cp.int32, cp.uint32, cp.uint64):
            result = cp.zeros(shape, dtype)
            cupyx.scatter_add(result, key, values)
            return result
        # The hardware adds only these types. Integers wrap around like unsigned ones, and narrow
        # ones fit into these types.
        result = cp.zeros(shape, cp.uint64)
        cupyx.scatter_add(result, key, values.astype(cp.int64).view(cp.uint64))
        return (result != 0) if dtype.kind == "b" else result.view(cp.int64).astype(dtype)


def setitem(x: Any, key: Any, value: Any, /) -> Any:
    with x.device:
        result = x.copy()
        result[key] = value
    return result


# ----- kernels -----


def is_c_contiguous(xp: Any, x: Any) -> bool:
    return bool(x.flags.c_contiguous)


def shares_memory(xp: Any, x: Any, y: Any) -> bool:
    return x.base is not None and (x.base is y or x.base is y.base)


def place_like(xp: Any, g: Any, like: Any) -> Any:
    if like is None or g.device == like.device:
        return g
    with like.device:
        return cp.asarray(g)  # CuPy's way to copy between devices


def take_ownership(xp: Any, g: Any, like: Any) -> Any:
    """`g` itself if it provably has no other owner (see numpy.take_ownership), else a dense copy.

    The result is on the device of `like`.
    """
    fits = like is None or g.shape != like.shape or g.strides == like.strides
    if fits and type(g) is cp.ndarray and g.base is None and sys.getrefcount(g) <= SOLE_OWNER:
        flags = g.flags
        if (
            flags.owndata
            and (flags.c_contiguous or flags.f_contiguous)
            and (like is None or g.device == like.device)
        ):
            return g
    with (g if like is None else like).device:
        if like is None or g.shape != like.shape:
            return cp.array(g, order="K")
        result = cp.empty_like(like, dtype=g.dtype)
        result[...] = place_like(xp, g, like)
        return result


_constants: dict[Any, Any] = {}


def constant(xp: Any, value: Any, dtype: Any, device: Any) -> Any:
    """`value` as a 0-d array on its device, cached: each new one is copied from the host."""
    if device is None:
        device = cp.cuda.Device()
    key = (repr(value), type(value), dtype, device.id)
    out = _constants.get(key)
    if out is None:
        if len(_constants) >= 1024:
            _constants.clear()
        with device:
            out = _constants[key] = cp.asarray(value, dtype=dtype)
    return out


def to_numpy(xp: Any, x: Any, copy: bool | None = None) -> Any:
    """Copy to host memory: CuPy refuses implicit copies."""
    if copy is False:
        raise ValueError(
            "to_numpy(copy=False): NumPy cannot share the memory of a device. Leave out copy=False."
        )
    return x.get()


def from_numpy(xp: Any, x: Any) -> Any:
    return cp.asarray(x)


def devices(xp: Any) -> tuple[Any, ...]:
    return tuple(cp.cuda.Device(i) for i in range(cp.cuda.runtime.getDeviceCount()))


def synchronize(xp: Any, x: Any) -> None:
    with x.device:
        cp.cuda.get_current_stream().synchronize()


def accelerator(xp: Any, x: Any) -> str:
    """The kind of device: CuPy's arrays are on CUDA or ROCm devices."""
    return "rocm" if cp.cuda.runtime.is_hip else "cuda"


def mark(xp: Any, x: Any) -> Any:
    """A recorded event on the current stream of the device of `x`, and that device."""
    with x.device as device:
        event = cp.cuda.Event()
        event.record()
        return event, device.id


def elapsed(xp: Any, start: Any, end: Any) -> float:
    """The microseconds between two events, or None if the array moved to another device.

    CuPy measures milliseconds.
    """
    (first, device), (last, other) = start, end
    last.synchronize()
    return float(cp.cuda.get_elapsed_time(first, last)) * 1000 if device == other else 0.0


def storage(xp: Any, x: Any) -> tuple[Any, int]:
    """The array that owns the memory of `x`."""
    while x.base is not None:
        x = x.base
    return x, int(x.nbytes)
