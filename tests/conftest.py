"""What all tests share: the backends they run on.

JAX computes in float64 here; its default is tested by conformance.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("JAX_ENABLE_X64", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np
import pytest

import multigrad as mg
from multigrad import registry
from multigrad.errors import BackendError

BACKENDS = ("numpy", "strict", "jax")


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    """The name of each backend that the project's tests need; its absence is visible."""
    name: str = request.param
    try:
        mg.namespace(name)
    except BackendError as error:
        pytest.skip(f"backend {name!r} cannot be used here: {error}")
    return name


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """On JAX the tests of special functions belong to the long level: each compiles for seconds.

    In the short level the conformance suite has the values and derivatives of these functions
    there.
    """
    for item in items:
        of = getattr(item, "callspec", None)
        if (
            of is not None
            and of.params.get("backend") == "jax"
            and item.path.name.startswith("test_special_")
        ):
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def xp(backend: str) -> Any:
    """The differentiable namespace of each backend."""
    return mg.namespace(backend)


@pytest.fixture
def operations() -> Iterator[dict[str, registry.Op]]:
    """The table of operations, as it was before once the test is over."""
    mg.zeros(1)
    before = dict(registry.OPS)
    yield registry.OPS
    for name in set(registry.OPS) ^ set(before) | {
        n for n in before if registry.OPS.get(n) is not before[n]
    }:
        registry.OPS.pop(name, None)
        if name in before:
            registry.OPS[name] = before[name]
            for listener in registry._listeners:
                listener(before[name])


@pytest.fixture(autouse=True)
def _no_silent_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        yield


def values(t: Any) -> Any:
    """The values of a Tensor or raw array of any backend as a NumPy array."""
    t = t.detach().array if isinstance(t, mg.Tensor) else t
    return np.asarray(t)
