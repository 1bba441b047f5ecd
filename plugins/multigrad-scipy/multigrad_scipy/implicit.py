"""The solution of an equation as a differentiable function of whatever the equation refers to.

Let F(z, theta) = 0 at z, and A = dF/dz there. The implicit function theorem gives dz = -A^-1 dF. It
is applied by the iteration

    z  <-  z - A^-1 F(z, theta)

with A held constant, begun at the numbers of the solution, where it changes nothing. As a function
of theta each step makes one more order of the Taylor series of the solution right: the error e of
the series becomes (1
- A^-1 dF/dz) e, and the factor vanishes at the solution. F is recorded, pushed forward and batched
  as any other
code, by every level that differentiates what it refers to.
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
"""Orders of derivatives that a solution has beyond the levels that differentiate it when it is
made: those of passes by `create_graph`.
"""


class Limited(Function):
    """The identity, for an array whose derivatives are right up to some order.

    Raises where a higher one is asked for.

    x     the array
    of    what the derivatives of `x` are computed from, so that they are recorded
    left  how many orders there are
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
        # so that the next derivative finds how many orders are left, even where g is a constant
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
    """The Jacobian of a function from vectors to vectors, in forward mode; in reverse mode where a
    function in it has no forward mode.
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
    """The solution of residual(z) = 0 near `z`, with the derivatives of whatever `residual` refers
    to.

    residual  a function from a vector to one of the same length
    z         the numbers of the solution for each example, of shape (count, m)
    point     says of which library the vectors are
    order     the highest order of derivatives, None for MORE than there are levels
    message   what the solver said

    Raises GradientError where `z` is no solution, or the Jacobian there is singular.
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
    """What `solution` returns, of the numbers that `polished` returns."""
    x, a = (point.given(examples.array(values, point.raw)) for values in (z, matrix))
    order = orders(residual(x)) + MORE if order is None else order
    for _ in range(order):
        x = mg.subtract(x, mg.linalg.solve(a, residual(x)))
    return limited(x, x, order, name)


def polished(
    residual: Residual, z: Any, point: Point, examples: Examples, name: str, message: str
) -> tuple[Any, Any]:
    """The numbers of the solution after a few steps of Newton's method, and of the Jacobian there.

    The steps settle where they are as small as the last digit, or where they get no smaller
    although the Jacobian stays what it was, so that rounding errors are all that is left. This
    holds in units of any size.
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
            return z, matrix
    if last > eps**0.4 or change > eps**0.2:
        raise _no_solution(name, last, message)
    return z, matrix


STEPS = 8
NEAR = 1e-2
"""How far a solution may be from that of Newton's method, as a part of 1 + its largest element."""


def eps_of(point: Point) -> float:
    return float(mg.namespace(point.raw).finfo(point.raw.dtype).eps)


def _change(before: Any, after: Any) -> float:
    """How much of a Newton step one Jacobian would leave that is taken with the other one, whatever
    the units are.
    """
    rows, columns = _scales(after)
    return float(
        np.max(
            np.abs(np.linalg.solve(after / rows / columns, (before - after) / rows / columns)),
            initial=0.0,
        )
    )


def _scales(matrix: Any) -> tuple[Any, Any]:
    """The largest elements of the rows, and after division by them those of the columns; 1 instead
    of 0.
    """
    rows = np.max(np.abs(matrix), axis=1, keepdims=True, initial=0.0)
    rows = np.where(rows == 0.0, 1.0, rows)
    columns = np.max(np.abs(matrix / rows), axis=0, initial=0.0)
    return rows, np.where(columns == 0.0, 1.0, columns)


def _move(value: Any, matrix: Any, eps: float, name: str) -> Any:
    """Newton's step. Raises where the matrix is singular to working precision."""
    if not (np.isfinite(value).all() and np.isfinite(matrix).all()):
        raise GradientError(
            f"{name}: the solution has no derivative: the equation that it solves, or its "
            "Jacobian, is not finite there"
        )
    rows, columns = _scales(matrix)
    scaled = matrix / rows / columns
    if len(value) and np.linalg.cond(scaled) > 0.05 / eps:
        raise GradientError(
            f"{name}: the solution has no derivative: the Jacobian of the equation that it "
            "solves is singular there (a double root, a flat minimum, or constraints that "
            "repeat each other). Make the solution unique, as by a small penalty, or detach() "
            "what the function refers to."
        )
    return np.linalg.solve(matrix, value)


def _no_solution(name: str, far: float, message: str) -> GradientError:
    said = f" The solver said: {' '.join(message.split()).rstrip('.')}." if message else ""
    return GradientError(
        f"{name}: the solution has no derivative: it does not solve the equation that a "
        f"derivative would follow from. Newton's method would move it by {far:.1e} of its "
        f"size.{said} Let the solver come closer, by tol=, options= or another x0, or detach() "
        "what the function refers to."
    )
