"""NumPy's functions that arrange, join, select and sort arrays.

Others find unique elements, or return metadata.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from operator import index
from typing import Any

import numpy as np

from ..core.element import SCALARS
from ..core.level import Layer, innermost
from ..ops.keys import along, place
from .reductions import cast
from .table import COUNTERPARTS, counterpart, counterparts
from .values import (
    arrayed,
    finish,
    is_given,
    library_of_all,
    listed,
    native,
    numpys,
    of,
    operands,
    refuse,
    sizes,
)

# ----- about arrays -----


def _full(x: Any, value: bool) -> Any:
    xp = x._elem.library.bound
    return xp.full_like(x.detach(), value, dtype=xp.bool)


counterparts(
    astype=lambda x, dtype, /, *, copy=True, device=None: of.astype(
        x, native(x._elem.library, dtype), copy=copy, device=device
    ),
    can_cast=lambda from_, to, casting="safe": np.can_cast(numpys(from_.dtype), to, casting),
    iscomplex=lambda x: of.imag(x) != 0 if x._elem.complex else _full(x, False),
    iscomplexobj=lambda x: bool(x._elem.complex),
    isneginf=lambda x, out=None: finish("isneginf", of.isinf(x) & (x < 0), out),
    isposinf=lambda x, out=None: finish("isposinf", of.isinf(x) & (x > 0), out),
    isreal=lambda x: of.imag(x) == 0 if x._elem.complex else _full(x, True),
    isrealobj=lambda x: not x._elem.complex,
    min_scalar_type=lambda a: numpys(a.dtype),
    ndim=lambda a: len(a.shape),
    shape=lambda a: tuple(a.shape),
)


@counterpart("size")
def size(a: Any, axis: Any = None) -> int:
    axes = range(len(a.shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return math.prod(a.shape[i] for i in axes)


@counterpart("result_type")
def result_type(*arrays_and_dtypes: Any) -> Any:
    library = library_of_all("numpy.result_type", arrays_and_dtypes)
    return library.bound.result_type(*map(innermost, arrays_and_dtypes))


@counterpart("common_type")
def common_type(*arrays: Any) -> Any:
    xp = library_of_all("numpy.common_type", arrays).bound
    default = xp.asarray(0.0).dtype
    floating = ("real floating", "complex floating")
    return xp.result_type(*(x.dtype if xp.isdtype(x.dtype, floating) else default for x in arrays))


@counterpart("shares_memory", "may_share_memory")
def shares_memory(a: Any, b: Any, max_work: Any = None) -> bool:
    a, b = innermost(a), innermost(b)
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return bool(np.shares_memory(a, b))
    return a is b


@counterpart("einsum_path")
def einsum_path(*operands: Any, optimize: Any = "greedy", einsum_call: bool = False) -> Any:
    """The order of a contraction, which depends on the shapes only."""
    path: Any = np.einsum_path
    operands = tuple(
        np.broadcast_to(np.float64(0), COUNTERPARTS["shape"](x)) if isinstance(x, Layer) else x
        for x in operands
    )
    return path(*operands, optimize=optimize, einsum_call=einsum_call)


# ----- joining and splitting -----


def _joining(name: str, operation: str) -> Callable[..., Any]:
    title = f"numpy.{name}"

    def join(
        arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = None
    ) -> Any:
        if casting not in (None, "same_kind", "unsafe"):
            refuse(title, casting=casting)
        result = getattr(of, operation)(operands(title, *arrays), axis=axis)
        return finish(name, cast(result, dtype, title, casting), out)

    return join


def _deep(x: Any) -> Any:
    """The array with at least three axes, placed as by NumPy's atleast_3d."""
    n = len(x.shape)
    return x if n > 2 else of.reshape(x, (1, x.shape[0] if n else 1, 1) if n < 2 else (*x.shape, 1))


def _flat(x: Any) -> Any:
    return of.reshape(x, (-1,))


@counterpart("atleast_3d")
def atleast_3d(*arys: Any) -> Any:
    parts = tuple(map(_deep, operands("numpy.atleast_3d", *arys)))
    return parts[0] if len(parts) == 1 else parts


@counterpart("column_stack")
def column_stack(tup: Any) -> Any:
    parts = operands("numpy.column_stack", *tup)
    return of.concat([x if len(x.shape) > 1 else of.reshape(x, (-1, 1)) for x in parts], axis=1)


@counterpart("append")
def append(arr: Any, values: Any, axis: Any = None) -> Any:
    parts = operands("numpy.append", arr, values)
    return of.concat(list(map(_flat, parts))) if axis is None else of.concat(parts, axis=axis)


@counterpart("array_split")
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    axis = place("numpy.array_split", "axis", axis, len(ary.shape))
    n = ary.shape[axis]
    if isinstance(indices_or_sections, Sequence) or getattr(indices_or_sections, "shape", None):
        bounds = [0, *(int(i) for i in indices_or_sections), n]
    else:
        sections = index(indices_or_sections)
        if sections <= 0:
            raise ValueError("number sections must be larger than 0.")
        each, extra = divmod(n, sections)
        bounds = [i * each + min(i, extra) for i in range(sections + 1)]
    return [ary[along(axis, start, end)] for start, end in pairwise(bounds)]


@counterpart("vsplit")
def vsplit(ary: Any, indices_or_sections: Any) -> Any:
    if len(ary.shape) < 2:
        raise ValueError(
            f"numpy.vsplit: the array has {len(ary.shape)} axes; vsplit splits arrays of two or "
            "more along their first axis. Call numpy.split."
        )
    return np.split(ary, indices_or_sections, axis=0)


counterpart("concat", "concatenate")(_joining("concatenate", "concat"))
counterparts(
    dsplit=lambda ary, indices_or_sections: np.split(ary, indices_or_sections, axis=2),
    dstack=lambda tup: of.concat(list(map(_deep, operands("numpy.dstack", *tup))), axis=2),
    hsplit=lambda ary, indices_or_sections: np.split(
        ary, indices_or_sections, axis=1 if len(ary.shape) > 1 else 0
    ),
    stack=_joining("stack", "stack"),
)


# ----- arranging -----


@counterpart("reshape")
def reshape(a: Any, /, shape: Any = None, order: str = "C", *, copy: Any = None) -> Any:
    shape = sizes(shape)
    flags = getattr(innermost(a), "flags", None) if order == "A" else None
    if flags is not None and flags.fnc:
        refuse("numpy.reshape", order=order)
    if order == "F":
        return _reversed(of.reshape(_reversed(a), tuple(reversed(shape)), copy=copy))
    refuse("numpy.reshape", order=None if order in ("C", "A") else order)
    return of.reshape(a, shape, copy=copy)


def _reversed(a: Any) -> Any:
    return of.permute_dims(a, tuple(range(len(a.shape) - 1, -1, -1)))


def _ints(axes: Any) -> Any:
    """One or several integers in any form. None is None."""
    return axes if axes is None else tuple(map(int, axes)) if np.ndim(axes) else int(axes)


@counterpart("rollaxis")
def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    n = len(a.shape)
    axis = place("numpy.rollaxis", "axis", axis, n)
    start = place("numpy.rollaxis: start", "axis", start, n + 1 if start >= 0 else n)
    return of.moveaxis(a, axis, start - 1 if axis < start else start)


@counterpart("squeeze")
def squeeze(a: Any, axis: Any = None) -> Any:
    ones = tuple(i for i, n in enumerate(a.shape) if n == 1)
    return of.squeeze(a, axis=ones if axis is None else _ints(axis))


@counterpart("repeat")
def repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    if not isinstance(repeats, (int, Layer)):
        repeats = listed(repeats, a._elem.library)
    return of.repeat(a, repeats, axis=axis)


@counterpart("rot90")
def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Any:
    i, j = (place("numpy.rot90", "axis", axis, len(m.shape)) for axis in axes)
    if i == j:
        raise ValueError("Axes must be different.")
    order = list(range(len(m.shape)))
    order[i], order[j] = j, i
    if k % 4 == 0:
        return m[...]
    if k % 4 == 2:
        return of.flip(m, axis=(i, j))
    if k % 4 == 1:
        return of.flip(of.permute_dims(m, order), axis=i)
    return of.permute_dims(of.flip(m, axis=i), order)


counterparts(
    broadcast_arrays=lambda *args, subok=False: tuple(
        of.broadcast_arrays(*operands("numpy.broadcast_arrays", *args))
    ),
    broadcast_to=lambda array, shape, subok=False: of.broadcast_to(array, sizes(shape)),
    expand_dims=lambda a, axis: of.expand_dims(a, axis=_ints(axis)),
    flip=lambda m, axis=None: of.flip(m, axis=_ints(axis)),
    fliplr=lambda m: of.flip(m, axis=1),
    flipud=lambda m: of.flip(m, axis=0),
    moveaxis=lambda a, source, destination: of.moveaxis(a, _ints(source), _ints(destination)),
    roll=lambda a, shift, axis=None: of.roll(a, _ints(shift), axis=_ints(axis)),
    tile=lambda A, reps: of.tile(A, sizes(reps)),
    tril=lambda m, k=0: of.tril(m, k=k),
    triu=lambda m, k=0: of.triu(m, k=k),
)


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
    if not isinstance(x, Layer) and not isinstance(y, Layer):
        x = arrayed(x, library)
    return of.where(truth, x, y)


@counterpart("select")
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    library = library_of_all("numpy.select", condlist, choicelist, default)
    conditions = [arrayed(x, library) for x in condlist]
    choices = [listed(x, library) for x in choicelist]
    if len(conditions) != len(choices):
        raise ValueError("list of cases must be same length as list of conditions")
    for i, condition in enumerate(conditions):
        if not library.bound.isdtype(condition.dtype, "bool"):
            raise TypeError(f"invalid entry {i} in condlist: should be boolean ndarray")
    # Python numbers take the dtype of the arrays. Without an array the widest number decides.
    parts = list(map(innermost, (*choices, default)))
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
    refuse("numpy.clip", **kwargs)
    low, high = (a_min if is_given(a_min) else min), (a_max if is_given(a_max) else max)
    library = library_of_all("numpy.clip", a, low, high, out)
    low, high = (listed(x, library) if is_given(x) else None for x in (low, high))
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
    a, indices = operands("numpy.take", a, indices)
    a, axis = _along(a, axis)
    axis = place("numpy.take", "axis", axis, len(a.shape))
    n = a.shape[axis]
    if mode != "raise" and n:
        indices = indices % n if mode == "wrap" else of.clip(indices, 0, n - 1)
    shape = (*a.shape[:axis], *indices.shape, *a.shape[axis + 1 :])
    return finish("take", of.reshape(of.take(a, _flat(indices), axis=axis), shape), out)


def _along(a: Any, axis: Any) -> tuple[Any, Any]:
    """The array and the axis, or the flat array and its axis without an axis."""
    return (_flat(a), 0) if axis is None else (a, axis)


@counterpart("take_along_axis")
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    arr, axis = _along(arr, axis)
    return of.take_along_axis(arr, indices, axis=axis)


@counterpart("compress")
def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    condition, a = operands("numpy.compress", condition, a)
    a, axis = _along(a, axis)
    (places,) = of.nonzero(condition)
    return finish("compress", of.take(a, places, axis=axis), out)


@counterpart("extract")
def extract(condition: Any, arr: Any) -> Any:
    condition, arr = operands("numpy.extract", condition, arr)
    return compress(_flat(condition), arr)


@counterpart("searchsorted")
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    a, v = operands("numpy.searchsorted", a, v)
    return of.searchsorted(a, v, side=side, sorter=sorter)


@counterpart("digitize")
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    x, bins = operands("numpy.digitize", x, bins)
    if bool(of.all(bins[1:] >= bins[:-1])):
        return of.searchsorted(bins, x, side="left" if right else "right")
    if not bool(of.all(bins[1:] <= bins[:-1])):
        raise ValueError("bins must be monotonically increasing or decreasing")
    return bins.shape[0] - of.searchsorted(of.flip(bins), x, side="right" if right else "left")


@counterpart("isin")
def isin(
    element: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: Any = None,
) -> Any:
    return of.isin(*operands("numpy.isin", element, test_elements), invert=invert)


# ----- sorting -----


def _sorting(name: str) -> Callable[..., Any]:
    def function(
        a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
    ) -> Any:
        refuse(f"numpy.{name}", order=order)
        a, axis = _along(a, axis)
        return getattr(of, name)(a, axis=axis)

    return function


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


counterparts(
    argpartition=_partitioning(_sorting("argsort")),
    argsort=_sorting("argsort"),
    argwhere=lambda a: of.stack(of.nonzero(a), axis=1),
    flatnonzero=lambda a: of.nonzero(_flat(a))[0],
    partition=_partitioning(_sorting("sort")),
    sort=_sorting("sort"),
    sort_complex=lambda a: _sorting("sort")(of.astype(a, a._elem.library.bound.complex128)),
)


# ----- unique elements and unique rows -----


@counterpart("unique")
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    if axis is None:
        values, indices, inverse, counts = of.unique_all(ar)
    else:
        axis = place("numpy.unique", "axis", axis, len(ar.shape))
        values, indices, inverse, counts = _rows(ar, axis)
    lost = of.isnan(values) if equal_nan and axis is None and ar._elem.floating else None
    # nan is at the end, and each one is an element of its own
    if lost is not None and bool(of.count_nonzero(lost) > 1):
        first = values.shape[0] - int(of.count_nonzero(lost))
        total = of.sum(counts[first:], keepdims=True)
        values, indices = values[: first + 1], indices[: first + 1]
        counts = of.concat([counts[:first], of.astype(total, counts.dtype)])
        inverse = of.where(inverse > first, first, inverse)
    optional = ((return_index, indices), (return_inverse, inverse), (return_counts, counts))
    parts = [values, *(part for returned, part in optional if returned)]
    return parts[0] if len(parts) == 1 else tuple(parts)


def _rows(a: Any, axis: int) -> tuple[Any, Any, Any, Any]:
    """The unique slices along an axis, in the order of their elements.

    Also returns where each occurs first, which unique slice each slice equals, and how many are
    equal.
    """
    n = a.shape[axis]
    rows = of.reshape(
        of.moveaxis(a.detach(), axis, 0), (n, math.prod(a.shape[:axis] + a.shape[axis + 1 :]))
    )
    order = a._elem.library.bound.arange(n)
    for i in reversed(range(rows.shape[1])):  # the first column is the primary key
        order = of.take(order, of.argsort(of.take(rows[:, i], order), stable=True))
    rows = of.take(rows, order, axis=0)
    if n:
        begins = of.concat([order[:1] == order[:1], of.any(rows[1:, :] != rows[:-1, :], axis=1)])
        (starts,) = of.nonzero(begins)
        ends = of.concat([starts[1:], starts[:1] * 0 + n])
    else:
        begins = starts = ends = order
    which = of.cumulative_sum(of.astype(begins, starts.dtype)) - 1
    first = of.take(order, starts)
    return of.take(a, first, axis=axis), first, of.take(which, of.argsort(order)), ends - starts
