"""scipy.special: gamma, beta, Bessel and error functions, logit, logsumexp.

multigrad-special provides most of them. The rules of the others have numbers of the Digital Library
of Mathematical Functions (DLMF). Parameters (the order of a Bessel function, the shapes of an
incomplete function) have no derivative: one that needs a gradient raises NotImplementedError.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special

import multigrad as mg

from .choosing import arrays, boxed, differentiable, operand, operations, simple

__all__ = [
    "beta",
    "betainc",
    "betaln",
    "digamma",
    "erf",
    "erfc",
    "erfcinv",
    "erfinv",
    "expit",
    "gamma",
    "gammainc",
    "gammaincc",
    "gammaln",
    "gammasgn",
    "i0",
    "i1",
    "iv",
    "ive",
    "j0",
    "j1",
    "jn",
    "logit",
    "logsumexp",
    "multigammaln",
    "polygamma",
    "psi",
    "rgamma",
    "y0",
    "y1",
    "yn",
]

Function = Callable[..., Any]


def _offered(name: str, operation: Function | None = None) -> Function:
    """Return a function that is SciPy's for raw arrays, and the operation for boxes.

    The operation is multigrad-special's of that name, unless another is given.
    """
    boxes = getattr(operations.special, name) if operation is None else operation
    return differentiable(getattr(scipy.special, name), _named(name, boxes))


def _named(name: str, boxes: Function) -> Function:
    def function(*args: Any, **kwargs: Any) -> Any:
        return boxes(*args, **kwargs)

    function.__name__ = name
    return function


def _with_parameters(name: str) -> Function:
    """Return a function of multigrad-special with parameters, which may be numbers."""
    boxes = getattr(operations.special, name)
    return _offered(name, lambda *args: boxes(*arrays(*args)))


def _declared(signature: str, doc: str, forward: Function, **partials: Any) -> Function:
    """Declare `hips.<signature>` for NumPy, and return the function of the operation."""
    op = mg.registry.elementwise(
        f"hips.{signature}", doc=doc, chapter="hips", forward={"numpy": forward}, **partials
    )
    return getattr(operations.hips, op.name.partition(".")[2])  # type: ignore[no-any-return]


# ----- from multigrad-special -----

beta = _offered("beta")
betainc = _with_parameters("betainc")
betaln = _offered("betaln")
digamma = _offered("digamma")
erf = _offered("erf")
erfc = _offered("erfc")
erfinv = _offered("erfinv")
expit = _offered("expit")
gamma = _offered("gamma")
gammainc = _with_parameters("gammainc")
gammaincc = _with_parameters("gammaincc")
gammaln = _offered("gammaln")
i0 = _offered("i0")
i1 = _offered("i1")
logit = _offered("logit")
psi = _offered("psi")


def _order(n: Any) -> int:
    if boxed(n) or np.ndim(n):
        raise NotImplementedError(
            f"polygamma of a box takes one order, an int, not {type(n).__name__}"
        )
    return int(n)


def _polygamma(n: Any, x: Any) -> Any:
    return operations.special.polygamma(_order(n), x)


polygamma = differentiable(scipy.special.polygamma, _named("polygamma", _polygamma))

# ----- gamma -----


def _rgamma_slope(xp: Any, x: Any, ans: Any) -> Any:
    """Return the derivative of 1 / gamma(x): -digamma(x) / gamma(x).

    Below 1/2 it uses the reflection 1/gamma(x) = gamma(1 - x) sin(pi x) / pi (DLMF 5.5.3), which
    has no poles there.
    """
    low = x < 0.5
    left, right = xp.where(low, x, 0.0), xp.where(low, 1.0, x)
    angle = math.pi * left
    reflected = xp.special.gamma(1 - left) * (
        xp.cos(angle) - xp.special.digamma(1 - left) * xp.sin(angle) / math.pi
    )
    return xp.where(low, reflected, -xp.special.digamma(right) * ans)


def _multigammaln_slope(xp: Any, a: Any, d: int) -> Any:
    """Return the derivative of multigammaln(a, d).

    The function is a constant plus the sum of gammaln(a - j/2) for j below d (DLMF 35.3.4).
    """
    return sum(xp.special.digamma(a - 0.5 * j) for j in range(d))


rgamma = _offered(
    "rgamma",
    _declared(
        "rgamma(x, /)", "1 / gamma(x), which has no poles.", scipy.special.rgamma, x=_rgamma_slope
    ),
)
gammasgn = _offered(
    "gammasgn", _declared("gammasgn(x, /)", "The sign of gamma(x).", scipy.special.gammasgn, x=0.0)
)
_multigammaln = _declared(
    "multigammaln(a, /, d)",
    "The logarithm of the multivariate gamma function of dimension d.",
    scipy.special.multigammaln,
    a=_multigammaln_slope,
)
multigammaln = differentiable(
    scipy.special.multigammaln, _named("multigammaln", lambda a, d: _multigammaln(a, int(d))), 1
)

# ----- Bessel functions: DLMF 10.6.1 and 10.29.1 -----


def _jv_slope(xp: Any, v: Any, z: Any) -> Any:
    return 0.5 * (xp.hips.jv(v - 1, z) - xp.hips.jv(v + 1, z))


def _yv_slope(xp: Any, v: Any, z: Any) -> Any:
    return 0.5 * (xp.hips.yv(v - 1, z) - xp.hips.yv(v + 1, z))


def _iv_slope(xp: Any, v: Any, z: Any) -> Any:
    return 0.5 * (xp.hips.iv(v - 1, z) + xp.hips.iv(v + 1, z))


def _ive_slope(xp: Any, v: Any, z: Any, ans: Any) -> Any:
    return 0.5 * (xp.hips.ive(v - 1, z) + xp.hips.ive(v + 1, z)) - xp.sign(z) * ans


_jv = _declared(
    "jv(v, z, /)",
    "The Bessel function of the first kind; differentiable by z.",
    scipy.special.jv,
    z=_jv_slope,
)
_yv = _declared(
    "yv(v, z, /)",
    "The Bessel function of the second kind; differentiable by z.",
    scipy.special.yv,
    z=_yv_slope,
)
_iv = _declared(
    "iv(v, z, /)",
    "The modified Bessel function of the first kind; differentiable by z.",
    scipy.special.iv,
    z=_iv_slope,
)
_ive = _declared(
    "ive(v, z, /)", "exp(-|z|) iv(v, z); differentiable by z.", scipy.special.ive, z=_ive_slope
)


def _whole(n: Any) -> Any:
    """Return the order of yn, which SciPy takes as an integer; jn takes any."""
    if not boxed(n) and np.any(n != np.trunc(n)):
        raise NotImplementedError(
            f"yn of a box takes integer orders, not {n}: yn truncates others, and scipy.special.yv "
            "has no derivative here"
        )
    return n


jn = _offered("jn", lambda v, x: _jv(*arrays(v, x)))
yn = _offered("yn", lambda n, x: _yv(*arrays(_whole(n), x)))
iv = _offered("iv", lambda v, x: _iv(*arrays(v, x)))
ive = _offered("ive", lambda v, x: _ive(*arrays(v, x)))
j0 = _offered("j0", lambda x: _jv(*arrays(0.0, x)))
j1 = _offered("j1", lambda x: _jv(*arrays(1.0, x)))
y0 = _offered("y0", lambda x: _yv(*arrays(0.0, x)))
y1 = _offered("y1", lambda x: _yv(*arrays(1.0, x)))

# ----- the inverse of erfc -----

erfcinv = _offered(
    "erfcinv",
    _declared(
        "erfcinv(x, /)",
        "The inverse of erfc; nan outside [0, 2].",
        scipy.special.erfcinv,
        x=lambda xp, ans: -0.5 * math.sqrt(math.pi) * xp.exp(ans * ans),
    ),
)

# ----- logsumexp -----


def _spread(xp: Any, y: Any, x_shape: tuple[int, ...], axis: Any, keepdims: bool) -> Any:
    """Insert the reduced `axis` again, with length 1."""
    if keepdims:
        return y
    axes = range(len(x_shape)) if axis is None else (axis,) if isinstance(axis, int) else axis
    reduced = {a % len(x_shape) for a in axes} if x_shape else set()
    return xp.reshape(y, tuple([1 if i in reduced else n for i, n in enumerate(x_shape)]))


def _weights(xp: Any, x: Any, ans: Any, axis: Any, keepdims: bool) -> Any:
    """Return exp(x - ans), the softmax, and 0 where all of x, and so ans, is -inf."""
    ans = _spread(xp, ans, x.shape, axis, keepdims)
    return xp.exp(x - xp.where(ans == -math.inf, 0.0, ans))


def _logsumexp_vjp(xp: Any, g: Any, x: Any, ans: Any, axis: Any, keepdims: bool) -> Any:
    weights = _weights(xp, x, ans, axis, keepdims)
    if xp.isdtype(x.dtype, "complex floating"):
        weights = xp.conj(weights)
    return _spread(xp, g, x.shape, axis, keepdims) * weights


def _logsumexp_jvp(xp: Any, t: Any, x: Any, ans: Any, axis: Any, keepdims: bool) -> Any:
    return xp.sum(t * _weights(xp, x, ans, axis, keepdims), axis=axis, keepdims=keepdims)


def _logsumexp_forward(x: Any, /, axis: Any = None, keepdims: bool = False) -> Any:
    """Return the logarithm of the sum of exponentials, relative to the largest elements.

    They are factored out, so that no term overflows, and counted, so that smaller terms are not
    lost beside 1.
    """
    top = np.max(x, axis=axis, keepdims=True)
    if not np.isfinite(top).all():
        return scipy.special.logsumexp(x, axis=axis, keepdims=keepdims)
    largest = x == top
    terms = np.where(largest, 0.0, np.exp(x - top))
    count = np.sum(largest, axis=axis, keepdims=True)
    out = np.log1p(np.sum(terms, axis=axis, keepdims=True) / count) + np.log(count) + top
    out = out if x.dtype == out.dtype else out.astype(x.dtype)
    return out if keepdims else np.squeeze(out, axis=axis)[()]


mg.registry.define(
    "hips.logsumexp(x, /, axis=None, keepdims=False)",
    x=_logsumexp_vjp,
    jvp=_logsumexp_jvp,
    batching="axis",
    chapter="hips",
    forward={"numpy": _logsumexp_forward},
    doc="log(sum(exp(x))) along an axis.",
)
_logsumexp: Function = operations.hips.logsumexp


def _logsumexp_of_boxes(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    if return_sign:
        raise NotImplementedError(
            "logsumexp of a box takes no return_sign=True: compute the sign by sign(sum(b * "
            "exp(a)))"
        )
    if b is None or (type(b) in (int, float) and b == 1):
        return _logsumexp(a, axis, keepdims)
    top = mg.max(a, axis=axis, keepdims=True) if boxed(a) else np.max(a, axis=axis, keepdims=True)
    out = mg.log(mg.sum(operand(b) * mg.exp(a - top), axis=axis, keepdims=True)) + top
    return out if keepdims else mg.reshape(out, _reduced(out.shape, axis))


def _reduced(shape: tuple[int, ...], axis: Any) -> tuple[int, ...]:
    axes = range(len(shape)) if axis is None else (axis,) if isinstance(axis, int) else axis
    gone = {a % len(shape) for a in axes} if shape else set()
    return tuple([n for i, n in enumerate(shape) if i not in gone])


def _raw_logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    """Return SciPy's value.

    If there are only an array and an axis, SciPy's conversions of the arguments are skipped.
    """
    if b is None and not return_sign and type(a) is np.ndarray and a.size and simple(a):
        return _logsumexp_forward(a, axis, keepdims)
    return scipy.special.logsumexp(a, axis=axis, b=b, keepdims=keepdims, return_sign=return_sign)


logsumexp = differentiable(_raw_logsumexp, _named("logsumexp", _logsumexp_of_boxes), 1)
