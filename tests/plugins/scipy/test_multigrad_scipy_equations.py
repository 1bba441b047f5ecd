"""multigrad-scipy's root, least_squares, curve_fit, linear_solve and solve_ivp: SciPy's results,
and derivatives against closed forms.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pytest_runs import run_page

import multigrad as mg
from multigrad import func
from multigrad.errors import GradientError
from multigrad.extend import raw_namespace

scipy_optimize = pytest.importorskip("scipy.optimize", reason="SciPy is not installed")

import scipy.integrate  # noqa: E402

from multigrad_conformance.differences import jacobian as differences  # noqa: E402
from multigrad_scipy import curve_fit, least_squares, linear_solve, minimize, root, solve_ivp  # noqa: E402

Function = Callable[..., Any]
T = np.array([1.0, 2.0])
RNG = np.random.default_rng(0)
DESIGN, DATA = RNG.normal(size=(10, 3)), RNG.normal(size=10)
HAT = DESIGN @ np.linalg.inv(DESIGN.T @ DESIGN) @ DESIGN.T


# ----- root -----


def cubic(t: Any) -> Any:
    """The real root of x**3 + t0 x - t1."""
    return root(lambda x: x**3 + t[0] * x - t[1], np.ones(1)).x[0]


def cardano(t: Any) -> Any:
    d = mg.sqrt(t[1] ** 2 / 4 + t[0] ** 3 / 27)
    cube = lambda x: mg.sign(x) * mg.abs(x) ** (1 / 3)
    return cube(t[1] / 2 + d) + cube(t[1] / 2 - d)


def test_roots_of_cubics_to_third_order() -> None:
    np.testing.assert_allclose(cubic(T), float(cardano(T)), rtol=1e-12)
    ours, theirs = cubic, cardano
    for order in range(3):
        ours, theirs = (
            (func.jacfwd(ours) if order else func.grad(ours)),
            (func.jacfwd(theirs) if order else func.grad(theirs)),
        )
        np.testing.assert_allclose(ours(T), theirs(T), rtol=1e-9)
    rows = np.stack([T, 3 * T, T + 1])
    np.testing.assert_allclose(
        func.vmap(func.hessian(cubic))(rows), func.vmap(func.hessian(cardano))(rows), rtol=1e-9
    )


def test_a_system_and_its_inverse_function() -> None:
    """The Jacobian of the root of f(x) = t by t is the inverse of that of f, and the second
    derivative follows.
    """
    f = lambda x: mg.stack([mg.exp(x[0]) + x[1], x[0] * x[1] ** 2 + mg.sin(x[1])])
    x = np.array([0.3, 0.7])
    t = np.asarray(f(x))
    solve = lambda t: root(lambda x: f(x) - t, x + 0.1, tol=1e-12).x
    inverse = np.linalg.inv(func.jacrev(f)(x))
    for jacobian in (func.jacrev, func.jacfwd):
        np.testing.assert_allclose(jacobian(solve)(t), inverse, rtol=1e-10)
    second = -np.einsum(
        "ai,ijk,jb,kc->abc", inverse, func.jacfwd(func.jacrev(f))(x), inverse, inverse
    )
    np.testing.assert_allclose(func.jacfwd(func.jacrev(solve))(t), second, rtol=1e-8)


@pytest.mark.parametrize(
    "method", ["hybr", "lm", "broyden1", "broyden2", "anderson", "diagbroyden", "krylov", "df-sane"]
)
def test_every_method(method: str) -> None:
    f = lambda x, t: x**2 + 0.1 * mg.roll(x, 1) - t
    result = root(f, np.full(2, 1.2), args=(T,), method=method)
    assert result.success and type(result.x) is np.ndarray and type(result.fun) is np.ndarray
    np.testing.assert_allclose(result.fun, 0.0, atol=1e-5)
    x = result.x
    np.testing.assert_allclose(
        func.jacrev(lambda t: root(f, np.full(2, 1.2), args=(t,), method=method).x)(T),
        np.linalg.inv(2 * np.diag(x) + 0.1 * np.eye(2)[::-1]),
        rtol=1e-4,
    )


def test_jacobians_given_and_filled_in() -> None:
    f = lambda x: x**2 - T
    filled, none = root(f, np.ones(2)), root(f, np.ones(2), jac=False)
    assert filled.njev >= 1 and filled.nfev < none.nfev
    for result in (
        filled,
        none,
        root(f, np.ones(2), jac=lambda x: mg.asarray(np.diag([2.0, 2.0])) * x),
        root(lambda x: (f(x), np.diag([2.0, 2.0]) * x), np.ones(2), jac=True),
    ):
        np.testing.assert_allclose(result.x, np.sqrt(T))
    seen: list[Any] = []
    root(
        lambda x: {"b": x["a"] ** 2 - T},
        {"a": np.ones(2)},
        method="broyden1",
        callback=lambda x, f: seen.append((x, f)),
    )
    assert seen and set(seen[0][0]) == {"a"} and seen[0][1].shape == (2,)
    tree = root(lambda x: {"b": x["a"] ** 2 - T}, {"a": np.ones(2)})
    np.testing.assert_allclose(tree.x["a"], np.sqrt(T))
    assert set(tree.fun) == {"b"}


def test_more_equations_than_unknowns() -> None:
    residual = lambda x, t: mg.concat([x * t, x - 1.0, x**2 - 2.0])
    by_root = lambda t: root(residual, np.full(2, 1.2), args=(t,), method="lm", tol=1e-14).x
    by_fit = lambda t: least_squares(residual, np.full(2, 1.2), args=(t,)).x
    np.testing.assert_allclose(by_root(T), by_fit(T), rtol=1e-6)
    np.testing.assert_allclose(func.jacrev(by_root)(T), func.jacrev(by_fit)(T), atol=1e-10)


@pytest.mark.parametrize(
    "backend", ["numpy", "strict", pytest.param("jax", marks=pytest.mark.sweep)], indirect=True
)
def test_arrays_of_every_backend(backend: str) -> None:
    xp = raw_namespace(backend)
    t = xp.asarray([1.0, 2.0], dtype=xp.float64)
    x0 = xp.ones((2,), dtype=xp.float64)
    calls: dict[str, Function] = {
        "root": lambda t: root(lambda x: x**3 + x * t - 2.0, x0).x,
        "least_squares": lambda t: least_squares(lambda x: x**3 + x * t - 2.0, x0).x,
        "bounded": lambda t: (
            least_squares(lambda x: x**3 + x * t - 2.0, 0.5 * x0, bounds=(0.0, [2.0, 0.7])).x
        ),
        "curve_fit": lambda t: curve_fit(lambda x, a, b: x * a + b, t + x0 * 2.0, t)[0],
        "linear_solve": lambda t: linear_solve(lambda v: v * t + v, t),
    }
    for name, solve in calls.items():
        result = solve(t)
        assert type(result) is type(t), name
        plain = differences(
            lambda z, solve=solve: mg.asarray(solve(xp.asarray(z, dtype=xp.float64))).numpy(),
            np.array([1.0, 2.0]),
        )
        for jacobian in (func.jacrev, func.jacfwd):
            found = jacobian(solve)(t)
            assert type(found) is type(t), name
            np.testing.assert_allclose(mg.asarray(found).numpy(), plain, atol=1e-6, err_msg=name)
    ivp = solve_ivp(lambda s, y: y * t, (0.0, 1.0), x0, method="Radau")
    assert type(ivp.y) is type(t) and ivp.njev >= 1
    np.testing.assert_allclose(mg.asarray(ivp.y).numpy()[:, -1], np.exp([1.0, 2.0]), rtol=5e-3)


def test_what_is_refused() -> None:
    t = mg.asarray(T, requires_grad=True)
    with pytest.raises(ValueError, match="root: fun returns 1 elements for the 2 of x0"):
        root(lambda x: x[:1], np.ones(2))
    with pytest.raises(
        GradientError,
        match="root: the solution has no derivative: the Jacobian of the equation that it "
        "solves is singular there",
    ):
        root(lambda x: (x - t) ** 2, np.full(2, 3.0))
    with pytest.raises(
        GradientError,
        match=r"root: the solution has no derivative: it does not solve .* Let the solver come "
        r"closer, by tol=",
    ):
        root(lambda x: x**2 + t, np.ones(2))
    with pytest.raises(
        GradientError,
        match="root: the solution has no derivative: the equation that it solves, .* is not "
        "finite there",
    ):
        root(lambda x: mg.sqrt(x) * t, np.zeros(2), method="krylov", options={"maxiter": 1})


# ----- least_squares -----


def test_the_hat_matrix() -> None:
    fitted = lambda y: DESIGN @ least_squares(lambda b: DESIGN @ b - y, np.zeros(3)).x
    for jacobian in (func.jacrev, func.jacfwd):
        np.testing.assert_allclose(jacobian(fitted)(DATA), HAT, atol=1e-12)
    np.testing.assert_allclose(func.jacfwd(func.jacrev(fitted))(DATA), 0.0, atol=1e-10)
    np.testing.assert_allclose(
        func.vmap(fitted)(np.stack([DATA, -DATA])), np.stack([HAT @ DATA, -HAT @ DATA]), atol=1e-8
    )


def test_ridge() -> None:
    """The penalty's derivative is -(X'X + p)^-1 b, the next one 2 (X'X + p)^-2 b."""
    ridge = lambda p: (
        least_squares(
            lambda b: mg.concat([mg.asarray(DESIGN) @ b - DATA, mg.sqrt(p) * b]), np.zeros(3)
        ).x
    )
    p = np.array(0.7)
    inverse = np.linalg.inv(DESIGN.T @ DESIGN + 0.7 * np.eye(3))
    b = inverse @ DESIGN.T @ DATA
    np.testing.assert_allclose(ridge(p), b, rtol=1e-6)
    np.testing.assert_allclose(func.jacrev(ridge)(p), -inverse @ b, rtol=1e-9)
    np.testing.assert_allclose(
        func.jacfwd(func.jacrev(ridge))(p), 2 * inverse @ inverse @ b, rtol=1e-8
    )


LOSSES: dict[str, Function] = {
    "linear": lambda z: z,
    "soft_l1": lambda z: 2 * (mg.sqrt(1 + z) - 1),
    "cauchy": lambda z: mg.log1p(z),
    "huber": lambda z: mg.where(z <= 1, z, 2 * mg.sqrt(z) - 1),
    "arctan": lambda z: mg.atan(z),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_are_those_of_a_minimum(loss: str) -> None:
    residual = lambda x, t: mg.concat([x * t, x - 1.0, x**2 - 2.0])
    settings: dict[str, Any] = {
        "loss": loss,
        "f_scale": 0.7,
        "xtol": 1e-12,
        "ftol": 1e-12,
        "gtol": 1e-12,
    }
    result = least_squares(residual, np.full(2, 1.2), args=(T,), **settings)
    theirs = scipy_optimize.least_squares(
        lambda x: np.asarray(residual(x, T)), np.full(2, 1.2), **settings
    )
    np.testing.assert_allclose(result.x, theirs.x, atol=1e-5)
    np.testing.assert_allclose(result.cost, theirs.cost, rtol=1e-8)
    cost = lambda x, t: 0.5 * 0.49 * mg.sum(LOSSES[loss]((residual(x, t) / 0.7) ** 2))
    minimum = lambda t: (
        minimize(cost, result.x, args=(t,), method="trust-exact", options={"gtol": 1e-12}).x
    )
    solve = lambda t: least_squares(residual, np.full(2, 1.2), args=(t,), **settings).x
    np.testing.assert_allclose(
        func.jacrev(solve)(T), func.jacrev(minimum)(T), rtol=1e-6, atol=1e-10
    )
    value = func.grad(
        lambda t: least_squares(residual, np.full(2, 1.2), args=(t,), **settings).cost
    )(T)
    np.testing.assert_allclose(value, func.grad(cost, 1)(result.x, T), rtol=1e-5, atol=1e-8)


def test_least_squares_with_bounds_and_settings() -> None:
    t = mg.asarray(np.array([0.2, 5.0, 0.3]), requires_grad=True)
    residual = lambda b, y: DESIGN @ b - y
    result = least_squares(residual, np.zeros(3), bounds=(-t, t), args=(DATA * 5,))
    at = np.abs(result.x.detach().numpy()) == np.array([0.2, 5.0, 0.3])
    assert at.any() and not at.all() and result.fun.requires_grad and result.cost.requires_grad
    (g,) = mg.autograd.grad(mg.sum(mg.where(at, mg.abs(result.x), 0.0)), t)
    np.testing.assert_allclose(g.numpy(), at * 1.0)
    calls: list[Any] = []
    given = least_squares(
        residual, {"b": np.zeros(3)}["b"], jac=lambda b, y: calls.append(b) or DESIGN, args=(DATA,)
    )
    assert calls and type(given.grad) is np.ndarray and given.jac.shape == (10, 3)
    seen: list[Any] = []
    tree = least_squares(
        lambda x, scale: {"r": scale * (x["a"] - T)},
        {"a": np.zeros(2)},
        kwargs={"scale": 2.0},
        callback=lambda intermediate_result: seen.append(intermediate_result.x["a"]),
    )
    np.testing.assert_allclose(tree.x["a"], T)
    assert set(tree.fun) == {"r"} and seen
    with pytest.raises(
        ValueError,
        match="least_squares: loss must be a function or one of 'linear', 'soft_l1', 'huber', "
        ".*, not 'square'",
    ):
        least_squares(lambda x: x, np.ones(2), loss="square")
    own = lambda z: np.stack([z, np.ones_like(z), np.zeros_like(z)])
    np.testing.assert_allclose(least_squares(lambda x: x - T, np.zeros(2), loss=own).x, T)
    with pytest.raises(
        NotImplementedError,
        match="least_squares: if loss is a function, the solution has no derivative; pass "
        "the loss by name",
    ):
        least_squares(lambda x: x - t[:2], np.zeros(2), loss=own)


# ----- curve_fit -----

TIMES = np.linspace(0.0, 6.0, 40)
SIGNAL = 2 * np.exp(-0.3 * TIMES) * np.cos(2 * TIMES) + 0.05 * RNG.normal(size=40)


def oscillation(x: Any, a: Any, g: Any, w: Any) -> Any:
    return a * mg.exp(-g * x) * mg.cos(w * x)


@pytest.mark.parametrize("settings", ["", "absolute", "bounds"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_loss_of_a_fit_counts_in_its_derivatives(loss: str, settings: str) -> None:
    """Both parameters and covariance, beside SciPy's as functions of the data."""
    model = lambda xp: lambda x, a, b: a * xp.exp(-b * x)
    times = np.linspace(0.0, 2.0, 8)
    data = 1.5 * np.exp(-0.7 * times) + 0.3 * np.cos(5 * times)
    more: dict[str, Any] = {
        "p0": [1.0, 1.0],
        "loss": loss,
        "f_scale": 0.3,
        "sigma": np.linspace(0.5, 1.5, 8),
        "absolute_sigma": settings == "absolute",
        "bounds": ([0.0, 0.0], [1.3, 5.0]) if settings == "bounds" else (0.0, 5.0),
        **dict.fromkeys(("ftol", "xtol", "gtol"), 1e-15),
    }
    slope = lambda x, a, b: np.stack([np.exp(-b * x), -a * x * np.exp(-b * x)], axis=1)
    for i in range(2):
        ours = lambda y, i=i: curve_fit(model(mg), times, y, **more)[i]
        theirs = lambda y, i=i: scipy_optimize.curve_fit(model(np), times, y, jac=slope, **more)[i]
        t = mg.asarray(data, requires_grad=True)
        np.testing.assert_allclose(ours(t).detach().array, theirs(data), rtol=1e-5)
        np.testing.assert_allclose(
            func.jacrev(ours)(data), differences(theirs, data, 1e-4), rtol=5e-3, atol=1e-3
        )


def test_a_loss_of_a_fit_without_a_derivative_is_refused() -> None:
    model = lambda x, a: a * x
    x, y = np.arange(1.0, 4.0), mg.asarray(np.arange(1.0, 4.0), requires_grad=True)
    own = lambda z: np.stack([z, np.ones_like(z), np.zeros_like(z)])
    with pytest.raises(
        NotImplementedError,
        match="curve_fit: if loss is a function, the solution has no derivative",
    ):
        curve_fit(model, x, y, method="trf", loss=own)
    with pytest.raises(NotImplementedError, match="curve_fit: f_scale requires grad or is being"):
        curve_fit(model, x, x, method="trf", loss="cauchy", f_scale=mg.sum(y))
    with pytest.raises(ValueError, match="curve_fit: loss must be a function or one of 'linear'"):
        curve_fit(model, x, x, method="trf", loss="square")
    scale = mg.asarray(np.asarray(0.5))
    np.testing.assert_allclose(curve_fit(model, x, x, method="trf", f_scale=scale)[0], [1.0])


FITS: dict[str, dict[str, Any]] = {
    "sigma": {"p0": [1.0, 0.2, 2.1], "sigma": np.linspace(0.1, 0.2, 40)},
    "absolute": {"p0": [1.0, 0.2, 2.1], "sigma": np.linspace(0.1, 0.2, 40), "absolute_sigma": True},
    "covariance": {
        "p0": [1.0, 0.2, 2.1],
        "sigma": 0.01 * np.eye(40) + 0.001,
        "absolute_sigma": True,
    },
    "number": {"p0": [1.0, 0.2, 2.1], "sigma": 0.3, "absolute_sigma": True},
    "bounds": {"bounds": ([1.0, 0.0, 1.9], [3.0, 1.0, 1.95])},
    "method": {"p0": [1.0, 0.2, 2.1], "method": "dogbox"},
}


@pytest.mark.sweep_after(2)
@pytest.mark.parametrize("name", FITS)
def test_curve_fit(name: str) -> None:
    settings = FITS[name]
    fit = lambda y: curve_fit(oscillation, TIMES, y, **settings)
    popt, pcov = fit(SIGNAL)
    plain = lambda x, a, g, w: a * np.exp(-g * x) * np.cos(w * x)
    theirs = scipy_optimize.curve_fit(plain, TIMES, SIGNAL, **settings)
    assert type(popt) is np.ndarray and popt.shape == (3,) and type(pcov) is np.ndarray
    np.testing.assert_allclose(popt, theirs[0], rtol=1e-5)
    np.testing.assert_allclose(pcov, theirs[1], rtol=1e-4)
    for k in range(2):
        whole = lambda y, k=k: mg.reshape(fit(y)[k], (-1,))
        numbers = lambda y, k=k: np.reshape(fit(y)[k], (-1,))
        np.testing.assert_allclose(
            func.jacrev(whole)(SIGNAL), differences(numbers, SIGNAL, 1e-4), atol=2e-5
        )
    tensor, covariance = curve_fit(
        oscillation, TIMES, mg.asarray(SIGNAL, requires_grad=True), **settings
    )
    assert tensor.requires_grad and covariance.requires_grad
    np.testing.assert_allclose(covariance.detach().numpy(), pcov, rtol=1e-4)


def test_curve_fit_by_xdata_and_sigma() -> None:
    """A weighted mean of ydata / xdata, which is known in closed form with its variance."""
    x, y, s = np.array([1.0, 2.0, 4.0]), np.array([1.5, 2.0, 5.0]), np.array([0.5, 1.0, 2.0])
    closed = lambda x, y, s: mg.sum(x * y / s**2) / mg.sum(x**2 / s**2)
    fit = lambda x, y, s: curve_fit(lambda x, a: a * x, x, y, sigma=s, absolute_sigma=True)
    for i in range(3):
        np.testing.assert_allclose(
            func.grad(lambda *d: fit(*d)[0][0], i)(x, y, s),
            func.grad(closed, i)(x, y, s),
            atol=1e-10,
        )
        np.testing.assert_allclose(
            func.hessian(lambda *d: fit(*d)[0][0], i)(x, y, s),
            func.hessian(closed, i)(x, y, s),
            atol=1e-9,
        )
    variance = lambda x, s: 1 / mg.sum(x**2 / s**2)
    np.testing.assert_allclose(
        func.grad(lambda s: fit(x, y, s)[1][0, 0])(s), func.grad(variance, 1)(x, s), atol=1e-12
    )
    np.testing.assert_allclose(
        func.vmap(lambda y: fit(x, y, s)[0][0])(np.stack([y, 2 * y])),
        [float(closed(x, y, s)), 2 * float(closed(x, y, s))],
    )
    assert len(curve_fit(lambda x, a: a * x, x, [1, 2, 4], full_output=True)) == 5


def test_curve_fit_refuses() -> None:
    for settings, error, text in (
        (
            {"nan_policy": "omit"},
            NotImplementedError,
            "curve_fit: nan_policy='omit' is not supported; select",
        ),
        (
            {"nan_policy": "propagate"},
            ValueError,
            "curve_fit: nan_policy must be None, 'raise' or 'omit', not 'propagate'",
        ),
        (
            {"sigma": np.ones(3)},
            ValueError,
            r"curve_fit: sigma has shape \(3,\); expected \(40,\) or \(40, 40\)",
        ),
    ):
        with pytest.raises(error, match=text):
            curve_fit(oscillation, TIMES, SIGNAL, p0=[1.0, 0.2, 2.1], **settings)
    with pytest.raises(
        ValueError, match="curve_fit: the number of parameters cannot be told from f; pass p0"
    ):
        curve_fit(lambda x, *p: x, TIMES, SIGNAL)
    with pytest.raises(ValueError, match="curve_fit: f returns 1 elements for the 40 of ydata"):
        curve_fit(lambda x, a: a, TIMES, SIGNAL)
    with pytest.raises(ValueError, match="curve_fit: the data must not contain infs or NaNs"):
        curve_fit(oscillation, TIMES, SIGNAL * np.nan, p0=[1.0, 0.2, 2.1])
    with pytest.raises(
        TypeError,
        match="curve_fit: ydata is complex; fit the real and the imaginary part as one real vector",
    ):
        curve_fit(oscillation, TIMES, SIGNAL * 1j, p0=[1.0, 0.2, 2.1])


# ----- linear_solve -----

GENERAL = RNG.normal(size=(4, 4)) + 5 * np.eye(4)
SYMMETRIC = GENERAL @ GENERAL.T
B = RNG.normal(size=4)
METHODS = [
    ("cg", True),
    ("minres", True),
    (None, True),
    *(
        (m, False)
        for m in (None, "bicg", "bicgstab", "cgs", "gcrotmk", "gmres", "lgmres", "qmr", "tfqmr")
    ),
]


@pytest.mark.sweep_after(4)
@pytest.mark.parametrize(("method", "symmetric"), METHODS)
def test_linear_solve(method: str | None, symmetric: bool) -> None:
    a = SYMMETRIC if symmetric else GENERAL
    solve = lambda t: linear_solve(
        lambda v: a @ v + mg.exp(t) * v, B * t**2, method=method, symmetric=symmetric
    )
    dense = lambda t: mg.linalg.solve(a + mg.diag(mg.exp(t)), B * t**2)
    ours, theirs = solve, dense
    np.testing.assert_allclose(solve(B), dense(B).numpy(), rtol=1e-8, atol=1e-11)
    ways = [(func.jacrev, func.jacfwd), (func.jacfwd, func.jacrev), (func.jacrev, func.jacrev)]
    for order, (f, g) in enumerate(ways if method is None else ways[:2]):
        ours, theirs = f(ours), g(theirs)
        np.testing.assert_allclose(ours(B), theirs(B), rtol=1e-6, atol=1e-8, err_msg=str(order))


def test_linear_solve_of_captured_tensors_to_any_order() -> None:
    t = mg.asarray(B, requires_grad=True)
    found = [
        linear_solve(lambda v: GENERAL @ v + mg.exp(t) * v, B),
        mg.linalg.solve(GENERAL + mg.diag(mg.exp(t)), B),
    ]
    for _ in range(4):
        found = [mg.autograd.grad(mg.sum(y**2), t, create_graph=True)[0] for y in found]
        np.testing.assert_allclose(
            found[0].detach().numpy(), found[1].detach().numpy(), rtol=1e-6, atol=1e-9
        )
    rows = np.stack([B, 2 * B])
    solve = lambda t: linear_solve(lambda v: GENERAL @ v + mg.exp(t) * v, t)
    for f in (solve, func.jacrev(solve)):
        np.testing.assert_allclose(
            func.vmap(f)(rows), np.stack([f(r) for r in rows]), rtol=1e-8, atol=1e-11
        )


def test_matvecs_that_write_take_structures_or_have_derivatives_of_their_own() -> None:
    own = func.custom_vjp(lambda x: x**3)
    own.defvjp(lambda x: (x**3, x), lambda x, g: (3 * x**2 * g,))

    def written(v: Any, t: Any) -> Any:
        w = v * t
        w[0] += 3.0 * v[1]
        w[1:] *= 2.0
        return w

    matrices: dict[Function, Function] = {
        written: lambda t: mg.stack(
            [mg.stack([t[0], mg.asarray(3.0)]), mg.stack([mg.asarray(0.0), 2 * t[1]])]
        ),
        lambda v, t: own(t) * v: lambda t: mg.diag(t**3),
    }
    for matvec, matrix in matrices.items():
        solve = lambda t, matvec=matvec: linear_solve(lambda v: matvec(v, t), T)
        dense = lambda t, matrix=matrix: mg.linalg.solve(matrix(t), T)
        expected = func.jacrev(dense)(T + 0.5)
        for jacobian in (func.jacrev, func.jacfwd):
            np.testing.assert_allclose(jacobian(solve)(T + 0.5), expected, rtol=1e-8, atol=1e-14)
    tree = linear_solve(
        lambda x: {"a": 2.0 * x["a"] + x["b"], "b": x["b"] - x["a"][0]},
        {"a": T, "b": np.array(3.0)},
    )
    np.testing.assert_allclose(
        tree["a"], np.linalg.solve([[2, 0, 1], [0, 2, 1], [-1, 0, 1]], [1, 2, 3])[:2]
    )


def test_linear_solve_refuses() -> None:
    with pytest.raises(
        ValueError, match="linear_solve: method must be one of 'bicg', .*, not 'lu'"
    ):
        linear_solve(lambda v: v, T, method="lu")
    with pytest.raises(ValueError, match="linear_solve: matvec returns 1 elements for the 2 of b"):
        linear_solve(lambda v: v[:1], T)
    with pytest.raises(
        RuntimeError,
        match="linear_solve: bicgstab did not converge: the residual is .* another method",
    ):
        linear_solve(lambda v: GENERAL @ v, B, method="bicgstab", maxiter=1)


# ----- solve_ivp -----


@pytest.mark.parametrize("method", ["RK45", "DOP853", "Radau", "BDF", "LSODA"])
def test_solve_ivp(method: str) -> None:
    def event(t: float, y: Any) -> Any:
        return mg.sum(y["a"]) - 1.5

    event.terminal = False  # type: ignore[attr-defined]
    result = solve_ivp(
        lambda t, y: {"a": y["b"], "b": -y["a"]},
        (0, 1),
        {"a": np.ones(2), "b": np.zeros(2)},
        method=method,
        rtol=1e-9,
        atol=1e-10,
        dense_output=True,
        events=event,
        t_eval=[0.0, 0.5, 1.0],
    )
    assert result.y["a"].shape == (2, 3) and type(result.t) is np.ndarray
    np.testing.assert_allclose(result.y["a"], np.cos([[0.0, 0.5, 1.0]] * 2), atol=1e-6)
    np.testing.assert_allclose(result.sol(0.3)["b"], -np.sin(0.3), atol=1e-6)
    assert result.sol(np.array([0.1, 0.2]))["a"].shape == (2, 2)
    np.testing.assert_allclose(result.t_events[0], np.arccos(0.75), atol=1e-6)
    assert result.y_events[0].shape == (1, 4)


def test_the_jacobian_of_solve_ivp_is_filled_in() -> None:
    stiff = lambda t, y, k: mg.stack([y[1], k * (1 - y[0] ** 2) * y[1] - y[0]])
    given = np.array([2.0, 0.0])
    calls: list[float] = []
    ours = solve_ivp(
        lambda t, y, k: calls.append(t) or stiff(t, y, k),
        (0, 20.0),
        given,
        method="BDF",
        args=(50.0,),
    )
    theirs = scipy.integrate.solve_ivp(
        lambda t, y: np.asarray(stiff(t, y, 50.0)), (0, 20.0), given, method="BDF"
    )
    np.testing.assert_allclose(ours.y[:, -1], theirs.y[:, -1], rtol=1e-2)
    # SciPy's differences would call it twice more for each Jacobian
    assert ours.njev and len(calls) <= ours.nfev + ours.njev + 3
    matrix = solve_ivp(lambda t, y: -3.0 * y, (0, 1), given, method="Radau", jac=-3.0 * np.eye(2))
    function = solve_ivp(
        lambda t, y: -3.0 * y, (0, 1), given, method="Radau", jac=lambda t, y: -3.0 * np.eye(2)
    )
    np.testing.assert_allclose(matrix.y[:, -1], function.y[:, -1], rtol=1e-2)


def test_solve_ivp_is_not_differentiated() -> None:
    t = mg.asarray(T, requires_grad=True)
    text = (
        "solve_ivp: the solution has no derivative, .* "
        "multigrad_autograd.scipy.integrate.odeint is differentiable by y0, t and args"
    )
    for call in (
        lambda: solve_ivp(lambda s, y: t * y, (0, 1), T),
        lambda: solve_ivp(lambda s, y: y, (0, 1), t),
        lambda: solve_ivp(lambda s, y, a: a * y, (0, 1), T, args=(t,)),
        lambda: solve_ivp(lambda s, y: y, (0, t[0]), T),
        lambda: func.grad(lambda a: mg.sum(solve_ivp(lambda s, y: a * y, (0, 1), T).y))(
            np.array(1.0)
        ),
        lambda: solve_ivp(lambda s, y: y, (0, 1), T, events=lambda s, y: y[0] - t[1]),
        lambda: solve_ivp(lambda s, y: t * y if s > 0.5 else y, (0, 1), T),
    ):
        with pytest.raises(GradientError, match=text):
            call()
    with mg.no_grad():
        solve_ivp(lambda s, y: t * y, (0, 1), T)
    with pytest.raises(
        NotImplementedError,
        match="solve_ivp inside of vmap: each example would have steps of its own",
    ):
        func.vmap(lambda a: solve_ivp(lambda s, y: a * y, (0, 1), T).y)(T)


# ----- the guides -----


@pytest.mark.sweep
@pytest.mark.parametrize("guide", ["docs/solvers.md", "plugins/multigrad-scipy/README.md"])
def test_the_guides_run(guide: str, tmp_path: Path) -> None:
    run_page(Path(__file__).parents[3] / guide, tmp_path, 4)


# ----- multiple roots -----


def _two(x: Any, a: Any, scale: float) -> Any:
    return mg.stack([(x[0] - a[0]) ** 2 * scale, x[1] - a[1]])


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize(
    ("fun", "x0", "a"),
    [
        (lambda x, a, scale: scale * (x - a) ** 2, [0.0], [1.0]),
        (lambda x, a, scale: scale * (x - a) ** 3, [0.3], [1.0]),
        (lambda x, a, scale: scale * (x - a) ** 2 * (x + a), [0.3], [1.0]),
        (_two, [0.0, 0.0], [1.0, 2.0]),
    ],
)
def test_a_multiple_root_has_no_derivative(fun: Any, x0: Any, a: Any, scale: float) -> None:
    """The solver stops next to the root, where the Jacobian is small, yet not singular."""
    with pytest.raises(GradientError, match="root: the solution has no derivative"):
        func.jacrev(lambda a: root(lambda x: fun(x, a, scale), np.asarray(x0)).x)(np.asarray(a))


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_the_units_of_a_system_do_not_matter(scale: float) -> None:
    a, x0 = np.asarray([2.0, 3.0, 1.0]), np.ones(3)
    rows, columns = np.asarray([scale, 1 / scale, 1.0]), np.asarray([1 / scale, scale, 1.0])

    def equations(x: Any, a: Any) -> Any:
        return mg.stack([x[0] ** 2 - a[0], mg.exp(x[1]) - a[1], x[0] * x[2] - a[2]])

    r = 2**0.5
    expected = np.asarray([[0.5 / r, 0, 0], [0, 1 / 3, 0], [-0.25 / r, 0, 1 / r]])
    by_rows = func.jacrev(lambda a: root(lambda x: rows * equations(x, a), x0).x)
    np.testing.assert_allclose(by_rows(a), expected, rtol=1e-10, atol=1e-13)
    by_columns = func.jacrev(
        lambda a: (
            root(lambda x: equations(x / columns, a), x0 * columns, options={"xtol": 1e-13}).x
            / columns
        )
    )
    np.testing.assert_allclose(by_columns(a), expected, rtol=1e-10, atol=1e-13)
