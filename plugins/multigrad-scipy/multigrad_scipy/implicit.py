"""The solution of an equation as a differentiable function of the data in the equation.

Let F(z, theta) = 0 at z, and A = dF/dz there. The implicit function theorem gives dz = -A^-1 dF. It
is applied by the iteration

    z  <-  z - A^-1 F(z, theta)

with constant A. The iteration begins at the solution, whose numbers it does not change. As a
function of theta, each step corrects one more order of the Taylor series of the solution: the error
e of the series becomes (1 - A^-1 dF/dz) e, and that factor vanishes at the solution. Every level
that differentiates theta records F, pushes it forward or batches it like any other code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import multigrad as mg
from multigrad import func
from multigrad.autograd import Function
from multigrad.errors import GradientError

from .arguments import Point
from .levels import Examples, orders

__all__ = ["MORE", "eps_of", "expanded", "jacobian", "limited", "polished", "solution"]

Residual = Callable[[Any], Any]

MORE = 2
"""Orders of derivatives of a solution beyond the levels that differentiate it at its creation.

They are the orders available to later passes with `create_graph`.
"""


class Limited(Function):
    """The identity, for an array whose derivatives are correct up to some order.

    Raises GradientError if a higher derivative is requested.

    x     the array
    of    the arrays from which the derivatives of `x` are computed, so that they are recorded
    left  the number of remaining orders
    """

    @staticmethod
    def forward(x: Any, of: Any, left: int, name: str) -> Any:
        return x.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        _, of, ctx.left, ctx.solver = inputs
        ctx.save_for_backward(of)
        ctx.save_for_forward(of)

    @staticmethod
    def backward(ctx: Any, g: Any) -> tuple[Any, Any, None, None]:
        g = _lower(ctx, g)
        # the second term passes on the remaining order to the next derivative, even if g is a
        # constant
        return g, mg.multiply(g, 0.0), None, None

    @staticmethod
    def jvp(ctx: Any, t: Any, *_: Any) -> Any:
        return _lower(ctx, t)

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any, of: Any, left: int, name: str) -> tuple[Any, Any]:
        return Limited.apply(x, of, left, name), in_dims[0]


def _lower(ctx: Any, x: Any) -> Any:
    if ctx.left == 0:
        raise GradientError(
            f"{ctx.solver}: a derivative of a higher order was asked for than the solution was "
            f"made for. Pass order=, the highest one that is needed, to {ctx.solver}."
        )
    (of,) = ctx.saved_tensors
    return limited(x, of, ctx.left - 1, ctx.solver)


def limited(x: Any, of: Any, left: int, name: str) -> Any:
    return Limited.apply(x, of, left, name)


def jacobian(residual: Residual, z: Any) -> Any:
    """Return the Jacobian of a function from vectors to vectors, in forward mode.

    If a function in it has no forward mode, reverse mode is used.
    """
    try:
        return func.jacfwd(residual)(z)
    except NotImplementedError:
        return func.jacrev(residual)(z)


def solution(
    residual: Residual,
    z: Any,
    point: Point,
    examples: Examples,
    *,
    name: str,
    order: int | None,
    message: str = "",
) -> Any:
    """Return the solution of residual(z) = 0 near `z`, differentiable by the data of `residual`.

    residual  a function from a vector to a vector of the same length
    z         the solution of each example as numbers, of shape (count, m)
    point     gives the library of the vectors
    order     the highest order of derivatives, None for MORE than the number of levels
    message   the message of the solver

    Raises GradientError if `z` is not a solution, or if the Jacobian is singular there.
    """
    return expanded(
        residual,
        *polished(residual, z, point, examples, name, message),
        point,
        examples,
        name=name,
        order=order,
    )


def expanded(
    residual: Residual,
    z: Any,
    matrix: Any,
    point: Point,
    examples: Examples,
    *,
    name: str,
    order: int | None,
) -> Any:
    """Return the result of `solution`, from the numbers that `polished` returns."""
    x, a = (point.given(examples.array(values, point.raw)) for values in (z, matrix))
    order = orders(residual(x)) + MORE if order is None else order
    for _ in range(order):
        x = mg.subtract(x, mg.linalg.solve(a, residual(x)))
    return limited(x, x, order, name)


def polished(
    residual: Residual, z: Any, point: Point, examples: Examples, name: str, message: str
) -> tuple[Any, Any]:
    """Return the numbers of the solution after a few Newton steps, and of the Jacobian there.

    The steps end when they are as small as the last digit. They also end when they stop shrinking
    while the Jacobian is unchanged: then only rounding errors are left. This holds for units of any
    size.
    """
    eps = eps_of(point)
    last, change, previous = np.inf, np.inf, None
    for step in range(STEPS):
        x = point.given(examples.array(z, point.raw))
        with mg.no_grad():
            value, matrix = examples.values(residual(x)), examples.values(jacobian(residual, x))
        moves = (
            np.stack([_move(v, a, eps, name) for v, a in zip(value, matrix, strict=True)])
            if len(z)
            else value
        )
        size = np.max(np.abs(z), axis=-1, keepdims=True)
        far = float(np.max(np.abs(moves) / (1.0 + size), initial=0.0))
        if step == 0 and not far <= NEAR:
            raise _no_solution(name, far, message)
        if previous is not None:
            change = max(
                (_change(*pair) for pair in zip(previous, matrix, strict=True)), default=0.0
            )
        if not far < last / 2:
            last = max(far, last)
            break
        last, previous = far, matrix
        z = examples.values(examples.array(z - moves, point.raw))
        if np.all(np.abs(moves) <= eps * size):
            _refuse_multiple(residual, x, matrix, moves, point, examples, name)
            return z, matrix
    if last > eps**0.4 or change > eps**0.2:
        raise _no_solution(name, last, message)
    return z, matrix


STEPS = 8
NEAR = 1e-2
"""The greatest distance from Newton's solution, as a fraction of 1 + its largest element."""


def _refuse_multiple(
    residual: Residual,
    x: Any,
    matrix: Any,
    moves: Any,
    point: Point,
    examples: Examples,
    name: str,
) -> None:
    """Raise GradientError if the Jacobian changes by half of itself within the error of `x`.

    It does so at a multiple root, where a solver stops next to the root: the Jacobian there is
    small, but it is not singular. The test depends neither on the units of the equations nor on
    those of the unknowns.
    """
    z = examples.values(x)
    reach = np.maximum(REACH * eps_of(point) * np.abs(z), 10 * np.abs(moves))
    nearby = point.given(examples.array(z + np.where(moves < 0, -reach, reach), point.raw))
    with mg.no_grad():
        changed = examples.values(jacobian(residual, nearby))
    if any(_change(*pair) > 0.5 for pair in zip(changed, matrix, strict=True)):
        raise _singular(name)


REACH = 32.0
"""How many units in the last digit the solution of a solver may be from the true one."""


def eps_of(point: Point) -> float:
    return float(mg.namespace(point.raw).finfo(point.raw.dtype).eps)


def _change(before: Any, after: Any) -> float:
    """Return the part of a Newton step that remains if the other Jacobian is used.

    It does not depend on the units.
    """
    rows, columns = _scales(after)
    return float(
        np.max(
            np.abs(np.linalg.solve(after / rows / columns, (before - after) / rows / columns)),
            initial=0.0,
        )
    )


def _scales(matrix: Any) -> tuple[Any, Any]:
    """Return the largest elements of the rows, and then of the columns of the scaled matrix.

    0 is replaced by 1.
    """
    rows = np.max(np.abs(matrix), axis=1, keepdims=True, initial=0.0)
    rows = np.where(rows == 0.0, 1.0, rows)
    columns = np.max(np.abs(matrix / rows), axis=0, initial=0.0)
    return rows, np.where(columns == 0.0, 1.0, columns)


def _move(value: Any, matrix: Any, eps: float, name: str) -> Any:
    """Return Newton's step. Raises GradientError if the matrix is singular to working precision."""
    if not (np.isfinite(value).all() and np.isfinite(matrix).all()):
        raise GradientError(
            f"{name}: the solution has no derivative: the equation that it solves, or its "
            "Jacobian, is not finite there"
        )
    rows, columns = _scales(matrix)
    scaled = matrix / rows / columns
    if len(value) and np.linalg.cond(scaled) > 0.05 / eps:
        raise _singular(name)
    return np.linalg.solve(matrix, value)


def _singular(name: str) -> GradientError:
    return GradientError(
        f"{name}: the solution has no derivative: the Jacobian of the equation that it solves is "
        "singular there (a double root, a flat minimum, or constraints that repeat each other). "
        "Make the solution unique, as by a small penalty, or detach() the arrays that the function "
        "uses."
    )


def _no_solution(name: str, far: float, message: str) -> GradientError:
    said = f" The solver said: {' '.join(message.split()).rstrip('.')}." if message else ""
    return GradientError(
        f"{name}: the solution has no derivative: it does not solve the equation that a "
        f"derivative would follow from. Newton's method would move it by {far:.1e} of its "
        f"size.{said} Let the solver come closer, by tol=, options= or another x0, or detach() "
        "the arrays that the function uses."
    )
