"""The functions of linear algebra on object arrays: mpmath's decompositions, and definitions.

Determinants are those of Leibniz, inverses those of Cramer, which small matrices have whatever the
sizes of their rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mpmath import mp

INF = float("inf")


def each(f: Callable[[Any], Any], x: Any) -> Any:
    """A function of every number."""
    return np.asarray(np.frompyfunc(f, 1, 1)(x), dtype=object)


def zeros(shape: Any) -> Any:
    found = np.empty(shape, dtype=object)
    found.fill(mp.zero)
    return found


def total(x: Any, axis: Any, keepdims: bool = False) -> Any:
    """A sum."""
    return np.asarray(np.sum(x, axis=axis, keepdims=keepdims, initial=mp.zero), dtype=object)


def mean(x: Any, axis: Any, keepdims: bool) -> Any:
    """A mean."""
    found = total(x, axis, keepdims)
    return found * (mp.mpf(found.size) / x.size) if x.size else found


def conj(x: Any) -> Any:
    return each(mp.conj, x)


def adjoint(x: Any) -> Any:
    return conj(np.swapaxes(x, -1, -2))


# ----- batches of matrices -----


def is_complex(x: Any) -> bool:
    return any(isinstance(v, mp.mpc) for v in x.flat)


def batched(f: Callable[..., Any], *axes: int) -> Callable[..., Any]:
    """A function of matrices as one of batches of them; `axes` says how many axes of each argument,
    outputs in float64 included, it takes.
    """

    def function(*values: Any) -> Any:
        lead = np.broadcast_shapes(
            *(v.shape[: v.ndim - k] for v, k in zip(values, axes, strict=True))
        )
        spread = [
            np.broadcast_to(v, (*lead, *v.shape[v.ndim - k :]))
            for v, k in zip(values, axes, strict=True)
        ]
        found = [f(*(v[i] for v in spread)) for i in np.ndindex(*lead)]
        if isinstance(found[0], tuple):
            return tuple(_stacked(part, lead) for part in zip(*found, strict=True))
        return _stacked(found, lead)

    return function


def _stacked(parts: Sequence[Any], lead: tuple[int, ...]) -> Any:
    parts = [np.asarray(p, dtype=object) for p in parts]
    return np.reshape(np.stack(parts), (*lead, *parts[0].shape))


# ----- one matrix -----


def inverse(x: Any) -> Any:
    """By Cramer's rule, whatever the sizes of the rows."""
    return _cofactors(x) / determinant(x)


def determinant(x: Any) -> Any:
    """By Leibniz' formula, which singular matrices have as well."""
    if len(x) == 1:
        return x[0, 0]
    return sum(
        (-1) ** j * x[0, j] * determinant(np.delete(x[1:], j, axis=1)) for j in range(len(x))
    )


def _slogdet(x: Any) -> Any:
    d = determinant(x)
    return d / abs(d), mp.log(abs(d))


def _cofactors(x: Any) -> Any:
    """The adjugate."""
    n = len(x)
    if n == 1:
        return np.asarray([[mp.one]], dtype=object)
    return np.asarray(
        [
            [(-1) ** (i + j) * determinant(np.delete(np.delete(x, j, 0), i, 1)) for j in range(n)]
            for i in range(n)
        ],
        dtype=object,
    )


def _adjugate_tangent(x: Any, dx: Any) -> Any:
    """The derivative of the adjugate, by a formula that is exact for polynomials up to the fourth
    degree.
    """
    assert len(x) < 6
    first, second = (_cofactors(x + t * dx) - _cofactors(x - t * dx) for t in (1, 2))
    return (8 * first - second) / 12


def _power(x: Any, n: int) -> Any:
    found = each(mp.mpf, np.eye(len(x)))
    base = inverse(x) if n < 0 else x
    for _ in range(abs(n)):
        found = found @ base
    return found


def _pseudoinverse(x: Any) -> Any:
    h = adjoint(x)
    return inverse(h @ x) @ h if x.shape[0] >= x.shape[1] else h @ inverse(x @ h)


def _solve(x1: Any, x2: Any) -> Any:
    return inverse(x1) @ x2


def _matrix(x: Any) -> Any:
    return mp.matrix(x.tolist())


def _array(x: Any) -> Any:
    return np.asarray(x.tolist(), dtype=object).reshape(x.rows, x.cols)


def _cholesky(x: Any) -> Any:
    return _array(mp.cholesky(_matrix(x)))


def _eigh(x: Any) -> Any:
    values, vectors = mp.eigh(_matrix((x + adjoint(x)) / 2))
    return _array(values)[:, 0], _array(vectors)


def _eig(x: Any) -> Any:
    """In NumPy's order."""
    values, vectors = mp.eig(_matrix(x))
    vectors = _array(vectors)
    guesses = np.linalg.eig(x.astype(np.complex128 if is_complex(x) else np.float64))[0]
    order = [np.argmin(np.abs(np.asarray(values, complex) - guess)) for guess in guesses]
    columns = [vectors[:, i] / _size(vectors[:, i]) for i in order]
    return np.asarray([mp.mpc(values[i]) for i in order]), each(mp.mpc, np.stack(columns, axis=-1))


def _size(x: Any) -> Any:
    return mp.sqrt(np.sum(each(lambda v: abs(v) ** 2, x)))


def _qr(x: Any, r: Any) -> Any:
    """By Gram and Schmidt, with the signs of the diagonal in float64."""
    k = min(x.shape)
    columns: list[Any] = []
    for j in range(k):
        v = x[:, j] - sum((q * np.sum(conj(q) * x[:, j]) for q in columns), 0 * x[:, j])
        columns.append(v / _size(v) * int(np.sign(r[j, j].real)))
    q = np.stack(columns, axis=-1)
    found = adjoint(q) @ x
    return q, np.where(np.tri(*found.shape, -1, dtype=bool), 0 * found, found)


def _svd(x: Any) -> Any:
    """The reduced one."""
    u, s, vh = map(_array, mp.svd(_matrix(x), full_matrices=False))
    return u, s[:, 0], vh


def _singular_factor(x: Any, ord: Any) -> Any:
    u, _, vh = _svd(x)
    if ord == "nuc":
        return u @ vh
    k = 0 if ord == 2 else -1
    return u[:, k, None] * vh[None, k, :]


# ----- norms -----


def _vector_norm(x: Any, axis: Any, keepdims: bool, ord: Any, _: Any) -> Any:
    sizes = each(abs, x)
    axis = tuple(range(x.ndim)) if axis is None else axis
    if ord in (INF, -INF):
        return np.asarray(
            (np.max if ord > 0 else np.min)(sizes, axis=axis, keepdims=keepdims), dtype=object
        )
    p = mp.mpf(ord)
    return each(
        lambda s: s ** (1 / p), total(each(lambda s: s**p if s else s, sizes), axis, keepdims)
    )


def _matrix_norm(x: Any, keepdims: bool, ord: Any, _: Any) -> Any:
    found = batched(lambda m: _norm_of(m, ord), 2)(x)
    return found[..., None, None] if keepdims else found


def _norm_of(x: Any, ord: Any) -> Any:
    sizes = each(abs, x)
    if ord == "fro":
        return mp.sqrt(np.sum(sizes * sizes))
    if ord in (1, -1, INF, -INF):
        return (max if ord > 0 else min)(np.sum(sizes, axis=0 if abs(ord) == 1 else 1))
    s = _svd(x)[1]
    return sum(s) if ord == "nuc" else max(s) if ord == 2 else min(s)


# ----- products and diagonals -----


def _cross(x1: Any, x2: Any, axis: int, _: Any) -> Any:
    a, b = (np.moveaxis(x, axis, -1) for x in np.broadcast_arrays(x1, x2))
    parts = [
        a[..., (i + 1) % 3] * b[..., (i + 2) % 3] - a[..., (i + 2) % 3] * b[..., (i + 1) % 3]
        for i in range(3)
    ]
    return np.moveaxis(np.stack(parts, axis=-1), -1, axis)


def _diagonal(x: Any, offset: int, _: Any) -> Any:
    return np.asarray(np.diagonal(x, offset, -2, -1), dtype=object)


def _solved(x1: Any, x2: Any, _: Any) -> Any:
    if x2.ndim == 1:
        return batched(_solve, 2, 1)(x1, x2)
    return batched(_solve, 2, 2)(x1, x2)


def _each_matrix(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, _: batched(f, 2)(x)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "linalg.inv": _each_matrix(inverse),
    "linalg.det": _each_matrix(determinant),
    "linalg.slogdet": _each_matrix(_slogdet),
    "adjugate": _each_matrix(_cofactors),
    "adjugate_tangent": lambda x, dx, _: batched(_adjugate_tangent, 2, 2)(x, dx),
    "linalg.matrix_power": lambda x, n, _: batched(lambda m: _power(m, n), 2)(x),
    "linalg.pinv": lambda x, rtol, _: batched(_pseudoinverse, 2)(x),
    "linalg.solve": _solved,
    "linalg.cholesky": lambda x, upper, _: batched(
        lambda m: adjoint(_cholesky(m)) if upper else _cholesky(m), 2
    )(x),
    "linalg.eigh": _each_matrix(_eigh),
    "linalg.eigvalsh": lambda x, _: batched(_eigh, 2)(x)[0],
    "linalg.eig": _each_matrix(_eig),
    "linalg.eigvals": lambda x, _: batched(_eig, 2)(x)[0],
    "linalg.qr": lambda x, mode, found: batched(_qr, 2, 2)(x, found[1]),
    "linalg.svd": lambda x, full_matrices, _: batched(_svd, 2)(x),
    "linalg.svdvals": lambda x, _: batched(_svd, 2)(x)[1],
    "singular_factor": lambda x, ord, _: batched(lambda m: _singular_factor(m, ord), 2)(x),
    "linalg.vector_norm": _vector_norm,
    "linalg.matrix_norm": _matrix_norm,
    "linalg.cross": _cross,
    "linalg.outer": lambda x1, x2, _: x1[:, None] * x2[None, :],
    "linalg.diagonal": _diagonal,
    "linalg.trace": lambda x, offset, dtype, _: total(_diagonal(x, offset, _), -1),
}
