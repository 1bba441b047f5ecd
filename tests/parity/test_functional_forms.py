"""What test_functional.py leaves of autograd.functional, on each backend and in
PyTorch.
"""

from __future__ import annotations

import numpy as np
import pytest
from function_programs import leaf, make, same

import multigrad as mg


def test_each_block_has_the_dtype_of_its_input(side):  # F044, F053
    a, b = side.tensor([1.0, 2.0], dtype="float32"), side.tensor([3.0, 4.0])
    rows = side.autograd.functional.jacobian(lambda a, b: a * b, (a, b))
    assert [block.dtype for block in rows] == [a.dtype, b.dtype]
    same(side, rows[0], np.diag([3.0, 4.0]))
    blocks = side.autograd.functional.hessian(lambda a, b: side.xp.sum(a * a * b), (a, b))
    assert [[block.dtype for block in row] for row in blocks] == [
        [a.dtype, b.dtype]
    ] * 2 or side.name == "torch"
    same(side, blocks[0][0], np.diag([6.0, 8.0]))
    same(side, blocks[0][1], np.diag([2.0, 4.0]))


def test_each_block_is_on_the_device_of_its_input():  # F044
    strict = pytest.importorskip("array_api_strict")
    device = strict.Device("device1")
    a = mg.asarray(strict.asarray([1.0, 2.0], device=device))
    assert mg.autograd.functional.jacobian(lambda v: v * v, a).device == device
    assert mg.autograd.functional.hessian(lambda v: mg.sum(v**3), a).device == device


def test_without_strict_a_result_may_be_disconnected(side):  # F046
    f, x = side.autograd.functional, leaf(side, 1.0, 2.0)
    linear = f.jacobian(lambda a: a * 3, x, create_graph=True)
    assert not linear.requires_grad
    same(side, linear, 3 * np.eye(2))
    w = leaf(side, 5.0)
    bilinear = f.jacobian(lambda a: a * w, x, create_graph=True)
    assert bilinear.requires_grad  # because of w; of x it is independent
    assert side.autograd.grad(side.xp.sum(bilinear), x, allow_unused=True) == (None,)
    for block in f.hessian(lambda a, b: side.xp.sum(a * a), (x, w), create_graph=True)[1]:
        assert not np.any(side.values(block))


def test_exp_adder(side):  # F051, F043
    a, b = side.tensor([0.25, 0.5]), side.tensor([1.0, 2.0])
    exp_adder = lambda a, b: 2 * side.xp.exp(a) + 3 * b
    first, second = side.autograd.functional.jacobian(exp_adder, (a, b))
    same(side, first, np.diag(2 * np.exp([0.25, 0.5])))
    same(side, second, 3 * np.eye(2))


def test_jvp_needs_no_rule_but_backward(side):
    # F059: it differentiates the gradient by the cotangent
    passes = []

    def backward(ctx, g):
        passes.append(g.requires_grad)
        return g * side.xp.exp(ctx.saved_tensors[0])

    F = make(side, lambda ctx, x: (ctx.save_for_backward(x), side.xp.exp(x))[1], backward)
    out, pushed = side.autograd.functional.jvp(
        F.apply, side.tensor([0.5, 1.0]), side.tensor([1.0, 10.0])
    )
    same(side, out, np.exp([0.5, 1.0]))
    same(side, pushed, np.exp([0.5, 1.0]) * [1, 10])
    assert passes == [True]
