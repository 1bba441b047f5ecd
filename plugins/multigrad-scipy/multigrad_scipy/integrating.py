"""Initial value problems: solve_ivp, with an automatic Jacobian.

Its solutions are not differentiable.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.integrate

from multigrad import func
from multigrad.errors import GradientError
from multigrad.extend import entry

from .arguments import Point, as_tuple, beside, ravelled, several
from .constraints import dense
from .implicit import jacobian
from .levels import Examples, constant, numbers, orders
from .progress import Bar

__all__ = ["solve_ivp"]

IMPLICIT = ("radau", "bdf", "lsoda")
"""The methods that use a Jacobian."""


@entry
def solve_ivp(
    fun: Callable[..., Any],
    t_span: Any,
    y0: Any,
    method: Any = "RK45",
    t_eval: Any = None,
    dense_output: bool = False,
    events: Any = None,
    vectorized: bool = False,
    args: Any = None,
    *,
    progress: bool = False,
    **options: Any,
) -> Any:
    """Solve dy/dt = fun(t, y, *args) with y(t_span[0]) = y0, by scipy.integrate.solve_ivp.

    fun         array-agnostic: with a float t and a state y it returns the slope in the structure
                of y0
    y0          the initial state: an array of any library, or a nested structure of these, real and
                of any shape
    events      functions like `fun` that return a number, with the attributes `terminal` and
                `direction`
    vectorized  without effect: `fun` is always called with one state
    progress    show the evaluations of `fun` as a tqdm bar
    options     SciPy's. `jac` defaults to func.jacfwd for the methods Radau, BDF and LSODA; it may
                be a function like `fun`, or an array

    Returns SciPy's result. `t` and the elements of `t_events` are vectors of y0's library. `y` has
    the structure of y0 with one more axis at the end, for the times. An element of `y_events` has
    the ravelled states as rows. `sol` is a function of a time or a vector of times.

    Raises GradientError if y0, t_span, t_eval, args or anything that `fun` refers to requires grad
    or is being differentiated, because the solution has no derivative. Raises NotImplementedError
    inside `vmap`, where each example would have its own steps; ImportError if progress needs tqdm;
    and any error of SciPy.
    """
    point = Point(y0, "solve_ivp")
    args = () if args is None else as_tuple(args)
    t_span = several("solve_ivp", "t_span", t_span, 2)
    times = [*t_span, *([] if t_eval is None else [t_eval])]

    def slope(t: float, v: Any) -> Any:
        return ravelled(fun(t, point.unravel(v), *beside(v, args)))

    first = float(numbers(constant(t_span[0])))
    point.first(partial(slope, first))
    start = point.given(point.start)
    watched = [] if events is None else [events] if callable(events) else list(events)
    seen = [slope(first, start), *(event(first, point.unravel(start), *args) for event in watched)]
    for x in (*seen, ravelled(y0), *times):
        _refuse_derivative(x)
    examples = Examples([*seen, start])
    if examples.batched:
        raise NotImplementedError(
            "solve_ivp inside of vmap: each example would have steps of its own; solve them one "
            "by one, or as one system"
        )
    called = partial(point.called, examples, 0)

    def plain(t: float, z: Any) -> Any:
        out = slope(t, point.array(z))
        _refuse_derivative(out)  # at each time, since a branch of fun may refer to other data
        return examples.of(out, 0)

    if isinstance(method, str) and method.lower() in IMPLICIT:
        jac = options.get("jac")
        if jac is None:
            options["jac"] = lambda t, z: called(lambda v: jacobian(partial(slope, t), v), z)
        elif callable(jac):
            options["jac"] = lambda t, z: dense(
                called(lambda v: jac(t, point.unravel(v), *args), z), point.size
            )
    told = [_plain(event, point, called, args) for event in watched] or None
    with Bar(progress, "solve_ivp", "evaluations") as bar:
        result = scipy.integrate.solve_ivp(
            bar.counting(plain),
            tuple(map(_time, t_span)),
            examples.values(start)[0],
            method=method,
            t_eval=None if t_eval is None else numbers(t_eval),
            dense_output=dense_output,
            events=told,
            **options,
        )
    states = func.vmap(point.unravel, in_axes=1, out_axes=-1)
    result.t = point.returned(point.vector(result.t))
    result.y = states(point.returned(point.vector(result.y)))
    for name in ("t_events", "y_events"):
        if result.get(name) is not None:
            result[name] = [point.returned(point.vector(x)) for x in result[name]]
    if result.sol is not None:
        sol = result.sol
        result.sol = lambda t: (states if np.ndim(numbers(t)) else point.unravel)(
            point.returned(point.vector(sol(numbers(t))))
        )
    return result


def _refuse_derivative(x: Any) -> None:
    if orders(x):
        raise GradientError(
            "solve_ivp: the solution has no derivative, but something that it depends on "
            "requires grad or is being differentiated. "
            "multigrad_autograd.scipy.integrate.odeint is differentiable by y0, t and args; "
            "else detach() what needs no gradient"
        )


def _time(t: Any) -> float:
    return float(numbers(t))


def _plain(
    event: Callable[..., Any], point: Point, called: Callable[..., Any], args: tuple[Any, ...]
) -> Callable[..., Any]:
    """Return an event in the form that SciPy takes."""

    def number(t: float, z: Any) -> float:
        return float(np.reshape(called(lambda v: event(t, point.unravel(v), *args), z), ()))

    for name in ("terminal", "direction"):
        if hasattr(event, name):
            setattr(number, name, getattr(event, name))
    return number
