"""Masked arrays of marray around Tensors: gradients of what is not masked.

Around a Tensor, a masked mean is the program of marray in multigrad's functions, so every
transformation holds. Inside of a Tensor, a mask is refused (docs/backends.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from consumer_checks import drawn

import multigrad as mg
from multigrad import func

marray = pytest.importorskip("marray", reason="marray is a dependency of the tests only")

X = drawn(3, 4)
MASK = np.array([[1, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 0]], dtype=bool)
NAMES = ("max", "mean", "min", "prod", "std", "sum", "var")


@pytest.fixture(scope="module")
def masked() -> Any:
    return marray.masked_namespace(mg.namespace("numpy"))


@pytest.mark.parametrize("name", NAMES)
def test_the_gradient_is_that_of_the_elements_that_are_not_masked(masked: Any, name: str) -> None:
    def loss(x: Any) -> Any:
        there = masked.asarray(x, mask=mg.asarray(MASK))
        return mg.sum(mg.sin(getattr(masked, name)(there, axis=1).data))

    gradient = func.grad(loss)(X)
    for row, mask, found in zip(X, MASK, gradient, strict=True):
        assert np.allclose(
            found[~mask], func.grad(lambda x: mg.sin(getattr(mg, name)(x)))(row[~mask])
        )
        assert not found[mask].any()
