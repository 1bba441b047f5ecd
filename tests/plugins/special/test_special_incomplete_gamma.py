"""The incomplete gamma functions, their inverses and their distributions: edges, dtypes,
derivatives by the parameter, forms of the standard.

Accuracy over wide grids is measured by `python -m precision.special`; rules, shapes and
transformations are for the conformance suite.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from conftest import values

import multigrad as mg
from multigrad.errors import MissingRuleError
from multigrad_special import standard

pytest.importorskip("scipy", reason="SciPy is not installed")

import scipy.special

# NumPy's and SciPy's, of infinities and of counts that are no integers
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

INF, NAN = math.inf, math.nan
RANDOM = np.random.default_rng(0)
SHAPE = np.concatenate([10 ** RANDOM.uniform(-2, 1, 300), 10 ** RANDOM.uniform(0, 3.5, 300)])
ABOUT = SHAPE * np.exp(RANDOM.normal(size=600) / np.sqrt(SHAPE))
CHANCE = np.concatenate([RANDOM.uniform(0, 1, 400), 10 ** RANDOM.uniform(-200, 0, 200)])
COUNT = np.floor(SHAPE)

GRIDS: dict[str, tuple[Any, ...]] = {
    "gammainc": (SHAPE, ABOUT),
    "gammaincc": (SHAPE, ABOUT),
    "gammaincinv": (SHAPE, CHANCE),
    "gammainccinv": (SHAPE, CHANCE),
    "gdtr": (np.full(600, 0.75), SHAPE, ABOUT),
    "gdtrc": (np.full(600, 0.75), SHAPE, ABOUT),
    "chdtr": (2 * SHAPE, 2 * ABOUT),
    "chdtrc": (2 * SHAPE, 2 * ABOUT),
    "chdtri": (2 * SHAPE, CHANCE),
    "pdtr": (COUNT, ABOUT),
    "pdtrc": (COUNT, ABOUT),
    "pdtri": (COUNT, CHANCE),
}
# these two are made of gammainc and gammaincc
FORMS = [name for name in GRIDS if name not in ("chdtr", "chdtrc")]


@pytest.fixture(params=["numpy", "strict"])
def eager(request: pytest.FixtureRequest) -> Any:
    """The differentiable namespaces of backends that compile nothing: every shape costs JAX a
    second.
    """
    pytest.importorskip(
        "array_api_strict", reason="the library that has the standard and nothing more"
    )
    return mg.namespace(request.param)


@pytest.mark.parametrize("name", FORMS)
def test_standard_forms(name: str, strict: Any) -> None:
    y = np.asarray(getattr(standard, name)(strict, *(strict.asarray(a) for a in GRIDS[name])))
    np.testing.assert_allclose(
        y, getattr(scipy.special, name)(*GRIDS[name]), rtol=1e-11, atol=1e-290
    )


@pytest.mark.parametrize("name", FORMS)
def test_standard_forms_in_float32(name: str, strict: Any) -> None:
    args = [np.clip(a, 1e-30, None)[::4].astype(np.float32) for a in GRIDS[name]]
    y = np.asarray(getattr(standard, name)(strict, *(strict.asarray(a) for a in args)))
    assert y.dtype == np.float32
    np.testing.assert_allclose(
        y, getattr(scipy.special, name)(*(a.astype(float) for a in args)), rtol=5e-5, atol=1e-30
    )


# ----- edges -----

FEW = np.asarray([0.0, -0.0, 0.5, 1.0, 3.0, -1.0, INF, NAN])
PAIR = tuple(a.ravel() for a in np.meshgrid(FEW, FEW))
ENDS = tuple(
    a.ravel() for a in np.meshgrid([0.0, 0.5, 1.0, 2.5, -1.0, NAN], [0.0, 0.3, 1.0, -0.1, 1.1, NAN])
)
EDGES: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("gammainc", "gammaincc", "chdtr", "chdtrc", "pdtr", "pdtrc"), PAIR),
    **dict.fromkeys(("gammaincinv", "gammainccinv", "chdtri", "pdtri"), ENDS),
    **dict.fromkeys(("gdtr", "gdtrc"), tuple(a.ravel() for a in np.meshgrid(FEW, FEW, FEW))),
}


@pytest.mark.parametrize("name", EDGES)
def test_edges_are_those_of_scipy(name: str, xp: Any) -> None:
    y = values(getattr(xp.special, name)(*(xp.asarray(a) for a in EDGES[name])))
    np.testing.assert_allclose(y, getattr(scipy.special, name)(*EDGES[name]), rtol=1e-13)


@pytest.mark.parametrize("name", EDGES)
def test_gradients_outside_of_the_domain_are_nan(name: str, eager: Any) -> None:
    xp = eager
    arguments = [
        xp.asarray(a, requires_grad=p != "k")
        for a, p in zip(EDGES[name], mg.registry.OPS[f"special.{name}"].roles, strict=True)
    ]
    y = getattr(xp.special, name)(*arguments)
    for g in mg.autograd.grad(xp.sum(y), [a for a in arguments if a.requires_grad]):
        assert np.isnan(values(g)[np.isnan(values(y.detach()))]).all()


def slopes(xp: Any, name: str, *arguments: Any) -> list[Any]:
    """The derivatives at up to ten points.

    They are made ten, since every shape costs JAX seconds.
    """
    tensors = [
        xp.asarray(np.resize(np.asarray(a, dtype=float), 10), requires_grad=True) for a in arguments
    ]
    grads = mg.autograd.grad(xp.sum(getattr(xp.special, name)(*tensors)), tensors)
    return [values(g)[: np.size(arguments[0])] for g in grads]


def test_gradients_at_the_ends(xp: Any) -> None:
    by_a, by_x = slopes(
        xp, "gammainc", [0.5, 1.0, 2.0, 20.0, 2.0, 0.0], [0.0, 0.0, 0.0, 0.0, INF, 1.0]
    )
    np.testing.assert_allclose(by_a, [0, 0, 0, 0, 0, -scipy.special.exp1(1.0)], rtol=1e-13)
    np.testing.assert_allclose(by_x, [INF, 1, 0, 0, 0, 0], atol=1e-300)
    by_a, by_y = slopes(xp, "gammaincinv", [0.5, 1.0, 2.0, 2.0], [0.0, 0.0, 0.0, 1.0])
    np.testing.assert_array_equal(by_a, [0, 0, 0, INF])
    np.testing.assert_allclose(by_y, [0, 1, INF, INF], rtol=1e-14)
    by_a, by_y = slopes(xp, "gammainccinv", [0.5, 1.0, 2.0, 2.0], [1.0, 1.0, 1.0, 0.0])
    np.testing.assert_array_equal(by_a, [0, 0, 0, INF])
    np.testing.assert_allclose(by_y, [0, -1, -INF, -INF], rtol=1e-14)


def test_where_an_inverse_is_too_small_to_be_a_number_its_slope_is_not() -> None:
    a, y = np.float32(0.5), np.float32(1e-30)
    x = mg.asarray(np.asarray([y]), requires_grad=True)
    (g,) = mg.autograd.grad(mg.special.gammaincinv(mg.asarray(np.asarray([a])), x), x)
    np.testing.assert_allclose(g.array, [float(y) * math.pi / 2], rtol=1e-6)


# ----- derivatives by the parameter -----

HARD = [
    (1e-10, 1.0),
    (1e-3, 1e-8),
    (0.3, 2.0),
    (0.9, 1.5),
    (1.0, 1.2),
    (2.5, 1e-8),
    (4.0, 60.0),
    (9.9, 9.9),
    (30.0, 24.0),
    (1e3, 1.1e3),
]


def true_slope(a: float, x: float) -> float:
    mpmath = pytest.importorskip("mpmath", reason="the truth, in 60 digits")
    with mpmath.workdps(90):
        h = mpmath.mpf(a) * mpmath.mpf(10) ** -30
        high, low = (
            mpmath.gammainc(mpmath.mpf(a) + s * h, 0, x, regularized=True) for s in (1, -1)
        )
        return float((high - low) / (2 * h))


def test_the_incomplete_gamma_function_by_its_parameter(xp: Any) -> None:
    a, x = np.asarray(HARD).T
    expected = [true_slope(*pair) for pair in HARD]
    np.testing.assert_allclose(slopes(xp, "gammainc", a, x)[0], expected, rtol=1e-12)
    np.testing.assert_allclose(slopes(xp, "gammaincc", a, x)[0], np.negative(expected), rtol=1e-12)
    np.testing.assert_allclose(
        slopes(xp, "gdtr", np.full(10, 2.0), a, x / 2)[1], expected, rtol=1e-12
    )
    np.testing.assert_allclose(
        slopes(xp, "chdtrc", 2 * a, 2 * x)[0], np.negative(expected) / 2, rtol=1e-12
    )


def test_large_parameters(xp: Any) -> None:
    """The distribution is nearly normal there: Q(a, a) is 1/2 + 1 / (3 sqrt(2 pi a)) + ..., and its
    derivative by a about the density.
    """
    a = np.asarray([1e8, 1e12, 1e20])
    by_a, by_x = slopes(xp, "gammaincc", a, a)
    np.testing.assert_allclose(-by_x, np.exp(-1 / (12 * a)) / np.sqrt(2 * math.pi * a), rtol=1e-14)
    np.testing.assert_allclose(by_a, -by_x * (1 + 1 / (6 * a)), rtol=2e-9)


def test_the_inverse_undoes_the_function_in_both_arguments(xp: Any) -> None:
    a, x = np.asarray([(0.3, 1e-3), (0.3, 2.0), (1.0, 0.7), (4.0, 9.0), (30.0, 24.0)]).T
    for name in ("gammainc", "gammaincc"):
        forward_a, forward_x = slopes(xp, name, a, x)
        y = getattr(scipy.special, name)(a, x)
        back_a, back_y = slopes(xp, f"{name}inv", a, y)
        np.testing.assert_allclose(back_y, 1 / forward_x, rtol=1e-11)
        np.testing.assert_allclose(back_a, -forward_a / forward_x, rtol=1e-11)


def test_poisson(xp: Any) -> None:
    k, m = xp.asarray([0.0, 2.0, 2.9, 40.0]), xp.asarray([0.5, 0.0, 3.0, 30.0], requires_grad=True)
    mass = (
        np.exp(-values(m.detach()))
        * values(m.detach()) ** np.floor(values(k))
        / scipy.special.factorial(np.floor(values(k)))
    )
    np.testing.assert_allclose(
        values(mg.autograd.grad(xp.sum(xp.special.pdtr(k, m)), m)[0]), -mass, rtol=1e-13
    )
    np.testing.assert_allclose(
        values(mg.autograd.grad(xp.sum(xp.special.pdtrc(k, m)), m)[0]), mass, rtol=1e-13
    )


@pytest.mark.parametrize("name", ["pdtr", "pdtrc", "pdtri"])
def test_there_is_no_derivative_by_a_count(name: str, xp: Any) -> None:
    k = xp.asarray([3.0], requires_grad=True)
    with pytest.raises(
        MissingRuleError, match=rf"'special\.{name}' has no derivative rule for its argument 'k'"
    ):
        mg.autograd.grad(getattr(xp.special, name)(k, xp.asarray([0.4])), k)


def test_second_derivatives(eager: Any) -> None:
    """Mixed ones in closed form: of P by a and x it is the density times log(x) - digamma(a)."""
    xp = eager
    a, x = (
        xp.asarray(np.asarray(v), requires_grad=True)
        for v in ([0.5, 1.0, 4.0, 12.0, 40.0], [0.2, 1.5, 4.0, 9.0, 55.0])
    )
    by_a, by_x = mg.autograd.grad(xp.sum(xp.special.gammainc(a, x)), (a, x), create_graph=True)
    (mixed,) = mg.autograd.grad(xp.sum(by_a), x, retain_graph=True)
    other, twice = mg.autograd.grad(xp.sum(by_x), (a, x))
    p, q, f = values(a.detach()), values(x.detach()), values(by_x.detach())
    np.testing.assert_allclose(
        values(mixed), f * (np.log(q) - scipy.special.digamma(p)), rtol=1e-11
    )
    np.testing.assert_allclose(values(other), values(mixed), rtol=1e-11)
    np.testing.assert_allclose(values(twice), f * ((p - 1) / q - 1), rtol=1e-12)


def test_twice_by_the_parameter(eager: Any) -> None:
    """Beside a difference of the first derivatives."""
    xp = eager
    a = xp.asarray(np.asarray([0.5, 3.0, 25.0]), requires_grad=True)
    x = np.asarray([0.3, 4.0, 20.0])
    (by_a,) = mg.autograd.grad(xp.sum(xp.special.gammaincc(a, xp.asarray(x))), a, create_graph=True)
    (twice,) = mg.autograd.grad(xp.sum(by_a), a)
    p, h = values(a.detach()), 1e-4
    steps = [slopes(xp, "gammaincc", p + s * h, x)[0] for s in (-2, -1, 1, 2)]
    expected = (steps[0] - 8 * steps[1] + 8 * steps[2] - steps[3]) / (12 * h)
    np.testing.assert_allclose(values(twice), expected, rtol=1e-9)


# ----- dtypes and shapes -----


@pytest.mark.parametrize("name", GRIDS)
def test_integer_parameters_and_scalars_take_the_dtype_of_the_others(name: str, eager: Any) -> None:
    xp = eager
    function = getattr(xp.special, name)
    last = xp.asarray(np.asarray([0.25, 0.5], dtype=np.float32), requires_grad=True)
    others = len(GRIDS[name]) - 1
    whole = xp.asarray(np.asarray([2, 3]))
    y = function(*[whole] * others, last)
    (g,) = mg.autograd.grad(xp.sum(y), last)
    # NumPy promotes as everywhere
    assert y.dtype == (xp.float64 if isinstance(y.array, np.ndarray) else xp.float32)
    assert g.dtype == xp.float32
    expected = getattr(scipy.special, name)(*[[2.0, 3.0]] * others, [0.25, 0.5])
    np.testing.assert_allclose(values(y), expected, rtol=1e-5)
    np.testing.assert_allclose(
        values(function(*[2] * others, last)),
        getattr(scipy.special, name)(*[2.0] * others, [0.25, 0.5]),
        rtol=1e-5,
    )
    assert function(*[2] * others, last).dtype == xp.float32


@pytest.mark.parametrize("name", GRIDS)
def test_float16_is_computed_in_float32(name: str) -> None:
    x = [
        mg.asarray(np.asarray([0.5, 0.75], dtype=np.float16), requires_grad=p != "k")
        for p in mg.registry.OPS[f"special.{name}"].roles
    ]
    y = getattr(mg.special, name)(*x)
    g = mg.autograd.grad(y.sum(), [v for v in x if v.requires_grad])
    assert {v.dtype for v in (y, *g)} == {np.dtype(np.float16)}
    np.testing.assert_allclose(
        y.detach().array,
        getattr(scipy.special, name)(*(v.detach().array.astype(float) for v in x)),
        rtol=1e-3,
    )


@pytest.mark.parametrize("name", GRIDS)
def test_complex_arrays_are_refused(name: str, xp: Any, backend: str) -> None:
    arguments = [xp.asarray(np.asarray([0.5 + 0.5j]))] * len(GRIDS[name])
    own = name.replace("chdtr", "gammainc") if name in ("chdtr", "chdtrc") else name
    with pytest.raises(
        TypeError,
        match=rf"special\.{own} on the backend '{backend}' takes real floating-point arrays, "
        r"not .*complex128",
    ):
        getattr(xp.special, name)(*arguments)


def test_parameters_are_broadcast(eager: Any) -> None:
    xp = eager
    a, x = (
        xp.asarray(np.asarray([[0.5], [3.0]]), requires_grad=True),
        xp.asarray(np.asarray([0.3, 1.0, 5.0]), requires_grad=True),
    )
    by_a, by_x = mg.autograd.grad(xp.sum(xp.special.gammainc(a, x)), (a, x))
    assert by_a.shape == (2, 1) and by_x.shape == (3,)
    one = [slopes(xp, "gammainc", p, q) for p in (0.5, 3.0) for q in (0.3, 1.0, 5.0)]
    np.testing.assert_allclose(
        values(by_a)[:, 0], np.reshape([s[0].item() for s in one], (2, 3)).sum(1), rtol=1e-13
    )
    np.testing.assert_allclose(
        values(by_x), np.reshape([s[1].item() for s in one], (2, 3)).sum(0), rtol=1e-13
    )


def test_transformations(eager: Any) -> None:
    xp = eager
    a, x = xp.asarray(np.asarray([0.5, 3.0])), xp.asarray(np.asarray([0.3, 5.0]))
    by_a, by_x = slopes(xp, "gammaincc", values(a), values(x))
    _, tangent = mg.func.jvp(
        xp.special.gammaincc, (a, x), (xp.asarray([1.0, 2.0]), xp.asarray([3.0, -1.0]))
    )
    np.testing.assert_allclose(values(tangent), by_a * [1, 2] + by_x * [3, -1], rtol=1e-13)
    each = mg.func.vmap(mg.func.grad(xp.special.gammaincc))(a, x)
    np.testing.assert_allclose(values(each), by_a, rtol=1e-13)


def test_under_jit() -> None:
    jax = pytest.importorskip("jax", reason="jax is an optional backend")

    @jax.jit
    def slope(a: Any, y: Any) -> Any:
        t = mg.asarray(a, requires_grad=True)
        mg.special.gammaincinv(t, mg.asarray(y)).sum().backward()
        return t.grad.array

    a, y = np.asarray([0.5, 4.0]), np.asarray([0.3, 0.9])
    np.testing.assert_allclose(
        slope(jax.numpy.asarray(a), jax.numpy.asarray(y)),
        slopes(mg.namespace("numpy"), "gammaincinv", a, y)[0],
        rtol=1e-12,
    )


def test_a_statistic_may_be_written_to_after_its_p_value_was_computed() -> None:
    """As scipy.stats.epps_singleton_2samp does: what is saved is half of it."""
    x = mg.asarray(np.asarray([1.0, 4.0]), requires_grad=True)
    statistic = 2 * x
    p = mg.special.chdtrc(3.0, statistic)
    statistic[0] = math.nan
    p.sum().backward()
    slope = (
        np.exp(-np.asarray([1.0, 4.0]))
        * np.sqrt(np.asarray([2.0, 8.0]))
        / 2**1.5
        / scipy.special.gamma(1.5)
    )
    np.testing.assert_allclose(values(x.grad), -2 * slope)


@pytest.mark.parametrize(
    "name, args, exact",
    [
        (
            "gammaincinv",
            (0.0081, 0.0103),
            [
                [1.28496315066785e-236, 2.21235637584709e-237],
                [2.21235637584709e-237, 3.77820955134352e-238],
            ],
        ),
        (
            "gammainccinv",
            (0.0035, 0.9),
            [
                [3.82931825799119e-276, -5.8295303172909e-278],
                [-5.8295303172909e-278, 8.84345500264443e-280],
            ],
        ),
        (
            "chdtri",
            (0.0162, 0.9897),
            [
                [6.42481575333738e-237, -2.21235637584645e-237],
                [-2.21235637584645e-237, 7.55641910268488e-238],
            ],
        ),
    ],
)
def test_second_derivatives_of_tiny_quantiles(
    name: str, args: tuple[float, ...], exact: list[list[float]]
) -> None:
    """Where the square of the density is not a number; by mpmath with 50 digits."""
    xp = mg.namespace("numpy")
    given = [xp.asarray(np.asarray(v), requires_grad=True) for v in args]
    first = mg.autograd.grad(getattr(xp.special, name)(*given), given, create_graph=True)
    second = [
        [float(values(s)) for s in mg.autograd.grad(g, given, retain_graph=True)] for g in first
    ]
    np.testing.assert_allclose(second, exact, rtol=1e-10)
