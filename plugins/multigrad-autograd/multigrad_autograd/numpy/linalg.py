"""numpy.linalg for boxes as well as for raw arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.linalg as raw

import multigrad as mg

from ..boxes import value
from .table import NUMPY, wrap_namespace


EighResult = type(raw.eigh(np.eye(1)))


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    if axis is None and x.ndim == 2 and ord is not None:
        axis = (0, 1)
    if axis is None and (ord is None or x.ndim == 1):
        flat = mg.reshape(x, (-1,))
        out = mg.linalg.vector_norm(flat, ord=2 if ord is None or ord == "fro" else ord)
        return mg.reshape(out, (1,) * x.ndim) if keepdims else out
    if axis is None:
        raise ValueError("Improper number of dimensions to norm.")
    if isinstance(axis, int) or len(axis) == 1:
        at = axis if isinstance(axis, int) else axis[0]
        return mg.linalg.vector_norm(x, axis=at, ord=2 if ord is None else ord, keepdims=keepdims)
    axes = tuple(i % x.ndim for i in axis)
    out = mg.linalg.matrix_norm(mg.moveaxis(x, axes, (-2, -1)), ord="fro" if ord is None else ord)
    return mg.reshape(out, tuple(1 if i in axes else n for i, n in enumerate(x.shape))) if keepdims else out


def _eigh(a: Any, UPLO: str = "L") -> Any:
    """Of one triangle, as in NumPy, with the signs and phases of vectors that NumPy gives."""
    triangle = mg.tril(a, k=-1) if UPLO.upper() == "L" else mg.triu(a, k=1)
    values, vectors = mg.linalg.eigh(triangle + mg.conj(mg.matrix_transpose(triangle)) + mg.tril(mg.triu(a)))
    overlap = np.sum(np.conj(value(vectors)) * raw.eigh(value(a), UPLO).eigenvectors, axis=-2, keepdims=True)
    size = np.abs(overlap)
    return EighResult(values, vectors * np.where(size > 0, overlap / np.where(size > 0, size, 1.0), 1.0))


def _svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    return mg.linalg.svd(a, full_matrices=full_matrices) if compute_uv else mg.linalg.svdvals(a)


def _pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    return mg.linalg.pinv(a, rtol=rcond if rtol is None else rtol)


def _cholesky(a: Any, /, *, upper: bool = False) -> Any:
    return mg.linalg.cholesky(a, upper=upper)


def _solve(a: Any, b: Any) -> Any:
    return mg.linalg.solve(a, b)


def T(x: Any) -> Any:
    """The transposes of matrices."""
    return NUMPY["swapaxes"](x, -1, -2)


def _dot(a: Any, b: Any) -> Any:
    return NUMPY["einsum"]("...ij,...jk->...ik", a, b)


_BOXED = {
    "norm": _norm, "eigh": _eigh, "svd": _svd, "pinv": _pinv, "cholesky": _cholesky, "solve": _solve, "inv": mg.linalg.inv, "det": mg.linalg.det,
    "slogdet": mg.linalg.slogdet, "eig": mg.linalg.eig, "eigvals": mg.linalg.eigvals, "eigvalsh": mg.linalg.eigvalsh,
    "matrix_power": mg.linalg.matrix_power, "svdvals": mg.linalg.svdvals,
}  # fmt: skip
globals().update(wrap_namespace(raw.__dict__, _BOXED))


def __getattr__(name: str) -> Any:
    return getattr(raw, name)
