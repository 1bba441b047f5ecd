"""The linalg extension: products, parts of matrices, inverses and linear systems.

Determinants, norms and decompositions have their own modules.

Complex gradients follow PyTorch. X is the inverse or pseudoinverse of x, and ^H is the conjugate
transpose. M. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
differentiation", 2008, has the rules of inverses.
"""

from __future__ import annotations

from operator import index
from typing import Any

from ..registry import About, composite, define, linear, multilinear, nondifferentiable
from . import batching_linalg
from .decompositions import adjoint, difference, epsilon, times_diagonal
from .kernels import alike, conj
from .linear_algebra import MATRICES

Shape = tuple[int, ...]

# ----- products of vectors -----


def cross(xp: Any, x1: Any, x2: Any, axis: int) -> Any:
    """Compute each component from the next two in cyclic order.

    NumPy also accepts vectors of two components.
    """
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError(
            f"linalg.cross: the axis {axis} must have length 3 in both operands; their shapes "
            f"are {x1.shape} and {x2.shape}."
        )

    def next_two(x: Any) -> tuple[Any, Any]:
        return xp.roll(x, -1, axis=axis), xp.roll(x, 1, axis=axis)

    (first1, second1), (first2, second2) = next_two(x1), next_two(x2)
    return first1 * second2 - second1 * first2


def outer(xp: Any, x1: Any, x2: Any) -> Any:
    """The standard expects vectors; NumPy flattens other arrays."""
    if len(x1.shape) != 1 or len(x2.shape) != 1:
        raise ValueError(
            f"linalg.outer: both operands must have one dimension; their shapes are {x1.shape} "
            f"and {x2.shape}."
        )
    return x1[:, None] * x2[None, :]


# ----- diagonals: every (m + 1)-th element of an (n, m) matrix, laid out row by row -----


def diagonal_of(shape: Shape, offset: int) -> tuple[int, slice]:
    """The length of a diagonal, and its position among the elements of a matrix."""
    n, m = shape[-2:]
    length = max(0, min(n, m - offset) if offset >= 0 else min(n + offset, m))
    start = (offset if offset >= 0 else -offset * m) if length else 0
    return length, slice(start, start + (length - 1) * (m + 1) + 1 if length else start, m + 1)


def diagonal(xp: Any, x: Any, offset: int) -> Any:
    _, place = diagonal_of(x.shape, offset)
    return xp.reshape(x, (*x.shape[:-2], x.shape[-2] * x.shape[-1]))[..., place]


def diagonal_vjp(xp: Any, g: Any, x_shape: Shape, offset: int) -> Any:
    """Put the gradient on the diagonal of a matrix of zeros."""
    n, m = x_shape[-2:]
    _, place = diagonal_of(x_shape, offset)
    return xp.reshape(xp.unindex(g, (..., place), (*x_shape[:-2], n * m)), x_shape)


def trace_vjp(xp: Any, g: Any, x_shape: Shape, offset: int) -> Any:
    length, _ = diagonal_of(x_shape, offset)
    return diagonal_vjp(xp, xp.broadcast_to(g[..., None], (*x_shape[:-2], length)), x_shape, offset)


# ----- inverses and linear systems -----


def solve_vjp(
    xp: Any, g: Any, x1: Any, x2_shape: Shape, ans: Any, needs: tuple[bool, bool]
) -> tuple[Any, Any]:
    """gx2 = x1^-H g and gx1 = -gx2 ans^H: one solution serves both.

    If one matrix is solved for a batch, the product sums over the batch.
    """
    vector = len(x2_shape) == 1  # only then is x2 a vector, or a stack of vectors in ans
    gx2 = xp.linalg.solve(adjoint(xp, x1), g[..., None] if vector else g)
    gx1 = None
    if needs[0]:
        y = conj(xp, ans[..., None] if vector else ans)
        ndim = len(gx2.shape)
        if len(x1.shape) == 2 < ndim:
            summed = (*range(ndim - 2), ndim - 1)
            gx1 = -xp.tensordot(gx2, y, axes=(summed, summed))
        else:
            gx1 = -xp.matmul(gx2, xp.matrix_transpose(y))
    return gx1, gx2[..., 0] if vector else gx2


def solve_jvp(xp: Any, t_x1: Any, t_x2: Any, x1: Any, x2_shape: Shape, ans: Any) -> Any:
    """Solve x1 dans = dx2 - dx1 ans."""
    vector = len(x2_shape) == 1
    if vector:
        ans, t_x2 = ans[..., None], None if t_x2 is None else t_x2[..., None]
    out = xp.linalg.solve(x1, difference(t_x2, None if t_x1 is None else xp.matmul(t_x1, ans)))
    return out[..., 0] if vector else out


def inv(xp: Any, x: Any) -> Any:
    return xp.linalg.solve(x, xp.eye(x.shape[-1], dtype=x.dtype, device=xp.device_of(x)))


def inv_vjp(xp: Any, g: Any, ans: Any) -> Any:
    xh = adjoint(xp, ans)
    return -(xh @ g @ xh)


# ----- powers -----


def _power(xp: Any, x: Any, t: Any, n: int) -> tuple[Any, Any]:
    """x^n, and for a tangent t the sum of x^k t x^(n - 1 - k) over k, by repeated squaring."""
    if n < 0:
        x, n = xp.linalg.inv(x), -n
        t = None if t is None else -(x @ t @ x)
    power = tangent = None
    while True:
        if n % 2 and power is None:
            power, tangent = x, t
        elif n % 2:
            tangent = None if t is None else tangent @ x + power @ t
            power = power @ x
        n //= 2
        if not n:
            return power, tangent
        x, t = x @ x, None if t is None else x @ t + t @ x


def matrix_power(xp: Any, x: Any, n: Any) -> Any:
    n = index(n)
    if n == 0:
        return xp.broadcast_to(xp.eye(x.shape[-1], dtype=x.dtype, device=xp.device_of(x)), x.shape)
    return _power(xp, x, None, n)[0]


def matrix_power_jvp(xp: Any, t: Any, x: Any, n: Any) -> Any:
    n = index(n)
    return _power(xp, x, t, n)[1] if n else xp.zeros_like(t)


# ----- pseudoinverses -----


def _cutoff(xp: Any, x: Any, s: Any, rtol: Any) -> Any:
    """The threshold below which a singular value counts as zero."""
    if rtol is None:
        rtol = max(x.shape[-2:]) * epsilon(xp, s.dtype)
    elif getattr(rtol, "shape", ()):
        rtol = rtol[..., None]
    return xp.max(s, axis=-1, keepdims=True) * rtol


def pinv(xp: Any, x: Any, rtol: Any) -> Any:
    if 0 in x.shape:
        return xp.zeros_like(xp.matrix_transpose(x))
    u, s, vh = xp.linalg.svd(x, full_matrices=False)
    positive = s > _cutoff(xp, x, s, rtol)
    inverse = xp.where(positive, 1 / xp.where(positive, s, 1), 0)
    return times_diagonal(xp, adjoint(xp, vh), inverse) @ adjoint(xp, u)


def matrix_rank(xp: Any, x: Any, rtol: Any) -> Any:
    if 0 in x.shape[-2:]:
        return xp.count_nonzero(x, axis=(-2, -1))
    s = xp.linalg.svdvals(x)
    return xp.count_nonzero(s > _cutoff(xp, x, s, rtol), axis=-1)


def _scale(xp: Any, ans: Any) -> Any:
    """A power of two of the size of the pseudoinverse.

    Products of three pseudoinverses would overflow or underflow where the gradient does not.
    """
    largest = xp.max(xp.abs(ans), axis=(-2, -1), keepdims=True)
    # the result does not depend on it: the derivative of a rounded number is 0
    exponent = xp.round(xp.log2(xp.where(largest == 0, 1.0, largest)))
    return xp.pow(2 * xp.ones_like(exponent), exponent)


def pinv_jvp(xp: Any, t_x: Any, x: Any, ans: Any) -> Any:
    """-X t X + X X^H t^H (I - x X) + (I - X x) t^H X^H X.

    The order of the products avoids square matrices of the longer side. This is the derivative at
    constant rank (Golub and Pereyra, SIAM J. Numer. Anal. 10, 1973, eq. 4.12).
    """
    if t_x is None or 0 in x.shape:
        return xp.zeros_like(ans)
    if x.shape[-2] < x.shape[-1]:  # for a wide matrix use the conjugate transpose
        return adjoint(xp, pinv_jvp(xp, adjoint(xp, t_x), adjoint(xp, x), adjoint(xp, ans)))
    scale = alike(xp, _scale(xp, ans), ans)
    x, ans = x * scale, ans / scale
    th, xh = adjoint(xp, t_x), adjoint(xp, ans)
    left, right = ans @ xh @ th, th @ xh
    return (left - (left @ x) @ ans + (right - ans @ (x @ right) - ans @ t_x) @ ans) * scale * scale


def pinv_vjp(xp: Any, g: Any, x: Any, ans: Any) -> Any:
    """The adjoint of the derivative is the derivative at the conjugate transpose."""
    return pinv_jvp(xp, g, adjoint(xp, x), adjoint(xp, ans))


# ----- the operations -----

# fmt: off
composite("linalg.matmul(x1, x2, /)", lambda xp, x1, x2: xp.matmul(x1, x2),
          doc="The matrix product, over the last two axes.",
          about=About(example="A, mg.asarray([1.0, 1.0])", arrays=MATRICES))
composite("linalg.matrix_transpose(x, /)", lambda xp, x: xp.matrix_transpose(x),
          doc="Exchange the last two axes.",
          about=About(example="A"))
composite("linalg.tensordot(x1, x2, /, *, axes=2)",
          lambda xp, x1, x2, axes: xp.tensordot(x1, x2, axes=axes),
          doc="The sum of products over pairs of axes.",
          about=About(example="A, A, axes=2", positional=("axes",)))
composite("linalg.vecdot(x1, x2, /, *, axis=-1)",
          lambda xp, x1, x2, axis: xp.vecdot(x1, x2, axis=axis),
          doc="The sum of conj(x1) * x2 along an axis.",
          about=About(example="P, Q"))
multilinear("linalg.cross(x1, x2, /, *, axis=-1)", batching=batching_linalg.cross, forward=cross,
            doc="The vector product of 3-vectors along an axis.",
            x1=lambda xp, g, x2, axis: xp.linalg.cross(conj(xp, x2), g, axis=axis),
            x2=lambda xp, g, x1, axis: xp.linalg.cross(g, conj(xp, x1), axis=axis),
            about=About(gradient="for x1: x2 x g; for x2: g x x1",
                        example="mg.asarray([1.0, 0.0, 0.0]), mg.asarray([0.0, 1.0, 0.0])"))
multilinear("linalg.outer(x1, x2, /)", batching=batching_linalg.outer, forward=outer,
            doc="The products of each element of one vector with each element of another.",
            x1=lambda xp, g, x2: xp.matmul(g, conj(xp, x2)),
            x2=lambda xp, g, x1: xp.matmul(conj(xp, x1), g),
            about=About(gradient="for x1: g @ conj(x2); for x2: conj(x1) @ g", example="P, Q"))
linear("linalg.diagonal(x, /, *, offset=0)", batching="leading", forward={"*": diagonal}, view=True,
       x=diagonal_vjp, doc="One diagonal of each matrix.",
       about=About(gradient="a matrix with g on the diagonal"))
linear("linalg.trace(x, /, *, offset=0, dtype=None)", batching="leading", x=trace_vjp,
       forward={
           "*": lambda xp, x, offset, dtype: xp.sum(
               xp.linalg.diagonal(x, offset=offset), axis=-1, dtype=dtype
           )
       },
       doc="The sum of one diagonal of each matrix.",
       about=About(gradient={"x": "g * eye(n)"}))
define("linalg.solve(x1, x2, /)", materialize=False, batching=batching_linalg.solve, vjp=solve_vjp,
       jvp=solve_jvp, keep={"x2": ("x1", "x2_shape")},
       doc="The solution of x1 @ ans = x2 for each square matrix x1. If x2 has one dimension it "
           "is a vector, else a stack of matrices.",
       about=About(gradient={"x1": "-outer(linalg.solve(matrix_transpose(x1), g), ans)",
                             "x2": "linalg.solve(matrix_transpose(x1), g)"},
                   example="S, mg.asarray([3.0, 3.0])",
                   arrays="x1: (..., M, M); x2: (M,) or (..., M, K), of floating dtypes"))
define("linalg.inv(x, /)", batching="leading", forward={"*": inv}, x=inv_vjp,
       jvp=lambda xp, t, ans: -(ans @ t @ ans), doc="The inverse of each square matrix.",
       about=About(gradient={"x": "-matrix_transpose(ans) @ g @ matrix_transpose(ans)"},
                   at="of real matrices", arrays="square matrices (..., M, M)"))
# The adjoint is the same sum, with x^H.
define("linalg.matrix_power(x, n: plain, /)", batching="leading", forward={"*": matrix_power},
       jvp=matrix_power_jvp, view=lambda x, n: index(n) == 1 and "same",
       x=lambda xp, g, x, n: matrix_power_jvp(xp, g, adjoint(xp, x), n),
       doc="Each square matrix raised to an integer power; a negative power is a power of the "
           "inverse.",
       about=About(gradient="the sum of (x^k)^H g (x^(n-1-k))^H over k < n", example="A, 2",
                   arrays="square matrices (..., M, M)"))
# The cutoff only chooses the rank, so rtol has no gradient.
define("linalg.pinv(x, /, *, rtol: array = None)", batching=batching_linalg.with_tolerance("pinv"),
       forward={"*": pinv}, jvp=pinv_jvp, x=pinv_vjp, rtol=lambda xp, g, rtol: xp.zeros_like(rtol),
       doc="The Moore-Penrose pseudoinverse of each matrix. Its derivative is the one at constant "
           "rank.",
       about=About(gradient="the gradient for matrices of constant rank",
                   arrays="matrices (..., M, N)"))
nondifferentiable("linalg.matrix_rank(x, /, *, rtol: array = None)",
                  batching=batching_linalg.with_tolerance("matrix_rank"), forward=matrix_rank,
                  doc="The number of singular values of each matrix that exceed rtol times the "
                      "largest one.",
                  about=About(arrays="matrices (..., M, N)"))
