"""The plugins multigrad-special and multigrad-scipy, compared with code that uses SciPy alone.

Special functions: a forward and a backward pass, the gradient of sum(f(x) * c) with respect to one
argument, in float64. The comparison is SciPy's function, and the derivative in closed form by
SciPy's functions. Hand-written densities are short and lose digits if parameters are large; the
rules keep these digits, which explains their higher ratios. If there is no closed form, the
comparison evaluates SciPy's function three times: the value and a central difference, which has
half of the digits.

Solvers: the comparison is SciPy's solver with hand-written derivatives, and with SciPy's two-point
differences.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
from measure import HAND, OURS, Aim, Case

import multigrad as mg

SPECIAL, SOLVERS = "special functions", "solvers"
DIFFERENCES = "differences"
COUNT = 10_000
Run = Callable[[], list[Any]]


def special_cases(count: int = COUNT) -> Iterator[Case]:
    """Yield the cases of special functions.

    A row has the name, the position of the differentiated argument, the derivative by hand, and the
    arguments.
    """
    s = importlib.import_module("scipy.special")
    random = np.random.default_rng(0)
    x, a, p = (
        random.uniform(0.5, 6.0, count),
        random.uniform(0.5, 6.0, count),
        random.uniform(0.05, 0.95, count),
    )
    rows: list[tuple[str, int, Any, tuple[Any, ...], float]] = [
        ("erf", 0, lambda x: 2 / np.sqrt(np.pi) * np.exp(-x * x), (x,), 1.3),
        ("gammaln", 0, lambda x: s.digamma(x), (x,), 1.2),
        ("xlogy", 0, lambda x, y: np.log(y), (x, a), 2.5),
        ("j0", 0, lambda x: -s.j1(x), (x,), 1.4),
        (
            "ive",
            1,
            lambda v, x: 0.5 * (s.ive(v - 1, x) + s.ive(v + 1, x)) - np.sign(x) * s.ive(v, x),
            (2.0, x),
            2.5,
        ),
        ("gammainc", 1, lambda a, x: np.exp((a - 1) * np.log(x) - x - s.gammaln(a)), (a, x), 2.2),
        (
            "betainc",
            2,
            lambda a, b, x: np.exp((a - 1) * np.log(x) + (b - 1) * np.log1p(-x) - s.betaln(a, b)),
            (a, x, p),
            4.0,
        ),
        (
            "gammaincinv",
            1,
            lambda a, y: np.exp(s.gammaln(a) + (z := s.gammaincinv(a, y)) - (a - 1) * np.log(z)),
            (a, p),
            6.0,
        ),
    ]
    for name, i, slope, arguments, limit in rows:
        yield _case(
            name,
            i,
            arguments,
            {HAND: partial(_by_hand, getattr(s, name), slope, arguments)},
            [Aim(HAND, limit)],
        )
    for name, i, arguments, limit in (
        ("gammainc", 0, (a, x), 60.0),
        ("betainc", 0, (a, x, p), 60.0),
    ):
        peer = partial(_by_difference, getattr(s, name), i, arguments)
        yield _case(
            name, i, arguments, {DIFFERENCES: peer}, [Aim(DIFFERENCES, limit)], tolerance=1e-6
        )


def _case(
    name: str,
    i: int,
    arguments: tuple[Any, ...],
    peers: dict[str, Run],
    aims: list[Aim],
    tolerance: float = 1e-9,
) -> Case:
    parameter = list(signature(getattr(mg.special, name)).parameters)[i]
    return Case(
        SPECIAL,
        f"{name} by {parameter}, {len(arguments[i]):,} elements",
        1,
        {OURS: _by_rule(name, i, arguments), **peers},
        aims,
        tolerance,
    )


def _by_rule(name: str, i: int, arguments: tuple[Any, ...]) -> Run:
    function, given = getattr(mg.special, name), [mg.asarray(v) for v in arguments]

    def run() -> list[Any]:
        values = list(given)
        values[i] = given[i].detach().requires_grad_()
        return [mg.autograd.grad(mg.sum(function(*values)), values[i])[0].array]

    return run


def _by_hand(function: Any, slope: Any, arguments: tuple[Any, ...]) -> list[Any]:
    np.sum(function(*arguments))
    return [slope(*arguments)]


def _by_difference(function: Any, i: int, arguments: tuple[Any, ...]) -> list[Any]:
    step = 6e-6 * arguments[i]
    np.sum(function(*arguments))
    above, below = (
        function(*arguments[:i], arguments[i] + d, *arguments[i + 1 :]) for d in (step, -step)
    )
    return [(above - below) / (2 * step)]


# ----- solvers -----


def solver_cases(size: int = 20) -> Iterator[Case]:
    optimize, ours = (
        importlib.import_module("scipy.optimize"),
        importlib.import_module("multigrad_scipy"),
    )
    start = np.full(size, 0.3)
    for method in ("BFGS", "Newton-CG"):
        peers = {
            HAND: lambda method=method: [
                optimize.minimize(
                    optimize.rosen,
                    start,
                    method=method,
                    jac=optimize.rosen_der,
                    hess=optimize.rosen_hess if method == "Newton-CG" else None,
                ).x
            ],
            OURS: lambda method=method: [
                np.asarray(ours.minimize(_rosenbrock, start, method=method).x)
            ],
        }
        if method == "BFGS":
            peers[DIFFERENCES] = lambda: [optimize.minimize(optimize.rosen, start, method="BFGS").x]
        yield Case(
            SOLVERS,
            f"minimize, {method}, Rosenbrock of {size}",
            1,
            peers,
            [Aim(HAND, 6.0 if method == "BFGS" else 10.0)],
            tolerance=1e-3,
        )
    yield _ridge(optimize, ours)


def _rosenbrock(x: Any) -> Any:
    xp = mg.namespace("numpy") if isinstance(x, np.ndarray) else x.__array_namespace__()
    return xp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def _ridge(optimize: Any, ours: Any) -> Case:
    """Return the derivative of a penalized least-squares fit with respect to the penalty.

    The comparison is a central difference of the solver.
    """
    random = np.random.default_rng(0)
    matrix, target = random.normal(size=(200, 10)), random.normal(size=200)

    def loss(w: Any, penalty: Any) -> Any:
        residual = matrix @ w - target
        return residual @ residual + penalty * (w @ w)

    def slope(w: Any, penalty: float) -> Any:
        return 2 * matrix.T @ (matrix @ w - target) + 2 * penalty * w

    def solved(penalty: float) -> Any:
        return optimize.minimize(
            loss, np.zeros(10), args=(penalty,), jac=slope, method="BFGS", tol=1e-10
        ).x

    def derivative(penalty: Any) -> Any:
        x = ours.minimize(loss, np.zeros(10), args=(penalty,), method="BFGS", tol=1e-10).x
        return x @ x

    peers = {
        DIFFERENCES: lambda: [
            (solved(2.0 + 1e-3) @ solved(2.0 + 1e-3) - solved(2.0 - 1e-3) @ solved(2.0 - 1e-3))
            / 2e-3
        ],
        OURS: lambda: [np.asarray(mg.func.grad(derivative)(np.asarray(2.0)))],
    }
    return Case(
        SOLVERS,
        "the derivative of a ridge fit by its penalty",
        1,
        peers,
        [Aim(DIFFERENCES, 2.0)],
        tolerance=1e-4,
    )
