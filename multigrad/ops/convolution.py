"""The convolution of two vectors, a kernel of `convolve` and of its own gradients.

Libraries without a convolution multiply by a matrix of windows, each shifted by one element. For
vectors of n and m elements it has m or n - m + 1 rows, whichever is smaller.
"""

from __future__ import annotations

from typing import Any

from ..registry import multilinear
from .kernels import conj


def _windows(xp: Any, x: Any, rows: int) -> Any:
    """For each vector, the matrix whose element (i, j) is element i + j of the vector.

    Its rows share one memory, which is read with a stride that is longer by one.
    """
    size, n = x.shape
    flat = xp.reshape(xp.broadcast_to(x[:, None, :], (size, rows, n)), (size, rows * n))
    flat = xp.concat([flat, xp.zeros((size, rows), dtype=x.dtype, device=xp.device_of(x))], axis=1)
    return xp.reshape(flat, (size, rows, n + 1))[:, :, : n - rows + 1]


def _of_batches(xp: Any, x1: Any, x2: Any, mode: str) -> Any:
    n, m = x1.shape[1], x2.shape[1]
    if mode == "full":
        if n < m:
            x1, x2, n, m = x2, x1, m, n
        ends = xp.zeros((x1.shape[0], m - 1), dtype=x1.dtype, device=xp.device_of(x1))
        x1, n = xp.concat([ends, x1, ends], axis=1), n + 2 * m - 2
    length, x2 = n - m + 1, xp.flip(x2, axis=1)
    if m <= length:
        return xp.matmul(x2[:, None, :], _windows(xp, x1, m))[:, 0, :]
    return xp.matmul(_windows(xp, x1, length), x2[:, :, None])[:, :, 0]


def _one(xp: Any, x1: Any, x2: Any, mode: str) -> Any:
    return _of_batches(xp, x1[None, :], x2[None, :], mode)[0, :]


def _x1_vjp(xp: Any, g: Any, x2: Any, mode: str) -> Any:
    return xp.convolution(g, xp.flip(conj(xp, x2)), "valid" if mode == "full" else "full")


def _x2_vjp(xp: Any, g: Any, x1: Any, mode: str) -> Any:
    if mode == "full":
        return xp.convolution(g, xp.flip(conj(xp, x1)), "valid")
    return xp.flip(xp.convolution(conj(xp, x1), xp.flip(g), "valid"))


multilinear(
    "convolution(x1, x2, /, mode)",
    x1=_x1_vjp,
    x2=_x2_vjp,
    batching=_of_batches,
    chapter="kernels",
    forward={
        "*": _one,
        "numpy": "numpy:convolve",
        "jax": "jax.numpy:convolve",
        "cupy": "cupy:convolve",
    },
    doc="The convolution of two vectors that are not empty. mode is 'full' or 'valid'; for "
    "'valid', x2 must not be longer than x1.",
)
