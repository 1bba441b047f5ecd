"""Arrays of unknown sizes: sizes that Dask shows as nan until they are computed.

Operations that are exact for such arrays run; all others raise an error that names the operation.
Dask combines arrays of unknown sizes block by block. Elementwise operations and derivatives are
then exact, and so are sums, matrix products and masks. An operation that needs a size raises when
it is called, not when it is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial, wraps
from typing import Any

import dask.array as da

from multigrad.errors import BackendError
from multigrad.registry import OPS

FIX = (
    "Compute unknown sizes (nan) first: call x.array.compute_chunk_sizes() on the Tensor x that "
    "has them."
)

EXACT = frozenset(
    (
        "broadcast_to",
        "expand_dims",
        "flip",
        "getitem",
        "linalg.vector_norm",
        "log_softmax",
        "log_sum_exp",
        "matmul",
        "matrix_transpose",
        "max",
        "mean",
        "min",
        "moveaxis",
        "nanmax",
        "nanmin",
        "permute_dims",
        "refuse",
        "repeat",
        "reshape",
        "scatter_add",
        "softmax",
        "squeeze",
        "sum",
        "take",
        "tensordot",
        "unindex",
        "unique_all",
        "vecdot",
    )
)
"""Operations, besides elementwise ones, whose rules are exact or raise for unknown sizes."""


def any_in(*shapes: Iterable[Any]) -> bool:
    """Whether any size is unknown."""
    return any(n != n for shape in shapes for n in shape)


def same(shape: Iterable[Any], other: Iterable[Any]) -> bool:
    """Whether two shapes are equal as far as they are known."""
    shape, other = tuple(shape), tuple(other)
    return len(shape) == len(other) and all(
        n == m or (n != n and m != m) for n, m in zip(shape, other, strict=True)
    )


def _has_unknown(value: Any) -> bool:
    """Whether an array, a shape, or one of several has an unknown size."""
    if isinstance(value, (tuple, list)):
        return any(
            isinstance(v, float) and v != v if isinstance(v, (int, float)) else _has_unknown(v)
            for v in value
        )
    shape = getattr(value, "shape", None)
    return isinstance(shape, tuple) and any_in(shape)


def rule(xp: Any, name: str, vjp: Callable[..., Any]) -> Callable[..., Any]:
    """The derivative rule of an operation.

    For unknown sizes it is exact, or raises an error that names the operation.
    """
    exact = name in EXACT or OPS[name].batching == "elementwise"

    @wraps(vjp)
    def checked(xp: Any, g: Any, *saved: Any) -> Any:
        if not _has_unknown((g, *saved)):
            return vjp(xp, g, *saved)
        if not exact:
            raise BackendError(f"{name}: its gradient needs sizes of arrays. {FIX}")
        try:
            return vjp(xp, g, *saved)
        except BackendError as error:  # raised by a function that the rule calls
            raise BackendError(f"{name}: its gradient needs sizes of arrays. {FIX}") from error
        except Exception as error:
            raise BackendError(
                f"{name}: its gradient needs sizes of arrays ({error}). {FIX}"
            ) from error

    return checked


def function(xp: Any, name: str, forward: Callable[..., Any]) -> Callable[..., Any]:
    """The function of an operation.

    For unknown sizes it is exact, or raises an error that names the operation.
    """
    several = OPS[name].batching == "elementwise" and len(OPS[name].arrays) > 1

    @wraps(forward)
    def checked(*args: Any, **kwargs: Any) -> Any:
        try:
            return forward(*(_matching(name, args) if several else args), **kwargs)
        except BackendError:
            raise
        except Exception as error:
            if not any(map(_has_unknown, (*args, *kwargs.values()))):
                raise
            raise BackendError(
                f"{name} needs sizes of arrays "
                f"({str(error).partition(chr(10))[0].rstrip('.')}). {FIX}"
            ) from error

    return checked


# ----- elementwise operations on several arrays -----


def _matching(name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Check the arguments, so that none of unknown size is broadcast unnoticed."""
    arrays = {x.name: x for x in args if isinstance(x, da.Array)}
    unknown = len(arrays) > 1 and any(any_in(x.shape) for x in arrays.values())
    return _compared(name, args, list(arrays.values())) if unknown else args


def _compared(name: str, args: tuple[Any, ...], arrays: list[Any]) -> tuple[Any, ...]:
    """Add a check to one argument: its blocks must have the sizes of the others.

    The check runs when the argument is computed. A size of 1 does not broadcast there. This ensures
    that a gradient has the shape of its argument, since NumPy would repeat a block of one element
    beside a larger one.
    """
    ndim = max(x.ndim for x in arrays)
    axes = [
        a for a in range(-ndim, 0) if any(-a <= x.ndim and x.shape[a] != x.shape[a] for x in arrays)
    ]
    involved = {a: [x for x in arrays if -a <= x.ndim and x.shape[a] != 1] for a in axes}
    axes = [a for a in axes if len(involved[a]) > 1]
    if not axes:
        return args
    first = max((x for a in axes for x in involved[a]), key=lambda x: x.ndim)
    others = [x for x in arrays if x is not first and x.ndim <= first.ndim]
    pairs = [part for x in (first, *others) for part in (x, tuple(range(-x.ndim, 0)))]
    checked = da.blockwise(
        partial(_same_blocks, name, axes),
        tuple(range(-first.ndim, 0)),
        *pairs,
        dtype=first.dtype,
        meta=first._meta,
        align_arrays=False,
    )
    checked._chunks = first.chunks
    return tuple(checked if x is first else x for x in args)


def _same_blocks(name: str, axes: list[int], x: Any, *others: Any) -> Any:
    for y in others:
        for a in axes:
            if (
                -a <= y.ndim
                and y.shape[a] != x.shape[a]
                and (y.ndim < -a or y.shape[a] != 1 or x.shape[a] != 1)
            ):
                raise ValueError(
                    f"{name}: arrays of unknown sizes must have the same sizes block by block, but "
                    f"two have {x.shape} and {y.shape}. Compute them before they are broadcast: "
                    "x.array.compute_chunk_sizes()."
                )
    return x
