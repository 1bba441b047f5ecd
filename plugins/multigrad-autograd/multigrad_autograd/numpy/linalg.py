"""numpy.linalg for boxes and raw arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.linalg as raw

import multigrad as mg
from multigrad.extend import entry

from ..boxes import value
from .table import NUMPY, wrap_namespace


def _eigh(a: Any, UPLO: Any = "L") -> Any:
    """Return the eigendecomposition of one triangle, with NumPy's signs and phases of vectors."""
    triangle = mg.tril(a, k=-1) if UPLO.upper() == "L" else mg.triu(a, k=1)
    values, vectors = mg.linalg.eigh(
        triangle + mg.conj(mg.matrix_transpose(triangle)) + mg.tril(mg.triu(a))
    )
    overlap = np.sum(
        np.conj(value(vectors)) * raw.eigh(value(a), UPLO).eigenvectors, axis=-2, keepdims=True
    )
    size = np.abs(overlap)
    return EighResult(
        values, vectors * np.where(size > 0, overlap / np.where(size > 0, size, 1.0), 1.0)
    )


EighResult: Any = type(raw.eigh(np.eye(1)))
_BOXED = {
    "eigh": _eigh,
    "inv": mg.linalg.inv,
    "det": mg.linalg.det,
    "slogdet": mg.linalg.slogdet,
    "eig": mg.linalg.eig,
}
globals().update(wrap_namespace(raw.__dict__, _BOXED))


@entry
def T(x: Any) -> Any:
    """Return the transposes of matrices."""
    return NUMPY["swapaxes"](x, -1, -2)


def _dot(a: Any, b: Any) -> Any:
    return NUMPY["einsum"]("...ij,...jk->...ik", a, b)


def __getattr__(name: str) -> Any:
    return getattr(raw, name)
