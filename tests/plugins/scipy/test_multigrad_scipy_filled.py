"""The derivatives that multigrad-scipy fills in become programs of func.compile, and the user's
function is still what SciPy calls.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import multigrad as mg
from multigrad import func

pytest.importorskip("scipy.optimize", reason="SciPy is not installed")
from scipy.optimize import NonlinearConstraint, OptimizeResult

from multigrad_conformance.differences import jacobian
from multigrad_scipy import curve_fit, filled, least_squares, minimize, root

START = np.full(6, 0.3)


def valley(x: Any) -> Any:
    return mg.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The functions that func.compile made in a test."""
    made: list[Any] = []

    def compile(function: Callable[..., Any], **settings: Any) -> Any:
        made.append(func.compile(function, **settings))
        return made[-1]

    monkeypatch.setattr(filled, "func", type("func", (), {"compile": staticmethod(compile)}))
    return made


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[], Any]], Any]]:
    def run(solve: Callable[[], Any]) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(filled, "EAGER", 10**9)
            return solve()

    yield run


def array(backend: str, values: Any) -> Any:
    return mg.asarray(values, backend=backend).array


@pytest.mark.parametrize("method", ["BFGS", "Newton-CG", "trust-exact", "trust-constr"])
@pytest.mark.parametrize(
    "backend", ["numpy", "strict", pytest.param("jax", marks=pytest.mark.sweep)]
)
def test_a_minimum_by_programs_is_the_one_without(
    programs: list[Any], eager: Any, monkeypatch: pytest.MonkeyPatch, backend: str, method: str
) -> None:
    monkeypatch.setattr(filled, "EAGER", 2)
    start = array(backend, START[:3])
    solve = lambda: minimize(valley, start, method=method, tol=1e-7)
    recorded, plain = solve(), eager(solve)
    assert programs and all(len(p.programs) == 1 for p in programs)
    np.testing.assert_allclose(
        np.asarray(mg.asarray(recorded.x).numpy()), mg.asarray(plain.x).numpy(), atol=1e-6
    )
    if backend != "jax":  # XLA may add in another order
        assert recorded.nfev == plain.nfev


def test_equations_fits_and_constraints_by_programs(
    programs: list[Any], eager: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filled, "EAGER", 1)
    at = np.linspace(0.0, 4.0, 30)
    data = 2.5 * np.exp(-1.3 * at) + 0.5
    model = lambda x, a, b, c: a * mg.exp(-b * x) + c
    popt, _ = curve_fit(model, at, data, p0=[1.0, 1.0, 1.0])
    np.testing.assert_allclose(popt, [2.5, 1.3, 0.5], atol=1e-7)
    fit = least_squares(lambda p: model(at, p[0], p[1], p[2]) - data, np.ones(3))
    np.testing.assert_allclose(fit.x, [2.5, 1.3, 0.5], atol=1e-7)
    assert len(programs) == 2 and all(len(p.programs) == 1 for p in programs)
    within = lambda: minimize(
        valley,
        START[:3],
        method="trust-constr",
        constraints=[NonlinearConstraint(lambda x: x[:2] ** 2, 0.0, 0.5)],
    )
    np.testing.assert_allclose(within().x, eager(within).x, atol=1e-6)
    # the gradient, its products; a Jacobian and a Hessian
    assert len(programs) == 6 and all(len(p.programs) == 1 for p in programs)
    monkeypatch.setattr(filled, "EAGER", 0)
    zero = root(lambda x: x**3 + x[::-1] - 2.0, np.array([3.0, 1.0]), method="lm")
    np.testing.assert_allclose(zero.fun, 0.0, atol=1e-7)
    assert len(programs) == 7 and len(programs[-1].programs) == 1


def test_the_function_runs_at_each_evaluation(programs: list[Any]) -> None:
    """What it counts is as under SciPy, but for once at the start, the recording, the comparison
    and the end.
    """
    seen: list[Any] = []

    def counted(x: Any) -> Any:
        seen.append(x)
        return valley(x)

    result = minimize(counted, START, method="L-BFGS-B")
    assert len(programs) == 1 and result.nfev > 3 * filled.EAGER
    assert result.nfev <= len(seen) <= result.nfev + 5


def test_a_function_that_changes_on_the_way_is_no_program(eager: Any) -> None:
    """A penalty that a callback lowers between iterations, after the program was compared."""

    def solve() -> Any:
        weight, turns = [1.0], [0]

        def penalized(x: Any) -> Any:
            return valley(x) + weight[0] * (mg.sum(x) - 1.0) ** 2

        def callback(x: Any) -> None:
            turns[0] += 1
            weight[0] = 1.0 if turns[0] < 12 else 0.5

        return minimize(penalized, START, method="BFGS", callback=callback)

    recorded, plain = solve(), eager(solve)
    assert recorded.nit > 12 and recorded.nit == plain.nit
    np.testing.assert_allclose(recorded.x, plain.x, rtol=1e-9)
    np.testing.assert_allclose(recorded.jac, plain.jac, atol=1e-9)


@pytest.mark.parametrize("reading", [lambda x: float(x[0]), lambda x: x[0].item()])
def test_a_function_that_cannot_be_recorded_is_differentiated_as_it_is(
    reading: Callable[[Any], float], eager: Any
) -> None:
    def guarded(x: Any) -> Any:
        with mg.no_grad():
            scale = 2.0 if reading(x.detach() if hasattr(x, "detach") else x) > 100.0 else 1.0
        return scale * valley(x)

    solve = lambda: minimize(guarded, START, method="BFGS")
    np.testing.assert_array_equal(solve().x, eager(solve).x)


def test_a_program_of_each_side_of_a_branch(programs: list[Any], eager: Any) -> None:
    branches = lambda x: valley(x) if x[0] > 0.7 else 2.0 * valley(x) - valley(x)
    solve = lambda: minimize(branches, START, method="BFGS")
    recorded = solve()
    assert [len(p.programs) for p in programs] == [2]
    np.testing.assert_allclose(recorded.x, eager(solve).x, rtol=1e-9)


def test_an_error_of_the_function_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filled, "EAGER", 0)
    calls: list[int] = []

    def failing(x: Any) -> Any:
        calls.append(1)
        if len(calls) > 30:
            raise ZeroDivisionError("thirty")
        return valley(x)

    with pytest.raises(ZeroDivisionError, match="^thirty$"):
        minimize(failing, START, method="BFGS")


def test_the_derivative_of_a_minimum_found_by_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filled, "EAGER", 3)
    pulled = lambda x, t: valley(x) + mg.sum((x - t) ** 2)
    solve = lambda t: minimize(lambda x: pulled(x, t), START, method="BFGS", tol=1e-6)

    def refined(t: Any) -> Any:
        """The minimum by Newton's method from where BFGS stops, which depends on the rounding of
        the processor and is too far off for differences of small steps.
        """
        result = solve(t)
        x = result.x
        for _ in range(4):
            x = x - np.linalg.solve(func.hessian(pulled)(x, t), func.grad(pulled)(x, t))
        assert result.success
        np.testing.assert_allclose(result.x, x, atol=1e-6)
        return x

    at = np.linspace(0.5, 1.0, 6)
    found = func.jacrev(lambda t: solve(t).x)(at)
    np.testing.assert_allclose(found, jacobian(refined, at), atol=1e-8)


def test_a_change_that_is_small_beside_earlier_values_is_seen(eager: Any) -> None:
    """The start's value is 1e14; what a callback takes away later is 1e-5 of a value near the
    minimum.
    """

    def solve() -> Any:
        weight, turns = [1e-9], [0]

        def callback(x: Any) -> None:
            turns[0] += 1
            weight[0] = 1e-9 if turns[0] < 20 else 0.0

        start = np.array([1e3, -1e3, 500.0])
        return minimize(
            lambda x: valley(x) + weight[0] * (x[0] - 100.0) ** 2,
            start,
            method="trust-exact",
            callback=callback,
            tol=1e-12,
        )

    recorded, plain = solve(), eager(solve)
    assert recorded.success and recorded.nit == plain.nit
    np.testing.assert_allclose(recorded.x, plain.x, rtol=1e-12)


def test_a_derivative_that_changes_where_the_value_does_not() -> None:
    """A part of the arguments that is held fast until a callback lets it go."""
    fixed, turns = [True], [0]

    def callback(x: Any) -> None:
        turns[0] += 1
        fixed[0] = turns[0] < 15

    def parts(p: Any) -> Any:
        b = mg.asarray(p["b"])
        return valley(p["a"]) + mg.sum(mg.square((b.detach() if fixed[0] else b) - p["a"]))

    start = {"a": np.array([-1.2, 1.0, 0.7]), "b": np.zeros(3)}
    with pytest.raises(
        mg.errors.GradientError,
        match=r"^minimize: a derivative has changed where the value has not: a function depends "
        r"on something besides its arguments, .* pass derivatives of your own, .*: "
        r"jac=func.grad\(fun\), say$",
    ):
        minimize(parts, start, callback=callback)
    fixed[0], turns[0] = True, 0
    own = minimize(parts, start, jac=func.grad(parts), callback=callback)
    np.testing.assert_allclose(own.x["b"], own.x["a"], atol=1e-3)


def test_a_replay_is_compared_at_points_that_the_solver_has_not_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(filled, "EAGER", 0)
    scale = [1.0]
    slopes: list[Any] = []

    def solver(
        fun: Any,
        x0: Any,
        args: Any,
        jac: Any = None,
        hess: Any = None,
        hessp: Any = None,
        **rest: Any,
    ) -> Any:
        for at in (x0, x0, x0 + 1.0, x0 + 2.0):
            slopes.append(np.array(jac(at)))
            scale[0] = 3.0 if len(slopes) > 2 else 1.0
        return OptimizeResult(x=x0, fun=fun(x0), jac=slopes[-1], success=True, message="", nit=1)

    monkeypatch.setattr(
        filled.Evaluated, "fused", lambda self, pair: self.derivative(lambda v: pair(v)[1])
    )
    monkeypatch.setattr("multigrad_scipy.minimizing.GRADIENT", {""})
    minimize(lambda x: scale[0] * mg.sum(mg.square(x)), np.ones(2), method=solver)
    np.testing.assert_array_equal(slopes, [[2.0, 2.0], [2.0, 2.0], [4.0, 4.0], [18.0, 18.0]])


def test_what_cannot_be_recorded_does_not_run_twice() -> None:
    calls: list[int] = []

    def quiet(x: Any) -> Any:
        calls.append(1)
        with np.errstate(all="ignore"):
            return valley(x)

    with pytest.warns(
        UserWarning,
        match="^compile: fun is not compiled, because a mode of numpy is entered inside of it",
    ):
        result = minimize(quiet, START, method="BFGS")
    assert result.nfev > 30 and len(calls) <= result.nfev + 5


def test_a_function_of_many_branches_is_given_up_without_a_word(
    programs: list[Any], eager: Any
) -> None:
    def winding(x: Any) -> Any:
        with mg.no_grad():
            turn = int(mg.asarray(x)[0].detach() * 1000) % 37
        return valley(x) * (turn + 1.0) / (turn + 1.0)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solve = lambda: minimize(winding, START[:3], method="trust-exact")
        np.testing.assert_allclose(solve().x, eager(solve).x, rtol=1e-9)
    assert programs and all(len(p.programs) <= filled.MOST for p in programs)
