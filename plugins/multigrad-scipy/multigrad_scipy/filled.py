"""Automatic derivatives for a solver: the first ones eager, later ones compiled by func.compile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import multigrad as mg
from multigrad import func
from multigrad.errors import GradientError

from .arguments import Point
from .levels import Examples

__all__ = ["EAGER", "Derivative", "Evaluated"]

EAGER = 10
"""The number of direct computations of a derivative before it is recorded.

Recording takes as long as ten to thirty calls save.
"""

ROUNDINGS = 1e2
"""The greatest difference of values, in rounding errors, that counts as equal.

XLA adds in another order than the separate operations.
"""

MOST = 8
"""A function with more recorded branches is not compiled, since each branch is recorded."""

Numbers = Callable[..., Any]


class Evaluated:
    """A function of vectors as a solver calls it, in one example.

    The function itself runs whenever the solver requests its value, so it counts, prints or stores
    exactly as under plain SciPy. After EAGER requests, func.compile records its derivatives as
    programs, which also return the value. That value is compared with the function's at the same
    point, bit for bit at first. A difference counts as rounding if the directly computed derivative
    agrees. Otherwise the function depends on something besides its argument. In that case, or if
    the function cannot be recorded, all derivatives are computed directly from then on.

    function    from a vector to an array
    recordable  whether derivatives may become programs
    rounding    the greatest difference of values that counted as rounding, relative to each element
    doubts      the number of differences of values
    """

    def __init__(
        self, point: Point, examples: Examples, i: int, function: Callable[[Any], Any]
    ) -> None:
        self.point, self.examples, self.i, self.function = point, examples, i, function
        self.recordable = not examples.batched
        self.rounding, self.doubts = 0.0, 0
        self.eps = float(mg.namespace(point.raw).finfo(point.raw.dtype).eps)
        self._fused: Derivative | None = None
        # the point of the last requested value, and the value
        self._seen: tuple[Any, Any] | None = None

    def __call__(self, z: Any) -> Any:
        """Return the value at the numbers `z`, as numbers."""
        if self._fused is not None and self._fused.program is None:
            out = self._fused.ahead(z)
        else:
            out = self.called(self.function, z)
        self._seen = np.array(z), out
        return out

    def derivative(self, of: Callable[..., Any], eager: Numbers | None = None) -> Derivative:
        """Return a derivative.

        of     from a vector, and further vectors, to the derivative there
        eager  from numbers to numbers: another way to compute it as long as there is no program
        """

        def fun(v: Any, *more: Any) -> Any:  # the name that warnings of func.compile show
            return self.function(v), of(v, *more)

        return Derivative(self, fun, eager or (lambda *z: self.called(of, *z)))

    def fused(self, pair: Callable[[Any], Any]) -> Derivative:
        """Return a derivative that comes with the value: `pair` returns both.

        It is computed when the value is requested.
        """

        def fun(v: Any) -> Any:
            return pair(v)

        self._fused = Derivative(self, fun, lambda z: self.called(pair, z)[1])
        return self._fused

    def called(self, function: Callable[..., Any], *numbers: Any) -> Any:
        return self.point.called(self.examples, self.i, function, *numbers)

    def apart(self, z: Any, value: Any) -> float:
        """Return the relative difference of a program's value at `z` from the function's.

        If the solver requested its last value at another point, the function is called.
        """
        if self._seen is None or not np.array_equal(self._seen[0], z):
            self._seen = np.array(z), self.called(self.function, z)
        seen = self._seen[1]
        if np.shape(seen) != np.shape(value):
            return np.inf
        other = ~_same(value, seen)
        if not np.any(other):
            return 0.0
        with np.errstate(all="ignore"):
            off = np.abs(value - seen)[other] / np.abs(seen)[other]
        return float(np.max(np.where(np.isnan(off), np.inf, off)))


class Derivative:
    """A derivative as a solver calls it, from numbers to numbers.

    Once it is a program, `pair` goes from vectors to the value and the derivative.
    """

    def __init__(self, function: Evaluated, pair: Callable[..., Any], eager: Numbers) -> None:
        self.function, self.pair, self.eager = function, pair, eager
        self.program: Any = None
        self.asked = 0
        self._kept: tuple[Any, Any] | None = None
        # the last argument of the program, and the derivative
        self._last: tuple[Any, Any] | None = None
        self._largest = 0.0
        function.point.derivatives.append(self)

    def ahead(self, z: Any) -> Any:
        """Return the value, and keep the derivative until it is requested."""
        value, slope = self.function.called(self.pair, z)
        self._kept = np.array(z), slope
        return value

    def __call__(self, z: Any, *vectors: Any) -> Any:
        self.asked += 1
        if self.asked > EAGER and self.function.recordable:
            slope = self._replayed(z, *vectors)
            if slope is not None:
                return slope
        self.program = self._last = None
        slope = (
            self._kept[1]
            if self._kept is not None and np.array_equal(self._kept[0], z)
            else self.eager(z, *vectors)
        )
        if self.function.recordable:
            self._largest = max(self._largest, _largest(slope))
        return slope

    def confirm(self) -> None:
        """Compare the last derivative of a program with the directly computed one.

        Raises GradientError if they differ. The function then depends on something besides its
        argument that changes derivatives but not the value, so comparing values cannot detect it.
        """
        if self._last is None or not self.function.recordable:
            return
        numbers, slope = self._last
        self._last = None
        expected = self.eager(*numbers)
        if not self._close(slope, expected) and not self._by_rounding(slope, expected, *numbers):
            name = self.function.point.name
            raise GradientError(
                f"{name}: a derivative has changed where the value has not: a function depends "
                "on something besides its arguments, as a flag that a callback sets to "
                "detach() some of them, and the derivative that was recorded of it holds what "
                "that was before. Pass what changes as an argument and solve again where it "
                "changes, or pass derivatives of your own, which are not recorded: "
                "jac=func.grad(fun), say"
            )

    def _replayed(self, z: Any, *vectors: Any) -> Any:
        """Return the derivative by the program, or None without a program.

        If a comparison needed the directly computed derivative, that is returned.
        """
        function = self.function
        self._kept = None
        try:
            self.program = self.program or func.compile(self.pair, max_programs=MOST)
            value, slope = function.called(self.program, z, *vectors)
        except (
            Exception
        ):  # an error of the function itself is raised again by the direct computation
            function.recordable = False
            return None
        apart = function.apart(z, value)
        if not 0 < len(self.program.programs) < MOST:
            function.recordable = False
        if apart <= function.rounding:
            self._largest = max(self._largest, _largest(slope))
            self._last = (
                ([np.array(x) for x in (z, *vectors)], np.array(slope))
                if function.recordable
                else None
            )
            return slope
        expected = self.eager(z, *vectors)
        function.doubts += 1
        function.rounding = min(2 * apart, ROUNDINGS * function.eps)
        if function.doubts > EAGER or not self._close(slope, expected):
            function.recordable = False
        return expected

    def _by_rounding(self, slope: Any, expected: Any, z: Any, *vectors: Any) -> bool:
        """Return whether rounding of the point explains the difference of two derivatives.

        Large terms may cancel at a minimum.
        """
        if np.shape(slope) != np.shape(expected):
            return False
        step = 16 * self.function.eps * np.where(np.abs(z) > 0, np.abs(z), _largest(z) or 1.0)
        near = self.eager(z + step * np.where(np.arange(np.size(z)) % 2, 1.0, -1.0), *vectors)
        return bool(_largest(slope - expected) <= 1e3 * _largest(near - expected)) and bool(
            np.all(np.isfinite(slope) == np.isfinite(expected))
        )

    def _close(self, slope: Any, expected: Any) -> bool:
        """Return whether two derivatives at one point are equal up to rounding."""
        if np.shape(slope) != np.shape(expected):
            return False
        with np.errstate(all="ignore"):
            close = np.abs(slope - expected) <= self.function.eps**0.5 * max(
                self._largest, _largest(expected)
            )
        return bool(np.all(close | _same(slope, expected)))


def _same(x: Any, y: Any) -> Any:
    """Return which elements are equal, or both nan."""
    return (x == y) | (np.isnan(x) & np.isnan(y))


def _largest(x: Any) -> float:
    return float(np.max(np.abs(x), initial=0.0, where=np.isfinite(x)))
