"""array-api-compat's helpers, which array-agnostic code begins with, know a Tensor for what it
is.
"""

from __future__ import annotations

import pickle
from typing import Any

import array_api_compat as compat
import numpy as np
import pytest
from consumer_checks import drawn, numpy_dtype, values
from consumer_tables import check

import multigrad as mg

LIBRARIES = ("numpy", "cupy", "torch", "dask", "jax", "pydata_sparse", "ndonnx")


@pytest.fixture
def x(backend: str) -> Any:
    return mg.asarray(drawn(2, 3), backend=backend, requires_grad=True)


def test_its_namespace_is_the_bound_one(x: Any, backend: str) -> None:
    xp = compat.array_namespace(x)
    assert xp is mg.namespace(backend) is x.__array_namespace__()
    assert compat.array_namespace(x, 2.0, None, x * 2) is xp
    for version in ("2022.12", "2025.12"):
        assert compat.array_namespace(x, api_version=version) is xp
    assert isinstance(xp.zeros(3), mg.Tensor) and type(xp.zeros(3).array) is type(x.array)


def test_it_is_an_array_of_no_known_library(x: Any) -> None:
    assert compat.is_array_api_obj(x)
    for library in LIBRARIES:
        assert not getattr(compat, f"is_{library}_array")(x), library
    for library in (*(name for name in LIBRARIES if name != "pydata_sparse"), "array_api_strict"):
        assert not getattr(compat, f"is_{library}_namespace")(compat.array_namespace(x)), library
    assert not compat.is_lazy_array(x)
    assert compat.is_writeable_array(x)


def test_raw_arrays_are_of_another_namespace(x: Any) -> None:
    """Mixed arguments raise there; operators and functions of multigrad take them."""
    with pytest.raises(TypeError, match="Multiple namespaces"):
        compat.array_namespace(x, x.array)
    assert isinstance(compat.array_namespace(x).add(x, x.array), mg.Tensor)


def test_size_and_device(x: Any) -> None:
    assert compat.size(x) == 6 and compat.size(x[:0, ...]) == 0 and compat.size(x[0, 0]) == 1
    assert compat.device(x) == x.device == compat.device(x * 2)


def test_to_device_is_differentiable(x: Any) -> None:
    y = compat.to_device(x, compat.device(x))
    (g,) = mg.autograd.grad((y * y).sum(), x)
    np.testing.assert_array_equal(values(g), 2 * drawn(2, 3))


def test_a_namespace_can_be_a_key_and_be_pickled(x: Any) -> None:
    """SciPy keeps what it finds for a namespace in a dictionary; array-api-extra pickles."""
    xp = compat.array_namespace(x)
    assert {xp: 1}[x.__array_namespace__()] == 1
    assert pickle.loads(pickle.dumps(xp)) is xp


# ----- array-agnostic code of a user, who has never heard of multigrad -----


def standardized(x: Any, axis: int = -1) -> Any:
    """Deviations from the mean in units of the standard deviation; 0 where that is 0."""
    xp = compat.array_namespace(x)
    centred = x - xp.mean(x, axis=axis, keepdims=True)
    scale = xp.std(x, axis=axis, keepdims=True)
    scale[scale == 0] = 1.0
    return centred / scale


def attention(query: Any, key: Any, value: Any) -> Any:
    """Scaled dot-product attention."""
    xp = compat.array_namespace(query, key, value)
    scores = query @ key.mT / query.shape[-1] ** 0.5
    weights = xp.exp(scores - xp.max(scores, axis=-1, keepdims=True))
    return (weights / xp.sum(weights, axis=-1, keepdims=True)) @ value


def smoothed(x: Any) -> Any:
    """A moving average with a mask, an accumulation in place, and constants on the array's
    device.
    """
    xp, device = compat.array_namespace(x), compat.device(x)
    total = xp.zeros(x.shape, dtype=x.dtype, device=device)
    for shift, weight in ((-1, 0.25), (0, 0.5), (1, 0.25)):
        total += weight * xp.roll(x, shift, axis=-1)
    inside = xp.asarray([compat.size(x) > 0] * x.shape[-1], device=device)
    return xp.where(inside, total, x)


USER_CODE: dict[str, tuple[Any, ...]] = {
    "standardized": (standardized, drawn(2, 3)),
    "attention": (attention, drawn(2, 3), drawn(2, 3, seed=1), drawn(2, 3, seed=2)),
    "smoothed": (smoothed, drawn(2, 3)),
}


@pytest.mark.parametrize("name", USER_CODE)
def test_array_agnostic_code(name: str, backend: str) -> None:
    function, *args = USER_CODE[name]
    check(backend, function, *args)


@pytest.mark.parametrize("name", USER_CODE)
def test_array_agnostic_code_in_float32(name: str, backend: str) -> None:
    """Nothing widens it on the way: the results of the tables are in float64."""
    function, *args = USER_CODE[name]
    narrow = [a.astype("float32") for a in args]
    given = [mg.tensor(a, backend=backend, requires_grad=True) for a in narrow]
    y = function(*given)
    grads = mg.autograd.grad((y * y).sum(), given)
    assert {numpy_dtype(t) for t in (y, *grads)} == {np.dtype("float32")}
    np.testing.assert_allclose(values(y), values(function(*map(mg.asarray, args))), rtol=1e-4)
