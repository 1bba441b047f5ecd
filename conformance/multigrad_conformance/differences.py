"""Finite differences of a user's function, at a point of any scale: steps that fit, and what is
wrong where none does.

The differences are those of problem.py. Where they disagree with a derivative, other steps are
tried before the derivative is called wrong: a function may vary fast, or be defined on one side of
a near point only. A wrong derivative agrees with none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .problem import STEP, along
from .tolerance import over

STEPS = (1.0, 1 / 30, 1e-3, 3e-5)
"""The steps to try, in units of STEP and of the size of what is moved."""

MANY = 64
"""Of an array with more elements, the differences are taken by so many of them, drawn with a fixed
seed.
"""

Arrays = Sequence[Any]
Function = Callable[[Arrays], list[Any]]
ADVICE = (
    " Choose another point, or pass leave_out='differences', which leaves the comparison "
    "between backends and modes."
)


def slopes(function: Function, leaves: Arrays, direction: Arrays, step: float = 1.0) -> list[Any]:
    """The derivative of each result along a direction, with that step."""
    with np.errstate(all="ignore"):
        return [d / step for d in along(function, leaves, [step * t for t in direction])]


def size_of(x: Any) -> Any:
    """The size of each element of an array, 1 for zero and what is not finite: a step moves it by a
    part of that.
    """
    magnitude = np.abs(x)
    return np.where(np.isfinite(magnitude) & (magnitude > 0), magnitude, 1.0)


def chosen(x: Any) -> list[tuple[int, ...]]:
    """The indices of the elements of an array that are moved one by one: all, or a sample of
    many.
    """
    numbers = (
        range(x.size)
        if x.size <= MANY
        else sorted(np.random.default_rng(x.size).choice(x.size, MANY, replace=False))
    )
    return [tuple(int(i) for i in np.unravel_index(n, x.shape)) for n in numbers]


class Partial:
    """The derivatives of one real result by single elements of one of its arrays: dL/da + i dL/db
    for z = a + ib.
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
        """The steps to try for one element: first those of a function that varies over a length of
        1, which have more digits.
        """
        longest = float(max(1.0, self.size[at]) / self.size[at])
        return (*(longest * step for step in STEPS), *STEPS)

    def at(self, at: tuple[int, ...], step: float) -> Any:
        """The derivative by one element, as an array without axes."""
        units = (1, 1j) if self.leaves[self.which].dtype.kind == "c" else (1,)
        return np.asarray(
            sum(
                u
                * slopes(self.function, self.leaves, self.direction(at, u), step)[0]
                / self.size[at]
                for u in units
            )
        )


def settled(
    estimate: Callable[[float], Any], steps: Sequence[float], first: Any, actual: Any, limits: Any
) -> Any:
    """The differences that agree with `actual`, element by element, at whatever step; where none
    does, the first ones, those of the first step.
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
    """Why the differences of one element of a result, along a direction, may not be its derivative;
    "" where they must be.
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
    found = [slopes(function, leaves, direction, step)[result][at] for step in STEPS[:3]]
    if max(abs(a - b) for a in found for b in found) > 1e-3 * max(map(abs, found)):
        return (
            f" The differences depend on their step ({', '.join(map(_short, found))}): the "
            f"function has a kink or a jump near this point, or varies fast.{ADVICE}"
        )
    return ""


def _short(x: Any) -> str:
    return f"{np.asarray(x).item():.6g}"
