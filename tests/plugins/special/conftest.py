"""What the tests of multigrad-special share: a library that has the standard and nothing more."""

from __future__ import annotations

from typing import Any

import pytest

import multigrad as mg
from multigrad.backends.raw import RawNamespace
from multigrad.backends.spec import Backend


@pytest.fixture(scope="module")
def strict() -> Any:
    """The raw functions of array_api_strict; special functions run on it in their standard forms."""
    array_api_strict = pytest.importorskip(
        "array_api_strict", reason="the library that has the standard and nothing more"
    )
    return RawNamespace(Backend("strict", array_api_strict, (type(array_api_strict.asarray(0)),)))


@pytest.fixture(params=["numpy", "strict"])
def light(request: pytest.FixtureRequest) -> Any:
    """The namespaces that compile nothing: every shape costs JAX a second."""
    if request.param == "strict":
        request.getfixturevalue("strict")
    return mg.namespace(request.param)
