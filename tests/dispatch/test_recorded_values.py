"""An operation gives the same values whether it is recorded or not, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from numpy_samples import flat, operation_on

import multigrad as mg
from multigrad.registry import OPS
from multigrad_conformance.samples import samples_of

mg.zeros(1)
NAMES = sorted(
    name
    for name in OPS
    if OPS[name].kind != "nondifferentiable"
    and samples_of(name)
    and name != "to_backend"  # it takes Tensors alone
)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("narrow", [False, True], ids=["double", "single"])
@pytest.mark.parametrize("name", NAMES)
def test_recorded_values_are_those_of_constants(name: str, narrow: bool) -> None:
    compared = 0
    for sample in samples_of(name):
        function, arrays = operation_on(name, sample, narrow)
        if not sample.values or not any(x.dtype.kind in "fc" for x in arrays):
            continue
        try:
            expected = flat(function(*(x.copy(order="K") for x in arrays)))
        except Exception:  # the operation refuses this dtype
            continue
        tensors = [
            mg.asarray(x.copy(order="K"), requires_grad=x.dtype.kind in "fc") for x in arrays
        ]
        try:
            result = function(*tensors)
        except mg.errors.MissingRuleError:  # the derivative of this call is refused
            continue
        got = flat(result)
        assert len(got) == len(expected)
        for x, y in zip(got, expected, strict=True):
            assert x.dtype == y.dtype, (x, y)
            np.testing.assert_array_equal(x, y)
        compared += 1
    assert compared, "no sample of the operation was compared"
