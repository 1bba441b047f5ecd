"""scipy.integrate: odeint, with the gradient of its solution by the adjoint equation.

The adjoint method is from L. S. Pontryagin et al., "The Mathematical Theory of Optimal Processes",
1962; the form used here from R. T. Q. Chen et al., "Neural Ordinary Differential Equations", 2018,
appendix B. The solution and the cotangents of the state, of the time and of the parameters are
integrated together, backwards from each time of the solution to the previous one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.integrate

import multigrad as mg
from multigrad import func as transformations

from ..boxes import known, leaves, left, mapped, plain, rebinding
from .choosing import boxed, operand, with_rules

__all__ = ["odeint"]

Function = Callable[..., Any]
DERIVATIVES = ("Dfun", "col_deriv", "ml", "mu")
"""Options for the Jacobian of the user's function, which do not fit the augmented system."""


@with_rules
def odeint(func: Function, y0: Any, t: Any, args: Any = (), **options: Any) -> Any:
    """Solve dy/dt = func(y, t, *args) with y(t[0]) = y0 at the times t, by scipy.integrate.odeint.

    y0       the state at t[0], of shape (n,)
    t        the times, of shape (m,), increasing or decreasing
    args     further arguments of `func`: arrays, or nested lists, tuples and dictionaries of them
    options  the options of SciPy's function

    Returns an array of shape (m, n), differentiable with respect to y0, t and args. There is no
    derivative with respect to other data that `func` refers to, so a box that needs a gradient and
    is not in `args` raises an error. With boxes, full_output raises NotImplementedError.
    """
    if not boxed(y0, t, *leaves(args)):
        return scipy.integrate.odeint(func, y0, t, args=args, **options)
    if options.pop("full_output", False):
        raise NotImplementedError(
            "odeint of boxes takes no full_output: what it adds has no derivative"
        )
    dynamics = _time_last(func) if options.pop("tfirst", False) else func
    args = tuple(mapped(_array, a) for a in args)
    return _solve(dynamics, options, _joined([_array(y0)]), _array(t), args)


def _time_last(func: Function) -> Function:
    return lambda y, t, *args: func(t, y, *args)


def _forward(func: Function, options: dict[str, Any], y0: Any, t: Any, args: Any) -> Any:
    """Return SciPy's solution, for the values of the arguments."""
    return mg.asarray(
        scipy.integrate.odeint(
            func, _values(y0), _values(t), args=left(mapped(_values, args)), **options
        )
    )


def _values(x: Any) -> Any:
    x = plain(x)
    return x.numpy() if boxed(x) else x


_solve = transformations.custom_vjp(_forward, nondiff_argnums=(0, 1))


def _kept(func: Function, options: dict[str, Any], y0: Any, t: Any, args: Any) -> tuple[Any, Any]:
    y = _solve(func, options, y0, t, args)
    return y, (y, t, args)


def _augmented(func: Function, n: int) -> Function:
    """Return the dynamics of the state, its cotangent, and those of time and parameters.

    All are in one vector.
    """

    def dynamics(state: Any, t: Any, *args: Any) -> Any:
        slope, pullback = transformations.vjp(
            rebinding(lambda y, t, args: _vector(func(y, t, *args))), state[:n], _array(t), args
        )
        by_y, by_t, by_args = pullback(-state[n : 2 * n])
        parts = [slope, by_y, by_t]
        # in the order of args; the dictionaries of by_args may have another order
        mapped(lambda _, x: parts.append(x), args, by_args)
        return _joined(parts)

    return dynamics


def _array(x: Any) -> Any:
    """Return a box unchanged, and anything else as an array, also a number."""
    x = operand(x)
    return x if boxed(x) else np.asarray(x)


def _vector(y: Any) -> Any:
    """Return the slope as an array, also if the function returns a list."""
    return operand(y)


def _joined(parts: list[Any]) -> Any:
    """Return all parts as one vector."""
    if boxed(*parts):
        return mg.concat([mg.reshape(mg.asarray(x), (-1,)) for x in parts])
    return np.concatenate([np.ravel(x) for x in parts])


def _gradients(func: Function, options: dict[str, Any], kept: Any, g: Any) -> tuple[Any, Any, Any]:
    y, t, args = kept
    n = y.shape[1]
    options = {name: value for name, value in options.items() if name not in DERIVATIVES}
    flat = list(leaves(args))
    dynamics = _augmented(func, n)
    by_y, by_t, by_args = g[-1, :], g[0, 0] * 0.0, [x * 0.0 for x in flat]
    times = []
    for i in range(y.shape[0] - 1, 0, -1):
        # moving the time moves the solution along its slope
        moved = mg.sum(_vector(func(*known((y[i, :], t[i], *args)))) * g[i, :])
        times.append(moved)
        state = odeint(
            dynamics,
            _joined([y[i, :], by_y, by_t - moved, *by_args]),
            mg.stack([t[i], t[i - 1]]),
            args,
            **options,
        )[1, :]
        by_y, by_t = state[n : 2 * n] + g[i - 1, :], state[2 * n]
        by_args = _parts(state[2 * n + 1 :], flat)
    rest = list(by_args)
    return by_y, mg.stack([by_t, *times[::-1]]), mapped(lambda _: rest.pop(0), args)


def _parts(vector: Any, like: list[Any]) -> list[Any]:
    """Split the vector into arrays of the shapes of `like`."""
    out, start = [], 0
    for x in like:
        shape = np.shape(x)
        size = int(np.prod(shape))
        out.append(mg.reshape(vector[start : start + size], shape))
        start += size
    return out


_solve.defvjp(_kept, _gradients)
