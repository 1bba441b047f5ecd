"""root: the roots of a function of arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.optimize

from multigrad import func
from multigrad.extend import entry

from .arguments import Point, as_tuple, beside, ravelled
from .constraints import dense
from .filled import Evaluated
from .implicit import jacobian, solution
from .levels import Examples, orders
from .progress import Bar
from .results import gathered

__all__ = ["root"]

JACOBIAN = {"hybr", "lm"}
"""The methods that use a Jacobian."""


@entry
def root(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: str = "hybr",
    jac: Any = None,
    tol: float | None = None,
    callback: Any = None,
    options: Any = None,
    *,
    progress: bool = False,
    order: int | None = None,
) -> Any:
    """Find a root of a function of arrays, nested or not, by scipy.optimize.root.

    fun       array-agnostic: fun(x, *args) returns an array or a nested structure of arrays, with
              as many elements as x0; with jac=True a pair of that and its Jacobian. With the method
              'lm' it may return more elements: x then minimizes the sum of their squares
    x0        the start: an array of any library, a Tensor, a nested structure of these, or nested
              lists of numbers; real, of any shape
    jac       a function like `fun` that returns the Jacobian, or True. None: func.jacfwd if the
              method uses a Jacobian. False: SciPy's differences
    callback  called with x and the residual, in their structures, by the methods that have
              callbacks
    progress  show the evaluations of `fun` as a tqdm bar
    order     the highest order of derivatives of `x`; None: two more than the number of levels that
              differentiate the solution when it is computed. Inside `func.grad`, or for a Tensor
              that requires grad, that is one level, so derivatives exist up to the third

    Returns SciPy's OptimizeResult; `x` has the structure of x0, `fun` that of the result of `fun`.

    `x` is differentiable, by the implicit function theorem. It has derivatives if args, or anything
    that `fun` refers to, requires grad or is being differentiated by a transformation of `func`. In
    this case it is the root to working precision. It has no derivative with respect to x0, which
    only sets the start.

    Raises TypeError or ValueError if x0 has the wrong dtype or shape, and any error of SciPy's
    root. Raises GradientError if a derivative is requested at a point where the residual exceeds
    the tolerance, or where the Jacobian is singular. Raises ImportError if `progress` is set and
    tqdm is not installed.
    """
    point = Point(x0, "root")
    args = as_tuple(args)
    both = jac is True

    def output(v: Any) -> Any:
        out = fun(point.unravel(v), *beside(v, args))
        return out[0] if both else out

    def residual(v: Any) -> Any:
        return ravelled(output(v))

    first = point.first(residual)
    if first.shape[0] != point.size and (method != "lm" or first.shape[0] < point.size):
        raise ValueError(f"root: fun returns {first.shape[0]} elements for the {point.size} of x0")
    examples = Examples([first, point.start])

    def solve(i: int, bar: Bar) -> Any:
        function = Evaluated(point, examples, i, residual)
        called, slope = function.called, None
        if both:
            slope = lambda z: dense(
                called(lambda v: fun(point.unravel(v), *args)[1], z), point.size
            )
        elif callable(jac):
            slope = lambda z: dense(called(lambda v: jac(point.unravel(v), *args), z), point.size)
        elif jac is None and method in JACOBIAN:
            slope = function.derivative(partial(jacobian, residual))
        told = (
            None
            if callback is None
            else lambda z, f: callback(
                point.unravel(point.returned(point.vector(z))), point.returned(point.vector(f))
            )
        )
        return point.confirmed(
            scipy.optimize.root(
                bar.counting(function),
                examples.values(point.start)[i],
                method=method,
                jac=slope or False,
                tol=tol,
                callback=told,
                options=options,
            )
        )

    with Bar(progress, "root", "evaluations") as bar:
        results = [solve(i, bar) for i in range(examples.count)]
    result = gathered(results, point, examples, ("x", "fun"), ("x",))
    numbers = (
        np.stack([np.reshape(f.x, (-1,)) for f in results])
        if results
        else np.zeros((0, point.size))
    )

    def equation(v: Any) -> Any:
        if first.shape[0] == point.size:
            return residual(v)
        value, pullback = func.vjp(residual, v)
        return pullback(value)[0]

    x = point.given(examples.array(numbers, point.raw))
    if orders(residual(x)):
        x = solution(
            equation,
            numbers,
            point,
            examples,
            name="root",
            order=order,
            message=str(result.message),
        )
        result.update(x=point.unravel(x))
    result.fun = point.result(output(x))
    return result
