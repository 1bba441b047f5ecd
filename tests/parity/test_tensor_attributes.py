"""Attributes and methods of arrays that have to do with gradients, on each backend and
in PyTorch.
"""

from __future__ import annotations

import numpy as np
import pytest
from function_programs import leaf, same

import multigrad as mg


@pytest.fixture
def x(side):
    return leaf(side, 1.0, 2.0)


def name_of(node):
    """SinBackward0 of PyTorch is SinBackward here; the names of the standard differ in some."""
    return node.name().rpartition(":")[2].rstrip("0")


def test_grad(side, x):  # F120
    assert x.grad is None
    side.xp.sum(x * x).backward()
    g = x.grad
    assert (
        isinstance(g, side.Tensor)
        and g.shape == x.shape
        and g.dtype == x.dtype
        and not g.requires_grad
    )
    same(side, g, [2, 4])
    side.xp.sum(x * x).backward()
    assert x.grad is g
    same(side, g, [4, 8])


def test_assigning_grad(side, x):  # F120, F104
    x.grad = side.tensor([1.0, 2.0])
    side.xp.sum(x).backward()
    same(side, x.grad, [2, 3])
    for wrong, kind, message in (
        (
            side.tensor([1.0, 2.0, 3.0]),
            RuntimeError,
            r"attempting to assign a gradient of size '\[3\]' to a tensor of size '\[2\]'",
        ),
        (
            side.tensor([1.0, 2.0], dtype="float32"),
            RuntimeError,
            "attempting to assign a gradient with dtype",
        ),
        (
            [1.0, 2.0],
            TypeError,
            "assigned grad expected to be a Tensor or None but got grad of type list",
        ),
        (x, RuntimeError, "can't assign Variable as its own grad"),
    ):
        with pytest.raises(kind, match=message):
            x.grad = wrong
    del x.grad
    assert x.grad is None


def test_a_leaf_made_of_a_tensor_that_requires_grad(side, x):
    for data in (x, x * 2):
        with pytest.warns(
            UserWarning, match="To copy construct from a tensor, it is recommended to use .*detach"
        ):
            copied = side.tensor(data)
        assert copied.is_leaf and not copied.requires_grad
        same(side, copied, side.values(data.detach()))


def test_requires_grad_does_not_mean_grad(side, x):  # F121
    y = x * 2
    assert y.requires_grad and not side.tensor([1.0]).requires_grad
    side.xp.sum(y).backward()
    with pytest.warns(
        UserWarning,
        match="The .grad attribute of a Tensor that is not a leaf Tensor is being accessed",
    ):
        assert y.grad is None


def test_requires_grad_is_assignable(side, x):  # F122, F105
    assert (2 * x).grad_fn is not None
    x.requires_grad = False
    assert (2 * x).grad_fn is None and not (2 * x).requires_grad
    x.requires_grad = True
    y = 2 * x
    if side.name != "torch":  # which takes requires_grad_() only
        y.requires_grad = True
    assert y.requires_grad_() is y and y.grad_fn is not None
    message = (
        "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a subgraph that doesn't "
        r"require differentiation use var_no_grad = var.detach\(\)."
    )
    with pytest.raises(RuntimeError, match=message):
        y.requires_grad = False
    with pytest.raises(RuntimeError, match="requires_grad must be a bool"):
        x.requires_grad = 1


def test_requires_grad_in_place(side):  # F123
    t = side.tensor([1.0, 2.0])
    assert t.requires_grad_() is t and t.requires_grad
    assert t.requires_grad_(False) is t and not t.requires_grad
    assert t.requires_grad_(requires_grad=True).requires_grad
    version = t._version
    side.xp.sum(t * t).backward()
    same(side, t.grad, [2, 4])
    assert t._version == version == 0


def test_constants_are_leaves(side):  # F124
    t = side.tensor([1.0, 2.0])
    for constant in (
        t,
        t + 1,
        side.xp.sin(t * t),
        leaf(side, 1.0).detach(),
        side.tensor([1], dtype="int64"),
    ):
        assert constant.is_leaf and not constant.requires_grad and constant.grad_fn is None


def test_what_the_user_made_is_a_leaf(side, x):  # F125
    assert x.is_leaf and x.grad_fn is None and x.requires_grad
    assert not (x + 0).is_leaf and not x[0].is_leaf
    with pytest.raises(AttributeError):
        x.is_leaf = False


def test_table_of_leaves(side):  # F126: with a dtype in place of a device
    xp = side.xp
    cast = lambda t: xp.astype(t, xp.float32)
    rows = [
        (leaf(side, 1.0), True),
        (cast(leaf(side, 1.0)), False),
        (leaf(side, 1.0) + 2, False),
        (cast(side.tensor([1.0])), True),
        (cast(side.tensor([1.0])).requires_grad_(), True),
        (side.tensor([1.0], dtype="float32", requires_grad=True), True),
    ]
    assert [t.is_leaf for t, _ in rows] == [expected for _, expected in rows]


def test_a_move_to_another_device_is_no_leaf():  # F126
    strict = pytest.importorskip("array_api_strict")
    device = strict.Device("device1")
    x = mg.asarray(strict.asarray([1.0]), requires_grad=True)
    moved, plain = x.to_device(device), mg.asarray(strict.asarray([1.0])).to_device(device)
    assert not moved.is_leaf and plain.is_leaf and plain.requires_grad_().is_leaf
    mg.sum(moved * 2).backward()
    assert x.grad.tolist() == [2.0] and x.grad.device == x.device


def test_only_leaves_get_a_gradient(side, x):  # F127, F110
    w = leaf(side, 3.0, 4.0)
    y = x * w
    z = side.xp.sum(y)
    z.backward()
    same(side, x.grad, [3, 4])
    same(side, w.grad, [1, 2])
    for t in (y, z):
        with pytest.warns(UserWarning, match="is not a leaf Tensor is being accessed"):
            assert t.grad is None


def test_grad_fn(side, x):  # F128, F107
    y = side.xp.sin(x)
    assert x.grad_fn is None and name_of(y.grad_fn) == "SinBackward"
    assert y.grad_fn is y.grad_fn
    assert name_of((y + 1).grad_fn) == "AddBackward"
    with pytest.raises(AttributeError):
        y.grad_fn = None
    a, b = side.xp.unstack(x)
    assert a.grad_fn is b.grad_fn and (a.output_nr, b.output_nr) == (0, 1)


def test_backward_as_a_method(side, x):  # F129, F131, F109
    assert side.xp.sum(x * x).backward() is None
    y = x * x
    y.backward(side.tensor([1.0, 10.0]), True, False, [x])
    y.backward(gradient=side.tensor([1.0, 1.0]), retain_graph=None, create_graph=False, inputs=None)
    same(side, x.grad, [2 + 2 + 2, 4 + 40 + 4])
    side.xp.sum(x).backward(None)
    same(side, x.grad, [7, 49])
    with pytest.raises(
        RuntimeError, match="element 0 of tensors does not require grad and does not have a grad_fn"
    ):
        side.tensor([1.0]).backward()


def test_the_gradient_is_cast_and_is_a_constant(side, x):  # F130
    for dtype in ("float32", "int64", "bool"):
        x.grad = None
        (x * 3).backward(side.tensor([1, 0], dtype=dtype))
        assert x.grad.dtype == x.dtype
        same(side, x.grad, [3, 0])
    x.grad = None
    v = leaf(side, 1.0, 10.0)
    (x * x).backward(v)
    assert not x.grad.requires_grad
    (g,) = side.autograd.grad(x * x, x, v, create_graph=True)
    assert g.requires_grad
    same(side, side.autograd.grad(side.xp.sum(g), v)[0], [2, 4])
    with pytest.raises(
        RuntimeError,
        match="For complex Tensors, both grad_output and output are required to have the same "
        "dtype",
    ):
        (x * 3).backward(side.tensor([1, 0], dtype="complex128"))


def test_detach(side, x):  # F133, F265
    y = x * 2
    d = y.detach()
    assert d is not y and not d.requires_grad and d.is_leaf and d.grad_fn is None
    same(side, d, [2, 4])
    d += 1
    same(side, y, [3, 5])
    assert d._version == y._version == 1
    y *= 2
    same(side, d, [6, 10])
    assert y.requires_grad and "requires_grad" not in repr(d)


def test_detach_in_place(side, x):  # F134
    y = x * 2
    z = side.xp.sum(y * 3)
    assert y.detach_() is y and y.is_leaf and not y.requires_grad and y.grad_fn is None
    z.backward()  # which had recorded it before
    same(side, x.grad, [6, 6])
    assert not (y * 2).requires_grad and y.requires_grad_().is_leaf


def test_views_are_not_detached_in_place(side, x):  # F135
    y = x * 2
    for view in (y[1:], x[1:], side.xp.reshape(y, (2, 1))):
        with pytest.raises(
            RuntimeError, match=r"Can't detach views in-place. Use detach\(\) instead"
        ):
            view.detach_()
        assert view.requires_grad


def test_register_hook(side, x):  # F136
    y, seen = x * 2, []
    x.register_hook(lambda g: seen.append(("x", side.values(g).tolist())))
    y.register_hook(lambda g: seen.append(("y", side.values(g).tolist())))
    side.xp.sum(y * 3 + y).backward()
    assert seen == [("y", [4, 4]), ("x", [8, 8])]
    seen.clear()
    side.autograd.grad(side.xp.sum(x * 5), x)
    assert seen == [("x", [5, 5])]
    with pytest.raises(
        RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"
    ):
        side.tensor([1.0]).register_hook(print)


def test_what_a_hook_returns_replaces_the_gradient(side, x):  # F137
    y = x * 2
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: None)
    z = side.xp.sum(y)
    z.backward()
    same(side, x.grad, [20, 20])
    for returned, kind, message in (
        (1.0, TypeError, "expected Variable, but hook returned 'float'"),
        (side.tensor([1.0, 1.0, 1.0]), RuntimeError, "hook 'wrong' has changed the size of value"),
        (
            side.tensor([1.0, 1.0], dtype="float32"),
            RuntimeError,
            "hook 'wrong' has changed the type of value",
        ),
    ):

        def wrong(g, returned=returned):
            return returned

        with x.register_hook(wrong), pytest.raises(kind, match=message):
            side.xp.sum(x * 2).backward()


def test_handles(side, x):  # F138
    seen = []
    handle = x.register_hook(lambda g: seen.append(1))
    side.xp.sum(x * 2).backward()
    handle.remove()
    handle.remove()
    side.xp.sum(x * 2).backward()
    assert seen == [1]
    with x.register_hook(lambda g: seen.append(2)) as entered:
        side.xp.sum(x * 2).backward()
    side.xp.sum(x * 2).backward()
    assert seen == [1, 2] and hasattr(entered, "remove")


def test_the_documents_hook(side):  # F139
    for given, expected in (([1.0, 2.0, 3.0], [2, 4, 6]), ([1.0, 1.0, 1.0], [2, 2, 2])):
        v = leaf(side, 0.0, 0.0, 0.0)
        handle = v.register_hook(lambda g: g * 2)
        v.backward(side.tensor(given))
        same(side, v.grad, expected)
        handle.remove()


def test_retain_grad(side, x):  # F140
    y = x * 2
    assert not y.retains_grad
    y.retain_grad()
    assert y.retains_grad
    y.register_hook(lambda g: g * 10)
    side.xp.sum(y * y).backward()
    same(side, y.grad, [40, 80])  # what the hooks made of it
    same(side, x.grad, [80, 160])
    x.retain_grad()
    assert not x.retains_grad
    with pytest.raises(
        RuntimeError, match="can't retain_grad on Tensor that has requires_grad=False"
    ):
        side.tensor([1.0]).retain_grad()


def test_post_accumulate_hooks(side, x):
    seen = []
    x.register_post_accumulate_grad_hook(
        lambda t: seen.append((t is x, side.values(t.grad).tolist()))
    )
    side.xp.sum(x * 2 + x).backward()
    side.xp.sum(x).backward()
    assert seen == [(True, [3, 3]), (True, [4, 4])]
    with pytest.raises(
        RuntimeError, match="post accumulate grad hooks cannot be registered on non-leaf tensors"
    ):
        (x * 2).register_post_accumulate_grad_hook(print)


def test_data(side, x):  # F141, F102
    y = x * 2
    while float(side.xp.linalg.vector_norm(y.data)) < 1000:
        y = y * 2
    assert not y.data.requires_grad and y.data.grad_fn is None
    y.backward(side.tensor([0.1, 1.0]))
    same(side, x.grad, [51.2, 512])
    x.data -= 1
    same(side, x, [0, 1])
    assert x._version == 0 and x.is_leaf  # nobody counts such writes


def test_printing_shows_history(side, x):  # F142
    assert "requires_grad=True" in repr(x) and "grad_fn" not in repr(x)
    for t in (side.xp.sin(x), x * 2):
        assert f"grad_fn=<{name_of(t.grad_fn)}" in repr(t) and "requires_grad" not in repr(t)
    for t in (x.detach(), side.tensor([1.0])):
        assert "grad" not in repr(t)


def test_no_silent_way_to_numpy(side, x):  # F143
    message = (
        r"Can't call numpy\(\) on Tensor that requires grad. Use "
        r"tensor.detach\(\).numpy\(\) instead."
    )
    for convert in (np.asarray, lambda t: t.numpy()):
        for t in (x, x * 2):
            with pytest.raises(RuntimeError, match=message):
                convert(t)
    assert np.asarray(x.detach()).tolist() == x.detach().numpy().tolist() == [1, 2]
    with pytest.raises(
        BufferError, match="Can't export tensors that require gradient, use tensor.detach"
    ):
        x.__dlpack__()
