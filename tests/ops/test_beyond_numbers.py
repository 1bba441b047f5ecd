"""Statistics, the nan family, quantiles, softmax and activations where the conformance suite does not
compare them with NumPy: at the ends of their ranges, with SciPy, refusals, methods.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from conftest import values

import multigrad as mg
from multigrad import extend
from multigrad.errors import MixedBackendsError
from multigrad.ops.beyond.quantiles import METHODS
from multigrad.ops.beyond.statistics import cov

INF, NAN = np.inf, np.nan
RNG = np.random.default_rng(15)
REAL = RNG.normal(size=(4, 5))


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


def test_covariances_of_two_and_of_one() -> None:
    same(mg.corrcoef(REAL[0], mg.asarray(REAL[1])), np.corrcoef(REAL[0], REAL[1]))
    same(mg.cov(mg.asarray(REAL), ddof=9), np.cov(REAL, ddof=9))  # no degrees of freedom
    assert mg.cov(mg.asarray(REAL[0])).shape == () and mg.corrcoef(mg.asarray(REAL[0])).shape == ()
    assert mg.cov(mg.asarray(REAL.astype(np.float32))).dtype == np.float64


def test_averages_by_a_list_of_weights() -> None:
    same(
        mg.average(mg.asarray(REAL), axis=1, weights=[1, 2, 3, 4, 5]),
        np.average(REAL, axis=1, weights=[1, 2, 3, 4, 5]),
    )
    pair = mg.average(REAL, returned=True)
    assert type(pair) is tuple and all(isinstance(x, mg.Tensor) for x in pair)


def test_nan_is_replaced_in_a_copy_and_skipped_beside_infinity() -> None:
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


@pytest.mark.parametrize("axis", [None, 0, (0, 1)], ids=str)
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


def test_quantiles_of_nothing(backend: str) -> None:
    found = mg.quantile(of(backend, np.zeros((0, 3))), [0.1, 0.2])
    assert found.shape == (2,) and np.all(np.isnan(values(found)))


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


def test_what_is_kept_of_a_softmax() -> None:
    """The result alone, so that the argument may be written."""
    x = mg.asarray(REAL, requires_grad=True)
    z = x * 1.0
    out = mg.softmax(z, axis=1)
    z[0] = 0.0
    mg.sum(out * REAL).backward()
    assert x.grad is not None


# ----- refusals -----


ERRORS: dict[type[Exception], dict[str, Callable[[Any], Any]]] = {
    ValueError: {
        "quantile: the method 'best' is not one of linear, lower, higher, nearest, midpoint": lambda x: (
            mg.quantile(x, 0.5, method="best")
        ),
        "quantile: q must be between 0 and 1, but it is 1.5": lambda x: mg.quantile(x, 1.5),
        "nanpercentile: q must be between 0 and 100, but it is 101": lambda x: mg.nanpercentile(
            x, [50, 101]
        ),
        r"median: an axis occurs twice in \(0, -2\)": lambda x: mg.median(x, axis=(0, -2)),
        "nanargmin: a slice has only nan, so it has no minimum": lambda x: mg.nanargmin(x * NAN),
        r"copy=False would write into the array. Write x\[...\] = nan_to_num\(x\)": lambda x: (
            mg.nan_to_num(x, copy=False)
        ),
        "nanvar: ddof and correction mean the same": lambda x: mg.nanvar(x, ddof=1, correction=1),
        "average: weights of shape": lambda x: mg.average(x, axis=0, weights=x[0]),
        "cov: expected an array of at most 2 axes, got 3": lambda x: mg.cov(mg.zeros((1, 2, 3))),
        "cov: ddof must be an integer, not 0.5": lambda x: mg.cov(x, ddof=0.5),
        "cov: fweights must have one axis, with a weight for each of the 5 observations": lambda x: (
            mg.cov(x, fweights=[1, 2])
        ),
        "quantile: the method 'linear' does not take weights": lambda x: mg.quantile(
            x, 0.5, weights=x
        ),
    },
    TypeError: {
        "median: complex numbers have no order": lambda x: mg.median(x * 1j),
        "average: a and weights have different shapes; pass axis": lambda x: mg.average(
            x, weights=x[0]
        ),
        "out": lambda x: mg.median(x, out=x),
    },
    IndexError: {
        "median: axis 2 is out of bounds for an array with 2 axes": lambda x: mg.median(x, axis=2),
    },
}


@pytest.mark.parametrize(
    "error, message", [(error, message) for error, rows in ERRORS.items() for message in rows]
)
def test_refusals(error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ERRORS[error][message](mg.asarray(REAL))


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
