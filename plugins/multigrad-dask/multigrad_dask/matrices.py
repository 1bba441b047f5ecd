"""Linear algebra by NumPy, on chunks that hold whole matrices.

Dask lacks these functions, or has them for single matrices only. Dask's own `qr` and `svd` run for
their purpose: a tall matrix in several blocks of rows, which may be larger than memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import array_api_compat.dask.array as xp
import dask.array as da
import numpy as np


def of_chunks(function: Callable[..., Any], signature: str, *arrays: Any, **sizes: int) -> Any:
    """Apply `function`, for NumPy stacks of matrices, to matrices that each lie in one chunk.

    `signature` is that of a generalized ufunc.
    """
    if any(0 in x.shape for x in arrays):  # Dask divides by the sizes; nothing is to be computed
        outs = function(*map(_regular, arrays))
        return tuple(map(da.from_array, outs)) if isinstance(outs, tuple) else da.from_array(outs)
    outs = function(*[np.ones((1,) * x.ndim, x.dtype) for x in arrays])
    dtypes = [out.dtype for out in outs] if isinstance(outs, tuple) else outs.dtype
    return da.apply_gufunc(
        function,
        signature,
        *arrays,
        output_dtypes=dtypes,
        output_sizes=sizes or None,
        allow_rechunk=True,
    )


def _regular(x: Any) -> Any:
    """An array of NumPy like `x`; of matrices, they are identities."""
    one = np.eye(*x.shape[-2:]) if x.ndim > 1 else np.ones(())
    return np.broadcast_to(one, x.shape).astype(x.dtype)


def _tall(x: Any) -> bool:
    return bool(
        x.ndim == 2 and x.numblocks[0] > 1 and x.numblocks[1] == 1 and x.shape[0] >= x.shape[1]
    )


def cholesky(x: Any, /, *, upper: bool = False) -> Any:
    return of_chunks(lambda x: np.linalg.cholesky(x, upper=upper), "(n,n)->(n,n)", x)


def det(x: Any, /) -> Any:
    return of_chunks(np.linalg.det, "(n,n)->()", x)


def slogdet(x: Any, /) -> Any:
    return of_chunks(lambda x: tuple(np.linalg.slogdet(x)), "(n,n)->(),()", x)


def inv(x: Any, /) -> Any:
    return of_chunks(np.linalg.inv, "(n,n)->(n,n)", x)


def solve(x1: Any, x2: Any, /) -> Any:
    return of_chunks(
        np.linalg.solve, "(n,n),(n)->(n)" if x2.ndim == 1 else "(n,n),(n,k)->(n,k)", x1, x2
    )


def _complex(x: Any) -> Any:
    """Convert to complex; NumPy returns a real array if all values are real."""
    return x.astype(np.result_type(x.dtype, np.complex64))


def eig(x: Any, /) -> Any:
    return of_chunks(lambda x: tuple(map(_complex, np.linalg.eig(x))), "(n,n)->(n),(n,n)", x)


def eigvals(x: Any, /) -> Any:
    return of_chunks(lambda x: _complex(np.linalg.eigvals(x)), "(n,n)->(n)", x)


def eigh(x: Any, /) -> Any:
    return of_chunks(lambda x: tuple(np.linalg.eigh(x)), "(n,n)->(n),(n,n)", x)


def eigvalsh(x: Any, /) -> Any:
    return of_chunks(np.linalg.eigvalsh, "(n,n)->(n)", x)


def qr(x: Any, /, *, mode: Any = "reduced") -> Any:
    if mode == "reduced" and _tall(x):
        return xp.linalg.qr(x)
    m, n = x.shape[-2:]
    k = m if mode == "complete" else min(m, n)
    return of_chunks(lambda x: tuple(np.linalg.qr(x, mode=mode)), "(m,n)->(m,k),(k,n)", x, k=k)


def svd(x: Any, /, *, full_matrices: bool = True) -> Any:
    if not full_matrices and _tall(x):
        return xp.linalg.svd(x, full_matrices=False)
    m, n = x.shape[-2:]
    sizes = {"p": m, "q": n} if full_matrices else {"p": min(m, n), "q": min(m, n)}
    return of_chunks(
        lambda x: tuple(np.linalg.svd(x, full_matrices=full_matrices)),
        "(m,n)->(m,p),(k),(q,n)",
        x,
        k=min(m, n),
        **sizes,
    )


def svdvals(x: Any, /) -> Any:
    return (
        svd(x, full_matrices=False)[1]
        if _tall(x)
        else of_chunks(np.linalg.svdvals, "(m,n)->(k)", x, k=min(x.shape[-2:]))
    )


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Any:
    if isinstance(rtol, da.Array):
        return of_chunks(
            lambda x, rtol: np.asarray(np.linalg.matrix_rank(x, rtol=rtol)), "(m,n),()->()", x, rtol
        )
    return of_chunks(lambda x: np.asarray(np.linalg.matrix_rank(x, rtol=rtol)), "(m,n)->()", x)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    f"linalg.{f.__name__}": f
    for f in (
        cholesky,
        det,
        eig,
        eigh,
        eigvals,
        eigvalsh,
        inv,
        matrix_rank,
        qr,
        slogdet,
        solve,
        svd,
        svdvals,
    )
}
