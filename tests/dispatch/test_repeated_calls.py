"""Repeated calls of an operation: dtypes, refusals and replaced declarations are those of the first
call.
"""

from __future__ import annotations

import numpy as np
import pytest
from leaves import check, leaf

import multigrad as mg
from multigrad import registry


def test_operand_of_a_dtype_outside_the_standard():
    x = leaf(mg.namespace("numpy"), [1.0, 2.0])
    with pytest.raises(TypeError, match="object"):
        x * np.array([1, 2], dtype=object)


def test_scalar_to_the_power_of_a_0d_tensor(xp):
    for base in (2, 2.5):
        for _ in range(3):
            x = leaf(xp, 1.5, np.float32)
            y = base**x
            assert y.dtype == x.dtype
            y.backward()
            check(x.grad, base**1.5 * np.log(base), rtol=1e-6)


def test_rule_that_widens_on_every_call():
    registry.elementwise(
        "repeated.widen(x, /)",
        forward=lambda xp, x: x * x,
        x=lambda xp, x: 2 * x * xp.sqrt(xp.asarray(1.0)),
    )
    try:
        for _ in range(3):
            x = leaf(mg.namespace("numpy"), [1.0, 2.0], np.float32)
            mg.sum(mg.repeated.widen(x)).backward()
            assert x.grad.dtype == x.dtype and x.grad.array.dtype == np.float32
    finally:
        del registry.OPS["repeated.widen"]


def test_byte_swapped_leaf_keeps_its_dtype():
    x = mg.asarray(np.array([1.0, 2.0], dtype=">f8"), requires_grad=True)
    for _ in range(3):
        mg.sum(x * x * 3).backward()
    check(x.grad, [18, 36])
    assert x.grad.dtype == x.dtype


def test_where_of_another_backend():
    jnp = pytest.importorskip("jax.numpy")
    x = leaf(mg.namespace("numpy"), [1.0, 2.0])
    for _ in range(3):
        mg.where(mg.asarray(np.array([True, False])), x, 0.0)
    with pytest.raises(TypeError, match="two backends"):
        mg.where(mg.asarray(jnp.asarray([True, False])), x, 0.0)
