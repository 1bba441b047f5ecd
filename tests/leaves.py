"""Tensors that require grad, constants, and the comparison of values, on every backend."""

from __future__ import annotations

from typing import Any

import numpy as np
from conftest import values

import multigrad as mg


def _array(data: Any, dtype: Any) -> Any:
    array = np.array(data, dtype=dtype)
    return array.astype(np.float64) if dtype is None and array.dtype.kind in "biu" else array


def leaf(xp: Any, data: Any, dtype: Any = None) -> Any:
    """A Tensor that requires grad, of a copy of the data; integers become float64."""
    return xp.asarray(_array(data, dtype), requires_grad=True)


def const(xp: Any, data: Any, dtype: Any = None) -> Any:
    """A Tensor without a gradient, of a copy of the data; integers become float64."""
    return xp.asarray(_array(data, dtype))


def vector(data: Any) -> mg.Tensor:
    """A leaf of float64 on NumPy."""
    return mg.asarray(np.asarray(data, dtype=np.float64), requires_grad=True)


def ones(*shape: int) -> mg.Tensor:
    """A leaf of ones on NumPy."""
    return mg.tensor(np.ones(shape), requires_grad=True)


def check(t: Any, expected: Any, rtol: float = 1e-13, **tolerances: Any) -> None:
    """The values of a Tensor or a raw array, up to rounding."""
    np.testing.assert_allclose(values(t), expected, rtol=rtol, **tolerances)
