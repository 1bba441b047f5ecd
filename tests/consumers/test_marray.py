"""Masked arrays of marray around Tensors: gradients of what is not masked.

Around a Tensor, a masked mean is the program of marray in multigrad's functions, so every
transformation holds. Inside of a Tensor, a mask is refused (docs/backends.md).
"""

from __future__ import annotations

from collections.abc import Callable
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


def of_masked(masked: Any, name: str, **options: Any) -> Callable[[Any], Any]:
    return lambda x: getattr(masked, name)(masked.asarray(x, mask=mg.asarray(MASK)), **options).data


@pytest.mark.parametrize("name", NAMES)
def test_the_gradient_is_that_of_the_elements_that_are_not_masked(masked: Any, name: str) -> None:
    value, gradient = func.value_and_grad(of_masked(masked, name))(X)
    there = X[~MASK]
    expected = np.zeros_like(X)
    expected[~MASK] = func.grad(getattr(mg, name))(there)
    assert np.allclose(value, getattr(np, name)(there)) and np.allclose(gradient, expected)


@pytest.mark.parametrize("name", NAMES)
def test_along_an_axis(masked: Any, name: str) -> None:
    gradient = func.grad(lambda x: mg.sum(mg.sin(of_masked(masked, name, axis=1)(x))))(X)
    for row, mask, found in zip(X, MASK, gradient, strict=True):
        assert np.allclose(
            found[~mask], func.grad(lambda x: mg.sin(getattr(mg, name)(x)))(row[~mask])
        )
        assert not found[mask].any()


def test_second_derivatives(masked: Any) -> None:
    f = of_masked(masked, "var")
    n = (~MASK).sum()
    there = ~MASK.ravel()
    expected = 2 / n * (np.eye(X.size) - 1 / n) * there * there[:, None]
    assert np.allclose(func.hessian(f)(X).reshape(X.size, X.size), expected)
