"""Least-squares solvers: least_squares and curve_fit."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import scipy.optimize

import multigrad as mg
from multigrad import func
from multigrad.extend import entry, innermost, is_array, level_of

from .active import minimum
from .arguments import Point, as_tuple, beside, ravelled, sides
from .constraints import as_limits, dense
from .filled import Evaluated
from .implicit import jacobian
from .levels import Examples, backend_of, constant, numbers, one, orders
from .progress import Bar
from .results import gathered

__all__ = ["curve_fit", "least_squares"]


def _soft_l1(z: Any) -> Any:
    return mg.multiply(2.0, mg.subtract(mg.sqrt(mg.add(1.0, z)), 1.0))


def _huber(z: Any) -> Any:
    small = z <= 1.0
    return mg.where(small, z, mg.subtract(mg.multiply(2.0, mg.sqrt(mg.where(small, 1.0, z))), 1.0))


LOSSES: dict[str, Callable[[Any], Any]] = {
    "linear": lambda z: z,
    "soft_l1": _soft_l1,
    "huber": _huber,
    "cauchy": lambda z: mg.log1p(z),
    "arctan": lambda z: mg.atan(z),
}
"""rho(z) of a squared residual z, as in SciPy's manual."""


class Loss:
    """A loss function with its scale; raises if it has no derivative and one is wanted."""

    def __init__(self, solver: str, loss: Any, f_scale: Any) -> None:
        if not callable(loss) and loss not in LOSSES:
            raise ValueError(
                f"{solver}: loss must be a function or one of {', '.join(map(repr, LOSSES))}, not "
                f"{loss!r}"
            )
        if orders(f_scale):
            raise NotImplementedError(
                f"{solver}: f_scale requires grad or is being differentiated, but the solution has "
                "no derivative with respect to it; detach() it, or call minimize"
            )
        self.solver, self.name, self.scale = solver, loss, float(numbers(f_scale))

    def rho(self, z: Any) -> Any:
        if callable(self.name):
            raise NotImplementedError(
                f"{self.solver}: if loss is a function, the solution has no derivative; pass the "
                "loss by name, or call minimize"
            )
        return LOSSES[self.name](z)

    def squares(self, residuals: Any) -> Any:
        return mg.square(mg.multiply(residuals, 1.0 / self.scale))

    def cost(self, residuals: Any) -> Any:
        return mg.multiply(mg.sum(self.rho(self.squares(residuals))), 0.5 * self.scale**2)

    def weights(self, residuals: Any) -> Any:
        """Return the factors of the rows of J^T J in SciPy's Gauss-Newton matrix of the cost."""
        z = self.squares(residuals)
        first = func.grad(lambda z: mg.sum(self.rho(z)))
        second = func.grad(lambda z: mg.sum(first(z)))
        return mg.maximum(
            mg.add(first(z), mg.multiply(mg.multiply(second(z), z), 2.0)), np.finfo(float).eps
        )


@entry
def least_squares(
    fun: Callable[..., Any],
    x0: Any,
    jac: Any = None,
    bounds: Any = (-np.inf, np.inf),
    method: str = "trf",
    ftol: float | None = 1e-8,
    xtol: float | None = 1e-8,
    gtol: float | None = 1e-8,
    x_scale: Any = None,
    loss: Any = "linear",
    f_scale: float = 1.0,
    diff_step: Any = None,
    tr_solver: Any = None,
    tr_options: Any = None,
    jac_sparsity: Any = None,
    max_nfev: int | None = None,
    verbose: int = 0,
    args: Any = (),
    kwargs: Mapping[str, Any] | None = None,
    callback: Any = None,
    workers: Any = None,
    *,
    progress: bool = False,
    order: int | None = None,
) -> Any:
    """Minimize the sum of squares of a function's results, by scipy.optimize.least_squares.

    fun       array-agnostic: fun(x, *args, **kwargs) returns the residuals, an array or a nested
              structure of arrays
    x0        the start: an array of any library, a Tensor, a nested structure of these, or nested
              lists of numbers; real, of any shape
    jac       a function like `fun` that returns the Jacobian, whose last axes are those of x0; or
              '2-point' or '3-point' for SciPy's differences. None: func.jacfwd
    bounds    a pair of lower and upper bounds, or a scipy.optimize.Bounds: numbers, or arrays and
              nested structures like x0, including Tensors
    loss      a name, or a function in SciPy's form
    callback  called with x in the structure of x0, or with `intermediate_result`
    progress  show the evaluations of `fun` as a tqdm bar
    order     the highest order of derivatives of `x`; None: two more than the number of levels that
              differentiate the solution when it is computed. Inside `func.grad`, or for a Tensor
              that requires grad, that is one level, so derivatives exist up to the third

    The other parameters are SciPy's. Returns SciPy's OptimizeResult: `x` and `grad` have the
    structure of x0, `fun` has that of the result of `fun`, `cost` is an array, and `jac` is SciPy's
    matrix.

    `x`, `fun`, `cost` and `grad` are differentiable, by the implicit function theorem, with active
    bounds as equalities. They have derivatives if args, or anything that `fun` or the bounds refer
    to, requires grad or is being differentiated by a transformation of `func`.

    Raises as `minimize` does. Raises NotImplementedError if a derivative is wanted and `loss` is a
    function, or if the derivative is with respect to `f_scale`.
    """
    point = Point(x0, "least_squares")
    args, named = as_tuple(args), dict(kwargs or {})
    robust = Loss("least_squares", loss, f_scale)
    lower, upper = sides("least_squares", bounds)
    limits = as_limits(lower, upper, point.size, point, "bounds")

    def output(v: Any) -> Any:
        return fun(point.unravel(v), *beside(v, args), **named)

    def residual(v: Any) -> Any:
        return ravelled(output(v))

    examples = Examples([point.first(residual), point.start, *limits])
    settings = {
        "method": method,
        "ftol": ftol,
        "xtol": xtol,
        "gtol": gtol,
        "loss": loss,
        "f_scale": robust.scale,
        "diff_step": diff_step,
        "tr_solver": tr_solver,
        "tr_options": tr_options,
        "jac_sparsity": jac_sparsity,
        "max_nfev": max_nfev,
        "verbose": verbose,
        "workers": workers,
        "x_scale": x_scale,
    }

    def solve(i: int, bar: Bar) -> Any:
        function = Evaluated(point, examples, i, residual)
        called, slope = function.called, jac
        if jac is None:
            slope = function.derivative(partial(jacobian, residual))
        elif callable(jac):
            slope = lambda z: dense(
                called(lambda v: jac(point.unravel(v), *args, **named), z), point.size
            )
        box = tuple(examples.values(x)[i] for x in limits)
        told = point.told(callback)
        more = {} if told is None else {"callback": told}
        return point.confirmed(
            scipy.optimize.least_squares(
                bar.counting(function),
                examples.values(point.start)[i],
                jac=slope,
                bounds=box,
                **settings,
                **more,
            )
        )

    with Bar(progress, "least_squares", "evaluations") as bar:
        results = [solve(i, bar) for i in range(examples.count)]
    result = gathered(results, point, examples, ("x", "cost", "grad"), ("x", "grad"))
    at = np.stack([f.x for f in results]) if results else np.zeros((0, point.size))

    def cost(v: Any) -> Any:
        return robust.cost(residual(v))

    bounded = any(orders(x) or np.isfinite(examples.values(x)).any() for x in limits)
    x = point.given(examples.array(at, point.raw))
    if any(map(orders, (residual(x), *limits))):
        x = minimum(
            func.grad(cost),
            at,
            point,
            examples,
            limits=limits if bounded else None,
            constraints=(),
            order=order,
            message=str(result.message),
        )
        result.update(x=point.unravel(x), cost=cost(x), grad=point.unravel(func.grad(cost)(x)))
    result.fun = point.result(output(x))
    return result


@entry
def curve_fit(
    f: Callable[..., Any],
    xdata: Any,
    ydata: Any,
    p0: Any = None,
    sigma: Any = None,
    absolute_sigma: bool = False,
    check_finite: bool | None = None,
    bounds: Any = (-np.inf, np.inf),
    method: str | None = None,
    jac: Any = None,
    *,
    full_output: bool = False,
    nan_policy: str | None = None,
    progress: bool = False,
    order: int | None = None,
    **kwargs: Any,
) -> Any:
    """Fit the parameters of a function to data by least squares, by scipy.optimize.curve_fit.

    f         array-agnostic: f(xdata, *parameters), where each parameter is a 0-d array, returns an
              array with as many elements as ydata
    xdata     any argument that `f` takes
    ydata     an array of any library, of shape (m,)
    p0        the start: a vector or a list of numbers; None: ones, or a point inside the bounds
    sigma     the uncertainty of ydata: a number, an array of shape (m,), or its covariance matrix
              of shape (m, m)
    jac       a function like `f` that returns the Jacobian of shape (m, n); or '2-point' or
              '3-point' for SciPy's differences. None: func.jacfwd
    progress  show the evaluations of `f` as a tqdm bar
    order     the highest order of derivatives of the parameters; None: two more than the number of
              levels that differentiate the solution when it is computed. Inside `func.grad`, or for
              a Tensor that requires grad, that is one level, so derivatives exist up to the third

    The other parameters are SciPy's. Returns (popt, pcov), arrays of ydata's library of shapes (n,)
    and (n, n); with full_output also SciPy's infodict, message and flag.

    popt and pcov are differentiable, by the implicit function theorem, with active bounds as
    equalities. They have derivatives if xdata, ydata, sigma, the bounds or anything that `f` refers
    to requires grad or is being differentiated by a transformation of `func`.

    Raises as `minimize` does, as `least_squares` for `loss` and `f_scale`, and NotImplementedError
    for nan_policy='omit'.
    """
    if nan_policy not in (None, "raise", "omit"):
        raise ValueError(
            f"curve_fit: nan_policy must be None, 'raise' or 'omit', not {nan_policy!r}"
        )
    if nan_policy == "omit":
        raise NotImplementedError(
            "curve_fit: nan_policy='omit' is not supported; select the data before: "
            "xdata[~isnan(ydata)]"
        )
    y = _floating(ydata)
    numbers(constant(y))  # raises TypeError for a tracer
    raw = innermost(y)
    p0 = _start(f, bounds) if p0 is None else numbers(one(ravelled(p0), "curve_fit", "p0"))
    parameters = [
        innermost(mg.asarray(p, backend=backend_of(raw), dtype=raw.dtype, device=raw.device))
        for p in p0.tolist()
    ]
    point = Point(
        tuple(map(mg.asarray, parameters)) if level_of(y) else tuple(parameters), "curve_fit"
    )
    lower, upper = sides("curve_fit", bounds)
    limits = as_limits(lower, upper, point.size, point, "bounds")
    robust = Loss("curve_fit", kwargs.get("loss", "linear"), kwargs.get("f_scale", 1.0))
    if "f_scale" in kwargs:
        kwargs["f_scale"] = robust.scale
    if check_finite in (None, True) or nan_policy == "raise":
        _check_finite(xdata, y)
    weight = _weight(sigma, y.shape[0], point)

    def model(v: Any) -> Any:
        out = ravelled(f(*beside(v, (xdata,)), *point.unravel(v)))
        if out.shape != y.shape:
            raise ValueError(
                f"curve_fit: f returns {out.shape[0]} elements for the {y.shape[0]} of ydata"
            )
        return out

    def residual(v: Any) -> Any:
        return weight(mg.subtract(model(v), y))

    examples = Examples([point.first(residual), *limits])
    bounded = any(orders(x) or np.isfinite(examples.values(x)).any() for x in limits)

    def solve(i: int, bar: Bar) -> Any:
        function = Evaluated(point, examples, i, residual)
        slope = jac
        if jac is None:
            filled = function.derivative(partial(jacobian, residual))
            slope = lambda _, *p: filled(p)
        elif callable(jac):
            slope = lambda _, *p: function.called(
                lambda v: _columns(weight, jac(xdata, *point.unravel(v)), point.size), p
            )
        fitted = bar.counting(lambda _, *p: function(p))
        box = tuple(examples.values(x)[i] for x in limits)
        return point.confirmed(
            scipy.optimize.curve_fit(
                fitted,
                np.arange(y.shape[0]),
                np.zeros(y.shape[0]),
                p0=p0,
                absolute_sigma=absolute_sigma,
                check_finite=check_finite,
                bounds=box,
                method=method,
                jac=slope,
                full_output=True,
                **kwargs,
            )
        )

    with Bar(progress, "curve_fit", "evaluations") as bar:
        results = [solve(i, bar) for i in range(examples.count)]
    popt, pcov = (np.stack([f[k] for f in results]) for k in range(2))
    fit = None
    if any(map(orders, (residual(point.given(examples.array(popt, raw))), *limits))):
        fit = minimum(
            func.grad(lambda v: robust.cost(residual(v))),
            popt,
            point,
            examples,
            limits=limits if bounded else None,
            constraints=(),
            order=order,
            message=str(results[0][3]),
        )
    if fit is None:
        out = point.returned(examples.array(popt, raw)), point.returned(examples.array(pcov, raw))
    else:
        out = fit, _covariance(residual, fit, absolute_sigma, robust)
    return (*out, *results[0][2:]) if full_output else out


def _start(f: Callable[..., Any], bounds: Any) -> Any:
    """Return SciPy's default start: ones, or a point inside the bounds."""
    parameters = inspect.signature(f).parameters.values()
    if any(p.kind is p.VAR_POSITIONAL for p in parameters) or len(parameters) < 2:
        raise ValueError("curve_fit: the number of parameters cannot be told from f; pass p0")
    n = len(parameters) - 1
    lower, upper = sides("curve_fit", bounds)
    low, high = (
        np.broadcast_to(
            numbers(one(ravelled(x), "curve_fit", "p0 follows from bounds, and one")), (n,)
        )
        for x in (lower, upper)
    )
    finite = np.isfinite(low), np.isfinite(high)
    low, high = (np.where(known, x, 0.0) for known, x in zip(finite, (low, high), strict=True))
    return np.where(
        finite[0] & finite[1],
        (low + high) / 2,
        np.where(finite[0], low + 1, np.where(finite[1], high - 1, 1.0)),
    )


def _floating(ydata: Any) -> Any:
    """Return the data as a floating vector; a list of numbers uses the default backend."""
    y = ravelled(ydata)
    y = y if is_array(ydata) or level_of(y) > 1 or y.requires_grad else innermost(y)
    xp = mg.namespace(y)
    if xp.isdtype(y.dtype, "complex floating"):
        raise TypeError(
            "curve_fit: ydata is complex; fit the real and the imaginary part as one real vector"
        )
    if xp.isdtype(y.dtype, "real floating"):
        return y
    y = xp.astype(y, xp.__array_namespace_info__().default_dtypes()["real floating"])
    return y if level_of(ydata) else innermost(y)


def _check_finite(*data: Any) -> None:
    for x in data:
        if is_array(x) and not np.isfinite(numbers(constant(x))).all():
            raise ValueError("curve_fit: the data must not contain infs or NaNs")


def _weight(sigma: Any, m: int, point: Point) -> Callable[[Any], Any]:
    """Return a function that divides residuals by their uncertainty.

    Its argument is a vector, or a matrix whose columns are vectors.
    """
    if sigma is None:
        return lambda r: r
    if not is_array(sigma) or not level_of(sigma):
        sigma = point.vector(numbers(sigma))
    if sigma.ndim == 2 and tuple(sigma.shape) == (m, m):
        root = mg.linalg.cholesky(sigma)
        return lambda r: mg.linalg.solve(root, r)
    if tuple(sigma.shape) not in ((), (1,), (m,)):
        raise ValueError(
            f"curve_fit: sigma has shape {tuple(sigma.shape)}; expected ({m},) or ({m}, {m})"
        )
    return lambda r: mg.divide(r, sigma if r.ndim == 1 else mg.reshape(sigma, (-1, 1)))


def _columns(weight: Callable[[Any], Any], matrix: Any, n: int) -> Any:
    return weight(mg.reshape(mg.asarray(matrix), (-1, n)))


def _covariance(residual: Callable[[Any], Any], fit: Any, absolute: bool, robust: Loss) -> Any:
    """Return the covariance of the parameters, the inverse of J^T J.

    If the uncertainty is relative, it is multiplied by the variance of the residuals.
    """
    j, r = jacobian(residual, fit), residual(fit)
    columns = j if robust.name == "linear" else mg.multiply(j, robust.weights(r)[:, None])
    covariance = mg.linalg.inv(mg.matmul(mg.matrix_transpose(j), columns))
    if absolute:
        return covariance
    free = r.shape[0] - fit.shape[0]
    return (
        mg.multiply(covariance, mg.divide(mg.multiply(robust.cost(r), 2.0), free))
        if free > 0
        else mg.full_like(covariance, np.inf)
    )
