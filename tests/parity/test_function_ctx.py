"""The ctx of autograd.Function: what it saves, mark_dirty, once_differentiable, hooks.

See test_function.py.
"""

from __future__ import annotations

import sys

import numpy as np
import pytest
from function_programs import enabled, exp_function, leaf, make, same, square_function

# What is saved


def test_saved_tensors(side):  # F157, F159, F160, F162
    x = leaf(side, 1.0, 2.0)

    def forward(ctx, a):
        ctx.save_for_backward(a)
        middle, y = a * 3, a * 4
        ctx.save_for_backward(None, a, middle, y)  # the last call counts
        return y

    y = make(side, forward).apply(x)
    none, a, middle, out = y.grad_fn.saved_tensors
    assert none is None and a is x and not middle.requires_grad
    assert out.grad_fn is y.grad_fn and out.output_nr == 0
    same(side, middle, [3, 6])
    side.xp.sum(y).backward(retain_graph=True)
    assert len(y.grad_fn.saved_tensors) == 4
    with pytest.warns(
        DeprecationWarning, match="'saved_variables' is deprecated; use 'saved_tensors'"
    ):
        assert len(y.grad_fn.saved_variables) == 4
    side.xp.sum(y).backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.grad_fn.saved_tensors
    side.xp.sum(y).backward()  # its backward asks for none
    F = square_function(side)
    y = side.xp.sum(F.apply(x))
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


def test_saved_tensors_are_checked_when_they_are_used(side):  # F161
    F = square_function(side)
    hint = (
        r"modified by an inplace operation: .*\[2\]\], which is output 0 of Mul.*is at "
        r"version 1; expected version 0 instead. Hint: "
    )
    x = leaf(side, 1.0, 2.0)
    b = x * 1
    y = F.apply(b)
    b *= 2
    with pytest.raises(RuntimeError, match=hint):
        side.xp.sum(y).backward()
    with pytest.raises(RuntimeError, match=hint):
        y.grad_fn.saved_tensors
    y = F.apply(x)
    with side.no_grad():
        x *= 2
    with pytest.raises(RuntimeError, match=r"\[2\]\] is at version 1; expected version 0 instead"):
        side.xp.sum(y).backward()
    y = exp_function(side).apply(x)
    y += 1
    with pytest.raises(
        RuntimeError, match="which is output 0 of MyF, is at version 1; expected version 0"
    ):
        side.xp.sum(y).backward()

    def forward(ctx, a):
        ctx.save_for_backward(a)
        return a * 2

    b = x * 1
    y = make(side, forward).apply(b)
    b *= 2
    side.xp.sum(y).backward()  # saved, spoiled, never asked for
    same(side, x.grad, [1, 1])


def test_access_that_frees(side):
    F = square_function(side)
    F.clear_saved_tensors_on_access = True
    y = F.apply(leaf(side, 3.0))
    assert len(y.grad_fn.saved_tensors) == 1
    with pytest.raises(
        RuntimeError,
        match="saved_tensors can only be accessed once when clear_saved_tensors_on_access=True",
    ):
        y.grad_fn.saved_tensors


def test_boxed_gradients(side):
    seen = []

    def backward(ctx, grads):
        seen.append(grads)
        return grads[0]

    x = leaf(side, 3.0)
    side.xp.sum(
        make(side, lambda ctx, a: (a * 2, a * 3), backward, boxed_grads_call=True).apply(x)[0]
    ).backward()
    assert type(seen[0]) is list and len(seen[0]) == 2
    same(side, x.grad, [1])


# In place


def doubling(side):
    def forward(ctx, a):
        a *= 2
        ctx.mark_dirty(a)
        return a

    return make(side, forward, lambda ctx, g: g * 2)


def test_mark_dirty(side):  # F163
    F = doubling(side)
    x = leaf(side, 1.0, 2.0)
    b = x * 3
    before = b * b
    b.retain_grad()
    y = F.apply(b)
    assert y is b and b._version == 2 and type(b.grad_fn).__name__ == "MyFBackward"
    same(side, b, [6, 12])
    side.xp.sum(b * b).backward()
    same(side, b.grad, [12, 24])
    same(side, x.grad, [72, 144])
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        side.xp.sum(before).backward()
    c = side.tensor([1.0])
    assert F.apply(c) is c and not c.requires_grad and c._version == 2


def test_mark_dirty_saved_and_with_constants(side):  # F163
    def forward(ctx, a, b):
        ctx.mark_dirty(a)  # before it happens
        ctx.save_for_backward(a)
        a *= 0
        a += b
        return a

    F = make(side, forward, lambda ctx, g: (None, g * ctx.saved_tensors[0]))
    x = leaf(side, 5.0)
    c = side.tensor([1.0])
    y = F.apply(c, x)
    assert y is c and c.requires_grad and c.grad_fn.saved_tensors[0].grad_fn is c.grad_fn
    side.xp.sum(y).backward()
    same(side, x.grad, [5])


def test_mark_dirty_errors(side):  # F163
    F = doubling(side)
    x = leaf(side, 1.0, 2.0)
    with pytest.raises(
        RuntimeError,
        match="a leaf Variable that requires grad has been used in an in-place operation",
    ):
        F.apply(x)
    with side.no_grad():
        assert not F.apply(x).requires_grad and x.requires_grad
        same(side, x, [4, 8])

    def unreturned(ctx, a):
        ctx.mark_dirty(a)
        return a * 1

    for a in (x * 1, side.tensor([1.0])):
        with pytest.raises(
            RuntimeError,
            match="Some elements marked as dirty during the forward method were not returned as "
            "output",
        ):
            make(side, unreturned).apply(a)

    def other(ctx, a):
        b = a * 2
        ctx.mark_dirty(b)
        return b

    with pytest.warns(UserWarning, match="received a tensor that was not an input") as caught:
        assert make(side, other).apply(x * 1).requires_grad
    assert side.name == "torch" or caught[0].filename == __file__

    def two(ctx, a):
        a *= 2
        ctx.mark_dirty(a)
        return a, a * 3

    a, b = make(side, two, lambda ctx, g, h: g + h).apply(x * 1)
    assert a.grad_fn is b.grad_fn and (a.output_nr, b.output_nr) == (0, 1)


def test_an_input_returned_as_it_is(side):
    F = make(side, lambda ctx, a: a, lambda ctx, g: g * 10)
    x = leaf(side, 1.0, 2.0)
    y = F.apply(x)
    assert y is not x and not y.is_leaf and x.is_leaf and type(y.grad_fn).__name__ == "MyFBackward"
    side.xp.sum(y).backward()
    same(side, x.grad, [10, 10])
    b = x * 1
    for view in (F.apply(b), make(side, lambda ctx, a: a[:1], lambda ctx, g: g).apply(b)):
        # of a custom Function: an in-place operation would bypass its backward
        with pytest.raises(RuntimeError, match=r"view"):
            view *= 2
    c = side.tensor([1.0])
    assert F.apply(c) is not c and not F.apply(c).requires_grad
    with side.no_grad():
        assert F.apply(x) is not x and not F.apply(x).requires_grad and x.requires_grad
    marked = make(side, lambda ctx, a: (ctx.mark_non_differentiable(a), a)[1]).apply(x)
    assert not marked.requires_grad and x.requires_grad


def test_one_output_twice(side):
    x = leaf(side, 1.0)
    a, b = make(side, lambda ctx, a: (lambda r: (r, r))(a * 2), lambda ctx, g, h: g + h * 10).apply(
        x
    )
    assert a is b
    side.xp.sum(a * 3 + b).backward()
    same(side, x.grad, [40])


def test_history_made_inside_forward_is_not_kept(side):
    def forward(ctx, a):
        with side.autograd.enable_grad():
            return a * a

    y = make(side, forward, lambda ctx, g: g * 100).apply(leaf(side, 3.0))
    assert type(y.grad_fn).__name__ == "MyFBackward"


# Differentiating once and twice


def test_once_differentiable(side):
    once = sys.modules[side.autograd.Function.__module__].once_differentiable
    modes = []

    @once
    def backward(ctx, g):
        modes.append(enabled(side))
        (x,) = ctx.saved_tensors
        return g * x * 2

    x, v = leaf(side, 3.0), leaf(side, 1.0)
    y = make(side, square_function(side).forward, backward).apply(x)
    (g,) = side.autograd.grad(y, x, v, create_graph=True)
    same(side, g, [6])
    assert g.grad_fn.name().rpartition(":")[2] == "Error" and modes == [False] and enabled(side)
    with pytest.raises(
        RuntimeError,
        match="trying to differentiate twice a function that was marked with @once_differentiable",
    ):
        g.backward()
    (g,) = side.autograd.grad(y, x, side.tensor([1.0]), create_graph=True)
    assert not g.requires_grad
    y.backward(side.tensor([1.0]))
    same(side, x.grad, [6])


def test_double_backward_through_what_is_saved(side):  # F170
    def forward(ctx, a, b):
        y = a * side.xp.exp(b)
        ctx.save_for_backward(a, b, y)
        return y

    def backward(ctx, g):
        _, b, y = ctx.saved_tensors
        return g * side.xp.exp(b), g * y

    a, b = leaf(side, 2.0), leaf(side, 0.5)
    y = make(side, forward, backward).apply(a, b)
    ga, gb = side.autograd.grad(y, (a, b), side.tensor([1.0]), create_graph=True)
    e = float(np.exp(0.5))
    haa, hab = side.autograd.grad(
        ga, (a, b), side.tensor([1.0]), allow_unused=True, retain_graph=True
    )
    assert haa is None
    same(side, hab, [e])
    hba, hbb = side.autograd.grad(gb, (a, b), side.tensor([1.0]))  # through the saved output
    same(side, hba, [e])
    same(side, hbb, [2 * e])


def test_a_backward_inside_backward(side):
    def backward(ctx, g):
        with side.autograd.enable_grad():
            t = leaf(side, 2.0)
            side.xp.sum(t * t * t).backward()
        return g * t.grad

    x = leaf(side, 1.0)
    side.xp.sum(make(side, lambda ctx, a: a * 2, backward).apply(x)).backward()
    same(side, x.grad, [12])


def test_hooks_of_the_node(side):
    x, seen = leaf(side, 1.0), []

    def number(t):
        return None if t is None else side.values(t).item()

    a, b = make(
        side, lambda ctx, a, n, c: (a * 2, a * n), lambda ctx, g, h: (g * 2 + h, None, None)
    ).apply(x, 3, side.tensor([1.0]))
    a.register_hook(lambda g: None if g is None else g * 10)
    pre = a.grad_fn.register_prehook(lambda g: seen.append([number(t) for t in g]))
    a.grad_fn.register_hook(
        lambda grad_in, grad_out: seen.append(
            (number(grad_in[0]), len(grad_in), *(number(t) for t in grad_out))
        )
    )
    a.backward(side.tensor([1.0]), retain_graph=True)
    assert seen == [[10.0, None], (20.0, 2, 10.0, None)]
    pre.remove()
    b.backward(side.tensor([1.0]))
    assert seen[2:] == [(1.0, 2, None, 1.0)]
    same(side, x.grad, [21])


# With the rest of autograd.graph


def test_edges_and_instance_of_node(side):
    graph = side.autograd.graph
    x = leaf(side, 1.0, 2.0)
    a, b = make(side, lambda ctx, x: (x * 2, x * 3), lambda ctx, g, h: g * 2 + h * 3).apply(x)
    e = graph.get_gradient_edge(b)
    assert e.node is b.grad_fn and e.output_nr == 1 and isinstance(b.grad_fn, graph.Node)
    same(side, side.autograd.grad(side.xp.sum(a + b * 3), e, retain_graph=True)[0], [3, 3])
    del a, b
    same(side, side.autograd.grad(e, x, grad_outputs=side.tensor([1.0, 10.0]))[0], [3, 30])


def test_hooks_for_saved_tensors(side):
    seen = []

    def pack(t):
        seen.append((t.grad_fn is not None, t.requires_grad))
        return t.detach() * 10

    x = leaf(side, 1.0, 2.0)
    F = exp_function(side)
    with side.autograd.graph.saved_tensors_hooks(pack, lambda t: t / 10):
        y = F.apply(x)
    assert seen == [(True, True)]
    same(side, side.autograd.grad(side.xp.sum(y), x)[0], np.exp([1.0, 2.0]))
    y = F.apply(x)
    (saved,) = y.grad_fn._raw_saved_tensors
    saved.register_hooks(pack, lambda t: t / 10)
    with pytest.raises(RuntimeError, match="whose hooks have already been set"):
        saved.register_hooks(pack, lambda t: t)
    (g,) = side.autograd.grad(side.xp.sum(y), x, create_graph=True)
    same(side, side.autograd.grad(side.xp.sum(g), x)[0], np.exp([1.0, 2.0]))
    with pytest.raises(RuntimeError, match="second time"):
        y.grad_fn._raw_saved_tensors
    y = F.apply(x)
    (saved,) = y.grad_fn._raw_saved_tensors
    side.xp.sum(y).backward()
    if side.name == "torch":  # PyTorch takes hooks in vain here, and crashes below
        return
    with pytest.raises(RuntimeError, match="after it has been freed"):
        saved.register_hooks(pack, lambda t: t)
    (saved,) = (
        make(side, lambda ctx, x: (ctx.save_for_backward(None), x * 2)[1])
        .apply(x)
        .grad_fn._raw_saved_tensors
    )
    with pytest.raises(RuntimeError, match="None is forbidden"):
        saved.register_hooks(pack, lambda t: t)
