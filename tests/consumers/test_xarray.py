"""What xarray does with Tensors beyond the table of its calls: its own deep copies, ways out by
numbers, other layers.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from consumer_checks import drawn, values

import multigrad as mg
from multigrad.errors import GradientError

xr = pytest.importorskip("xarray", reason="xarray is a dependency of the tests only")

V = drawn(4)


@pytest.fixture
def leaf() -> Any:
    return mg.tensor(V, requires_grad=True)


def array(x: Any) -> Any:
    return xr.DataArray(x, dims="x", coords={"x": np.arange(4.0)})


# ----- copies -----


@pytest.mark.parametrize(
    "copied",
    [
        lambda a: a.copy(),
        lambda a: a.to_dataset(name="a").copy(deep=True)["a"],
        lambda a: xr.DataArray(np.zeros(4), dims="x", coords={"w": ("x", a.data)}).w,
        lambda a: xr.align(a, array(V)[:2], join="outer", fill_value=0.0)[0],
        lambda a: a.sortby("x"),
        lambda a: a.variable.copy(),
    ],
)
def test_a_leaf_that_xarray_copies_on_its_way_keeps_its_gradient(copied: Any, leaf: Any) -> None:
    result = copied(array(leaf)).data
    assert result is not leaf and not result.is_leaf
    (result * result).sum().backward()
    np.testing.assert_allclose(values(leaf.grad), 2 * V)


def test_a_copy_can_be_written_to(leaf: Any) -> None:
    a = array(leaf).copy()
    a[{"x": 0}] = 0.0
    a.data.sum().backward()
    np.testing.assert_array_equal(values(leaf.grad), [0.0, 1.0, 1.0, 1.0])
    np.testing.assert_array_equal(values(leaf), V)


def test_a_deep_copy_by_the_program_is_a_leaf_of_its_own(leaf: Any) -> None:
    """As of a list or of any other structure of parameters."""
    for copied in (
        copy.deepcopy(array(leaf)),
        copy.deepcopy({"a": [array(leaf)]})["a"][0],
        copy.deepcopy(xr.Dataset({"a": array(leaf)}))["a"],
    ):
        assert copied.data.is_leaf and copied.data.requires_grad and copied.data is not leaf


# ----- transformations -----


def test_inside_transformations() -> None:
    def loss(x: Any) -> Any:
        return (array(x).copy() ** 2).mean().data

    x = mg.tensor(V)
    np.testing.assert_allclose(values(mg.func.grad(loss)(x)), V / 2)
    np.testing.assert_allclose(values(mg.func.hessian(loss)(x)), np.eye(4) / 2, atol=1e-15)
    np.testing.assert_allclose(values(mg.func.jvp(loss, (x,), (x,))[1]), V @ V / 2)


# ----- ways out -----


@pytest.mark.parametrize(
    "left",
    [
        lambda a: a.values,
        lambda a: a.to_dataframe("a"),
        lambda a: np.asarray(a),
        lambda a: float(a.sum()),
        lambda a: a.to_netcdf(),
    ],
    ids=["values", "to_dataframe", "asarray", "float", "to_netcdf"],
)
def test_values_leave_constants_only(left: Any, leaf: Any) -> None:
    with pytest.raises(GradientError, match=r"Can't call numpy\(\) on Tensor that requires grad"):
        left(array(leaf))


def test_what_is_shown(leaf: Any) -> None:
    assert "Tensor" in repr(array(leaf)) and "Tensor" in array(leaf)._repr_html_()


def test_dask_arrays_of_tensors(leaf: Any) -> None:
    pytest.importorskip("dask.array", reason="dask is a dependency of the tests only")
    result = (array(leaf).chunk({"x": 2}) * 2).sum().compute().data
    assert isinstance(result, mg.Tensor) and result.requires_grad
    result.backward()
    np.testing.assert_array_equal(values(leaf.grad), np.full(4, 2.0))
