"""scipy.signal: convolve along chosen axes, with sums along others.

Two bilinear operations carry it out. Their arrays have one axis that remains, one that is summed
over, and the convolved axes:

    correlate(a, b)[m, n, x] = sum over d and u of a[m, d, x + u] b[n, d, u]
    spread(a, b)[m, n, y]    = sum over d and u of a[m, d, y - u] b[d, n, u]

`a` has the shape (m, d, *size). `b` has the shape (n, d, *kernel) in the first operation, and (d,
n, *kernel) in the second.

The first operation is a correlation without padding, the second a full convolution. The gradient of
each is one of the two, of the same arrays with axes exchanged. So derivatives of any order are
matrix products.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np

import multigrad as mg
from multigrad.extend import entry

from .choosing import boxed, operand, operations, with_rules

__all__ = ["convolve"]

Axes = tuple[Sequence[int], Sequence[int]]


def _windows(a: Any, kernel: tuple[int, ...]) -> Any:
    """Return the windows of `a` that a kernel of that size sees, as a matrix.

    Its rows are (d, *kernel) and its columns (m, *places).
    """
    k = len(kernel)
    view = (
        np.lib.stride_tricks.sliding_window_view(a, kernel, axis=tuple(range(2, a.ndim)))
        if k
        else a
    )
    places = tuple(range(2, 2 + k))
    view = view.transpose(1, *range(2 + k, 2 + 2 * k), 0, *places)
    return view.reshape(prod(view.shape[: 1 + k]), -1)


def _correlate(a: Any, b: Any, /) -> Any:
    kernel = b.shape[2:]
    places = tuple([n - k + 1 for n, k in zip(a.shape[2:], kernel, strict=True)])
    out = b.reshape(b.shape[0], -1) @ _windows(a, kernel)
    return out.reshape(b.shape[0], a.shape[0], *places).swapaxes(0, 1)


def _spread(a: Any, b: Any, /) -> Any:
    (m, d), size, n, kernel = a.shape[:2], a.shape[2:], b.shape[1], b.shape[2:]
    parts = (b.reshape(d, -1).T @ a.swapaxes(0, 1).reshape(d, -1)).reshape(n, *kernel, m, *size)
    out = np.zeros(
        (n, m, *[s + k - 1 for s, k in zip(size, kernel, strict=True)]), dtype=parts.dtype
    )
    for place in product(*map(range, kernel)):
        seen: Any = (..., *[slice(u, u + s) for u, s in zip(place, size, strict=True)])
        out[seen] += parts[(slice(None), *place)]
    return out.swapaxes(0, 1)


def _swapped(xp: Any, x: Any) -> Any:
    return xp.permute_dims(x, (1, 0, *range(2, x.ndim)))


def _conj(xp: Any, x: Any) -> Any:
    return xp.conj(x) if xp.isdtype(x.dtype, "complex floating") else x


mg.registry.multilinear(
    "hips.correlate(a, b, /)",
    forward={"numpy": _correlate},
    chapter="hips",
    a=lambda xp, g, b: xp.hips.spread(g, _conj(xp, b)),
    b=lambda xp, g, a: _swapped(
        xp, _conj(xp, xp.hips.correlate(_swapped(xp, a), _conj(xp, _swapped(xp, g))))
    ),
    doc="A correlation without padding, with a sum over the second axes.",
)
mg.registry.multilinear(
    "hips.spread(a, b, /)",
    forward={"numpy": _spread},
    chapter="hips",
    a=lambda xp, g, b: xp.hips.correlate(g, _conj(xp, b)),
    b=lambda xp, g, a: _swapped(xp, xp.hips.correlate(_swapped(xp, g), _conj(xp, _swapped(xp, a)))),
    doc="A full convolution, with a sum over the second axis of a and the first of b.",
)


@with_rules
@entry
def convolve(
    A: Any, B: Any, axes: Axes | None = None, dot_axes: Axes = ((), ()), mode: str = "full"
) -> Any:
    """Convolve A and B along pairs of axes.

    The result is a sum of products along other pairs of axes, and an outer product along the
    remaining axes.

    axes      two sequences of equal length: the axes of A and of B that are convolved with each
              other; None means all, in order
    dot_axes  two sequences of equal length: axes that are multiplied element by element and summed
              over
    mode      the length along a convolved axis, as in scipy.signal.convolve: "full", n + k - 1;
              "same", that of A, cut out of the middle; "valid", |n - k| + 1, where one array is at
              least as long as the other along all of these axes

    The axes of the result are the remaining axes of A, those of B, and then the convolved axes, in
    the order of `axes`. Raises ValueError for another mode, for axes that do not match, and in mode
    "valid" if each array is the longer one along some axis.
    """
    A, B = (operand(A), operand(B)) if boxed(A, B) else (np.asarray(A), np.asarray(B))
    conv_a, conv_b = (range(A.ndim),) * 2 if axes is None else axes
    conv_a, conv_b = [i % A.ndim for i in conv_a], [i % B.ndim for i in conv_b]
    dot_a, dot_b = [i % A.ndim for i in dot_axes[0]], [i % B.ndim for i in dot_axes[1]]
    if mode not in ("full", "valid", "same"):
        raise ValueError(f"convolve: mode must be 'full', 'valid' or 'same', not {mode!r}")
    if len(conv_a) != len(conv_b) or len(dot_a) != len(dot_b):
        raise ValueError(
            f"convolve: axes and dot_axes must name as many axes of A as of B; they are {axes} "
            f"and {dot_axes}"
        )
    rest_a = [i for i in range(A.ndim) if i not in (*conv_a, *dot_a)]
    rest_b = [i for i in range(B.ndim) if i not in (*conv_b, *dot_b)]
    kept = [A.shape[i] for i in rest_a] + [B.shape[i] for i in rest_b]
    a = _arranged(A, rest_a, dot_a, conv_a)
    b = _arranged(B, rest_b, dot_b, conv_b)
    if a.shape[1] != b.shape[1]:
        raise ValueError(
            f"convolve: dot_axes {dot_axes} of shapes {A.shape} and {B.shape} differ in length"
        )
    out = (
        _valid(a, b)
        if mode == "valid"
        else _call("spread", a, _permuted(b, (1, 0, *range(2, b.ndim))))
    )
    if mode == "same":
        starts = [(k - 1) // 2 for k in b.shape[2:]]
        out = out[(..., *[slice(s, s + n) for s, n in zip(starts, a.shape[2:], strict=True)])]
    return _reshaped(out, (*kept, *out.shape[2:]))


def _valid(a: Any, b: Any) -> Any:
    """Convolve in mode "valid": the shorter array moves over the longer one, read backwards."""
    pairs = list(zip(a.shape[2:], b.shape[2:], strict=True))
    backwards = (..., *[slice(None, None, -1)] * len(pairs))
    if all(n >= k for n, k in pairs):
        return _call("correlate", a, b[backwards])
    if all(n <= k for n, k in pairs):
        out = _call("correlate", b, a[backwards])
        return _permuted(out, (1, 0, *range(2, out.ndim)))
    raise ValueError(
        "convolve: in mode 'valid' one array must be as long as the other along all convolved "
        f"axes; their lengths are {pairs}"
    )


def _arranged(x: Any, rest: list[int], dot: list[int], conv: list[int]) -> Any:
    """Reorder the axes: one for the remaining, one for the summed, then the convolved axes."""
    shape = x.shape
    x = _permuted(x, (*rest, *dot, *conv))
    return _reshaped(
        x, (prod(shape[i] for i in rest), prod(shape[i] for i in dot), *[shape[i] for i in conv])
    )


def _permuted(x: Any, axes: tuple[int, ...]) -> Any:
    if axes == tuple(range(len(axes))):
        return x
    return mg.permute_dims(x, axes) if boxed(x) else np.transpose(x, axes)


def _reshaped(x: Any, shape: tuple[int, ...]) -> Any:
    return x if x.shape == shape else mg.reshape(x, shape) if boxed(x) else np.reshape(x, shape)


def _call(name: str, a: Any, b: Any) -> Any:
    """Call the operation on boxes, or its forward function on raw arrays."""
    if boxed(a, b):
        return getattr(operations.hips, name)(a, b)
    return _correlate(a, b) if name == "correlate" else _spread(a, b)
