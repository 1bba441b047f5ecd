"""Central differences of fourth order, with a step of 1e-3.

For values of order 1 both error terms (h**4 and eps / h) are about 1e-12, so tolerances can be
tight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

STEP = 1e-3
STENCIL = ((1, 8 / 12), (-1, -8 / 12), (2, -1 / 12), (-2, 1 / 12))
"""Where a function is called, in steps, and the weights of its values."""


def slope(f: Callable[[float], Any], step: float = STEP) -> Any:
    """Return the derivative of `f` at 0."""
    return sum(weight / step * f(offset * step) for offset, weight in STENCIL)


def along(
    f: Callable[[Sequence[Any]], list[Any]],
    leaves: Sequence[Any],
    tangents: Sequence[Any],
    step: float = STEP,
) -> list[Any]:
    """Return the derivative of each result of `f` along the tangents."""
    results = []
    for offset, weight in STENCIL:
        moved = [np.asarray(x + offset * step * t) for x, t in zip(leaves, tangents, strict=True)]
        results.append([weight / step * y for y in f(moved)])
    return [sum(ys) for ys in zip(*results, strict=True)]


def jacobian(f: Callable[[Any], Any], x: Any, step: float = STEP) -> Any:
    """Return the derivatives of `f` with respect to each element of a vector, as the last axis."""

    def moved(direction: Any, t: float) -> Any:
        return f(x + t * direction)

    return np.stack([slope(partial(moved, e), step) for e in np.eye(len(x))], axis=-1)


def gradient(f: Callable[[Any], Any], x: Any) -> Any:
    """Return the gradient of a real `f`: dL/da, and dL/da + i dL/db for a complex a + ib."""

    def moved(at: tuple[int, ...], unit: complex, t: float) -> Any:
        y = np.array(x)
        y[at] += t * unit
        return f(y)

    result = np.zeros(x.shape, x.dtype)
    for at in np.ndindex(x.shape):
        for unit in units(x):
            result[at] += unit * slope(partial(moved, at, unit))
    return result


def gradient_apart(f: Callable[[Any], Any], x: Any) -> Any:
    """Return the result of `gradient`, where `f` returns the contributions of elements apart."""

    def moved(unit: complex, t: float) -> Any:
        return f(x + t * unit)

    return np.asarray(sum(unit * slope(partial(moved, unit)) for unit in units(x)), dtype=x.dtype)


def units(x: Any) -> tuple[complex, ...]:
    """Return the directions in which an element can be varied."""
    return (1, 1j) if x.dtype.kind == "c" else (1,)
