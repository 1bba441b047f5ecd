"""minimize and minimize_scalar."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.optimize

import multigrad as mg
from multigrad import func
from multigrad.errors import GradientError
from multigrad.extend import innermost, is_array, level_of

from .active import minimum
from .arguments import Point, as_tuple, ravelled
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
"""The methods that take a gradient, those that need a Hessian, and those that do with its
products.
"""


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
    """Minimize a function of one array or of a nested structure of arrays, as
    scipy.optimize.minimize, which does it.

    fun          array-agnostic: fun(x, *args) returns one real number; with jac=True that and the
                 gradient
    x0           where to start: an array of any library, a Tensor, a nested structure of these, or
                 nested lists of numbers; real, of any shape
    jac          a function as `fun` that returns the gradient in the structure of x0; True; or
                 '2-point' or '3-point', SciPy's differences, as False. None: by func.grad
    hess, hessp  likewise: functions that return the Hessian and its product with p, or what SciPy
                 takes besides. Where the method uses one and none is given, by func.hessian and
                 func.hvp
    bounds       a scipy.optimize.Bounds or pairs (min, max); in lb and ub nested structures may
                 stand, and Tensors
    constraints  as SciPy takes them; Jacobians and Hessians that are not given (jac of '2-point',
                 hess of BFGS()) are filled in
    callback     called with x in the structure of x0, or with `intermediate_result`, whose x has it
    progress     show the iterations as a bar by tqdm
    order        the highest order of derivatives that `x` is to have; None: two more than there are
                 levels that differentiate

    Returns SciPy's OptimizeResult; `x` and `jac` have the structure of x0, `fun` is an array of its
    library. If anything that `fun`, the bounds or the constraints refer to, or args, requires grad
    or is being differentiated by a transformation of `func`, then `x`, `fun` and `jac` have its
    derivatives, by the implicit function theorem, with active bounds and constraints as equalities.
    There `x` is the minimum to working precision. x0 only says where to start: nothing is
    differentiated by it.

    Raises TypeError or ValueError if x0 or the limits have the wrong dtype or shape, and whatever
    SciPy's minimize raises. Raises GradientError if a derivative is asked of a point at which the
    solver stopped without reaching a minimum, or of a minimum that is not unique; ImportError if
    `progress` is set and tqdm is not installed.
    """
    point = Point(x0, "minimize")
    args = as_tuple(args)
    limits = box(bounds, point)
    held = read(constraints, point)
    problem = _Problem(fun, args, jac is True, point, limits, held)
    method = method or ("SLSQP" if held else "L-BFGS-B" if limits is not None else "BFGS")
    with Bar(progress, "minimize", "iterations") as bar:
        found = [
            problem.solve(i, method, jac, hess, hessp, tol, callback, options, bar)
            for i in range(problem.examples.count)
        ]
    return problem.result(found, order, jac)


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
        """The product of the Hessian at v with p."""
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
        """The products of the Hessian, which is its own transpose, with vectors: by one pullback of
        the gradient for all at a point.
        """
        last: list[Any] = []

        def product(z: Any, p: Any) -> Any:
            if not last or not np.array_equal(last[0], z):
                with mg.no_grad():
                    last[:] = np.array(z), func.vjp(self.gradient, self.point.array(z))
            _, pullback = last[1]
            return called(lambda v: pullback(v)[0], p)

        return product

    def result(self, found: list[Any], order: int | None, jac: Any = None) -> Any:
        point, examples = self.point, self.examples
        # trust-constr has the Jacobians of constraints in jac
        slope = "grad" if found and "grad" in found[0] else "jac"
        result = gathered(found, point, examples, ("x", "fun", slope), ("x", slope))
        at = np.stack([f.x for f in found]) if found else np.zeros((0, point.size))
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
    """Minimize a function of one number, as scipy.optimize.minimize_scalar, which does it.

    fun       array-agnostic: fun(x, *args), with an array x without axes, returns one real number
    bracket   two or three numbers or arrays without axes
    bounds    a pair of them, for the method 'bounded'; Tensors among them
    progress  show the evaluations of `fun` as a bar by tqdm
    order     the highest order of derivatives that `x` is to have; None: two more than there are
              levels that differentiate

    The arrays are of the library of the first array in bracket, bounds or args, else of the default
    backend. Returns SciPy's OptimizeResult, with `x` and `fun` as arrays without axes. They have
    derivatives as those of `minimize` do, with a bound that is active as an equality.

    Raises as `minimize` does.
    """
    args = as_tuple(args)
    ends = [*(() if bounds is None else bounds), *(() if bracket is None else bracket)]
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
        found = [solve(i, bar) for i in range(examples.count)]
    for f in found:
        f.x = np.reshape(f.x, (1,))
    return problem.result(found, order)
