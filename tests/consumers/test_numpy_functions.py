"""What converts a Tensor to a NumPy array takes constants, and refuses what requires grad. (What
has a counterpart: tests/protocols/test_protocols.py; what has none: the table of NumPy's calls.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from consumer_checks import drawn

import multigrad as mg
from multigrad.errors import GradientError

CONVERTING: dict[str, Callable[[Any], Any]] = {
    "asarray of a list": lambda t: np.asarray([t, t]),
    "asarray of numbers": lambda t: np.asarray([t[0], t[1]]),
    "array of objects": lambda t: np.array(t, dtype=object),
    "full": lambda t: np.full(3, t[0]),
    "masked": np.ma.asarray,
    "writing": lambda t: np.zeros(6).__setitem__(slice(None), t),
}
NUMBERS: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "math": math.sqrt,
    "float64": np.float64,
    "writing a number": lambda t: np.zeros(3).__setitem__(0, t),
}


@pytest.mark.parametrize("backend", ["numpy", "jax"], indirect=True)
@pytest.mark.parametrize("name", CONVERTING)
def test_conversion_raises_where_a_gradient_would_be_lost(name: str, backend: str) -> None:
    t = mg.asarray(drawn(6), backend=backend)
    np.testing.assert_array_equal(CONVERTING[name](t), CONVERTING[name](drawn(6)))
    with pytest.raises(
        GradientError,
        match=r"Can't call numpy\(\) on Tensor that requires grad. Use "
        r"tensor.detach\(\).numpy\(\) instead",
    ):
        CONVERTING[name](t.requires_grad_())


@pytest.mark.parametrize("requires_grad", [False, True])
def test_what_takes_no_tensor_at_all(requires_grad: bool) -> None:
    with pytest.raises(TypeError, match="bytes-like"):
        np.frombuffer(mg.asarray(drawn(6), requires_grad=requires_grad))


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_leave_with_a_warning(name: str) -> None:
    t = mg.asarray(drawn(6), requires_grad=True)[0]
    with pytest.warns(
        UserWarning,
        match="Converting a tensor with requires_grad=True to a scalar by float.. drops its "
        "gradient",
    ):
        NUMBERS[name](t)


def test_export_through_dlpack() -> None:
    t = mg.asarray(drawn(6))
    np.testing.assert_array_equal(np.from_dlpack(t), drawn(6))
    with pytest.raises(BufferError, match="Can't export tensors that require gradient"):
        np.from_dlpack(t.requires_grad_())
