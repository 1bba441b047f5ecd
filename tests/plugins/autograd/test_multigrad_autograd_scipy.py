"""multigrad-autograd's SciPy: values are SciPy's, derivatives those of differences, to second
order. HIPS autograd's own tests and examples run by `make test-clients`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from consumer_checks import drawn
from consumer_tables import check
from pytest_runs import run_page

import multigrad as mg
from multigrad import func
from multigrad.errors import MissingRuleError

pytest.importorskip("scipy", reason="SciPy is not installed")

import scipy.integrate
import scipy.linalg
import scipy.signal
import scipy.special
import scipy.stats

import multigrad_autograd as autograd
from multigrad_autograd.misc import optimizers
from multigrad_autograd.scipy import integrate, linalg, signal, special, stats

Function = Callable[..., Any]
GUIDE = Path(__file__).parents[3] / "docs" / "from-autograd.md"


def spd(n: int, seed: int = 0) -> Any:
    a = drawn(n, n, seed=seed)
    return a @ a.T + np.eye(n)


def below_one(*shape: int, seed: int = 0) -> Any:
    return drawn(*shape, low=0.1, high=0.9, seed=seed)


X, Y = drawn(4), drawn(4, seed=1)
WIDE, ROW, COLUMN = drawn(4, 3), drawn(1, 3, seed=1), drawn(4, 1, seed=2)

# By name: a function, and the arrays to call it on. It is differentiable by each of them.
CALLS: dict[str, tuple[Function, tuple[Any, ...]]] = {
    "special.beta": (special.beta, (X, Y)),
    "special.betainc": (lambda x: special.betainc(1.3, 2.1, x), (below_one(4),)),
    "special.betaln": (special.betaln, (X, Y)),
    "special.digamma": (special.digamma, (X,)),
    "special.erf": (special.erf, (X,)),
    "special.erfc": (special.erfc, (X,)),
    "special.erfinv": (special.erfinv, (below_one(4),)),
    "special.erfcinv": (special.erfcinv, (X,)),
    "special.expit": (special.expit, (X,)),
    "special.gamma": (special.gamma, (X,)),
    "special.gammainc": (lambda x: special.gammainc(1.3, x), (X,)),
    "special.gammaincc": (lambda x: special.gammaincc(np.asarray([1.3, 2.0, 3.0, 4.0]), x), (X,)),
    "special.gammaln": (special.gammaln, (X,)),
    "special.i0": (special.i0, (X,)),
    "special.i1": (special.i1, (X,)),
    "special.iv": (lambda x: special.iv(2.4, x), (X,)),
    "special.iv, orders": (lambda x: special.iv(np.arange(4), x), (X,)),
    "special.ive": (lambda x: special.ive(2, x), (X - 1,)),
    "special.j0": (special.j0, (X * 4,)),
    "special.j1": (special.j1, (X * 4,)),
    "special.jn": (lambda x: special.jn(2, x), (X * 4,)),
    "special.logit": (special.logit, (below_one(4),)),
    "special.logsumexp": (special.logsumexp, (WIDE,)),
    "special.logsumexp, axis": (lambda x: special.logsumexp(x, axis=1), (WIDE,)),
    "special.logsumexp, axes": (
        lambda x: special.logsumexp(x, axis=(0, -1), keepdims=True),
        (drawn(2, 3, 4),),
    ),
    "special.logsumexp, b": (lambda x, b: special.logsumexp(x, 0, b), (WIDE, ROW)),
    "special.logsumexp, negative b": (
        lambda x: special.logsumexp(x, axis=1, b=np.asarray([2.0, -0.3, 1.0])),
        (WIDE,),
    ),
    "special.multigammaln": (lambda a: special.multigammaln(a, 3), (X + 2,)),
    "special.polygamma": (lambda x: special.polygamma(1, x), (X,)),
    "special.psi": (special.psi, (X,)),
    "special.rgamma": (special.rgamma, (np.asarray([0.7, 2.3, -0.4, -1.0, 0.0, -3.7]),)),
    "special.y0": (special.y0, (X * 4,)),
    "special.y1": (special.y1, (X * 4,)),
    "special.yn": (lambda x: special.yn(2, x), (X * 4,)),
    "stats.norm.pdf": (stats.norm.pdf, (X, Y, X + Y)),
    "stats.norm.logpdf": (stats.norm.logpdf, (WIDE, ROW, COLUMN)),
    "stats.norm.cdf": (stats.norm.cdf, (WIDE, ROW, COLUMN)),
    "stats.norm.logcdf": (stats.norm.logcdf, (X, Y, X + Y)),
    "stats.norm.sf": (stats.norm.sf, (X, Y, X + Y)),
    "stats.norm.logsf": (stats.norm.logsf, (X, Y, X + Y)),
    "stats.norm.logpdf, names": (lambda x, s: stats.norm.logpdf(x, scale=s), (X, Y)),
    "stats.norm.cdf, names": (lambda x, m: stats.norm.cdf(x, loc=m), (X, Y)),
    "stats.t.pdf": (stats.t.pdf, (X, Y + 2, Y, X + Y)),
    "stats.t.logpdf": (stats.t.logpdf, (WIDE, ROW + 2, drawn(4, 3, seed=3), COLUMN)),
    "stats.t.cdf": (lambda x, m, s: stats.t.cdf(x, 2.4, m, s), (X, Y, X + Y)),
    "stats.t.logcdf": (lambda x, m, s: stats.t.logcdf(x, 2.4, m, s), (X, Y, X + Y)),
    "stats.gamma.pdf": (stats.gamma.pdf, (X, Y + 1)),
    "stats.gamma.logpdf": (lambda x, a, s: stats.gamma.logpdf(x, a, scale=s), (X, Y + 1, COLUMN)),
    "stats.gamma.cdf": (lambda x: stats.gamma.cdf(x, 1.7), (X,)),
    "stats.beta.pdf": (stats.beta.pdf, (below_one(4), X + 1, Y)),
    "stats.beta.logpdf": (stats.beta.logpdf, (below_one(4), X + 1, Y)),
    "stats.beta.cdf": (lambda x: stats.beta.cdf(x, 1.7, 2.2), (below_one(4),)),
    "stats.chi2.pdf": (stats.chi2.pdf, (X, Y + 1)),
    "stats.chi2.logpdf": (stats.chi2.logpdf, (X, Y + 1)),
    "stats.chi2.cdf": (lambda x: stats.chi2.cdf(x, 3), (X,)),
    "stats.poisson.pmf": (lambda mu: stats.poisson.pmf(np.arange(4), mu), (X,)),
    "stats.poisson.logpmf": (lambda mu: stats.poisson.logpmf(np.asarray([[0], [3]]), mu + 1), (X,)),
    "stats.poisson.pmf, elsewhere": (
        lambda mu: stats.poisson.pmf(np.asarray([[0.0], [1.5], [-1.0]]), mu + 1),
        (X,),
    ),
    "stats.poisson.cdf": (lambda mu: stats.poisson.cdf(np.arange(4), mu, 1), (X,)),
    "stats.dirichlet.logpdf": (lambda x, a: stats.dirichlet.logpdf(x / sum(x), a), (X, Y + 1)),
    "stats.dirichlet.pdf": (
        lambda x, a: stats.dirichlet.pdf(x / (x[0] + x[1] + x[2] + x[3]), a),
        (drawn(4, 3), Y + 1),
    ),
    "stats.dirichlet.logpdf, without the last": (stats.dirichlet.logpdf, (0.2 * drawn(3), Y + 1)),
    "stats.multivariate_normal.logpdf": (
        lambda x, m, s: stats.multivariate_normal.logpdf(x, m, s + s.T),
        (X, Y, spd(4)),
    ),
    "stats.multivariate_normal.pdf": (
        lambda x, m, s: stats.multivariate_normal.pdf(x, m, s + s.T),
        (drawn(5, 4), Y, spd(4)),
    ),
    "stats.multivariate_normal.logpdf, diagonal": (
        stats.multivariate_normal.logpdf,
        (drawn(5, 4), Y, X + 1),
    ),
    "stats.multivariate_normal.logpdf, a number": (
        lambda x, s: stats.multivariate_normal.logpdf(x, 0.3, s),
        (X, np.asarray(1.3)),
    ),
    "stats.multivariate_normal.entropy": (
        lambda s: stats.multivariate_normal.entropy(Y, s + s.T),
        (spd(4),),
    ),
    "linalg.sqrtm": (linalg.sqrtm, (spd(4) + 0.1 * drawn(4, 4),)),
    "linalg.solve_sylvester": (linalg.solve_sylvester, (spd(3), spd(2, 1), drawn(3, 2))),
    "linalg.solve_triangular": (linalg.solve_triangular, (spd(4), X)),
    "linalg.solve_triangular, transposed": (
        lambda a, b: linalg.solve_triangular(a, b, "T", lower=True),
        (spd(4), WIDE),
    ),
    "linalg.solve_triangular, adjoint": (
        lambda a, b: linalg.solve_triangular(a, b, trans=2, unit_diagonal=True),
        (spd(4), X),
    ),
    "linalg.solve_banded": (
        lambda a, b: linalg.solve_banded((1, 2), a, b),
        (drawn(4, 5) + 3 * (np.arange(4) == 2)[:, None], drawn(5)),
    ),
    "signal.convolve": (signal.convolve, (drawn(5), drawn(3))),
    "signal.convolve, same": (
        lambda a, b: signal.convolve(a, b, mode="same"),
        (drawn(5, 4), drawn(3, 2)),
    ),
    "signal.convolve, valid": (
        lambda a, b: signal.convolve(a, b, mode="valid"),
        (drawn(2, 3), drawn(4, 3)),
    ),
    "signal.convolve, axes": (
        lambda a, b: signal.convolve(a, b, axes=([1], [0])),
        (drawn(2, 5), drawn(3, 2)),
    ),
    "signal.convolve, dot": (
        lambda a, b: signal.convolve(
            a, b, axes=([2, 3], [2, 3]), dot_axes=([1], [0]), mode="valid"
        ),
        (drawn(2, 3, 5, 4), drawn(3, 2, 2, 3)),
    ),
    "integrate.odeint": (
        lambda y, a: integrate.odeint(
            lambda y, t, a, b: -y * a["rate"] + b[0] * t,
            y,
            np.linspace(0, 1, 4),
            (a, (0.5,)),
            rtol=1e-11,
            atol=1e-11,
        ),
        (drawn(2), {"rate": drawn(2, seed=1)}),
    ),
}
LOOSE = {"integrate.odeint": 1e-5, "special.logsumexp, negative b": 1e-6, "special.rgamma": 1e-6}


@pytest.mark.parametrize("name", CALLS)
def test_values_are_those_of_scipy_and_derivatives_those_of_differences(name: str) -> None:
    function, args = CALLS[name]
    if name == "integrate.odeint":
        function, args = _flat_odeint(function), (args[0], args[1]["rate"])
    check("numpy", function, *args, rtol=LOOSE.get(name, 1e-7), value_rtol=1e-12)


def _flat_odeint(function: Function) -> Function:
    return lambda y, rate: function(y, {"rate": rate})


# ----- the guide -----


def test_the_guide_for_programs_of_hips_autograd_runs(tmp_path: Path) -> None:
    """In a process of its own: `install` is for good."""
    run_page(GUIDE, tmp_path, 8)


# ----- raw arrays, edges, what raises -----


RAW = [
    (special.logsumexp, scipy.special.logsumexp, (WIDE,)),
    (special.logsumexp, scipy.special.logsumexp, (np.asarray([np.inf, 1.0, -np.inf]),)),
    (special.logsumexp, scipy.special.logsumexp, ([1, 2],)),
    (special.logsumexp, scipy.special.logsumexp, (np.asarray([-np.inf, -np.inf]),)),
    (stats.norm.logpdf, scipy.stats.norm.logpdf, (X, Y, -X)),
    (stats.norm.pdf, scipy.stats.norm.pdf, (WIDE, ROW)),
    (stats.norm.pdf, scipy.stats.norm.pdf, ([0.1, 0.2], 0, 1)),
    (stats.norm.logpdf, scipy.stats.norm.logpdf, (0.3,)),
    (stats.t.logpdf, scipy.stats.t.logpdf, (X, 2.4, Y)),
    (
        stats.multivariate_normal.logpdf,
        scipy.stats.multivariate_normal.logpdf,
        (WIDE @ WIDE.T, X, spd(4)),
    ),
    (stats.multivariate_normal.pdf, scipy.stats.multivariate_normal.pdf, (X, Y, spd(4))),
    (stats.multivariate_normal.pdf, scipy.stats.multivariate_normal.pdf, (X, 0.2, 1.3)),
    (stats.dirichlet.rvs, scipy.stats.dirichlet.rvs, (X, 2, 0)),
    (linalg.expm, scipy.linalg.expm, (spd(3),)),
    (linalg.block_diag, scipy.linalg.block_diag, (WIDE, ROW)),
]


@pytest.mark.parametrize("i", range(len(RAW)))
def test_raw_arrays_give_what_scipy_gives(i: int) -> None:
    function, expected, args = RAW[i]
    out, known = function(*args), expected(*args)
    assert type(out) is type(known) and np.shape(out) == np.shape(known)
    np.testing.assert_allclose(out, known, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (lambda x: stats.gamma.logpdf(x, 1.5), [-1.0, 0.0]),
        (lambda x: stats.gamma.pdf(x, 1.5), [-1.0]),
        (lambda x: stats.beta.logpdf(x, 1.5, 2.0), [-0.1, 1.1]),
        (lambda x: stats.beta.cdf(x, 1.5, 2.0), [-0.1, 1.1]),
        (lambda x: stats.chi2.pdf(x, 3.0), [-1.0]),
        (lambda x: stats.gamma.cdf(x, 2.0), [-1.0]),
    ],
)
def test_outside_of_the_support_derivatives_are_zero(function: Function, x: list[float]) -> None:
    t = mg.asarray(np.asarray(x), requires_grad=True)
    out = function(t)
    np.testing.assert_array_equal(out.detach().numpy(), function(np.asarray(x)))
    (g,) = mg.autograd.grad(out, t, mg.ones_like(out))
    np.testing.assert_array_equal(g.numpy(), 0.0)


@pytest.mark.parametrize(
    "function",
    [
        lambda s: stats.norm.logpdf(0.3, 0.0, s),
        lambda s: stats.norm.cdf(0.3, 0.0, s),
        lambda s: stats.t.logpdf(0.3, s),
        lambda s: stats.gamma.pdf(0.3, s),
        lambda s: stats.beta.logpdf(0.3, 1.0, s),
        lambda s: stats.chi2.logpdf(0.3, s),
    ],
)
def test_parameters_that_must_be_positive_give_nan(function: Function) -> None:
    assert math.isnan(
        function(mg.asarray(np.asarray(-1.0), requires_grad=True)).item()
    ) and math.isnan(function(-1.0))


def test_a_logarithm_of_a_sum_of_nothing_has_no_slope() -> None:
    x = mg.asarray(np.asarray([[-np.inf, -np.inf], [0.0, -np.inf]]), requires_grad=True)
    (g,) = mg.autograd.grad(special.logsumexp(x, axis=1), x, mg.ones(2))
    assert g.tolist() == [[0.0, 0.0], [1.0, 0.0]]


def test_float32_stays() -> None:
    x = mg.asarray(X.astype(np.float32), requires_grad=True)
    functions: list[Function] = [
        special.logsumexp,
        special.j0,
        special.erfcinv,
        special.rgamma,
        stats.norm.logpdf,
        stats.norm.cdf,
    ]
    functions += [
        lambda x: stats.t.logpdf(x, 3.0),
        lambda x: stats.gamma.logpdf(x, 2.0),
        lambda x: stats.beta.pdf(0.3 * x, 2.0, 3.0),
    ]
    for function in functions:
        assert function(x).dtype == np.float32


def test_forward_mode_and_reverse_mode_agree() -> None:
    for name, (function, args) in CALLS.items():
        if name.startswith("integrate"):
            continue
        tangents = tuple(drawn(*np.shape(a), seed=9) for a in args)
        out, moved = func.jvp(function, args, tangents)
        _, pullback = func.vjp(function, *args)
        g = drawn(*np.shape(out), seed=8)
        back = sum(np.sum(x * t) for x, t in zip(pullback(g), tangents, strict=True))
        np.testing.assert_allclose(np.sum(moved * g), back, rtol=1e-8, err_msg=name)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1)])
def test_logsumexp_of_complex_numbers(axis: Any, keepdims: bool) -> None:
    z = drawn(2, 3) + 1j * drawn(2, 3, seed=1)
    g = scipy.special.logsumexp(z, axis=axis, keepdims=keepdims)
    out, pullback = func.vjp(lambda z: special.logsumexp(z, axis=axis, keepdims=keepdims), z)
    weights = np.exp(z - scipy.special.logsumexp(z, axis=axis, keepdims=True))
    np.testing.assert_allclose(out, g, rtol=1e-12)
    spread = g if keepdims or np.ndim(g) == 0 else np.expand_dims(g, axis)
    np.testing.assert_allclose(pullback(np.asarray(g))[0], spread * weights.conj(), rtol=1e-12)


def test_solve_sylvester_of_a_real_and_a_complex_matrix() -> None:
    """SciPy's own result is wrong here: its real matrix has complex eigenvalues."""
    a, b, q = (
        np.asarray([[1.0, 2.0], [-2.0, 1.0]]),
        drawn(3, 3) + 1j * drawn(3, 3, seed=1),
        drawn(2, 3),
    )
    for at in range(3):
        given = [a, b, q]
        given[at] = mg.asarray(given[at], requires_grad=True)
        x = linalg.solve_sylvester(*given).detach().numpy()
        np.testing.assert_allclose(a @ x + x @ b, q, atol=1e-12)


def test_convolutions_of_complex_numbers_are_differentiated() -> None:
    a, b = spd(3) + 1j * drawn(3, 3), drawn(3, 2) + 1j * drawn(3, 2, seed=2)
    g = drawn(3, 2, seed=3) - 1j * drawn(3, 2, seed=4)
    for function in (
        lambda a, b: signal.convolve(a, b, mode="same"),
        lambda a, b: signal.convolve(b, a[:2, :2], mode="valid"),
    ):
        out, pullback = func.vjp(function, a, b)
        cotangent = (
            g[: out.shape[0], : out.shape[1]]
            if out.shape[1] <= 2
            else np.ones(out.shape) * (1 - 2j)
        )
        for i, (x, found) in enumerate(zip((a, b), pullback(cotangent), strict=True)):
            for direction in (drawn(*x.shape, seed=5), 1j * drawn(*x.shape, seed=6)):
                moved = [
                    (function(*[y + h * direction if j == i else y for j, y in enumerate((a, b))]))
                    for h in (1e-6, -1e-6)
                ]
                exact = np.sum(np.conj(cotangent) * (moved[0] - moved[1]) / 2e-6).real
                np.testing.assert_allclose(
                    np.sum(np.conj(found) * direction).real, exact, rtol=1e-6, atol=1e-7
                )


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        (
            lambda t: special.jn(t, 0.3),
            MissingRuleError,
            "hips.jv' has no derivative rule for its argument 'v'",
        ),
        (
            lambda t: special.yn(1.5, t),
            NotImplementedError,
            "yn of a box takes integer orders, not 1.5: yn truncates others",
        ),
        (
            lambda t: special.polygamma(t[0], t),
            NotImplementedError,
            "polygamma of a box takes one order, an int, not Tensor",
        ),
        (
            lambda t: special.logsumexp(t, return_sign=True),
            NotImplementedError,
            "logsumexp of a box takes no return_sign=True",
        ),
        (
            lambda t: linalg.expm(t),
            NotImplementedError,
            "scipy.linalg.expm has no derivative here. For its values alone",
        ),
        (
            lambda t: linalg.inv(t),
            NotImplementedError,
            "scipy.linalg.inv has no derivative here; multigrad_autograd.numpy.linalg.inv has one",
        ),
        (
            lambda t: linalg.block_diag(t),
            NotImplementedError,
            "scipy.linalg.block_diag has no derivative here",
        ),
        (
            lambda t: linalg.sqrtm(t, disp=False),
            NotImplementedError,
            "sqrtm of a box takes no disp=False",
        ),
        (
            lambda t: linalg.solve_triangular(t, t, trans="X"),
            ValueError,
            "trans must be one of 0, 1, 2, 'N', 'T', 'C', not 'X'",
        ),
        (
            lambda t: signal.convolve(t, t, mode="most"),
            ValueError,
            "mode must be 'full', 'valid' or 'same', not 'most'",
        ),
        (
            lambda t: signal.convolve(WIDE, drawn(5, 2) * t[0], mode="valid"),
            ValueError,
            "one array must be as long as the other",
        ),
        (
            lambda t: signal.convolve(t, t, axes=([0], [])),
            ValueError,
            "axes and dot_axes must name as many axes of A as of B",
        ),
        (
            lambda t: signal.convolve(WIDE, t, axes=([], []), dot_axes=([1], [0])),
            ValueError,
            "differ in length",
        ),
        (
            lambda t: integrate.odeint(lambda y, t: -y, t, [0, 1], full_output=True),
            NotImplementedError,
            "odeint of boxes takes no full_output",
        ),
        (
            lambda t: stats.multivariate_normal.logpdf(X, Y, spd(4) * t[0], True).backward(),
            NotImplementedError,
            "covariance that may be singular",
        ),
        (
            lambda t: stats.dirichlet.rvs(t),
            NotImplementedError,
            "scipy.stats.dirichlet.rvs has no derivative here",
        ),
        (lambda t: stats.norm.cdf(t, shape=1.0), TypeError, "expected the arguments x, loc, scale"),
        (
            lambda t: linalg.nothing,
            AttributeError,
            "module 'multigrad_autograd.scipy.linalg' has no attribute 'nothing'",
        ),
    ],
)
def test_what_raises_says_why(function: Function, error: type[Exception], text: str) -> None:
    t = mg.asarray(X, requires_grad=True)
    with pytest.raises(error, match=re.escape(text)):
        out = function(t)
        mg.sum(out).backward()


def test_constant_boxes_go_through_functions_without_a_rule() -> None:
    np.testing.assert_array_equal(linalg.expm(mg.asarray(spd(3))), scipy.linalg.expm(spd(3)))


# ----- solutions of equations -----


def test_an_ode_is_differentiable_by_its_times_to_second_order() -> None:
    def loss(t: Any, rate: Any) -> Any:
        y = integrate.odeint(
            lambda y, t, r: -r * y * t, np.asarray([1.0, 2.0]), t, (rate,), rtol=1e-11, atol=1e-11
        )
        return (y * np.asarray([1.0, -0.5])).sum() + (y[-1, :] ** 2).sum()

    def exact(t: Any, rate: Any) -> Any:
        decay = mg.exp(-0.5 * rate * (t**2 - t[0] ** 2))
        y = decay[:, None] * np.asarray([1.0, 2.0])
        return mg.sum(y * np.asarray([1.0, -0.5])) + mg.sum(y[-1, :] ** 2)

    t, rate = np.asarray([0.1, 0.4, 1.1]), np.asarray(0.7)
    for ours, known in zip(
        func.grad(loss, (0, 1))(t, rate), func.grad(exact, (0, 1))(t, rate), strict=True
    ):
        np.testing.assert_allclose(ours, known, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(
        func.grad(func.grad(loss, 1), 1)(t, rate),
        func.grad(func.grad(exact, 1), 1)(t, rate),
        rtol=1e-5,
    )


def test_options_of_an_ode_are_scipys() -> None:
    y0 = mg.asarray(np.asarray([1.0]), requires_grad=True)
    times = np.linspace(0, 1, 3)
    out = integrate.odeint(
        lambda t, y, k: -k * y,
        y0,
        times,
        (2,),
        tfirst=True,
        Dfun=lambda t, y, k: np.asarray([[-2.0]]),
    )
    known = scipy.integrate.odeint(
        lambda t, y, k: -k * y,
        [1.0],
        times,
        (2,),
        tfirst=True,
        Dfun=lambda t, y, k: np.asarray([[-2.0]]),
    )
    np.testing.assert_array_equal(out.detach().numpy(), known)
    (g,) = mg.autograd.grad(out[-1, 0], y0)
    np.testing.assert_allclose(g.numpy(), np.exp(-2.0), rtol=1e-6)


# ----- optimizers -----


def quadratic(x: Any, i: int) -> Any:
    return {"a": 2 * (x["a"] - 1.0), "b": [0.2 * x["b"][0]]}


@pytest.mark.parametrize("name", ["sgd", "rmsprop", "adam"])
def test_optimizers_step_as_their_papers_say(name: str) -> None:
    told: list[Any] = []
    start = {"a": np.asarray([3.0, -1.0]), "b": [np.asarray(2.0)]}
    out = getattr(optimizers, name)(
        quadratic,
        start,
        lambda x, i, g: told.append((i, x["a"].copy(), g["b"][0])),
        num_iters=3,
        step_size=0.1,
    )
    assert [i for i, _, _ in told] == [0, 1, 2] and start["a"].tolist() == [3.0, -1.0]
    x, memory, square = (
        np.asarray([3.0, -1.0, 2.0]),
        np.zeros(3),
        np.ones(3) if name == "rmsprop" else np.zeros(3),
    )
    for i in range(3):
        np.testing.assert_allclose(told[i][1], x[:2], rtol=1e-14)
        g = np.asarray([2.0, 2.0, 0.2]) * (x - np.asarray([1.0, 1.0, 0.0]))
        if name == "sgd":
            memory = 0.9 * memory - 0.1 * g
            x = x + 0.1 * memory
        elif name == "rmsprop":
            square = 0.9 * square + 0.1 * g**2
            x = x - 0.1 * g / (np.sqrt(square) + 1e-8)
        else:
            memory, square = 0.9 * memory + 0.1 * g, 0.999 * square + 0.001 * g**2
            x = x - 0.1 * (memory / (1 - 0.9 ** (i + 1))) / (
                np.sqrt(square / (1 - 0.999 ** (i + 1))) + 1e-8
            )
    np.testing.assert_allclose([*out["a"], out["b"][0]], x, rtol=1e-14)


def test_an_optimization_can_be_differentiated() -> None:
    def reached(rate: Any) -> Any:
        return np.sum(
            optimizers.sgd(
                lambda x, i: 2 * x, np.asarray([1.0]), num_iters=2, step_size=rate, mass=0.0
            )
        )

    assert math.isclose(autograd.grad(reached)(0.1), -4 * (1 - 0.2), rel_tol=1e-12)
