"""Batching rules of products, linear systems, and matrix functions with a tolerance.

An array that is the same for all examples is used once. The others supply the rows or columns of a
single product or system.
"""

from __future__ import annotations

from math import prod
from typing import Any

from ..registry import behind_batch
from .batching import aligned, padded, reduced, whole


def matmul(xp: Any, x1: Any, x2: Any, batched: Any) -> Any:
    n1, n2 = len(x1.shape) - 1, len(x2.shape) - 1
    if n1 == 0 or n2 == 0:
        raise ValueError(
            "matmul: both operands must have at least one dimension; their shapes are "
            f"{tuple(x1.shape[1:])} and {tuple(x2.shape[1:])}"
        )
    if not batched["x2"] and n2 <= 2:
        return _rows_times(xp, x1, x2[0, ...])
    if n2 == 1:
        if not batched["x1"] and n1 == 2:  # one matrix and many vectors
            return xp.matmul(x2, xp.matrix_transpose(x1[0, ...]))
        if n1 == 1:
            return xp.matmul(x1[:, None, :], x2[:, :, None])[:, 0, 0]
        return xp.matmul(x1, padded(xp, x2[..., None], n1) if n1 > 2 else x2[..., None])[..., 0]
    if n1 == 1:
        return xp.matmul(padded(xp, x1[:, None, :], n2), x2)[..., 0, :]
    x1, x2 = aligned(xp, x1, x2)
    return xp.matmul(x1, x2)


def _rows_times(xp: Any, x1: Any, x2: Any) -> Any:
    """Multiply all rows of a stack of matrices by one matrix or vector."""
    if len(x1.shape) <= 2:
        return xp.matmul(x1, x2)
    product = xp.matmul(xp.reshape(x1, (prod(x1.shape[:-1]), x1.shape[-1])), x2)
    return xp.reshape(product, (*x1.shape[:-1], *x2.shape[1:]))


def vecdot(xp: Any, x1: Any, x2: Any, axis: int) -> Any:
    x1, x2, at = _along_axis(xp, x1, x2, axis)
    return xp.vecdot(x1, x2, axis=at)


def _along_axis(xp: Any, x1: Any, x2: Any, axis: int) -> tuple[Any, Any, int]:
    """Align both operands at their last axes, and count `axis` from the front.

    Counted from the front, it has a different number in each operand.
    """
    # raises if there is no such axis
    places = [behind_batch(axis, len(x.shape) - 1) for x in (x1, x2)]
    if axis >= 0:
        x1, x2 = (xp.moveaxis(x, place, -1) for x, place in zip((x1, x2), places, strict=True))
    return *aligned(xp, x1, x2), axis if axis < 0 else -1


def tensordot(xp: Any, x1: Any, x2: Any, axes: Any) -> Any:
    """One matrix product: the remaining axes become its rows or columns."""
    n1, n2 = len(x1.shape) - 1, len(x2.shape) - 1
    if hasattr(axes, "__index__"):
        axes = range(n1 - int(axes), n1), range(int(axes))
    sum1, sum2 = behind_batch(tuple(axes[0]), n1), behind_batch(tuple(axes[1]), n2)
    if [x1.shape[a] for a in sum1] != [x2.shape[a] for a in sum2]:
        raise ValueError(
            "tensordot: the axes to sum over have different lengths in shapes "
            f"{tuple(x1.shape[1:])} and {tuple(x2.shape[1:])}"
        )
    kept1 = tuple(a for a in range(1, n1 + 1) if a not in sum1)
    kept2 = tuple(a for a in range(1, n2 + 1) if a not in sum2)
    rows, columns = tuple(x1.shape[a] for a in kept1), tuple(x2.shape[a] for a in kept2)
    terms = prod(x1.shape[a] for a in sum1)
    left = xp.reshape(xp.permute_dims(x1, (0, *kept1, *sum1)), (x1.shape[0], prod(rows), terms))
    right = xp.reshape(xp.permute_dims(x2, (0, *sum2, *kept2)), (x2.shape[0], terms, prod(columns)))
    product = _rows_times(xp, left, right[0, ...]) if x2.shape[0] == 1 else xp.matmul(left, right)
    return xp.reshape(product, (product.shape[0], *rows, *columns))


def cross(xp: Any, x1: Any, x2: Any, axis: int) -> Any:
    x1, x2, at = _along_axis(xp, x1, x2, axis)
    product = xp.linalg.cross(x1, x2, axis=at)
    return xp.moveaxis(product, -1, axis + 1) if axis >= 0 else product


def outer(xp: Any, x1: Any, x2: Any) -> Any:
    if len(x1.shape) != 2 or len(x2.shape) != 2:
        raise ValueError(
            "linalg.outer: both operands must have one dimension; their shapes are "
            f"{tuple(x1.shape[1:])} and {tuple(x2.shape[1:])}."
        )
    return x1[:, :, None] * x2[:, None, :]


def solve(xp: Any, x1: Any, x2: Any, batched: Any) -> Any:
    n1, n2 = len(x1.shape) - 1, len(x2.shape) - 1
    _matrices("linalg.solve", x1)
    if not batched["x1"] and n1 == 2 and n2 <= 2:  # one factorization for all examples
        if n2 == 1:
            return xp.matrix_transpose(xp.linalg.solve(x1[0, ...], xp.matrix_transpose(x2)))
        size, m, k = x2.shape
        columns = xp.reshape(xp.permute_dims(x2, (1, 0, 2)), (m, size * k))
        return xp.permute_dims(
            xp.reshape(xp.linalg.solve(x1[0, ...], columns), (m, size, k)), (1, 0, 2)
        )
    if n2 == 1:
        return xp.linalg.solve(x1, padded(xp, x2[..., None], n1))[..., 0]
    x1, x2 = aligned(xp, x1, x2)
    return xp.linalg.solve(x1, x2)


def _matrices(name: str, x: Any) -> None:
    if len(x.shape) < 3:
        raise ValueError(
            f"{name}: expected matrices, but inside vmap got an array of shape {tuple(x.shape[1:])}"
        )


def with_tolerance(function: str) -> Any:
    """Make the rule of linalg.pinv and linalg.matrix_rank: each matrix has its own tolerance."""

    def rule(xp: Any, x: Any, rtol: Any, size: int) -> Any:
        _matrices(f"linalg.{function}", x)
        if hasattr(rtol, "shape"):
            rtol = padded(xp, rtol, len(x.shape) - 3)
            x = whole(xp, x, size)
        return getattr(xp.linalg, function)(x, rtol=rtol)

    return rule


def adjugate_tangent(xp: Any, x: Any, dx: Any, size: int) -> Any:
    x, dx = aligned(xp, x, dx)
    # for small matrices the largest singular value depends on one matrix alone
    return xp.adjugate_tangent(whole(xp, x, size), whole(xp, dx, size))


def vector_norm(xp: Any, x: Any, axis: Any, keepdims: bool, ord: Any) -> Any:
    return reduced(xp, xp.linalg.vector_norm, x, axis, keepdims, ord=ord)
