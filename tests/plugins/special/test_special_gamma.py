"""The families `gamma`, `zeta` and `error` of multigrad-special: values and edges of SciPy,
derivatives, dtypes, transformations.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from conftest import values
from mpmath import mp

import multigrad as mg
from multigrad import func
from multigrad.errors import MissingRuleError

pytest.importorskip("scipy", reason="SciPy is not installed")

import scipy.special

EDGES = np.asarray([0.0, -0.0, -1.0, -2.0, -2.5, 0.5, 1.0, math.inf, -math.inf, math.nan])


def slopes(y: Any, *tensors: Any) -> list[Any]:
    xp = y.__array_namespace__()
    return [values(g) for g in mg.autograd.grad(xp.sum(y), list(tensors))]


# ----- values and edges -----


@pytest.mark.parametrize("name", ["loggamma", "rgamma", "gammasgn", "zetac", "zeta", "gamma"])
def test_edges_are_those_of_scipy(name: str, xp: Any) -> None:
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(
            values(getattr(xp.special, name)(xp.asarray(EDGES))),
            getattr(scipy.special, name)(EDGES),
            rtol=2e-14,
        )


@pytest.mark.parametrize(
    "z, m",
    [
        (-3.0, 2.0),
        (-3.0, 5.0),
        (0.0, 1.0),
        (2.0, -1.0),
        (-2.5, 3.0),
        (-2.5, 1.2),
        (4.0, 0.0),
        (math.nan, 1.0),
    ],
)
def test_poch_at_integers_is_that_of_scipy(z: float, m: float, xp: Any) -> None:
    np.testing.assert_allclose(
        values(xp.special.poch(xp.asarray([z]), xp.asarray([m]))),
        [scipy.special.poch(z, m)],
        rtol=1e-14,
    )


@pytest.mark.parametrize(
    "n, k",
    [
        (5, 2),
        (5, 6),
        (5, -1),
        (-1, 2),
        (30, 15),
        (2.5, -1),
        (-2.5, 3),
        (60, 43),
        (0, 0),
        (math.nan, 1),
    ],
)
def test_binom_at_integers_is_that_of_scipy(n: float, k: float, xp: Any) -> None:
    y = values(xp.special.binom(xp.asarray([float(n)]), xp.asarray([float(k)])))
    np.testing.assert_allclose(y, [scipy.special.binom(n, k)], rtol=1e-13, atol=1e-300)


@pytest.mark.parametrize(
    "x, q",
    [
        (1.0, 2.0),
        (0.5, 2.0),
        (2.0, 0.0),
        (2.0, -1.5),
        (3.0, -1.5),
        (2.5, -1.5),
        (2.0, -1.0),
        (math.inf, 2.0),
        (2.0, math.nan),
    ],
)
def test_zeta_at_the_edges_is_that_of_scipy(x: float, q: float, xp: Any) -> None:
    np.testing.assert_allclose(
        values(xp.special.zeta(xp.asarray([x]), xp.asarray([q]))),
        [scipy.special.zeta(x, q)],
        rtol=1e-13,
    )


def test_polygamma_of_an_array_of_orders(xp: Any) -> None:
    n, x = np.asarray([[0], [1], [2], [7]]), np.asarray([0.3, 1.0, 12.5, -1.3, -20.7])
    t = xp.asarray(x, requires_grad=True)
    y = xp.special.polygamma(xp.asarray(n), t)
    np.testing.assert_allclose(values(y), scipy.special.polygamma(n, x), rtol=1e-12)
    np.testing.assert_allclose(
        slopes(y, t)[0], scipy.special.polygamma(n + 1, x).sum(0), rtol=1e-11
    )


def test_multigammaln(xp: Any) -> None:
    a = xp.asarray([1.6, 7.0, 1.0], requires_grad=True)
    y = xp.special.multigammaln(a, 3)
    np.testing.assert_allclose(values(y)[:2], scipy.special.multigammaln([1.6, 7.0], 3), rtol=1e-13)
    slope = slopes(y, a)[0]
    assert np.isnan(values(y)[2]) and np.isnan(slope[2])
    np.testing.assert_allclose(
        slope[:2],
        [sum(scipy.special.psi(v - j / 2) for j in range(3)) for v in (1.6, 7.0)],
        rtol=1e-13,
    )


@pytest.mark.parametrize("d", [0, 1.5, "2"])
def test_multigammaln_of_no_dimension(d: Any, xp: Any) -> None:
    with pytest.raises(ValueError, match="special.multigammaln: d should be a positive integer"):
        xp.special.multigammaln(xp.asarray([2.0]), d)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu(approximate: str, xp: Any) -> None:
    x = np.asarray([-math.inf, -40.0, -1.3, 0.0, 0.7, 30.0, math.inf])
    t = xp.asarray(x, requires_grad=True)
    y = xp.special.gelu(t, approximate=approximate)
    finite = x[2:-1]
    phi = (
        scipy.special.ndtr(finite)
        if approximate == "none"
        else 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (finite + 0.044715 * finite**3)))
    )
    np.testing.assert_allclose(values(y)[2:-1], finite * phi, rtol=1e-13)
    assert values(y)[0] == 0 and values(y)[-1] == math.inf
    slope = slopes(y, t)[0]
    assert slope[0] == 0 and slope[-1] == 1 and slope[3] == 0.5


def test_gelu_of_another_approximation(xp: Any) -> None:
    with pytest.raises(
        ValueError, match="special.gelu: approximate must be 'none' or 'tanh', not 'erf'"
    ):
        xp.special.gelu(xp.asarray([1.0]), approximate="erf")


# ----- derivatives at singular points -----


def test_the_reciprocal_has_slopes_at_the_poles_of_gamma(xp: Any) -> None:
    x = xp.asarray([0.0, -1.0, -2.0, -3.0], requires_grad=True)
    np.testing.assert_allclose(
        slopes(xp.special.rgamma(x), x)[0], [1.0, -1.0, 2.0, -6.0], rtol=1e-14
    )


def test_outside_of_the_domain_the_gradient_is_nan(xp: Any) -> None:
    x, q = xp.asarray([-0.5], requires_grad=True), xp.asarray([2.0], requires_grad=True)
    with np.errstate(all="ignore"):
        assert np.isnan(slopes(xp.special.loggamma(x), x)).all()
        assert np.isnan(slopes(xp.special.zeta(x, q), x, q)).all()
        n, k = xp.asarray([-2.0], requires_grad=True), xp.asarray([1.0], requires_grad=True)
        assert np.isnan(slopes(xp.special.binom(n, k), n, k)).all()


def test_products_have_slopes_where_they_are_0(xp: Any) -> None:
    """poch(z, 3) is z (z + 1) (z + 2); binom(5, k) is -5! (k - 6)! sin(pi k) / (pi k!) about 6."""
    z = xp.asarray([-3.0, -2.0, 0.0, 1.5], requires_grad=True)
    y = xp.special.poch(z, 3.0)
    v = values(z)
    np.testing.assert_allclose(values(y), v * (v + 1) * (v + 2), rtol=1e-14)
    np.testing.assert_allclose(slopes(y, z)[0], 3 * v * v + 6 * v + 2, rtol=1e-13)
    k = xp.asarray([6.0, -1.0], requires_grad=True)
    np.testing.assert_allclose(slopes(xp.special.binom(5.0, k), k)[0], [-1 / 6, 1 / 6], rtol=1e-13)


def test_zeta_by_both(xp: Any) -> None:
    x, q = xp.asarray([1.5, 3.0], requires_grad=True), xp.asarray([2.0, 0.7], requires_grad=True)
    k = np.arange(400000.0)
    by_x = -sum(np.log(0.7 + k) / (0.7 + k) ** 3) - (np.log(4e5) / 2 + 0.25) / 4e5**2
    s = slopes(xp.special.zeta(x, q), x, q)
    np.testing.assert_allclose(
        s[1], [-1.5 * scipy.special.zeta(2.5, 2.0), -3 * scipy.special.zeta(4.0, 0.7)], rtol=1e-13
    )
    np.testing.assert_allclose(s[0][1], by_x, rtol=1e-10)
    r = xp.asarray([-2.0, 0.0], requires_grad=True)
    np.testing.assert_allclose(
        slopes(xp.special.zeta(r), r)[0],
        [-0.030448457058393270780, -0.91893853320467274178],
        rtol=1e-13,
    )


# ----- dtypes -----

ONES = (
    "gamma",
    "gammaln",
    "loggamma",
    "rgamma",
    "gammasgn",
    "digamma",
    "zetac",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "ndtr",
    "log_ndtr",
    "ndtri",
    "gelu",
)


@pytest.mark.parametrize("name", ONES)
@pytest.mark.parametrize("library", ["numpy", "jax"])
def test_float16_is_computed_in_float32(name: str, library: str) -> None:
    pytest.importorskip(library, reason="jax is an optional backend")
    xp = mg.namespace(library)
    x = np.asarray([0.3, 0.7], dtype=np.float16)
    t = xp.asarray(x, requires_grad=True)
    y = getattr(xp.special, name)(t)
    wide = getattr(mg.special, name)(x.astype(np.float32)).array
    assert values(y).dtype == np.float16 and slopes(y, t)[0].dtype == np.float16
    np.testing.assert_allclose(values(y), wide, rtol=2e-3)


@pytest.mark.parametrize("name", ["poch", "binom", "beta", "betaln"])
def test_parameters_that_are_numbers_and_integers(name: str, xp: Any, backend: str) -> None:
    x = xp.asarray(np.asarray([2.5, 4.0], dtype=np.float32), requires_grad=True)
    function, expected = getattr(xp.special, name), getattr(scipy.special, name)
    for other in (2, 2.0, xp.asarray([2, 3])):
        y = function(x, other)
        promoted = backend == "numpy" and hasattr(other, "dtype")  # as everywhere in NumPy
        assert (
            y.dtype == (xp.float64 if promoted else xp.float32)
            and slopes(y, x)[0].dtype == np.float32
        )
        np.testing.assert_allclose(
            values(y),
            expected([2.5, 4.0], values(other) if hasattr(other, "dtype") else other),
            rtol=1e-5,
        )


COMPLEX = np.asarray([0.3 + 0.2j, -1.7 + 0.8j, 4.0 - 3.0j, -20.3 - 0.4j])


@pytest.mark.parametrize(
    "name", ["gamma", "loggamma", "rgamma", "digamma", "erf", "erfc", "erfcx", "ndtr", "log_ndtr"]
)
def test_complex_arrays(name: str, xp: Any) -> None:
    x = COMPLEX[:3] if name in ("erfcx", "erfc", "erf", "ndtr", "log_ndtr") else COMPLEX
    z = xp.asarray(x, requires_grad=True)
    y = getattr(xp.special, name)(z)
    function, h = getattr(scipy.special, name), 1e-5
    np.testing.assert_allclose(values(y), function(x), rtol=1e-12)
    (slope,) = mg.autograd.grad(y, z, xp.ones_like(y))
    np.testing.assert_allclose(
        np.conj(values(slope)), (function(x + h) - function(x - h)) / (2 * h), rtol=1e-6
    )


def test_an_array_of_orders_of_a_complex_array_is_refused(xp: Any) -> None:
    with pytest.raises(
        TypeError, match="special.polygamma: the order of a complex array is one int from 0 to 100"
    ):
        xp.special.polygamma(xp.asarray([1, 2]), xp.asarray([1.0 + 1j, 2.0]))


def test_there_is_no_derivative_by_the_order(xp: Any) -> None:
    n = xp.asarray([1.0, 2.0], requires_grad=True)
    with pytest.raises(
        MissingRuleError, match="'special.polygamma' has no derivative rule for its argument 'n'"
    ):
        slopes(xp.special.polygamma(n, xp.asarray([0.5, 0.7])), n)


# ----- transformations -----


@pytest.mark.parametrize("name", ["poch", "binom", "hurwitz_zeta"])
def test_forward_mode_second_derivatives_and_vmap(name: str, xp: Any) -> None:
    a, b = xp.asarray([[3.5, 2.5], [4.0, 6.0]]), xp.asarray([[1.5, 0.7], [2.2, 1.0]])
    function = getattr(xp.special, name)
    one = xp.ones_like(a)
    tangent = mg.func.jvp(function, (a, b), (one, one))[1]
    x, y = xp.asarray(a, requires_grad=True), xp.asarray(b, requires_grad=True)
    first = mg.autograd.grad(xp.sum(function(x, y)), [x, y], create_graph=True)
    np.testing.assert_allclose(values(tangent), values(first[0]) + values(first[1]), rtol=1e-12)
    mixed = [
        values(mg.autograd.grad(xp.sum(g), t, retain_graph=True)[0])
        for g, t in zip(first, (y, x), strict=True)
    ]
    np.testing.assert_allclose(mixed[0], mixed[1], rtol=1e-10)
    np.testing.assert_allclose(
        values(mg.func.vmap(function)(a, b)), values(function(a, b)), rtol=1e-14
    )


def test_under_jit() -> None:
    jax = pytest.importorskip("jax", reason="jax is an optional backend")

    def slope(n: Any, x: Any) -> Any:
        t = mg.asarray(x, requires_grad=True)
        return mg.autograd.grad((mg.special.polygamma(n, t) + mg.special.loggamma(t)).sum(), t)[
            0
        ].array

    n, x = np.asarray([0, 1, 3]), np.asarray([0.4, 2.5, 11.0])
    expected = scipy.special.polygamma(n + 1, x) + scipy.special.psi(x)
    np.testing.assert_allclose(
        jax.jit(slope)(jax.numpy.asarray(n), jax.numpy.asarray(x)), expected, rtol=1e-12
    )


def test_poch_of_an_integer_step_between_poles_is_differentiated_by_both() -> None:
    """The mixed derivative is that of poch(z, m) by m, which has a term in pi / tan(pi z), at
    nearby z.
    """

    def by_m(z: float) -> Any:
        t = mg.asarray(np.asarray([5.0]), requires_grad=True)
        return mg.autograd.grad(mg.special.poch(mg.asarray(np.asarray([z])), t), [t])[0].item()

    z, m = (mg.asarray(np.asarray([v]), requires_grad=True) for v in (-19.611813622647432, 5.0))
    (g,) = mg.autograd.grad(mg.special.poch(z, m), [z], create_graph=True)
    difference = (by_m(-19.611813622647432 + 1e-6) - by_m(-19.611813622647432 - 1e-6)) / 2e-6
    (mixed,) = slopes(g, m)
    np.testing.assert_allclose(mixed, [difference], rtol=1e-6)
    np.testing.assert_allclose(mixed, [-17808654.906894433], rtol=1e-10)


def test_poch_between_integers_has_no_mixed_derivative_where_it_jumps() -> None:
    z, m = (mg.asarray(np.asarray([v]), requires_grad=True) for v in (-5.0, 2.0))
    with np.errstate(all="ignore"):
        (g,) = mg.autograd.grad(mg.special.poch(z, m), [z], create_graph=True)
        np.testing.assert_allclose(values(g), [-9.0], rtol=1e-14)
        assert np.isnan(slopes(g, m)[0]).all()


@pytest.mark.parametrize("a, b", [(-1.75, 0.75), (0.5, -1.5), (2.5, -4.5)])
def test_beta_has_a_gradient_at_its_zeros(a: float, b: float) -> None:
    """Where a + b is -n, 1 / gamma(a + b) has the slope (-1)**n n!."""
    x, y = (mg.asarray(np.asarray([v]), requires_grad=True) for v in (a, b))
    n = round(-a - b)
    slope = scipy.special.gamma(a) * scipy.special.gamma(b) * (-1) ** n * math.factorial(n)
    np.testing.assert_allclose(slopes(mg.special.beta(x, y), x, y), [[slope], [slope]], rtol=1e-13)


def test_binom_is_differentiated_twice_where_it_is_0() -> None:
    n, k = (mg.asarray(np.asarray([v]), requires_grad=True) for v in (-2.751159014718233, -2.0))
    (g,) = mg.autograd.grad(mg.special.binom(n, k), [k], create_graph=True)
    np.testing.assert_allclose(
        slopes(g, n, k), [[-1.4461973769729835], [7.1008986882992184]], rtol=1e-11
    )


@pytest.mark.parametrize("name", ["riemann_zeta", "zeta", "zetac"])
def test_the_derivatives_of_zeta_just_below_0(name: str, xp: Any) -> None:
    """A reflection formula would cancel there, at its pole."""
    x = np.asarray([-1e-17, -1e-10, -1e-4, -0.1, -0.2499, -0.2501, -0.4])
    function = getattr(mg.special, name)
    value = function(xp.asarray(x))
    np.testing.assert_allclose(
        values(value) + (name == "zetac"), [float(mp.zeta(v)) for v in x], rtol=1e-13
    )

    def total(x: Any) -> Any:
        return mg.sum(function(x))

    slope = func.grad(total)
    curvature = func.grad(lambda x: mg.sum(slope(x)))
    for order, derivative in ((1, slope), (2, curvature)):
        np.testing.assert_allclose(
            values(derivative(xp.asarray(x))),
            [float(mp.zeta(v, 1, order)) for v in x],
            rtol=1e-13,
        )
