"""multigrad-special at the ends of domains and outside of them: values are SciPy's, and where they
are nan so are derivatives.

The gradients at most ends are kinks among the samples, which the conformance suite checks.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from conftest import values

import multigrad as mg

pytest.importorskip("scipy", reason="SciPy is not installed")

import scipy.special

# NumPy's and SciPy's, of infinities and of counts that are no integers
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

INF, NAN = math.inf, math.nan
LINE = np.asarray([0.0, -0.0, -1.0, -2.0, -2.5, 0.5, 1.0, 2.0, INF, -INF, NAN])
FEW = [0.0, -0.0, 0.5, 1.0, 3.0, -1.0, INF, NAN]
CHANCES = [0.0, 0.3, 1.0, -0.1, 1.1, NAN]


def every(*columns: Any) -> tuple[Any, ...]:
    """Every combination, in one array for each argument."""
    return tuple(a.ravel() for a in np.meshgrid(*columns))


def rows(text: str) -> tuple[Any, ...]:
    """The arguments of each call between commas, in one array for each argument."""
    return tuple(np.asarray([[float(v) for v in row.split()] for row in text.split(",")]).T)


def counts(text: str) -> tuple[Any, ...]:
    """The same of a function whose second argument is a number of trials."""
    k, n, p = rows(text)
    return k, n.astype(int), p


OF_ONE = (
    *("erf", "erfc", "erfcx", "erfinv", "ndtr", "log_ndtr", "ndtri", "logit", "expit"),
    *("log_expit", "entr", "gamma", "loggamma", "rgamma", "gammasgn", "digamma", "zeta"),
    *("zetac", "i0e", "i1e", "ellipk", "ellipe", "ellipkm1", "exp1", "expi"),
    *("cbrt", "cosm1", "exp10", "exp2", "exprel", "sinc"),
    *("j0", "j1", "y0", "y1", "k0", "k0e", "k1", "k1e"),
)

EDGES: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(OF_ONE, (LINE,)),
    **dict.fromkeys(("gammaln", "i0", "i1", "spence"), (LINE[np.isfinite(LINE)],)),
    **dict.fromkeys(("jv", "yv", "yn", "kv"), every([0.0, 1.0, 2.0, -1.0], [0.0, -1.0, INF, NAN])),
    "expn": every([-1.0, 0.0, 1.0, 2.0, 3.0], [0.0, -0.0, 1.0, -1.0, 700.0, INF, NAN]),
    **dict.fromkeys(
        ("kl_div", "rel_entr", "xlog1py", "xlogy"),
        every([0.0, 0.5, 1.0, -1.0, NAN], [0.0, 0.5, 1.0, -1.0, NAN]),
    ),
    **dict.fromkeys(
        ("boxcox", "boxcox1p", "huber", "inv_boxcox", "inv_boxcox1p", "pseudo_huber"),
        every([-2.0, -1.0, 0.0, 0.5, 2.0, NAN], [-1.0, 0.0, 1.0, 2.0, NAN]),
    ),
    "poch": rows("-3 2, -3 5, 0 1, 2 -1, -2.5 3, -2.5 1.2, 4 0, nan 1"),
    "binom": rows("5 2, 5 6, 5 -1, -1 2, 30 15, 2.5 -1, -2.5 3, 60 43, 0 0, nan 1"),
    "hurwitz_zeta": rows("1 2, .5 2, -1 2, 2 0, 2 -1.5, 3 -1.5, 2.5 -1.5, 2 -1, inf 2, 2 nan"),
    **dict.fromkeys(("gammainc", "gammaincc", "chdtr", "chdtrc", "pdtr", "pdtrc"), every(FEW, FEW)),
    **dict.fromkeys(
        ("gammaincinv", "gammainccinv", "chdtri", "pdtri"),
        every([0.0, 0.5, 1.0, 2.5, -1.0, NAN], CHANCES),
    ),
    **dict.fromkeys(("gdtr", "gdtrc"), every(FEW, FEW, FEW)),
    **dict.fromkeys(
        ("betainc", "betaincc"),
        rows(
            "2 3 0, 2 3 1, 2 3 -0, 1 1 -.1, 1 1 1.1, -1 1 .5, 0 1 .5, 0 1 0, 1 0 .5, 1 0 1,"
            "0 0 .5, inf 1 .5, inf 1 1, 1 inf .5, 1 inf 0, inf inf .5, 1 2 nan, nan 2 .5"
        ),
    ),
    **dict.fromkeys(
        ("betaincinv", "betainccinv"),
        rows("2 3 0, 2 3 1, 1 1 -.1, 1 1 1.1, -1 1 .5, 0 1 .5, 2 1 nan"),
    ),
    **dict.fromkeys(
        ("fdtr", "fdtrc"),
        rows(
            "3 4 0, 3 4 inf, 3 4 -1, 0 4 .5, 3 0 .5, inf 4 .5, 3 inf .5, 3 4 nan, 3 4 1e300,-1 4 .5"
        ),
    ),
    "fdtri": rows("3 4 0, 3 4 1, 3 4 -.1, 3 4 1.1, 0 4 .5, 3 -1 .5, 3 4 nan"),
    "stdtr": rows("3 0, 3 inf, 3 -inf, 0 .5, -1 .5, inf .7, inf -2, 3 nan, 1 1e200"),
    "stdtrit": rows("3 1, 3 .5, 3 -.1, 3 1.1, inf .7, 0 .7, 3 nan"),
    **dict.fromkeys(
        ("bdtr", "bdtrc", "bdtri"),
        counts(
            "0 3 .2, 0 3 0, 0 3 1, 2 3 0, 2 3 1, 3 3 .2, 4 3 .2, -1 3 .2, -.5 3 .2, 1.7 3 .2,"
            "1 3 -.1, 1 3 1.1, 1 3 nan, 0 0 .5, 3 3 nan, -1 -2 .5"
        ),
    ),
    **dict.fromkeys(
        ("nbdtr", "nbdtrc", "nbdtri"),
        counts("0 3 .2, 0 3 0, 0 3 1, 2 3 .4, -1 3 .2, 1 3 -.1, 1 3 1.1, 1 3 nan, 0 0 .5, 2 -1 .5"),
    ),
}


@pytest.mark.parametrize("name", EDGES)
def test_edges_are_those_of_scipy(name: str, xp: Any) -> None:
    np.testing.assert_allclose(
        values(getattr(xp.special, name)(*map(xp.asarray, EDGES[name]))),
        getattr(scipy.special, "zeta" if name == "hurwitz_zeta" else name)(*EDGES[name]),
        rtol=1e-13,
        atol=1e-16,
    )


def gradients(xp: Any, name: str, *args: Any, by: tuple[int, ...]) -> list[Any]:
    given = [xp.asarray(np.asarray(a), requires_grad=i in by) for i, a in enumerate(args)]
    y = getattr(xp.special, name)(*given)
    return [values(g) for g in mg.autograd.grad(xp.sum(y), [given[i] for i in by])]


# Their derivatives are finite, or infinite, at some points where they are nan themselves.
DEFINED_FURTHER = ("digamma", "gammasgn", "xlogy", "xlog1py")


@pytest.mark.sweep_after(81)
@pytest.mark.parametrize("name", [name for name in EDGES if name not in DEFINED_FURTHER])
def test_where_values_are_nan_so_are_gradients(name: str, light: Any) -> None:
    op = mg.registry.OPS[f"special.{name}"]
    arrays = list(op.roles)[: len(EDGES[name])]  # zeta is given one
    by = tuple(i for i, p in enumerate(arrays) if p in op.vjp or op.kind == "composite")
    undefined = np.isnan(values(getattr(light.special, name)(*map(light.asarray, EDGES[name]))))
    for g in gradients(light, name, *EDGES[name], by=by):
        assert np.isnan(g[undefined]).all()


@pytest.mark.parametrize(
    "name, args, by, expected",
    [
        ("betainc", (2.0, 3.0, 1.0), 1, 0.0),
        ("betainc", (0.5, 3.0, 0.0), 2, INF),
        ("betaincinv", (2.0, 3.0, 0.0), 2, INF),
        ("betaincinv", (2.0, 3.0, 0.0), 0, 0.0),
        ("betaincinv", (0.5, 3.0, 0.0), 2, 0.0),
        ("fdtr", (2.0, 3.0, 0.0), 2, 1.0),
        ("fdtr", (1.0, 3.0, 0.0), 2, INF),
        ("fdtr", (3.0, 3.0, INF), 2, 0.0),
        ("fdtr", (3.0, 3.0, INF), 1, 0.0),
        ("stdtr", (3.0, INF), 1, 0.0),
        ("stdtr", (INF, 0.0), 1, 1 / math.sqrt(2 * math.pi)),
        ("bdtr", (3, 3, 0.2), 2, 0.0),
        ("bdtr", (0, 3, 0.0), 2, -3.0),
        ("bdtrc", (-1, 3, 0.2), 2, 0.0),
        ("bdtri", (3, 3, 0.2), 2, NAN),
        ("nbdtr", (0, 1, 0.3), 2, 1.0),
        ("gammainc", (2.0, INF), 0, 0.0),
        ("gammainc", (0.0, 1.0), 0, -0.21938393439552027),
        ("gammainccinv", (2.0, 1.0), 0, 0.0),
        ("gammainccinv", (2.0, 0.0), 0, INF),
        ("gammainccinv", (2.0, 1.0), 1, -INF),
        ("expi", (0.0,), 0, INF),
        ("expi", (-INF,), 0, 0.0),
        ("exprel", (INF,), 0, INF),
        ("boxcox", (0.0, 0.5), 0, INF),
        ("boxcox", (0.0, 0.5), 1, 4.0),
        ("inv_boxcox", (-0.5, 2.0), 0, INF),
        ("huber", (1.0, -3.0), 0, 2.0),
        # as in PyTorch and JAX, where the function is nan
        ("xlogy", (2.0, -4.0), 0, NAN),
        ("xlogy", (2.0, -4.0), 1, -0.5),
        ("xlog1py", (2.0, -5.0), 0, NAN),
        ("xlog1py", (2.0, -5.0), 1, -0.5),
        ("lpmv", (0.5, 0.0, 1.0), 2, NAN),
        ("boxcox", (-1.0, 1.0), 0, NAN),
    ],
)
def test_gradients_at_edges(
    name: str, args: tuple[float, ...], by: int, expected: float, light: Any
) -> None:
    np.testing.assert_allclose(gradients(light, name, *args, by=(by,))[0], expected, rtol=1e-13)


@pytest.mark.parametrize("name", ["i0e", "i1e", "k0e", "k1e", "ive", "kve"])
def test_scaled_bessel_functions_are_flat_at_infinity(name: str, xp: Any) -> None:
    x = np.asarray([INF, 1e300])
    for order in (0.0, 1.0, 2.0) if name in ("ive", "kve") else (None,):
        args = (x,) if order is None else (np.asarray(order), x)
        (g,) = gradients(xp, name, *args, by=(len(args) - 1,))
        np.testing.assert_array_equal(g, [0.0, 0.0])


@pytest.mark.parametrize("name, at_infinity", [("iv", INF), ("ive", 0.0), ("kve", 0.0)])
def test_edges_where_scipy_has_nan_for_a_limit(name: str, at_infinity: float) -> None:
    pytest.importorskip("array_api_strict")
    xp = mg.namespace("strict")
    v, z = xp.asarray([0.0, 0.5, 0.5, 0.0]), xp.asarray([INF, -1.0, INF, NAN])
    y = values(getattr(xp.special, name)(v, z))
    np.testing.assert_array_equal(y, [at_infinity, NAN, at_infinity, NAN])


def test_second_derivatives_of_legendre_functions_at_the_ends_are_unknown(light: Any) -> None:
    m, v, x = (light.asarray(a) for a in ([0.0, 2.0, 3.0], [2.0, 3.0, 5.0], [1.0, -1.0, -1.0]))
    slope = mg.func.grad(lambda t: light.sum(light.special.lpmv(m, v, t)))
    assert np.isnan(values(mg.func.grad(lambda t: light.sum(slope(t)))(x))).all()


def test_polygamma_on_jax_at_the_edges_and_far_below_zero() -> None:
    """Where JAX's own (0.10.2) gives nan, and -0.01 for 15.07."""
    jax = pytest.importorskip("jax", reason="jax is an optional backend")
    x = np.asarray([0.0, INF, -100.3])
    for n in (1, 2):
        np.testing.assert_allclose(
            mg.special.polygamma(n, jax.numpy.asarray(x)).array,
            scipy.special.polygamma(n, x),
            rtol=1e-13,
        )


def test_multigammaln_outside_of_its_domain(xp: Any) -> None:
    a = xp.asarray(1.0, requires_grad=True)
    y = xp.special.multigammaln(a, 3)
    y.backward()
    assert math.isnan(y.item()) and math.isnan(a.grad.item())


@pytest.mark.parametrize("n", [-1, 0.5, NAN])
def test_orders_of_polygamma_that_make_no_sense(n: Any, xp: Any) -> None:
    """As of SciPy, it is nan, and so is its gradient."""
    x = xp.asarray([1.0, 2.0], requires_grad=True)
    y = xp.special.polygamma(n, x)
    (slope,) = mg.autograd.grad(xp.sum(y), x)
    assert np.isnan(values(y)).all()
    assert np.isnan(values(slope)).all()


def test_legendre_functions_of_real_degree(backend: str, xp: Any) -> None:
    """SciPy has them, and JAX calls SciPy; the form in the standard says nan."""
    y = values(xp.special.lpmv(xp.asarray(0.0), xp.asarray([0.5, 51.0]), xp.asarray(0.3)))
    expected = scipy.special.lpmv(0, [0.5, 51.0], 0.3) if backend != "strict" else [NAN, NAN]
    np.testing.assert_allclose(y, expected, rtol=1e-14)


def test_degrees_are_exact_at_right_angles(xp: Any) -> None:
    x = xp.asarray([0.0, 90.0, 180.0, 270.0, 360.0, -90.0, -180.0, 3690.0])
    for name, expected in (
        ("sindg", [0, 1, 0, -1, 0, -1, 0, 1]),
        ("cosdg", [1, 0, -1, 0, 1, 0, -1, 0]),
        ("tandg", [0, INF, 0, INF, 0, INF, 0, INF]),
        ("cotdg", [INF, 0, INF, 0, INF, 0, INF, 0]),
    ):
        np.testing.assert_array_equal(values(getattr(xp.special, name)(x)), expected)


def test_cotangents_near_their_pole_keep_their_digits(xp: Any) -> None:
    """SciPy's cotdg(1e-20) is inf."""
    x = np.asarray([1e-20, 1e-9])
    found = values(xp.special.cotdg(xp.asarray(x)))
    np.testing.assert_allclose(found, 180 / math.pi / x, rtol=1e-15)
