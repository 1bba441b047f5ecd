"""Averages and covariances, as in NumPy."""

from __future__ import annotations

import math
from typing import Any

from ...registry import About, composite
from ..kernels import alike, conj, imaginary, is_complex
from ..keys import float_dtype
from ..statistical import _count
from .common import floating, spread_weights, weights_like


def ptp(xp: Any, a: Any, axis: Any, keepdims: bool) -> Any:
    return xp.max(a, axis=axis, keepdims=keepdims) - xp.min(a, axis=axis, keepdims=keepdims)


composite(
    "ptp(a: array, axis=None, *, keepdims=False)",
    ptp,
    doc="The largest element minus the smallest over one axis, several, or all. Ties share the "
    "gradient. Same as numpy.ptp.",
    about=About(example="V"),
)

# ----- averages -----


def average(xp: Any, a: Any, axis: Any, weights: Any, returned: bool, keepdims: bool) -> Any:
    a = floating(xp, a)
    if weights is None:
        mean = xp.mean(a, axis=axis, keepdims=keepdims)
        total = xp.full_like(mean, float(_count(a.shape, axis)))
    else:
        weights = spread_weights(xp, "average", a, axis, weights)
        total = xp.sum(xp.broadcast_to(weights, a.shape), axis=axis, keepdims=keepdims)
        mean = xp.sum(xp.multiply(a, weights), axis=axis, keepdims=keepdims) / total
    return (mean, total) if returned else mean


composite(
    "average(a: array, axis=None, weights: array = None, returned=False, *, keepdims=False)",
    average,
    doc="The mean over one axis, several, or all. Weights have the shape of `a` or of the axes. "
    "With `returned` the result is a tuple of the mean and the sum of the weights. Where that "
    "sum is 0, the mean is infinite or nan. Same as numpy.average.",
    about=About(example="V, weights=mg.asarray([1.0, 1.0, 2.0])"),
)

# ----- covariances -----


def _observations(xp: Any, name: str, m: Any, rowvar: bool) -> Any:
    """Arrange the observations in a matrix with one variable in each row."""
    if len(m.shape) > 2:
        raise ValueError(f"{name}: expected an array of at most 2 axes, got {len(m.shape)}.")
    if len(m.shape) < 2:
        return xp.reshape(m, (1, -1))
    return m if rowvar else xp.matrix_transpose(m)


def _checked(xp: Any, name: str, weights: Any, n: int, a: Any) -> Any:
    if not hasattr(weights, "dtype"):
        weights = xp.asarray(weights)
    if len(weights.shape) != 1 or weights.shape[0] != n:
        raise ValueError(
            f"cov: {name} must have one axis, with a weight for each of the {n} observations; its "
            f"shape is {tuple(weights.shape)}."
        )
    return weights_like(xp, weights, a)


def _covariance(
    xp: Any,
    name: str,
    m: Any,
    y: Any,
    rowvar: bool,
    dtype: Any,
    ddof: Any = 1,
    fweights: Any = None,
    aweights: Any = None,
) -> Any:
    """The covariance matrix, always with both axes."""
    x = _observations(xp, name, m, rowvar)
    if y is not None:
        x = xp.concat([x, _observations(xp, name, y, rowvar)], axis=0)
    if dtype is None:
        x = floating(xp, x)
        wide = xp.complex128 if is_complex(xp, x.dtype) else xp.float64
        if x.dtype != wide:  # which has enough digits for any default dtype
            dtype = xp.result_type(x.dtype, float_dtype(xp, xp.device_of(x)))
    # a Tensor, in case the weights are one
    x = xp.astype(x, x.dtype if dtype is None else dtype, copy=False)
    n = _count(x.shape, 1)
    weights = None if fweights is None else _checked(xp, "fweights", fweights, n, x)
    if aweights is not None:
        aweights = _checked(xp, "aweights", aweights, n, x)
        weights = aweights if weights is None else weights * aweights
    if weights is None:
        x = x - xp.mean(x, axis=1, keepdims=True)
        freedom = n - ddof
        product = x @ conj(xp, xp.matrix_transpose(x))
        return product / freedom if freedom > 0 else product * math.inf
    total = xp.sum(weights)
    x = x - xp.sum(x * weights, axis=1, keepdims=True) / total
    freedom = total - ddof * (1 if aweights is None else xp.sum(weights * aweights) / total)
    product = x @ conj(xp, xp.matrix_transpose(x * weights))
    return product / xp.where(freedom > 0, freedom, 0.0)


def _squeezed(xp: Any, matrix: Any) -> Any:
    return xp.squeeze(matrix, axis=tuple(i for i, n in enumerate(matrix.shape) if n == 1))


def cov(
    xp: Any,
    m: Any,
    y: Any,
    rowvar: bool,
    bias: bool,
    ddof: Any,
    fweights: Any,
    aweights: Any,
    dtype: Any,
) -> Any:
    if ddof is not None and ddof != int(ddof):
        raise ValueError(f"cov: ddof must be an integer, not {ddof}.")
    ddof = (0 if bias else 1) if ddof is None else ddof
    matrix = _covariance(xp, "cov", m, y, rowvar, dtype, ddof, fweights, aweights)
    return _squeezed(xp, matrix)


def corrcoef(xp: Any, x: Any, y: Any, rowvar: bool, dtype: Any) -> Any:
    matrix = _covariance(xp, "corrcoef", x, y, rowvar, dtype)
    deviation = xp.sqrt(xp.real(xp.reshape(matrix, (-1,))[:: matrix.shape[0] + 1]))  # the diagonal
    deviation = alike(xp, deviation, matrix)
    matrix = matrix / deviation[:, None] / deviation[None, :]
    if is_complex(xp, matrix.dtype):
        real, imag = (xp.clip(part, -1.0, 1.0) for part in (xp.real(matrix), xp.imag(matrix)))
        matrix = alike(xp, real, matrix) + imaginary(xp, imag, matrix.dtype)
    else:
        matrix = xp.clip(matrix, -1.0, 1.0)
    return _squeezed(xp, matrix)


# fmt: off
composite("cov(m: array, y: array = None, rowvar=True, bias=False, ddof=None, fweights: array = "
          "None, aweights: array = None, *, dtype=None)", cov,
          doc="The covariances of variables, in at least the library's default dtype. The "
              "variables are the rows of `m` and of `y`, or the columns with rowvar=False. As "
              "numpy.cov.",
          about=About(example="A", method=True))
composite("corrcoef(x: array, y: array = None, rowvar=True, *, dtype=None)", corrcoef,
          doc="The correlation coefficients of variables, in at least the library's default "
              "dtype. The variables are the rows of `x` and of `y`, or the columns with "
              "rowvar=False. Same as numpy.corrcoef.",
          about=About(example="A", method=True))
