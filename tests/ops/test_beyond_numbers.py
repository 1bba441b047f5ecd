"""Statistics, the nan family, quantiles, softmax and activations: values against NumPy and SciPy,
edges, dtypes, refusals, methods.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from conftest import values

import multigrad as mg
from multigrad import extend, func
from multigrad.errors import MixedBackendsError
from multigrad.ops.beyond.quantiles import METHODS
from multigrad.ops.beyond.statistics import cov

INF, NAN = np.inf, np.nan
RNG = np.random.default_rng(15)
REAL, HOLED = RNG.normal(size=(4, 5)), RNG.normal(size=(3, 4, 5))
HOLED.reshape(-1)[::3] = NAN
AXES = (None, 0, -1, (0, 1))


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """NumPy warns of slices of nothing but nan and of degrees of freedom; we need not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def of(backend: str, x: Any, requires_grad: bool = False) -> Any:
    return mg.asarray(x, backend=backend, requires_grad=requires_grad)


def same(ours: Any, theirs: Any, rtol: float = 1e-12, atol: float = 1e-14) -> None:
    got = values(ours)
    assert got.shape == np.shape(theirs)
    np.testing.assert_allclose(got, theirs, rtol=rtol, atol=atol)


def gradient(f: Callable[[Any], Any], x: Any, backend: str = "numpy") -> Any:
    leaf = of(backend, x, requires_grad=True)
    mg.sum(f(leaf)).backward()
    return values(leaf.grad)


# ----- values, beside NumPy and SciPy -----


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize(
    "name",
    [
        "median",
        "nanmedian",
        "nansum",
        "nanmean",
        "nanvar",
        "nanstd",
        "nanmin",
        "nanmax",
        "nanprod",
        "ptp",
    ],
)
def test_reductions_are_numpys(name: str, axis: Any, keepdims: bool) -> None:
    for x in (REAL, HOLED, np.asarray(1.5)) if axis is None else (REAL, HOLED):
        same(
            getattr(mg, name)(mg.asarray(x), axis=axis, keepdims=keepdims),
            getattr(np, name)(x, axis=axis, keepdims=keepdims),
        )
        same(
            getattr(mg, name)(x, axis=axis, keepdims=keepdims),
            getattr(np, name)(x, axis=axis, keepdims=keepdims),
        )


@pytest.mark.parametrize(
    "q", [0, 0.3, 1, [0.1, 0.5, 1.0], np.asarray([[0.2, 0.9], [0.0, 1.0]])], ids=str
)
@pytest.mark.parametrize("name", ["quantile", "nanquantile", "percentile", "nanpercentile"])
def test_quantiles_are_numpys(name: str, q: Any) -> None:
    q = (
        q * 100
        if isinstance(q, (int, float, np.ndarray)) and "percentile" in name
        else [100 * part for part in q]
        if "percentile" in name
        else q
    )
    for x, axis in ((REAL, 0), (REAL, None), (HOLED, -1), (np.arange(7), None)):
        same(getattr(mg, name)(mg.asarray(x), q, axis=axis), getattr(np, name)(x, q, axis=axis))
        same(
            getattr(mg, name)(mg.asarray(x), q, axis=axis, keepdims=True),
            getattr(np, name)(x, q, axis=axis, keepdims=True),
        )


@pytest.mark.parametrize("method", METHODS)
def test_methods_are_numpys(method: str) -> None:
    for x in (REAL[0], np.asarray([3.0, 1.0]), np.asarray([2.0]), np.asarray([1.0, 7.0, 3.0, 4.0])):
        for q in (0, 0.05, 0.1, 0.25, 1 / 3, 0.5, 0.625, 0.7, 1):
            for given in (q, np.asarray([q])):
                expected = np.quantile(x, given, method=method)
                same(mg.quantile(mg.asarray(x), given, method=method), expected)
                same(mg.nanquantile(mg.asarray(x), given, method=method), expected)


def test_infinities_between_places() -> None:
    x = np.asarray([1.0, INF, 3.0, -INF])
    for q in (0.0, 1 / 3, 1.0):
        for given in (q, np.asarray(q)):
            assert float(mg.quantile(mg.asarray(x), given)) == np.sort(x)[round(3 * q)]
    assert float(mg.median(mg.asarray([INF, INF, 1.0, INF]))) == INF
    assert float(mg.median(mg.asarray([1.7e308, 1.7e308]))) == 1.7e308


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"rowvar": False},
        {"bias": True},
        {"ddof": 0},
        {"ddof": 9},
        {"fweights": np.asarray([1, 2, 3, 1, 2])},
        {"aweights": np.asarray([0.1, 0.2, 0.3, 0.1, 2])},
    ],
    ids=str,
)
def test_covariances_are_numpys(options: dict[str, Any]) -> None:
    x = REAL.T if options == {"rowvar": False} else REAL
    for m in (x, x + 1j * x[::-1], REAL[0]) if "rowvar" not in options else (x,):
        same(mg.cov(mg.asarray(m), **options), np.cov(m, **options))
    if options in ({}, {"rowvar": False}):
        same(mg.corrcoef(mg.asarray(x), **options), np.corrcoef(x, **options))
        same(
            mg.corrcoef(mg.asarray(x + 1j * x[::-1]), **options),
            np.corrcoef(x + 1j * x[::-1], **options),
        )


def test_covariances_of_two_and_of_one() -> None:
    same(mg.cov(mg.asarray(REAL), REAL[0]), np.cov(REAL, REAL[0]))
    same(mg.corrcoef(REAL[0], mg.asarray(REAL[1])), np.corrcoef(REAL[0], REAL[1]))
    assert mg.cov(mg.asarray(REAL[0])).shape == () and mg.corrcoef(mg.asarray(REAL[0])).shape == ()
    assert mg.cov(mg.asarray(REAL.astype(np.float32))).dtype == np.float64
    assert mg.cov(mg.asarray(REAL), dtype=np.float32).dtype == np.float32


def test_averages_are_numpys() -> None:
    for weights, axis in (
        (None, None),
        (np.abs(REAL), None),
        (np.abs(REAL[0]), 1),
        (np.abs(REAL[:, 0]), 0),
        (np.abs(REAL.T), (1, 0)),
    ):
        for found, expected in zip(
            mg.average(mg.asarray(REAL), axis, weights, returned=True),
            np.average(REAL, axis, weights, returned=True),
            strict=True,
        ):
            same(found, expected)
    same(
        mg.average(mg.asarray(REAL), axis=1, weights=[1, 2, 3, 4, 5]),
        np.average(REAL, axis=1, weights=[1, 2, 3, 4, 5]),
    )
    pair = mg.average(REAL, returned=True)
    assert type(pair) is tuple and all(isinstance(x, mg.Tensor) for x in pair)


def test_scans_indices_and_replacement_are_numpys() -> None:
    for axis in (None, 0, 1):
        same(mg.nancumsum(mg.asarray(HOLED), axis), np.nancumsum(HOLED, axis))
        same(mg.nancumprod(mg.asarray(HOLED), axis), np.nancumprod(HOLED, axis))
        same(mg.nanargmax(mg.asarray(HOLED), axis), np.nanargmax(HOLED, axis))
        same(
            mg.nanargmin(mg.asarray(HOLED), axis, keepdims=True),
            np.nanargmin(HOLED, axis, keepdims=True),
        )
    odd = np.asarray([NAN, INF, -INF, 1.5])
    same(mg.nan_to_num(mg.asarray(odd)), np.nan_to_num(odd))
    same(mg.nan_to_num(mg.asarray(odd), nan=1.0, posinf=2.0, neginf=3.0), [1.0, 2.0, 3.0, 1.5])
    same(mg.nan_to_num(mg.asarray(odd + 1j * odd[::-1])), np.nan_to_num(odd + 1j * odd[::-1]))
    whole = np.asarray([1, 2])
    mg.nan_to_num(mg.asarray(whole))[0] = 7  # a copy, as NumPy's
    assert whole.tolist() == [1, 2]
    assert int(mg.nanargmin(mg.asarray([NAN, INF]))) == 1  # NumPy, which writes inf for nan, says 0


def test_cov_on_a_library_without_complex_numbers() -> None:
    xp = extend.raw_namespace("numpy")

    class Real:
        def __getattr__(self, name: str) -> Any:
            if name.startswith("complex"):
                raise AttributeError(name)
            return getattr(xp, name)

    x = np.asarray([[1.0, 2.0, 4.0], [0.5, -1.0, 2.0]])
    found = cov(Real(), x, None, True, False, None, None, None, None)
    np.testing.assert_allclose(found, np.cov(x))


@pytest.mark.parametrize("axis", AXES, ids=str)
def test_softmax_and_logsumexp_are_scipys(axis: Any) -> None:
    special = pytest.importorskip("scipy.special")
    far = np.asarray([[1000.0, -1000.0, 999.0], [-INF, 2.0, 1.0], [0.0, -40.0, -60.0]])
    for x in (REAL, far, REAL + 2j * REAL[::-1]):
        same(mg.logsumexp(mg.asarray(x), axis), special.logsumexp(x, axis))
        if x.dtype.kind == "f":
            same(mg.softmax(mg.asarray(x), axis), special.softmax(x, axis))
            same(mg.log_softmax(mg.asarray(x), axis), special.log_softmax(x, axis))
        weights = np.where(np.arange(x.size).reshape(x.shape) % 3 == 0, -1.5, 0.5)
        for found, expected in zip(
            mg.logsumexp(mg.asarray(x), axis, weights, return_sign=True),
            special.logsumexp(x, axis, weights, return_sign=True),
            strict=True,
        ):
            same(found, expected)
    # nan
    same(
        mg.logsumexp(mg.asarray(REAL), axis, -np.ones((4, 5))),
        special.logsumexp(REAL, axis, -np.ones((4, 5))),
    )


# ----- at the ends -----


def test_logsumexp_where_it_is_infinite_or_near_0(backend: str) -> None:
    x = of(backend, [[-INF, -INF], [INF, 1.0], [0.0, -45.0], [NAN, 1.0], [INF, -INF]])
    same(mg.logsumexp(x, axis=1), [-INF, INF, np.exp(-45.0), NAN, INF])
    same(
        gradient(lambda t: mg.logsumexp(t, axis=1), values(x)[[0, 1, 2, 4]], backend),
        [[0.5, 0.5], [1, 0], [1 - np.exp(-45.0), np.exp(-45.0)], [1, 0]],
    )
    same(mg.logsumexp(of(backend, np.zeros((2, 0))), axis=1), [-INF, -INF])
    same(mg.logsumexp(of(backend, [1.0, 700.0, NAN]), b=of(backend, [1.0, 0.0, 0.0])), 1.0)
    same(
        gradient(lambda b: mg.logsumexp(of(backend, [1.0, 2.0]), b=b), [1.0, 0.0], backend),
        [1.0, np.e],
    )


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_activations_far_out(dtype: str) -> None:
    x = np.asarray([-INF, -1000, -20, 0, 20, 1000, INF], dtype)
    exact = x.astype(np.float64)
    logistic = np.where(exact < 0, np.exp(np.minimum(exact, 0)), 1) / (1 + np.exp(-np.abs(exact)))
    cases = (
        ("sigmoid", logistic, logistic * (1 - logistic)),
        ("relu", np.maximum(exact, 0), exact > 0),
        ("silu", np.asarray([0, 0, -20 * logistic[2], 0, 20 * logistic[4], 1000, INF]), None),
        (
            "softplus",
            np.where(exact > 20, exact, np.log1p(np.exp(np.minimum(exact, 20)))),
            np.where(exact > 20, 1, logistic),
        ),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing overflows
        for name, expected, slope in cases:
            leaf = mg.asarray(x, requires_grad=True)
            found = getattr(mg, name)(leaf)
            assert found.dtype == x.dtype
            tolerances = {
                "float16": (2e-3, 1e-7),
                "float32": (1e-6, 1e-14),
                "float64": (1e-14, 1e-14),
            }
            same(found, expected.astype(dtype), *tolerances[dtype])
            (g,) = mg.autograd.grad(mg.sum(found), leaf)
            assert g.dtype == x.dtype and not np.isnan(values(g)).any()
            if slope is not None:
                np.testing.assert_allclose(
                    values(g), slope, rtol=2e-3, atol=1e-3 if dtype == "float16" else 1e-8
                )


def test_softplus_refuses_complex_numbers(backend: str) -> None:
    """As PyTorch's. The formula with the maximum and the modulus is of real numbers."""
    for dtype in ("complex64", "complex128"):
        with pytest.raises(TypeError, match="softplus: complex numbers have no order"):
            mg.softplus(of(backend, np.asarray([0.3 + 0.7j], dtype)))


def test_softmax_in_half_precision_does_not_overflow() -> None:
    x = np.zeros(70_000, np.float16)
    assert abs(float(mg.logsumexp(mg.asarray(x))) - np.log(70_000)) < 0.01
    assert float(mg.max(mg.softmax(mg.asarray(x)))) == float(np.float16(1 / 70_000))


def test_of_nothing(backend: str) -> None:
    nothing = of(backend, np.zeros((0, 3)), requires_grad=True)
    for f, shape in (
        (lambda t: mg.median(t, axis=0), (3,)),
        (lambda t: mg.median(t, axis=1), (0,)),
        (lambda t: mg.quantile(t, [0.1, 0.2]), (2,)),
        (lambda t: mg.softmax(t, axis=0), (0, 3)),
        (mg.sigmoid, (0, 3)),
        (mg.nansum, ()),
        (lambda t: mg.nanmean(t, axis=0), (3,)),
        (mg.log_softmax, (0, 3)),
        (lambda t: mg.softplus(t), (0, 3)),
    ):
        found = f(nothing)
        assert found.shape == shape
        assert not np.isfinite(values(found)).any() or f is mg.nansum
    with pytest.raises(ValueError):
        mg.ptp(nothing)


def test_integers_become_floats(backend: str) -> None:
    x = of(backend, np.arange(6).reshape(2, 3))
    for name in (
        "sigmoid",
        "silu",
        "softplus",
        "softmax",
        "log_softmax",
        "logsumexp",
        "median",
        "nanmedian",
        "nanmean",
        "average",
        "cov",
    ):
        assert values(getattr(mg, name)(x)).dtype == np.float64, name
    for name in ("relu", "ptp", "nansum", "nanmin", "nan_to_num"):
        assert values(getattr(mg, name)(x)).dtype.kind == "i", name


# ----- derivatives -----


def test_quantiles_differentiate_by_q(backend: str) -> None:
    x = of(backend, [1.0, 2.0, 4.0, 8.0])
    same(gradient(lambda q: mg.quantile(x, q), [0.1, 0.5, 0.9], backend), [3.0, 6.0, 12.0])
    same(values(mg.quantile(x, of(backend, [-0.1, 0.5, 1.1]))), [NAN, 3.0, NAN])


def test_medians_of_many_equal_elements_follow_the_stable_order(backend: str) -> None:
    x = np.asarray(RNG.integers(0, 3, (6, 7)), np.float64)
    for axis in (0, 1):
        middle = np.argsort(x, axis, stable=True)
        n = x.shape[axis]
        expected = np.zeros_like(x)
        for place in {(n - 1) // 2, n // 2}:
            at = np.take(middle, [place], axis)
            np.put_along_axis(
                expected, at, np.take_along_axis(expected, at, axis) + (1 if n % 2 else 0.5), axis
            )
        same(gradient(lambda t, axis=axis: mg.median(t, axis=axis), x, backend), expected)


def test_gradients_are_those_of_jax() -> None:
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    pairs = [
        (mg.sigmoid, jax.nn.sigmoid),
        (mg.silu, jax.nn.silu),
        (mg.relu, jax.nn.relu),
        (lambda x: mg.softmax(x, 1), lambda x: jax.nn.softmax(x, 1)),
        (lambda x: mg.log_softmax(x, 0), lambda x: jax.nn.log_softmax(x, 0)),
        (lambda x: mg.logsumexp(x, 1), lambda x: jax.nn.logsumexp(x, 1)),
        *(
            (lambda x, n=n: getattr(mg, n)(x, axis=0), lambda x, n=n: getattr(jnp, n)(x, axis=0))
            for n in (
                "median",
                "nanmedian",
                "nanmean",
                "nanvar",
                "nanstd",
                "nanprod",
                "nanmax",
                "nancumsum",
                "ptp",
            )
        ),
        (
            lambda x: mg.quantile(x, [0.2, 0.7], axis=1),
            lambda x: jnp.quantile(x, jnp.asarray([0.2, 0.7]), axis=1),
        ),
        (mg.cov, jnp.cov),
        (mg.corrcoef, jnp.corrcoef),
    ]
    for ours, theirs in pairs:

        def weighted(xp: Any, y: Any) -> Any:
            return xp.sum(y * np.random.default_rng(4).normal(size=tuple(y.shape)))

        expected = jax.jit(jax.grad(lambda x, f=theirs: weighted(jnp, f(x))))(jnp.asarray(REAL))
        same(func.grad(lambda x, f=ours: weighted(mg, f(x)))(REAL), np.asarray(expected), rtol=1e-9)


def test_nested_and_batched() -> None:
    x = RNG.normal(size=(3, 4))
    for f in (
        mg.softmax,
        mg.logsumexp,
        mg.median,
        mg.sigmoid,
        mg.silu,
        mg.nanmean,
        mg.ptp,
        lambda t: mg.quantile(t, 0.3),
        mg.nanstd,
        mg.nanmax,
    ):
        f_of = lambda t, f=f: mg.sum(f(t * t) * 1.5)
        slope = func.grad(f_of)
        same(func.vmap(slope)(x), np.stack([slope(row) for row in x]))
        same(func.jvp(slope, (x[0],), (x[1],))[1], func.hessian(f_of)(x[0]) @ x[1], rtol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # none is computed one by one
        assert func.vmap(mg.nanargmin)(x).tolist() == np.argmin(x, 1).tolist()
    qs = np.asarray([0.2, 0.5, 0.8])
    same(func.vmap(lambda q: mg.quantile(mg.asarray(x), q))(qs), np.quantile(x, qs))


def test_what_is_kept_of_a_softmax() -> None:
    """The result alone, so that the argument may be written."""
    x = mg.asarray(REAL, requires_grad=True)
    z = x * 1.0
    out = mg.softmax(z, axis=1)
    z[0] = 0.0
    mg.sum(out * REAL).backward()
    assert x.grad is not None


# ----- refusals -----


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda x: mg.quantile(x, 0.5, method="best"),
            ValueError,
            "quantile: the method 'best' is not one of linear, lower, higher, nearest, midpoint",
        ),
        (
            lambda x: mg.quantile(x, 1.5),
            ValueError,
            "quantile: q must be between 0 and 1, but it is 1.5",
        ),
        (
            lambda x: mg.nanpercentile(x, [50, 101]),
            ValueError,
            "nanpercentile: q must be between 0 and 100, but it is 101",
        ),
        (lambda x: mg.median(x * 1j), TypeError, "median: complex numbers have no order"),
        (
            lambda x: mg.median(x, axis=2),
            IndexError,
            "median: axis 2 is out of bounds for an array with 2 axes",
        ),
        (
            lambda x: mg.median(x, axis=(0, -2)),
            ValueError,
            r"median: an axis occurs twice in \(0, -2\)",
        ),
        (
            lambda x: mg.nanargmin(x * NAN),
            ValueError,
            "nanargmin: a slice has only nan, so it has no minimum",
        ),
        (
            lambda x: mg.nan_to_num(x, copy=False),
            ValueError,
            r"copy=False would write into the array. Write x\[...\] = nan_to_num\(x\)",
        ),
        (
            lambda x: mg.nanvar(x, ddof=1, correction=1),
            ValueError,
            "nanvar: ddof and correction mean the same",
        ),
        (
            lambda x: mg.average(x, weights=x[0]),
            TypeError,
            "average: a and weights have different shapes; pass axis",
        ),
        (lambda x: mg.average(x, axis=0, weights=x[0]), ValueError, "average: weights of shape"),
        (
            lambda x: mg.cov(mg.zeros((1, 2, 3))),
            ValueError,
            "cov: expected an array of at most 2 axes, got 3",
        ),
        (lambda x: mg.cov(x, ddof=0.5), ValueError, "cov: ddof must be an integer, not 0.5"),
        (
            lambda x: mg.cov(x, fweights=[1, 2]),
            ValueError,
            "cov: fweights must have one axis, with a weight for each of the 5 observations",
        ),
        (
            lambda x: mg.quantile(x, 0.5, weights=x),
            ValueError,
            "quantile: the method 'linear' does not take weights",
        ),
        (lambda x: mg.median(x, out=x), TypeError, "out"),
    ],
)
def test_refusals(call: Callable[[Any], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(mg.asarray(REAL))


def test_libraries_do_not_mix() -> None:
    pytest.importorskip("jax")
    with pytest.raises(MixedBackendsError):
        mg.average(mg.asarray(REAL), weights=mg.asarray(np.abs(REAL), backend="jax"))


# ----- names -----


def test_methods() -> None:
    t = mg.asarray(REAL, requires_grad=True)
    for name in ("softmax", "log_softmax", "logsumexp", "median", "nanmean", "nansum", "nanmedian"):
        same(getattr(t, name)(-1), values(getattr(mg, name)(t, axis=-1)))
    for name in ("sigmoid", "relu", "cov", "corrcoef", "nan_to_num"):
        same(getattr(t, name)(), values(getattr(mg, name)(t)))
    same(t.quantile(0.3, 0), np.quantile(REAL, 0.3, 0))
    assert t.sigmoid().requires_grad
    # arrays of NumPy 2 and of PyTorch have no such method
    with pytest.raises(AttributeError, match=r"Write ptp\(x\)"):
        t.ptp
    x = mg.asarray(REAL)
    x.relu_()
    same(x, np.maximum(REAL, 0))


def test_hidden_where_the_namespace_is_the_standards() -> None:
    xp = mg.namespace("strict")
    with pytest.raises(AttributeError, match=r"'softmax' is beyond it: call multigrad\.softmax"):
        xp.softmax
    same(mg.softmax(xp.asarray(REAL), axis=0), values(mg.softmax(REAL, axis=0)))
