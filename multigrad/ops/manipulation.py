"""Manipulation functions: the same elements in another arrangement.

All of them are linear, and none saves an array.
"""

from __future__ import annotations

from math import prod
from typing import Any

from ..registry import About, linear, nondifferentiable
from . import batching
from .keys import along, place

Shape = tuple[int, ...]


def broadcast_shapes(xp: Any, *shapes: Shape) -> Shape:
    """The form for libraries without the function.

    Axes are aligned at the end, and length 1 broadcasts.
    """
    ndim = max(map(len, shapes), default=0)
    lengths = [1] * ndim
    for shape in shapes:
        for i, n in enumerate(shape, ndim - len(shape)):
            if n != 1 and lengths[i] not in (1, n):
                raise ValueError(
                    f"broadcast_shapes: the shapes {', '.join(map(str, shapes))} do not fit "
                    "together"
                )
            lengths[i] = lengths[i] if n == 1 else n
    return tuple(lengths)


# ----- Shapes -----


def broadcast_to_vjp(xp: Any, g: Any, x_shape: Shape) -> Any:
    """Sum over the axes along which x was broadcast."""
    extra = len(g.shape) - len(x_shape)
    axes = tuple(i for i, n in enumerate(g.shape) if i < extra or x_shape[i - extra] != n)
    return xp.reshape(xp.sum(g, axis=axes, dtype=g.dtype), x_shape) if axes else g


# ----- Orders of axes and elements -----


def permute_dims_vjp(xp: Any, g: Any, axes: Shape) -> Any:
    """Move each axis back to its original position."""
    inverse = [0] * len(axes)
    for i, axis in enumerate(axes):
        inverse[axis] = i  # negative axes count from the end here as well
    return xp.permute_dims(g, tuple(inverse))


def roll_vjp(xp: Any, g: Any, shift: int | Shape, axis: int | Shape | None) -> Any:
    back = tuple(-s for s in shift) if isinstance(shift, (tuple, list)) else -shift
    return xp.roll(g, back, axis=axis)


def moveaxis(xp: Any, x: Any, source: int | Shape, destination: int | Shape) -> Any:
    ndim = len(x.shape)
    origins, targets = (
        [place("moveaxis", what, a, ndim) for a in ((axes,) if isinstance(axes, int) else axes)]
        for what, axes in (("source", source), ("destination", destination))
    )
    order = [a for a in range(ndim) if a not in origins]
    for target, origin in sorted(zip(targets, origins, strict=True)):
        order.insert(target, origin)
    return xp.permute_dims(x, tuple(order))


# ----- Joining and splitting -----


def concat_vjp(
    xp: Any, g: Any, axis: int | None, arrays_shape: tuple[Shape, ...], needs: tuple[bool, ...]
) -> list[Any]:
    """Split the gradient where the arrays were joined."""
    if axis is not None:
        axis %= len(g.shape)
    lengths = [prod(shape) if axis is None else shape[axis] for shape in arrays_shape]
    parts: list[Any] = []
    start = 0
    for shape, length, need in zip(arrays_shape, lengths, needs, strict=True):
        part = g[along(axis or 0, start, start + length)] if need else None
        parts.append(xp.reshape(part, shape) if need and axis is None else part)
        start += length
    return parts


def unstack_vjp(xp: Any, g: tuple[Any, ...], axis: int) -> Any:
    """Stack the gradients of the parts; the gradient of an unused part is zero."""
    zero = xp.zeros_like(next(part for part in g if part is not None))
    return xp.stack([zero if part is None else part for part in g], axis=axis)


def unstack(xp: Any, x: Any, axis: int) -> tuple[Any, ...]:
    axis = place("unstack", "axis", axis, len(x.shape))
    return tuple(x[(slice(None),) * axis + (i, ...)] for i in range(x.shape[axis]))


# ----- Repeating -----


def repeat_vjp(
    xp: Any, g: Any, repeats: Any, axis: int | None, x_shape: Shape, x_device: Any
) -> Any:
    """Sum the copies of each element: blocks of equal length, or segments of any length.

    A scalar `repeats` need not be known: it is the quotient of the lengths.
    """
    shape = (prod(x_shape),) if axis is None or not x_shape else x_shape
    axis = 0 if axis is None else axis % len(shape)
    before, n, after = shape[:axis], shape[axis], shape[axis + 1 :]
    if isinstance(repeats, int) or prod(repeats.shape) == 1:
        blocks = (*before, n, g.shape[axis] // n if n else 0, *after)
        total = xp.sum(xp.reshape(g, blocks), axis=axis + 1, dtype=g.dtype)
    else:
        source = xp.repeat(xp.arange(n, device=x_device), repeats)
        total = xp.moveaxis(xp.scatter_add(xp.moveaxis(g, axis, 0), source, n), 0, axis)
    return xp.reshape(total, x_shape)


def _copies(repetitions: Shape, shape: Shape) -> Shape:
    """For each axis the number of its copies, then its length."""
    ndim = max(len(shape), len(repetitions))
    shape = (1,) * (ndim - len(shape)) + tuple(shape)
    copies = (1,) * (ndim - len(repetitions)) + tuple(repetitions)
    return tuple(n for pair in zip(copies, shape, strict=True) for n in pair)


def tile_vjp(xp: Any, g: Any, repetitions: Shape, x_shape: Shape) -> Any:
    """Sum the copies: each repetition becomes an axis in front of the axis that it repeats."""
    pairs = _copies(repetitions, x_shape)
    axes = tuple(range(0, len(pairs), 2))
    return xp.reshape(xp.sum(xp.reshape(g, pairs), axis=axes, dtype=g.dtype), x_shape)


def meshgrid_vjp(
    xp: Any,
    g: tuple[Any, ...],
    indexing: str,
    arrays_shape: tuple[Shape, ...],
    needs: tuple[bool, ...],
) -> list[Any]:
    """Sum each coordinate array over all axes but its own.

    With indexing="xy" the first two axes are exchanged.
    """
    order = list(range(len(g)))
    if indexing == "xy" and len(g) > 1:
        order[:2] = 1, 0
    sums = []
    for part, axis, shape, need in zip(g, order, arrays_shape, needs, strict=True):
        if need and part is not None:
            axes = tuple(a for a in order if a != axis)
            part = xp.reshape(xp.sum(part, axis=axes, dtype=part.dtype), shape)
        sums.append(part if need else None)
    return sums


def repeat(xp: Any, x: Any, repeats: Any, axis: int | None) -> Any:
    """The form for libraries without the function.

    An element gets a repeated axis, or its index is the number of elements that end before it.
    """
    if axis is None:
        x, axis = xp.reshape(x, (-1,)), 0
    axis = place("repeat", "axis", axis, len(x.shape))
    before, n, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    if isinstance(repeats, int):
        x = xp.reshape(x, (*before, n, 1, *after))
        copies = xp.broadcast_to(x, (*before, n, repeats, *after))
        return xp.reshape(copies, (*before, n * repeats, *after))
    ends = xp.cumulative_sum(xp.broadcast_to(repeats, (n,)))
    places = xp.arange(int(ends[-1]) if n else 0, dtype=ends.dtype, device=xp.device_of(ends))
    return xp.take(x, xp.searchsorted(ends, places, side="right"), axis=axis)


def tile(xp: Any, x: Any, repetitions: Shape) -> Any:
    pairs = _copies(repetitions, x.shape)
    x = xp.reshape(x, tuple(m for n in pairs[1::2] for m in (1, n)))
    shape = tuple(c * n for c, n in zip(pairs[::2], pairs[1::2], strict=True))
    return xp.reshape(xp.broadcast_to(x, pairs), shape)


# ----- the operations -----

# fmt: off
nondifferentiable("broadcast_shapes(*shapes: plain)", forward={"*": broadcast_shapes},
                  doc="The shape that arrays of the given shapes broadcast to.",
                  about=About(example="(2, 1), (3,)"))
linear("broadcast_arrays(*arrays)", batching=batching.broadcast_arrays, outputs=None, view=True,
       materialize=False, doc="Broadcast arrays against each other.", arrays=lambda xp, g: list(g),
       about=About(gradient="for each array: its cotangent, summed over the broadcast axes",
                   example="P, mg.ones((2, 1))"))
linear("broadcast_to(x, /, shape)", batching=batching.broadcast_to, view=True,
       doc="Broadcast an array to a shape.", x=broadcast_to_vjp,
       about=About(gradient="g, summed over the broadcast axes", example="P, (2, 2)"))
linear("reshape(x, /, shape, *, copy=None)", view="layout", batching=batching.reshape,
       doc="The same elements in another shape, in row-major order.",
       x=lambda xp, g, x_shape: xp.reshape(g, x_shape),
       about=About(example="mg.arange(4), (2, 2)"))
linear("expand_dims(x, /, axis)", batching=batching.expand_dims, view=True,
       doc="Insert axes of length 1.", x=lambda xp, g, x_shape: xp.reshape(g, x_shape),
       about=About(gradient={"x": "squeeze(g, axis=axis)"}, example="P, axis=0"))
linear("squeeze(x, /, axis)", batching="axis", view=True, doc="Remove axes of length 1.",
       x=lambda xp, g, x_shape: xp.reshape(g, x_shape),
       about=About(example="mg.asarray([[1.0, 2.0]]), axis=0"))
linear("permute_dims(x, /, axes)", batching=batching.permute_dims, view=True,
       doc="Permute the axes.", x=permute_dims_vjp,
       about=About(gradient="g with its axes in the original order", example="A, (1, 0)"))
linear("moveaxis(x, source: plain, destination: plain, /)", view=True, batching=batching.moveaxis,
       forward={"*": moveaxis}, doc="Move axes to other positions; the other axes keep their "
                                    "order.",
       x=lambda xp, g, source, destination: xp.moveaxis(g, destination, source),
       about=About(example="A, 0, 1"))
linear("flip(x, /, *, axis=None)", batching="axis", view=True,
       doc="Reverse the order of the elements along axes.",
       x=lambda xp, g, axis: xp.flip(g, axis=axis),
       about=About(example="mg.asarray([1.0, 2.0, 3.0])"))
linear("roll(x, /, shift, *, axis=None)", batching=batching.roll,
       doc="Roll the elements along axes; elements that leave at one end enter at the other.",
       x=roll_vjp,
       about=About(gradient={"x": "roll(g, -shift, axis=axis)"},
                   example="mg.asarray([1.0, 2.0, 3.0]), 1"))
linear("tril(x, /, *, k=0)", batching="leading",
       doc="The lower triangle of each matrix, on and below the k-th diagonal.",
       x=lambda xp, g, k: xp.tril(g, k=k),
       about=About(example="A"))
linear("triu(x, /, *, k=0)", batching="leading",
       doc="The upper triangle of each matrix, on and above the k-th diagonal.",
       x=lambda xp, g, k: xp.triu(g, k=k),
       about=About(example="A"))
linear("concat(arrays: arrays, /, *, axis=0)",
       doc="Join arrays along an axis; with axis=None, arrays are flattened first.",
       batching=batching.concat, arrays=concat_vjp,
       about=About(gradient="for each array: its part of g", example="[P, Q]"))
linear("stack(arrays: arrays, /, *, axis=0)", batching=batching.stack,
       doc="Join arrays along a new axis.",
       arrays=lambda xp, g, axis, needs: [
           part if need else None
           for part, need in zip(xp.unstack(g, axis=axis), needs, strict=True)
       ],
       about=About(gradient="for each array: its part of g", example="[P, Q]"))
linear("unstack(x, /, *, axis=0)", outputs=None, view=True, batching="axis", materialize=False,
       doc="Split an array into its parts along an axis.", x=unstack_vjp, forward={"*": unstack},
       about=About(gradient="the cotangents of the parts, stacked", example="A"))
linear("repeat(x, repeats, /, *, axis=None)", batching=batching.repeat, forward={"*": repeat},
       doc="Repeat each element; `repeats` is one number, or a number for each element.",
       x=repeat_vjp,
       about=About(gradient="g, summed over the copies of each element", example="P, 2",
                   sized_by_values=True))
linear("tile(x, repetitions: plain, /)", batching=batching.tile, forward={"*": tile},
       doc="Repeat the whole array along its axes.", x=tile_vjp,
       about=About(gradient="g, summed over the copies", example="P, (2,)"))
linear("meshgrid(*arrays, indexing='xy')", outputs=None, batching=batching.meshgrid,
       materialize=False, doc="The coordinate arrays of the grid spanned by 1-d arrays.",
       arrays=meshgrid_vjp,
       about=About(example="P, Q"))
