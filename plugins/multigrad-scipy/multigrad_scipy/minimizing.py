"""Minimization: minimize and minimize_scalar."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.optimize

import multigrad as mg
from multigrad import func
from multigrad.errors import GradientError
from multigrad.extend import entry, innermost, is_array, level_of

from .active import minimum
from .arguments import Point, as_tuple, ravelled, several
from .constraints import Constraint, Limits, as_limits, box, dense, read
from .filled import Evaluated
from .levels import Examples, backend_of, constant, numbers, one, orders
from .progress import Bar
from .results import gathered

__all__ = ["minimize", "minimize_scalar"]

GRADIENT = {
    "cg",
    "bfgs",
    "newton-cg",
    "l-bfgs-b",
    "tnc",
    "slsqp",
    "dogleg",
    "trust-ncg",
    "trust-krylov",
    "trust-exact",
    "trust-constr",
}
HESSIAN = {"dogleg", "trust-exact"}
PRODUCT = {"newton-cg", "trust-ncg", "trust-krylov", "trust-constr"}
"""The methods that take a gradient, that need a Hessian, and that accept its products instead."""


@entry
def minimize(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: Any = None,
    jac: Any = None,
    hess: Any = None,
    hessp: Any = None,
    bounds: Any = None,
    constraints: Any = (),
    tol: float | None = None,
    callback: Any = None,
    options: Any = None,
    *,
    progress: bool = False,
    order: int | None = None,
) -> Any:
    """Minimize a function of an array or a nested structure of arrays, by scipy.optimize.minimize.

    fun          array-agnostic: fun(x, *args) returns one real number; with jac=True a pair of that
                 and the gradient
    x0           the start: an array of any library, a Tensor, a nested structure of these, or
                 nested lists of numbers; real, of any shape
    jac          a function like `fun` that returns the gradient in the structure of x0; True; or
                 '2-point', '3-point' or False for SciPy's differences. None: func.grad
    hess, hessp  functions that return the Hessian, and its product with p, or another argument that
                 SciPy takes. If the method uses one and none is given, func.hessian or func.hvp
    bounds       a scipy.optimize.Bounds or pairs (min, max); lb and ub may be nested structures and
                 may contain Tensors
    constraints  in SciPy's form; missing Jacobians and Hessians (jac of '2-point', hess of BFGS())
                 are automatic derivatives
    callback     called with x in the structure of x0, or with `intermediate_result`, whose x has it
    progress     show the iterations as a tqdm bar
    order        the highest order of derivatives of `x`; None: two more than the number of levels
                 that differentiate the solution when it is computed. Inside `func.grad`, or for a
                 Tensor that requires grad, that is one level, so derivatives exist up to the third

    Returns SciPy's OptimizeResult; `x` and `jac` have the structure of x0, `fun` is an array of its
    library.

    `x`, `fun` and `jac` are differentiable, by the implicit function theorem, with active bounds
    and constraints as equalities. They have derivatives if args, or anything that `fun`, the bounds
    or the constraints refer to, requires grad or is being differentiated by a transformation of
    `func`. In this case `x` is the minimum to working precision. The result has no derivative with
    respect to x0, which only sets the start.

    Raises TypeError or ValueError if x0 or the limits have the wrong dtype or shape, and any error
    of SciPy's minimize. Raises GradientError if a derivative is requested at a point where the
    solver stopped without reaching a minimum, or at a minimum that is not unique. Raises
    ImportError if `progress` is set and tqdm is not installed.
    """
    point = Point(x0, "minimize")
    args = as_tuple(args)
    limits = box(bounds, point)
    held = read(constraints, point)
    problem = _Problem(fun, args, jac is True, point, limits, held)
    method = method or ("SLSQP" if held else "L-BFGS-B" if limits is not None else "BFGS")
    with Bar(progress, "minimize", "iterations") as bar:
        results = [
            problem.solve(i, method, jac, hess, hessp, tol, callback, options, bar)
            for i in range(problem.examples.count)
        ]
    return problem.result(results, order, jac)


class _Problem:
    """A function to minimize under bounds and constraints, as a function of vectors."""

    def __init__(
        self,
        fun: Callable[..., Any],
        args: tuple[Any, ...],
        both: bool,
        point: Point,
        limits: Limits | None,
        constraints: list[Constraint],
    ) -> None:
        self.fun, self.args, self.both, self.point, self.limits, self.constraints = (
            fun,
            args,
            both,
            point,
            limits,
            constraints,
        )
        self.ends = [
            *([] if limits is None else limits),
            *(x for c in constraints for x in c.limits),
        ]
        seen = [point.first(self.value), *(point.first(c.function) for c in constraints)]
        self.examples = Examples([point.start, *seen, *self.ends])

    def value(self, v: Any, *args: Any) -> Any:
        out = self.fun(self.point.unravel(v), *(args or self.args))
        return out[0] if self.both else out

    def gradient(self, v: Any) -> Any:
        return func.grad(self.value)(v, *self.args)

    def product(self, v: Any, p: Any) -> Any:
        """Return the product of the Hessian at v with p."""
        return func.jvp(self.gradient, v, p)[1]

    def solve(
        self,
        i: int,
        method: Any,
        jac: Any,
        hess: Any,
        hessp: Any,
        tol: Any,
        callback: Any,
        options: Any,
        bar: Bar,
    ) -> Any:
        point, function = self.point, Evaluated(self.point, self.examples, i, self.value)
        called, kind = function.called, method.lower() if isinstance(method, str) else ""

        def number_and_gradient(z: Any) -> tuple[float, Any]:
            value, g = called(lambda v: _flat(self.fun(point.unravel(v), *self.args)), z)
            return _number(value), g

        if callable(jac):
            gradient: Any = lambda z: called(
                lambda v: ravelled(jac(point.unravel(v), *self.args)), z
            )
        elif jac is None and kind in GRADIENT:
            gradient = function.fused(lambda v: func.value_and_grad(self.value)(v, *self.args))
        else:
            gradient = True if self.both else jac
        if hess is None and hessp is None and kind in HESSIAN:
            hess = function.derivative(lambda v: func.hessian(self.value)(v, *self.args))
        elif callable(hess):
            user = hess
            hess = lambda z: dense(
                called(lambda v: user(point.unravel(v), *self.args), z), point.size
            )
        if hess is None and hessp is None and kind in PRODUCT:
            hessp = function.derivative(self.product, self._products(called))
        elif callable(hessp):
            product = hessp
            hessp = lambda z, p: called(
                lambda v: ravelled(
                    product(point.unravel(v), point.unravel(point.array(p)), *self.args)
                ),
                z,
            )
        bounds = (
            None
            if self.limits is None
            else scipy.optimize.Bounds(*(self.examples.values(x)[i] for x in self.limits))
        )
        called_for = number_and_gradient if self.both else lambda z: _number(function(z))
        return point.confirmed(
            scipy.optimize.minimize(
                called_for,
                self.examples.values(point.start)[i],
                method=method,
                jac=gradient,
                hess=hess,
                hessp=hessp,
                bounds=bounds,
                tol=tol,
                callback=point.told(callback, bar),
                options=options,
                constraints=[c.plain(point, self.examples, i) for c in self.constraints],
            )
        )

    def _products(self, called: Callable[..., Any]) -> Callable[[Any, Any], Any]:
        """Return a function for the products of the Hessian with vectors.

        The Hessian is symmetric, so one pullback of the gradient serves for all products at a
        point.
        """
        last: list[Any] = []

        def product(z: Any, p: Any) -> Any:
            if not last or not np.array_equal(last[0], z):
                with mg.no_grad():
                    last[:] = np.array(z), func.vjp(self.gradient, self.point.array(z))
            _, pullback = last[1]
            return called(lambda v: pullback(v)[0], p)

        return product

    def result(self, results: list[Any], order: int | None, jac: Any = None) -> Any:
        point, examples = self.point, self.examples
        # trust-constr returns the Jacobians of constraints as jac, and the gradient as grad
        slope = "grad" if results and "grad" in results[0] else "jac"
        result = gathered(results, point, examples, ("x", "fun", slope), ("x", slope))
        at = np.stack([f.x for f in results]) if results else np.zeros((0, point.size))
        there = point.given(examples.array(at, point.raw))
        if any(
            map(
                orders,
                (self.value(there), *(c.function(there) for c in self.constraints), *self.ends),
            )
        ):
            x = minimum(
                self.gradient,
                at,
                point,
                examples,
                limits=self.limits,
                constraints=self.constraints,
                order=order,
                message=str(result.message),
            )
            result.update(x=point.unravel(x), fun=mg.reshape(self.value(x), ()))
            if slope in result:
                result[slope] = point.unravel(self.gradient(x))
        elif callable(jac) and orders(ravelled(jac(point.unravel(there), *self.args))):
            raise GradientError(
                f"{point.name}: jac refers to something that requires grad or is being "
                "differentiated, but what fun returns does not depend on it: write fun with "
                "array functions, without detach() or numbers, since derivatives follow from "
                "it; or detach() what jac refers to"
            )
        return result


def _flat(pair: Any) -> tuple[Any, Any]:
    return pair[0], ravelled(pair[1])


def _number(value: Any) -> float:
    return float(np.reshape(value, ()))


@entry
def minimize_scalar(
    fun: Callable[..., Any],
    bracket: Any = None,
    bounds: Any = None,
    args: Any = (),
    method: str | None = None,
    tol: float | None = None,
    options: Any = None,
    *,
    progress: bool = False,
    order: int | None = None,
) -> Any:
    """Minimize a function of one number, by scipy.optimize.minimize_scalar.

    fun       array-agnostic: fun(x, *args), with a 0-d array x, returns one real number
    bracket   two or three numbers or 0-d arrays
    bounds    a pair of numbers or 0-d arrays, including Tensors, for the method 'bounded'
    progress  show the evaluations of `fun` as a tqdm bar
    order     the highest order of derivatives of `x`; None: two more than the number of levels that
              differentiate the solution when it is computed. Inside `func.grad`, or for a Tensor
              that requires grad, that is one level, so derivatives exist up to the third

    The library is that of the first array in bracket, bounds or args, or the default backend.
    Returns SciPy's OptimizeResult, with `x` and `fun` as 0-d arrays. They are differentiable like
    the results of `minimize`, with an active bound as an equality.

    Raises as `minimize` does.
    """
    args = as_tuple(args)
    bounds = None if bounds is None else several("minimize_scalar", "bounds", bounds, 2)
    bracket = None if bracket is None else several("minimize_scalar", "bracket", bracket, 2, 3)
    ends = [*(bounds or ()), *(bracket or ())]
    bracket = None if bracket is None else [one(x, "minimize_scalar", "bracket") for x in bracket]
    start = (
        0.0
        if not ends
        else ends[0]
        if bounds is None
        else sum(float(numbers(constant(x)).ravel()[0]) for x in bounds) / 2
    )
    arrays = [
        x
        for x in (*ends, *args)
        if is_array(x) and mg.namespace(x).isdtype(x.dtype, "real floating")
    ]
    raw = innermost(arrays[0]) if arrays else innermost(mg.asarray(0.5))
    first = float(numbers(constant(start)).ravel()[0])
    x0 = mg.asarray(first, backend=backend_of(raw), dtype=raw.dtype, device=raw.device)
    point = Point(x0 if any(level_of(x) for x in arrays) else innermost(x0), "minimize_scalar")
    limits = None if bounds is None else as_limits(bounds[0], bounds[1], 1, point, "bounds")
    problem = _Problem(fun, args, False, point, limits, [])
    examples = problem.examples

    def solve(i: int, bar: Bar) -> Any:
        called = bar.counting(partial(point.called, examples, i, problem.value))
        box = None if limits is None else [float(examples.values(x)[i][0]) for x in limits]
        between = None if bracket is None else [float(numbers(constant(x))) for x in bracket]
        return scipy.optimize.minimize_scalar(
            lambda z: _number(called(np.reshape(z, (1,)))),
            bracket=between,
            bounds=box,
            method=method,
            tol=tol,
            options=options,
        )

    with Bar(progress, "minimize_scalar", "evaluations") as bar:
        results = [solve(i, bar) for i in range(examples.count)]
    for f in results:
        f.x = np.reshape(f.x, (1,))
    return problem.result(results, order)
