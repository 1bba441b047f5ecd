"""Reductions and scans that ignore nan, as in NumPy.

A nan is a constant: its gradient is 0. If all elements are nan, so is their mean, variance or
extremum.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from ...registry import About, composite, define, nondifferentiable
from .. import batching
from ..kernels import alike, imaginary, is_complex, is_floating, refuse, wide
from ..statistical import _as, _axes, _divided, _how_many, _kept
from .common import floating, without_nan
from .running import scan

# ----- sums and products -----


def reduced(
    reduction: str, value: float, xp: Any, a: Any, axis: Any, dtype: Any, keepdims: bool
) -> Any:
    """Compute a reduction in which a nan counts as `value`."""
    a = without_nan(xp, a, value)
    return getattr(xp, reduction)(a, axis=axis, dtype=dtype, keepdims=keepdims)


# ----- mean and variance -----


def _quotient(xp: Any, total: Any, count: Any) -> Any:
    """total / count, which is nan if count is 0."""
    return total / alike(xp, xp.where(count > 0, count, math.nan), total)


def _mean(xp: Any, a: Any, axis: Any, keepdims: bool) -> tuple[Any, Any, Any]:
    """The mask of nans, the number of other elements as a float to divide by, and their mean."""
    lost = xp.isnan(a)
    real = xp.real(a).dtype if is_complex(xp, a.dtype) else a.dtype
    count = xp.sum(xp.astype(~lost, real), axis=axis, keepdims=keepdims)
    total = xp.sum(xp.where(lost, 0.0, a), axis=axis, keepdims=keepdims)
    return lost, count, _quotient(xp, total, count)


def _cast(xp: Any, a: Any, dtype: Any) -> Any:
    return floating(xp, a) if dtype is None else xp.astype(a, dtype)


def nanmean(xp: Any, a: Any, axis: Any, dtype: Any, keepdims: bool) -> Any:
    a = _cast(xp, a, dtype)
    return _as(xp, _mean(xp, wide(xp, a), axis, keepdims)[2], a.dtype)


def deviation(
    name: str, xp: Any, a: Any, axis: Any, dtype: Any, ddof: float, keepdims: bool, correction: Any
) -> Any:
    """Compute nanvar, or nanstd, its root."""
    if correction is not None and ddof != 0:
        raise ValueError(f"{name}: ddof and correction mean the same, so give one of them.")
    a = _cast(xp, a, dtype)
    z = wide(xp, a)
    lost, count, mean = _mean(xp, z, axis, True)
    apart = xp.where(lost, 0.0, z - mean)
    square = xp.real(xp.conj(apart) * apart) if is_complex(xp, z.dtype) else apart * apart
    total = xp.sum(square, axis=axis, keepdims=True)
    result = _quotient(xp, total, count - (ddof if correction is None else correction))
    result = result if keepdims else xp.squeeze(result, axis=_axes(z.shape, axis))
    if name == "nanstd":
        flat = result == 0  # the gradient of constants is 0
        result = xp.where(flat, 0.0, xp.sqrt(xp.where(flat, 1.0, result)))
    return _as(xp, result, xp.real(a).dtype)


# ----- extrema: they have their own rule, since an infinity in place of a nan would share the
# gradient with a real infinity -----


def extremum(name: str, xp: Any, a: Any, axis: Any, keepdims: bool) -> Any:
    reduce, other = getattr(xp, name), math.inf if name == "min" else -math.inf
    if not is_floating(xp, a.dtype):
        return reduce(a, axis=axis, keepdims=keepdims)
    lost = xp.isnan(a)
    # libraries that have an order of complex numbers compare the real parts first
    last = complex(other, other) if is_complex(xp, a.dtype) else other
    best = reduce(xp.where(lost, last, a), axis=axis, keepdims=keepdims)
    return xp.where(xp.all(lost, axis=axis, keepdims=keepdims), math.nan, best)


def _shares(xp: Any, a: Any, ans: Any, axis: Any, keepdims: bool, dtype: Any) -> tuple[Any, Any]:
    """The mask of elements equal to the extremum, and their number (1 if there is none)."""
    winners = a == _kept(xp, ans, a.shape, axis, keepdims)
    count = _how_many(xp, winners, dtype, axis, True)
    return winners, xp.where(count == 0, 1.0, count)


def extremum_vjp(xp: Any, g: Any, a: Any, ans: Any, axis: Any, keepdims: Any) -> Any:
    winners, count = _shares(xp, a, ans, axis, keepdims, g.dtype)
    return xp.where(winners, _divided(xp, _kept(xp, g, a.shape, axis, keepdims), count), 0.0)


def extremum_jvp(xp: Any, t: Any, a: Any, ans: Any, axis: Any, keepdims: Any) -> Any:
    winners, count = _shares(xp, a, ans, axis, keepdims, t.dtype)
    out = _divided(xp, xp.sum(xp.where(winners, t, 0.0), axis=axis, keepdims=True), count)
    return out if keepdims else xp.squeeze(out, axis=_axes(a.shape, axis))


def index_of(name: str, xp: Any, a: Any, axis: Any, keepdims: bool) -> Any:
    """The index of the first extremum: `name` is "min" or "max"."""
    if not is_floating(xp, a.dtype):
        return getattr(xp, f"arg{name}")(a, axis=axis, keepdims=keepdims)
    best = extremum(name, xp, a, axis, True)
    index = xp.argmax(xp.astype(a == best, xp.int8), axis=axis, keepdims=keepdims)
    missing = xp.isnan(best)
    if not keepdims:
        missing = xp.squeeze(missing, axis=_axes(a.shape, axis))
    return xp.known_index(
        index,
        missing,
        f"nanarg{name}: a slice has only nan, so it has no {name}imum. Replace nan first, with "
        "nan_to_num.",
    )


# ----- replacement -----


def nan_to_num(xp: Any, x: Any, copy: bool, nan: Any, posinf: Any, neginf: Any) -> Any:
    if not copy:
        raise ValueError(
            "nan_to_num: copy=False would write into the array. Write x[...] = nan_to_num(x)."
        )
    if not is_floating(xp, x.dtype):
        return xp.asarray(x, copy=True)
    if is_complex(xp, x.dtype):
        real, imag = (
            nan_to_num(xp, part, copy, nan, posinf, neginf) for part in (xp.real(x), xp.imag(x))
        )
        return xp.astype(real, x.dtype) + imaginary(xp, imag, x.dtype)
    limits = xp.finfo(x.dtype)
    high, low = limits.max if posinf is None else posinf, limits.min if neginf is None else neginf
    nothing, high, low = (
        xp.asarray(v, dtype=x.dtype, device=xp.device_of(x)) for v in (nan, high, low)
    )
    return xp.where(xp.isfinite(x), x, xp.where(xp.isnan(x), nothing, xp.where(x > 0, high, low)))


# ----- the operations -----

# fmt: off
composite("nansum(a: array, axis=None, dtype=None, *, keepdims=False)",
          partial(reduced, "sum", 0.0),
          doc="The sum of the elements that are not nan over one axis, several, or all; 0 if all "
              "are nan. Same as numpy.nansum.",
          about=About(method=True))
composite("nanprod(a: array, axis=None, dtype=None, *, keepdims=False)",
          partial(reduced, "prod", 1.0),
          doc="The product of the elements that are not nan over one axis, several, or all; 1 if "
              "all are nan. Same as numpy.nanprod.")
for _name, _standard, _value, _what in (
    ("nancumsum", "cumulative_sum", 0.0, "sums"),
    ("nancumprod", "cumulative_prod", 1.0, "products"),
):
    composite(f"{_name}(a: array, axis=None, dtype=None)", partial(scan, _standard, _value),
              doc=f"The cumulative {_what} along an axis, or of the flattened array (None); a nan "
                  f"counts as {_value:.0f}. Same as numpy.{_name}.")
composite("nanmean(a: array, axis=None, dtype=None, *, keepdims=False)", nanmean,
          doc="The mean of the elements that are not nan over one axis, several, or all. As "
              "numpy.nanmean.",
          about=About(method=True))
composite("nanvar(a: array, axis=None, dtype=None, *, ddof=0, keepdims=False, correction=None)",
          partial(deviation, "nanvar"),
          doc="The variance of the elements that are not nan over one axis, several, or all. The "
              "divisor is their number minus ddof; correction is another name for ddof. The "
              "result is nan where the divisor is not positive. Same as numpy.nanvar.")
composite("nanstd(a: array, axis=None, dtype=None, *, ddof=0, keepdims=False, correction=None)",
          partial(deviation, "nanstd"),
          doc="The square root of nanvar. The gradient of constants is 0. Same as numpy.nanstd.")
for _name, _extreme in (("min", "smallest"), ("max", "largest")):
    define(f"nan{_name}(a: array, axis=None, *, keepdims=False)", forward=partial(extremum, _name),
           batching="axis", a=extremum_vjp, jvp=extremum_jvp,
           doc=f"The {_extreme} of the elements that are not nan over one axis, several, or all; "
               f"nan if all are nan. Ties share the gradient. As numpy.nan{_name}.",
           about=About(gradient="g for the element equal to the extremum; equal elements share it "
                                "evenly"))
nondifferentiable("known_index(x, bad, /, message)", forward=partial(refuse, ValueError, -1),
                  batching=batching.refusal("known_index"), chapter="kernels",
                  doc="Return `x`; raise ValueError(message) if `bad` is true anywhere. Where "
                      "values are not known (under a trace), the result is -1 there instead.",
                  about=About(checks=True))
for _name, _extreme in (("min", "smallest"), ("max", "largest")):
    nondifferentiable(f"nanarg{_name}(a: array, axis=None, *, keepdims=False)",
                      forward=partial(index_of, _name), batching="form",
                      doc=f"The index of the first {_extreme} element that is not nan. If all are "
                          "nan it raises ValueError, or returns -1 under a trace, where values are "
                          f"not known. As numpy.nanarg{_name}.",
                      about=About(returns="integers"))
composite("nan_to_num(x: array, copy=True, nan=0.0, posinf=None, neginf=None)", nan_to_num,
          doc="Each element, with nan replaced by `nan`, and infinities by `posinf` and `neginf`, "
              "or by default by the largest and smallest numbers of the dtype. The gradient of a "
              "replaced element is 0. Same as numpy.nan_to_num.",
          about=About(example="mg.asarray([1.0, mg.nan])", method=True))
