"""Refusals that need a value: an error where the value is known, nan where it is not."""

from __future__ import annotations

import numpy as np
import pytest

import multigrad as mg
from multigrad.errors import GradientError


def test_passes_values_and_gradients(xp):
    x = xp.asarray([1.0, 2.0], requires_grad=True)
    y = xp.refuse(x, xp.asarray([False, False]), "no")
    (g,) = mg.autograd.grad((y * y).sum(), x, create_graph=True)
    assert g.tolist() == [2.0, 4.0]
    assert mg.autograd.grad(g.sum(), x)[0].tolist() == [2.0, 2.0]


def test_raises_the_message(xp):
    x = xp.asarray([1.0, 2.0], requires_grad=True)
    with pytest.raises(GradientError, match="^this loss has no gradient$"):
        xp.refuse(x, xp.asarray([False, True]), "this loss has no gradient")


def test_unknown_values_give_nan():
    jax = pytest.importorskip("jax")
    xp = mg.namespace("jax")

    @jax.jit
    def f(x, bad):
        return xp.refuse(x, bad, "no").array

    assert np.array_equal(
        f(jax.numpy.asarray([1.0, 2.0]), jax.numpy.asarray([False, True])),
        [1.0, np.nan],
        equal_nan=True,
    )
