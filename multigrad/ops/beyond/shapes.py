"""Arrangements of axes under NumPy's names.

These are transpose, swapaxes, ravel, flatten, atleast_1d, atleast_2d, and diagonals.
"""

from __future__ import annotations

from functools import partial
from operator import index
from typing import Any

from ...registry import About, composite
from ..keys import place
from ..linalg import diagonal_of


def among_zeros(xp: Any, x: Any, key: Any, shape: tuple[int, ...]) -> Any:
    """Put `x` at `key` in an array of the given shape, with False or 0 elsewhere."""
    if xp.isdtype(x.dtype, "bool"):
        return xp.unindex(xp.astype(x, xp.int8), key, shape) != 0
    return xp.unindex(x, key, shape)


def transpose(xp: Any, a: Any, axes: Any) -> Any:
    ndim = len(a.shape)
    if axes is None:
        reverse = tuple(range(ndim - 1, -1, -1))
        return xp.matrix_transpose(a) if ndim == 2 else xp.permute_dims(a, reverse)
    axes = axes if isinstance(axes, (tuple, list, range)) else (axes,)
    order = tuple(place("transpose", "axis", axis, ndim) for axis in axes)
    if sorted(order) != list(range(ndim)):
        raise ValueError(
            f"transpose: the axes {axes!r} are not a permutation of the {ndim} axes of the array. "
            "To exchange two axes, call swapaxes."
        )
    return xp.permute_dims(a, order)


def swapaxes(xp: Any, a: Any, axis1: Any, axis2: Any) -> Any:
    ndim = len(a.shape)
    one, two = place("swapaxes", "axis1", axis1, ndim), place("swapaxes", "axis2", axis2, ndim)
    order = list(range(ndim))
    order[one], order[two] = two, one
    return xp.permute_dims(a, tuple(order))


def ravel(xp: Any, a: Any, order: Any) -> Any:
    """A view only of contiguous memory, where a reshape is a view of any evenly spaced elements."""
    a = _ordered(xp, "ravel", a, order)
    return xp.reshape(a, (-1,), copy=None if xp.is_contiguous(a) else True)


def flatten(xp: Any, a: Any, order: Any) -> Any:
    a = _ordered(xp, "flatten", a, order)
    return xp.reshape(a, (-1,), copy=True)


def _ordered(xp: Any, name: str, a: Any, order: Any) -> Any:
    """The array whose elements in row-major order are those of `a` in the given order."""
    if order not in ("C", "F"):
        more = (
            "it depends on the memory layout, which array API arrays do not report"
            if order in ("A", "K")
            else "to flatten some axes only, call reshape"
            if isinstance(order, int)
            else "this order does not exist"
        )
        raise ValueError(
            f"{name}: order is {order!r}: {more}. It may be 'C', row by row, or 'F', column by "
            "column."
        )
    if order == "F" and len(a.shape) > 1:
        return xp.permute_dims(a, tuple(range(len(a.shape) - 1, -1, -1)))
    return a


def atleast(xp: Any, x: Any, ndim: int) -> Any:
    """Add axes of length 1 in front, up to `ndim` axes; a Python scalar becomes an array."""
    if not hasattr(x, "shape"):
        x = xp.asarray(x)
    missing = ndim - len(x.shape)
    return x if missing <= 0 else xp.reshape(x, (*(1,) * missing, *x.shape))


def each_atleast(ndim: int, xp: Any, arrays: Any) -> Any:
    out = tuple(atleast(xp, x, ndim) for x in arrays)
    return out[0] if len(out) == 1 else out


# ----- Diagonals -----


def _diagonal_last(xp: Any, name: str, a: Any, axis1: Any, axis2: Any) -> Any:
    """Move the axes of the diagonal to the end."""
    ndim = len(a.shape)
    if ndim < 2:
        raise ValueError(f"{name}: a diagonal needs two axes; the shape is {tuple(a.shape)}.")
    one, two = place(name, "axis1", axis1, ndim), place(name, "axis2", axis2, ndim)
    if one == two:
        raise ValueError(f"{name}: axis1 and axis2 are the same, {one}.")
    if (one, two) == (ndim - 2, ndim - 1):
        return a
    return xp.matrix_transpose(a) if ndim == 2 else xp.moveaxis(a, (one, two), (ndim - 2, ndim - 1))


def diagonal(xp: Any, a: Any, offset: Any, axis1: Any, axis2: Any) -> Any:
    return xp.linalg.diagonal(_diagonal_last(xp, "diagonal", a, axis1, axis2), offset=index(offset))


def trace(xp: Any, a: Any, offset: Any, axis1: Any, axis2: Any, dtype: Any) -> Any:
    return xp.linalg.trace(
        _diagonal_last(xp, "trace", a, axis1, axis2), offset=index(offset), dtype=dtype
    )


def diag(xp: Any, v: Any, k: Any) -> Any:
    k = index(k)
    if len(v.shape) == 2:
        return xp.linalg.diagonal(v, offset=k)
    if len(v.shape) != 1:
        raise ValueError(
            f"diag: the array must have one axis or two; its shape is {tuple(v.shape)}."
        )
    n = v.shape[0] + abs(k)
    _, key = diagonal_of((n, n), k)
    return xp.reshape(among_zeros(xp, v, key, (n * n,)), (n, n))


# fmt: off
composite("transpose(a: array, axes=None)", transpose,
          doc="The axes in reverse order, or in the order of `axes`. Same as numpy.transpose.",
          about=About(example="A"))
composite("swapaxes(a: array, axis1, axis2)", swapaxes,
          doc="The array with two axes exchanged. Same as numpy.swapaxes.",
          about=About(gradient="g with the two axes exchanged again", example="A, 0, 1",
                      method=True))
composite("ravel(a: array, order='C')", ravel,
          doc="All elements along one axis, in row-major or column-major ('F') order. As "
              "numpy.ravel.",
          about=About(example="A", method=True))
composite("flatten(a: array, order='C')", flatten,
          doc="A copy of all elements along one axis. Same as numpy.ndarray.flatten.",
          about=About(example="A", method=True))
for _n, _what in ((1, "one axis"), (2, "two axes")):
    composite(f"atleast_{_n}d(*arrays)", partial(each_atleast, _n),
              doc=f"Arrays with at least {_what}; several arrays give a tuple. Same as "
                  f"numpy.atleast_{_n}d.",
              about=About(example="mg.asarray(1.0)"))
composite("diagonal(a: array, offset=0, axis1=0, axis2=1)", diagonal,
          doc="A diagonal of the matrices in two axes, along a new last axis. Same as "
              "numpy.diagonal, but a copy where the library copies.",
          about=About(example="A", method=True))
composite("trace(a: array, offset=0, axis1=0, axis2=1, dtype=None)", trace,
          doc="The sum of a diagonal of the matrices in two axes. Same as numpy.trace.",
          about=About(example="A", method=True))
composite("diag(v: array, k=0)", diag,
          doc="A matrix with a vector on its k-th diagonal, or the k-th diagonal of a matrix. As "
              "numpy.diag.",
          about=About(example="P", method=True))
