"""What test_variable.py leaves of Variable, on each backend and in PyTorch."""

from __future__ import annotations

import pytest
from function_programs import leaf, same


def test_data_of_a_variable_is_that_of_its_array(side):  # F102
    t = side.tensor([1.0, 2.0])
    v = side.autograd.Variable(t, requires_grad=True)
    same(side, v.data, [1, 2])
    assert (
        not v.data.requires_grad and v.data.shape == t.data.shape and v.data.dtype == t.data.dtype
    )
    w = side.autograd.Variable(side.tensor([1, 2], dtype="int64"))
    assert w.data.dtype == w.dtype


def test_methods_have_the_same_names(side):  # F103
    v = side.autograd.Variable(side.tensor([1.0, 2.0]), requires_grad=True)
    seen = []
    v.register_hook(lambda g: seen.append(side.values(g).tolist()))
    side.xp.sum(v * v).backward()
    assert seen == [[2.0, 4.0]] and not v.detach().requires_grad
    same(side, v.grad, [2, 4])


def test_requires_grad_spreads_to_results(side):  # F105
    v, c = (
        side.autograd.Variable(side.tensor([1.0]), requires_grad=True),
        side.autograd.Variable(side.tensor([2.0])),
    )
    assert (v + c).requires_grad and (c * (v + c)).requires_grad and not (c + c).requires_grad
    y = v + c
    assert y.requires_grad_() is y and y.requires_grad  # which changes nothing
    with pytest.raises(
        RuntimeError, match="you can only change requires_grad flags of leaf variables"
    ):
        y.requires_grad = False
    c.requires_grad = True
    v.requires_grad = False
    assert (c + c).requires_grad and not (v + v).requires_grad


def test_a_variable_stands_where_an_array_stood(side):  # F108
    def program(a, b):
        c = side.xp.exp(a) * b + side.xp.sum(a)
        c[0] = 5.0
        return side.xp.reshape(c @ b, (1,))

    plain = [side.tensor([0.5, 1.0]), side.tensor([2.0, 3.0])]
    wrapped = [side.autograd.Variable(t, requires_grad=True) for t in plain]
    same(side, program(*wrapped), side.values(program(*plain)))
    program(*wrapped).backward()
    assert all(v.grad is not None for v in wrapped)


def test_sizes_of_gradients(side):  # F110, F104
    v = side.autograd.Variable(side.tensor([[1.0], [2.0]]), requires_grad=True)
    w = side.autograd.Variable(side.tensor([1.0, 2.0, 3.0]), requires_grad=True)
    y = v * w
    side.xp.sum(y).backward()
    for t in (v, w):
        assert (
            t.grad.shape == t.data.shape
            and t.grad.dtype == t.data.dtype
            and t.grad.device == t.data.device
        )
    same(side, v.grad, [[6], [6]])
    same(side, w.grad, [3, 3, 3])
    with pytest.warns(UserWarning, match="is not a leaf Tensor"):
        assert y.grad is None


def test_backward_of_a_variable(side):
    # F109: the gradient becomes a constant unless a graph is made
    v, g = side.autograd.Variable(side.tensor([3.0]), requires_grad=True), leaf(side, 1.0)
    y = v * v
    y.backward(g, retain_graph=True)
    assert not v.grad.requires_grad
    (found,) = side.autograd.grad(y, v, g, create_graph=True)
    same(side, side.autograd.grad(found, g)[0], [6])
