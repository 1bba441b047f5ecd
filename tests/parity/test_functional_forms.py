"""What test_functional.py leaves of autograd.functional, on each backend and in
PyTorch.
"""

from __future__ import annotations

import numpy as np
import pytest
from function_programs import leaf, make, same

import multigrad as mg


def exp_adder(side):
    return lambda a, b: 2 * side.xp.exp(a) + 3 * b


def test_other_arguments_are_captured(side):  # F040
    def f(x, scale, *, shift):
        return x * scale + shift

    x = side.tensor([1.0, 2.0])
    found = side.autograd.functional.jacobian(lambda a: f(a, 5.0, shift="no array" and 1.0), x)
    same(side, found, 5 * np.eye(2))
    with pytest.raises(TypeError, match="but the value at index 1 has type <class 'float'>"):
        side.autograd.functional.jacobian(f, (x, 5.0))


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
    first, second = side.autograd.functional.jacobian(exp_adder(side), (a, b))
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


def test_for_smooth_functions_hvp_is_vhp(side):  # F064, F274
    f, xp = side.autograd.functional, side.xp
    loss = lambda a: xp.sum(a * a * xp.exp(a[0]))
    x, v = side.tensor([0.5, 1.0, 1.5]), side.tensor([1.0, 10.0, 100.0])
    hessian = side.values(f.hessian(loss, x))
    np.testing.assert_allclose(hessian, hessian.T, rtol=1e-12)
    for product in (f.vhp, f.hvp):
        same(side, product(loss, x, v)[1], hessian @ [1, 10, 100])


@pytest.mark.parametrize("name", ["vjp", "jvp", "vhp", "hvp"])
def test_with_create_graph_both_results_have_a_history(side, name):  # F066
    x, v = leaf(side, 1.0, 2.0), side.tensor([1.0, 1.0])
    func = (lambda a: a**3) if name in ("vjp", "jvp") else (lambda a: side.xp.sum(a**3))
    product = getattr(side.autograd.functional, name)
    for t in product(func, x, v, create_graph=True):
        assert t.grad_fn is not None and "grad_fn=<" in repr(t)
    for t in product(func, x, v):
        assert not t.requires_grad


@pytest.mark.parametrize("name", ["vjp", "jvp", "vhp", "hvp"])
def test_results_mirror_their_counterparts(side, name):  # F067
    x, y = side.tensor([1.0, 2.0]), side.tensor([3.0])
    scalar = name in ("vhp", "hvp")
    func = (lambda a, b: side.xp.sum(a * a * b)) if scalar else (lambda a, b: (a * a, b * b))
    out, found = getattr(side.autograd.functional, name)(func, (x, y), (x, y))
    assert isinstance(found, tuple) and [t.shape for t in found] == [x.shape, y.shape]
    assert isinstance(out, tuple) is not scalar
    for wrong in (
        (func, [x, y], (x, y)),
        (func, (x, y), [x, y]),
        (lambda a, b: [a], (x, y), (x, y)),
    ):
        with pytest.raises(
            TypeError,
            match="must be either a Tensor or a tuple of Tensors but the given .* has type "
            "<class 'list'>",
        ):
            getattr(side.autograd.functional, name)(*wrong)
