"""What scikit-learn does with Tensors beyond the table of its calls: ways out by numbers, and what
it refuses.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from consumer_checks import drawn

import multigrad as mg
from multigrad.errors import GradientError

sklearn = pytest.importorskip("sklearn", reason="scikit-learn is a dependency of the tests only")

from sklearn import linear_model, metrics, preprocessing  # noqa: E402

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
