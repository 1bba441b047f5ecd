"""Losses of the outputs of decompositions that depend on no choice of theirs, as the same text for
multigrad and for PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from rule_checks import complexes, reals

import multigrad as mg


def draw(kind: str, *shape: int, seed: int = 0) -> Any:
    return complexes(*shape, seed=seed) if kind == "complex" else reals(*shape, seed=seed)


def adjoint(x: Any) -> Any:
    return np.conj(np.swapaxes(x, -1, -2))


def hermitian(x: Any) -> Any:
    return (x + adjoint(x)) / 2


def positive(x: Any) -> Any:
    return x @ adjoint(x) + np.eye(x.shape[-1])


def gradient(loss: Callable[[Any], Any], x: Any) -> Any:
    t = mg.asarray(np.asarray(x), requires_grad=True)
    (g,) = mg.autograd.grad(loss(t), t)
    return g.array


# ----- losses that are the same text here and in PyTorch -----


def weights(xp: Any, x: Any) -> Any:
    """Numbers without symmetry, in place of a random array: cos(1), cos(2), ..."""
    n = int(np.prod(x.shape))
    return xp.reshape(xp.cos(xp.arange(1, n + 1, dtype=xp.float64)), tuple(x.shape))


def weighted(xp: Any, x: Any) -> Any:
    """A real function of every element, real and imaginary parts apart."""
    w = weights(xp, x)
    if x.dtype == xp.complex128:
        return xp.sum(xp.real(x) * w) + xp.sum(xp.imag(x) * w * w)
    return xp.sum(x * w)


def conj(xp: Any, x: Any) -> Any:
    return xp.conj(x) if x.dtype == xp.complex128 else x


def projections(xp: Any, vectors: Any) -> Any:
    return vectors.mT[..., :, :, None] * conj(xp, vectors).mT[..., :, None, :]


def eigh_loss(xp: Any, x: Any) -> Any:
    w, v = xp.linalg.eigh(x)
    return weighted(xp, w * w) + weighted(xp, projections(xp, v))


def eig_loss(xp: Any, x: Any) -> Any:
    w, v = xp.linalg.eig(x)
    return weighted(xp, w * w) + weighted(xp, projections(xp, v))


def qr_loss(xp: Any, x: Any, mode: str = "reduced") -> Any:
    q, r = xp.linalg.qr(x, mode=mode)
    return weighted(xp, q * q) + weighted(xp, r * r)


def svd_loss(xp: Any, x: Any, full: bool = False) -> Any:
    u, s, vh = xp.linalg.svd(x, full_matrices=full)
    k = s.shape[-1]
    u, vh = u[..., :, :k], vh[..., :k, :]
    return weighted(xp, s * s) + weighted(xp, u.mT[..., :, :, None] * vh[..., :, None, :])


def left_loss(xp: Any, x: Any) -> Any:
    return weighted(xp, projections(xp, xp.linalg.svd(x, full_matrices=False)[0]))


def right_loss(xp: Any, x: Any) -> Any:
    return weighted(xp, projections(xp, conj(xp, xp.linalg.svd(x, full_matrices=False)[2].mT)))


LOSSES: dict[str, tuple[Callable[..., Any], Any, list[tuple[int, ...]]]] = {
    "cholesky": (
        lambda xp, x: weighted(xp, xp.linalg.cholesky(x) ** 2),
        positive,
        [(3, 3), (2, 2, 2)],
    ),
    "cholesky upper": (
        lambda xp, x: weighted(xp, xp.linalg.cholesky(x, upper=True) ** 2),
        positive,
        [(3, 3)],
    ),
    "eigh": (eigh_loss, hermitian, [(3, 3), (2, 2, 2)]),
    "eigvalsh": (
        lambda xp, x: weighted(xp, xp.linalg.eigvalsh(x) ** 2),
        hermitian,
        [(3, 3), (2, 2, 2)],
    ),
    "eig": (eig_loss, None, [(3, 3), (2, 2, 2)]),
    "eigvals": (lambda xp, x: weighted(xp, xp.linalg.eigvals(x) ** 2), None, [(3, 3), (2, 2, 2)]),
    "qr": (qr_loss, None, [(3, 3), (4, 2), (2, 4), (2, 3, 2)]),
    "qr complete": (lambda xp, x: qr_loss(xp, x, "complete"), None, [(3, 3), (2, 4)]),
    "Q": (lambda xp, x: weighted(xp, xp.linalg.qr(x)[0] ** 2), None, [(3, 2), (2, 3)]),
    "R": (lambda xp, x: weighted(xp, xp.linalg.qr(x)[1] ** 2), None, [(3, 2), (2, 3)]),
    "svd": (svd_loss, None, [(3, 3), (4, 2), (2, 4), (2, 3, 2)]),
    "svd full": (lambda xp, x: svd_loss(xp, x, True), None, [(4, 2), (2, 4)]),
    "U": (left_loss, None, [(2, 2), (3, 2), (2, 3)]),
    "Vh": (right_loss, None, [(2, 2), (3, 2), (2, 3)]),
    "svdvals": (
        lambda xp, x: weighted(xp, xp.linalg.svdvals(x) ** 2),
        None,
        [(3, 3), (3, 2), (2, 3)],
    ),
}
