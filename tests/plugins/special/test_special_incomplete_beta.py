"""The incomplete beta functions and the distributions F, t and binomial: standard forms,
parameters, edges, inverses.

Rules, shapes and dtypes on every backend are for the conformance suite; values and gradients far
out for tests/precision.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from conftest import values

import multigrad as mg
from multigrad import func
from multigrad_special import standard

pytest.importorskip("scipy", reason="SciPy is not installed")

import scipy.special

pytestmark = [
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("error::DeprecationWarning"),
]

RANDOM = np.random.default_rng(7)
INF, NAN = math.inf, math.nan
A, B = 10 ** RANDOM.uniform(-3, 3, (2, 300))
LIKELY = np.clip(RANDOM.beta(A, B), 1e-200, 1 - 1e-12)
CHANCES = np.where(
    RANDOM.uniform(size=300) < 0.7, RANDOM.uniform(size=300), 10 ** RANDOM.uniform(-100, -1, 300)
)
K = RANDOM.integers(0, 20, 300)
N = K + RANDOM.integers(1, 20, 300)
SOME = RANDOM.uniform(0.05, 0.95, 300)
FREE = 10 ** RANDOM.uniform(-0.5, 3, (2, 300))

GRIDS: dict[str, tuple[Any, ...]] = {
    "betainc": (A, B, LIKELY),
    "betaincc": (A, B, LIKELY),
    "betaincinv": (A, B, CHANCES),
    "betainccinv": (A, B, CHANCES),
    "fdtr": (*FREE, RANDOM.gamma(2.0, size=300)),
    "fdtrc": (*FREE, RANDOM.gamma(2.0, size=300)),
    "fdtri": (*FREE, SOME),
    "stdtr": (FREE[0], RANDOM.normal(size=300)),
    "stdtrit": (FREE[0], SOME),
    "bdtr": (K, N, SOME),
    "bdtrc": (K, N, SOME),
    "bdtri": (K, N, SOME),
    "nbdtr": (K, N, SOME),
    "nbdtrc": (K, N, SOME),
    "nbdtri": (K, N, SOME),
}
NAMES = list(GRIDS)


@pytest.fixture(params=["numpy", "strict"])
def light(request: Any) -> Any:
    """The namespaces that compile nothing: on JAX the conformance suite and tests/precision
    differentiate.
    """
    pytest.importorskip("array_api_strict" if request.param == "strict" else "numpy")
    return mg.namespace(request.param)


def on(strict: Any, name: str, *args: Any) -> Any:
    return np.asarray(
        getattr(standard, name)(strict, *(strict.asarray(np.asarray(a)) for a in args))
    )


def gradients(xp: Any, name: str, *args: Any, by: tuple[int, ...]) -> list[Any]:
    given = [xp.asarray(np.asarray(a), requires_grad=i in by) for i, a in enumerate(args)]
    y = getattr(xp.special, name)(*given)
    return [values(g) for g in mg.autograd.grad(xp.sum(y), [given[i] for i in by])]


# ----- the standard forms -----


@pytest.mark.parametrize("name", NAMES)
def test_standard_forms(name: str, strict: Any) -> None:
    expected = getattr(scipy.special, name)(*GRIDS[name])
    np.testing.assert_allclose(on(strict, name, *GRIDS[name]), expected, rtol=3e-12, atol=1e-300)


@pytest.mark.parametrize("name", NAMES)
def test_standard_forms_in_float32(name: str, strict: Any) -> None:
    args = [
        a
        if a.dtype.kind == "i"
        else np.clip(a, 1e-2, 100.0 if i < 2 or "dtr" in name else 0.98).astype(np.float32)
        for i, a in enumerate(GRIDS[name])
    ]
    expected = getattr(scipy.special, name)(
        *(a if a.dtype.kind == "i" else a.astype(float) for a in args)
    )
    y = on(strict, name, *args)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-30)


@pytest.mark.parametrize(
    "a, b, y", [(5.12103, 0.00392059, 6.40965e-176), (4.15996, 8358.69, 2.14155e-242)]
)
def test_quantiles_of_chances_so_small_that_scipy_gives_nan(
    a: float, b: float, y: float, strict: Any
) -> None:
    np.testing.assert_allclose(
        scipy.special.betainc(a, b, on(strict, "betaincinv", a, b, y)), y, rtol=1e-11
    )


# ----- derivatives by the parameters -----


def test_betainc_of_one_parameter_1_is_a_power(light: Any) -> None:
    """I_x(a, 1) = x**a and I_x(1, b) = 1 - (1 - x)**b."""
    a, x = np.asarray([1e-8, 0.3, 1.0, 7.0, 300.0]), np.asarray([0.5, 1e-20, 0.7, 0.9, 0.99])
    np.testing.assert_allclose(
        gradients(light, "betainc", a, 1.0, x, by=(0,))[0], x**a * np.log(x), rtol=1e-13
    )
    x = np.asarray([0.5, 1e-20, 0.75, 0.1, 0.01])
    np.testing.assert_allclose(
        gradients(light, "betainc", 1.0, a, x, by=(1,))[0],
        -np.exp(a * np.log1p(-x)) * np.log1p(-x),
        rtol=1e-13,
    )


def test_f_and_t_by_degrees_of_freedom_in_closed_form(light: Any) -> None:
    """With 2 degrees above, 1 - F is (1 + 2 x / n)**(-n/2); t with 2 is 1/2 + x / (2 sqrt(2 +
    x**2)).
    """
    n, x = np.asarray([1.0, 4.0, 1e4, 1e8]), np.asarray([0.3, 2.0, 3.0, 1.5])
    r = 2 * x / n
    less = np.where(
        r < 1e-3,
        -(r**2) / 2 + 2 * r**3 / 3 - 3 * r**4 / 4 + 4 * r**5 / 5,
        r / (1 + r) - np.log1p(r),
    )
    exact = np.exp(-n / 2 * np.log1p(r)) / 2 * less
    np.testing.assert_allclose(gradients(light, "fdtrc", 2.0, n, x, by=(1,))[0], exact, rtol=1e-10)
    np.testing.assert_allclose(
        gradients(light, "stdtr", 2.0, x, by=(1,))[0], (2 + x * x) ** -1.5, rtol=1e-13
    )


def test_t_by_many_degrees_of_freedom_nears_the_normal_distribution(light: Any) -> None:
    """Abramowitz and Stegun, 26.7.10: ndtr(x) - density(x) (x**3 + x) / (4 df) + ..."""
    x = np.asarray([-3.0, -0.1, 0.7, 2.0])
    exact = np.exp(-x * x / 2) / math.sqrt(2 * math.pi) * (x**3 + x) / 4e16
    np.testing.assert_allclose(
        gradients(light, "stdtr", np.full(4, 1e8), x, by=(0,))[0], exact, rtol=1e-6
    )


@pytest.mark.sweep_after(2)
@pytest.mark.parametrize(
    "name, function, args",
    [
        ("betaincinv", "betainc", (2.5, 0.7, 0.3)),
        ("betainccinv", "betaincc", (2.5, 0.7, 0.3)),
        ("fdtri", "fdtr", (3.0, 8.0, 0.9)),
        ("stdtrit", "stdtr", (3.5, 0.2)),
        ("bdtri", "bdtr", (2, 5, 0.3)),
        ("nbdtri", "nbdtr", (2, 5, 0.3)),
    ],
)
def test_inverses_have_the_inverse_derivatives(
    name: str, function: str, args: tuple[Any, ...], light: Any
) -> None:
    by = tuple(i for i, v in enumerate(args) if isinstance(v, float))
    *slopes, last = gradients(light, name, *args, by=by)
    x = float(getattr(scipy.special, name)(*args))
    *direct, density = gradients(light, function, *args[:-1], x, by=by)
    np.testing.assert_allclose(last, 1 / density, rtol=1e-12)
    np.testing.assert_allclose(slopes, [-g / density for g in direct], rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["bdtr", "bdtrc", "bdtri"])
def test_trials_may_be_floats(name: str, dtype: str) -> None:
    """SciPy deprecates them, and truncates them."""
    function = getattr(mg.special, name)
    k, n, p = (np.asarray(v, dtype) for v in ([1, 0, 3, 1, 1], [3, 2.5, 7, NAN, INF], [0.25] * 5))
    found = function(k, n, mg.asarray(p))
    whole = function(k[:3], np.asarray([3, 2, 7]), mg.asarray(p[:3]))
    assert found.dtype == np.dtype(dtype)
    np.testing.assert_allclose(
        found[:3].array, whole.array, rtol=1e-3 if dtype == "float16" else 1e-6
    )
    assert np.all(np.isnan(found[3:].array))


def test_quantiles_next_to_1_keep_the_digits_of_their_derivative(light: Any) -> None:
    """I_x(1, 1/2) = 1 - sqrt(1 - x), so with the tail t above x, dx/dy is 2 t, of which 1 - x
    rounded has no digits.
    """
    t = 2.0**-24
    (slope,) = gradients(light, "betaincinv", 1.0, 0.5, np.asarray(1 - t), by=(2,))
    np.testing.assert_allclose(slope, 2 * t, rtol=1e-12)
    (slope,) = gradients(light, "betainccinv", 1.0, 0.5, np.asarray(1e-12), by=(2,))
    np.testing.assert_allclose(slope, -2e-12, rtol=1e-12)


@pytest.mark.parametrize(
    "name, args",
    [
        ("betainc", (2.5, 0.7, 0.3)),
        ("betaincinv", (1.5, 2.0, 0.3)),
        ("fdtr", (3.0, 8.0, 0.9)),
        ("stdtr", (3.5, 0.2)),
    ],
)
def test_second_derivatives(name: str, args: tuple[float, ...]) -> None:
    """Those by one argument, beside differences of the first ones; mixed ones are symmetric."""
    xp = mg.namespace("numpy")
    given = [xp.asarray(np.asarray(v), requires_grad=True) for v in args]
    first = mg.autograd.grad(getattr(xp.special, name)(*given), given, create_graph=True)
    second = np.asarray(
        [[float(values(s)) for s in mg.autograd.grad(g, given, retain_graph=True)] for g in first]
    )
    np.testing.assert_allclose(second, second.T, rtol=1e-10, atol=1e-14)
    for i, v in enumerate(args):
        h = 1e-5 * v
        high, low = (
            gradients(xp, name, *args[:i], v + s, *args[i + 1 :], by=(i,))[0] for s in (h, -h)
        )
        np.testing.assert_allclose(second[i, i], (high - low) / (2 * h), rtol=1e-6)


TINY: list[tuple[str, tuple[float, ...], list[list[float]]]] = [
    (
        "betainccinv",
        (0.00811054487945, 2.11555616629, 0.989665725981),
        [
            [2.43740498154306e-236, -2.11109722907681e-241, -4.19115027838237e-237],
            [-2.11109722907681e-241, 3.59820432722164e-246, 3.62362450687565e-242],
            [-4.19115027838237e-237, 3.62362450687565e-242, 7.14826567648292e-238],
        ],
    ),
    (
        "betaincinv",
        (0.00811054487945, 2.11555616629, 0.0042),
        [
            [2.14133320839004e-284, -1.54862297732666e-289, 7.56707481288451e-285],
            [-1.54862297732666e-289, 2.20525034564905e-294, -5.46444360192415e-290],
            [7.56707481288451e-285, -5.46444360192415e-290, 2.65237012586274e-285],
        ],
    ),
    (
        "betaincinv",
        (0.5, 0.003, 1e-140),
        [
            [4.52420563818638e-270, -2.36340389673383e-270, 7.11952946768615e-133],
            [-2.36340389673383e-270, 1.8569862754602e-270, -3.71910701213734e-133],
            [7.11952946768615e-133, -3.71910701213734e-133, 56017.9294168874],
        ],
    ),
    (
        "betainccinv",
        (0.004, 0.003, 0.9),
        [
            [1.56874913541419e-148, -5.91619523456159e-149, -3.10326579815423e-150],
            [-5.91619523456159e-149, 2.24893210752517e-149, 1.16896006829393e-150],
            [-3.10326579815423e-150, 1.16896006829393e-150, 6.11228258880699e-152],
        ],
    ),
    (
        "fdtri",
        (0.0162, 4.2, 0.01),
        [
            [1.34259190509168e-236, -2.48464361460668e-242, 4.73961765812722e-237],
            [-2.48464361460668e-242, 4.03688031293792e-247, -8.75595164027967e-243],
            [4.73961765812722e-237, -8.75595164027967e-243, 1.65961667073521e-237],
        ],
    ),
]
"""Of results near the smallest numbers: the second derivatives, by mpmath with 50 digits."""


@pytest.mark.parametrize("name, args, exact", TINY)
def test_second_derivatives_of_tiny_quantiles(
    name: str, args: tuple[float, ...], exact: list[list[float]], light: Any
) -> None:
    """The density at the result is about 1e240, and its square is not a number."""
    given = [light.asarray(np.asarray(v), requires_grad=True) for v in args]
    first = mg.autograd.grad(getattr(light.special, name)(*given), given, create_graph=True)
    second = [
        [float(values(s)) for s in mg.autograd.grad(g, given, retain_graph=True)] for g in first
    ]
    np.testing.assert_allclose(second, exact, rtol=1e-10)


def test_parameters_that_are_python_scalars_at_the_second_derivative(xp: Any) -> None:
    t = xp.asarray(np.asarray(0.4), requires_grad=True)
    (g,) = mg.autograd.grad(mg.special.betainc(1.3, 2.1, t), t, create_graph=True)
    (second,) = mg.autograd.grad(g, t)
    np.testing.assert_allclose(values(second), values(g) * (0.3 / 0.4 - 1.1 / 0.6), rtol=1e-13)


# ----- edges -----

EDGES: dict[str, list[tuple[float, ...]]] = {
    "betainc": [
        (2.0, 3.0, 0.0),
        (2.0, 3.0, 1.0),
        (2.0, 3.0, -0.0),
        (1.0, 1.0, -0.1),
        (1.0, 1.0, 1.1),
        (-1.0, 1.0, 0.5),
        (0.0, 1.0, 0.5),
        (0.0, 1.0, 0.0),
        (1.0, 0.0, 0.5),
        (1.0, 0.0, 1.0),
        (0.0, 0.0, 0.5),
        (INF, 1.0, 0.5),
        (INF, 1.0, 1.0),
        (1.0, INF, 0.5),
        (1.0, INF, 0.0),
        (INF, INF, 0.5),
        (1.0, 2.0, NAN),
        (NAN, 2.0, 0.5),
    ],
    "betaincinv": [
        (2.0, 3.0, 0.0),
        (2.0, 3.0, 1.0),
        (1.0, 1.0, -0.1),
        (1.0, 1.0, 1.1),
        (-1.0, 1.0, 0.5),
        (0.0, 1.0, 0.5),
        (2.0, 1.0, NAN),
    ],
    "fdtr": [
        (3.0, 4.0, 0.0),
        (3.0, 4.0, INF),
        (3.0, 4.0, -1.0),
        (0.0, 4.0, 0.5),
        (3.0, 0.0, 0.5),
        (INF, 4.0, 0.5),
        (3.0, INF, 0.5),
        (3.0, 4.0, NAN),
        (3.0, 4.0, 1e300),
        (-1.0, 4.0, 0.5),
    ],
    "fdtri": [
        (3.0, 4.0, 0.0),
        (3.0, 4.0, 1.0),
        (3.0, 4.0, -0.1),
        (3.0, 4.0, 1.1),
        (0.0, 4.0, 0.5),
        (3.0, -1.0, 0.5),
        (3.0, 4.0, NAN),
    ],
    "stdtr": [
        (3.0, 0.0),
        (3.0, INF),
        (3.0, -INF),
        (0.0, 0.5),
        (-1.0, 0.5),
        (INF, 0.7),
        (INF, -2.0),
        (3.0, NAN),
        (1.0, 1e200),
    ],
    "stdtrit": [
        (3.0, 1.0),
        (3.0, 0.5),
        (3.0, -0.1),
        (3.0, 1.1),
        (INF, 0.7),
        (0.0, 0.7),
        (3.0, NAN),
    ],
    "bdtr": [
        (0, 3, 0.2),
        (0, 3, 0.0),
        (0, 3, 1.0),
        (2, 3, 0.0),
        (2, 3, 1.0),
        (3, 3, 0.2),
        (4, 3, 0.2),
        (-1, 3, 0.2),
        (-0.5, 3, 0.2),
        (1.7, 3, 0.2),
        (1, 3, -0.1),
        (1, 3, 1.1),
        (1, 3, NAN),
        (0, 0, 0.5),
        (3, 3, NAN),
    ],
    "nbdtr": [
        (0, 3, 0.2),
        (0, 3, 0.0),
        (0, 3, 1.0),
        (2, 3, 0.4),
        (-1, 3, 0.2),
        (1, 3, -0.1),
        (1, 3, 1.1),
        (1, 3, NAN),
        (0, 0, 0.5),
        (2, -1, 0.5),
    ],
}
EDGES |= {
    "betaincc": EDGES["betainc"],
    "betainccinv": EDGES["betaincinv"],
    "fdtrc": EDGES["fdtr"],
    "nbdtrc": EDGES["nbdtr"],
    "bdtrc": EDGES["bdtr"],
    "bdtri": EDGES["bdtr"],
    "nbdtri": EDGES["nbdtr"],
}


@pytest.mark.sweep_after(8)
@pytest.mark.parametrize("name", NAMES)
def test_edges_are_those_of_scipy(name: str, strict: Any, xp: Any) -> None:
    columns = [
        np.asarray(
            c,
            dtype=np.int64
            if name[0] in "bn" and name.endswith(("dtr", "dtrc", "dtri")) and i == 1
            else np.float64,
        )
        for i, c in enumerate(zip(*EDGES[name], strict=True))
    ]
    expected = getattr(scipy.special, name)(*columns)
    np.testing.assert_allclose(on(strict, name, *columns), expected, rtol=1e-13, atol=1e-300)
    np.testing.assert_allclose(
        values(getattr(xp.special, name)(*map(xp.asarray, columns))),
        expected,
        rtol=1e-13,
        atol=1e-300,
    )


def test_the_quantile_of_t_at_0(strict: Any) -> None:
    """SciPy (1.17) gives inf."""
    assert on(strict, "stdtrit", 3.0, 0.0) == -INF


@pytest.mark.sweep_after(1)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_tails_of_t_whose_argument_has_no_square(dtype: Any, strict: Any, light: Any) -> None:
    """Far out they are c |x|**-df, and Cauchy's is 1 / (pi |x|); SciPy (1.17) gives 0."""
    far, kind = (1e200, 1e-13) if dtype is np.float64 else (1e25, 1e-5)
    df, x = np.asarray([1.0, 0.1, 0.02], dtype=dtype), np.asarray(-far, dtype=dtype)
    near = dtype(math.sqrt(far))
    expected = on(strict, "stdtr", df, -near) * float(near / -x) ** df
    np.testing.assert_allclose(on(strict, "stdtr", df, x), expected, rtol=20 * kind)
    np.testing.assert_allclose(on(strict, "stdtr", df[0], x), 1 / (math.pi * far), rtol=kind)
    (by_x,) = gradients(light, "stdtr", df, np.full(3, x), by=(1,))
    np.testing.assert_allclose(by_x, df * (expected / far), rtol=20 * kind)
    by_df, by_p = gradients(mg.namespace("strict"), "stdtrit", df[2:], expected[2:], by=(0, 1))
    np.testing.assert_allclose(by_p, far / df[2:] / expected[2:], rtol=50 * kind)
    moved = [float(on(strict, "stdtrit", 0.02 + d, float(expected[2]))) for d in (1e-7, -1e-7)]
    np.testing.assert_allclose(by_df, (moved[0] - moved[1]) / 2e-7, rtol=1e-4)


@pytest.mark.parametrize(
    "df, p, size",
    [(0.5, 1e-10, 1.02849113e19), (1.0, 1e-10, 3.18309882e9), (10.0, 1e-10, 25.4660080)],
)
def test_quantiles_of_t_in_float32(df: float, p: float, size: float, xp: Any) -> None:
    """SciPy's (1.17) are off by a third.

    By df: of the smallest p they are (c p)**(-1/df), here as differences of float64.
    """
    given = [np.asarray(v, dtype=np.float32) for v in (df, p)]
    np.testing.assert_allclose(
        values(xp.special.stdtrit(*map(xp.asarray, given))), -size, rtol=1e-5
    )
    by_df, by_p = gradients(xp, "stdtrit", *given, by=(0, 1))
    wide = [float(v) for v in given]
    exact = gradients(mg.namespace("numpy"), "stdtrit", *wide, by=(0, 1))
    np.testing.assert_allclose([by_df, by_p], exact, rtol=1e-5)


@pytest.mark.parametrize(
    "name, args, by, expected",
    [
        ("betainc", (2.0, 3.0, 0.0), 0, 0.0),
        ("betainc", (2.0, 3.0, 1.0), 1, 0.0),
        ("betainc", (0.5, 3.0, 0.0), 2, INF),
        ("betainc", (1.0, 3.0, 0.0), 2, 3.0),
        ("betainc", (2.0, 3.0, 0.0), 2, 0.0),
        ("betainc", (2.0, 1.0, 1.0), 2, 2.0),
        ("betainc", (2.0, 3.0, 1.1), 0, NAN),
        ("betainc", (2.0, 3.0, -0.1), 2, NAN),
        ("betainc", (-2.0, 3.0, 0.1), 1, NAN),
        ("betaincinv", (2.0, 3.0, 0.0), 2, INF),
        ("betaincinv", (2.0, 3.0, 0.0), 0, 0.0),
        ("betaincinv", (0.5, 3.0, 0.0), 2, 0.0),
        ("betaincinv", (2.0, 3.0, 2.0), 1, NAN),
        ("fdtr", (2.0, 3.0, 0.0), 2, 1.0),
        ("fdtr", (1.0, 3.0, 0.0), 2, INF),
        ("fdtr", (3.0, 3.0, 0.0), 2, 0.0),
        ("fdtr", (3.0, 3.0, INF), 2, 0.0),
        ("fdtr", (3.0, 3.0, INF), 1, 0.0),
        ("fdtr", (3.0, 3.0, -1.0), 0, NAN),
        ("stdtr", (3.0, INF), 1, 0.0),
        ("stdtr", (3.0, -INF), 0, 0.0),
        ("stdtr", (-3.0, 1.0), 1, NAN),
        ("stdtr", (INF, 0.0), 1, 1 / math.sqrt(2 * math.pi)),
        ("bdtr", (3, 3, 0.2), 2, 0.0),
        ("bdtr", (-1, 3, 0.2), 2, NAN),
        ("bdtrc", (-1, 3, 0.2), 2, 0.0),
        ("bdtr", (0, 3, 0.0), 2, -3.0),
        ("nbdtr", (0, 1, 0.3), 2, 1.0),
        ("nbdtr", (0, 3, 1.5), 2, NAN),
        ("bdtri", (3, 3, 0.2), 2, NAN),
    ],
)
def test_gradients_at_edges(
    name: str, args: tuple[float, ...], by: int, expected: float, light: Any
) -> None:
    np.testing.assert_allclose(gradients(light, name, *args, by=(by,))[0], expected, rtol=1e-13)


# ----- dtypes, broadcasting, transformations, refusals -----


@pytest.mark.parametrize("name", ["betainc", "fdtrc", "betaincinv"])
def test_integer_parameters_take_the_dtype_of_the_others(name: str, light: Any) -> None:
    x = light.asarray(np.asarray([0.3, 0.6], dtype=np.float32), requires_grad=True)
    for a in (2, light.asarray(np.asarray([[2], [3]]))):
        y = getattr(light.special, name)(a, 3, x)
        (g,) = mg.autograd.grad(light.sum(y), x)
        promoted = isinstance(y.array, np.ndarray) and hasattr(a, "dtype")  # as everywhere in NumPy
        assert (
            y.dtype == (light.float64 if promoted else light.float32) and g.dtype == light.float32
        )


def test_integers_alone_give_the_default_dtype(xp: Any) -> None:
    assert (
        xp.special.betainc(xp.asarray([2]), xp.asarray([3]), xp.asarray([1])).dtype
        == xp.asarray([1.0]).dtype
    )


@pytest.mark.parametrize("name", ["numpy", "jax"])
def test_float16_is_computed_in_float32(name: str) -> None:
    pytest.importorskip(name)
    xp = mg.namespace(name)
    args = [
        xp.asarray(np.asarray(v, dtype=np.float16), requires_grad=True) for v in (2.5, 30.0, 0.1)
    ]
    y = xp.special.betainc(*args)
    slopes = mg.autograd.grad(y, args)
    given = [float(values(v.detach())) for v in args]
    exact = gradients(mg.namespace("numpy"), "betainc", *given, by=(0, 1, 2))
    assert {str(values(v).dtype) for v in (y.detach(), *slopes)} == {"float16"}
    np.testing.assert_allclose([values(g) for g in slopes], exact, rtol=2e-3)


def test_parameters_broadcast_and_forward_mode_agrees(light: Any) -> None:
    a, x = light.asarray(np.asarray([[0.5], [3.0]])), light.asarray(np.asarray([0.2, 0.5, 0.9]))
    _, along = mg.func.jvp(lambda a: light.special.betainc(a, 2.0, x), (a,), (light.ones_like(a),))
    (g,) = gradients(light, "betainc", values(a), 2.0, values(x), by=(0,))
    np.testing.assert_allclose(np.sum(values(along), axis=1, keepdims=True), g, rtol=1e-13)
    each = mg.func.vmap(mg.func.grad(lambda a: light.sum(light.special.betainc(a, 2.0, x))))(a)
    np.testing.assert_allclose(values(each), g, rtol=1e-13)


@pytest.mark.parametrize("name, args", [("betaincinv", (1.0, 2.5, 0.3)), ("stdtr", (3.5, 0.2))])
def test_under_jit(name: str, args: tuple[float, ...]) -> None:
    jax = pytest.importorskip("jax", reason="jax is an optional backend")

    @jax.jit
    def slopes(*arrays: Any) -> Any:
        given = [mg.asarray(x, requires_grad=True) for x in arrays]
        return [g.array for g in mg.autograd.grad(getattr(mg.special, name)(*given), given)]

    found = slopes(*map(jax.numpy.asarray, args))
    np.testing.assert_allclose(
        found, gradients(mg.namespace("numpy"), name, *args, by=tuple(range(len(args)))), rtol=1e-12
    )


@pytest.mark.parametrize("name", ["bdtr", "bdtrc", "bdtri", "nbdtr", "nbdtrc", "nbdtri"])
def test_counts_have_no_derivative(name: str, xp: Any) -> None:
    k, p = xp.asarray(np.asarray(1.0), requires_grad=True), xp.asarray(np.asarray(0.3))
    with pytest.raises(
        mg.errors.MissingRuleError,
        match=f"the operation 'special.{name}' has no derivative rule for its argument 'k'",
    ):
        getattr(xp.special, name)(k, 3, p).backward()


@pytest.mark.parametrize("name", NAMES)
def test_complex_arrays_are_refused(name: str, xp: Any, backend: str) -> None:
    z = xp.asarray(np.asarray(0.3 + 1j))
    with pytest.raises(
        TypeError,
        match=f"special.{name} on the backend '{backend}' takes real floating-point arrays, not "
        ".*complex128",
    ):
        getattr(xp.special, name)(*[2.0] * (len(GRIDS[name]) - 1), z)


@pytest.mark.parametrize("name", ["bdtri", "nbdtri"])
def test_counts_are_subtracted_as_floats(name: str) -> None:
    """With k above n, n - k is negative, which an unsigned dtype would wrap around."""
    k, n, y = np.asarray([3, 2, 255], "u1"), np.asarray([2, 7, 255], "u1"), np.full(3, 0.3)
    slope = func.grad(lambda y, *counts: mg.sum(getattr(mg.special, name)(*counts, y)))
    np.testing.assert_array_equal(slope(y, k, n), slope(y, k.astype("f8"), n.astype("f8")))
