"""multigrad-mparray: values, gradients and second derivatives in 50 digits, beside mpmath's in
120.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import multigrad as mg
from multigrad import func
from multigrad.registry import OPS, fill

pytest.importorskip("mparray")
pytest.importorskip("multigrad_mparray")

import mparray as xp
from mpmath import mp
from precision.scalars import COMPLEX, FUNCTIONS, NOT_HOLOMORPHIC, PAIRS

if "mparray" not in {b.name for b in mg.backends()}:
    pytest.skip("multigrad-mparray is not installed", allow_module_level=True)

fill()
DIGITS, REFERENCE, BOUND = 50, 120, 1e-48
ELEMENTWISE = sorted(
    name for name, op in OPS.items() if name in FUNCTIONS and op.builtin and name != "clip"
)


@pytest.fixture(autouse=True)
def fifty_digits() -> Iterator[None]:
    with mp.workdps(DIGITS):
        yield


def array(values: Any) -> Any:
    return xp.asarray(
        np.array(values, dtype=object),
        dtype=xp.complex128 if any(isinstance(v, mp.mpc) for v in np.ravel(values)) else xp.float64,
    )


def numbers(x: Any) -> list[Any]:
    return list(x._data.ravel())


def assert_digits(found: Any, expected: list[Any], what: str) -> None:
    """All are right to 48 digits of the largest of them."""
    found = numbers(found)
    assert len(found) == len(expected)
    scale = max(max(map(abs, expected), default=0), mp.mpf(10) ** -30)
    for f, e in zip(found, expected):
        assert abs(f - e) <= BOUND * scale, (
            f"{what}: {f} is no {e}, by {mp.nstr(abs(f - e) / scale, 3)}"
        )


def function(name: str) -> Callable[..., Any]:
    found: Any = mg.namespace("mparray")
    for part in name.split("."):
        found = getattr(found, part)
    return found


# ----- one element at a time -----

POINTS = {
    "acosh": ("1.3", "7.1"),
    "atanh": ("0.3", "-0.71"),
    "asin": ("0.3", "-0.71"),
    "acos": ("0.3", "-0.71"),
    "log": ("0.3", "7.1"),
    "log2": ("0.3", "7.1"),
    "log10": ("0.3", "7.1"),
    "log1p": ("-0.3", "7.1"),
    "sqrt": ("0.3", "7.1"),
    "sinc": ("0.13", "-0.7"),
}
OTHERS = ("0.7", "-1.3", "2.2")
PAIR_POINTS = {"pow": (("0.7", "1.3"), ("2.2", "-0.6"))}
OTHER_PAIRS = (("0.7", "1.9"), ("-1.3", "0.4"), ("2.2", "-0.6"))


def points(name: str) -> list[tuple[Any, ...]]:
    if name in PAIRS:
        return [tuple(map(mp.mpf, p)) for p in PAIR_POINTS.get(name, OTHER_PAIRS)]
    return [(mp.mpf(p),) for p in POINTS.get(name, OTHERS)]


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise(name: str) -> None:
    f, reference, where = function(name), FUNCTIONS[name], points(name)
    if name in ("real", "imag", "conj"):
        pytest.skip("of complex arrays, below")
    columns = [array(column) for column in zip(*where)]
    assert_digits(f(*columns).array, [mp.mpf(reference(*p)) for p in where], "value")
    for i in range(len(columns)):
        gradient = lambda *x, i=i: func.grad(lambda *x: mg.sum(f(*x)), argnums=i)(*x)
        order = tuple(int(j == i) for j in range(len(columns)))
        assert_digits(
            gradient(*columns), [derivative(reference, p, order) for p in where], f"gradient {i}"
        )
        for j in range(len(columns)):
            second = func.grad(lambda *x, gradient=gradient: mg.sum(gradient(*x)), argnums=j)(
                *columns
            )
            both = tuple(n + int(k == j) for k, n in enumerate(order))
            assert_digits(
                second,
                [derivative(reference, p, both) for p in where],
                f"second derivative {i}, {j}",
            )


def derivative(f: Callable[..., Any], point: tuple[Any, ...], order: tuple[int, ...]) -> Any:
    with mp.workdps(REFERENCE):
        return mp.diff(f, point, order)


@pytest.mark.parametrize(
    "name", [name for name in COMPLEX if name not in NOT_HOLOMORPHIC and name not in PAIRS]
)
def test_complex(name: str) -> None:
    """The gradient of Re f is the conjugate of the derivative; asinh also far out, where 1 is small
    beside z**2.
    """
    f, reference = function(name), FUNCTIONS[name]
    where = [
        mp.mpc("0.3", "0.4"),
        mp.mpc("-1.2", "0.7"),
        *([mp.mpc("3e14", "2e14")] if name == "asinh" else []),
    ]
    z = array(where)
    assert_digits(f(z).array, [reference(v) for v in where], "value")
    gradient = func.grad(lambda z: mg.sum(mg.real(f(z))))(z)
    for k, v in enumerate(where):
        assert_digits(
            gradient[k : k + 1], [mp.conj(derivative(reference, (v,), (1,)))], f"gradient at {v}"
        )


# ----- along axes: gradients of a weighted sum, and their derivative along a direction -----


def _log_sum(x: list[Any]) -> Any:
    return mp.log(sum(map(mp.exp, x)))


def _variance(x: list[Any], correction: int = 0) -> Any:
    mean = sum(x) / len(x)
    return sum((v - mean) ** 2 for v in x) / (len(x) - correction)


def _norm(order: Any) -> Callable[[list[Any]], list[Any]]:
    return lambda x: [sum(abs(v) ** order for v in x) ** (1 / mp.mpf(order))]


def _covariance(x: list[Any]) -> list[Any]:
    halves = x[:3], x[3:]
    centred = [[v - sum(h) / 3 for v in h] for h in halves]
    return [sum(a * b for a, b in zip(p, q)) / 2 for p in centred for q in centred]


def _wave(x: list[Any]) -> list[Any]:
    n = len(x)
    return [
        sum(v * mp.cos(2 * mp.pi * j * k / n) for j, v in enumerate(x)) / mp.sqrt(n)
        for k in range(n)
    ]


LINES: dict[str, tuple[Callable[[Any], Any], Callable[[list[Any]], list[Any]]]] = {
    "mean": (mg.mean, lambda x: [sum(x) / len(x)]),
    "var": (lambda x: mg.var(x, correction=1), lambda x: [_variance(x, 1)]),
    "var of seven": (lambda x: mg.var(mg.concat([x, x[:1]])), lambda x: [_variance([*x, x[0]])]),
    "std": (mg.std, lambda x: [mp.sqrt(_variance(x))]),
    "softmax": (lambda x: mg.softmax(x, axis=0), lambda x: [mp.exp(v - _log_sum(x)) for v in x]),
    "log_softmax": (lambda x: mg.log_softmax(x, axis=0), lambda x: [v - _log_sum(x) for v in x]),
    "logsumexp": (mg.logsumexp, lambda x: [_log_sum(x)]),
    "softplus": (mg.softplus, lambda x: [mp.log1p(mp.exp(v)) for v in x]),
    "sinc": (mg.sinc, lambda x: [mp.sincpi(v) for v in x]),
    "clip": (
        lambda x: mg.clip(x, -0.5, x[2] / 2),
        lambda x: [min(max(v, mp.mpf("-0.5")), x[2] / 2) for v in x],
    ),
    "prod": (mg.prod, lambda x: [mp.fprod(x)]),
    "cumulative_prod": (
        lambda x: mg.cumulative_prod(x),
        lambda x: [mp.fprod(x[: i + 1]) for i in range(len(x))],
    ),
    "cov": (lambda x: mg.cov(mg.reshape(x, (2, 3))), _covariance),
    "linalg.vector_norm": (mg.linalg.vector_norm, _norm(2)),
    "linalg.vector_norm, 3": (lambda x: mg.linalg.vector_norm(x, ord=3), _norm(3)),
    "linalg.det": (
        lambda x: mg.linalg.det(mg.reshape(mg.concat([x, x[:3] ** 2]), (3, 3))),
        lambda x: [mp.det(mp.matrix([x[:3], x[3:], [v * v for v in x[:3]]]))],
    ),
    "linalg.inv": (
        lambda x: mg.linalg.inv(mg.reshape(x[:4], (2, 2))),
        lambda x: list(mp.inverse(mp.matrix([x[:2], x[2:4]]))),
    ),
    "linalg.svdvals": (
        lambda x: mg.linalg.svdvals(mg.reshape(x, (2, 3))),
        lambda x: list(mp.svd_r(mp.matrix([x[:3], x[3:]]), compute_uv=False)),
    ),
    "linalg.eigvalsh": (
        lambda x: mg.linalg.eigvalsh(mg.reshape(x[:4], (2, 2)) + mg.reshape(x[:4], (2, 2)).mT),
        lambda x: sorted(
            mp.eigsy(
                mp.matrix([[2 * x[0], x[1] + x[2]], [x[1] + x[2], 2 * x[3]]]), eigvals_only=True
            )
        ),
    ),
    "fft.fft": (lambda x: mg.real(mg.fft.fft(x * (1 + 0j), norm="ortho")), _wave),
    "fft.rfft": (lambda x: mg.real(mg.fft.rfft(x, norm="ortho")), lambda x: _wave(x)[:4]),
}
POINT = ("0.9", "-0.4", "1.7", "0.2", "-1.1", "0.6")
ALONG = ("0.3", "1.1", "-0.7", "0.8", "0.5", "-0.2")


@pytest.mark.parametrize("name", LINES)
def test_lines(name: str) -> None:
    f, reference = LINES[name]
    x, v = [mp.mpf(p) for p in POINT], [mp.mpf(p) for p in ALONG]
    expected = list(map(mp.mpf, reference(x)))
    weights = [mp.mpf(k + 1) / 7 for k in range(len(expected))]
    out = f(mg.asarray(array(x)))
    assert_digits(mg.reshape(out, (-1,)).array, at_reference(lambda: list(reference(x))), "value")
    loss = lambda x: mg.sum(mg.reshape(f(x), (-1,)) * array(weights))
    total = lambda *x: mp.fdot(weights, reference(list(x)))
    assert_digits(
        func.grad(loss)(array(x)),
        [derivative(total, tuple(x), tuple(int(j == i) for j in range(6))) for i in range(6)],
        "gradient",
    )

    def moved(i: int) -> Callable[[Any, Any], Any]:
        return lambda s, t: total(
            *[u + t * w + (s if j == i else 0) for j, (u, w) in enumerate(zip(x, v))]
        )

    assert_digits(
        func.hvp(loss, (array(x),), (array(v),))[1][0],
        [derivative(moved(i), (mp.zero, mp.zero), (1, 1)) for i in range(6)],
        "second derivative",
    )


def at_reference(compute: Callable[[], Any]) -> Any:
    with mp.workdps(REFERENCE):
        return compute()


# ----- what else holds -----


def test_numbers_follow_the_precision() -> None:
    """They are made when they are used, so a program may ask for more digits as it goes."""
    with mp.workdps(200):
        gradient = func.grad(lambda x: mg.sum(mg.log2(x)))(array([mp.mpf(3)]))
        assert abs(numbers(gradient)[0] - 1 / (3 * mp.log(2))) < mp.mpf(10) ** -199


def test_tensor_on_the_left() -> None:
    x = mg.asarray(array([mp.mpf(1) / 3]), requires_grad=True)
    y = x * array([mp.mpf(3)])
    y.backward(array([mp.one]))
    assert numbers(x.grad.array) == [mp.mpf(3)]
    with pytest.raises(mg.errors.GradientError, match="requires grad"):
        array([mp.mpf(3)]) * x


# ----- what mparray lacks, beside NumPy -----

NAN = [[0.5, np.nan, -1.0, np.nan], [np.inf, 2.0, np.nan, -np.inf], [np.nan, 1.0, 1.0, 0.0]]
Z = np.array([[1.0 + 2.0j, -0.5j, 3.0], [0.25, 1.0j, -2.0 + 1.0j]])
EMPTY: dict[str, Callable[[Any, Any], Any]] = {
    "cholesky": lambda linalg, x: linalg.cholesky(x),
    "eigh": lambda linalg, x: tuple(linalg.eigh(x)),
    "eig": lambda linalg, x: tuple(linalg.eig(x * (1 + 0j))),
    "inv": lambda linalg, x: linalg.inv(x),
    "qr": lambda linalg, x: tuple(linalg.qr(x)),
    "qr, complete": lambda linalg, x: tuple(linalg.qr(x, mode="complete")),
    "solve": lambda linalg, x: linalg.solve(x, x),
    "svd": lambda linalg, x: tuple(linalg.svd(x)),
    "svd, reduced": lambda linalg, x: tuple(linalg.svd(x, full_matrices=False)),
}
ANY_MATRIX = ("qr", "qr, complete", "svd", "svd, reduced")


def like_numpy(found: Any, expected: Any) -> None:
    found, expected = (x if isinstance(x, tuple) else (x,) for x in (found, expected))
    for f, e in zip(found, expected, strict=True):
        assert f.shape == e.shape and f.dtype == e.dtype
        assert np.array_equal(f.numpy(), e, equal_nan=True)


@pytest.mark.parametrize("descending", [False, True])
def test_nan_is_sorted_behind_every_number(descending: bool) -> None:
    x = mg.asarray(array(NAN))
    for axis in (0, 1):
        expected = np.sort(NAN, axis=axis)
        order = mg.argsort(x, axis=axis, descending=descending)
        for found in (
            mg.sort(x, axis=axis, descending=descending),
            mg.take_along_axis(x, order, axis=axis),
        ):
            like_numpy(found, np.flip(expected, axis=axis) if descending else expected)
    assert mg.argsort(x, axis=1).tolist() == [[2, 0, 1, 3], [3, 1, 0, 2], [3, 1, 2, 0]]
    like_numpy(mg.nanmedian(x[:, 1:], axis=0), np.nanmedian(np.asarray(NAN)[:, 1:], axis=0))


def test_nan_is_not_clipped() -> None:
    x = mg.asarray(array(NAN))
    like_numpy(mg.clip(x, -1.0, 1.0), np.clip(NAN, -1.0, 1.0))
    like_numpy(mg.clip(x, array([np.nan, 0.0, 0.0, 0.0])), np.clip(NAN, [np.nan, 0, 0, 0], None))
    like_numpy(mg.corrcoef(mg.asarray(array(0.5))), np.asarray(np.nan))


def test_the_variance_of_complex_numbers_is_real() -> None:
    x = mg.asarray(xp.asarray(Z), requires_grad=True)
    for f, theirs in ((mg.var, np.var), (mg.std, np.std)):
        for options in ({}, {"axis": 0}, {"axis": 1, "correction": 1, "keepdims": True}):
            found = f(x, **options).detach()
            expected = theirs(Z, **options)
            assert found.dtype == expected.dtype and np.allclose(found.numpy(), expected)
    mg.var(x).backward()
    assert np.allclose(x.grad.numpy(), 2 * (Z - Z.mean()) / Z.size)


@pytest.mark.parametrize("name", EMPTY)
def test_matrices_without_elements(name: str) -> None:
    shapes = (
        (0, 0),
        (2, 0, 0),
        (0, 2, 2),
        *(((0, 2), (2, 0), (0, 3, 2)) if name in ANY_MATRIX else ()),
    )
    for shape in shapes:
        for dtype in (np.float64, np.complex128):
            x = np.zeros(shape, dtype=dtype)
            found = EMPTY[name](mg.linalg, mg.asarray(xp.asarray(x)))
            like_numpy(found, EMPTY[name](np.linalg, x))


def test_sums_without_elements() -> None:
    x = mg.asarray(xp.ones((2, 0)))
    assert mg.vecdot(x, x).tolist() == mg.linalg.vecdot(x, x).tolist() == [0.0, 0.0]


def test_bounds_of_several_axes() -> None:
    start, stop = np.array([[0.5], [2.0]]), np.array([1.0, -1.0, 0.25])
    for endpoint in (True, False):
        found = mg.linspace(mg.asarray(array(start)), mg.asarray(array(stop)), 5, endpoint=endpoint)
        assert np.allclose(found.numpy(), np.linspace(start, stop, 5, endpoint=endpoint))
