"""Functions along an axis under NumPy's names: cumsum, cumprod, extrema, sliding windows."""

from __future__ import annotations

from functools import partial
from operator import index
from typing import Any

from ...registry import About, composite, nondifferentiable
from ..keys import index_dtype, place
from ..statistical import running
from .common import without_nan


def scan(standard: str, nan: float | None, xp: Any, a: Any, axis: Any, dtype: Any) -> Any:
    """Compute a scan of the standard as NumPy does; a number `nan` stands for each nan."""
    if axis is None:
        a, axis = xp.reshape(a, (-1,)), 0
    a = a if nan is None else without_nan(xp, a, nan)
    return getattr(xp, standard)(a, axis=axis, dtype=dtype)


def running_places(xp: Any, x: Any, axis: int, largest: bool) -> Any:
    x = xp.astype(x, xp.int8) if xp.isdtype(x.dtype, "bool") else x
    axis, device = place("running_places", "axis", axis, len(x.shape)), xp.device_of(x)
    best = running(xp, x, xp.maximum if largest else xp.minimum, axis)
    places = xp.arange(x.shape[axis], dtype=index_dtype(xp, device), device=device)
    places = xp.reshape(places, (-1,) + (1,) * (len(x.shape) - 1 - axis))
    return running(xp, xp.where((x == best) | (x != x), places, 0), xp.maximum, axis)


def sliding_window_view(xp: Any, x: Any, window_shape: Any, axis: Any) -> Any:
    name = "sliding_window_view"
    windows = _integers(window_shape)
    ndim = len(x.shape)
    axes = tuple(range(ndim)) if axis is None else _integers(axis)
    if len(windows) != len(axes):
        raise ValueError(f"{name}: window_shape has {len(windows)} lengths for {len(axes)} axes.")
    if any(n < 0 for n in windows):
        raise ValueError(f"{name}: window_shape cannot contain negative values: {windows}.")
    for a, n in zip(axes, windows, strict=True):
        x = _windows(xp, name, x, place(name, "axis", a, ndim), n)
    return x


def _integers(numbers: Any) -> tuple[int, ...]:
    several = isinstance(numbers, (tuple, list, range))
    return tuple(index(n) for n in (numbers if several else (numbers,)))


def _windows(xp: Any, name: str, x: Any, axis: int, n: int) -> Any:
    """The windows of length n along one axis; their elements become the last axis."""
    length = x.shape[axis]
    if n > length:
        raise ValueError(
            f"{name}: a window of {n} elements is longer than axis {axis}, which has {length}."
        )
    count, device = length - n + 1, xp.device_of(x)
    start = xp.arange(count, device=device)
    places = xp.reshape(start[:, None] + xp.arange(n, device=device)[None, :], (count * n,))
    shape = (*x.shape[:axis], count, n, *x.shape[axis + 1 :])
    windows = xp.reshape(xp.take(x, places, axis=axis), shape)
    return windows if axis == len(x.shape) - 1 else xp.moveaxis(windows, axis + 1, -1)


# fmt: off
for _name, _standard, _what in (
    ("cumsum", "cumulative_sum", "sums"), ("cumprod", "cumulative_prod", "products"),
):
    composite(f"{_name}(a: array, axis=None, dtype=None)", partial(scan, _standard, None),
              doc=f"The cumulative {_what} along an axis, or of the flattened array (None). As "
                  f"numpy.{_name}.",
              about=About(example="V", method=True))
composite("sliding_window_view(x: array, window_shape, axis=None)", sliding_window_view,
          doc="All windows of neighbours along some axes or all, with their elements along new "
              "axes at the end. Same as numpy.lib.stride_tricks.sliding_window_view, but a copy.",
          about=About(example="V, 2", numpy=("lib.stride_tricks.sliding_window_view",)))
nondifferentiable("running_places(x, /, axis, largest)", forward=running_places, batching="axis",
                  chapter="kernels",
                  doc="The index of the largest (or smallest) of the elements up to each one "
                      "along an axis: the last of equal ones, or that of a nan.")
