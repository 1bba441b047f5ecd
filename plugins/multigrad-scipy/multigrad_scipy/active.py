"""The Karush-Kuhn-Tucker conditions: the equation that a constrained minimum solves.

Active bounds and constraints are equalities in it. The unknowns are the vector x, and one
multiplier for each element of a constraint. For each element of x, the equation says that the
element is at its bound, or that the gradient of the Lagrangian f - multipliers . c vanishes. For
each element of a constraint, it says that the element is at its limit, or that the multiplier
vanishes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import multigrad as mg
from multigrad import func
from multigrad.errors import GradientError

from .arguments import Point
from .constraints import Constraint, Limits
from .implicit import eps_of, expanded, jacobian, polished
from .levels import Examples

__all__ = ["minimum"]

NEAR = 1e-3
"""The greatest distance of an active element from its limit, as a fraction of 1 + the limit."""


class _Sides(NamedTuple):
    """The elements of a vector that are at their lower, and at their upper limit."""

    lower: Any
    upper: Any

    @property
    def any(self) -> Any:
        return self.lower | self.upper

    def same(self, other: _Sides) -> bool:
        return all(np.array_equal(*pair) for pair in zip(self, other, strict=True))


class _At(NamedTuple):
    """The facts about one example at a point, as NumPy arrays.

    x              the point
    slope          the gradient of the function
    values         the values of the constraints
    normals        their Jacobian
    bounds, ends   the limits of x and of the values
    """

    x: Any
    slope: Any
    values: Any
    normals: Any
    bounds: _Sides
    ends: _Sides

    def multipliers(self, fixed: _Sides, held: _Sides) -> Any:
        """Return the multipliers of the constraints, 0 for a constraint that is not active."""
        free, active = ~fixed.any, held.any
        out = np.zeros(len(self.values))
        out[active] = np.linalg.lstsq(
            self.normals[active][:, free].T, self.slope[free], rcond=None
        )[0]
        return out


def minimum(
    gradient: Callable[[Any], Any],
    x: Any,
    point: Point,
    examples: Examples,
    *,
    limits: Limits | None,
    constraints: Sequence[Constraint],
    order: int | None,
    message: str,
) -> Any:
    """Return the minimum near `x` as a vector that is differentiable by the functions' data.

    gradient  of the minimized function, from vectors to vectors
    x         the minimum of each example as numbers, of shape (count, n)

    Raises GradientError if `x` is not a minimum, or if the active limits do not determine it.
    """
    n, name = point.size, point.name
    if limits is None and not constraints:
        z, matrix = polished(gradient, x, point, examples, name, message)
        _check_curvature(matrix, n, [_Sides(*np.zeros((2, n), dtype=bool))] * len(z), point)
        return expanded(gradient, z, matrix, point, examples, name=name, order=order)

    def together(v: Any) -> Any:
        return _joined([c.function(v) for c in constraints])

    bounds = _numbers([limits] if limits is not None else [], examples, n)
    targets = _numbers([c.limits for c in constraints], examples, 0)

    def known(x: Any) -> list[_At]:
        with mg.no_grad():
            at = point.given(examples.array(x, point.raw))
            slope = examples.values(gradient(at))
            values = examples.values(together(at)) if constraints else np.zeros((examples.count, 0))
            normals = (
                examples.values(jacobian(together, at))
                if constraints
                else np.zeros((examples.count, 0, n))
            )
        return [
            _At(
                x[i],
                slope[i],
                values[i],
                normals[i],
                _Sides(*(side[i] for side in bounds)),
                _Sides(*(side[i] for side in targets)),
            )
            for i in range(examples.count)
        ]

    def choice(sides: _Sides, of: Limits) -> tuple[Any, Any]:
        """Return where a limit is active, and the limit."""
        like = mg.namespace(point.raw)
        lower, upper = (
            mg.astype(examples.array(side * 1.0, point.raw), like.bool) for side in sides
        )
        return mg.logical_or(lower, upper), mg.where(lower, _finite(of.lower), _finite(of.upper))

    def equation(sets: list[tuple[_Sides, _Sides]]) -> Callable[[Any], Any]:
        fixed, held = (
            _Sides(*(np.stack([of[k][side] for of in sets]) for side in (0, 1))) for k in (0, 1)
        )
        at_bound = choice(fixed, limits) if limits is not None else None
        at_limit = None
        if constraints:
            at_limit = choice(
                held,
                Limits(
                    *(
                        _joined([getattr(c.limits, side) for c in constraints])
                        for side in _Sides._fields
                    )
                ),
            )

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

        return residual

    start = known(x)
    sets = [_active(at) for at in start]
    for _ in range(2 * (n + len(start[0].values)) + 2):
        residual = equation(sets)
        z = np.stack(
            [
                np.concatenate([at.x, at.multipliers(*of)])
                for at, of in zip(start, sets, strict=True)
            ]
        )
        z, matrix = polished(residual, z, point, examples, name, message)
        better = [
            _corrected(at, v[n:], *of, 1e4 * eps_of(point))
            for at, v, of in zip(known(z[:, :n]), z, sets, strict=True)
        ]
        if all(
            a.same(b)
            for one, other in zip(sets, better, strict=True)
            for a, b in zip(one, other, strict=True)
        ):
            _check_curvature(matrix, n, [of[0] for of in sets], point, [of[1] for of in sets])
            return expanded(residual, z, matrix, point, examples, name=name, order=order)[:n]
        sets = better
    raise GradientError(
        f"{name}: the solution has no derivative: it is undecided which bounds and "
        "constraints are active there. Let the solver come closer, by tol=, options= or "
        "another x0, or detach() the arrays that the functions use."
    )


def _joined(parts: Sequence[Any]) -> Any:
    return parts[0] if len(parts) == 1 else mg.concat(list(parts))


def _finite(x: Any) -> Any:
    """Return the limits with 0 in place of infinity, which is never active."""
    return mg.where(mg.isfinite(x), x, 0.0)


def _numbers(limits: Sequence[Limits], examples: Examples, n: int) -> tuple[Any, Any]:
    if not limits:
        return np.full((examples.count, n), -np.inf), np.full((examples.count, n), np.inf)
    lower, upper = (
        np.concatenate([examples.values(getattr(x, side)) for x in limits], axis=1)
        for side in _Sides._fields
    )
    return lower, upper


def _active(at: _At) -> tuple[_Sides, _Sides]:
    """Return which bounds and constraints of one example seem to be active.

    The candidates are those near their limit. A candidate is active if its multiplier has the right
    sign and exceeds its distance.
    """
    (low, high), (least, most) = at.bounds, at.ends
    below, above = at.x - low, high - at.x
    same = low == high
    fixed = _Sides(_near(below, low) | same, _near(above, high) & ~same)
    under, over = at.values - least, most - at.values
    equal = least == most
    held = _Sides(_near(under, least) | equal, _near(over, most) & ~equal)
    scale = 1.0 + np.max(np.abs(at.slope), initial=0.0)
    for _ in range(len(at.x) + len(at.values) + 1):
        multipliers = at.multipliers(fixed, held)
        forces = at.slope - at.normals.T @ multipliers
        kept = _Sides(
            fixed.lower & (same | _pushes(forces, below, low, scale)),
            fixed.upper & _pushes(-forces, above, high, scale),
        )
        stays = _Sides(
            held.lower & (equal | _pushes(multipliers, under, least, scale)),
            held.upper & _pushes(-multipliers, over, most, scale),
        )
        if fixed.same(kept) and held.same(stays):
            break
        fixed, held = kept, stays
    return fixed, held


def _corrected(
    at: _At, multipliers: Any, fixed: _Sides, held: _Sides, tolerance: float
) -> tuple[_Sides, _Sides]:
    """Return what is active at the solution of the equation with `fixed` and `held`.

    If that solution is a minimum, the result is the same. Otherwise elements whose multiplier has
    the wrong sign are released, and elements beyond a limit are put at it.
    """
    (low, high), (least, most) = at.bounds, at.ends
    pull = at.normals.T @ multipliers
    forces, noise = (
        at.slope - pull,
        tolerance * (np.abs(at.slope) + np.abs(at.normals).T @ np.abs(multipliers)),
    )
    same, equal = low == high, least == most
    weak = (
        tolerance
        * np.max(np.abs(at.slope), initial=0.0)
        / np.maximum(np.max(np.abs(at.normals), axis=1, initial=0.0), 1e-300)
    )
    return (
        _Sides(
            (fixed.lower & (same | (forces >= -noise)))
            | (~fixed.any & _beyond(low, at.x, tolerance)),
            (fixed.upper & (forces <= noise)) | (~fixed.any & _beyond(-high, -at.x, tolerance)),
        ),
        _Sides(
            (held.lower & (equal | (multipliers >= -weak)))
            | (~held.any & _beyond(least, at.values, tolerance)),
            (held.upper & (multipliers <= weak))
            | (~held.any & _beyond(-most, -at.values, tolerance)),
        ),
    )


def _beyond(limit: Any, x: Any, tolerance: float) -> Any:
    return x < limit - tolerance * (1.0 + np.abs(np.where(np.isfinite(limit), limit, 0.0)))


def _check_curvature(
    matrices: Any, n: int, fixed: list[_Sides], point: Point, held: list[_Sides] | None = None
) -> None:
    """Raise GradientError if the function has negative curvature along a free direction.

    The point is then a maximum or a saddle point.
    """
    for i, matrix in enumerate(matrices):
        free = ~fixed[i].any
        hessian = matrix[:n, :n][free][:, free]
        scale = np.sqrt(np.abs(np.diagonal(hessian)))
        scale = np.where(scale == 0.0, 1.0, scale)
        hessian = hessian / scale / scale[:, None]
        if held is not None:
            normals = matrix[n:, :n][held[i].any][:, free] / scale
            along = np.linalg.svd(normals)[2][len(normals) :].T
            hessian = along.T @ hessian @ along
        curvatures = np.linalg.eigvalsh((hessian + hessian.T) / 2) if hessian.size else np.zeros(0)
        if np.min(curvatures, initial=0.0) < -(eps_of(point) ** 0.5) * np.max(
            np.abs(curvatures), initial=0.0
        ):
            raise GradientError(
                f"{point.name}: the solution has no derivative: it is a maximum or a saddle "
                "point, where the gradient vanishes, but no minimum. Start from another x0, or "
                "detach() the arrays that the function uses."
            )


def _near(distance: Any, limit: Any) -> Any:
    return np.isfinite(limit) & (
        np.abs(distance) <= NEAR * (1.0 + np.abs(np.where(np.isfinite(limit), limit, 0.0)))
    )


def _pushes(force: Any, distance: Any, limit: Any, scale: float) -> Any:
    """Return whether a limit is active: by its force, or by distance 0 without opposite force."""
    exact = np.abs(distance) <= 1e-12 * (1.0 + np.abs(np.where(np.isfinite(limit), limit, 0.0)))
    return np.where(exact, force >= -1e-6 * scale, force > np.abs(distance))
