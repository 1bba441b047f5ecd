"""multigrad-scipy's minimize and minimize_scalar: SciPy's results on every backend, what is filled
in, and derivatives of the minimum.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import multigrad as mg
from multigrad import func
from multigrad.errors import GradientError
from multigrad.extend import innermost, raw_namespace

scipy_optimize = pytest.importorskip("scipy.optimize", reason="SciPy is not installed")
from scipy.optimize import BFGS, Bounds, LinearConstraint, NonlinearConstraint  # noqa: E402

from multigrad_conformance.differences import jacobian as differences  # noqa: E402
from multigrad_scipy import (  # noqa: E402
    curve_fit,
    least_squares,
    minimize,
    minimize_scalar,
    solve_ivp,
)

Function = Callable[..., Any]
T = np.array([1.0, 2.0, 0.3])
EXACT = {"gtol": 1e-12}
TAKE_GRADIENTS = (
    "CG",
    "BFGS",
    "Newton-CG",
    "L-BFGS-B",
    "TNC",
    "SLSQP",
    "dogleg",
    "trust-ncg",
    "trust-krylov",
    "trust-exact",
    "trust-constr",
)
TAKE_NONE = ("Nelder-Mead", "Powell", "COBYLA", "COBYQA")


def quartic(x: Any, t: Any) -> Any:
    return mg.sum((x - t) ** 4 + (x - t**2) ** 2) + 0.1 * x[0] * x[1]


def minimum(t: Any, **settings: Any) -> Any:
    return minimize(
        quartic, np.zeros(3), args=(t,), method="trust-exact", options=EXACT, **settings
    ).x


# ----- SciPy's results -----


@pytest.mark.sweep_after(4)
@pytest.mark.parametrize("method", [*TAKE_GRADIENTS, *TAKE_NONE])
def test_values_and_derivatives_of_every_method(method: str) -> None:
    """Where SciPy needs a gradient or a Hessian there is one; the derivative of the minimum does
    not depend on how that was come to.
    """
    result = minimize(quartic, np.zeros(3), args=(T,), method=method)
    assert result.success and type(result.x) is np.ndarray
    np.testing.assert_allclose(result.x, minimum(T), atol=2e-3)
    jacobian = func.jacrev(lambda t: minimize(quartic, np.zeros(3), args=(t,), method=method).x)(T)
    np.testing.assert_allclose(jacobian, differences(minimum, T), atol=1e-7)


@pytest.mark.parametrize("method", TAKE_GRADIENTS)
def test_derivatives_are_filled_in(method: str) -> None:
    """SciPy's differences would call the function at points that no gradient asks for; here every
    call is with a Tensor that is differentiated.
    """
    ours = minimize(quartic, np.zeros(3), args=(T,), method=method)
    theirs = scipy_optimize.minimize(
        lambda x: float(innermost(quartic(x, T))),
        np.zeros(3),
        method=method,
        jac=lambda x: func.grad(quartic)(x, T),
        hess=lambda x: (
            func.hessian(quartic)(x, T)
            if method
            in ("dogleg", "trust-exact", "trust-ncg", "trust-krylov", "Newton-CG", "trust-constr")
            else None
        ),
    )
    np.testing.assert_allclose(ours.x, theirs.x, atol=1e-6)
    assert ours.nfev <= theirs.nfev + 2


def test_all_products_at_a_point_share_one_evaluation() -> None:
    calls = []

    def bowl(x: Any) -> Any:
        calls.append(x)
        return mg.sum(np.arange(1.0, 31.0) * (x - 1.0) ** 2 + 0.1 * (x - 1.0) ** 4)

    result = minimize(bowl, np.zeros(30), method="Newton-CG")
    assert result.nhev > 3 * result.nit and len(calls) < result.nfev + result.njev + 2 * result.nit
    np.testing.assert_allclose(result.x, 1.0, atol=1e-6)


def test_a_user_s_own_derivatives_are_used() -> None:
    calls: list[str] = []

    def noted(name: str, function: Function) -> Function:
        def called(*args: Any) -> Any:
            calls.append(name)
            return function(*args)

        return called

    f = lambda x: mg.sum((x - 1.0) ** 2)
    jac = noted("jac", lambda x: 2 * (x - 1.0))
    assert minimize(f, T, jac=jac).success and set(calls) == {"jac"}
    calls.clear()
    minimize(f, T, method="Newton-CG", jac=jac, hess=noted("hess", lambda x: 2 * np.eye(3)))
    assert set(calls) == {"jac", "hess"}
    calls.clear()
    minimize(f, T, method="trust-ncg", hessp=noted("hessp", lambda x, p: 2 * p))
    assert set(calls) == {"hessp"}
    both = lambda x: (mg.sum((x - 1.0) ** 2), 2 * (x - 1.0))
    np.testing.assert_allclose(minimize(both, T, jac=True).x, 1.0)
    for jac in ("2-point", "3-point", False):
        plain: Any = lambda x: np.sum((x - 1.0) ** 2)
        result, theirs = minimize(plain, T, jac=jac), scipy_optimize.minimize(plain, T, jac=jac)
        np.testing.assert_array_equal(result.x, theirs.x)
    with pytest.raises(
        TypeError, match=r"minimize: complex steps \('cs'\) are not supported; leave jac out"
    ):
        minimize(f, T, jac="cs")


@pytest.mark.parametrize(
    "backend", ["numpy", "strict", pytest.param("jax", marks=pytest.mark.sweep)], indirect=True
)
def test_arrays_of_every_backend(backend: str) -> None:
    xp = raw_namespace(backend)
    t = xp.asarray([1.0, 2.0], dtype=xp.float64)
    seen: list[Any] = []

    def f(x: Any, t: Any) -> Any:
        seen.append(mg.namespace(x).__name__)
        return mg.sum((x - t) ** 2)

    result = minimize(
        f, xp.zeros((2,), dtype=xp.float64), args=(t,), bounds=Bounds([0.0, 0.0], [5.0, 1.5])
    )
    assert type(result.x) is type(t) and type(result.fun) is type(t) and type(result.jac) is type(t)
    assert set(seen) == {f"multigrad.{backend}"}
    np.testing.assert_allclose(mg.asarray(result.x).numpy(), [1.0, 1.5])
    solve = lambda t: (
        minimize(f, xp.zeros((2,), dtype=xp.float64), args=(t,), bounds=[(0, None), (None, 1.5)]).x
    )
    for jacobian in (func.jacrev(solve)(t), func.jacfwd(solve)(t)):
        assert type(jacobian) is type(t)
        np.testing.assert_allclose(
            mg.asarray(jacobian).numpy(), [[1.0, 0.0], [0.0, 0.0]], atol=1e-12
        )
    rows = func.vmap(solve)(xp.stack([t, 0.5 * t]))
    np.testing.assert_allclose(mg.asarray(rows).numpy(), [[1.0, 1.5], [0.5, 1.0]], atol=1e-6)


def test_structures_shapes_and_dtypes() -> None:
    x0 = {"a": np.ones((2, 2)), "b": [np.zeros(3, np.float32), np.array(0.5)]}
    f = lambda x: (
        mg.sum((x["a"] - 2.0) ** 2) + mg.sum((x["b"][0] - 1.0) ** 2) + (x["b"][1] - 3.0) ** 2
    )
    result = minimize(f, x0)
    for found in (result.x, result.jac):
        assert (
            found["a"].shape == (2, 2)
            and found["b"][0].dtype == np.float32
            and found["b"][1].shape == ()
        )
    np.testing.assert_allclose(result.x["a"], 2.0, atol=1e-5)
    np.testing.assert_allclose(result.x["b"][1], 3.0, atol=1e-5)
    bounded = minimize(
        f, x0, bounds=Bounds({"a": np.zeros((2, 2)), "b": [np.zeros(3), np.array(0.0)]}, 1.5)
    )
    np.testing.assert_allclose(bounded.x["a"], 1.5)
    assert minimize(lambda x: mg.sum((x - 1.0) ** 2), np.ones((2, 2))).x.shape == (2, 2)
    t = mg.asarray(T, requires_grad=True)
    tree = minimize(lambda x: mg.sum((x["a"] - t) ** 2), {"a": np.zeros(3)}).x
    (g,) = mg.autograd.grad(mg.sum(tree["a"] ** 2), t)
    np.testing.assert_allclose(g.numpy(), 2 * T)


@pytest.mark.parametrize(
    ("x0", "shape"),
    [
        ([0, 0.5], (2,)),
        (2, (1,)),
        (np.array([1, 2]), (2,)),
        ([[1, 2], [3, 4]], (2, 2)),
    ],
)
def test_numbers_and_integers_start_as_floating_arrays(x0: Any, shape: tuple[int, ...]) -> None:
    x = minimize(lambda x: mg.sum((x - 0.5) ** 2), x0).x
    assert type(x) is np.ndarray and x.shape == shape and x.dtype == np.float64
    np.testing.assert_allclose(x, 0.5, atol=1e-6)


@pytest.mark.parametrize(
    ("x0", "error", "text"),
    [
        (
            np.array([1j]),
            TypeError,
            "minimize: x0 is of dtype complex128; pass the real and the imaginary part as two "
            "arrays",
        ),
        (np.zeros(0), ValueError, "minimize: x0 has no elements"),
        (
            "one",
            TypeError,
            "minimize: x0 must be an array, a nested structure of arrays, or nested lists of "
            "numbers",
        ),
        (
            {"a": np.array([1, 2]), "b": np.ones(2)},
            TypeError,
            "minimize: x0 has an array of integers or bools in it, which a solver cannot move",
        ),
    ],
)
def test_what_cannot_be_moved_is_refused(x0: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        minimize(lambda x: 0.0, x0)


def test_limits_that_do_not_fit_are_refused() -> None:
    f = lambda x: mg.sum(x**2)
    with pytest.raises(
        ValueError,
        match="minimize: the lower limit of bounds has 2 elements; expected 3, or one for all",
    ):
        minimize(f, T, bounds=Bounds(np.zeros(2), np.ones(2)))
    with pytest.raises(
        TypeError,
        match="minimize: a constraint must be a LinearConstraint, a NonlinearConstraint or a "
        "dictionary, not function",
    ):
        minimize(f, T, constraints=[f])
    with pytest.raises(
        ValueError,
        match="minimize: a constraint that is a dictionary has 'type', which is 'eq' or 'ineq'",
    ):
        minimize(f, T, constraints={"type": "less", "fun": f})
    with pytest.raises(
        ValueError, match="minimize: the upper limit of a constraint has 2 elements; expected 3"
    ):
        minimize(f, T, constraints=NonlinearConstraint(lambda x: x, 0.0, np.ones(2)))


X1 = np.array([0.1])
NOT_PAIRS = {
    "minimize_scalar, bounds": lambda x: minimize_scalar(lambda t: t * t, bounds=x),
    "least_squares, bounds": lambda x: least_squares(lambda t: t, X1, bounds=x),
    "curve_fit, bounds": lambda x: curve_fit(lambda t, a: a * t, X1, X1, bounds=x),
    "solve_ivp, t_span": lambda x: solve_ivp(lambda t, y: -y, x, X1),
}


@pytest.mark.parametrize(
    ("given", "error"),
    [((0.0, 1.0, 2.0), ValueError), ((None, 1.0), ValueError), (5, TypeError), ("ab", TypeError)],
    ids=str,
)
@pytest.mark.parametrize("call", NOT_PAIRS)
def test_what_is_no_pair_is_refused(call: str, given: Any, error: type[Exception]) -> None:
    name, what = call.split(", ")
    with pytest.raises(error, match=f"^{name}: {what} must be 2 numbers or arrays, not "):
        NOT_PAIRS[call](given)


@pytest.mark.parametrize("given", [(0.5,), (None, 1.0), 5], ids=str)
def test_a_bracket_has_two_or_three_numbers(given: Any) -> None:
    with pytest.raises(
        (TypeError, ValueError), match="^minimize_scalar: bracket must be 2 or 3 numbers or arrays"
    ):
        minimize_scalar(lambda t: t * t, bracket=given)


@pytest.mark.parametrize("given", [(0.5,), 5, [5], [None], [(0.0, 1.0, 2.0)], "ab"], ids=str)
def test_bounds_that_are_no_pairs_are_refused(given: Any) -> None:
    text = "^minimize: bounds must be a scipy.optimize.Bounds or a sequence of 1 pairs"
    with pytest.raises(ValueError, match=text):
        minimize(lambda x: mg.sum(x**2), X1, bounds=given)


def test_callbacks_get_arrays_of_x0() -> None:
    seen: list[Any] = []
    f = lambda x: mg.sum((x["a"] - 1.0) ** 2)
    minimize(f, {"a": T}, callback=lambda xk: seen.append(xk["a"]))
    minimize(
        f, {"a": T}, callback=lambda intermediate_result: seen.append(intermediate_result.x["a"])
    )
    minimize(f, {"a": T}, method="trust-constr", callback=lambda x, state: seen.append(x["a"]))
    assert len(seen) >= 3 and all(type(x) is np.ndarray for x in seen)

    def stop(x: Any) -> None:
        raise StopIteration

    assert minimize(lambda x: mg.sum(x**4), T, callback=stop).nit == 1


def test_progress_wants_tqdm_and_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[Any] = []

    class Fake:
        def __init__(self, **settings: Any) -> None:
            steps.append(settings)

        def update(self, n: int) -> None:
            steps.append(n)

        def close(self) -> None:
            steps.append("closed")

    tqdm = ModuleType("tqdm.auto")
    tqdm.tqdm = Fake  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tqdm", ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", tqdm)
    result = minimize(quartic, np.zeros(3), args=(T,), progress=True)
    assert steps == [{"desc": "minimize", "unit": " iterations"}, *[1] * result.nit, "closed"]
    steps.clear()
    result = minimize_scalar(lambda x: (x - 1.0) ** 2, progress=True)
    assert steps.count(1) == result.nfev and steps[-1] == "closed"
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(
        ImportError,
        match=r"minimize: progress=True needs tqdm: pip install 'multigrad-scipy\[progress\]'",
    ):
        minimize(quartic, np.zeros(3), args=(T,), progress=True)


def test_importing_is_lazy() -> None:
    program = (
        "import sys, multigrad\n"
        "assert 'scipy' not in sys.modules and 'multigrad_scipy' not in sys.modules\n"
        "import multigrad_scipy\n"
        "assert 'scipy' not in sys.modules\n"
        "multigrad_scipy.root\n"
        "assert 'scipy.optimize' in sys.modules\n"
        "assert 'scipy.integrate' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    import multigrad_scipy

    with pytest.raises(
        AttributeError, match="module 'multigrad_scipy' has no attribute 'minimise'"
    ):
        multigrad_scipy.minimise
    assert set(dir(multigrad_scipy)) == set(multigrad_scipy.__all__)


# ----- derivatives -----


def test_orders_one_to_three_by_every_way() -> None:
    first = func.jacrev(minimum)
    np.testing.assert_allclose(first(T), differences(minimum, T), atol=1e-8)
    second = differences(first, T)
    for outer in (func.jacrev, func.jacfwd):
        for inner in (func.jacrev, func.jacfwd):
            np.testing.assert_allclose(outer(inner(minimum))(T), second, atol=1e-7)
    exact = func.jacfwd(first)
    third = func.jacfwd(exact)(T)
    np.testing.assert_allclose(third, differences(exact, T), atol=1e-6)
    t = mg.asarray(T, requires_grad=True)
    g = minimum(t)
    for expected in (
        first(T).sum(axis=0),
        exact(T).sum(axis=(0, 1)),
        third.sum(axis=(0, 1, 2)),
    ):
        (g,) = mg.autograd.grad(mg.sum(g), t, create_graph=True)
        np.testing.assert_allclose(g.detach().numpy(), expected, atol=1e-9)


def test_higher_orders_are_asked_for_by_order() -> None:
    t = mg.asarray(np.array([2.0]), requires_grad=True)
    for order, settings in ((3, {}), (1, {"order": 1}), (5, {"order": 5})):
        # the cube root of t
        g = minimize(lambda x: mg.sum(x**4 / 4 - t * x), np.ones(1), options=EXACT, **settings).x
        value, power = 2.0 ** (1 / 3), 1 / 3
        for _ in range(order):
            (g,) = mg.autograd.grad(mg.sum(g), t, create_graph=True)
            value, power = value * power / 2.0, power - 1
            np.testing.assert_allclose(g.detach().numpy(), [value], rtol=1e-9)
        with pytest.raises(
            GradientError,
            match="minimize: a derivative of a higher order was asked for than the solution was "
            "made for. Pass order=",
        ):
            mg.autograd.grad(mg.sum(g), t)
    with pytest.raises(GradientError, match="Pass order="):
        func.jacfwd(
            func.jacfwd(
                lambda t: minimize(lambda x: mg.sum(x**4 / 4 - t * x), np.ones(1), order=1).x
            )
        )(np.array([2.0]))


def test_a_tensor_comes_out_exactly_if_something_requires_grad() -> None:
    t = mg.asarray(T, requires_grad=True)
    for result in (
        minimize(lambda x: quartic(x, t), np.zeros(3)),
        minimize(quartic, np.zeros(3), args=(t,)),
        minimize(lambda x: quartic(x, T), np.zeros(3), bounds=[(None, t[1])] * 3),
        minimize(
            lambda x: quartic(x, T),
            np.zeros(3),
            constraints=NonlinearConstraint(lambda x: mg.sum(x), -np.inf, t[0]),
        ),
    ):
        assert result.x.requires_grad and (result.fun.requires_grad or result.fun.shape == ())
    plain = (
        minimize(lambda x: quartic(x, t.detach()), np.zeros(3)),
        minimize(quartic, np.zeros(3), args=(T,)),
    )
    with mg.no_grad():
        plain += (minimize(lambda x: quartic(x, t), np.zeros(3)),)
    assert all(type(result.x) is np.ndarray and type(result.fun) is np.ndarray for result in plain)
    started = minimize(quartic, t, args=(T,)).x
    assert isinstance(started, mg.Tensor) and not started.requires_grad


def test_fun_and_jac_have_derivatives_too() -> None:
    value = lambda t: minimize(quartic, np.zeros(3), args=(t,), options=EXACT).fun
    # the envelope theorem
    np.testing.assert_allclose(func.grad(value)(T), differences(value, T), atol=1e-8)
    slope = lambda t: (
        minimize(quartic, np.zeros(3), args=(t,), bounds=[(1.0, None)] * 3, tol=1e-12).jac
    )
    np.testing.assert_allclose(func.jacrev(slope)(T), differences(slope, T), atol=1e-5)


def test_minima_nest() -> None:
    inner = lambda y, t: (
        minimize(lambda x: mg.sum((x - y * t) ** 2 + 0.1 * x**4), np.zeros(2), options=EXACT).x
    )
    outer = lambda t: (
        minimize(
            lambda y: mg.sum((inner(y, t) - 1.0) ** 2 + 0.1 * (y - t) ** 2),
            np.ones(2),
            options={"gtol": 1e-10},
        ).x
    )
    t = np.array([1.0, 2.0])
    np.testing.assert_allclose(func.jacrev(outer)(t), differences(outer, t, 1e-4), atol=1e-5)


def test_a_function_with_a_derivative_in_reverse_mode_alone() -> None:
    class Fourth(mg.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**4

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 4.0 * ctx.saved_tensors[0] ** 3 * g

    found, expected = (
        func.jacrev(
            lambda t, power=power: minimize(lambda x: mg.sum(power(x - t) + x**2), np.zeros(3)).x
        )(T)
        for power in (Fourth.apply, lambda x: x**4)
    )
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_batches_are_solved_one_by_one() -> None:
    rows = np.stack([T, T + 0.5, 2 * T])
    expected = np.stack([minimum(t) for t in rows])
    np.testing.assert_array_equal(func.vmap(minimum)(rows), expected)
    np.testing.assert_allclose(
        func.vmap(func.jacrev(minimum))(rows),
        np.stack([func.jacrev(minimum)(t) for t in rows]),
        atol=1e-10,
    )
    limits = np.array([[0.5, 2.0, 3.0], [3.0, 0.2, 0.1]])
    clipped = func.vmap(
        func.jacrev(
            lambda t: minimize(lambda x: mg.sum((x - t) ** 2), np.zeros(3), bounds=[(0, 1)] * 3).x
        )
    )(limits)
    np.testing.assert_allclose(
        clipped, np.stack([np.diag([1.0, 0, 0]), np.diag([0, 1.0, 1.0])]), atol=1e-12
    )
    starts = func.vmap(lambda x0: minimize(lambda x: mg.sum((x**2 - 1.0) ** 2), x0).x)(
        np.array([[0.5], [-0.5]])
    )
    np.testing.assert_allclose(starts, [[1.0], [-1.0]], atol=1e-4)
    result: list[Any] = []
    func.vmap(lambda t: result.append(minimize(quartic, np.zeros(3), args=(t,))) or result[0].x)(
        rows
    )
    assert (
        result[0].success
        and result[0].nfev == sum(r.nfev for r in result[0].examples)
        and len(result[0].examples) == 3
    )


# ----- bounds and constraints -----


@pytest.mark.parametrize("method", ["L-BFGS-B", "TNC", "SLSQP", "trust-constr"])
def test_active_bounds(method: str) -> None:
    f = lambda x, t: mg.sum((x - t) ** 2) + x[0] * x[1] * x[2]
    t = np.array([2.0, 0.5, 0.3])
    start, bounds = np.array([0.5, 0.6, 0.7]), [(0, 1)] * 3
    solve = lambda t: minimize(f, start, args=(t,), method=method, bounds=bounds, tol=1e-12).x
    jacobian = func.jacrev(solve)(t)
    # x1 + x2 / 2 = t1 and x2 + x1 / 2 = t2
    np.testing.assert_allclose(solve(t), [1.0, 0.4666667, 0.0666667], atol=1e-4)
    np.testing.assert_allclose(jacobian[0], 0.0, atol=1e-12)
    np.testing.assert_allclose(
        jacobian[1:, 1:], np.linalg.inv([[1.0, 0.5], [0.5, 1.0]]), atol=1e-10
    )


@pytest.mark.parametrize("method", ["SLSQP", "trust-constr"])
def test_quadratic_programs_with_equality_constraints(method: str) -> None:
    """The minimum of x.Q.x/2 - c.x under A x = b is a linear function of c and b: the blocks of the
    inverse of [[Q, A^T], [A, 0]].
    """
    q = np.array([[3.0, 0.5, 0.2], [0.5, 2.0, 0.1], [0.2, 0.1, 1.0]])
    a, b, c = np.array([[1.0, 2.0, -1.0]]), np.array([0.7]), np.array([0.3, -0.2, 0.5])
    inverse = np.linalg.inv(np.block([[q, a.T], [a, np.zeros((1, 1))]]))

    def solve(c: Any, b: Any) -> Any:
        held = NonlinearConstraint(lambda x: mg.asarray(a) @ x, b, b)
        return minimize(
            lambda x: x @ (q @ x) / 2 - mg.sum(c * x), np.zeros(3), method=method, constraints=held
        ).x

    np.testing.assert_allclose(solve(c, b), inverse[:3] @ np.concatenate([c, b]), atol=1e-3)
    for jacobian in (func.jacrev, func.jacfwd):
        by_c, by_b = jacobian(solve, (0, 1))(c, b)
        np.testing.assert_allclose(by_c, inverse[:3, :3], atol=1e-10)
        np.testing.assert_allclose(by_b, inverse[:3, 3:], atol=1e-10)

    def by_matrix(a: Any) -> Any:
        return minimize(
            lambda x: x @ (q @ x) / 2 - mg.sum(c * x),
            np.zeros(3),
            method=method,
            constraints=LinearConstraint(a, b, b),
        ).x

    def closed(a: Any) -> Any:
        kkt = np.block([[q, a[:, None]], [a, np.zeros(1)]])
        return np.linalg.solve(kkt, np.concatenate([c, b]))[:3]

    found = func.jacrev(by_matrix)(a)
    np.testing.assert_allclose(found[:, 0], differences(closed, a[0]), atol=1e-8)


@pytest.mark.parametrize("method", ["SLSQP", "trust-constr", "COBYLA"])
def test_inequalities_active_and_not(method: str) -> None:
    held = lambda t: [
        NonlinearConstraint(lambda x: mg.sum(x**2 * t), -np.inf, 2.0),
        {"type": "ineq", "fun": lambda x: 9.0 - mg.sum(x)},
        {"type": "ineq", "fun": lambda x, t: x[0] + x[1] - t[0], "args": (t,)},
    ]
    f = lambda x, t: mg.sum((x - t) ** 2)
    t = np.array([1.4, 0.5, 0.3])
    exact = lambda t: (
        minimize(f, np.full(3, 0.5), args=(t,), method="SLSQP", constraints=held(t), tol=1e-14).x
    )
    solve = lambda t: minimize(f, np.full(3, 0.5), args=(t,), method=method, constraints=held(t)).x
    np.testing.assert_allclose(func.jacrev(solve)(t), differences(exact, t, 1e-4), atol=1e-5)


def test_derivatives_of_constraints_are_filled_in() -> None:
    fast = NonlinearConstraint(lambda x: x[0] * x[1], 1.0, np.inf)
    assert fast.jac == "2-point" and type(fast.hess) is BFGS
    f = lambda x: mg.sum(x**2)
    calls: list[Any] = []

    def jac(x: Any) -> Any:
        calls.append(x)
        return mg.stack([x[1], x[0]])

    given = NonlinearConstraint(
        lambda x: x[0] * x[1],
        1.0,
        np.inf,
        jac=jac,
        hess=lambda x, v: v[0] * np.array([[0.0, 1.0], [1.0, 0.0]]),
    )
    for held in (fast, given):
        x = minimize(f, np.array([2.0, 1.0]), method="trust-constr", constraints=held).x
        np.testing.assert_allclose(x, 1.0, atol=1e-3)
    assert calls
    by_dictionary = {"type": "ineq", "fun": lambda x: x[0] * x[1] - 1.0, "jac": jac}
    np.testing.assert_allclose(
        minimize(f, np.array([2.0, 1.0]), constraints=by_dictionary).x, 1.0, atol=1e-6
    )
    from scipy.sparse import csr_array

    sparse = LinearConstraint(csr_array(np.array([[1.0, 1.0]])), 1.0, 1.0)
    np.testing.assert_allclose(
        minimize(f, np.zeros(2), method="trust-constr", constraints=sparse).x, 0.5, atol=1e-6
    )


def test_bounds_and_limits_that_require_grad() -> None:
    b = mg.asarray(0.5, requires_grad=True)
    x = minimize(
        lambda x: mg.sum((x - 2.0) ** 2), np.array([0.1, 0.2]), bounds=[(0, b), (0, None)]
    ).x
    np.testing.assert_allclose(x.detach().numpy(), [0.5, 2.0], atol=1e-6)
    assert mg.autograd.grad(mg.sum(x), b)[0].item() == 1.0
    limit = lambda b: (
        minimize(
            lambda x: mg.sum((x - 2.0) ** 2),
            np.ones(2),
            constraints=NonlinearConstraint(mg.sum, -np.inf, b),
        ).x
    )
    np.testing.assert_allclose(func.jacfwd(limit)(np.array(1.0)), [0.5, 0.5])


# ----- what has no derivative -----


def test_what_is_no_minimum_is_refused() -> None:
    t = mg.asarray(T, requires_grad=True)
    with pytest.raises(
        GradientError,
        match=r"minimize: the solution has no derivative: it does not solve .* The solver said: "
        r"Maximum number",
    ):
        minimize(lambda x: quartic(x, t), np.full(3, 5.0), options={"maxiter": 1})
    assert not minimize(quartic, np.full(3, 5.0), args=(T,), options={"maxiter": 1}).success
    with pytest.raises(
        GradientError,
        match="minimize: the solution has no derivative: the Jacobian of .* is singular there",
    ):
        minimize(lambda x: (x[0] - t[0]) ** 2 + 0.0 * x[1], np.full(2, 3.0))
    with pytest.raises(GradientError, match="singular there"):  # two constraints that say the same
        minimize(
            lambda x: mg.sum((x - t) ** 2),
            np.zeros(3),
            constraints=[LinearConstraint(np.ones((1, 3)), 1.0, 1.0)] * 2,
            method="trust-constr",
        )


# ----- minimize_scalar -----


def test_minimize_scalar(backend: str) -> None:
    xp = raw_namespace(backend)
    t = xp.asarray(2.0, dtype=xp.float64)
    f = lambda x, t: (x - t) ** 2 + mg.exp(x)
    for settings in (
        {},
        {"method": "golden", "tol": 1e-10},
        {"bracket": (t * 0.0, t)},
        {"method": "bounded", "bounds": (t * 0.0, t)},
    ):
        result = minimize_scalar(f, args=(t,), **settings)
        assert type(result.x) is type(t) and result.x.shape == () and result.success
        np.testing.assert_allclose(float(result.x), 0.8408415, atol=1e-5)
    solve = lambda t: minimize_scalar(f, args=(t,)).x
    slope = 2.0 / (2.0 + np.exp(0.840841495369418))  # 2 (x - t) + exp(x) = 0
    for derivative in (func.grad(solve)(t), func.jvp(solve, (t,), (xp.ones_like(t),))[1]):
        np.testing.assert_allclose(float(derivative), slope, rtol=1e-6)
    second = -np.exp(0.840841495369418) * slope**2 / (2 + np.exp(0.840841495369418))
    np.testing.assert_allclose(float(func.grad(func.grad(solve))(t)), second, rtol=1e-6)


def test_minimize_scalar_at_a_bound_and_in_batches() -> None:
    solve = lambda t: minimize_scalar(lambda x: (x - t) ** 2, bounds=(0, t**2), method="bounded").x
    assert (
        abs(func.grad(solve)(np.array(0.5)) - 1.0) < 1e-12
        and abs(func.grad(func.grad(solve))(np.array(0.5)) - 2.0) < 1e-12
    )
    np.testing.assert_allclose(func.vmap(func.grad(solve))(np.array([0.5, 2.0])), [1.0, 1.0])
    np.testing.assert_allclose(func.vmap(solve)(np.array([0.5, 2.0])), [0.25, 2.0], atol=1e-4)
    assert type(minimize_scalar(lambda x: (x - 1.0) ** 2).x) is np.ndarray
