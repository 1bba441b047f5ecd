"""Differences of a user's function, with steps that suit the scale of the point.

If they disagree with a derivative, other steps are tried before the derivative is called wrong: a
function may vary fast, or be defined only on one side of a nearby point. A wrong derivative agrees
with no step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .differences import STEP, along, units
from .tolerance import over

STEPS = (1.0, 1 / 30, 1e-3, 3e-5)
"""The steps to try, in units of STEP times the size of the varied element."""

MANY = 64
"""Of a larger array, this many elements are varied, drawn with a fixed seed."""

Arrays = Sequence[Any]
Function = Callable[[Arrays], list[Any]]
ADVICE = (
    " Choose another point, or pass leave_out='differences', which leaves the comparison "
    "between backends and modes."
)


def slopes(function: Function, leaves: Arrays, direction: Arrays, step: float = 1.0) -> list[Any]:
    """Return the derivative of each result along a direction, with that step."""
    with np.errstate(all="ignore"):
        return [d / step for d in along(function, leaves, [step * t for t in direction])]


def size_of(x: Any) -> Any:
    """Return the magnitude of each element, and 1 for elements that are 0 or not finite.

    A step is proportional to it.
    """
    magnitude = np.abs(x)
    return np.where(np.isfinite(magnitude) & (magnitude > 0), magnitude, 1.0)


def chosen(x: Any) -> list[tuple[int, ...]]:
    """Return the indices of the elements to vary: all, or a sample of a large array."""
    numbers = (
        range(x.size)
        if x.size <= MANY
        else sorted(np.random.default_rng(x.size).choice(x.size, MANY, replace=False))
    )
    return [tuple(int(i) for i in np.unravel_index(n, x.shape)) for n in numbers]


class Partial:
    """Derivatives of one real result with respect to single elements of one array.

    For z = a + ib they are dL/da + i dL/db.
    """

    def __init__(self, loss: Callable[[Arrays], Any], leaves: Arrays, which: int) -> None:
        self.function: Function = lambda arrays: [np.asarray(loss(arrays))]
        self.leaves = list(leaves)
        self.which = which
        self.size = size_of(leaves[which])

    def direction(self, at: tuple[int, ...], unit: complex = 1) -> list[Any]:
        result = [np.zeros(x.shape, x.dtype) for x in self.leaves]
        result[self.which][at] = self.size[at] * (unit if unit != 1 else 1.0)
        return result

    def steps(self, at: tuple[int, ...]) -> tuple[float, ...]:
        """Return the steps to try for one element.

        Steps for a function that varies over a length of 1 come first, because they give more
        digits.
        """
        longest = float(max(1.0, self.size[at]) / self.size[at])
        return (*(longest * step for step in STEPS), *STEPS)

    def at(self, at: tuple[int, ...], step: float) -> Any:
        """Return the derivative with respect to one element, as a 0-d array."""
        return np.asarray(
            sum(
                u
                * slopes(self.function, self.leaves, self.direction(at, u), step)[0]
                / self.size[at]
                for u in units(self.leaves[self.which])
            )
        )


def settled(
    estimate: Callable[[float], Any], steps: Sequence[float], first: Any, actual: Any, limits: Any
) -> Any:
    """Return for each element the difference, at any step, that agrees with `actual`.

    If none agrees, it is the difference with the first step.
    """
    best = np.array(first)
    wrong = over(actual, best, limits) > 1
    for step in steps[1:]:
        if not wrong.any():
            break
        again = np.asarray(estimate(step))
        better = wrong & (over(actual, again, limits) <= 1)
        best[better] = again[better]
        wrong &= ~better
    return best


def trouble(
    function: Function, leaves: Arrays, direction: Arrays, result: int, at: tuple[int, ...]
) -> str:
    """Explain why the differences of an element along a direction may not be its derivative.

    Returns "" if there is no such reason.
    """

    def value(s: float) -> Any:
        with np.errstate(all="ignore"):
            return function(
                [np.asarray(x + s * t) for x, t in zip(leaves, direction, strict=True)]
            )[result][at]

    sides = []
    centre = value(0.0)
    for h in (STEP, STEP / 8):
        sides.append(((centre - value(-h)) / h, (value(h) - centre) / h))
    (left, right), (nearer_left, nearer_right) = sides
    if not np.all(np.isfinite([left, right, nearer_left, nearer_right])):
        return f" The function is not finite beside this point.{ADVICE}"
    gap, nearer = abs(right - left), abs(nearer_right - nearer_left)
    if nearer > 1e-4 * (abs(nearer_left) + abs(nearer_right)) and nearer > 0.5 * gap:
        return (
            f" The function is not smooth at this point: its slope is {_short(nearer_left)} on "
            f"one side and {_short(nearer_right)} on the other.{ADVICE}"
        )
    estimates = [slopes(function, leaves, direction, step)[result][at] for step in STEPS[:3]]
    if max(abs(a - b) for a in estimates for b in estimates) > 1e-3 * max(map(abs, estimates)):
        return (
            f" The differences depend on their step ({', '.join(map(_short, estimates))}): the "
            f"function has a kink or a jump near this point, or varies fast.{ADVICE}"
        )
    return ""


def _short(x: Any) -> str:
    return f"{np.asarray(x).item():.6g}"
