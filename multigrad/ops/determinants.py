"""Determinants of the linalg extension, and the adjugate.

The adjugate is the derivative of the determinant, and it is defined for singular matrices as well.
The adjugate adj(x) = det(x) X, with X the inverse, is a polynomial in the elements of x. It is
computed from singular vectors, but its rules do not use their derivative. That derivative does not
exist where singular values are equal: at the identity, at orthogonal matrices.
"""

from __future__ import annotations

from math import nan
from typing import Any

from ..registry import About, define
from . import batching_linalg
from .decompositions import adjoint, epsilon, on_diagonal
from .kernels import alike, imaginary, is_complex
from .statistical import _products_of_others

# ----- determinants -----


def _pivots(xp: Any, x: Any) -> Any:
    """The pivots of Gaussian elimination with row exchanges; their product is the determinant.

    A pivot is negated if its row was exchanged.
    """
    pivots = []
    while x.shape[-1]:
        best = xp.argmax(xp.abs(x[..., :, 0]), axis=-1, keepdims=True)
        chosen = (xp.arange(x.shape[-2], device=xp.device_of(best)) == best)[..., None]
        row = xp.sum(xp.where(chosen, x, 0), axis=-2, keepdims=True)
        pivot = row[..., :1]
        x = xp.where(chosen, x[..., :1, :], x)[..., 1:, :]
        x = x[..., 1:] - x[..., :1] / xp.where(pivot == 0, 1, pivot) * row[..., 1:]
        pivots.append(xp.where(best == 0, pivot[..., 0], -pivot[..., 0]))
    return xp.concat(pivots, axis=-1) if pivots else x[..., 0]


def det(xp: Any, x: Any) -> Any:
    _check_square("linalg.det", x)
    if not x.shape[-1]:
        return xp.ones(x.shape[:-2], dtype=x.dtype, device=xp.device_of(x))
    return xp.prod(_pivots(xp, x), axis=-1)


def slogdet(xp: Any, x: Any) -> Any:
    _check_square("linalg.slogdet", x)
    if not x.shape[-1]:
        one = xp.ones(x.shape[:-2], dtype=x.dtype, device=xp.device_of(x))
        return one, xp.log(xp.abs(one))
    pivots = _pivots(xp, x)
    return xp.prod(xp.sign(pivots), axis=-1), xp.sum(xp.log(xp.abs(pivots)), axis=-1)


def _check_square(name: str, x: Any) -> None:
    if len(x.shape) < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(
            f"{name}: the last two axes must have the same length; the shape is {x.shape}."
        )


def slogdet_vjp(xp: Any, g_sign: Any, g_logabsdet: Any, x: Any, sign: Any) -> Any:
    """x^-H times g_logabsdet + i Im(conj(sign) g_sign).

    This follows from log det = logabsdet + i phase, whose derivative is tr(X dx).
    """
    weight = g_logabsdet
    if g_sign is not None and is_complex(xp, x.dtype):  # a real sign is constant
        phase = imaginary(xp, xp.imag(xp.conj(sign) * g_sign), x.dtype)
        weight = phase if weight is None else alike(xp, weight, phase) + phase
    if weight is None:
        return xp.zeros_like(x)
    return alike(xp, weight, x)[..., None, None] * adjoint(xp, xp.linalg.inv(x))


def slogdet_jvp(xp: Any, t: Any, x: Any, sign: Any) -> tuple[Any, Any]:
    trace = xp.sum(xp.matrix_transpose(xp.linalg.inv(x)) * t, axis=(-2, -1))
    if is_complex(xp, x.dtype):
        return sign * imaginary(xp, xp.imag(trace), x.dtype), xp.real(trace)
    return xp.zeros_like(sign), trace


# fmt: off
define("linalg.det(x, /)", batching="leading", forward={"*": det},
       x=lambda xp, g, x: g[..., None, None] * adjoint(xp, xp.adjugate(x)),
       jvp=lambda xp, t, x: xp.sum(xp.matrix_transpose(xp.adjugate(x)) * t, axis=(-2, -1)),
       doc="The determinant of each square matrix. The first two derivatives are exact at "
           "singular matrices too; the third derivative raises there for matrices larger than 3 "
           "by 3.",
       about=About(gradient={"x": "g * ans * matrix_transpose(linalg.inv(x))"},
                   at="exact for singular matrices too", arrays="square matrices (..., M, M)"))
define("linalg.slogdet(x, /)", batching="leading", outputs=("sign", "logabsdet"),
       materialize=False, forward={"*": slogdet}, x=slogdet_vjp, jvp=slogdet_jvp,
       doc="The sign of each determinant (the phase, if it is complex) and the logarithm of its "
           "modulus. A singular matrix has no gradient.",
       about=About(gradient="g x^-H for logabsdet", arrays="square matrices (..., M, M)"))
# fmt: on

# ----- the adjugate -----


def _of_two(xp: Any, x: Any) -> Any:
    """The adjugate of 2 by 2 matrices, which is linear."""
    crossed = xp.matrix_transpose(xp.flip(x, axis=(-2, -1)))
    return xp.where(on_diagonal(xp, x), crossed, -crossed)


def _of_three(xp: Any, x: Any, y: Any) -> Any:
    """The adjugate of 3 by 3 matrices, as a bilinear function.

    Each row is the vector product of the next two columns.
    """
    return xp.linalg.cross(
        xp.roll(xp.matrix_transpose(x), -1, axis=-2), xp.roll(xp.matrix_transpose(y), 1, axis=-2)
    )


def _singular_vectors(xp: Any, x: Any) -> tuple[Any, Any, Any, Any]:
    """V, the singular values, U^H, and det(U) det(V^H).

    For a matrix that is not finite, for which libraries raise, all values are nan.
    """
    finite = xp.all(xp.isfinite(x), axis=(-2, -1), keepdims=True)
    u, s, vh = xp.linalg.svd(xp.where(finite, x, 0), full_matrices=False)
    unit = xp.linalg.det(u) * xp.linalg.det(vh)
    return adjoint(xp, vh), xp.where(finite[..., 0], s, nan), adjoint(xp, u), unit[..., None, None]


def adjugate(xp: Any, x: Any) -> Any:
    """V diag(products of the other singular values) U^H det(U) det(V^H).

    Where a cheaper way is as accurate, that is used.
    """
    n = x.shape[-1]
    if 0 in x.shape or n == 1:
        return xp.ones_like(x)
    if n < 4:
        return _of_two(xp, x) if n == 2 else _of_three(xp, x, x)
    direct = _by_inverse(xp, x)
    if direct is not None:
        return direct
    v, s, uh, unit = _singular_vectors(xp, x)
    return unit * (v * _products_of_others(xp, s, len(s.shape) - 1)[..., None, :] @ uh)


def _by_inverse(xp: Any, x: Any) -> Any:
    """det(x) X, which takes a sixth of the time, or None.

    It is used if all matrices are known to be so well conditioned that three quarters of the digits
    are correct.
    """
    d = xp.linalg.det(x)
    size, limits = xp.abs(d), xp.finfo(x.dtype)
    # below this bound digits are lost; above it, the elements of the adjugate may still be finite
    least = float(limits.smallest_normal) / float(limits.eps)
    if not xp.truth(xp.all((size > least) & xp.isfinite(size))):
        return None
    try:
        inverse = xp.linalg.inv(x)
    except (ArithmeticError, RuntimeError, ValueError):
        # the library finds it exactly singular, though rounding leaves a nonzero determinant
        return None
    condition = xp.linalg.matrix_norm(x) * xp.linalg.matrix_norm(inverse)
    if not xp.truth(xp.all(condition < epsilon(xp, x.dtype) ** -0.25)):
        return None
    return d[..., None, None] * inverse


def adjugate_tangent(xp: Any, x: Any, dx: Any) -> Any:
    """The tangent of the adjugate, computed from the same decomposition.

    For a diagonal matrix it is a polynomial in products of all but two elements. With e = U^H dx V
    it has sum_k e_kk p_ik on the diagonal and -e_ij p_ij elsewhere; p_ij is the product without i
    and j, p_ii = 0.
    """
    n = x.shape[-1]
    if 0 in x.shape or n == 1:
        return xp.zeros_like(x)
    if n < 4:
        return _of_two(xp, dx) if n == 2 else _of_three(xp, x, dx) + _of_three(xp, dx, x)
    v, s, uh, unit = _singular_vectors(xp, x)
    e = uh @ dx @ v
    mask = on_diagonal(xp, x)
    p = xp.where(mask, 0, _products_of_others(xp, xp.where(mask, 1, s[..., None, :]), len(s.shape)))
    traces = xp.sum(p * xp.linalg.diagonal(e)[..., None, :], axis=-1)
    return unit * (v @ xp.where(mask, traces[..., None], -p * e) @ uh)


NO_THIRD = (
    "linalg.det: the third derivative at a singular matrix of more than 3 by 3 is not "
    "available; the first two are."
)


def _second_tangent(xp: Any, x: Any, a: Any, b: Any) -> Any:
    """The second derivative of the adjugate along a and b.

    For matrices larger than 3 by 3 it is the second derivative of det(x) X, with X the inverse, so
    it needs nonsingular matrices.
    """
    n = x.shape[-1]
    if 0 in x.shape or n < 3:
        return xp.zeros_like(x)
    if n == 3:
        return _of_three(xp, a, b) + _of_three(xp, b, a)
    s = xp.linalg.svdvals(x)
    singular = s[..., -1:] <= n * epsilon(xp, x.dtype) * s[..., :1]
    inverse = xp.linalg.inv(xp.refuse(x, singular[..., None], NO_THIRD))
    a, b = inverse @ a, inverse @ b
    trace_a, trace_b = (xp.linalg.trace(m)[..., None, None] for m in (a, b))
    trace_ab = xp.sum(a * xp.matrix_transpose(b), axis=(-2, -1))[..., None, None]
    rest = a @ b + b @ a - trace_a * b - trace_b * a
    return xp.linalg.det(x)[..., None, None] * (
        (trace_a * trace_b - trace_ab) * inverse + rest @ inverse
    )


def adjugate_tangent_jvp(xp: Any, t_x: Any, t_dx: Any, x: Any, dx: Any) -> Any:
    first = None if t_x is None else _second_tangent(xp, x, dx, t_x)
    other = None if t_dx is None else xp.adjugate_tangent(x, t_dx)
    return other if first is None else first if other is None else first + other


# tr(D adj(x)[a] b), the second derivative of the determinant, is symmetric in a and b, and so is
# the third. This gives the adjoints.
# fmt: off
define("adjugate(x, /)", batching="leading", forward=adjugate, chapter="kernels",
       doc="The adjugate of each square matrix, det(x) inv(x): the derivative of its determinant.",
       x=lambda xp, g, x: adjoint(xp, xp.adjugate_tangent(x, adjoint(xp, g))),
       jvp=lambda xp, t, x: xp.adjugate_tangent(x, t))
define("adjugate_tangent(x, dx, /)", materialize=False, batching=batching_linalg.adjugate_tangent,
       forward=adjugate_tangent, chapter="kernels",
       doc="The derivative of the adjugate of x along dx.",
       x=lambda xp, g, x, dx: adjoint(xp, _second_tangent(xp, x, dx, adjoint(xp, g))),
       dx=lambda xp, g, x: adjoint(xp, xp.adjugate_tangent(x, adjoint(xp, g))),
       jvp=adjugate_tangent_jvp)
