"""NumPy's reductions and scans with NumPy's keywords, by those of the standard.

`numpy.add.reduce` and similar methods use them as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .table import counterpart
from .values import arrayed, library_of_all, native, of, placed, refuse, written

NOTHING: Any = np._NoValue


def finish(name: str, result: Any, out: Any) -> Any:
    """The result, or `out` after the result was written into it."""
    return result if out is None else written(f"numpy.{name}", out, result)


def _options(keepdims: Any) -> dict[str, Any]:
    return {} if keepdims is NOTHING or not keepdims else {"keepdims": True}


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
    given = native(a._elem.library, dtype)
    if name and casting != "unsafe" and kind(a, given) < kind(a, a.dtype):
        raise TypeError(
            f"{name}: {a.dtype} cannot be cast to {given}, which is of a lower kind. Convert "
            "with astype() first."
        )
    return of.astype(a, given)


KINDS = ("bool", "unsigned integer", "signed integer", "real floating", "complex floating")


def kind(a: Any, dtype: Any) -> int:
    """The place of a dtype among `KINDS`, or after the last one if it is none of them.

    Each kind holds the numbers of the kinds before it.
    """
    isdtype = a._elem.library.bound.isdtype
    try:
        return next((i for i, known in enumerate(KINDS) if isdtype(dtype, known)), len(KINDS))
    except TypeError:
        return len(KINDS)


def averaged(a: Any, dtype: Any, name: str) -> Any:
    """The array in the dtype of a mean. Raises TypeError for a dtype of integers."""
    library_of_all(f"numpy.{name}", a)
    if dtype is not None and kind(a, native(a._elem.library, dtype)) < KINDS.index("real floating"):
        raise TypeError(
            f"numpy.{name}: dtype={dtype!r} is not supported for Tensors: a mean in integers "
            "loses its fraction. Convert the result with astype()."
        )
    return cast(floats(a), dtype, f"numpy.{name}")


def sum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = NOTHING,
    where: Any = True,
) -> Any:
    if dtype is None and out is None and where is True and initial is NOTHING:
        return of.sum(a, axis=axis, **_options(keepdims))
    a = _masked(a, where, 0)
    total = of.sum(
        a,
        axis=axis,
        dtype=None if dtype is None else native(a._elem.library, dtype),
        **_options(keepdims),
    )
    return finish("sum", total if initial is NOTHING or initial is None else total + initial, out)


def prod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = NOTHING,
    where: Any = True,
) -> Any:
    a = _masked(a, where, 1)
    total = of.prod(
        a,
        axis=axis,
        dtype=None if dtype is None else native(a._elem.library, dtype),
        **_options(keepdims),
    )
    return finish("prod", total if initial is NOTHING or initial is None else total * initial, out)


def _extremum(name: str, pair: str, worst: float) -> Callable[..., Any]:
    def reduce(
        a: Any,
        axis: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = NOTHING,
        where: Any = True,
        dtype: Any = None,
    ) -> Any:
        a = cast(a, dtype)
        given = initial is not NOTHING and initial is not None
        if given and a._elem.bool:
            initial = bool(initial)
        if not _is_whole(where):
            if not given:
                raise ValueError(f"numpy.{name}: where= needs initial=, as in NumPy.")
            a = _masked(a, where, worst if a._elem.floating else initial)
        if given and 0 in a.shape:  # no element to compare `initial` with
            axes = (
                range(a.ndim)
                if axis is None
                else [i % a.ndim for i in (axis if isinstance(axis, tuple) else (axis,))]
            )
            shape = tuple(1 if i in axes else n for i, n in enumerate(a.shape))
            a = a._elem.library.bound.full(shape, initial, dtype=a.dtype)
        result = getattr(of, name)(a, axis=axis, **_options(keepdims))
        return finish(name, getattr(of, pair)(result, initial) if given else result, out)

    reduce.__name__ = name
    return reduce


max = _extremum("max", "maximum", -math.inf)
min = _extremum("min", "minimum", math.inf)


def _nan_extremum(name: str) -> Callable[..., Any]:
    """The reduction for `numpy.fmax.reduce` and `numpy.fmin.reduce`."""

    def reduce(
        a: Any,
        axis: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = NOTHING,
        where: Any = True,
        dtype: Any = None,
    ) -> Any:
        refuse(f"numpy.{name}", initial=initial, where=None if where is True else where)
        return finish(name, getattr(of, name)(cast(a, dtype), axis=axis, **_options(keepdims)), out)

    return reduce


nanmax = _nan_extremum("nanmax")
nanmin = _nan_extremum("nanmin")


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
        result = getattr(of, name)(a, axis=axis, **_options(keepdims))
        if initial is not NOTHING and initial is not None:
            result = result & bool(initial) if neutral else result | bool(initial)
        return finish(name, result, out)

    reduce.__name__ = name
    return reduce


all = _test("all", True)
any = _test("any", False)


def _counted(a: Any, axis: Any, where: Any, keepdims: bool) -> Any:
    """How many elements `where` selects, for each result."""
    mask = of.broadcast_to(arrayed(where, a._elem.library), tuple(a.shape))
    return of.sum(
        of.astype(mask, of.real(a).dtype if a._elem.complex else a.dtype),
        axis=axis,
        keepdims=keepdims,
    )


def mean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    where: Any = True,
) -> Any:
    a = averaged(a, dtype, "mean")
    if _is_whole(where):
        return finish("mean", of.mean(a, axis=axis, **_options(keepdims)), out)
    options = _options(keepdims)
    total = of.sum(_masked(a, where, 0), axis=axis, **options)
    return finish("mean", total / _counted(a, axis, where, bool(options)), out)


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
        a, options = averaged(a, dtype, name), _options(keepdims)
        whole = _is_whole(where)
        if whole and mean is NOTHING:
            return finish(name, getattr(of, name)(a, axis=axis, correction=ddof, **options), out)
        filled = _masked(a, where, 0)
        count = (
            of.sum(of.ones_like(of.abs(a.detach())), axis=axis, keepdims=True)
            if whole
            else _counted(a, axis, where, True)
        )
        middle = (
            of.sum(filled, axis=axis, keepdims=True) / count
            if mean is NOTHING
            else arrayed(mean, a._elem.library)
        )
        off = _masked(a - middle, where, 0)
        square = of.square(of.abs(off)) if a._elem.complex else off * off
        total = of.sum(square, axis=axis, **options)
        total = total / of.maximum(of.reshape(count, total.shape) - ddof, 0)
        return finish(name, total if name == "var" else of.sqrt(total), out)

    reduce.__name__ = name
    return reduce


var = _spread("var")
std = _spread("std")


def _index(name: str) -> Callable[..., Any]:
    def reduce(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        return finish(name, getattr(of, name)(a, axis=axis, **_options(keepdims)), out)

    reduce.__name__ = name
    return reduce


argmax = _index("argmax")
argmin = _index("argmin")


def count_nonzero(a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    return of.count_nonzero(a, axis=axis, **_options(keepdims))


def _standard_scan(name: str) -> Callable[..., Any]:
    def scan(
        x: Any,
        /,
        *,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        include_initial: bool = False,
    ) -> Any:
        dtype = None if dtype is None else native(x._elem.library, dtype)
        return finish(
            name, getattr(of, name)(x, axis=axis, dtype=dtype, include_initial=include_initial), out
        )

    scan.__name__ = name
    return scan


cumulative_sum = _standard_scan("cumulative_sum")
cumulative_prod = _standard_scan("cumulative_prod")


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
        axis = placed(f"numpy.{name}.accumulate", axis, len(x.shape))
        places = of.running_places(x.detach(), axis, name == "maximum")
        return finish(f"{name}.accumulate", of.take_along_axis(x, places, axis=axis), out)

    return scan


running_maximum = _running("maximum")
running_minimum = _running("minimum")


for _function in (
    all,
    any,
    argmax,
    argmin,
    count_nonzero,
    cumulative_prod,
    cumulative_sum,
    max,
    mean,
    min,
    prod,
    std,
    sum,
    var,
):
    counterpart(_function.__name__)(_function)
counterpart("amax")(max)
counterpart("amin")(min)
