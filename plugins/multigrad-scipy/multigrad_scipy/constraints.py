"""Bounds and constraints, with automatic Jacobians: for SciPy, and for a minimum's equation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize

import multigrad as mg
from multigrad import func
from multigrad.extend import innermost, is_array, level_of

from .arguments import Point, as_tuple, beside, ravelled
from .filled import Evaluated
from .implicit import jacobian
from .levels import Examples, backend_of, numbers

__all__ = ["Constraint", "Limits", "as_limits", "box", "dense", "read", "vector_of"]


class Limits(NamedTuple):
    """The lower and upper limit of each element of a vector, as vectors of x0's library.

    A missing limit is infinite.
    """

    lower: Any
    upper: Any


class Constraint(NamedTuple):
    """A vector that must stay within limits.

    function  of the vector of arguments, with a vector as result
    limits    the limits of its result
    given     SciPy's constraint, a dictionary or an object, whose functions take the user's
              arguments
    args      further arguments of these functions
    """

    function: Callable[[Any], Any]
    limits: Limits
    given: Any
    args: tuple[Any, ...]

    def plain(self, point: Point, examples: Examples, i: int) -> Any:
        """Return the constraint of example `i` in the form that SciPy takes.

        Its functions are functions of vectors of numbers. They have Jacobians, and Hessians if
        SciPy takes them.
        """
        given = self.given
        if isinstance(given, scipy.optimize.LinearConstraint):
            matrix = given.A if hasattr(given.A, "toarray") else _of(examples, given.A, i)
            return scipy.optimize.LinearConstraint(
                matrix,
                *(_of(examples, x, i) for x in self.limits),
                keep_feasible=given.keep_feasible,
            )
        function = Evaluated(point, examples, i, self.function)
        if isinstance(given, dict):
            jac = given.get("jac")
            return {
                "type": given["type"],
                "fun": function,
                "jac": self._jacobian(jac, function, point),
            }
        jac = None if isinstance(given.jac, str) and given.jac == "2-point" else given.jac
        hess = given.hess
        if hess is None or type(hess) is scipy.optimize.BFGS:
            hess = self._hessian(function)
        elif callable(hess):
            hess = self._user_hessian(hess, function.called, point)
        return scipy.optimize.NonlinearConstraint(
            function,
            *(_of(examples, x, i) for x in self.limits),
            jac=self._jacobian(jac, function, point),
            hess=hess,
            keep_feasible=given.keep_feasible,
        )

    def _jacobian(self, jac: Any, function: Evaluated, point: Point) -> Any:
        if jac is None:
            return function.derivative(partial(jacobian, self.function))
        if not callable(jac):
            return jac
        return lambda z: dense(
            function.called(lambda v: jac(point.unravel(v), *self.args), z), point.size
        )

    def _hessian(self, function: Evaluated) -> Any:
        return function.derivative(
            lambda v, weights: func.hessian(lambda v: mg.vecdot(weights, self.function(v)))(v)
        )

    def _user_hessian(self, hess: Any, called: Callable[..., Any], point: Point) -> Any:
        return lambda z, multipliers: dense(
            called(lambda v: hess(point.unravel(v), multipliers), z), point.size
        )


def dense(matrix: Any, n: int) -> Any:
    """Return the result of a user's function as a matrix with n columns.

    A Jacobian has the axes of x0 last.
    """
    return (
        matrix
        if hasattr(matrix, "toarray") or hasattr(matrix, "matvec")
        else np.reshape(matrix, (-1, n))
    )


def _of(examples: Examples, x: Any, i: int) -> Any:
    return examples.values(x)[i]


def vector_of(x: Any, size: int, point: Point, what: str) -> Any:
    """Return `x` as a vector of `size` elements in the library of x0.

    `x` is a number, an array or a nested structure of arrays; `what` names it in errors.
    """
    # Bounds wraps a dictionary in an object array
    if isinstance(x, np.ndarray) and x.dtype == object and x.size == 1:
        x = x.item()
    if not is_array(x):
        try:
            x = func.ravel_pytree(x)[0]
        except TypeError:  # numbers, or lists of numbers
            x = mg.asarray(x, backend=backend_of(point.raw), dtype=point.raw.dtype)
    layered = level_of(x) > 0 and not (
        isinstance(x, mg.Tensor) and not x.requires_grad and level_of(x) == 1
    )
    if not layered:
        x = mg.asarray(
            numbers(x),
            backend=backend_of(point.raw),
            dtype=point.raw.dtype,
            device=point.raw.device,
        )
    x = mg.reshape(x, (-1,))
    if x.shape[0] not in (1, size):
        raise ValueError(
            f"{point.name}: {what} has {x.shape[0]} elements; expected {size}, or one for all"
        )
    x = mg.broadcast_to(x, (size,))
    return x if layered else innermost(x)


def as_limits(lower: Any, upper: Any, size: int, point: Point, what: str) -> Limits:
    return Limits(
        vector_of(lower, size, point, f"the lower limit of {what}"),
        vector_of(upper, size, point, f"the upper limit of {what}"),
    )


def box(bounds: Any, point: Point) -> Limits | None:
    """Return the limits of minimize's bounds.

    They are a scipy.optimize.Bounds, whose limits may be nested like x0, or pairs (min, max).
    """
    if bounds is None:
        return None
    if hasattr(bounds, "lb"):
        return as_limits(bounds.lb, bounds.ub, point.size, point, "bounds")
    pairs = list(bounds) if hasattr(bounds, "__iter__") else []
    if len(pairs) != point.size or any(getattr(p, "__len__", int)() != 2 for p in pairs):
        raise ValueError(
            f"{point.name}: bounds must be a scipy.optimize.Bounds or a sequence of "
            f"{point.size} pairs (min, max), one for each element of x0"
        )
    lower, upper = zip(*pairs, strict=True)
    return as_limits(
        [-np.inf if x is None else x for x in lower],
        [np.inf if x is None else x for x in upper],
        point.size,
        point,
        "bounds",
    )


def read(constraints: Any, point: Point) -> list[Constraint]:
    """Return the constraints of minimize: one constraint, or a sequence of them."""
    given = (
        [constraints]
        if isinstance(constraints, dict) or not isinstance(constraints, Sequence)
        else list(constraints)
    )
    return [_read(c, point) for c in given]


def _read(given: Any, point: Point) -> Constraint:
    if isinstance(given, scipy.optimize.LinearConstraint):
        matrix = given.A.toarray() if hasattr(given.A, "toarray") else given.A
        if not is_array(matrix) or not level_of(matrix):
            matrix = innermost(
                mg.asarray(
                    numbers(matrix),
                    backend=backend_of(point.raw),
                    dtype=point.raw.dtype,
                    device=point.raw.device,
                )
            )
        return Constraint(
            lambda v: mg.matmul(matrix, v),
            as_limits(given.lb, given.ub, matrix.shape[0], point, "a constraint"),
            given,
            (),
        )
    if isinstance(given, dict):
        if given.get("type") not in ("eq", "ineq") or not callable(given.get("fun")):
            raise ValueError(
                f"{point.name}: a constraint that is a dictionary has 'type', which is 'eq' or "
                f"'ineq', and 'fun', a function; got {given!r}"
            )
        fun, args = given["fun"], as_tuple(given.get("args", ()))
        lower, upper = 0.0, 0.0 if given["type"] == "eq" else np.inf
    elif isinstance(given, scipy.optimize.NonlinearConstraint):
        fun, args, lower, upper = given.fun, (), given.lb, given.ub
    else:
        raise TypeError(
            f"{point.name}: a constraint must be a LinearConstraint, a NonlinearConstraint or a "
            f"dictionary, not {type(given).__name__}"
        )

    def function(v: Any) -> Any:
        return ravelled(fun(point.unravel(v), *beside(v, args)))

    size = int(point.first(function).shape[0])
    return Constraint(function, as_limits(lower, upper, size, point, "a constraint"), given, args)
