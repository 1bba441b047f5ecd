"""Operations that rules need and the standard lacks: segment sums, the adjoint of indexing.

Each has a default that uses only the standard, so a backend without its own form is complete but
slower. A backend's own form (`Backend.functions`) only has to support NumPy's meaning of a key. No
default branches on a value, so all defaults run under a trace, and on libraries without boolean
indexing or data-dependent shapes.

Costs of the defaults, for m values or index rows of k elements written into n rows:

    scatter_add               O(m k log m + (m + n) log m); a native scatter takes O(m k + n k)
    unindex, slices and ints  O(size of the result)
    unindex, a boolean mask   O(size of the result)
    unindex, integer arrays   as scatter_add
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from math import inf, nan, prod
from typing import Any

from ..errors import GradientError
from ..registry import About, elementwise, linear
from . import batching
from .keys import along, index_dtype, is_basic, leading_arrays, sole_mask, split_key


def _is_of(*kinds: str) -> Callable[[Any, Any], bool]:
    """Make a question about dtypes. Answers are cached, since rules ask in every product."""
    return lru_cache(maxsize=256)(lambda xp, dtype: bool(xp.isdtype(dtype, kinds)))


is_bool = _is_of("bool")
is_integral = _is_of("integral")
is_complex = _is_of("complex floating")
is_floating = _is_of("real floating", "complex floating")


@lru_cache(maxsize=256)
def is_narrow(xp: Any, dtype: Any) -> bool:
    """Whether `dtype` is float16, bfloat16 or similar.

    A large number of elements cannot be counted or be a divisor in such a dtype; in float32 it can.
    """
    return bool(xp.isdtype(dtype, "real floating")) and bool(xp.finfo(dtype).bits < 32)


def wide(xp: Any, x: Any) -> Any:
    """Convert an array of a narrow dtype to float32; return others unchanged.

    The engine converts the results of rules back to the argument's dtype.
    """
    return xp.astype(x, xp.float32) if is_narrow(xp, x.dtype) else x


def conj(xp: Any, x: Any) -> Any:
    """The conjugate of a complex array, or a real array itself."""
    return xp.conj(x) if is_complex(xp, x.dtype) else x


def alike(xp: Any, x: Any, like: Any) -> Any:
    """Convert a real array to complex numbers if `like` is complex, so that operators accept both.

    Libraries differ in the operators that accept both kinds.
    """
    if is_complex(xp, like.dtype) and not is_complex(xp, x.dtype):
        return xp.astype(x, like.dtype)
    return x


def imaginary(xp: Any, x: Any, dtype: Any) -> Any:
    """i x for a real array, in a complex dtype."""
    return xp.astype(x, dtype) * 1j


def unit(xp: Any, x: Any, r: Any) -> Any:
    """x / r, which is 0 to every order where r is 0."""
    return x / alike(xp, xp.where(r == 0, inf, r), x)


# ----- Refusals -----


def refuse(error: type[Exception], value: float, xp: Any, x: Any, bad: Any, message: str) -> Any:
    """The form of `refuse` and `known_index`: `xp.truth` says whether a value is known."""
    refused = xp.truth(xp.any(bad))
    if refused:
        raise error(message)
    return xp.where(bad, value, x) if refused is None else x


linear(
    "refuse(x, bad, /, message)",
    forward=partial(refuse, GradientError, nan),
    view="same",
    batching=batching.refusal("refuse"),
    doc="Return `x`; raise GradientError(message) if `bad` is true anywhere. Where values are not "
    "known (under a trace), the result is nan there instead.",
    x=lambda xp, g: g,
    about=About(checks=True),
)

# ----- Squares -----

elementwise(
    "difference_of_squares(x1, x2, /)",
    forward=lambda xp, x1, x2: (x1 - x2) * (x1 + x2),
    x1=lambda xp, x1: 2.0 * x1,
    x2=lambda xp, x2: -2.0 * x2,
    doc="x1**2 - x2**2 of each pair of elements, to full precision where they are almost equal.",
)

# ----- numbers that are not floats -----


class Number:
    """A number such as log(2): the nearest float, and a recipe for libraries with more digits.

    `recipe(xp, one)` computes it from a 1 by functions of the standard that Python's `math` also
    has.
    """

    __slots__ = ("recipe", "value")

    def __init__(self, recipe: Callable[[Any, Any], Any]) -> None:
        self.recipe = recipe
        self.value: float = recipe(math, 1.0)


LN2 = Number(lambda xp, one: xp.log(one + one))
LN10 = Number(lambda xp, one: xp.log(10 * one))
PI = Number(lambda xp, one: xp.acos(-one))
DEGREE = Number(lambda xp, one: xp.acos(-one) / 180)
RADIAN = Number(lambda xp, one: 180 / xp.acos(-one))

# For most libraries a float has enough digits. The backend of a library with more digits gives its
# own function: {"scaled": lambda x, by: x * by.recipe(xp, xp.ones((), dtype=x.dtype))}
linear(
    "scaled(x, /, by)",
    forward=lambda xp, x, by: x * by.value,
    batching="elementwise",
    x=lambda xp, g, by: xp.scaled(g, by),
    doc="Each element times a `Number`, with the precision of the library's arrays.",
)

# ----- Segment sums -----


def scatter_add(xp: Any, values: Any, indices: Any, n: int) -> Any:
    """The default `scatter_add`: sort by index, then add up each run of equal indices by doubling.

    After the step of width s, row i holds the sum of rows i to i+2s-1 of its run, so the first row
    of a run finally holds the whole sum. A prefix sum would be cheaper, but it loses digits and
    spreads one inf over all later segments. A one-hot product makes nan of 0 * inf.
    """
    m, rest = values.shape[0], values.shape[1:]
    if m == 0:
        return xp.zeros((n, *rest), dtype=values.dtype, device=xp.device_of(values))
    rows = xp.arange(n, device=xp.device_of(indices))
    indices = wrapped(xp, indices, n, rows.dtype)
    order = xp.argsort(indices, stable=True)
    indices = xp.take(indices, order, axis=0)
    sums = xp.take(xp.reshape(values, (m, prod(rest))), order, axis=0)
    step = 1
    while step < m:
        same = xp.expand_dims(indices[:-step] == indices[step:], axis=1)
        head = sums[:-step, ...] + xp.where(same, sums[step:, ...], xp.zeros_like(sums[step:, ...]))
        sums = xp.concat([head, sums[-step:, ...]], axis=0)
        step *= 2
    first = xp.searchsorted(indices, rows, side="left")
    first = xp.where(first < m, first, m - 1)
    present = xp.expand_dims(xp.take(indices, first, axis=0) == rows, axis=1)
    sums = xp.take(sums, first, axis=0)
    return xp.reshape(xp.where(present, sums, xp.zeros_like(sums)), (n, *rest))


def wrapped(xp: Any, indices: Any, n: int, dtype: Any) -> Any:
    """Convert `indices` into an axis of length n to nonnegative ones of `dtype`.

    A narrower dtype might not be able to hold n.
    """
    indices = xp.astype(indices, dtype, copy=False)
    return xp.where(indices < 0, indices + n, indices)


linear(
    "scatter_add(values, indices, /, n)",
    forward=scatter_add,
    batching=batching.scatter_add,
    doc="Add the rows `values[i]` into row `indices[i]` of n rows of zeros; indices are 1-d, in "
    "[-n, n), and may repeat.",
    values=lambda xp, g, indices: xp.take(g, indices, axis=0),
)


# ----- The adjoint of indexing -----


def unindex(xp: Any, values: Any, key: Any, shape: tuple[int, ...]) -> Any:
    if is_basic(key):
        return _unslice(xp, values, split_key(xp, key, len(shape)), shape)
    mask = sole_mask(xp, key)
    if mask is not None:
        rows = masked_rows(xp, mask, values)
        mask = xp.reshape(mask, mask.shape + (1,) * (len(shape) - len(mask.shape)))
        return xp.where(mask, rows, xp.zeros_like(rows))
    target, axes = linear_index(xp, key, shape, xp.device_of(values))
    rest = shape[axes:]
    rows = xp.reshape(values, (target.shape[0], *rest))
    return xp.reshape(xp.scatter_add(rows, target, prod(shape[:axes])), shape)


def _unslice(xp: Any, x: Any, key: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
    added = tuple(i for i, k in enumerate(k for k in key if not isinstance(k, int)) if k is None)
    if added:
        x = xp.squeeze(x, axis=added)
    for axis, (k, n) in enumerate(zip((k for k in key if k is not None), shape, strict=True)):
        if isinstance(k, int):
            x = xp.expand_dims(x, axis=axis)
            k = slice(k % n, k % n + 1)
        if k != slice(None):
            x = _unslice_axis(xp, x, k, n, axis)
    return x


def _unslice_axis(xp: Any, x: Any, key: slice, n: int, axis: int) -> Any:
    """Place `x` at the slice `key` of an axis of length n.

    It interleaves zeros for the step, and pads both ends.
    """
    places = range(*key.indices(n))
    if places.step < 0:
        x, places = xp.flip(x, axis=axis), places[::-1]
    if len(places) == 0 or len(places) == n:
        return x if len(places) else _zeros(xp, x, axis, n)
    step = places.step
    if step > 1 and len(places) > 1:
        spread = xp.stack([x, *[xp.zeros_like(x)] * (step - 1)], axis=axis + 1)
        x = xp.reshape(spread, (*x.shape[:axis], x.shape[axis] * step, *x.shape[axis + 1 :]))
        x = x[along(axis, 0, 1 - step)]
    ends = (_zeros(xp, x, axis, places[0]), x, _zeros(xp, x, axis, n - 1 - places[-1]))
    return xp.concat([part for part in ends if part.shape[axis]], axis=axis)


def _zeros(xp: Any, x: Any, axis: int, n: int) -> Any:
    return xp.zeros(
        (*x.shape[:axis], n, *x.shape[axis + 1 :]), dtype=x.dtype, device=xp.device_of(x)
    )


def masked_rows(xp: Any, mask: Any, rows: Any) -> Any:
    """Place the i-th row at the i-th true element of the mask, and any row elsewhere."""
    flat = xp.reshape(mask, (-1,))
    count = xp.cumulative_sum(xp.astype(flat, xp.int8), dtype=index_dtype(xp, xp.device_of(mask)))
    place = xp.where(flat, count - 1, xp.zeros_like(count))
    some = xp.concat([rows, _zeros(xp, rows, 0, 1)], axis=0)  # there may be no row
    return xp.reshape(xp.take(some, place, axis=0), mask.shape + rows.shape[1:])


def linear_index(xp: Any, key: Any, shape: tuple[int, ...], device: Any) -> tuple[Any, int]:
    """Convert a key with integer arrays into one 1-d index over its leading axes.

    Returns the index and the number of these axes. If arrays and integers come first and nothing
    else is restricted, the index selects whole rows. Any other key is applied to an array of
    element numbers, which is correct for every key that the library accepts.
    """
    lead = leading_arrays(xp, key, len(shape))
    if not lead:
        numbers = xp.reshape(xp.arange(prod(shape), device=device), shape)
        return xp.reshape(xp.getitem(numbers, key), (-1,)), len(shape)
    dtype = index_dtype(xp, device)
    total: Any = 0
    for k, n in zip(lead, shape, strict=False):
        total = total * n + (k % n if isinstance(k, int) else wrapped(xp, k, n, dtype))
    return xp.reshape(total, (-1,)), len(lead)


linear(
    "unindex(values, /, key, shape)",
    forward=unindex,
    batching=batching.unindex,
    doc="Return zeros of the given shape with `values` added at `key`: the adjoint of `x[key]`. "
    "Where the key repeats, values add up.",
    values=lambda xp, g, key: xp.getitem(g, key),
)
