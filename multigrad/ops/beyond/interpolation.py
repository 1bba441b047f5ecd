"""gradient, by differences over a grid, and interp, by straight lines between points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any

from ...registry import About, composite
from ..kernels import alike
from ..keys import along, float_dtype, place

# ----- gradient -----


def gradient(xp: Any, f: Any, varargs: Sequence[Any], axis: Any, edge_order: Any) -> Any:
    """Return one array for each axis, or the array itself for a single axis."""
    ndim = len(f.shape)
    several = axis is None or isinstance(axis, (tuple, list))
    numbers = range(ndim) if axis is None else axis if several else (axis,)
    axes = [place("gradient", "axis", a, ndim) for a in numbers]
    if len(set(axes)) != len(axes):
        raise ValueError(f"gradient: an axis is given twice in {axis!r}.")
    if len(varargs) not in (0, 1, len(axes)):
        raise TypeError(
            f"gradient: {len(varargs)} spacings are given for {len(axes)} axes; there may be "
            "none, one for all, or one for each."
        )
    order = index(edge_order)
    if order not in (1, 2):
        raise ValueError(f"gradient: edge_order is {edge_order!r}; it must be 1 or 2.")
    if xp.isdtype(f.dtype, ("integral", "bool")):
        f = xp.astype(f, float_dtype(xp, xp.device_of(f)))
    elif varargs:
        # an array object of multigrad, so that operators accept other array objects beside it
        f = xp.astype(f, f.dtype, copy=False)
    spacings = list(varargs or [1.0])
    if len(spacings) == 1:
        spacings *= len(axes)
    parts = tuple(
        _along(xp, f, a, _steps(xp, f, h, a), order) for a, h in zip(axes, spacings, strict=True)
    )
    return parts[0] if len(axes) == 1 else parts


def _steps(xp: Any, f: Any, h: Any, axis: int) -> Any:
    """Return a scalar spacing unchanged, or the distances between coordinates."""
    shape = getattr(h, "shape", ())
    if isinstance(h, (list, tuple)):
        h = xp.asarray(h, dtype=f.dtype, device=xp.device_of(f))
        shape = h.shape
    if not shape:
        return h
    if len(shape) != 1 or shape[0] != f.shape[axis]:
        raise ValueError(
            f"gradient: the spacing of axis {axis} must be a number, or the {f.shape[axis]} "
            f"coordinates along it; its shape is {tuple(shape)}."
        )
    if xp.isdtype(h.dtype, ("integral", "bool")):
        h = xp.astype(h, float_dtype(xp, xp.device_of(h)))
    return h[1:] - h[:-1]


def _along(xp: Any, f: Any, axis: int, h: Any, order: int) -> Any:
    n = f.shape[axis]
    if n < order + 1:
        raise ValueError(
            f"gradient: axis {axis} has length {n}; edge_order={order} needs {order + 1} "
            "elements at least."
        )
    if getattr(h, "shape", ()):
        h = xp.reshape(h, tuple(n - 1 if i == axis else 1 for i in range(len(f.shape))))
        return _by_coordinates(xp, f, axis, h, order)
    at = _parts(f, axis)
    middle = xp.divide(at(2, n) - at(0, n - 2), 2.0 * h)
    if order == 1:
        first = xp.divide(at(1, 2) - at(0, 1), h)
        last = xp.divide(at(n - 1, n) - at(n - 2, n - 1), h)
    else:
        first = at(0, 1) * (-1.5 / h) + at(1, 2) * (2.0 / h) + at(2, 3) * (-0.5 / h)
        last = (
            at(n - 3, n - 2) * (0.5 / h) + at(n - 2, n - 1) * (-2.0 / h) + at(n - 1, n) * (1.5 / h)
        )
    return xp.concat([first, middle, last], axis=axis)


def _parts(x: Any, axis: int) -> Callable[[int, int], Any]:
    """The function that returns the part of `x` between two places along an axis."""
    return lambda start, stop: x[along(axis, start, stop)]


def _by_coordinates(xp: Any, f: Any, axis: int, h: Any, order: int) -> Any:
    """The differences for distances h between coordinates."""
    n, at, step = f.shape[axis], _parts(f, axis), _parts(h, axis)
    d1, d2 = step(0, n - 2), step(1, n - 1)
    middle = (
        at(0, n - 2) * (-d2 / (d1 * (d1 + d2)))
        + at(1, n - 1) * ((d2 - d1) / (d1 * d2))
        + at(2, n) * (d1 / (d2 * (d1 + d2)))
    )
    if order == 1:
        first = (at(1, 2) - at(0, 1)) / step(0, 1)
        last = (at(n - 1, n) - at(n - 2, n - 1)) / step(n - 2, n - 1)
    else:
        d1, d2 = step(0, 1), step(1, 2)
        first = (
            at(0, 1) * (-(2.0 * d1 + d2) / (d1 * (d1 + d2)))
            + at(1, 2) * ((d1 + d2) / (d1 * d2))
            + at(2, 3) * (-d1 / (d2 * (d1 + d2)))
        )
        d1, d2 = step(n - 3, n - 2), step(n - 2, n - 1)
        last = (
            at(n - 3, n - 2) * (d2 / (d1 * (d1 + d2)))
            + at(n - 2, n - 1) * (-(d2 + d1) / (d1 * d2))
            + at(n - 1, n) * ((2.0 * d2 + d1) / (d2 * (d1 + d2)))
        )
    return xp.concat([first, middle, last], axis=axis)


composite(
    "gradient(f: array, *varargs, axis=None, edge_order=1)",
    gradient,
    doc="Central differences inside and one-sided differences at the ends, along one axis, or "
    "along each axis as a tuple. Same as numpy.gradient.",
    about=About(example="mg.asarray([1.0, 4.0, 9.0])"),
)

# ----- interp -----


def interp(xp: Any, x: Any, points: Any, fp: Any, left: Any, right: Any, period: Any) -> Any:
    """Interpolate; outside all points use the first and last values, or `left` and `right`.

    With a period, the points repeat.
    """
    x, points, fp = _floats(xp, (x, points, fp), (left, right, period))
    if len(points.shape) != 1 or len(fp.shape) != 1:
        raise ValueError(
            f"interp: xp and fp must have one axis; their shapes are {tuple(points.shape)} and "
            f"{tuple(fp.shape)}."
        )
    n = points.shape[0]
    if fp.shape[0] != n:
        raise ValueError(
            f"interp: xp and fp must have one length; they have {n} and {fp.shape[0]}."
        )
    if not n:
        raise ValueError("interp: xp and fp have no elements.")
    if period is not None:
        x, points, fp = _periodic(xp, x, points, fp, period)
        left = right = None
        n = points.shape[0]
    if n == 1:
        inside = xp.broadcast_to(fp[0], x.shape)
    else:
        inside = _between(xp, x, points, fp, n)
    first, last = (fp[0] if left is None else left), (fp[n - 1] if right is None else right)
    ends = points[0], points[n - 1]
    y = xp.where(xp.equal(x, ends[1]), fp[n - 1], inside)
    return xp.where(xp.less(x, ends[0]), first, xp.where(xp.greater(x, ends[1]), last, y))


def _between(xp: Any, x: Any, points: Any, fp: Any, n: int) -> Any:
    """The line through the two neighbouring points, computed from the first point.

    If that gives nan, because values are infinite, it is computed from the second point.
    """
    j = xp.clip(xp.searchsorted(points, x, side="right"), 1, n - 1)
    flat = xp.reshape(j, (-1,))

    def at(values: Any, places: Any) -> Any:
        return xp.reshape(xp.take(values, places, axis=0), x.shape)

    # array objects of multigrad, so that operators can be used
    x0, x1, y0, y1 = at(points, flat - 1), at(points, flat), at(fp, flat - 1), at(fp, flat)
    width = x1 - x0
    width = alike(xp, xp.where(width == 0, 1.0, width), y0)
    slope = (y1 - y0) / width
    y = slope * alike(xp, xp.subtract(x, x0), slope) + y0
    y = xp.where(xp.isnan(y), slope * alike(xp, xp.subtract(x, x1), slope) + y1, y)
    return xp.where(xp.isnan(y) & (y0 == y1), y0, y)


def _floats(xp: Any, values: tuple[Any, ...], options: tuple[Any, ...]) -> list[Any]:
    """Convert the arguments to floating arrays on one device.

    Python numbers, and lists of them, take the dtype of the other arguments; if there is no array
    among these, that of the options.
    """
    own = [v for v in values if hasattr(v, "dtype")]
    candidates = own or [v for v in options if hasattr(v, "dtype")]
    like = candidates[0]
    floating = next((v.dtype for v in candidates if xp.isdtype(v.dtype, "real floating")), None)
    if floating is None:
        floating = float_dtype(xp, xp.device_of(like))
    arrays = [
        v if hasattr(v, "dtype") else xp.asarray(v, dtype=floating, device=xp.device_of(like))
        for v in values
    ]
    return [
        xp.astype(v, floating) if xp.isdtype(v.dtype, ("integral", "bool")) else v for v in arrays
    ]


def _periodic(xp: Any, x: Any, points: Any, fp: Any, period: Any) -> tuple[Any, Any, Any]:
    """Move all points into one period, sort them, and add one point at each end."""
    if type(period) in (int, float) and period == 0:
        raise ValueError("interp: the period is 0.")
    period = abs(period)
    x, points = x % period, points % period
    order = xp.argsort(points)
    points, fp = xp.take(points, order, axis=0), xp.take(fp, order, axis=0)
    return (
        x,
        xp.concat([points[-1:] - period, points, points[:1] + period], axis=0),
        xp.concat([fp[-1:], fp, fp[:1]], axis=0),
    )


composite(
    "interp(x: array, xp: array, fp: array, left=None, right=None, period=None)",
    interp,
    doc="The values at x of the piecewise linear function through the points (xp, fp), with xp in "
    "increasing order. Same as numpy.interp, in the dtype of its arguments.",
    about=About(example="mg.asarray([0.5]), mg.asarray([0.0, 1.0]), mg.asarray([10.0, 20.0])"),
)
