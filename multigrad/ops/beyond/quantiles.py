"""Medians, quantiles and percentiles, as in NumPy.

They are elements of the sorted array, or interpolations between two of them.

As for sort, the gradient goes to the elements at these places in the stable order. If an element is
nan, the result is nan, and the gradient goes to a nan.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from numbers import Real
from typing import Any, NamedTuple

from ...registry import About, composite, define, nondifferentiable
from ..batching import whole
from ..indexing import take_along_axis_vjp
from ..kernels import is_complex, wide
from ..keys import float_dtype, index_dtype
from ..statistical import _as
from .common import floating, lines, reduced_axes, spread_weights


class Numbers(NamedTuple):
    """The functions that compute places, for Python numbers or for arrays."""

    floor: Callable[[Any], Any]
    rounded: Callable[[Any], Any]  # halves round to even
    where: Callable[[Any, Any, Any], Any]


PYTHON = Numbers(math.floor, round, lambda condition, x, y: x if condition else y)

# A method maps a quantile q of n sorted elements to a place, counted from 0. A place between two
# elements is an interpolation. The continuous methods are those of Hyndman and Fan, Sample
# quantiles in statistical packages, 1996.

Method = Callable[[Numbers, Any, Any], Any]


def _continuous(alpha: float, beta: float) -> Method:
    return lambda f, n, q: n * q + (alpha + q * (1 - alpha - beta)) - 1


def _midpoint(f: Numbers, n: Any, q: Any) -> Any:
    place = (n - 1) * q
    low = f.floor(place)
    return f.where(place == low, low, low + 0.5)


def _averaged(f: Numbers, n: Any, q: Any) -> Any:
    place = n * q - 1
    low = f.floor(place)
    return f.where(place == low, low + 0.5, low + 1)


def _stepped(f: Numbers, place: Any, before: Any) -> Any:
    """Choose the element before a place, or the one after it."""
    low = f.floor(place)
    return f.where((place == low) & before(low), low, low + 1)


METHODS: dict[str, Method] = {
    "linear": lambda f, n, q: (n - 1) * q,
    "lower": lambda f, n, q: f.floor((n - 1) * q),
    "higher": lambda f, n, q: -f.floor(-((n - 1) * q)),
    "nearest": lambda f, n, q: f.rounded((n - 1) * q),
    "midpoint": _midpoint,
    "inverted_cdf": lambda f, n, q: _stepped(f, n * q - 1, lambda low: low == low),
    "closest_observation": lambda f, n, q: _stepped(f, n * q - 1.5, lambda low: low % 2 == 1),
    "averaged_inverted_cdf": _averaged,
    "interpolated_inverted_cdf": _continuous(0, 1),
    "hazen": _continuous(0.5, 0.5),
    "weibull": _continuous(0, 0),
    "median_unbiased": _continuous(1 / 3, 1 / 3),
    "normal_unbiased": _continuous(3 / 8, 3 / 8),
}


def _method(name: str, method: Any) -> Method:
    if method not in METHODS:
        raise ValueError(f"{name}: the method {method!r} is not one of {', '.join(METHODS)}.")
    return METHODS[method]


class Fractions(NamedTuple):
    """The requested quantiles, as Python numbers if possible, else as an array of one axis.

    It also holds their shape and the dtype that they contribute.
    """

    numbers: list[float] | None
    array: Any
    shape: tuple[int, ...]
    dtype: Any  # None for Python numbers, which take any dtype

    def beside(self, xp: Any, x: Any) -> Any:
        """The quantiles as an array in the default dtype or that of `x`, whichever is wider."""
        if self.numbers is None:
            return self.array
        device = xp.device_of(x)
        return xp.asarray(
            self.numbers, dtype=xp.result_type(x.dtype, float_dtype(xp, device)), device=device
        )


def _fractions(xp: Any, name: str, q: Any, device: Any) -> Fractions:
    most = 100 if "percentile" in name else 1
    parts = q if isinstance(q, (list, tuple)) else [q]
    if all(isinstance(part, Real) for part in parts):
        for part in parts:
            if not 0 <= part <= most:
                raise ValueError(f"{name}: q must be between 0 and {most}, but it is {part}.")
        shape = (len(parts),) if parts is q else ()
        dtype = None if type(q) in (float, int) else float_dtype(xp, device)
        return Fractions([float(part) / most for part in parts], None, shape, dtype)
    q = wide(xp, floating(xp, q if hasattr(q, "dtype") else xp.asarray(q, device=device)))
    fractions = xp.where((q < 0) | (q > most), math.nan, q / most)
    return Fractions(None, xp.reshape(fractions, (-1,)), tuple(q.shape), q.dtype)


# ----- the elements at given places of the sorted order -----


def order_statistics(xp: Any, x: Any, places: tuple[int, ...]) -> Any:
    ordered = xp.sort(x, axis=-1)
    return xp.stack([ordered[..., place] for place in places], axis=-1)


def places_of(xp: Any, x: Any, values: Any, places: tuple[int, ...]) -> Any:
    order = xp.argsort(x, axis=-1, stable=True)
    return xp.stack([order[..., place] for place in places], axis=-1)


nondifferentiable(
    "places_of(x, values, /, places)",
    forward=places_of,
    chapter="kernels",
    batching=lambda xp, x, values, places, size: xp.places_of(
        whole(xp, x, size), whole(xp, values, size), places
    ),
    doc="The positions, in each line along the last axis, of the elements at these places of the "
    "stable order; `values` are these elements.",
)
define(
    "order_statistics(x, /, places)",
    forward=order_statistics,
    chapter="kernels",
    batching=lambda xp, x, places: xp.order_statistics(x, places),
    residuals={"origin": lambda xp, x, ans, places: xp.places_of(x, ans, places)},
    x=lambda xp, g, origin, x_shape, x_device: take_along_axis_vjp(
        xp, g, origin, -1, x_shape, x_device
    ),
    jvp=lambda xp, t, origin: xp.take_along_axis(t, origin, axis=-1),
    doc="The elements at these places (a tuple of ints) of each sorted line along the last axis. "
    "The gradient follows the stable order.",
)

# ----- quantiles -----


def _lines(xp: Any, name: str, a: Any, axes: tuple[int, ...]) -> Any:
    a = floating(xp, a)
    if is_complex(xp, a.dtype):
        raise TypeError(
            f"{name}: complex numbers have no order. Pass their real and imaginary parts "
            "separately."
        )
    return lines(xp, a, axes)


class Mixture(NamedTuple):
    """A quantile as a mixture of the elements at two places, the second with the share `beyond`."""

    low: int
    high: int
    beyond: float


def _share(n: int, q: float, method: Method) -> Mixture:
    place = method(PYTHON, n, q)
    low = math.floor(place)
    first, second = min(max(low, 0), n - 1), min(max(low + 1, 0), n - 1)
    return Mixture(first, second, place - low if 0 <= place < n - 1 else 0.0)


def _of_numbers(xp: Any, x: Any, shares: list[Mixture]) -> list[Any]:
    """The quantile of each line for each share; nan where the line has a nan."""
    n = x.shape[-1]
    used = {s.low for s in shares} | {s.high for s in shares if s.beyond}
    places = tuple(sorted(used | {n - 1}))
    chosen = xp.order_statistics(x, places)
    at = {place: chosen[..., i] for i, place in enumerate(places)}
    return [xp.where(xp.isnan(at[n - 1]), at[n - 1], _between(at, s)) for s in shares]


def _between(at: Mapping[int, Any], share: Mixture) -> Any:
    if not share.beyond:
        return at[share.low]
    first, second, beyond = at[share.low], at[share.high], share.beyond
    if beyond == 0.5:
        return first * 0.5 + second * 0.5  # not half of their sum, which may overflow
    if beyond < 0.5:
        return first + (second - first) * beyond
    return second - (second - first) * (1 - beyond)


def _of_array(xp: Any, x: Any, n: Any, q: Any, method: Method) -> Any:
    """The quantiles of each sorted line, along its axis.

    n is a number, or an array with one number for each line and an axis of length 1.
    """
    place = method(Numbers(xp.floor, xp.round, xp.where), n, q)
    low = xp.floor(place)
    first, second = _at(xp, x, n, low), _at(xp, x, n, low + 1)
    beyond = _as(xp, xp.where((place < 0) | (place >= n - 1), 0.0, place - low), x.dtype)
    step = xp.where(first == second, 0.0, second - first)
    between = xp.where(beyond < 0.5, first + step * beyond, second - step * (1 - beyond))
    between = xp.where((beyond == 0) & ~xp.isfinite(step), first, between)
    return xp.where(xp.isnan(beyond), math.nan, between)


def _at(xp: Any, x: Any, n: Any, places: Any) -> Any:
    """The elements of each line at given places; outside, the first or the last of n elements."""
    places = xp.where(places < n - 1, places, 0.0 * places + (n - 1))
    places = xp.astype(xp.where(places > 0, places, 0.0), index_dtype(xp, xp.device_of(x)))
    places = xp.broadcast_to(places, (*x.shape[:-1], places.shape[-1]))
    return xp.take_along_axis(x, places, axis=-1)


def _weighted(xp: Any, x: Any, weights: Any, q: Any, skips: bool) -> Any:
    """The first element of each sorted line at which the cumulative weight reaches a share q.

    It is nan where weights are negative, or their sum is 0 or not finite.
    """
    lost = xp.isnan(x)
    weights = xp.where(lost, 0.0, weights) if skips else weights
    wrong = xp.any(weights < 0, axis=-1, keepdims=True)
    order = xp.argsort(x, axis=-1, stable=True)
    shares = xp.cumulative_sum(xp.take_along_axis(weights, order, axis=-1), axis=-1)
    total = shares[..., x.shape[-1] - 1 :]
    shares = _as(xp, shares / xp.where((total > 0) & xp.isfinite(total), total, math.nan), q.dtype)
    # leading elements without weight are not the quantile 0
    shares = xp.where(shares == 0, -1.0, shares)
    before = xp.astype(shares[..., None, :] < q[:, None], index_dtype(xp, xp.device_of(x)))
    places = xp.astype(xp.sum(before, axis=-1), q.dtype)
    n = x.shape[-1]
    if skips:
        n = n - xp.sum(xp.astype(lost, q.dtype), axis=-1, keepdims=True)
    quantiles = _at(xp, xp.take_along_axis(x, order, axis=-1), n, places)
    if not skips:
        quantiles = xp.where(xp.any(lost, axis=-1, keepdims=True), math.nan, quantiles)
    return xp.where(wrong | xp.isnan(total / total) | xp.isnan(q), math.nan, quantiles)


def _weights(xp: Any, name: str, a: Any, axis: Any, method: str, weights: Any) -> Any:
    """The weights in the shape of `a`, as constants.

    Small changes of them do not change the quantiles.
    """
    if method != "inverted_cdf":
        raise ValueError(
            f"{name}: the method {method!r} does not take weights. Use "
            "method='inverted_cdf', or pass no weights."
        )
    like = xp.zeros_like(floating(xp, a))
    return xp.broadcast_to(spread_weights(xp, name, like, axis, weights), tuple(a.shape))


def _quantile(
    name: str, xp: Any, a: Any, q: Any, axis: Any, method: str, keepdims: bool, weights: Any = None
) -> Any:
    """The quantiles; if `name` begins with nan, those of the elements that are not nan."""
    way = _method(name, method)
    weights = None if weights is None else _weights(xp, name, a, axis, method, weights)
    asked = _fractions(xp, name, q, xp.device_of(a))
    axes = reduced_axes(name, axis, len(a.shape))
    x = _lines(xp, name, a, axes)
    x = x if asked.dtype is None else _as(xp, x, xp.result_type(x.dtype, asked.dtype))
    n, skips = x.shape[-1], name.startswith("nan")
    if n == 0 or 0 in asked.shape:
        quantiles = xp.full(
            (*asked.shape, *x.shape[:-1]), math.nan, dtype=x.dtype, device=xp.device_of(x)
        )
    elif weights is not None:
        quantiles = _weighted(xp, x, lines(xp, weights, axes), asked.beside(xp, x), skips)
        quantiles = xp.reshape(xp.moveaxis(quantiles, -1, 0), (*asked.shape, *x.shape[:-1]))
    elif asked.numbers is not None and not skips:
        parts = _of_numbers(xp, x, [_share(n, q, way) for q in asked.numbers])
        quantiles = xp.stack(parts, axis=0) if asked.shape else parts[0]
    else:
        fractions = asked.beside(xp, x)
        x = xp.sort(x, axis=-1)
        if skips:
            count = xp.sum(xp.astype(~xp.isnan(x), fractions.dtype), axis=-1, keepdims=True)
            quantiles = xp.where(count == 0, math.nan, _of_array(xp, x, count, fractions, way))
        else:
            last = x[..., n - 1 :]
            quantiles = xp.where(xp.isnan(last), last, _of_array(xp, x, n, fractions, way))
        quantiles = xp.reshape(xp.moveaxis(quantiles, -1, 0), (*asked.shape, *x.shape[:-1]))
    if not keepdims:
        return quantiles
    lengths = (1 if i in axes else m for i, m in enumerate(a.shape))
    return xp.reshape(quantiles, (*asked.shape, *lengths))


def _median(name: str, xp: Any, a: Any, axis: Any, keepdims: bool) -> Any:
    return _quantile(name, xp, a, 0.5, axis, "linear", keepdims)


_ORDER = "The gradient goes to the same elements as that of sort. "

composite(
    "median(a: array, axis=None, *, keepdims=False)",
    partial(_median, "median"),
    doc=f"The median over one axis, several, or all; nan if an element is nan. {_ORDER}As "
    "numpy.median.",
    about=About(example="V", method=True),
)
composite(
    "nanmedian(a: array, axis=None, *, keepdims=False)",
    partial(_median, "nanmedian"),
    doc=f"The median of the elements that are not nan; nan if all are nan. {_ORDER}As "
    "numpy.nanmedian.",
    about=About(method=True),
)
for _name, _words, _half in (
    ("quantile", "The quantiles q, from 0 to 1", "0.5"),
    ("percentile", "The percentiles q, from 0 to 100", "50.0"),
):
    for _prefix, _what, _array in (
        (
            "",
            "over one axis, several, or all; nan where a nan is among the elements, or an element "
            "of an array q is out of range. Axes of q come first.",
            "V",
        ),
        (
            "nan",
            "of the elements that are not nan; nan if all are nan.",
            "mg.asarray([1.0, mg.nan])",
        ),
    ):
        composite(
            f"{_prefix}{_name}(a: array, q: array, axis=None, *, method='linear', keepdims=False, "
            "weights: array = None)",
            partial(_quantile, _prefix + _name),
            doc=f"{_words}, {_what} The method 'inverted_cdf' takes weights. {_ORDER}Same as "
            f"numpy.{_prefix}{_name}.",
            about=About(example=f"{_array}, {_half}", method=_name == "quantile"),
        )
