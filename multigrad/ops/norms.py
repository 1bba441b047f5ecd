"""Norms of vectors and matrices, in the linalg extension.

For each norm, one function gives the gradient in the shape of x, scaled by the norm itself so that
it neither overflows nor underflows. The vjp multiplies by this gradient; the jvp takes the inner
product with it. At kinks it is PyTorch's subgradient: 0 at the origin, and ties share it evenly.
"To every order" means that higher derivatives are 0 there too.
"""

from __future__ import annotations

from math import inf
from typing import Any

from ..registry import About, define
from . import batching_linalg
from .decompositions import adjoint, times_diagonal
from .kernels import alike, is_complex, is_narrow, unit, wide
from .statistical import _as, _axes, _how_many, _kept, _real_inner

Axes = tuple[int, ...]


def _shares(xp: Any, values: Any, best: Any, axis: Axes) -> Any:
    """1 / k for each of the k values equal to `best`, and 0 for the others.

    A nan counts as equal to a nan.
    """
    winners = (values == best) | xp.isnan(values)
    count = _how_many(xp, winners, values.dtype, axis, True)
    # an empty array has no winner
    return _as(xp, xp.where(winners, 1 / xp.where(count == 0, 1.0, count), 0.0), values.dtype)


# ----- vectors -----


def vector_norm(xp: Any, x: Any, axis: Any, keepdims: bool, ord: float) -> Any:
    if ord == 0:
        real = xp.abs(x).dtype
        return xp.sum(xp.astype(x != 0, real), axis=axis, keepdims=keepdims)
    if ord == 2:
        square = xp.real(xp.conj(x) * x) if is_complex(xp, x.dtype) else x * x
        return xp.sqrt(xp.sum(square, axis=axis, keepdims=keepdims))
    r = xp.abs(x)
    if ord in (inf, -inf):
        if ord == inf and 0 in (x.shape[a] for a in _axes(x.shape, axis)):
            return xp.sum(r, axis=axis, keepdims=keepdims)  # the norm of an empty array is 0
        return (xp.max if ord == inf else xp.min)(r, axis=axis, keepdims=keepdims)
    if ord == 1:
        return xp.sum(r, axis=axis, keepdims=keepdims)
    total = xp.sum(r**ord, axis=axis, keepdims=keepdims)
    return total ** (xp.ones_like(total) / ord)


def _vector_gradient(xp: Any, x: Any, ans: Any, axis: Axes, ord: float) -> Any:
    """The gradient of a vector norm; `ans` keeps the reduced axes.

    It is sign(x) (|x| / ans)^(p - 1). Elements of 0 have 0 to every order, unless p is even: then
    it is a polynomial in x / ans. For ord=0, a count, it is 0 everywhere.
    """
    if ord == 0:
        return xp.zeros_like(x)
    if ord == 1:
        return xp.sign(x)
    if ord in (inf, -inf):
        return xp.sign(x) * alike(xp, _shares(xp, xp.abs(x), ans, axis), x)
    x = unit(xp, x, ans)
    if ord == 2:
        return x
    if ord > 0 and ord % 2 == 0:
        square = xp.real(xp.conj(x) * x) if is_complex(xp, x.dtype) else x * x
        return x * alike(xp, square ** (ord / 2 - 1), x)
    r = xp.abs(x)
    zero = r == 0
    return xp.where(zero, 0.0, xp.sign(x) * alike(xp, xp.where(zero, 1.0, r) ** (ord - 1), x))


def _gradient(xp: Any, x: Any, ans: Any, axis: Any, keepdims: bool, ord: Any, vectors: bool) -> Any:
    """The gradient of a norm, in the dtype in which it was computed, so that ties are equal."""
    if is_narrow(xp, x.dtype):
        x = wide(xp, x)
        ans = (
            xp.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)
            if vectors
            else xp.linalg.matrix_norm(x, keepdims=keepdims, ord=ord)
        )
    ans = _kept(xp, ans, x.shape, axis, keepdims)
    # a Python number, so that a NumPy double does not promote single precision
    ord = ord if ord is None or isinstance(ord, str) else float(ord)
    if vectors:
        return _vector_gradient(xp, x, ans, _axes(x.shape, axis), ord)
    return _matrix_gradient(xp, x, ans, ord)


def _vjp(xp: Any, g: Any, gradient: Any, axis: Any, keepdims: bool) -> Any:
    return alike(xp, _kept(xp, g, gradient.shape, axis, keepdims), gradient) * gradient


def _jvp(xp: Any, t: Any, gradient: Any, ans: Any, axis: Any, keepdims: bool) -> Any:
    axes = _axes(gradient.shape, axis)
    return _as(xp, _real_inner(xp, gradient, wide(xp, t), axes, bool(keepdims)), ans.dtype)


def vector_norm_vjp(xp: Any, g: Any, x: Any, ans: Any, axis: Any, keepdims: Any, ord: Any) -> Any:
    return _vjp(xp, g, _gradient(xp, x, ans, axis, keepdims, ord, True), axis, keepdims)


def vector_norm_jvp(xp: Any, t: Any, x: Any, ans: Any, axis: Any, keepdims: Any, ord: Any) -> Any:
    return _jvp(xp, t, _gradient(xp, x, ans, axis, keepdims, ord, True), ans, axis, keepdims)


define(
    "linalg.vector_norm(x, /, *, axis=None, keepdims=False, ord=2)",
    batching=batching_linalg.vector_norm,
    forward={"*": vector_norm},
    x=vector_norm_vjp,
    jvp=vector_norm_jvp,
    doc="A norm of the vectors along one axis, several, or all: sum(abs(x)**ord)**(1/ord). ord=0 "
    "counts the nonzero elements, ord=inf gives the largest modulus, ord=-inf the smallest. "
    "The gradient at the origin is 0, and ties share it.",
    about=About(
        gradient={"x": "g * x / ans"}, at="0 at the vector of zeros; for ord=2, of real arrays"
    ),
)

# ----- matrices -----


def matrix_norm(xp: Any, x: Any, keepdims: bool, ord: Any) -> Any:
    if ord in ("fro", None):
        return xp.linalg.vector_norm(x, axis=(-2, -1), keepdims=keepdims)
    if ord in ("nuc", 2, -2):
        s = xp.linalg.svdvals(x)
        order = 1 if ord == "nuc" else inf if ord > 0 else -inf
        norm = xp.linalg.vector_norm(s, axis=-1, ord=order)
    elif ord in (1, -1, inf, -inf):
        sums = xp.sum(xp.abs(x), axis=-2 if ord in (1, -1) else -1)
        norm = xp.linalg.vector_norm(sums, axis=-1, ord=inf if ord > 0 else -inf)
    else:
        raise ValueError(
            f"linalg.matrix_norm: ord={ord!r} is not one of 'fro', 'nuc', 1, -1, 2, -2, inf and "
            "-inf."
        )
    return norm[..., None, None] if keepdims else norm


def _matrix_gradient(xp: Any, x: Any, ans: Any, ord: Any) -> Any:
    """The gradient of a matrix norm; in `ans` the matrix axes have length 1."""
    if ord in ("fro", None):
        return unit(xp, x, ans)
    if ord in ("nuc", 2, -2):
        return xp.singular_factor(x, ord)
    axis = -2 if ord in (1, -1) else -1
    sums = xp.sum(xp.abs(x), axis=axis, keepdims=True)
    return xp.sign(x) * alike(xp, _shares(xp, sums, ans, (-3 - axis,)), x)


MATRIX = (-2, -1)


def matrix_norm_vjp(xp: Any, g: Any, x: Any, ans: Any, keepdims: Any, ord: Any) -> Any:
    return _vjp(xp, g, _gradient(xp, x, ans, MATRIX, keepdims, ord, False), MATRIX, keepdims)


def matrix_norm_jvp(xp: Any, t: Any, x: Any, ans: Any, keepdims: Any, ord: Any) -> Any:
    return _jvp(xp, t, _gradient(xp, x, ans, MATRIX, keepdims, ord, False), ans, MATRIX, keepdims)


define(
    "linalg.matrix_norm(x, /, *, keepdims=False, ord='fro')",
    batching="leading",
    forward={"*": matrix_norm},
    x=matrix_norm_vjp,
    jvp=matrix_norm_jvp,
    doc="A norm of each matrix: the root of the sum of squares ('fro'), the sum of the singular "
    "values ('nuc'), the largest or smallest singular value (2, -2), the largest or smallest "
    "sum of moduli of a column (1, -1) or of a row (inf, -inf). The gradient at 0 is 0, and "
    "ties share it.",
    about=About(
        gradient={"x": "g * x / ans"},
        at="0 at the matrix of zeros; for ord='fro', of real arrays",
        arrays="matrices (..., M, N)",
    ),
)

# ----- the gradients of norms made of singular values -----
#
# These derivatives avoid those of singular vectors, which do not exist where singular values are
# equal. The norms themselves may be smooth there: the nuclear norm at the identity, and the largest
# singular value at any matrix where only others are equal.


def _weights(xp: Any, s: Any, ord: Any) -> Any:
    """The gradient of the norm with respect to the singular values.

    It is 1 each, or shared by the values equal to the extreme one. A singular value of 0 has 0.
    """
    if ord == "nuc":
        return xp.where(s == 0, 0.0, xp.ones_like(s))
    best = (xp.max if ord > 0 else xp.min)(s, axis=-1, keepdims=True)
    return xp.where(s == 0, 0.0, _shares(xp, s, best, (-1,)))


def singular_factor(xp: Any, x: Any, ord: Any) -> Any:
    """U diag(w) V^H."""
    if 0 in x.shape:
        return xp.zeros_like(x)
    u, s, vh = xp.linalg.svd(x, full_matrices=False)
    return times_diagonal(xp, u, _weights(xp, s, ord)) @ vh


def singular_factor_jvp(xp: Any, t: Any, x: Any, ord: Any) -> Any:
    """U m V^H and, unless the matrix is square, the part outside the space of U or V, times w / s.

    The map is its own adjoint.

    2 m_ij = (w_i - w_j) / (s_i - s_j) (e + e^H)_ij + (w_i + w_j) / (s_i + s_j) (e - e^H)_ij with e
    = U^H t V. A quotient 0 / 0, of equal values with equal weights or of two zeros, counts as 0.
    Noferini, A formula for the Frechet derivative of a generalized matrix function, 2017.
    """
    if 0 in x.shape:
        return xp.zeros_like(x)
    u, s, vh = xp.linalg.svd(x, full_matrices=False)
    uh, v, w = adjoint(xp, u), adjoint(xp, vh), _weights(xp, s, ord)
    left, right = uh @ t, t @ v
    e = left @ v
    (w_i, w_j), (s_i, s_j) = ((y[..., :, None], y[..., None, :]) for y in (w, s))
    eh = adjoint(xp, e)
    apart = alike(xp, unit(xp, w_i - w_j, s_i - s_j), e)
    together = alike(xp, unit(xp, w_i + w_j, s_i + s_j), e)
    tangent = u @ (apart * (e + eh) + together * (e - eh)) / 2 @ vh
    scale = alike(xp, unit(xp, w, s), e)
    if x.shape[-2] > x.shape[-1]:
        return tangent + (right - u @ e) * scale[..., None, :] @ vh
    if x.shape[-2] < x.shape[-1]:
        return tangent + u @ ((left - e @ vh) * scale[..., :, None])
    return tangent


define(
    "singular_factor(x, /, ord)",
    batching="leading",
    chapter="kernels",
    forward=singular_factor,
    x=lambda xp, g, x, ord: singular_factor_jvp(xp, g, x, ord),
    jvp=singular_factor_jvp,
    doc="U diag(w) Vh for each matrix x = U diag(S) Vh, where w is the gradient of the matrix "
    "norm of order 'nuc', 2 or -2 by S.",
)
