"""NumPy's reductions and scans with NumPy's keywords, by those of the standard.

`numpy.add.reduce` and similar methods use them as well.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

from ..ops.keys import place
from .table import COUNTERPARTS, counterpart, counterparts
from .values import (
    NOTHING,
    arrayed,
    by_operation,
    finish,
    is_given,
    library_of_all,
    native,
    of,
    refuse,
)


def _keeps(keepdims: Any) -> bool:
    return keepdims is not NOTHING and bool(keepdims)


def _is_whole(where: Any) -> bool:
    """Whether `where` selects all elements, because it was not given."""
    return where is True or where is NOTHING


def _masked(a: Any, where: Any, fill: Any) -> Any:
    """The array with `fill` where `where` is False."""
    return a if _is_whole(where) else of.where(arrayed(where, a._elem.library), a, fill)


def floats(a: Any) -> Any:
    """The array as NumPy's means see it.

    Integers and booleans become the default floating-point dtype.
    """
    library = a._elem.library
    return a if a._elem.floating else of.astype(a, library.bound.asarray(0.0).dtype)


def cast(a: Any, dtype: Any, name: str = "", casting: Any = None) -> Any:
    """The array in a dtype in any of NumPy's forms.

    With a name it raises TypeError for a dtype of a lower kind (complex numbers to real ones, or
    fractions to integers), unless `casting` is "unsafe".
    """
    if dtype is None:
        return a
    dtype = native(a._elem.library, dtype)
    if name and casting != "unsafe" and kind(a, dtype) < kind(a, a.dtype):
        raise TypeError(
            f"{name}: {a.dtype} cannot be cast to {dtype}, which is of a lower kind. Convert "
            "with astype() first."
        )
    return of.astype(a, dtype)


KINDS = ("bool", "unsigned integer", "signed integer", "real floating", "complex floating")


def kind(a: Any, dtype: Any) -> int:
    """The place of a dtype among `KINDS`, or after the last one if it is none of them.

    Each kind holds the numbers of the kinds before it.
    """
    isdtype = a._elem.library.bound.isdtype
    try:
        return next((i for i, name in enumerate(KINDS) if isdtype(dtype, name)), len(KINDS))
    except TypeError:
        return len(KINDS)


def _averaged(a: Any, dtype: Any, name: str) -> Any:
    """The array in the dtype of a mean. Raises TypeError for a dtype of integers."""
    library = library_of_all(f"numpy.{name}", a)
    if dtype is not None and kind(a, native(library, dtype)) < KINDS.index("real floating"):
        raise TypeError(
            f"numpy.{name}: dtype={dtype!r} is not supported for Tensors: a mean in integers "
            "loses its fraction. Convert the result with astype()."
        )
    return cast(floats(a), dtype, f"numpy.{name}")


def _total(name: str, neutral: int, combine: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def reduce(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = NOTHING,
        where: Any = True,
    ) -> Any:
        a = _masked(a, where, neutral)
        dtype = native(a._elem.library, dtype)
        total = getattr(of, name)(a, axis=axis, dtype=dtype, keepdims=_keeps(keepdims))
        return finish(name, combine(total, initial) if is_given(initial) else total, out)

    return reduce


def _extremum(name: str, pair: str = "", worst: float = 0.0) -> Callable[..., Any]:
    """The largest or smallest element. Without a `pair` of operands it takes no `initial`."""

    def reduce(
        a: Any,
        axis: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = NOTHING,
        where: Any = True,
        dtype: Any = None,
    ) -> Any:
        if not pair:
            refuse(f"numpy.{name}", initial=initial, where=None if where is True else where)
        a = cast(a, dtype)
        begins = is_given(initial)
        if begins and a._elem.bool:
            initial = bool(initial)
        if not _is_whole(where):
            if not begins:
                raise ValueError(f"numpy.{name}: where= needs initial=, as in NumPy.")
            a = _masked(a, where, worst if a._elem.floating else initial)
        if begins and 0 in a.shape:  # no element to compare `initial` with
            axes = range(a.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
            lengths = dict(enumerate(a.shape)) | {i % a.ndim: 1 for i in axes}
            shape = tuple(lengths.values())
            a = a._elem.library.bound.full(shape, initial, dtype=a.dtype)
        result = getattr(of, name)(a, axis=axis, keepdims=_keeps(keepdims))
        return finish(name, getattr(of, pair)(result, initial) if begins else result, out)

    return reduce


def _test(name: str, neutral: bool) -> Callable[..., Any]:
    def reduce(
        a: Any,
        axis: Any = None,
        out: Any = None,
        keepdims: Any = False,
        where: Any = True,
        dtype: Any = None,
        initial: Any = NOTHING,
    ) -> Any:
        library_of_all(f"numpy.{name}", a)
        a = _masked(a if a._elem.bool else a != 0, where, neutral)
        result = getattr(of, name)(a, axis=axis, keepdims=_keeps(keepdims))
        if is_given(initial):
            result = result & bool(initial) if neutral else result | bool(initial)
        return finish(name, result, out)

    return reduce


def _counted(a: Any, axis: Any, where: Any, keepdims: bool) -> Any:
    """How many elements `where` selects, for each result."""
    mask = of.broadcast_to(arrayed(_is_whole(where) or where, a._elem.library), tuple(a.shape))
    dtype = of.real(a).dtype if a._elem.complex else a.dtype
    return of.sum(of.astype(mask, dtype), axis=axis, keepdims=keepdims)


def _mean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    where: Any = True,
) -> Any:
    a, keepdims = _averaged(a, dtype, "mean"), _keeps(keepdims)
    if _is_whole(where):
        return finish("mean", of.mean(a, axis=axis, keepdims=keepdims), out)
    total = of.sum(_masked(a, where, 0), axis=axis, keepdims=keepdims)
    return finish("mean", total / _counted(a, axis, where, keepdims), out)


def _spread(name: str) -> Callable[..., Any]:
    def reduce(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        ddof: Any = 0,
        keepdims: Any = False,
        *,
        where: Any = True,
        mean: Any = NOTHING,
        correction: Any = NOTHING,
    ) -> Any:
        if correction is not NOTHING:
            if ddof != 0:
                raise ValueError(f"numpy.{name}: ddof and correction cannot both be given.")
            ddof = correction
        a, keepdims = _averaged(a, dtype, name), _keeps(keepdims)
        if _is_whole(where) and mean is NOTHING:
            result = getattr(of, name)(a, axis=axis, correction=ddof, keepdims=keepdims)
            return finish(name, result, out)
        filled = _masked(a, where, 0)
        count = _counted(a, axis, where, True)
        if mean is NOTHING:
            mean = of.sum(filled, axis=axis, keepdims=True) / count
        off = _masked(a - arrayed(mean, a._elem.library), where, 0)
        square = of.square(of.abs(off)) if a._elem.complex else off * off
        total = of.sum(square, axis=axis, keepdims=keepdims)
        total = total / of.maximum(of.reshape(count, total.shape) - ddof, 0)
        return finish(name, total if name == "var" else of.sqrt(total), out)

    return reduce


def _index(name: str) -> Callable[..., Any]:
    def reduce(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        return finish(name, getattr(of, name)(a, axis=axis, keepdims=_keeps(keepdims)), out)

    return reduce


def _running(name: str) -> Callable[..., Any]:
    """The scan for `numpy.maximum.accumulate` and `numpy.minimum.accumulate`.

    The gradient goes to the last of equal elements, as for torch.cummax.
    """

    def scan(x: Any, /, *, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
        if axis is None:
            raise ValueError(
                f"numpy.{name}.accumulate: it runs along one axis, so axis=None is not supported."
            )
        x = cast(x, dtype, f"numpy.{name}.accumulate")
        axis = place(f"numpy.{name}.accumulate", "axis", axis, len(x.shape))
        places = of.running_places(x.detach(), axis, name == "maximum")
        return finish(f"{name}.accumulate", of.take_along_axis(x, places, axis=axis), out)

    return scan


counterpart("max", "amax")(_extremum("max", "maximum", -math.inf))
counterpart("min", "amin")(_extremum("min", "minimum", math.inf))
counterparts(
    all=_test("all", True),
    any=_test("any", False),
    argmax=_index("argmax"),
    argmin=_index("argmin"),
    count_nonzero=lambda a, axis=None, *, keepdims=False: of.count_nonzero(
        a, axis=axis, keepdims=_keeps(keepdims)
    ),
    mean=_mean,
    prod=_total("prod", 1, operator.mul),
    std=_spread("std"),
    sum=_total("sum", 0, operator.add),
    var=_spread("var"),
)

REDUCTIONS: dict[str, Callable[..., Any]] = {
    "add": COUNTERPARTS["sum"],
    "multiply": COUNTERPARTS["prod"],
    "maximum": COUNTERPARTS["max"],
    "minimum": COUNTERPARTS["min"],
    "logical_and": COUNTERPARTS["all"],
    "logical_or": COUNTERPARTS["any"],
    "fmax": _extremum("nanmax"),
    "fmin": _extremum("nanmin"),
}
"""What carries out `ufunc.reduce`, by the name of the ufunc."""

SCANS: dict[str, Callable[..., Any]] = {
    "add": partial(by_operation, "cumulative_sum"),
    "maximum": _running("maximum"),
    "minimum": _running("minimum"),
    "multiply": partial(by_operation, "cumulative_prod"),
}
"""What carries out `ufunc.accumulate`, by the name of the ufunc."""
