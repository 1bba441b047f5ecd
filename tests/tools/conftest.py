"""What the tests of tools share: arrays of ones on the libraries that hold data."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import multigrad as mg


@pytest.fixture(params=["numpy", "array_api_strict", "jax"])
def make(request: pytest.FixtureRequest) -> Callable[..., mg.Tensor]:
    """Arrays of ones that require grad."""
    xp = pytest.importorskip({"jax": "jax.numpy"}.get(request.param, request.param))
    return lambda *shape: mg.tensor(xp.ones(shape), requires_grad=True)
