"""NumPy's functions that make arrays, take parts of complex numbers, or compare values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.element import Library
from ..core.level import Layer
from .reductions import cast, floats
from .table import counterpart, counterparts
from .values import arrayed, finish, library_of_all, native, numpys, of, sizes

# ----- making -----


def _options(library: Library, dtype: Any, device: Any) -> dict[str, Any]:
    options = {"dtype": native(library, dtype), "device": device}
    return {name: value for name, value in options.items() if value is not None}


def _like(name: str) -> Callable[..., Any]:
    def function(
        a: Any,
        dtype: Any = None,
        order: str = "K",
        subok: bool = True,
        shape: Any = None,
        *,
        device: Any = None,
        fill: tuple[Any, ...] = (),
    ) -> Any:
        library = a._elem.library
        options = _options(library, dtype, device)
        if shape is None:
            return getattr(library.bound, name)(a if fill else a.detach(), *fill, **options)
        maker = getattr(library.bound, name.removesuffix("_like"))
        return maker(sizes(shape), *fill, **({"dtype": a.dtype} | options))

    return function


counterparts(
    copy=lambda a, order="K", subok=False: a.clone(),
    empty_like=_like("empty_like"),
    full_like=lambda a, fill_value, *args, **kwargs: _like("full_like")(
        a, *args, fill=(fill_value,), **kwargs
    ),
    ones_like=_like("ones_like"),
    zeros_like=_like("zeros_like"),
)


@counterpart("meshgrid")
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    library = library_of_all("numpy.meshgrid", xi)
    arrays = [_tensor(x, library) for x in xi]
    if copy and not sparse:
        return tuple(of.meshgrid(*arrays, indexing=indexing))
    if indexing not in ("xy", "ij"):
        raise ValueError(f"numpy.meshgrid: indexing must be 'xy' or 'ij', not {indexing!r}.")
    order = [1, 0, *range(2, len(xi))] if indexing == "xy" and len(xi) > 1 else range(len(xi))
    axes = tuple(
        of.reshape(x, tuple(-1 if j == i else 1 for j in range(len(xi))), copy=copy or None)
        for x, i in zip(arrays, order, strict=True)
    )
    if sparse:
        return axes
    shape = np.broadcast_shapes(*(tuple(x.shape) for x in axes))
    return tuple(of.broadcast_to(x, shape) for x in axes)


@counterpart("linspace")
def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    library = library_of_all("numpy.linspace", start, stop)
    xp = library.bound
    start, stop = (
        x if x._elem.floating else of.astype(x, xp.asarray(0.0).dtype)
        for x in (_tensor(start, library), _tensor(stop, library))
    )
    count = num - 1 if endpoint else num
    if not start.shape and not stop.shape:
        points = _stepped(of.linspace(start, stop, num, endpoint=endpoint), dtype)
    else:
        steps = xp.arange(num, dtype=(start + stop).detach().dtype) / max(count, 1)
        wide = of.reshape(steps, (num, *(1,) * len((start + stop).shape)))
        points = start + wide * (stop - start)
        points = _stepped(points if axis == 0 else of.moveaxis(points, 0, axis), dtype)
    if not retstep:
        return points
    return points, (stop - start) / count if count > 0 else (stop - start) * math.nan


def _stepped(points: Any, dtype: Any) -> Any:
    """The array in another dtype. Integers are rounded down, as in numpy.linspace."""
    library = points._elem.library
    if dtype is not None and library.bound.isdtype(native(library, dtype), "integral"):
        points = of.floor(points)
    return cast(points, dtype)


def _tensor(x: Any, library: Any) -> Any:
    return x if isinstance(x, Layer) else library.bound.asarray(x)


@counterpart("copyto")
def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    library = library_of_all("numpy.copyto", dst, src, where)
    if where is not True:
        src = of.where(arrayed(where, library), arrayed(src, library), arrayed(dst, library))
    finish("copyto", src, dst)


# ----- numpy.zeros(3, like=t): NumPy calls the protocol of `t` without `like` -----


def _beside(name: str) -> Callable[..., Any]:
    def function(
        library: Library,
        *args: Any,
        dtype: Any = None,
        order: Any = "K",
        device: Any = None,
        **options: Any,
    ) -> Any:
        xp = library.bound
        if name in ("zeros", "ones", "empty") and len(args) > 1:
            args, dtype = args[:1], args[1]
        options |= _options(library, dtype, device)
        if name == "array":
            options.setdefault("copy", True)
            options.pop("subok", None)
            least = options.pop("ndmin", 0)
            x = xp.asarray(*args, **options)
            return xp.reshape(x, (*(1,) * (least - len(x.shape)), *x.shape))
        if name == "eye":  # the standard takes the diagonal by its name
            options |= zip(("M", "k"), args[1:], strict=False)
            args = (*args[:1], options.pop("M", None), *args[3:])
        return getattr(xp, SAME.get(name, name))(*args, **options)

    return function


SAME = {"asanyarray": "asarray", "identity": "eye"}
"""The standard's name of a function that has another name in NumPy."""

BESIDE: dict[str, Callable[..., Any]] = {
    name: _beside(name)
    for name in ("arange", "array", "asarray", "empty", "eye", "full", "ones", "zeros", *SAME)
}
"""By NumPy's name: functions of a library and the arguments."""


# ----- parts of complex numbers -----


counterparts(real=lambda val: val.real, imag=lambda val: val.imag)


@counterpart("angle")
def angle(z: Any, deg: bool = False) -> Any:
    z = floats(z)
    radians = of.atan2(z.imag, z.real) if z._elem.complex else of.atan2(of.zeros_like(z), z)
    return of.rad2deg(radians) if deg else radians


@counterpart("real_if_close")
def real_if_close(a: Any, tol: float = 100) -> Any:
    if not a._elem.complex:
        return a
    limit = tol * np.finfo(numpys(a.dtype)).eps if tol > 1 else tol
    return a.real if bool(of.all(of.abs(a.imag.detach()) < limit)) else a


# ----- comparisons that look at values -----


@counterpart("isclose")
def isclose(
    a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Any:
    library = library_of_all("numpy.isclose", a, b, rtol, atol)
    a, b = (floats(_tensor(x, library)) for x in (a, b))
    near = (a == b) | (of.isfinite(b) & (of.abs(a - b) <= atol + rtol * of.abs(b)))
    return near | (of.isnan(a) & of.isnan(b)) if equal_nan else near


@counterpart("allclose")
def allclose(
    a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    return bool(of.all(isclose(a, b, rtol, atol, equal_nan)))


@counterpart("array_equal")
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    if a1 is None or a2 is None:
        return False
    library = library_of_all("numpy.array_equal", a1, a2)
    a1, a2 = (_tensor(x, library) for x in (a1, a2))
    if tuple(a1.shape) != tuple(a2.shape):
        return False
    same = a1 == a2
    return bool(of.all(same | ((a1 != a1) & (a2 != a2)) if equal_nan else same))


@counterpart("array_equiv")
def array_equiv(a1: Any, a2: Any) -> bool:
    library = library_of_all("numpy.array_equiv", a1, a2)
    try:
        return bool(of.all(_tensor(a1, library) == _tensor(a2, library)))
    except ValueError:
        return False
