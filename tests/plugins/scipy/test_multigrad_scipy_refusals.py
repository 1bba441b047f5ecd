"""multigrad-scipy: what is no solution has no derivative, and units of any size do not matter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import multigrad as mg
from multigrad import func
from multigrad.errors import GradientError

pytest.importorskip("scipy.optimize", reason="SciPy is not installed")

from scipy.optimize import Bounds, NonlinearConstraint

from multigrad_scipy import (
    curve_fit,
    least_squares,
    linear_solve,
    minimize,
    minimize_scalar,
    root,
)

# ----- points that solve nothing -----


def test_a_maximum_and_a_saddle_point_are_refused() -> None:
    top = lambda t: minimize(lambda x: mg.sum(mg.cos(x - t)), np.array([1.0])).x
    assert top(np.array(1.0)) == 1.0  # SciPy stops where the gradient vanishes
    with pytest.raises(
        GradientError,
        match="a maximum or a saddle point, where the gradient vanishes, but no minimum",
    ):
        func.jacrev(top)(np.array(1.0))
    saddle = lambda t: (
        minimize(
            lambda x: x[0] ** 2 - x[1] ** 2 + t * x[0],
            np.zeros(2),
            method="SLSQP",
            constraints=held,
        ).x
    )
    held: Any = {"type": "eq", "fun": lambda x: x[0]}
    with pytest.raises(GradientError, match="saddle point"):
        func.jacrev(saddle)(np.array(0.0))
    held = {"type": "eq", "fun": lambda x: x[1]}  # along the constraint it is a minimum
    np.testing.assert_allclose(func.jacrev(saddle)(np.array(0.0)), [-0.5, 0.0], atol=1e-12)


def test_a_root_that_was_not_reached_is_refused_in_small_units() -> None:
    def layer(t: Any, **options: Any) -> Any:
        return root(lambda x: mg.exp(x / 1e-9) - t, np.array(0.0), options=options).x

    with pytest.raises(GradientError, match="does not solve the equation"):
        func.grad(lambda t: layer(t, maxfev=1))(np.array(10.0))
    near = lambda t: root(lambda x: mg.exp(x / 1e-9) - t, np.array(2.3e-9), tol=1e-14).x
    np.testing.assert_allclose(func.grad(near)(np.array(10.0)), 1e-10, rtol=1e-10)


def test_a_kink_is_refused_however_near_the_newton_step_is() -> None:
    with pytest.raises(GradientError, match="does not solve the equation"):
        func.jacrev(lambda t: minimize(lambda x: mg.sum(mg.abs(x - t) + x**2), np.array([1e-7])).x)(
            np.array(1e-7)
        )


# ----- which bounds are active -----


@pytest.mark.parametrize("method", ["L-BFGS-B", "trust-constr"])
def test_bounds_of_small_units(method: str) -> None:
    nearest = lambda t: minimize(
        lambda x: mg.sum(mg.cosh(1e6 * (x - t))),
        np.array([2e-7]),
        method=method,
        bounds=[(0.0, 1e-5)],
    ).x[0]
    value, slope = func.value_and_grad(nearest)(np.array(5e-7))
    np.testing.assert_allclose([value, slope], [5e-7, 1.0], rtol=1e-8)
    np.testing.assert_allclose(func.grad(nearest)(np.array(-5e-7)), 0.0, atol=1e-12)


def test_a_solver_that_stops_at_a_bound_which_does_not_hold_it_back_is_refused() -> None:
    early = lambda t: (
        minimize(
            lambda x: 1e-8 * mg.sum((x - t) ** 2),
            np.array([0.0]),
            method="L-BFGS-B",
            bounds=[(0.0, 10.0)],
        ).x
    )
    with pytest.raises(GradientError, match="does not solve the equation"):
        func.jacrev(early)(np.array(3.0))


def test_a_constraint_that_the_solver_stopped_beyond_is_active() -> None:
    inside = lambda t: (
        minimize(
            lambda x: mg.sum((x - t) ** 2),
            np.array([0.1, 0.2]),
            method="trust-constr",
            constraints=NonlinearConstraint(lambda x: mg.sum(x**2), -np.inf, 1.0),
        ).x
    )
    t = np.array([0.7, 0.7142])  # |t| is 1.00007, so the limit holds back very little
    unit = t / np.linalg.norm(t)
    np.testing.assert_allclose(
        func.jacrev(inside)(t), (np.eye(2) - np.outer(unit, unit)) / np.linalg.norm(t), atol=1e-8
    )


def test_bounds_that_leave_no_room() -> None:
    for t in (0.2, 0.2 + 1e-9, 0.7):
        fixed = lambda t: (
            minimize(
                lambda x: mg.sum((x - t) ** 2),
                np.array([0.5, 0.5]),
                method="trust-constr",
                bounds=Bounds([0.2, -1], [0.2, 1]),
            ).x
        )
        np.testing.assert_allclose(func.jacrev(fixed)(np.array(t)), [0.0, 1.0], atol=1e-12)


# ----- nothing gets lost -----


def test_linear_solve_by_a_complex_array() -> None:
    total = lambda k: mg.sum(linear_solve(lambda v: mg.real((k + 1j) * v), np.array([1.0, 2.0])))
    np.testing.assert_allclose(func.grad(total)(np.array(2.0)), -0.75)
    c = mg.asarray(np.array([1.0 + 2.0j, 3.0 - 1.0j]), requires_grad=True)
    mg.sum(linear_solve(lambda v: mg.real(c * v), np.array([1.0, 2.0]))).backward()
    np.testing.assert_allclose(c.grad.numpy(), [-1.0, -2.0 / 9.0], rtol=1e-10)


def test_matvec_must_be_linear() -> None:
    with pytest.raises(
        ValueError, match="matvec is not linear: it does not return zeros for zeros"
    ):
        linear_solve(lambda v: 2.0 * v + 1.0, np.array([1.0, 1.0]))


@pytest.mark.parametrize(
    "solve",
    [
        lambda: minimize(lambda x: mg.sum((x + 1j) ** 2), np.ones(2), method="Nelder-Mead"),
        lambda: least_squares(lambda x: x + 1j, np.ones(2), jac="2-point"),
        lambda: root(lambda x: x + 1j, np.ones(2), method="broyden1"),
    ],
)
def test_complex_results_are_refused(solve: Any) -> None:
    with pytest.raises(TypeError, match="needs real numbers, but got complex ones"):
        solve()


def test_curve_fit_starts_between_bounds_that_are_lists_with_tensors() -> None:
    x = np.linspace(0.0, 2.0, 12)
    fit = lambda t: curve_fit(
        lambda x, a, b: a * mg.exp(-b * x),
        x,
        1.5 * np.exp(-x),
        bounds=([0.0, 0.0], [1.0 * t, 9.0 * t]),
    )[0]
    by_difference = (fit(np.array(1.0001)) - fit(np.array(0.9999))) / 2e-4
    np.testing.assert_allclose(func.jacrev(fit)(np.array(1.0)), by_difference, atol=1e-5)
    t = mg.asarray(np.array(1.0), requires_grad=True)
    np.testing.assert_allclose(
        func.jacrev(fit)(np.array(1.0))[0], mg.autograd.grad(fit(t)[0], t)[0].numpy()
    )


def test_a_jac_with_history_wants_a_fun_that_has_it() -> None:
    t = mg.asarray(np.array(1.3), requires_grad=True)
    with pytest.raises(GradientError, match="what fun returns does not depend on it"):
        minimize(lambda x: mg.sum((x - t) ** 2).detach(), np.zeros(2), jac=lambda x: 2.0 * (x - t))
    x = minimize(lambda x: mg.sum((x - t) ** 2), np.zeros(2), jac=lambda x: 2.0 * (x - t)).x
    np.testing.assert_allclose(mg.autograd.grad(mg.sum(x), t)[0].item(), 2.0)


def test_f_scale_has_no_derivative() -> None:
    fit = lambda s: least_squares(
        lambda x: mg.concat([x - np.array([0.0, 1.0, 5.0]), x * 0.1]),
        np.array([0.3]),
        loss="soft_l1",
        f_scale=s,
    ).x[0]
    with pytest.raises(
        NotImplementedError, match="f_scale requires grad or is being differentiated"
    ):
        func.grad(fit)(np.array(0.7))
    assert np.isclose(fit(mg.asarray(np.array(0.7))), fit(0.7))


def test_a_start_of_each_example_is_refused_where_there_is_one_for_all() -> None:
    x = np.arange(3.0)
    for name, solve in {
        "curve_fit: p0": lambda p: curve_fit(lambda x, a: a * x, x, x, p0=p)[0],
        "minimize_scalar: bracket": lambda p: (
            minimize_scalar(lambda x: (x - 2.0) ** 2, bracket=(p[0], 4.0)).x
        ),
        "linear_solve: x0": lambda p: linear_solve(lambda v: 2.0 * v, np.ones(1), x0=p),
    }.items():
        with pytest.raises(NotImplementedError, match=f"{name} is batched by vmap"):
            func.vmap(solve)(np.ones((2, 1)))
    with pytest.raises(ValueError, match="vmap over an axis without elements"):
        func.vmap(lambda t: minimize(lambda x: mg.sum((x - t) ** 2), np.zeros(1)).x)(np.zeros(0))


def test_solvers_say_that_they_cannot_be_traced() -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    t = jax.numpy.ones(3)
    for solve in (
        lambda t: minimize(lambda x: mg.sum((x - t) ** 2), jax.numpy.zeros(3)).x,
        lambda t: linear_solve(lambda v: 2 * v, t),
        lambda t: curve_fit(lambda x, a: a * x, jax.numpy.arange(3.0), t, p0=[1.0])[0],
    ):
        with pytest.raises(TypeError, match="differentiate it by multigrad.func"):
            jax.jit(solve)(t)
