"""What scikit-learn does with Tensors beyond the table of its calls: ways out by numbers, the
context for writes, metrics of several outputs.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from consumer_checks import check, drawn, values

import multigrad as mg
from multigrad.autograd.graph import allow_mutation_on_saved_tensors
from multigrad.errors import GradientError

sklearn = pytest.importorskip("sklearn", reason="scikit-learn is a dependency of the tests only")

from sklearn import decomposition, linear_model, metrics, preprocessing  # noqa: E402

X, Y = drawn(6, 3), drawn(6, 3, seed=1)


@pytest.fixture(autouse=True)
def dispatch() -> Any:
    with sklearn.config_context(array_api_dispatch=True):
        yield


def test_a_metric_leaves_by_float_with_a_warning_of_one_place() -> None:
    """The place is the line of scikit-learn that calls float().

    It changes the filters in between, so Python may say it again.
    """
    t = mg.tensor(X, requires_grad=True)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("default")
        for _ in range(3):
            loss = metrics.mean_squared_error(t, mg.asarray(Y))
            assert type(loss) is float and loss == pytest.approx(np.mean((X - Y) ** 2))
    warned = heard[0]
    assert {(w.filename, w.lineno) for w in heard} == {(warned.filename, warned.lineno)}
    assert str(warned.message).startswith(
        "Converting a tensor with requires_grad=True to a scalar by float() drops its gradient. "
        "Consider using tensor.detach() first. Instead of math.exp(x), call multigrad.exp(x)."
    )
    assert (
        "sklearn" in warned.filename
        and "float(" in Path(warned.filename).read_text().splitlines()[warned.lineno - 1]
    )


def test_a_constant_leaves_by_float_in_silence() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metrics.mean_squared_error(mg.asarray(X), mg.asarray(Y))


@pytest.mark.parametrize(
    "name",
    [
        "mean_squared_error",
        "mean_absolute_error",
        "r2_score",
        "mean_squared_log_error",
        "root_mean_squared_error",
        "mean_absolute_percentage_error",
        "explained_variance_score",
        "mean_pinball_loss",
    ],
)
def test_metrics_of_several_outputs_carry_the_gradient(name: str) -> None:
    """multioutput="raw_values" gives an array instead of a number."""
    check(
        "numpy",
        lambda y, z: getattr(metrics, name)(y, z, multioutput="raw_values"),
        X,
        Y + X,
        value_rtol=1e-10,
    )


# what StandardScaler writes over
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_what_writes_says_where_it_works() -> None:
    t = mg.tensor(X, requires_grad=True)
    scaled = preprocessing.StandardScaler().fit_transform(t)
    with pytest.raises(GradientError, match="has been modified by an inplace operation"):
        scaled[0, 0].backward()
    with allow_mutation_on_saved_tensors():
        scaled = preprocessing.StandardScaler().fit_transform(t)
        scaled[0, 0].backward()
    assert np.all(np.isfinite(values(t.grad)))


def test_pca_is_differentiated_twice() -> None:
    with allow_mutation_on_saved_tensors():
        t = mg.tensor(X, requires_grad=True)
        loss = (decomposition.PCA(2, svd_solver="full").fit(t).explained_variance_ ** 2).sum()
        (g,) = mg.autograd.grad(loss, t, create_graph=True)
        (h,) = mg.autograd.grad((g * mg.asarray(Y)).sum(), t)
    step = 1e-5

    def slope(x: Any) -> Any:
        with allow_mutation_on_saved_tensors():
            t = mg.tensor(x, requires_grad=True)
            (
                decomposition.PCA(2, svd_solver="full").fit(t).explained_variance_ ** 2
            ).sum().backward()
        return values(t.grad)

    np.testing.assert_allclose(
        values(h), (slope(X + step * Y) - slope(X - step * Y)) / (2 * step), rtol=1e-6, atol=1e-7
    )


def test_solvers_for_numpy_arrays_only_refuse() -> None:
    t = mg.tensor(X, requires_grad=True)
    with pytest.raises(ValueError, match="only supports solver 'svd'"):
        linear_model.Ridge(solver="cholesky").fit(t, mg.asarray(Y))
    with pytest.raises(GradientError, match=r"Can't call numpy\(\) on Tensor that requires grad"):
        linear_model.LinearRegression().fit(t, mg.asarray(Y))
    with (
        sklearn.config_context(array_api_dispatch=False),
        pytest.raises(GradientError, match=r"Can't call numpy\(\) on Tensor that requires grad"),
    ):
        preprocessing.MinMaxScaler().fit(t)
