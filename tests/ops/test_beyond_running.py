"""cumsum, cumprod, cross and windows under NumPy's names: NumPy's values, what they refuse, and
where xarray looks for windows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import values
from numpy.lib.stride_tricks import sliding_window_view

import multigrad as mg

X = np.random.default_rng(0).normal(size=(4, 5, 3))


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_scans_are_methods(name: str) -> None:
    np.testing.assert_allclose(values(getattr(mg.asarray(X), name)(1)), getattr(np, name)(X, 1))


@pytest.mark.parametrize("shape, axis", [(0, 0), (4, 0), ((2,), 1), ([2, 3], range(2))])
def test_windows_of_no_and_all_elements(shape: Any, axis: Any) -> None:
    np.testing.assert_array_equal(
        values(mg.sliding_window_view(mg.asarray(X), shape, axis)),
        sliding_window_view(X, shape, tuple(axis) if isinstance(axis, range) else axis),
    )


WINDOW = "sliding_window_view: "
ERRORS: dict[str, tuple[type[Exception], Any, Any]] = {
    WINDOW + "a window of 5 elements is longer than axis 0, which has 4": (ValueError, 5, 0),
    WINDOW + "window_shape has 1 lengths for 3 axes": (ValueError, 2, None),
    WINDOW + r"window_shape cannot contain negative values: \(-1,\)": (ValueError, (-1,), 0),
    WINDOW + "axis 3 is out of bounds for an array with 3 axes": (IndexError, 2, 3),
    r"argument 'window_shape' must be an integer or": (TypeError, 1.5, 0),
}


@pytest.mark.parametrize("message", ERRORS)
def test_windows_that_there_are_not(message: str) -> None:
    error, shape, axis = ERRORS[message]
    with pytest.raises(error, match=message):
        mg.sliding_window_view(mg.asarray(X), shape, axis)


def test_windows_stand_where_numpy_has_them() -> None:
    xp = mg.namespace("numpy")
    t = xp.asarray(X, requires_grad=True)
    windows = xp.lib.stride_tricks.sliding_window_view(t, 2, axis=0)
    assert xp.lib is xp.lib and windows.requires_grad
    windows.sum().backward()
    np.testing.assert_array_equal(values(t.grad)[:, 0, 0], [1.0, 2.0, 2.0, 1.0])
    with pytest.raises(AttributeError, match="'multigrad.strict' has no 'lib'"):
        mg.namespace("strict").lib


def test_numpys_own_function_of_windows() -> None:
    t = mg.asarray(X, requires_grad=True)
    np.testing.assert_array_equal(
        values(sliding_window_view(t, 2, axis=1)), sliding_window_view(X, 2, axis=1)
    )
    with pytest.raises(
        TypeError, match="numpy.sliding_window_view: writeable=True is not supported for Tensors"
    ):
        sliding_window_view(t, 2, axis=1, writeable=True)


@pytest.mark.parametrize("axes", [{"axisa": 2, "axisc": 0}, {"axisb": -1}])
def test_cross(axes: dict[str, int]) -> None:
    np.testing.assert_allclose(
        values(mg.cross(mg.asarray(X), mg.asarray(X[::-1] + 1), **axes)),
        np.cross(X, X[::-1] + 1, **axes),
        rtol=1e-13,
    )


def test_cross_of_other_vectors() -> None:
    with pytest.raises(
        ValueError, match=r"cross: a vector has 3 elements; the shapes are \(2,\) and \(2,\)"
    ):
        mg.cross(mg.asarray([1.0, 2.0]), mg.asarray([1.0, 2.0]))
    with pytest.raises(
        IndexError, match="cross: axisb 4 is out of bounds for an array with 3 axes"
    ):
        mg.cross(mg.asarray(X), mg.asarray(X), axisb=4)
