"""What functions take as NumPy's of the same name do, `std(x, ddof=1)`, `where(condition)`,
`take(x, [0])`; and further forms of NumPy's own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from consumer_checks import drawn, tensors, values
from consumer_tables import check, leaves

import multigrad as mg
from multigrad.errors import GradientError

X, V, W = drawn(3, 4), drawn(6), drawn(6, seed=1)
TIES = np.asarray([[1.0, 3.0, 3.0, 2.0, 5.0], [4.0, 4.0, 0.0, 4.0, 6.0]])
ROWS = np.asarray([[1.0, 2.0], [0.0, 3.0], [1.0, 2.0], [1.0, 0.0], [0.0, 3.0]])

# By name: the function of a namespace, NumPy's among them, and its arguments.
FORMS: dict[str, tuple[Callable[..., Any], Any]] = {
    "std with ddof": (lambda xp, x: xp.std(x, axis=1, ddof=1), X),
    "var with ddof": (lambda xp, x: xp.var(x, axis=(0, 1), ddof=2, keepdims=True), X),
    "mean in a dtype": (lambda xp, x: xp.mean(x, axis=0, dtype=np.float64), X.astype("float32")),
    "max of some, with an initial value": (
        lambda xp, x: xp.max(x, axis=0, initial=0.9, where=[True, False, True, True]),
        X,
    ),
    "sum of some": (lambda xp, x: xp.sum(x, where=[True, False, True, True], initial=2.0), X),
    "any with NumPy's arguments": (
        lambda xp, x: xp.any(x > 1, axis=None, out=None, keepdims=False),
        X,
    ),
    "round to decimals": (lambda xp, x: xp.round(x, decimals=1), X),
    "where of a condition": (lambda xp, x: xp.where(x > 1), X),
    "where of numbers": (lambda xp, x: xp.where(x), np.asarray([[0, 1], [2, 0]])),
    "take by a list": (lambda xp, x: xp.take(x, [2, 0, 2], axis=1), X),
    "take of all elements": (lambda xp, x: xp.take(x, [5, 11]), X),
    "take around the end": (lambda xp, x: xp.take(x, [-5, 3, 8], axis=1, mode="wrap"), X),
}


@pytest.mark.parametrize("backend", ["numpy", "jax"], indirect=True)
@pytest.mark.parametrize("form", FORMS)
def test_further_arguments_are_numpys(form: str, backend: str) -> None:
    pytest.importorskip(backend)
    function, x = FORMS[form]
    want, (t,) = leaves(function(np, x)), tensors(backend, (x,))
    for xp in (mg.namespace(backend), mg):
        for one, other in zip(want, leaves(function(xp, t)), strict=True):
            assert isinstance(other, mg.Tensor) and other.shape == np.shape(one)
            np.testing.assert_allclose(values(other), one, rtol=1e-6)
    np.testing.assert_allclose(
        values(leaves(function(mg.namespace(backend), t.detach().array))[0]), want[0], rtol=1e-6
    )
    if backend == "numpy" and x.dtype == np.float64:
        check(backend, lambda x: function(np if isinstance(x, np.ndarray) else mg, x), x)


def test_methods_take_them_too() -> None:
    t = mg.asarray(X)
    assert float(t.std(ddof=1)) == pytest.approx(X.std(ddof=1)) and bool(t.sum(out=None) == X.sum())
    out = mg.zeros(4, dtype="float64")
    assert t.mean(0, out=out) is out and out._version == 1


def test_what_is_wrong_is_named() -> None:
    xp, t = mg.namespace("numpy"), mg.asarray(X, requires_grad=True)
    for call, error, text in (
        (
            lambda: xp.std(t, ddof=1, correction=0.0),
            ValueError,
            "numpy.std: ddof and correction cannot both be given",
        ),
        (lambda: xp.std(t, dof=1), TypeError, r"std\(\) got an unexpected keyword argument 'dof'"),
        (lambda: xp.sum(t, dim=0), TypeError, r"sum\(\) got an unexpected keyword argument 'dim'"),
        (
            lambda: xp.sum(t, out=np.zeros(())),
            GradientError,
            "numpy.sum: the result requires grad, and a NumPy array cannot keep its history",
        ),
        (
            lambda: xp.any(t > 1, out=3),
            TypeError,
            "numpy.any: out must be a Tensor or a NumPy array, not int",
        ),
        (
            lambda: xp.where(t > 1, t),
            ValueError,
            "either both or neither of x and y should be given",
        ),
    ):
        with pytest.raises(error, match=text):
            call()


def test_a_strict_namespace_keeps_to_the_standard() -> None:
    pytest.importorskip("array_api_strict")
    xp = mg.namespace("strict")
    t = xp.asarray(X)
    for call, text in (
        (lambda: xp.std(t, ddof=1), r"std\(\) got an unexpected keyword argument 'ddof'"),
        (lambda: xp.any(t > 1, out=None), r"any\(\) got an unexpected keyword argument 'out'"),
        (lambda: xp.where(t > 1), r"where\(\) missing a required argument: 'x1'"),
        (lambda: xp.take(t, [0], axis=0), "Wrap lists with multigrad.asarray"),
    ):
        with pytest.raises(TypeError, match=text):
            call()


def test_signatures_are_those_of_the_standard() -> None:
    assert str(inspect.signature(mg.std)) == "(x, /, *, axis=None, correction=0.0, keepdims=False)"
    assert str(inspect.signature(mg.where)) == "(condition, x1, x2, /)"


# ----- NumPy's own functions -----


@pytest.mark.parametrize("backend", ["numpy", "strict", "jax"], indirect=True)
@pytest.mark.parametrize("ufunc", [np.maximum, np.minimum])
def test_extrema_so_far(ufunc: Any, backend: str) -> None:
    pytest.importorskip({"strict": "array_api_strict"}.get(backend, backend))
    gaps = X.copy()
    gaps[1, 1] = np.nan
    arrays = (TIES, X, gaps, TIES.astype("int64"), X[:, :0], X[:, :1], X > 1)
    for a in arrays[:1] if backend == "jax" else arrays:  # which compiles each
        for axis in (0, 1, -2):
            np.testing.assert_array_equal(
                values(ufunc.accumulate(tensors(backend, (a,))[0], axis=axis)),
                ufunc.accumulate(a, axis=axis),
            )
    check(backend, lambda x: ufunc.accumulate(x, axis=1), X)


def test_the_gradient_of_an_extremum_so_far_goes_to_the_last_of_equal_ones() -> None:
    x = mg.asarray(TIES, requires_grad=True)
    np.maximum.accumulate(x, axis=1).backward(mg.asarray(np.arange(1.0, 6.0) * np.ones((2, 1))))
    np.testing.assert_array_equal(values(x.grad), [[1, 2, 7, 0, 5], [1, 5, 0, 4, 5]])
    torch = pytest.importorskip("torch")
    y = torch.tensor(TIES, requires_grad=True)
    torch.cummax(y, 1)[0].backward(torch.arange(1.0, 6.0, dtype=torch.float64) * torch.ones(2, 1))
    np.testing.assert_array_equal(values(x.grad), y.grad.numpy())


def test_extrema_so_far_at_every_level() -> None:
    def loss(x: Any) -> Any:
        return mg.sum(np.maximum.accumulate(x) ** 2)

    np.testing.assert_array_equal(
        mg.func.vmap(mg.func.grad(loss))(TIES), [[2, 6, 12, 0, 10], [8, 16, 0, 8, 12]]
    )
    np.testing.assert_array_equal(
        mg.func.jacfwd(np.maximum.accumulate)(TIES[0]), np.eye(5)[[0, 1, 2, 2, 4]]
    )
    out = mg.zeros((2, 5), dtype="float64")
    assert np.minimum.accumulate(mg.asarray(TIES), axis=1, out=out) is out
    for call, error, text in (
        (
            lambda: np.maximum.accumulate(mg.asarray(TIES), axis=None),
            ValueError,
            "numpy.maximum.accumulate: it runs along one axis",
        ),
        (
            lambda: np.maximum.accumulate(mg.asarray(TIES), axis=2),
            IndexError,
            "numpy.maximum.accumulate: axis 2 is out of bounds",
        ),
    ):
        with pytest.raises(error, match=text):
            call()


@pytest.mark.parametrize("backend", ["numpy", "strict", "jax"], indirect=True)
@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_sparse_grid(count: int, indexing: str, backend: str) -> None:
    pytest.importorskip({"strict": "array_api_strict"}.get(backend, backend))
    check(
        backend,
        lambda *xs: np.meshgrid(*xs, sparse=True, indexing=indexing),
        *(V[:2], W[:3], V[2:])[:count],
    )


def test_a_sparse_grid_of_another_indexing() -> None:
    t = mg.asarray(V)
    with pytest.raises(ValueError, match="numpy.meshgrid: indexing must be 'xy' or 'ij', not 'yx'"):
        np.meshgrid(t, t, sparse=True, indexing="yx")


@pytest.mark.parametrize(
    "keywords",
    [{}, {"endpoint": False}, {"num": 1}, {"num": 1, "endpoint": False}, {"num": 0}, {"axis": -1}],
    ids=str,
)
@pytest.mark.parametrize("start", [np.asarray(0.5), V])
def test_the_step_of_linspace(start: Any, keywords: dict[str, Any]) -> None:
    want = np.linspace(start, 3.0, retstep=True, **keywords)
    points, step = np.linspace(mg.asarray(start), 3.0, retstep=True, **keywords)
    np.testing.assert_allclose(values(points), want[0])
    np.testing.assert_allclose(values(step), want[1])
    if keywords.get("num", 5) > 1:
        check(
            "numpy",
            lambda x, y: np.linspace(x, y, retstep=True, **keywords),
            start,
            np.asarray(start + 2),
        )


@pytest.mark.parametrize("backend", ["numpy", "strict", "jax"], indirect=True)
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("shape", ["rows", "integers", "blocks", "no rows", "no columns"])
def test_unique_along_an_axis(shape: str, axis: int, backend: str) -> None:
    pytest.importorskip({"strict": "array_api_strict"}.get(backend, backend))
    a = {
        "rows": ROWS,
        "integers": ROWS.astype("int64"),
        "blocks": np.stack([ROWS, ROWS[::-1], ROWS]),
        "no rows": ROWS[:0],
        "no columns": ROWS[:, :0],
    }[shape]
    want = np.unique(a, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    (t,) = tensors(backend, (a,))
    for one, other in zip(
        want,
        np.unique(t, return_index=True, return_inverse=True, return_counts=True, axis=axis),
        strict=True,
    ):
        np.testing.assert_array_equal(values(other), one)


def test_the_gradient_of_unique_rows_goes_to_the_first_of_equal_ones() -> None:
    x = mg.asarray(ROWS, requires_grad=True)
    rows = np.unique(x, axis=0)
    np.testing.assert_array_equal(values(rows), np.unique(ROWS, axis=0))
    rows.backward(mg.asarray(np.arange(6.0).reshape(3, 2)))
    np.testing.assert_array_equal(values(x.grad), [[4, 5], [0, 1], [0, 0], [2, 3], [0, 0]])
    with pytest.raises(IndexError, match="numpy.unique: axis 3 is out of bounds"):
        np.unique(x, axis=3)


WEIGHTS = np.asarray([[0.0, 2.0, 1.0, 0.5], [3.0, 0.0, 1.0, 1.0], [1.0, 1.0, 1.0, 0.0]])


@pytest.mark.parametrize("backend", ["numpy", "strict", "jax"], indirect=True)
@pytest.mark.parametrize("name", ["quantile", "percentile", "nanquantile", "nanpercentile"])
def test_quantiles_with_weights(name: str, backend: str) -> None:
    pytest.importorskip({"strict": "array_api_strict"}.get(backend, backend))
    gaps = X.copy()
    gaps[1, 2] = np.nan
    whole = 100 if "percent" in name else 1
    cases = [
        (X, q, WEIGHTS, axis)
        for q in (0.45 * whole, [0.0, 0.33 * whole, whole], np.asarray([0.3, 0.85]) * whole)
        for axis in (None, 0, (1, 0))
    ]
    cases += [
        (gaps, 0.45 * whole, WEIGHTS, 0),
        (X, 0.6 * whole, WEIGHTS[0], 1),
        (X, 0.6 * whole, WEIGHTS.T, (1, 0)),
    ]
    for a, q, weights, axis in cases[4::5] if backend == "jax" else cases:  # which compiles each
        t, w = tensors(backend, (a, weights))
        found = getattr(mg, name)(
            t, tensors(backend, (q,))[0], axis=axis, weights=w, method="inverted_cdf", keepdims=True
        )
        # numpy.nanquantile raises IndexError for weights of an axis alone
        numpys = getattr(np, name if weights.shape == a.shape else name.removeprefix("nan"))
        np.testing.assert_allclose(
            values(found),
            numpys(a, q, axis=axis, weights=weights, method="inverted_cdf", keepdims=True),
        )


def test_the_gradient_of_a_weighted_quantile_goes_to_the_element() -> None:
    check(
        "numpy",
        lambda x: np.quantile(x, [0.2, 0.7], axis=1, weights=WEIGHTS, method="inverted_cdf"),
        X,
    )
    x, w = (
        mg.asarray([3.0, 1.0, 2.0], requires_grad=True),
        mg.asarray([1.0, 1.0, 4.0], requires_grad=True),
    )
    by_x, by_w = mg.autograd.grad(
        np.quantile(x, 0.5, weights=w, method="inverted_cdf"), [x, w], allow_unused=True
    )
    assert values(by_x).tolist() == [0, 0, 1] and by_w is None
    of_rows = mg.func.vmap(lambda a, b: mg.quantile(a, 0.5, weights=b, method="inverted_cdf"))(
        X, WEIGHTS
    )
    np.testing.assert_array_equal(
        of_rows, np.quantile(X, 0.5, axis=1, weights=WEIGHTS, method="inverted_cdf")
    )


def test_weights_that_do_not_fit() -> None:
    t = mg.asarray(X)
    for options, error, text in (
        (
            {"weights": WEIGHTS},
            ValueError,
            "quantile: the method 'linear' does not take weights",
        ),
        (
            {"weights": WEIGHTS[0], "method": "inverted_cdf"},
            TypeError,
            "quantile: a and weights have different shapes; pass axis",
        ),
        (
            {"weights": WEIGHTS[0], "method": "inverted_cdf", "axis": 0},
            ValueError,
            r"quantile: weights of shape \(4,\) do not fit an array of shape",
        ),
    ):
        with pytest.raises(error, match=text):
            np.quantile(t, 0.5, **options)
    for weights in (-WEIGHTS, 0 * WEIGHTS, WEIGHTS + np.inf):
        with np.errstate(invalid="ignore"):
            assert np.isnan(
                float(
                    mg.quantile(t.detach(), 0.5, weights=mg.asarray(weights), method="inverted_cdf")
                )
            )


def test_keywords_that_are_not_offered_are_named() -> None:
    t = mg.asarray(X)
    with pytest.raises(
        TypeError, match="numpy.median: overwrite_input=True is not supported for Tensors"
    ):
        np.median(t, overwrite_input=True)
    assert float(np.median(t, overwrite_input=False)) == np.median(X)


@pytest.mark.parametrize(
    "name",
    ["average", "nanargmax", "nanmax", "nanmean", "nanmin", "nanstd", "nansum", "nanvar", "ptp"],
)
def test_keepdims_may_be_numpys_default(name: str) -> None:
    """Wrappers of NumPy's functions pass the default on."""
    x = np.asarray([[4.0, 2.0], [1.0, 3.0]])
    function = getattr(np, name)
    assert function(mg.asarray(x), keepdims=np._NoValue).item() == function(x)
