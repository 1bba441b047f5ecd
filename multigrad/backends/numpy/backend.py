"""NumPy: operators and ufunc methods instead of its slower wrappers, native scatters, ownership.

Ownership is decided by reference counts. Every number in a comment was measured with NumPy 2.4 on
Python 3.11, on one thread, side by side, for ten elements unless stated otherwise.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from functools import cache, lru_cache
from typing import Any

import array_api_compat.numpy as xp
import numpy as np

from ..kernels import (
    SEVERAL,
    SOLE_LISTED,
    SOLE_OWNER,
    SOLE_VIEW,
    base_references,
    is_dense,
    kernels_of,
    over_several,
    references,
    without_leading,
)
from ..raw import form
from ..spec import Backend
from . import beyond

_seen_modes: tuple[Any, Any] = None, None
"""The np.errstate setting that was looked up last, and the result of np.geterr() for it."""


def make() -> Backend:
    """Make the backend of NumPy arrays and NumPy scalars.

    NumPy returns scalars where the standard has 0-d arrays.
    """
    backend = Backend(
        "numpy",
        xp,
        (np.ndarray, np.generic),
        scalar_types=(np.generic,),
        # `*` is a matrix product for np.matrix; derivatives would lose the mask of a masked array
        refused_types=(np.matrix, np.ma.MaskedArray),
        plain_types=(np.memmap,),
        functions=FUNCTIONS | beyond.functions(lambda: backend),
        kernels=kernels_of(globals()) | {"from_numpy": lambda xp, x: x},
    )
    return backend


# ----- Functions -----


def _accumulated(reduce: Any) -> Callable[..., Any]:
    """A reduction by a method of a ufunc: 1.1 us a call, where NumPy's own function takes 3.2."""

    def function(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
        if x.itemsize == 2 and x.dtype.char == "e" and (dtype is None or dtype == x.dtype):
            # NumPy adds float16 in float32 only along a contiguous axis: along others
            # 2048 + 1 is 2048. A product of 1000 * 1000 is infinite, whatever comes next.
            return reduce(x, axis, np.float32, None, keepdims).astype(x.dtype)
        return reduce(x, axis, dtype, None, keepdims)

    return function


def _extreme(reduce: Any) -> Callable[..., Any]:
    def function(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
        return reduce(x, axis, None, None, keepdims)

    return function


# The stubs of NumPy 2.5 have no overload for a keepdims that is only known at run time.
_add: Any = np.add.reduce
_average: Any = np.mean


def mean(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    if x.dtype.kind != "f" or x.dtype.itemsize == 2:
        return _average(x, axis=axis, keepdims=keepdims)  # for float16, NumPy adds in float32
    total = _add(x, axis, None, None, keepdims)
    # Like np.mean, a sum divided by a count: 1.8 us instead of 5.6. Where there is no sum, the
    # count does not matter.
    return total / (x.size // total.size if total.size else 1)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    # as for sum: the squares of ten 200s add up to inf
    if x.itemsize == 2 and x.dtype.char == "e":
        wide = x.astype(np.float32)
        return xp.linalg.vector_norm(wide, axis=axis, keepdims=keepdims, ord=ord).astype(x.dtype)
    # 1.4 us instead of 4.3
    if axis is None and not keepdims and ord == 2 and x.dtype.kind == "f":
        x = x.ravel()
        return np.sqrt(x.dot(x))
    return xp.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)


# Changes of the shape by methods of the array take 0.3 to 0.6 us instead of 0.7 to 2.9.


def reshape(x: Any, /, shape: Any, *, copy: bool | None = None) -> Any:
    return x.reshape(shape) if copy is None else xp.reshape(x, shape, copy=copy)


def permute_dims(x: Any, /, axes: Any) -> Any:
    return x.transpose(axes)


def squeeze(x: Any, /, axis: Any) -> Any:
    return x.squeeze(axis)


def expand_dims(x: Any, /, axis: Any) -> Any:
    n = x.ndim + 1
    if type(axis) is not int or not -n <= axis < n:
        return xp.expand_dims(x, axis=axis)
    shape = x.shape
    axis %= n
    return x.reshape((*shape[:axis], 1, *shape[axis:]))


def broadcast_to(x: Any, /, shape: Any) -> Any:
    # For one element, the gradient of every full sum: 0.9 us instead of 3.7; read-only, as NumPy's
    # result.
    if x.ndim or type(shape) is not tuple or x.dtype.kind not in "fciub":
        return np.broadcast_to(x, shape)
    result: Any = np.ndarray(shape, x.dtype, x, 0, (0,) * len(shape))
    result.setflags(write=False)
    return result


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Any:
    return x.take(indices, axis)


def sign(x: Any, /) -> Any:
    # The wrapper corrects other libraries' nan and older NumPy's complex signs: 2.8 us instead of
    # 0.6.
    return xp.sign(x) if x.dtype.kind == "c" else np.sign(x)


_limited = form("clip", xp)


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    # 1.5 us instead of 16.6, where all dtypes agree.
    if x.dtype.kind != "f" or not all(
        type(b) is float or getattr(b, "dtype", "") == x.dtype for b in (min, max)
    ):
        # a NumPy integer counts as Python's: it limits floats, too
        min, max = (int(b) if isinstance(b, np.integer) else b for b in (min, max))
        return _limited(x, min, max)
    return np.minimum(np.maximum(x, min), max)


def _scan(theirs: Callable[..., Any], ufunc: Any, initial: int) -> Callable[..., Any]:
    """A cumulative sum or product by the ufunc's `accumulate`, which is faster than `theirs`.

    A call takes 0.9 us instead of 3.5; with the initial element, which the rule of cumulative_prod
    needs, 2 us instead of 6.
    """

    def scan(
        x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
    ) -> Any:
        # as for sum
        if x.itemsize == 2 and x.dtype.char == "e" and (dtype is None or dtype == x.dtype):
            return scan(x.astype(np.float32), axis=axis, include_initial=include_initial).astype(
                x.dtype
            )
        if axis is None:
            if x.ndim != 1:
                return theirs(x, axis=axis, dtype=dtype, include_initial=include_initial)
            axis = 0
        if not include_initial:
            return ufunc.accumulate(x, axis, dtype)
        if (
            x.dtype.kind not in "fc"
            or (dtype is not None and dtype != x.dtype)
            or not -x.ndim <= axis < x.ndim
        ):
            return theirs(x, axis=axis, dtype=dtype, include_initial=True)
        axis %= x.ndim
        before = x.shape[:axis]
        result = np.empty((*before, x.shape[axis] + 1, *x.shape[axis + 1 :]), x.dtype)
        result[(slice(None),) * axis + (0,)] = initial
        ufunc.accumulate(x, axis, out=result[(slice(None),) * axis + (slice(1, None),)])
        return result

    return scan


def pow(x1: Any, x2: Any, /) -> Any:
    """Powers, with products for the exponents 3 and 4.

    NumPy is fast where the exponent is a Python number, except that 3 and 4 take 58 ns per element.
    As products these take 0.5 ns, and are as exact for float32 and wider (at most one rounding
    more, 1.5 ulp in all).
    """
    kind = type(x2)
    if kind is not float and kind is not int:
        if (
            type(x1) is not np.ndarray
            or getattr(x2, "ndim", None) != 0
            or x1.dtype != x2.dtype
            or x2.dtype.kind != "f"
        ):
            return x1**x2
        x2 = x2.item()
    is_third_or_fourth = x2 in (3, 4) and type(x1) is np.ndarray
    if is_third_or_fourth and x1.dtype.kind in "fc" and x1.dtype.itemsize > 2:
        return x1 * x1 * x1 if x2 == 3 else np.square(x1 * x1)
    return x1**x2


def getitem(x: Any, /, key: Any) -> Any:
    """`x[key]`; a 0-d result is an array on the memory of x.

    NumPy returns a scalar there, which does not see later writes.
    """
    part = x[key]
    if type(part) is np.ndarray or isinstance(x, np.generic):
        return part
    return x[(*key, ...)] if isinstance(key, tuple) else x[key, ...]


def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """A diagonal of each matrix, as a writable view; NumPy's own view is read-only."""
    rows, columns = x.shape[-2:]
    length = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    start = max(-offset, 0), max(offset, 0)
    return np.einsum(
        "...ii->...i", x[..., start[0] : start[0] + length, start[1] : start[1] + length]
    )


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    if device is not None and device != "cpu":
        raise ValueError(f"Unsupported device for NumPy: {device!r}")
    return x.astype(dtype, copy=copy)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
    """An array on the memory of `x`, or a writable copy.

    NumPy makes a copy read-only if `x` is read-only.
    """
    out = np.from_dlpack(x, device=device, copy=copy)
    return out.copy() if copy and not out.flags.writeable else out


# ----- scatters -----


def scaled(x: Any, /, by: Any) -> Any:
    return x * by.value


def scatter_add(values: Any, indices: Any, /, n: int) -> Any:
    """Add rows by index. See `ops/kernels.py`; an out-of-bounds index raises IndexError.

    bincount adds in float64. For 1e5 values it takes 0.15 ms, and add.at takes 0.2. For 1e4 rows of
    64, on flattened indices, it takes 2.6 ms instead of 10. Rows of 256 and more are faster one by
    one.
    """
    if (
        values.dtype.kind not in "fc"
        or values.dtype.itemsize > 16
        or (values.dtype.itemsize > 8 and values.dtype.kind == "f")
    ):
        result = np.zeros((n, *values.shape[1:]), values.dtype)
        np.add.at(result, indices, values)
        return result
    k = math.prod(values.shape[1:])
    if k >= 256 and indices.size:
        total = np.zeros(
            (n, *values.shape[1:]), np.float32 if values.dtype.itemsize == 2 else values.dtype
        )
        for i, row in zip(indices.tolist(), values, strict=True):
            total[i] += row
        return total.astype(values.dtype, copy=False)
    places = indices.astype(np.intp, copy=False)
    if k != 1:
        places = (places[:, None] * k + np.arange(k)).reshape(-1)
    flat = values.reshape(-1)
    if values.dtype.kind == "c":
        sums = np.empty(n * k, values.dtype)
        sums.real = _sums(places, flat.real, n, k)
        sums.imag = _sums(places, flat.imag, n, k)
    else:
        sums = _sums(places, flat, n, k).astype(values.dtype, copy=False)
    return sums.reshape((n, *values.shape[1:]))


def _sums(places: Any, weights: Any, n: int, k: int) -> Any:
    size = n * k
    try:
        sums = np.bincount(places, weights, size)
    except ValueError:  # a negative index counts from the end
        if places.size and places.min() < -size:
            raise IndexError(
                f"index {places.min() // k} is out of bounds for axis 0 with size {n}"
            ) from None
        sums = np.bincount(np.where(places < 0, places + size, places), weights, size)
    if len(sums) > size:
        raise IndexError(f"index {(len(sums) - 1) // k} is out of bounds for axis 0 with size {n}")
    return sums


def unindex(values: Any, /, key: Any, shape: tuple[int, ...]) -> Any:
    entries = key if isinstance(key, tuple) else (key,)
    result: Any
    if all(
        isinstance(k, (int, np.integer, slice)) or k is None or k is Ellipsis or _is_mask(k)
        for k in entries
    ):
        result = np.zeros(shape, values.dtype)
        result[key] = values
        return result
    if len(entries) <= len(shape) and all(
        isinstance(k, np.ndarray) and k.dtype.kind in "iu" for k in entries
    ):
        places: Any = 0
        for k, length in zip(entries, shape, strict=False):
            places = places * length + np.where(k < 0, k + length, k).astype(np.intp, copy=False)
        rows = values.reshape((places.size, *shape[len(entries) :]))
        return scatter_add(rows, places.reshape(-1), math.prod(shape[: len(entries)])).reshape(
            shape
        )
    result = np.zeros(shape, values.dtype)
    np.add.at(result, key, values)
    return result


def _is_mask(entry: Any) -> bool:
    return isinstance(entry, (np.ndarray, np.generic)) and entry.dtype.kind == "b"


def setitem(x: Any, key: Any, value: Any, /) -> Any:
    result = np.array(x)
    try:
        result[key] = value
    except (TypeError, ValueError):  # for one element, NumPy takes no value with axes
        fitting = without_leading(value, result[key].ndim)
        if fitting is None:
            raise
        result[key] = fitting
    return result


FUNCTIONS: dict[str, Callable[..., Any]] = {
    # Python operators: as fast as ufuncs on arrays, and 8 times as fast on NumPy scalars (0.1 us
    # instead of 0.9)
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "negative": operator.neg,
    "abs": operator.abs,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "matrix_transpose": operator.attrgetter("mT"),
    "real": operator.attrgetter("real"),
    # NumPy's own functions have every parameter of the standard since 2.1, at half the time of the
    # wrappers
    **{name: getattr(np, name) for name in ("asarray", "empty", "full", "matmul", "ones", "zeros")},
    **{name: getattr(np, name) for name in ("empty_like", "ones_like", "zeros_like")},
    **{f"fft.{name}": over_several(getattr(np.fft, name)) for name in SEVERAL},
    # 1.5 us without this; rules call it often
    "isdtype": lru_cache(maxsize=1024)(np.isdtype),
    "sum": _accumulated(_add),
    "prod": _accumulated(np.multiply.reduce),
    "max": _extreme(np.maximum.reduce),
    "min": _extreme(np.minimum.reduce),
    "cumulative_prod": _scan(xp.cumulative_prod, np.multiply, 1),
    "cumulative_sum": _scan(xp.cumulative_sum, np.add, 0),
    "linalg.diagonal": diagonal,
    "linalg.vector_norm": vector_norm,
    **{f.__name__: f for f in (astype, clip, from_dlpack, getitem, mean, pow, setitem, sign)},
    **{f.__name__: f for f in (broadcast_to, expand_dims, permute_dims, reshape, squeeze, take)},
    **{f.__name__: f for f in (scaled, scatter_add, unindex)},
}


# ----- kernels -----


def compile(xp: Any, program: Any, *, arena: int) -> Callable[..., Any]:
    from .program import compiled  # imported here: only programs that compile need it

    return compiled(xp, program, arena=arena)


def device(xp: Any, x: Any) -> str:
    return "cpu"


def modes(xp: Any) -> Any:
    """The setting of `np.errstate`, as `np.geterr()` returns it.

    np.geterr() runs only if the setting differs from the last one.
    """
    global _seen_modes
    setting = _setting()
    if setting is None:
        return np.geterr()
    now = setting.get(None)
    last, state = _seen_modes
    if last is not now or state is None:
        state = np.geterr()
        _seen_modes = now, state
    return state


@cache
def _setting() -> ContextVar[Any] | None:
    """The context variable of `np.errstate`, which has no public name.

    It is None if it does not exist, as before NumPy 2.
    """

    def entered() -> ContextVar[Any] | None:
        before = set(copy_context())
        with np.errstate():
            new = [v for v in copy_context() if v not in before]
        return new[0] if len(new) == 1 else None

    return Context().run(entered)


def storage(xp: Any, x: Any) -> tuple[Any, int]:
    """The array that owns the memory of `x`, or the object that NumPy got the memory from."""
    while getattr(x, "base", None) is not None:
        x = x.base
    return x, getattr(x, "nbytes", 0)


def write(xp: Any, x: Any, value: Any) -> Any:
    """Write `value` into `x`; a NumPy scalar, which is immutable, is replaced by an array."""
    if type(x) is not np.ndarray and isinstance(x, np.generic):
        return np.array(value, x.dtype)
    x[...] = value
    return x


_constants: dict[Any, Any] = {}


def constant(xp: Any, value: Any, dtype: Any, device: Any) -> Any:
    """`value` as a 0-d array, cached: 0.15 us instead of 1.5.

    It is 0.28 us faster in the operation than a Python scalar.
    """
    kind = type(value)
    # 0.0 and -0.0 are equal, and so are 1, 1.0 and True; both parts of a complex number may be
    # -0.0.
    key = (repr(value) if kind is complex or value == 0 else value, kind, dtype)
    out = _constants.get(key)
    if out is None:
        if len(_constants) >= 1024:
            _constants.clear()
        out = np.asarray(value, dtype=dtype)
        out.setflags(write=False)
        _constants[key] = out
    return out


def to_numpy(xp: Any, x: Any, copy: bool | None = None) -> Any:
    return np.asarray(x, copy=copy)


def is_c_contiguous(xp: Any, x: Any) -> bool:
    return bool(x.flags.c_contiguous)


def shares_memory(xp: Any, x: Any, y: Any) -> bool:
    """Whether `x` is a view of `y` or of its base: both then share memory."""
    base = getattr(x, "base", None)
    return base is y or (base is not None and base is y.base) or bool(np.may_share_memory(x, y))


def order(xp: Any, x: Any) -> str | None:
    """Whether a matrix is column-major in memory, as a transposed matrix is."""
    flags = x.flags
    return "F" if flags.f_contiguous and not flags.c_contiguous else "C"


def take_ownership(xp: Any, g: Any, like: Any) -> Any:
    """`g` itself if it provably has no other owner, else a dense copy laid out as `like`.

    The proof is the reference count: every object that could still use the memory of `g` (a saved
    value, a second cotangent, a Tensor, a view, an exported buffer) holds a reference to it. An
    array that owns its memory is dense, and so is a transposed view of all of it.
    """
    if type(g) is not np.ndarray:
        return np.array(g)
    if sys.getrefcount(g) <= SOLE_OWNER and (
        like is None or g.strides == like.strides or _same_order(g, like)
    ):
        flags = g.flags
        # `writeable` comes last: of a result of numpy.broadcast_arrays it gives a warning
        if (flags.owndata or (flags.forc and _is_all_of_its_base(g))) and flags.writeable:
            return g
    if like is None or g.shape != like.shape or isinstance(like, np.generic):
        # "K" would lay out a broadcast row by columns
        return np.array(g, order="C" if 0 in g.strides else "K")
    dense = like.flags.forc or is_dense(like)
    result = np.empty_like(like, dtype=g.dtype, order="K" if dense else "C", subok=False)
    result[...] = g
    return result


def unshared(xp: Any, arrays: list[Any]) -> bool:
    """Whether only one object for each array holds it, by the reference counts.

    A view holds the array that owns the memory, whatever it was made from. So the count of that
    array includes the views, and a view that something else uses has a higher count itself.
    """
    if SOLE_LISTED < 0:  # a count is no proof here
        return False
    last = len(arrays) - 1
    if not last:  # the flags of an array hold a reference to it
        return (
            type(arrays[0]) is np.ndarray
            and arrays[0].flags.owndata
            and references(arrays, 0) == SOLE_LISTED + 1
        )
    if type(arrays[last]) is not np.ndarray or not arrays[last].flags.owndata:
        return False
    for i in range(last + 1):
        same = sum([x is arrays[i] for x in arrays])
        views = len({id(x) for x in arrays if x.base is arrays[i]})
        # the list holds it at `same` places, and as many objects do
        if references(arrays, i) != SOLE_LISTED - 1 + 2 * same + views:
            return False
    return True


def _is_all_of_its_base(g: Any) -> bool:
    base = g.base
    owns = type(base) is np.ndarray and base.flags.owndata and base.size == g.size
    del base
    return owns and base_references(g) <= SOLE_VIEW


def _same_order(g: Any, like: Any) -> bool:
    """Whether both have the same memory order, or `g` is row-major and `like` has gaps.

    Strides of axes of length 1 may differ.
    """
    a, b = g.flags, like.flags
    return bool(
        (a.c_contiguous and b.c_contiguous)
        or (a.f_contiguous and b.f_contiguous)
        or (a.c_contiguous and not b.forc and not is_dense(like))
    )
