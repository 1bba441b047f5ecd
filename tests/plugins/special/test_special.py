"""The plugin multigrad-special: a third party that registers operations through hooks alone.

That every rule passes all checks on every backend is for the conformance suite, in which the
plugin enrols itself.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from conftest import values

import multigrad as mg
from multigrad import extend, registry
from multigrad.errors import BackendError, RegistrationError
from multigrad_special import words

pytest.importorskip("scipy", reason="SciPy is not installed")


# ----- what the plugin adds -----


def test_finding_the_plugin_imports_no_array_library() -> None:
    code = (
        "import multigrad as mg, sys; mg.special; mg.namespace('numpy').special.erf; "
        "print(*{'scipy', 'jax', 'cupy'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stdout.strip() == ""


def test_the_operations_come_from_the_hook() -> None:
    declared = [registry.OPS[f"special.{name}"] for name in dir(mg.namespace("numpy").special)]
    assert {"special.erf", "special.psi", "special.iv"} <= {op.name for op in declared}
    assert {op.module.rpartition(".")[0] for op in declared} == {"multigrad_special.operations"}
    assert {op.chapter for op in declared} == {"special"}


def test_every_operation_enrols_itself_in_conformance() -> None:
    samples = extend.samples()
    assert {name for name in samples if name.startswith("special.")} == {
        f"special.{name}" for name in dir(mg.namespace("numpy").special)
    }


def test_multigrad_special_dispatches_on_its_arguments(xp: Any) -> None:
    x = xp.asarray([-2.5, 0.1, 0.9])
    for argument in (x, x.array):
        y = mg.special.expit(argument)
        assert isinstance(y, mg.Tensor) and type(y.array) is type(x.array)
        np.testing.assert_allclose(values(y), values(xp.special.expit(x)))


# ----- what a careless rule author gets -----


@pytest.fixture
def table() -> Iterator[None]:
    """The table of operations, put back afterwards."""
    mg.special  # all plugins are loaded
    before = dict(registry.OPS)
    yield
    registry.restore(before)


def test_a_name_that_is_taken_names_both_modules(table: None) -> None:
    with pytest.raises(
        RegistrationError,
        match=rf"'special.erf' is declared by {__name__} but was already declared by "
        "multigrad_special.operations.declare. Choose another name, or pass override=True",
    ):
        registry.elementwise("special.erf(x, /)", x=1)


def test_override_replaces_value_and_rule(xp: Any, backend: str, table: None) -> None:
    x = xp.asarray([0.5, 1.0], requires_grad=True)
    mg.special.erf(x)  # what was made of the old one must go
    registry.elementwise(
        "special.erf(x, /)",
        x=lambda xp, x: 3 * xp.ones_like(x),
        forward={"*": lambda xp, x: 3 * x},
        override=True,
    )
    for function in (mg.special.erf, mg.namespace(backend).special.erf):
        y = function(x)
        np.testing.assert_array_equal(values(y), [1.5, 3.0])
        np.testing.assert_array_equal(values(mg.autograd.grad(xp.sum(y), x)[0]), [3.0, 3.0])


def test_a_forward_that_is_not_there_is_named(table: None) -> None:
    registry.elementwise("special.mine(x, /)", x=1, forward={"numpy": "scipy.special:nothing"})
    with pytest.raises(
        BackendError,
        match=r"cannot load 'scipy.special:nothing': module 'scipy.special' has no attribute "
        r"'nothing'",
    ):
        mg.special.mine(np.asarray([0.5]))


@pytest.mark.parametrize("name", words.AS_PYTORCH)
def test_derivatives_that_a_docstring_calls_those_of_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    points = np.asarray([-np.inf, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, np.inf])
    x = mg.asarray(points, requires_grad=True)
    theirs = torch.tensor(points, requires_grad=True)
    with np.errstate(all="ignore"):
        getattr(mg.special, name)(x).sum().backward()
    getattr(torch.special, name)(theirs).sum().backward()
    np.testing.assert_allclose(x.grad.array, theirs.grad.numpy(), rtol=1e-12)
