"""NumPy's functions that arrange, join, select and sort arrays, or return their metadata."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from operator import index
from typing import Any

import numpy as np

from ..core.element import SCALARS
from ..core.level import Layer, innermost
from .reductions import cast, finish
from .table import counterpart
from .values import arrayed, library_of_all, listed, native, of, placed, refuse

# ----- about arrays -----


@counterpart("shape")
def shape(a: Any) -> tuple[int, ...]:
    return tuple(a.shape)


@counterpart("ndim")
def ndim(a: Any) -> int:
    return len(a.shape)


@counterpart("size")
def size(a: Any, axis: Any = None) -> int:
    if axis is None:
        return math.prod(a.shape)
    return math.prod(a.shape[i] for i in (axis if isinstance(axis, tuple) else (axis,)))


@counterpart("iscomplexobj")
def iscomplexobj(x: Any) -> bool:
    return bool(x._elem.complex)


@counterpart("isrealobj")
def isrealobj(x: Any) -> bool:
    return not x._elem.complex


@counterpart("result_type")
def result_type(*arrays_and_dtypes: Any) -> Any:
    library = library_of_all("numpy.result_type", arrays_and_dtypes)
    return library.bound.result_type(
        *(innermost(x) if isinstance(x, Layer) else x for x in arrays_and_dtypes)
    )


@counterpart("common_type")
def common_type(*arrays: Any) -> Any:
    library = library_of_all("numpy.common_type", arrays)
    xp = library.bound
    kinds = [
        x.dtype
        if xp.isdtype(x.dtype, ("real floating", "complex floating"))
        else xp.asarray(0.0).dtype
        for x in arrays
    ]
    return xp.result_type(*kinds)


@counterpart("astype")
def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    return of.astype(x, native(x._elem.library, dtype), copy=copy, device=device)


@counterpart("can_cast")
def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    return bool(np.can_cast(np.dtype(str(from_.dtype).rpartition(".")[2]), to, casting))


@counterpart("min_scalar_type")
def min_scalar_type(a: Any) -> Any:
    return np.dtype(str(a.dtype).rpartition(".")[2])


@counterpart("shares_memory", "may_share_memory")
def shares_memory(a: Any, b: Any, max_work: Any = None) -> bool:
    a, b = (innermost(x) if isinstance(x, Layer) else x for x in (a, b))
    return (
        bool(np.shares_memory(a, b))
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray)
        else a is b
    )


@counterpart("einsum_path")
def einsum_path(*operands: Any, optimize: Any = "greedy", einsum_call: bool = False) -> Any:
    """The order of a contraction, which depends on the shapes only."""
    path: Any = np.einsum_path
    given = [
        np.broadcast_to(np.float64(0), shape(x)) if isinstance(x, Layer) else x for x in operands
    ]
    return path(*given, optimize=optimize, einsum_call=einsum_call)


@counterpart("isreal")
def isreal(x: Any) -> Any:
    return (
        of.imag(x) == 0
        if x._elem.complex
        else x._elem.library.bound.ones_like(x.detach(), dtype=_bool(x))
    )


@counterpart("iscomplex")
def iscomplex(x: Any) -> Any:
    return (
        of.imag(x) != 0
        if x._elem.complex
        else x._elem.library.bound.zeros_like(x.detach(), dtype=_bool(x))
    )


def _bool(x: Any) -> Any:
    return x._elem.library.bound.bool


@counterpart("isposinf")
def isposinf(x: Any, out: Any = None) -> Any:
    return finish("isposinf", of.isinf(x) & (x > 0), out)


@counterpart("isneginf")
def isneginf(x: Any, out: Any = None) -> Any:
    return finish("isneginf", of.isinf(x) & (x < 0), out)


# ----- joining and splitting -----


def _arrays(name: str, given: Any) -> list[Any]:
    library = library_of_all(name, given)
    return [arrayed(x, library) for x in given]


@counterpart("concatenate", "concat")
def concatenate(
    arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = None
) -> Any:
    refuse(
        "numpy.concatenate", casting=None if casting in (None, "same_kind", "unsafe") else casting
    )
    parts = _arrays("numpy.concatenate", arrays) if not isinstance(arrays, Layer) else list(arrays)  # type: ignore[call-overload]
    return finish(
        "concatenate", cast(of.concat(parts, axis=axis), dtype, "numpy.concatenate", casting), out
    )


@counterpart("stack")
def stack(
    arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = None
) -> Any:
    refuse("numpy.stack", casting=None if casting in (None, "same_kind", "unsafe") else casting)
    parts = _arrays("numpy.stack", arrays) if not isinstance(arrays, Layer) else list(arrays)  # type: ignore[call-overload]
    return finish("stack", cast(of.stack(parts, axis=axis), dtype, "numpy.stack", casting), out)


@counterpart("dstack")
def dstack(tup: Any) -> Any:
    return of.concat([_deep(x) for x in _arrays("numpy.dstack", tup)], axis=2)


def _deep(x: Any) -> Any:
    """The array with at least three axes, placed as by NumPy's atleast_3d."""
    n = len(x.shape)
    return x if n > 2 else of.reshape(x, (1, x.shape[0] if n else 1, 1) if n < 2 else (*x.shape, 1))


@counterpart("atleast_3d")
def atleast_3d(*arys: Any) -> Any:
    parts = tuple(_deep(x) for x in _arrays("numpy.atleast_3d", arys))
    return parts[0] if len(parts) == 1 else parts


@counterpart("column_stack")
def column_stack(tup: Any) -> Any:
    return of.concat(
        [
            x if len(x.shape) > 1 else of.reshape(x, (-1, 1))
            for x in _arrays("numpy.column_stack", tup)
        ],
        axis=1,
    )


@counterpart("append")
def append(arr: Any, values: Any, axis: Any = None) -> Any:
    parts = _arrays("numpy.append", (arr, values))
    return (
        of.concat(parts, axis=axis)
        if axis is not None
        else of.concat([of.reshape(x, (-1,)) for x in parts])
    )


@counterpart("array_split")
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    axis = placed("numpy.array_split", axis, len(ary.shape))
    n = ary.shape[axis]
    if isinstance(indices_or_sections, Sequence) or getattr(indices_or_sections, "shape", None):
        bounds = [0, *(int(i) for i in indices_or_sections), n]
    else:
        sections = index(indices_or_sections)
        if sections <= 0:
            raise ValueError("number sections must be larger than 0.")
        each, extra = divmod(n, sections)
        bounds = [i * each + min(i, extra) for i in range(sections + 1)]
    before = (slice(None),) * axis
    return [ary[(*before, slice(start, end), ...)] for start, end in pairwise(bounds)]


@counterpart("hsplit")
def hsplit(ary: Any, indices_or_sections: Any) -> Any:
    return np.split(ary, indices_or_sections, axis=1 if len(ary.shape) > 1 else 0)


@counterpart("vsplit")
def vsplit(ary: Any, indices_or_sections: Any) -> Any:
    if len(ary.shape) < 2:
        raise ValueError(
            f"numpy.vsplit: the array has {len(ary.shape)} axes; vsplit splits arrays of two or "
            "more along their first axis. Call numpy.split."
        )
    return np.split(ary, indices_or_sections, axis=0)


@counterpart("dsplit")
def dsplit(ary: Any, indices_or_sections: Any) -> Any:
    return np.split(ary, indices_or_sections, axis=2)


# ----- arranging -----


@counterpart("reshape")
def reshape(a: Any, /, shape: Any = None, order: str = "C", *, copy: Any = None) -> Any:
    shape = (shape,) if np.ndim(shape) == 0 else tuple(shape)
    flags = getattr(innermost(a), "flags", None) if order == "A" else None
    if flags is not None and flags.fnc:
        refuse("numpy.reshape", order=order)
    if order == "F":
        return _reversed(of.reshape(_reversed(a), tuple(reversed(shape)), copy=copy))
    refuse("numpy.reshape", order=None if order in ("C", "A") else order)
    return of.reshape(a, shape, copy=copy)


def _reversed(a: Any) -> Any:
    return of.permute_dims(a, tuple(range(len(a.shape) - 1, -1, -1)))


@counterpart("moveaxis")
def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    return of.moveaxis(a, _ints(source), _ints(destination))


def _ints(axes: Any) -> Any:
    return tuple(int(i) for i in axes) if np.ndim(axes) else int(axes)


@counterpart("rollaxis")
def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    n = len(a.shape)
    axis = placed("numpy.rollaxis", axis, n)
    start = (
        placed("numpy.rollaxis: start", start, n + 1)
        if start >= 0
        else placed("numpy.rollaxis: start", start, n)
    )
    return of.moveaxis(a, axis, start - 1 if axis < start else start)


@counterpart("squeeze")
def squeeze(a: Any, axis: Any = None) -> Any:
    return of.squeeze(
        a, axis=tuple(i for i, n in enumerate(a.shape) if n == 1) if axis is None else _ints(axis)
    )


@counterpart("expand_dims")
def expand_dims(a: Any, axis: Any) -> Any:
    return of.expand_dims(a, axis=_ints(axis))


@counterpart("broadcast_to")
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    return of.broadcast_to(array, (shape,) if np.ndim(shape) == 0 else tuple(shape))


@counterpart("broadcast_arrays")
def broadcast_arrays(*args: Any, subok: bool = False) -> Any:
    return tuple(of.broadcast_arrays(*_arrays("numpy.broadcast_arrays", args)))


@counterpart("tile")
def tile(A: Any, reps: Any) -> Any:
    return of.tile(A, (reps,) if np.ndim(reps) == 0 else tuple(reps))


@counterpart("repeat")
def repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    return of.repeat(
        a,
        repeats if isinstance(repeats, (int, Layer)) else listed(repeats, a._elem.library),
        axis=axis,
    )


@counterpart("roll")
def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    return of.roll(a, _ints(shift), axis=None if axis is None else _ints(axis))


@counterpart("flip")
def flip(m: Any, axis: Any = None) -> Any:
    return of.flip(m, axis=None if axis is None else _ints(axis))


@counterpart("fliplr")
def fliplr(m: Any) -> Any:
    return of.flip(m, axis=1)


@counterpart("flipud")
def flipud(m: Any) -> Any:
    return of.flip(m, axis=0)


@counterpart("rot90")
def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Any:
    i, j = (placed("numpy.rot90", axis, len(m.shape)) for axis in axes)
    if i == j:
        raise ValueError("Axes must be different.")
    order = list(range(len(m.shape)))
    order[i], order[j] = j, i
    if k % 4 == 2:
        return of.flip(m, axis=(i, j))
    return (
        of.flip(of.permute_dims(m, order), axis=i)
        if k % 4 == 1
        else of.permute_dims(of.flip(m, axis=i), order)
        if k % 4
        else m[...]
    )


@counterpart("tril")
def tril(m: Any, k: int = 0) -> Any:
    return of.tril(m, k=k)


@counterpart("triu")
def triu(m: Any, k: int = 0) -> Any:
    return of.triu(m, k=k)


# ----- selecting -----


@counterpart("where")
def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    library = library_of_all("numpy.where", condition, x, y)
    condition = arrayed(condition, library)
    if x is None and y is None:
        return of.nonzero(condition)
    if x is None or y is None:
        raise ValueError("either both or neither of x and y should be given")
    truth = condition if str(condition.dtype).endswith("bool") else condition != 0
    x, y = listed(x, library), listed(y, library)
    return of.where(
        truth, x if isinstance(x, Layer) or isinstance(y, Layer) else arrayed(x, library), y
    )


@counterpart("select")
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    library = library_of_all("numpy.select", condlist, choicelist, default)
    conditions, choices = (
        [arrayed(x, library) for x in condlist],
        [listed(x, library) for x in choicelist],
    )
    if len(conditions) != len(choices):
        raise ValueError("list of cases must be same length as list of conditions")
    for i, condition in enumerate(conditions):
        if not library.bound.isdtype(condition.dtype, "bool"):
            raise TypeError(f"invalid entry {i} in condlist: should be boolean ndarray")
    # Python numbers take the dtype of the arrays. Without an array the widest number decides.
    parts = [innermost(x) if isinstance(x, Layer) else x for x in (*choices, default)]
    if all(type(x) in SCALARS for x in parts):
        common = arrayed(max(parts, key=lambda x: SCALARS.index(type(x))), library).dtype
    else:
        common = library.bound.result_type(*parts)
    result = of.astype(arrayed(default, library), common)
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        result = of.where(condition, of.astype(arrayed(choice, library), common), result)
    return result


@counterpart("clip")
def clip(
    a: Any,
    a_min: Any = None,
    a_max: Any = None,
    out: Any = None,
    *,
    min: Any = None,
    max: Any = None,
    **kwargs: Any,
) -> Any:
    none = np._NoValue
    refuse("numpy.clip", **kwargs)
    low, high = (
        second if first is None or first is none else first
        for first, second in ((a_min, min), (a_max, max))
    )
    library = library_of_all("numpy.clip", a, low, high, out)
    low, high = (None if x is none else listed(x, library) for x in (low, high))
    values = [a := arrayed(a, library), low, high]
    if a.dtype in (library.bound.float32, library.bound.float64) and all(
        x is None or type(x) in (int, float) or (isinstance(x, Layer) and x._elem.dtype == a.dtype)
        for x in (low, high)
    ):
        return finish("clip", of.clip(a, low, high), out)
    dtype = library.bound.result_type(
        *(innermost(x) if hasattr(x, "dtype") else _kind(x)() for x in values if x is not None)
    )
    return finish("clip", _clipped(library.bound, dtype, *values), out)


def _kind(x: Any) -> Any:
    """The class of a Python scalar, also of one that a compiled function has as an argument."""
    for kind in (bool, int, float, complex):
        if isinstance(x, kind):
            return kind
    raise TypeError(
        f"numpy.clip: the limits must be arrays or numbers, not {type(x).__name__}. Leave out a "
        "limit, or give None."
    )


def _clipped(xp: Any, dtype: Any, *values: Any) -> Any:
    """The array between its limits, all of them in one dtype.

    The standard has no limits of booleans and of complex numbers.
    """
    real = not xp.isdtype(dtype, ("bool", "complex floating"))
    a, low, high = (
        x
        if x is None or (x.dtype == dtype if hasattr(x, "dtype") else real and _kind(x) is not bool)
        else of.astype(xp.asarray(x), dtype, copy=False)
        for x in values
    )
    if real:
        return of.clip(a, low, high)
    if xp.isdtype(dtype, "bool"):
        return _clipped(xp, xp.int8, a, low, high) != 0
    a = xp.asarray(a, copy=True)
    if low is not None:
        a = of.where(~of.isnan(a) & (_before(a, low) | of.isnan(low)), low, a)
    if high is not None:
        a = of.where(~of.isnan(a) & (_before(high, a) | of.isnan(high)), high, a)
    return a


def _before(x: Any, y: Any) -> Any:
    """Whether complex numbers come before others in NumPy's order: by their real parts first."""
    re, other = of.real(x), of.real(y)
    return (re < other) | ((re == other) & (of.imag(x) < of.imag(y)))


@counterpart("take")
def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    refuse("numpy.take", mode=None if mode in ("raise", "wrap", "clip") else mode)
    library = library_of_all("numpy.take", a, indices)
    indices = arrayed(indices, library)
    if axis is None:
        a, axis = of.reshape(arrayed(a, library), (-1,)), 0
    axis = placed("numpy.take", axis, len(a.shape))
    n = a.shape[axis]
    if mode != "raise" and n:
        indices = indices % n if mode == "wrap" else of.clip(indices, 0, n - 1)
    flat = of.take(a, of.reshape(indices, (-1,)), axis=axis)
    return finish(
        "take", of.reshape(flat, (*a.shape[:axis], *indices.shape, *a.shape[axis + 1 :])), out
    )


@counterpart("take_along_axis")
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    if axis is None:
        arr, axis = of.reshape(arr, (-1,)), 0
    return of.take_along_axis(arr, indices, axis=axis)


@counterpart("compress")
def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    library = library_of_all("numpy.compress", condition, a)
    a = arrayed(a, library)
    if axis is None:
        a, axis = of.reshape(a, (-1,)), 0
    (places,) = of.nonzero(arrayed(condition, library))
    return finish("compress", of.take(a, places, axis=axis), out)


@counterpart("extract")
def extract(condition: Any, arr: Any) -> Any:
    library = library_of_all("numpy.extract", condition, arr)
    return compress(of.reshape(arrayed(condition, library), (-1,)), arrayed(arr, library))


@counterpart("flatnonzero")
def flatnonzero(a: Any) -> Any:
    return of.nonzero(of.reshape(a, (-1,)))[0]


@counterpart("argwhere")
def argwhere(a: Any) -> Any:
    return of.stack(of.nonzero(a), axis=1)


@counterpart("searchsorted")
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    library = library_of_all("numpy.searchsorted", a, v)
    return of.searchsorted(arrayed(a, library), arrayed(v, library), side=side, sorter=sorter)


@counterpart("digitize")
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    library = library_of_all("numpy.digitize", x, bins)
    bins = arrayed(bins, library)
    rising, falling = bool(of.all(bins[1:] >= bins[:-1])), bool(of.all(bins[1:] <= bins[:-1]))
    if not rising and not falling:
        raise ValueError("bins must be monotonically increasing or decreasing")
    if falling and not rising:
        return bins.shape[0] - of.searchsorted(
            of.flip(bins), arrayed(x, library), side="right" if right else "left"
        )
    return of.searchsorted(bins, arrayed(x, library), side="left" if right else "right")


@counterpart("isin")
def isin(
    element: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: Any = None,
) -> Any:
    library = library_of_all("numpy.isin", element, test_elements)
    return of.isin(arrayed(element, library), arrayed(test_elements, library), invert=invert)


# ----- sorting and sets -----


def _sorting(name: str) -> Callable[..., Any]:
    def function(
        a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
    ) -> Any:
        refuse(f"numpy.{name}", order=order)
        a, axis = (of.reshape(a, (-1,)), 0) if axis is None else (a, axis)
        return getattr(of, name)(a, axis=axis)

    return function


sort = counterpart("sort")(_sorting("sort"))
argsort = counterpart("argsort")(_sorting("argsort"))


def _partitioning(whole: Callable[..., Any]) -> Callable[..., Any]:
    """The sorted array, which is partitioned at every place."""

    def function(
        a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None
    ) -> Any:
        n = math.prod(a.shape) if axis is None else a.shape[axis]
        for k in np.ravel(kth):
            if not -n <= k < n:
                raise ValueError(f"kth(={k}) out of bounds ({n})")
        return whole(a, axis, order=order)

    return function


counterpart("partition")(_partitioning(sort))
counterpart("argpartition")(_partitioning(argsort))


@counterpart("sort_complex")
def sort_complex(a: Any) -> Any:
    return sort(of.astype(a, a._elem.library.bound.complex128))
