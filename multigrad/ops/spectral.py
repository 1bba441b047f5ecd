"""Eigenvectors and eigenvalues, singular vectors and values.

See `decompositions` for conventions and for the source of the real formulas.

Eigenvectors and singular vectors are determined only up to a phase. Their tangent is that of the
choice of phases for which the vectors change least. If a loss depends on the phase, its gradient
raises: see `refuse_phases`. Where eigenvalues or singular values are repeated, the vectors have no
derivative, and the gradient is nan. The derivative of the values alone never divides by their
differences; where values are repeated, it is the derivative for some choice of vectors.
"""

from __future__ import annotations

from math import nan, sqrt
from typing import Any

from ..registry import About, composite, define
from .decompositions import adjoint, epsilon, hermitian, on_diagonal, skew, times_diagonal
from .kernels import alike, is_complex

# ----- repeated values -----


def inverse(xp: Any, x: Any) -> Any:
    """1 / x, or nan where x is 0.

    If it were inf there, inf times 0 would be nan in some libraries, and a warning in others.
    """
    zero = x == 0
    return xp.where(zero, nan, 1 / xp.where(zero, 1.0, x))


def inverse_gaps(xp: Any, values: Any) -> Any:
    """F[i, j] = 1 / (values[j] - values[i]); 0 on the diagonal, nan where values are repeated."""
    gaps = values[..., None, :] - values[..., :, None]
    return xp.where(on_diagonal(xp, gaps), 0.0, inverse(xp, gaps))


# ----- Phases -----


def norm(xp: Any, x: Any, axis: Any) -> Any:
    """The root of the sum of squares, computed without overflow of the squares.

    `refuse_phases` compares it, which needs a finite value.
    """
    size = xp.abs(x)
    if 0 in x.shape:
        return xp.sum(size, axis=axis, keepdims=True)
    largest = xp.max(size, axis=axis, keepdims=True)
    scale = xp.where((largest > 0) & xp.isfinite(largest), largest, 1.0)
    return scale * xp.sqrt(xp.sum(xp.square(size / scale), axis=axis, keepdims=True))


def allowance(xp: Any, g_values: Any, values: Any, *cotangents: Any) -> Any:
    """The largest derivative by phases, for each matrix, that is attributed to rounding.

    The first term allows a relative error of half of the digits, and one more, in the cotangents of
    the vectors: the rounding errors of the user's computation. The other two terms are for
    cotangents that are differences of larger numbers. In second derivatives, parts as large as the
    gradient with respect to the values cancel, and below 100 eps the cotangents carry no
    information.
    """
    eps = epsilon(xp, values.dtype)
    allowed = (
        sum(10 * sqrt(eps) * norm(xp, g, (-2, -1))[..., 0] for g in cotangents if g is not None)
        + 100 * eps
    )
    return allowed if g_values is None else allowed + 10 * eps * norm(xp, g_values * values, -1)


def refuse_phases(xp: Any, g: Any, derivative: Any, allowed: Any, message: str) -> Any:
    """Return the cotangents `g` of vectors, unless the loss depends on the vectors' phases.

    `derivative` is the derivative of the loss with respect to the phases. If it exceeds `allowed`,
    this raises. PyTorch compares with 0.01, so a loss of small scale passes, and a loss of large
    scale is refused because of its rounding errors.
    """
    return xp.refuse(g, (norm(xp, derivative, -1) > allowed)[..., None], message)


PHASES = (
    "{}: The {} in the complex case are specified up to multiplication by e^{{i phi}}. "
    "The specified loss function depends on {}"
)
SVD_PHASES = PHASES.format(
    "svd_backward", "singular vectors", "this phase term, making it ill-defined."
)
EIGH_PHASES, EIG_PHASES = (
    PHASES.format(f"linalg_{name}_backward", "eigenvectors", "this quantity, so it is ill-defined.")
    for name in ("eigh", "eig")
)

# ----- Hermitian eigenvectors and eigenvalues -----


def eigh_vjp(
    xp: Any, g_eigenvalues: Any, g_eigenvectors: Any, eigenvalues: Any, eigenvectors: Any
) -> Any:
    """V (diag(g_w) + F * V^H g_V) V^H, made Hermitian; F is `inverse_gaps`. Giles, 2008, 3.1."""
    v, g = eigenvectors, g_eigenvectors
    if g is None:
        return eigvalsh_gradient(xp, g_eigenvalues, v)
    if is_complex(xp, v.dtype):
        allowed = allowance(xp, g_eigenvalues, eigenvalues, g)
        g = refuse_phases(xp, g, xp.imag(xp.vecdot(v, g, axis=-2)), allowed, EIGH_PHASES)
    inner = alike(xp, inverse_gaps(xp, eigenvalues), v) * skew(xp, adjoint(xp, v) @ g)
    if g_eigenvalues is not None:
        diagonal = alike(xp, g_eigenvalues, inner)[..., None, :]
        inner = xp.where(on_diagonal(xp, inner), diagonal, inner)
    return hermitian(xp, v @ inner @ adjoint(xp, v))


def eigvalsh_gradient(xp: Any, g: Any, v: Any) -> Any:
    return hermitian(xp, times_diagonal(xp, v, g) @ adjoint(xp, v))


def eigh_jvp(xp: Any, t: Any, eigenvalues: Any, eigenvectors: Any) -> Any:
    """Re diag(V^H t V) and V (F * V^H t V)."""
    v = eigenvectors
    tv = hermitian(xp, t) @ v
    turn = alike(xp, inverse_gaps(xp, eigenvalues), v) * (adjoint(xp, v) @ tv)
    return xp.real(xp.vecdot(v, tv, axis=-2)), v @ turn


# fmt: off
define("linalg.eigh(x, /)", batching="leading", outputs=("eigenvalues", "eigenvectors"),
       materialize=False, x=eigh_vjp, jvp=eigh_jvp,
       doc="The eigenvalues, ascending, and the eigenvectors of each Hermitian matrix. The "
           "gradient of the eigenvectors is nan where eigenvalues are repeated.",
       about=About(gradient="V (diag(g_w) + F * (V^H g_V)) V^H with F_ij = 1 / (w_j - w_i)",
                   example="mg.linalg.eigh(S).eigenvalues",
                   arrays="Hermitian matrices (..., M, M)"))

# The gradient of the values needs the vectors. They are computed only with the gradient, so that
# the values alone stay cheap.
define("linalg.eigvalsh(x, /)", batching="leading",
       forward={"*": lambda xp, x: xp.linalg.eigh(x)[0]},
       x=lambda xp, g, x: eigvalsh_gradient(xp, g, xp.linalg.eigh(x)[1]),
       jvp=lambda xp, t, x: eigh_jvp(xp, t, *xp.linalg.eigh(x))[0],
       doc="The eigenvalues, ascending, of each Hermitian matrix. Where they are repeated, the "
           "gradient is that of some choice of eigenvectors.",
       about=About(gradient="V diag(g) V^H", arrays="Hermitian matrices (..., M, M)"))
# fmt: on

# ----- Eigenvectors and eigenvalues -----


def eig_vjp(
    xp: Any, g_eigenvalues: Any, g_eigenvectors: Any, eigenvalues: Any, eigenvectors: Any
) -> Any:
    """V^-H (diag(g_w) + conj(F) * (V^H g_V - V^H V diag(Re(V^H g_V)))) V^H; F is `inverse_gaps`.

    C. Boeddeker et al., "On the computation of complex-valued gradients with application to
    statistically optimum beamforming", 2017, eq. 4.77, for eigenvectors of length 1.
    """
    v, g = eigenvectors, g_eigenvectors
    left = adjoint(xp, v)
    if g is None:
        return xp.linalg.solve(left, g_eigenvalues[..., :, None] * left)
    length = xp.vecdot(v, g, axis=-2)
    allowed = allowance(xp, g_eigenvalues, eigenvalues, g)
    g = refuse_phases(xp, g, xp.imag(length), allowed, EIG_PHASES)
    inner = left @ (g - times_diagonal(xp, v, xp.real(length)))
    inner = xp.conj(inverse_gaps(xp, eigenvalues)) * inner
    if g_eigenvalues is not None:
        inner = xp.where(on_diagonal(xp, inner), g_eigenvalues[..., None, :], inner)
    return xp.linalg.solve(left, inner @ left)


def eig_jvp(xp: Any, t: Any, eigenvalues: Any, eigenvectors: Any) -> Any:
    """diag(V^-1 t V), and V X - V diag(Re(V^H V X)) with X = F * V^-1 t V.

    The second tangent keeps the length of the eigenvectors.
    """
    v = eigenvectors
    inner = xp.linalg.solve(v, alike(xp, t, v) @ v)
    tangent = v @ (inverse_gaps(xp, eigenvalues) * inner)
    length = xp.real(xp.vecdot(v, tangent, axis=-2))
    return xp.linalg.diagonal(inner), tangent - times_diagonal(xp, v, length)


# fmt: off
define("linalg.eig(x, /)", batching="leading", outputs=("eigenvalues", "eigenvectors"),
       materialize=False, x=eig_vjp, jvp=eig_jvp,
       doc="The eigenvalues and the eigenvectors of length 1 of each square matrix, always "
           "complex. The gradient of the eigenvectors is nan where eigenvalues are repeated.",
       about=About(gradient="V^-H (diag(g_w) + F * (V^H g_V)) V^H with F_ij = 1 / conj(w_j - w_i)",
                   example="mg.linalg.eig(mg.asarray([[2.0, 0.0], [0.0, 1.0]])).eigenvalues",
                   arrays="square matrices (..., M, M)"))

# Do not use the library's own function. For larger matrices LAPACK returns the values in another
# order if it computes no vectors, so a rule could not match the values with vectors computed later.
composite("linalg.eigvals(x, /)", lambda xp, x: xp.linalg.eig(x)[0],
          doc="The eigenvalues of each square matrix, always complex, in the order of `eig`.",
          about=About(example="mg.asarray([[2.0, 0.0], [0.0, 1.0]])",
                      arrays="square matrices (..., M, M)"))
# fmt: on

# ----- Singular vectors and values -----

NO_GRADIENT = (
    "svd_backward: the loss depends on the {} of {}, of which only the space that they span is "
    "determined by the matrix, so they have no gradient. Use full_matrices=False, or only the "
    "first min(m, n)."
)


def first_vectors(xp: Any, g: Any, k: int, axis: int, message: str) -> Any:
    """The cotangent of the first k vectors.

    The other vectors, which full_matrices=True adds, must have cotangents of 0.
    """
    if g is None or g.shape[axis] == k:
        return g
    first, rest = (g[..., :, :k], g[..., :, k:]) if axis == -1 else (g[..., :k, :], g[..., k:, :])
    size = xp.abs(rest)
    unknown = xp.any(xp.isnan(size), axis=(-2, -1), keepdims=True)
    used = xp.any(size > 0, axis=(-2, -1), keepdims=True)
    return xp.refuse(xp.where(unknown, nan, first), used, message)


def svd_vjp(xp: Any, g_U: Any, g_S: Any, g_Vh: Any, U: Any, S: Any, Vh: Any) -> Any:
    """U G V^H + (1 - U U^H) g_U S^-1 V^H + U S^-1 g_V^H (1 - V V^H).

    G = F * (K_U + K_V) + E * (K_U - K_V) + diag(g_S), with F[i, j] = 1 / (s[j] - s[i]), E[i, j] = 1
    / (s[j] + s[i]) and K_U, K_V the skew-Hermitian parts of U^H g_U and V^H g_V. J. Townsend,
    "Differentiating the singular value decomposition", 2016; the diagonal of E * (K_U - K_V), which
    is 0 for real matrices: Z.-Q. Wan and S.-X. Zhang, "Automatic differentiation for complex valued
    SVD", 2019.
    """
    k = S.shape[-1]
    g_U = first_vectors(xp, g_U, k, -1, NO_GRADIENT.format("last columns", "U"))
    g_Vh = first_vectors(xp, g_Vh, k, -2, NO_GRADIENT.format("last rows", "Vh"))
    U, Vh = U[..., :, :k], Vh[..., :k, :]
    if g_U is None and g_Vh is None:
        return times_diagonal(xp, U, g_S) @ Vh
    g_V = None if g_Vh is None else adjoint(xp, g_Vh)
    g_U, g_V, diagonal = svd_diagonal(xp, g_U, g_V, g_S, U, S, Vh)
    x_U = None if g_U is None else adjoint(xp, U) @ g_U
    x_V = None if g_V is None else Vh @ g_V
    inner = svd_inner(xp, x_U, x_V, S)
    if diagonal is not None:
        inner = xp.where(on_diagonal(xp, inner), diagonal[..., None, :], inner)
    if U.shape[-2] > k and g_U is not None:
        return (U @ inner + times_diagonal(xp, g_U - U @ x_U, inverse(xp, S))) @ Vh
    if Vh.shape[-1] > k and g_V is not None:
        outside = times_diagonal(xp, g_V - adjoint(xp, Vh) @ x_V, inverse(xp, S))
        return U @ (inner @ Vh + adjoint(xp, outside))
    return U @ inner @ Vh


def svd_inner(xp: Any, x_U: Any, x_V: Any, S: Any) -> Any:
    """F * (K_U + K_V) + E * (K_U - K_V) off the diagonal."""
    like = x_V if x_U is None else x_U
    gaps, sums = (alike(xp, f(xp, S), like) for f in (inverse_gaps, inverse_sums))
    if x_V is None:
        return (gaps + sums) * skew(xp, x_U)
    if x_U is None:
        return (gaps - sums) * skew(xp, x_V)
    return gaps * skew(xp, x_U + x_V) + sums * skew(xp, x_U - x_V)


def inverse_sums(xp: Any, S: Any) -> Any:
    """E[i, j] = 1 / (s[i] + s[j]); 0 on the diagonal."""
    sums = S[..., None, :] + S[..., :, None]
    return xp.where(on_diagonal(xp, sums), 0.0, inverse(xp, sums))


def svd_diagonal(xp: Any, g_U: Any, g_V: Any, g_S: Any, U: Any, S: Any, Vh: Any) -> Any:
    """The cotangents, refused if the loss depends on phases, and the diagonal of G.

    A pair of singular vectors has a common phase. Their relative phase is determined, except where
    the singular value is 0: there the gradient is nan if the loss depends on it.
    """
    if not is_complex(xp, U.dtype):
        return g_U, g_V, g_S
    u = None if g_U is None else xp.imag(xp.vecdot(U, g_U, axis=-2))
    v = None if g_V is None else xp.imag(xp.vecdot(adjoint(xp, Vh), g_V, axis=-2))
    allowed = allowance(xp, g_S, S, g_U, g_V)
    together = u if v is None else v if u is None else u + v
    against = u if v is None else -v if u is None else u - v
    if g_U is not None:
        g_U = refuse_phases(xp, g_U, together, allowed, SVD_PHASES)
    else:
        g_V = refuse_phases(xp, g_V, together, allowed, SVD_PHASES)
    free = (S == 0) & (xp.abs(against) <= allowed)
    turn = xp.astype(xp.where(free, 0.0, against * inverse(xp, 2 * S)), U.dtype) * 1j
    return g_U, g_V, turn if g_S is None else alike(xp, g_S, turn) + turn


def svd_jvp(xp: Any, t: Any, U: Any, S: Any, Vh: Any) -> Any:
    """The tangents of singular vectors and values.

    With P = U^H t V: U^H dU = F * (P + P^H) / 2 + E * (P - P^H) / 2, V^H dV the same with -E, and
    the part outside the space of U or V.

    Vectors that full_matrices=True adds turn only as far as the others force them to.
    """
    k = S.shape[-1]
    u, v = U[..., :, :k], adjoint(xp, Vh[..., :k, :])
    tv, tu = t @ v, adjoint(xp, t) @ u
    p = adjoint(xp, u) @ tv
    gaps = alike(xp, inverse_gaps(xp, S), p) * hermitian(xp, p)
    sums = alike(xp, inverse_sums(xp, S), p) * skew(xp, p)
    if is_complex(xp, p.dtype):
        turn = xp.imag(xp.vecdot(u, tv, axis=-2))
        turn = xp.astype(xp.where(turn == 0, 0.0, turn * inverse(xp, 2 * S)), p.dtype) * 1j
        sums = xp.where(on_diagonal(xp, p), turn[..., None, :], sums)
    moved_U = moved_vectors(xp, U, k, gaps + sums, tv, S)
    moved_V = moved_vectors(xp, adjoint(xp, Vh), k, gaps - sums, tu, S)
    return moved_U, xp.real(xp.vecdot(u, tv, axis=-2)), adjoint(xp, moved_V)


def moved_vectors(xp: Any, vectors: Any, k: int, turn: Any, image: Any, S: Any) -> Any:
    """The tangent of singular vectors that turn by `turn`, and towards `image` / S.

    The second part leaves the space of the vectors.
    """
    first = vectors[..., :, :k]
    tangent = first @ turn
    if vectors.shape[-2] == k:
        return tangent
    out = times_diagonal(xp, image, inverse(xp, S))
    tangent = tangent + out - first @ (adjoint(xp, first) @ out)
    if vectors.shape[-1] == k:
        return tangent
    return xp.concat([tangent, -first @ (adjoint(xp, out) @ vectors[..., :, k:])], axis=-1)


def svdvals_vjp(xp: Any, g: Any, x: Any) -> Any:
    """U diag(g) V^H; where singular values are 0, this is one of the subgradients."""
    u, _, vh = xp.linalg.svd(x, full_matrices=False)
    return times_diagonal(xp, u, g) @ vh


def svdvals_jvp(xp: Any, t: Any, x: Any) -> Any:
    u, _, vh = xp.linalg.svd(x, full_matrices=False)
    return xp.real(xp.vecdot(u, t @ adjoint(xp, vh), axis=-2))


# fmt: off
define("linalg.svd(x, /, *, full_matrices=True)", batching="leading", outputs=("U", "S", "Vh"),
       materialize=False, x=svd_vjp, jvp=svd_jvp,
       doc="Orthonormal U and Vh and the singular values S, descending, with U diag(S) Vh = x. "
           "The gradient of vectors is nan where values are repeated. The vectors that "
           "full_matrices=True adds have no gradient; a loss that depends on them raises.",
       about=About(gradient="a function of U, S, Vh and their cotangents, with 1 / (s_j^2 - s_i^2) "
                            "for the vectors",
                   example="mg.linalg.svd(mg.asarray([[2.0, 0.0], [0.0, 1.0]])).S",
                   arrays="matrices (..., M, N)"))
define("linalg.svdvals(x, /)", batching="leading",
       forward={"*": lambda xp, x: xp.linalg.svd(x, full_matrices=False)[1]}, x=svdvals_vjp,
       jvp=svdvals_jvp, doc="The singular values of each matrix, descending.",
       about=About(gradient="U diag(g) Vh", arrays="matrices (..., M, N)"))
