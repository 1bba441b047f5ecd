"""Gradients have one owner: no array is shared between two leaves, a leaf and a retained gradient,
or a leaf and a hook.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from leaves import check, leaf, vector

from multigrad import autograd


class TestGradientsHaveOneOwner:
    def test_create_graph_does_not_share_between_leaves(self, xp):
        x, w = leaf(xp, [1.0, 2.0]), leaf(xp, [1.0, 2.0])
        given = xp.asarray(np.ones(2))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            (x + w).backward(given, create_graph=True)
        xp.sum(x * 2).backward()
        check(x.grad, [3, 3])
        check(w.grad, [1, 1])
        check(given, [1, 1])

    def test_create_graph_of_a_sum_can_be_accumulated_into(self, xp):
        x = leaf(xp, [1.0, 2.0])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            xp.sum(x).backward(create_graph=True)
        xp.sum(x * 2).backward()
        check(x.grad, [3, 3])
        x.grad.zero_()
        check(x.grad, [0, 0])

    def test_create_graph_retained_gradient_is_not_the_leafs(self, xp):
        x = leaf(xp, [1.0, 2.0])
        y = x + 0
        y.retain_grad()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            y.backward(xp.asarray(np.ones(2)), create_graph=True)
        xp.sum(x * 2).backward()
        check(x.grad, [3, 3])
        check(y.grad, [1, 1])

    def test_gradients_of_scalars_can_be_changed(self, xp):
        x = leaf(xp, 2.0)
        (g,) = autograd.grad(x + 1, x)
        g *= 0.5
        check(g, 0.5)
        check(autograd.grad(x + 2, x)[0], 1)

    def test_hooks_that_keep_or_replace(self, xp):
        kept = []
        buffer = xp.asarray(np.ones(4))
        x, w = leaf(xp, [1.0, 2.0]), leaf(xp, [1.0, 2.0])
        x.register_hook(kept.append)
        w.register_hook(lambda g: buffer[:2])
        for _ in range(2):
            (x + w).backward(xp.asarray(np.ones(2)))
        x.grad += 5
        check(kept[0], [1, 1])
        check(w.grad, [2, 2])
        check(buffer, np.ones(4))


@pytest.mark.filterwarnings("ignore:Using backward")
def test_a_recorded_pass_adds_to_the_gradient_by_a_new_tensor() -> None:
    x = vector([1.0, 2.0])
    (x * x).sum().backward()
    before = x.grad
    (x**3).sum().backward(create_graph=True)
    assert x.grad is not None and x.grad is not before and x.grad.requires_grad
    np.testing.assert_allclose(x.grad.detach().array, [5.0, 16.0])
    x.grad = None  # the graph of the gradient holds it: a cycle
