"""least_squares and curve_fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import scipy.optimize

import multigrad as mg
from multigrad import func

from .active import minimum
from .arguments import Point, as_tuple, ravelled
from .constraints import as_limits, dense
from .implicit import jacobian
from .levels import Examples, orders
from .progress import Bar
from .results import gathered

__all__ = ["least_squares"]


def _soft_l1(z: Any) -> Any:
    return mg.multiply(2.0, mg.subtract(mg.sqrt(mg.add(1.0, z)), 1.0))


def _huber(z: Any) -> Any:
    small = z <= 1.0
    return mg.where(small, z, mg.subtract(mg.multiply(2.0, mg.sqrt(mg.where(small, 1.0, z))), 1.0))


LOSSES: dict[str, Callable[[Any], Any]] = {"linear": lambda z: z, "soft_l1": _soft_l1, "huber": _huber, "cauchy": lambda z: mg.log1p(z),
                                           "arctan": lambda z: mg.atan(z)}
"""rho(z) of a squared residual z, as SciPy's manual defines it."""


def least_squares(fun: Callable[..., Any], x0: Any, jac: Any = None, bounds: Any = (-np.inf, np.inf), method: str = "trf", ftol: float | None = 1e-8,
                  xtol: float | None = 1e-8, gtol: float | None = 1e-8, x_scale: Any = None, loss: Any = "linear", f_scale: float = 1.0,
                  diff_step: Any = None, tr_solver: Any = None, tr_options: Any = None, jac_sparsity: Any = None, max_nfev: int | None = None,
                  verbose: int = 0, args: Any = (), kwargs: Mapping[str, Any] | None = None, callback: Any = None, workers: Any = None, *,
                  progress: bool = False, order: int | None = None) -> Any:
    """Minimize the sum of the squares of what a function returns, as scipy.optimize.least_squares, which does it.

    fun       array-agnostic: fun(x, *args, **kwargs) returns the residuals, an array or a nested structure of arrays
    x0        where to start: an array of any library, a Tensor, a nested structure of these, or nested lists of numbers; real, of any shape
    jac       a function as `fun` that returns the Jacobian, its last axes those of x0; or '2-point', '3-point', 'cs'. None: by func.jacfwd
    bounds    a pair of lower and upper bounds, or a scipy.optimize.Bounds: numbers, or arrays and nested structures as x0, Tensors among them
    loss      a name, or a function as SciPy takes it
    callback  called with x in the structure of x0, or with `intermediate_result`
    progress  show the evaluations of `fun` as a bar by tqdm
    order     the highest order of derivatives that `x` is to have; None: two more than there are levels that differentiate

    The others are SciPy's. Returns SciPy's OptimizeResult; `x` and `grad` have the structure of x0, `fun` that of what `fun` returns, and `cost`
    is an array; `jac` is SciPy's matrix. If anything that `fun` or the bounds refer to, or args, requires grad or is being differentiated by a
    transformation of `func`, then `x`, `fun`, `cost` and `grad` have its derivatives, by the implicit function theorem, with active bounds as equalities.

    Raises as `minimize` does; NotImplementedError where a derivative is wanted and `loss` is a function.
    """
    point = Point(x0, "least_squares")
    args, named = as_tuple(args), dict(kwargs or {})
    if not callable(loss) and loss not in LOSSES:
        raise ValueError(f"least_squares: loss must be a function or one of {', '.join(map(repr, LOSSES))}, not {loss!r}")
    lower, upper = (bounds.lb, bounds.ub) if hasattr(bounds, "lb") else bounds
    limits = as_limits(lower, upper, point.size, point, "bounds")

    def output(v: Any) -> Any:
        return fun(point.unravel(v), *args, **named)

    def residual(v: Any) -> Any:
        return ravelled(output(v))

    with mg.no_grad():
        start = point.given(point.start)
        examples = Examples([residual(start), start, *limits])
    settings = {"method": method, "ftol": ftol, "xtol": xtol, "gtol": gtol, "loss": loss, "f_scale": f_scale, "diff_step": diff_step,
                "tr_solver": tr_solver, "tr_options": tr_options, "jac_sparsity": jac_sparsity, "max_nfev": max_nfev, "verbose": verbose,
                "workers": workers, "x_scale": x_scale}

    def solve(i: int, bar: Bar) -> Any:
        called = partial(point.called, examples, i)
        slope = jac
        if jac is None:
            slope = partial(called, lambda v: jacobian(residual, v))
        elif callable(jac):
            slope = lambda z: dense(called(lambda v: jac(point.unravel(v), *args, **named), z), point.size)
        box = tuple(examples.values(x)[i] for x in limits)
        told = point.told(callback)
        more = {} if told is None else {"callback": told}
        return scipy.optimize.least_squares(bar.counting(partial(called, residual)), examples.values(point.start)[i], jac=slope, bounds=box,
                                            **settings, **more)

    with Bar(progress, "least_squares", "evaluations") as bar:
        found = [solve(i, bar) for i in range(examples.count)]
    result = gathered(found, point, examples, ("x", "cost", "grad"), ("x", "grad"))
    numbers = np.stack([f.x for f in found]) if found else np.zeros((0, point.size))

    def cost(v: Any) -> Any:
        if callable(loss):
            raise NotImplementedError("least_squares: a solution of a loss that is a function has no derivative; pass the loss by name, or call minimize")
        z = mg.square(mg.multiply(residual(v), 1.0 / f_scale))
        return mg.multiply(mg.sum(LOSSES[loss](z)), 0.5 * f_scale**2)

    bounded = any(orders(x) or np.isfinite(examples.values(x)).any() for x in limits)
    x = None
    if orders(residual(examples.array(numbers, point.raw))) or any(map(orders, limits)):
        x = minimum(func.grad(cost), numbers, point, examples, limits=limits if bounded else None, constraints=(), order=order,
                    message=str(result.message))
    if x is not None:
        result.update(x=point.unravel(x), cost=cost(x), grad=point.unravel(func.grad(cost)(x)))
    result.fun = output(point.given(examples.array(numbers, point.raw)) if x is None else x)
    return result
