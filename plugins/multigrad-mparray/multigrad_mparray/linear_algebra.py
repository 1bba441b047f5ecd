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


def each(
    name: str, function: Callable[[Any], tuple[Any, ...]], x: Any, kinds: str, **settings: Any
) -> tuple[Any, ...]:
    """Apply `function`, from an mpmath matrix to several results, to each matrix of a stack.

    `kinds` has one letter for each result: "r" is real, "c" complex, and "x" has the dtype of `x`;
    a capital letter is a vector. Matrices without elements get the results of NumPy's function of
    that name with these settings: empty arrays and identities.
    """
    complex_dtype = xp.result_type(x.dtype, 1j)
    dtypes = {"x": x.dtype, "c": complex_dtype, "r": np.empty(0, dtype=complex_dtype).real.dtype}
    if 0 in x.shape:
        found = getattr(np.linalg, name)(np.empty(x.shape, dtype=x.dtype), **settings)
        found = found if isinstance(found, tuple) else (found,)
        return tuple(
            xp.asarray(out, dtype=dtypes[kind.lower()])
            for kind, out in zip(kinds, found, strict=True)
        )
    m, n = x.shape[-2:]
    stack = numbers(x).reshape((prod(x.shape[:-2]), m, n))
    results = [function(mp.matrix(matrix.tolist())) for matrix in stack]
    outs = []
    for i, kind in enumerate(kinds):
        arrays = [np.array(f[i].tolist(), dtype=object) for f in results]
        data = np.stack([a.reshape(-1) if kind.isupper() else a for a in arrays])
        outs.append(
            xp.asarray(data.reshape(x.shape[:-2] + data.shape[1:]), dtype=dtypes[kind.lower()])
        )
    return tuple(outs)


def cholesky(x: Any, /, *, upper: bool = False) -> Any:
    (lower,) = each("cholesky", lambda a: (mp.cholesky(a),), x, "x")
    return xp.conj(xp.matrix_transpose(lower)) if upper else lower


def eig(x: Any, /) -> Any:
    def of_one(a: Any) -> tuple[Any, Any]:
        values, vectors = mp.eig(a)
        for j in range(a.cols):
            vectors[:, j] = vectors[:, j] / mp.norm(vectors[:, j])
        return mp.matrix(values), vectors

    return each("eig", of_one, x, "Cc")


def eigh(x: Any, /) -> Any:
    return each("eigh", mp.eigh, x, "Rx")


def inv(x: Any, /) -> Any:
    return each("inv", lambda a: (mp.inverse(a),), x, "x")[0]


def qr(x: Any, /, *, mode: str = "reduced") -> Any:
    def of_one(a: Any) -> Any:
        if a.rows >= a.cols:
            return mp.qr(a, "full" if mode == "complete" else "skinny")
        q, _ = mp.qr(a[:, : a.rows], "full")  # mpmath's function does not take a wide matrix
        return q, q.H * a

    q, r = each("qr", of_one, x, "xx", mode=mode)
    return q, xp.triu(r)


def solve(x1: Any, x2: Any, /) -> Any:
    if x2.ndim == 1:
        return xp.matmul(inv(x1), x2[:, None])[..., 0]
    return xp.matmul(inv(x1), x2)


def svd(x: Any, /, *, full_matrices: bool = True) -> Any:
    return each(
        "svd",
        lambda a: mp.svd(a, full_matrices=full_matrices),
        x,
        "xRx",
        full_matrices=full_matrices,
    )


FUNCTIONS: dict[str, Callable[..., Any]] = {
    f"linalg.{f.__name__}": f for f in (cholesky, eig, eigh, inv, qr, solve, svd)
}
