"""autograd.grad, on each backend and in PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
from function_programs import leaf, same

UNUSED = (
    "The differentiated Tensor at index {} appears to not have been used in the graph. Set "
    "allow_unused=True if this is the desired behavior."
)


@pytest.fixture
def x(side):
    return leaf(side, 1.0, 2.0)


@pytest.fixture
def w(side):
    return leaf(side, 3.0, 4.0)


def test_arguments_by_name_and_by_position(side, x):  # F030
    one = side.tensor([1.0, 10.0])
    (g,) = side.autograd.grad(
        outputs=[x**3],
        inputs=[x],
        grad_outputs=[one],
        retain_graph=None,
        create_graph=False,
        only_inputs=True,
        allow_unused=None,
        is_grads_batched=False,
        materialize_grads=False,
    )
    same(side, g, [3, 120])
    (g,) = side.autograd.grad([x**3], [x], [one], None, True, True, False)
    assert g.requires_grad
    same(side, g, [3, 120])


def test_inputs_in_a_dictionary(side, x, w):  # F030
    found = side.autograd.grad(side.xp.sum(x * w), {"w": w, "x": x})
    assert list(found) == ["w", "x"]
    same(side, found["w"], [1, 2])
    same(side, found["x"], [3, 4])


def test_a_tuple_and_nothing_else_changes(side, x, w):  # F031
    y = x * w
    found = side.autograd.grad([side.xp.sum(y), side.xp.sum(x * x)], (x, w))
    assert type(found) is tuple and len(found) == 2
    same(side, found[0], [3 + 2, 4 + 4])
    same(side, found[1], [1, 2])
    assert x.grad is None and w.grad is None
    (g,) = side.autograd.grad(side.xp.sum(x * x), x)
    same(side, g, [2, 4])


def test_grad_outputs(side, x):  # F032
    grad, one = side.autograd.grad, side.tensor([1.0, 10.0])
    total = lambda: side.xp.sum(x * x)
    same(side, grad([total(), x * 3], x, [None, one])[0], [5, 34])
    same(side, grad(x * 3, x, one)[0], [3, 30])
    same(side, grad([total(), total()], x)[0], [4, 8])
    with pytest.raises(
        RuntimeError, match="grad can be implicitly created only for scalar outputs"
    ):
        grad([total(), x * 3], x, [None, None])
    with pytest.raises(RuntimeError, match="got 2 tensors and 1 gradients"):
        grad([total(), x * 3], x, [None])
    for given in (None, [None, None], [None, side.tensor([1.0, 1.0])]):
        with pytest.raises(
            RuntimeError,
            match="element 1 of tensors does not require grad and does not have a grad_fn",
        ):
            grad([total(), side.tensor([1.0, 1.0])], x, given)


def test_only_inputs_is_deprecated(side, x, w):
    # F033: PyTorch ignores it; here the other leaves accumulate, as the documents say
    with pytest.warns(FutureWarning, match="only_inputs argument is deprecated"):
        (g,) = side.autograd.grad(side.xp.sum(x * w), x, only_inputs=False)
    same(side, g, [3, 4])
    assert x.grad is None
    if side.name == "torch":
        assert w.grad is None
    else:
        same(side, w.grad, [1, 2])


def test_other_leaves_are_not_even_computed(side, x, w):  # F034
    seen = []
    y = w * 2
    y.register_hook(seen.append)
    side.autograd.grad(side.xp.sum(x * y), x, only_inputs=True)
    assert seen == [] and w.grad is None and x.grad is None


def test_an_unused_input_is_an_error(side, x, w):  # F035
    for allowed in (None, False):
        with pytest.raises(RuntimeError, match=UNUSED.format(1)):
            side.autograd.grad(side.xp.sum(x * 2), (x, w), allow_unused=allowed)
    with pytest.raises(RuntimeError, match=UNUSED.format(0)):
        side.autograd.grad(side.xp.sum(x), x[0])  # a view made afterwards is not what was summed
    with pytest.raises(
        RuntimeError, match="One of the differentiated Tensors does not require grad"
    ):
        side.autograd.grad(side.xp.sum(x), side.tensor([1.0]))


def test_an_unused_input_may_be_allowed(side, x, w):  # F036
    g, none = side.autograd.grad(side.xp.sum(x * 2), (x, w), allow_unused=True)
    same(side, g, [2, 2])
    assert none is None


def test_an_unused_input_may_get_zeros(side, x, w):  # F030
    for create in (False, True):
        _, zeros = side.autograd.grad(
            side.xp.sum(x * 2), (x, w), materialize_grads=True, create_graph=create
        )
        same(side, zeros, [0, 0])
        assert zeros.requires_grad is create
    with pytest.raises(
        ValueError,
        match="Expected allow_unused to be True or not passed when materialize_grads=True",
    ):
        side.autograd.grad(side.xp.sum(x), x, allow_unused=False, materialize_grads=True)


def test_the_graph_is_freed_retained_or_recorded(side, x):  # F037
    grad = side.autograd.grad
    y = side.xp.sum(x**4)
    grad(y, x, retain_graph=True)
    grad(y, x)
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        grad(y, x)
    y = side.xp.sum(x**4)
    for expected in ([4, 32], [12, 48], [24, 48], [24, 24]):  # create_graph retains
        (g,) = grad(y, x, create_graph=True)
        same(side, g, expected)
        y = side.xp.sum(g)
    (g,) = grad(side.xp.sum(3 * x), x, create_graph=True)
    assert not g.requires_grad  # of a linear function


def test_intermediate_results_as_inputs(side, x):  # F038
    seen = []
    y = x * 3
    x.register_hook(seen.append)
    z = side.xp.sum(y * y)
    (gy,) = side.autograd.grad(z, y, retain_graph=True)
    same(side, gy, [6, 12])
    assert seen == []  # it goes no further
    gy, gx = side.autograd.grad(z, (y, x))
    same(side, gy, [6, 12])
    same(side, gx, [18, 36])
    (same_one,) = side.autograd.grad(y, y, side.tensor([1.0, 1.0]))
    same(side, same_one, [1, 1])


@pytest.mark.parametrize("shape", [(3,), (1,), (), (2, 1), (1, 2)])
def test_shapes_must_be_equal(side, x, shape):  # F039
    given = side.xp.ones(shape, dtype=x.dtype)
    with pytest.raises(
        RuntimeError,
        match=r"Mismatch in shape: grad_output\[0\] has a shape of .* and output\[0\] has a "
        r"shape of .*2",
    ):
        side.autograd.grad(x * 2, x, given)


def test_other_real_dtypes_are_cast(side, x):  # F032
    for dtype in ("float32", "int64", "bool"):
        (g,) = side.autograd.grad(x * 3, x, side.tensor([1, 0], dtype=dtype))
        assert g.dtype == x.dtype
        same(side, g, [3, 0])
    with pytest.raises(
        RuntimeError,
        match="For complex Tensors, both grad_output and output are required to have the same "
        "dtype",
    ):
        side.autograd.grad(x * 3, x, side.tensor([1, 0], dtype="complex128"))


def test_an_output_twice_and_one_that_feeds_another(side, x):  # F031
    y = x * x
    one = side.tensor([1.0, 1.0])
    (g,) = side.autograd.grad([y, y], x, [one, side.tensor([10.0, 10.0])], retain_graph=True)
    same(side, g, [22, 44])
    (g,) = side.autograd.grad([y, side.xp.sum(y * 3)], x, [one, None])
    same(side, g, np.array([2, 4]) * 4)
    a, b = side.autograd.grad(side.xp.sum(x * x), [x, x])
    same(side, a, [2, 4])
    same(side, b, [2, 4])
