"""The conditions of Karush, Kuhn and Tucker: the equation that a minimum solves, with active bounds and constraints as equalities.

The unknowns are the vector x and one multiplier for each element that a constraint computes. For each element
of x the equation says that it is at its bound, or that the gradient of the Lagrangian f - multipliers . c
vanishes; for each element of a constraint that it is at its limit, or that the multiplier vanishes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import multigrad as mg
from multigrad import func

from .arguments import Point
from .constraints import Constraint, Limits
from .implicit import jacobian, solution
from .levels import Examples

__all__ = ["minimum"]

NEAR = 1e-3
"""How far from its limit something that is active may be, as a part of 1 + the limit."""


class _Sides(NamedTuple):
    """For the elements of a vector, those that are at their lower and at their upper limit."""

    lower: Any
    upper: Any

    @property
    def any(self) -> Any:
        return self.lower | self.upper


def minimum(gradient: Callable[[Any], Any], x: Any, point: Point, examples: Examples, *, limits: Limits | None, constraints: Sequence[Constraint],
            order: int | None, message: str) -> Any:
    """The minimum near `x` as a vector with the derivatives of whatever the functions refer to.

    gradient  of the function that is minimized, from vectors to vectors
    x         the numbers of the minimum for each example, of shape (count, n)

    Raises GradientError where `x` is no minimum, or where it is not determined by what is active.
    """
    n = point.size
    if limits is None and not constraints:
        return solution(gradient, x, point, examples, name=point.name, order=order, message=message)

    def together(v: Any) -> Any:
        return _joined([c.function(v) for c in constraints])

    with mg.no_grad():
        at = point.given(examples.array(x, point.raw))
        slope = examples.values(gradient(at))
        values = examples.values(together(at)) if constraints else np.zeros((examples.count, 0))
        normals = examples.values(jacobian(together, at)) if constraints else np.zeros((examples.count, 0, n))
    bounds = _numbers([limits] if limits is not None else [], examples, n)
    targets = _numbers([c.limits for c in constraints], examples, 0)
    found = [_active(*of) for of in zip(x, slope, values, normals, bounds[0], bounds[1], targets[0], targets[1], strict=True)]
    fixed = _Sides(*(np.stack([getattr(f[0], side) for f in found]) for side in _Sides._fields))
    held = _Sides(*(np.stack([getattr(f[1], side) for f in found]) for side in _Sides._fields))
    multipliers = np.stack([f[2] for f in found])

    def choice(sides: _Sides, of: Limits) -> tuple[Any, Any]:
        """Where a limit is active, and the limit."""
        like = mg.namespace(point.raw)
        lower, upper = (mg.astype(examples.array(side * 1.0, point.raw), like.bool) for side in sides)
        return mg.logical_or(lower, upper), mg.where(lower, _finite(of.lower), _finite(of.upper))

    at_bound = choice(fixed, limits) if limits is not None else None
    at_limit = None
    if constraints:
        ends = [_joined([getattr(c.limits, side) for c in constraints]) for side in _Sides._fields]
        at_limit = choice(held, Limits(*ends))

    def residual(z: Any) -> Any:
        v, of = z[:n], z[n:]
        g = gradient(v)
        if at_limit is not None:
            c, pullback = func.vjp(together, v)
            g = mg.subtract(g, pullback(of)[0])
            c = mg.where(at_limit[0], mg.subtract(c, at_limit[1]), of)
        if at_bound is not None:
            g = mg.where(at_bound[0], mg.subtract(v, at_bound[1]), g)
        return g if at_limit is None else mg.concat([g, c])

    z = solution(residual, np.concatenate([x, multipliers], axis=1), point, examples, name=point.name, order=order, message=message)
    return z[:n]


def _joined(parts: Sequence[Any]) -> Any:
    return parts[0] if len(parts) == 1 else mg.concat(list(parts))


def _finite(x: Any) -> Any:
    """The limits with 0 in the place of infinity, which is never active."""
    return mg.where(mg.isfinite(x), x, 0.0)


def _numbers(limits: Sequence[Limits], examples: Examples, n: int) -> tuple[Any, Any]:
    if not limits:
        return np.full((examples.count, n), -np.inf), np.full((examples.count, n), np.inf)
    lower, upper = (np.concatenate([examples.values(getattr(x, side)) for x in limits], axis=1) for side in _Sides._fields)
    return lower, upper


def _active(x: Any, slope: Any, values: Any, normals: Any, low: Any, high: Any, least: Any, most: Any) -> tuple[_Sides, _Sides, Any]:
    """Which bounds and which constraints of one example are active, and the multipliers of the constraints.

    Those are candidates that are near. Of these the ones are active whose multiplier has the right sign and is
    larger than the distance.
    """
    below, above = x - low, high - x
    fixed = _Sides(_near(below, low), _near(above, high))
    under, over = values - least, most - values
    equal = least == most
    held = _Sides(_near(under, least) | equal, _near(over, most) & ~equal)
    for _ in range(len(x) + len(values) + 1):
        free, active = ~fixed.any, held.any
        multipliers = np.zeros(len(values))
        multipliers[active] = np.linalg.lstsq(normals[active][:, free].T, slope[free], rcond=None)[0]
        forces = slope - normals.T @ multipliers
        scale = 1.0 + np.max(np.abs(slope), initial=0.0)
        kept = _Sides(fixed.lower & _pushes(forces, below, low, scale), fixed.upper & _pushes(-forces, above, high, scale))
        stays = _Sides(held.lower & (equal | _pushes(multipliers, under, least, scale)), held.upper & _pushes(-multipliers, over, most, scale))
        if all(np.array_equal(a, b) for a, b in zip((*fixed, *held), (*kept, *stays), strict=True)):
            break
        fixed, held = kept, stays
    return fixed, held, multipliers


def _near(distance: Any, limit: Any) -> Any:
    return np.isfinite(limit) & (np.abs(distance) <= NEAR * (1.0 + np.abs(np.where(np.isfinite(limit), limit, 0.0))))


def _pushes(force: Any, distance: Any, limit: Any, scale: float) -> Any:
    """Whether a limit holds something back: by its force, or because it is reached exactly and nothing pulls away from it."""
    exact = np.abs(distance) <= 1e-12 * (1.0 + np.abs(np.where(np.isfinite(limit), limit, 0.0)))
    return np.where(exact, force >= -1e-6 * scale, force > np.abs(distance))
