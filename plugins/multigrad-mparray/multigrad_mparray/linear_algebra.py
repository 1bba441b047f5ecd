"""The linalg extension, computed by mpmath matrix by matrix: mparray has none."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import mparray as xp
import numpy as np
from mpmath import mp


def numbers(x: Any) -> Any:
    """The numbers of an MPArray as a NumPy array of objects.

    mparray has no public name for them.
    """
    return x._data


def each(function: Callable[[Any], tuple[Any, ...]], x: Any, kinds: str) -> tuple[Any, ...]:
    """Apply `function`, from an mpmath matrix to several results, to each matrix of a stack.

    `kinds` has one letter for each result: "r" is real, "c" complex, and "x" has the dtype of `x`;
    a capital letter is a vector.
    """
    complex_dtype = xp.result_type(x.dtype, 1j)
    dtypes = {"x": x.dtype, "c": complex_dtype, "r": np.empty(0, dtype=complex_dtype).real.dtype}
    m, n = x.shape[-2:]
    stack = numbers(x).reshape((prod(x.shape[:-2]), m, n))
    results = [function(mp.matrix(matrix.tolist())) for matrix in stack]
    outs = []
    for i, kind in enumerate(kinds):
        arrays = [np.array(f[i].tolist(), dtype=object) for f in results]
        arrays = [a.reshape(-1) if kind.isupper() else a for a in arrays]
        data = (
            np.stack(arrays) if arrays else np.empty((0, m, n)[: 2 + kind.islower()], dtype=object)
        )
        outs.append(
            xp.asarray(data.reshape(x.shape[:-2] + data.shape[1:]), dtype=dtypes[kind.lower()])
        )
    return tuple(outs)


def cholesky(x: Any, /, *, upper: bool = False) -> Any:
    (lower,) = each(lambda a: (mp.cholesky(a),), x, "x")
    return xp.conj(xp.matrix_transpose(lower)) if upper else lower


def eig(x: Any, /) -> Any:
    def of_one(a: Any) -> tuple[Any, Any]:
        values, vectors = mp.eig(a)
        for j in range(a.cols):
            vectors[:, j] = vectors[:, j] / mp.norm(vectors[:, j])
        return mp.matrix(values), vectors

    return each(of_one, x, "Cc")


def eigh(x: Any, /) -> Any:
    return each(mp.eigh, x, "Rx")


def inv(x: Any, /) -> Any:
    return each(lambda a: (mp.inverse(a),), x, "x")[0]


def qr(x: Any, /, *, mode: str = "reduced") -> Any:
    def of_one(a: Any) -> Any:
        if a.rows >= a.cols:
            return mp.qr(a, "full" if mode == "complete" else "skinny")
        q, _ = mp.qr(a[:, : a.rows], "full")  # mpmath's function does not take a wide matrix
        return q, q.H * a

    q, r = each(of_one, x, "xx")
    return q, xp.triu(r)


def solve(x1: Any, x2: Any, /) -> Any:
    if x2.ndim == 1:
        return xp.matmul(inv(x1), x2[:, None])[..., 0]
    return xp.matmul(inv(x1), x2)


def svd(x: Any, /, *, full_matrices: bool = True) -> Any:
    return each(lambda a: mp.svd(a, full_matrices=full_matrices), x, "xRx")


FUNCTIONS: dict[str, Callable[..., Any]] = {
    f"linalg.{f.__name__}": f for f in (cholesky, eig, eigh, inv, qr, solve, svd)
}
