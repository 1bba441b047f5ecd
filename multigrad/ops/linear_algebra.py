"""Products of linear algebra. The gradient of each operand saves only the other operand.

Complex gradients follow PyTorch: the gradient of `x1 @ x2` with respect to x2 is `x1^H @ g`. The
engine sums over batch axes along which one operand was broadcast. The rules do this sum only where
one product can do it: for a batch of matrices times one matrix (any linear layer), a gradient per
batch entry would otherwise be stored first.
"""

from __future__ import annotations

from typing import Any

from ..registry import About, linear, multilinear
from . import batching_linalg
from .kernels import conj

Shape = tuple[int, ...]

MATRICES = (
    "x1, x2: arrays of shapes (..., M, K) and (..., K, N), or vectors (K,), of numeric dtypes"
)


def matmul_x1_vjp(xp: Any, g: Any, x1_shape: Shape, x1_order: str | None, x2: Any) -> Any:
    """g @ x2^H, in the memory order of x1.

    For a vector or matrix times a batch, one product sums over the batch.
    """
    x2 = conj(xp, x2)
    ndim = len(x2.shape)
    if ndim == 1:
        return g[..., None] * x2
    if len(x1_shape) <= 2 < ndim:
        batch = tuple(range(ndim - 2))
        return xp.tensordot(g, x2, axes=((*batch, len(g.shape) - 1), (*batch, ndim - 1)))
    if len(x1_shape) == 1:
        return xp.matmul(x2, g)
    if x1_order == "F":
        return xp.matrix_transpose(xp.matmul(x2, xp.matrix_transpose(g)))
    return xp.matmul(g, xp.matrix_transpose(x2))


def matmul_x2_vjp(xp: Any, g: Any, x1: Any, x2_shape: Shape, x2_order: str | None) -> Any:
    """x1^H @ g, in the memory order of x2.

    For a batch times a vector or matrix, one product sums over the batch.
    """
    x1 = conj(xp, x1)
    ndim = len(x1.shape)
    if ndim == 1:
        return x1 * g if len(x2_shape) == 1 else x1[:, None] * g[..., None, :]
    if len(x2_shape) <= 2 < ndim:
        rows = tuple(range(ndim - 1))
        return xp.tensordot(x1, g, axes=(rows, rows))
    if x2_order == "F":
        return xp.matrix_transpose(xp.matmul(xp.matrix_transpose(g), x1))
    return xp.matmul(xp.matrix_transpose(x1), g)


def contracted(axes: Any, ndim1: int, ndim2: int) -> tuple[Shape, Shape, Shape, Shape]:
    """The axes that tensordot contracts, in matching order, and the remaining axes."""
    if hasattr(axes, "__index__"):  # NumPy's integers too
        axes = range(ndim1 - int(axes), ndim1), range(int(axes))
    sum1 = tuple(a % ndim1 for a in axes[0])
    sum2 = tuple(a % ndim2 for a in axes[1])
    return (
        sum1,
        sum2,
        tuple(a for a in range(ndim1) if a not in sum1),
        tuple(a for a in range(ndim2) if a not in sum2),
    )


def tensordot_x1_vjp(xp: Any, g: Any, x1_shape: Shape, x2: Any, axes: Any) -> Any:
    """Contract g with conj(x2) over the axes from x2, then permute the result to the axes of x1."""
    sum1, sum2, kept1, kept2 = contracted(axes, len(x1_shape), len(x2.shape))
    result = xp.tensordot(g, conj(xp, x2), axes=(tuple(range(len(kept1), len(g.shape))), kept2))
    place = {a: i for i, a in enumerate(kept1)}
    place |= {a1: len(kept1) + sorted(sum2).index(a2) for a1, a2 in zip(sum1, sum2, strict=True)}
    return _ordered(xp, result, place)


def tensordot_x2_vjp(xp: Any, g: Any, x1: Any, x2_shape: Shape, axes: Any) -> Any:
    """Contract conj(x1) with g over the axes from x1, then permute the result to the axes of x2."""
    sum1, sum2, kept1, kept2 = contracted(axes, len(x1.shape), len(x2_shape))
    result = xp.tensordot(conj(xp, x1), g, axes=(kept1, tuple(range(len(kept1)))))
    place = {a: len(sum1) + i for i, a in enumerate(kept2)}
    place |= {a2: sorted(sum1).index(a1) for a1, a2 in zip(sum1, sum2, strict=True)}
    return _ordered(xp, result, place)


def _ordered(xp: Any, x: Any, place: dict[int, int]) -> Any:
    order = tuple(place[a] for a in range(len(place)))
    return x if order == tuple(range(len(order))) else xp.permute_dims(x, order)


# ----- the operations -----

# fmt: off
linear("matrix_transpose(x, /)", batching="leading", view=True, doc="Exchange the last two axes.",
       x=lambda xp, g: xp.matrix_transpose(g), forward={"*": lambda xp, x: xp.moveaxis(x, -1, -2)},
       about=About(example="A"))
multilinear("matmul(x1, x2, /)", batching=batching_linalg.matmul, operator="matmul",
            doc="The matrix product, over the last two axes.", x1=matmul_x1_vjp, x2=matmul_x2_vjp,
            about=About(gradient={"x1": "g @ matrix_transpose(conj(x2))",
                                  "x2": "matrix_transpose(conj(x1)) @ g"},
                        example="A, mg.asarray([1.0, 1.0])", arrays=MATRICES))
multilinear("tensordot(x1, x2, /, *, axes=2)", batching=batching_linalg.tensordot,
            doc="The sum of products over pairs of axes.", x1=tensordot_x1_vjp, x2=tensordot_x2_vjp,
            about=About(gradient="for each array: g contracted with the conjugate of the other "
                                 "array",
                        example="A, A, axes=2", positional=("axes",)))
# The standard allows only a negative axis: it is the same axis of both operands and of their
# broadcast shape.
multilinear("vecdot(x1, x2, /, *, axis=-1)", batching=batching_linalg.vecdot,
            doc="The sum of conj(x1) * x2 along an axis.",
            forward={"*": lambda xp, x1, x2, axis: xp.sum(conj(xp, x1) * x2, axis=axis)},
            x1=lambda xp, g, x2, axis: xp.expand_dims(conj(xp, g), axis=axis) * x2,
            x2=lambda xp, g, x1, axis: xp.expand_dims(g, axis=axis) * x1,
            about=About(gradient="for x1: conj(g) x2; for x2: g x1, along the axis",
                        example="P, Q"))
