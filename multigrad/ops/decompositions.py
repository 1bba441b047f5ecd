"""Decompositions of matrices that are unique: Cholesky and QR. The others are in `spectral`.

Gradients follow PyTorch: with the real inner product <a, b> = Re tr(a^H b), a vjp is the adjoint of
the jvp. M. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
differentiation", 2008, has the real formulas; each rule names its source for complex matrices.

A function of a Hermitian matrix is a function of the Hermitian part of its argument. Gradients are
therefore Hermitian, over both triangles, and tangents are first replaced by their Hermitian parts.
"""

from __future__ import annotations

from functools import lru_cache
from math import nan
from typing import Any

from ..errors import GradientError
from ..registry import About, define
from .kernels import alike, conj

# ----- What the rules share -----


def adjoint(xp: Any, x: Any) -> Any:
    """The conjugate transpose of each matrix."""
    return conj(xp, xp.matrix_transpose(x))


def times_diagonal(xp: Any, x: Any, d: Any) -> Any:
    """x diag(d): the columns of each matrix times the elements of a vector."""
    return x * alike(xp, d, x)[..., None, :]


def hermitian(xp: Any, x: Any) -> Any:
    return (x + adjoint(xp, x)) / 2


def skew(xp: Any, x: Any) -> Any:
    return (x - adjoint(xp, x)) / 2


def on_diagonal(xp: Any, x: Any) -> Any:
    """The mask of the diagonal of a square matrix."""
    i = xp.arange(x.shape[-1], device=xp.device_of(x))
    return i[:, None] == i[None, :]


def solve_right(xp: Any, x: Any, a: Any) -> Any:
    """x a^-H."""
    return adjoint(xp, xp.linalg.solve(a, adjoint(xp, x)))


@lru_cache(maxsize=64)
def epsilon(xp: Any, dtype: Any) -> float:
    return float(xp.finfo(dtype).eps)


# ----- Cholesky -----


def lower_half(xp: Any, x: Any) -> Any:
    """The lower triangle with half of the diagonal.

    If x is Hermitian, the result and its adjoint add up to x.
    """
    return xp.where(on_diagonal(xp, x), x / 2, xp.tril(x))


def cholesky_vjp(xp: Any, g: Any, ans: Any, upper: Any) -> Any:
    """L^-H P(L^H g) L^-1, made Hermitian, where P is `lower_half`.

    I. Murray, "Differentiation of the Cholesky decomposition", 2016. Both systems have the upper
    triangle as their matrix, which elimination leaves unchanged.
    """
    if upper:
        g = adjoint(xp, g)
    else:
        ans = adjoint(xp, ans)
    # the other triangle is constant; for a loss like log(abs(L)) its cotangent is inf
    g = xp.tril(g)
    half = xp.linalg.solve(ans, lower_half(xp, ans @ g))
    return hermitian(xp, adjoint(xp, xp.linalg.solve(ans, adjoint(xp, half))))


def cholesky_jvp(xp: Any, t: Any, ans: Any, upper: Any) -> Any:
    """L P(L^-1 t L^-H). Murray, 2016."""
    lower = adjoint(xp, ans) if upper else ans
    half = lower_half(xp, solve_right(xp, xp.linalg.solve(lower, hermitian(xp, t)), lower))
    return adjoint(xp, lower @ half) if upper else lower @ half


define(
    "linalg.cholesky(x, /, *, upper=False)",
    batching="leading",
    x=cholesky_vjp,
    jvp=cholesky_jvp,
    doc="The lower triangle L with L L^H = x, or the upper triangle U with U^H U = x, of each "
    "positive definite Hermitian matrix x.",
    about=About(
        gradient="L^-H Phi(L^H g) L^-1, made Hermitian, where Phi halves the diagonal of"
        " a lower triangle",
        example="S",
        arrays="Hermitian positive definite matrices (..., M, M)",
    ),
)

# ----- QR -----


def refuse_complete(x_shape: tuple[int, ...], mode: str) -> None:
    if mode == "complete" and x_shape[-2] > x_shape[-1]:
        raise GradientError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols. "
            "Use mode='reduced'."
        )


def leading_square(xp: Any, R: Any) -> Any:
    """The leading square part of R, or nan if it is singular.

    For a singular matrix, a library's solver may raise for a whole batch.
    """
    square = R[..., :, : R.shape[-2]]
    singular = xp.any(on_diagonal(xp, square) & (square == 0), axis=(-2, -1), keepdims=True)
    return xp.where(singular, nan, square)


def difference(x: Any, y: Any) -> Any:
    """x - y, where one of them may be None for 0."""
    return x if y is None else -y if x is None else x - y


def qr_vjp(xp: Any, g_Q: Any, g_R: Any, x_shape: Any, Q: Any, R: Any, mode: Any) -> Any:
    """(g_Q + Q H) R^-H, where H is Hermitian with the upper triangle of g_R R^H - Q^H g_Q.

    See `wide_qr_vjp` for more columns than rows.

    S.F. Walter and L. Lehmann, "Algorithmic differentiation of linear algebra functions", 2018, for
    real matrices. A complex R has a real diagonal, and so has H.
    """
    refuse_complete(x_shape, mode)
    g_R = None if g_R is None else xp.triu(g_R)  # as in cholesky_vjp
    from_R = None if g_R is None else g_R @ adjoint(xp, R)
    from_Q = None if g_Q is None else adjoint(xp, Q) @ g_Q
    if x_shape[-2] < x_shape[-1]:
        return wide_qr_vjp(xp, g_R, difference(from_Q, from_R), Q, R)
    inner = difference(from_R, from_Q)
    upper = xp.triu(inner)
    inner = xp.where(on_diagonal(xp, inner), hermitian(xp, inner), upper + adjoint(xp, upper))
    total = Q @ inner if g_Q is None else g_Q + Q @ inner
    return solve_right(xp, total, leading_square(xp, R))


def wide_qr_vjp(xp: Any, g_R: Any, y: Any, Q: Any, R: Any) -> Any:
    """Q (g_R + (K R1^-H, 0)): only the leading square part R1 of R determines Q.

    K is the lower triangle of Y - Y^H, Y = Q^H g_Q - g_R R^H, with the imaginary part of Y on its
    diagonal. D.A.O. Roberts and L.R. Roberts, "QR and LQ decomposition matrix backpropagation
    algorithms for square, wide, and deep - real or complex - matrices and their software
    implementation", 2020.
    """
    m = R.shape[-2]
    square = solve_right(xp, 2 * lower_half(xp, skew(xp, y)), leading_square(xp, R))
    rest = xp.zeros((*R.shape[:-1], R.shape[-1] - m), dtype=R.dtype, device=xp.device_of(R))
    square = xp.concat([square, rest], axis=-1)
    return Q @ (square if g_R is None else g_R + square)


def qr_jvp(xp: Any, t: Any, x_shape: Any, Q: Any, R: Any, mode: Any) -> Any:
    """With t1 the leading square part of t, split Q^H t1 R1^-1 into the tangents of Q and R.

    It is the sum of a skew-Hermitian matrix, for Q, and an upper triangular one, for R.
    """
    refuse_complete(x_shape, mode)
    b = solve_right(xp, t[..., :, : Q.shape[-1]], adjoint(xp, leading_square(xp, R)))
    inner = adjoint(xp, Q) @ b
    lower = xp.tril(inner, k=-1)
    turn = xp.where(on_diagonal(xp, inner), skew(xp, inner), lower - adjoint(xp, lower))
    if x_shape[-2] < x_shape[-1]:
        return Q @ turn, xp.triu(adjoint(xp, Q) @ t - turn @ R)
    upper = inner - turn
    return b - Q @ upper, upper @ R


define(
    "linalg.qr(x, /, *, mode='reduced')",
    batching="leading",
    outputs=("Q", "R"),
    materialize=False,
    x=qr_vjp,
    jvp=qr_jvp,
    doc="Orthonormal columns Q and an upper triangle R with Q R = x. With mode='complete' and "
    "more rows than columns there is no gradient.",
    about=About(
        gradient="a function of Q, R and both cotangents; for matrices of full rank",
        example="mg.abs(mg.linalg.qr(S).R)",
        arrays="matrices (..., M, N)",
    ),
)
