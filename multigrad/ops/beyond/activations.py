"""Functions common in models: sigmoid and similar ones, softmax, logsumexp.

Signatures and meanings are PyTorch's and SciPy's.
"""

from __future__ import annotations

import math
from typing import Any

from ...registry import About, composite, define, elementwise, nondifferentiable
from ..kernels import alike, conj, is_complex, wide
from ..statistical import _as, _axes, _kept
from .common import floating, weights_like

# Each has its own rule. It records one node where the formula has up to six, and no intermediate
# array is infinite or cancels.

# ----- elementwise functions -----


def logistic(xp: Any, x: Any) -> Any:
    """1 / (1 + exp(-x)), computed from exp(-|x|), which does not overflow.

    For complex numbers it is exp(x) left of the imaginary axis and exp(-x) right of it.
    """
    if is_complex(xp, x.dtype):
        left = xp.real(x) < 0
        small = xp.exp(xp.where(left, x, -x))
    else:
        left, small = x < 0, xp.exp(-xp.abs(x))
    return xp.where(left, small, xp.ones_like(x)) / (1 + small)


FLAT = 1000.0
"""Beyond this bound the logistic function is 0 or 1 in every dtype of the standard."""


def silu(xp: Any, x: Any) -> Any:
    """x * logistic(x), which is also 0 at -inf."""
    x = floating(xp, x)
    return (x if is_complex(xp, x.dtype) else xp.maximum(x, -2e4)) * xp.logistic(x)


def _bounded_logistic(xp: Any, x: Any) -> tuple[Any, Any]:
    """x and logistic(x).

    Where that is 0 or 1, x is replaced by a bound, so that an infinite x is not multiplied by 0.
    """
    x = x if is_complex(xp, x.dtype) else xp.clip(x, -FLAT, FLAT)
    return x, xp.logistic(x)


def silu_slope(xp: Any, x: Any) -> Any:
    x, s = _bounded_logistic(xp, x)
    return s * (1 + x * (1 - s))


def silu_curvature(xp: Any, x: Any) -> Any:
    x, s = _bounded_logistic(xp, x)
    return s * (1 - s) * (2 + x * (1 - 2 * s))


def softplus(xp: Any, x: Any, beta: float, threshold: float) -> Any:
    """log(1 + exp(beta x)) / beta, computed from exp(-|beta x|)."""
    x = floating(xp, x)
    if is_complex(xp, x.dtype):
        raise TypeError(
            "softplus: complex numbers have no order, and the formula has branch cuts on "
            "lines of imaginary part pi / beta; of complex arrays, write log1p(exp(x))."
        )
    z = x if beta == 1 else x * beta
    smooth = xp.maximum(z, 0) + xp.log1p(xp.exp(-xp.abs(z)))
    return xp.where(z > threshold, x, smooth if beta == 1 else smooth / beta)


def softplus_partial(xp: Any, g: Any, x: Any, beta: float, threshold: float) -> Any:
    z = x if beta == 1 else x * beta
    return xp.where(z > threshold, g, g * xp.logistic(z))


# ----- along axes -----


def _total(xp: Any, x: Any, axis: Any) -> Any:
    return xp.sum(x, axis=axis, keepdims=True)


def finite_peak(xp: Any, x: Any, axis: Any) -> Any:
    """The largest element, or the largest real part of complex elements, as a finite number.

    It is 0 where the maximum is not finite, or where there are no elements.
    """
    x = xp.real(x) if is_complex(xp, x.dtype) else x
    axes = _axes(x.shape, axis)
    if any(x.shape[a] == 0 for a in axes):
        return _total(xp, x, axis)
    peak = xp.max(x, axis=axis, keepdims=True)
    return xp.where(xp.isfinite(peak), peak, 0.0)


def softmax(xp: Any, x: Any, axis: Any) -> Any:
    """Compute narrow dtypes in float32, since their sum may be infinite."""
    x = floating(xp, x)
    z = wide(xp, x)
    if 0 in z.shape:
        return x
    peak = (
        alike(xp, xp.finite_peak(z, axis=axis), z)
        if is_complex(xp, z.dtype)
        else xp.max(z, axis=axis, keepdims=True)
    )
    powers = xp.exp(z - peak)
    return _as(xp, powers / _total(xp, powers, axis), x.dtype)


def softmax_jvp(xp: Any, t: Any, ans: Any, axis: Any) -> Any:
    """p (t - sum(p t)) along axes, where p is the softmax. The adjoint has conj(p)."""
    product = ans * t
    return product - ans * _total(xp, product, axis)


def log_softmax(xp: Any, x: Any, axis: Any) -> Any:
    x = floating(xp, x)
    z = wide(xp, x)
    if 0 in z.shape:
        return x
    z = z - alike(xp, xp.finite_peak(z, axis=axis), z)
    return _as(xp, z - xp.log(_total(xp, xp.exp(z), axis)), x.dtype)


def log_sum_exp(xp: Any, x: Any, axis: Any, keepdims: bool) -> tuple[Any, Any]:
    """The largest element plus log1p of the rest, which keeps the digits of a sum near 1.

    Narrow dtypes are computed in float32. Where the result is infinite, the elements equal to it
    share the gradient evenly, as in logaddexp.
    """
    z = wide(xp, x)
    if any(z.shape[a] == 0 for a in _axes(z.shape, axis)):
        return xp.sum(x, axis=axis, keepdims=keepdims) - math.inf, x
    peak = alike(xp, xp.finite_peak(z, axis=axis), z)
    if is_complex(xp, z.dtype):
        powers = xp.exp(z - peak)
        total = _total(xp, powers, axis)
        result = xp.log(total) + peak
    else:
        largest = z == peak
        count = _total(xp, xp.astype(largest, z.dtype), axis)
        rest = _total(xp, xp.where(largest, 0.0, xp.exp(z - peak)), axis)
        some = xp.where(count == 0, 1.0, count)  # where the largest element is infinite
        result = xp.where(count + rest == 0, -math.inf, xp.log1p(rest / some) + xp.log(some) + peak)
        powers = xp.exp(xp.where(z == result, 0.0, z - result))
        total = _total(xp, powers, axis)
    result, shares = _as(xp, result, x.dtype), _as(xp, powers / total, x.dtype)
    return result if keepdims else xp.squeeze(result, axis=_axes(x.shape, axis)), shares


def log_sum_exp_vjp(
    xp: Any, g_value: Any, g_shares: Any, shares: Any, axis: Any, keepdims: Any
) -> Any:
    by_shares = None if g_shares is None else softmax_jvp(xp, g_shares, conj(xp, shares), axis)
    if g_value is None:
        return by_shares
    by_value = _kept(xp, g_value, shares.shape, axis, keepdims) * conj(xp, shares)
    return by_value if by_shares is None else by_value + by_shares


def log_sum_exp_jvp(xp: Any, t: Any, shares: Any, axis: Any, keepdims: Any) -> tuple[Any, Any]:
    return xp.sum(shares * t, axis=axis, keepdims=keepdims), softmax_jvp(xp, t, shares, axis)


def logsumexp(xp: Any, a: Any, axis: Any, b: Any, keepdims: bool, return_sign: bool) -> Any:
    a = floating(xp, a)
    if b is None and not (return_sign and is_complex(xp, a.dtype)):
        out = xp.log_sum_exp(a, axis=axis, keepdims=keepdims)[0]
        return (out, xp.where(out == -math.inf, 0.0, xp.ones_like(out))) if return_sign else out
    b = xp.ones_like(a) if b is None else weights_like(xp, b, a)
    dtype = xp.result_type(a.dtype, b.dtype)
    a, b = xp.broadcast_arrays(wide(xp, _as(xp, a, dtype)), wide(xp, _as(xp, b, dtype)))
    nothing = b == 0
    exponents = xp.where(nothing, -math.inf, a)
    peak = alike(xp, xp.finite_peak(exponents, axis=axis), a)
    powers = xp.exp(a - peak)
    total = _total(xp, b * xp.where(nothing & ~xp.isfinite(powers), 0.0, powers), axis)
    axes = () if keepdims else _axes(total.shape, axis)
    if return_sign:
        parts = xp.log(xp.abs(total)) + peak, xp.sign(total)
        return tuple(_as(xp, xp.squeeze(part, axis=axes), dtype) for part in parts)
    if not is_complex(xp, total.dtype):
        total = xp.where(total < 0, math.nan, total)
    return _as(xp, xp.squeeze(xp.log(total) + peak, axis=axes), dtype)


# ----- the operations -----

# fmt: off
elementwise("logistic(x, /)", forward={"*": logistic, "jax": "jax.nn:sigmoid"}, chapter="kernels",
            x=lambda xp, ans: ans * (1.0 - ans),
            doc="1 / (1 + exp(-x)) of each element, without overflow.")
elementwise("sigmoid(x, /)", forward=lambda xp, x: xp.logistic(floating(xp, x)),
            x=lambda xp, ans: ans * (1.0 - ans),
            doc="The logistic function 1 / (1 + exp(-x)) of each element, without overflow. As "
                "torch.sigmoid.",
            about=About(method=True))
elementwise("relu(x, /)", forward=lambda xp, x: xp.maximum(x, 0),
            x=lambda xp, g, ans: xp.where(ans <= 0, 0.0, g),
            doc="max(x, 0) of each element. The gradient at 0 is 0. Same as torch.relu.",
            about=About(gradient={"x": "where(x > 0, g, 0)"}, at="0 at 0",
                        example="mg.asarray([-2.0, 3.0])", method=True))
elementwise("silu_slope(x, /)", forward=silu_slope, x=silu_curvature, chapter="kernels",
            doc="The derivative of silu at each element.")
elementwise("silu(x, /)", forward=silu, x=lambda xp, x: xp.silu_slope(x),
            doc="x / (1 + exp(-x)) of each element, without overflow; 0 at -inf, where PyTorch "
                "gives nan. Same as torch.nn.functional.silu.",
            about=About(gradient={"x": "g * sigmoid(x) * (1 + x * (1 - sigmoid(x)))"}))
elementwise("softplus(x, /, beta=1.0, threshold=20.0)", forward=softplus, x=softplus_partial,
            doc="log(1 + exp(beta x)) / beta of each element, or x itself where beta x is above "
                "the threshold. Same as torch.nn.functional.softplus.",
            about=About(gradient="g / (1 + exp(-beta x))", example="mg.asarray([0.0, 1.0])"))
nondifferentiable("finite_peak(x, /, *, axis=None)", forward=finite_peak, batching="axis",
                  chapter="kernels",
                  doc="The largest element over one axis, several, or all, if it is finite, else "
                      "0. The reduced axes stay, with length 1. The result has no gradient: "
                      "values computed from exp(x - peak) do not depend on the peak.")
define("softmax(x: array, axis=None)", forward=softmax, batching="axis",
       x=lambda xp, g, ans, axis: softmax_jvp(xp, g, conj(xp, ans), axis), jvp=softmax_jvp,
       doc="exp(x) / sum(exp(x)) along one axis, several, or over all elements (None), without "
           "overflow. Same as scipy.special.softmax.",
       about=About(gradient={"x": "ans * (g - sum(g * ans, axis=axis, keepdims=True))"},
                   example="mg.asarray([0.0, 1.0])", method=True))
define("log_softmax(x: array, axis=None)", forward=log_softmax, batching="axis",
       x=lambda xp, g, ans, axis: g - conj(xp, xp.exp(ans)) * _total(xp, g, axis),
       jvp=lambda xp, t, ans, axis: t - _total(xp, xp.exp(ans) * t, axis),
       doc="x - logsumexp(x) along one axis, several, or over all elements (None). As "
           "scipy.special.log_softmax.",
       about=About(gradient={"x": "g - exp(ans) * sum(g, axis=axis, keepdims=True)"},
                   example="mg.asarray([0.0, 1.0])", method=True))
define("log_sum_exp(x, /, *, axis=None, keepdims=False)", outputs=("value", "shares"),
       forward=log_sum_exp, batching="axis", chapter="kernels", x=log_sum_exp_vjp,
       jvp=log_sum_exp_jvp, materialize=False,
       doc="log(sum(exp(x))) over one axis, several, or all, without overflow, and its gradient "
           "softmax(x), from the same exponentials.")
composite("logsumexp(a: array, axis=None, b: array = None, keepdims=False, return_sign=False)",
          logsumexp,
          doc="log(sum(b exp(a))) over one axis, several, or all (None), without overflow. With "
              "return_sign it is a tuple of the logarithm of the modulus and the sign. As "
              "scipy.special.logsumexp. Where the result is infinite, the elements equal to it "
              "share the gradient.",
          about=About(gradient="g exp(a - ans)", example="mg.asarray([0.0, 1.0])", method=True))
