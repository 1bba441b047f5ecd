"""When hooks run, what they are given, and what they may return: the same program on every backend
and in PyTorch.
"""

from __future__ import annotations

import numpy as np
import pytest
from function_programs import enabled


@pytest.fixture
def leaf(side):
    return lambda *data: side.tensor(list(data), requires_grad=True)


def number(t):
    return (
        None if t is None else float(t.detach().reshape((-1,))[0] if hasattr(t, "reshape") else t)
    )


def numbers(ts):
    return tuple(number(t) for t in ts)


def named(log, name):
    def hook(*args):
        log.append(name)

    return hook


def hooked(log, /, **leaves):
    for name, t in leaves.items():
        t.register_hook(named(log, name))
        t.register_post_accumulate_grad_hook(named(log, name + " accumulated"))


def test_order_at_one_array(side, leaf):
    x = leaf(1.0)
    y = x * 2
    log = []
    y.retain_grad()  # first registered, last to run
    y.grad_fn.register_hook(
        lambda inputs, outputs: log.append(("post", numbers(inputs), numbers(outputs)))
    )
    y.grad_fn.register_prehook(lambda outputs: log.append(("pre", numbers(outputs))))
    y.register_hook(lambda g: log.append(("a", number(g))) or g * 10)
    y.register_hook(lambda g: log.append(("b", number(g))) or g + 1)
    side.xp.sum(y).backward()
    assert log == [("a", 1.0), ("b", 10.0), ("pre", (11.0,)), ("post", (22.0, None), (11.0,))]
    assert number(y.grad) == 11.0 and number(x.grad) == 22.0


def test_order_at_a_leaf(side, leaf):
    x = leaf(1.0)
    y = x * 2
    log = []
    node = y.grad_fn.next_functions[0][0]
    x.register_post_accumulate_grad_hook(
        lambda t: log.append(("accumulated", t is x, number(t.grad)))
    )
    node.register_hook(lambda inputs, outputs: log.append(("post", inputs, numbers(outputs))))
    node.register_prehook(lambda outputs: log.append(("pre", numbers(outputs))))
    x.register_hook(lambda g: log.append(("hook", number(g))))
    y.backward()
    assert log == [("hook", 2.0), ("pre", (2.0,)), ("accumulated", True, 2.0), ("post", (), (2.0,))]
    log.clear()
    side.autograd.grad(x * 2, x)
    assert log == [("hook", 2.0)]  # nothing is accumulated, so the node does not run


def test_a_leaf_runs_as_soon_as_its_gradient_is_complete(side, leaf):
    x, y, z = leaf(1.0), leaf(2.0), leaf(3.0)
    log = []
    a = x * y
    b = a * z
    c = b * y
    for name, t in {"x": x, "y": y, "z": z, "a": a, "b": b}.items():
        t.register_hook(named(log, name))
    for name, t in {"x": x, "y": y, "z": z}.items():
        t.register_post_accumulate_grad_hook(named(log, name + " accumulated"))
    c.backward()
    assert log == ["b", "z", "z accumulated", "a", "x", "x accumulated", "y", "y accumulated"]


def test_the_leaves_of_one_node_run_in_the_order_of_its_operands(side, leaf):
    x, y = leaf(1.0), leaf(2.0)
    log = []
    hooked(log, y=y, x=x)
    (x * y).backward()
    assert log == ["x", "x accumulated", "y", "y accumulated"]


def test_nodes_run_youngest_first(side, leaf):
    a, b = leaf(1.0), leaf(1.0)
    log = []
    p = a * 2
    q = p * 4
    r = b * 3
    s = r * 5
    t = q + s
    for name, node in {"p": p, "q": q, "r": r, "s": s, "t": t}.items():
        node.register_hook(named(log, name))
    t.backward()
    assert log == ["t", "s", "r", "q", "p"]


def test_each_fires_once_with_the_sum(side, leaf):
    x = leaf(1.0)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(number(g)))
    x.register_hook(lambda g: seen.append(number(g)))
    side.xp.sum(y * 3 + y * 4 + y).backward()
    assert seen == [8.0, 16.0]


def test_outputs_that_were_not_used_get_none(side, leaf):
    x = leaf(1.0, 2.0, 3.0)
    a, b, c = side.xp.unstack(x)
    log = []
    for i, t in enumerate((a, b, c)):
        t.register_hook(lambda g, i=i: log.append((i, number(g))))
    a.retain_grad()
    b.grad_fn.register_prehook(lambda outputs: log.append(numbers(outputs)))
    (b * 2 + c).backward()
    assert log == [(0, None), (1, 2.0), (2, 1.0), (None, 2.0, 1.0)]
    assert a.grad is None
    np.testing.assert_allclose(side.values(x.grad), [0, 2, 1])


def test_the_hook_of_an_output_that_is_gone(side, leaf):
    a, b = side.xp.unstack(leaf(1.0, 2.0))
    log = []
    a.register_hook(log.append)
    del a
    b.backward()
    assert log == [None]


def test_asking_for_one_output_runs_the_hooks_of_all(side, leaf):
    a, b, c = side.xp.unstack(leaf(1.0, 2.0, 3.0))
    log = []
    for i, t in enumerate((a, b, c)):
        t.register_hook(lambda g, i=i: log.append((i, number(g))))
    b.register_hook(lambda g: g * 10)
    (g,) = side.autograd.grad(b * 2 + c, b)
    assert number(g) == 20.0
    assert log == [(0, None), (1, 2.0), (2, 1.0)]


def test_none_cannot_be_replaced(side, leaf):
    a, b = side.xp.unstack(leaf(1.0, 2.0))
    a.register_hook(lambda g: side.tensor(1.0))
    with pytest.raises(RuntimeError, match="can't replace a None gradient with a non-None value"):
        b.backward()


POSTHOOKS = [
    (lambda g: (g[0] * 3, None), 6.0, None),
    (lambda g: g, 2.0, None),
    (lambda g: None, 2.0, None),
    (lambda g: (None, None), None, None),
    (lambda g: (g[0], g[0]), RuntimeError, "can't replace a None gradient with a non-None value"),
    (
        lambda g: (g[0],),
        RuntimeError,
        r"hook '<lambda>' has returned an incorrect number of values \(got 1, but expected 2\)",
    ),
    (lambda g: g[0], TypeError, "expected tuple, but hook returned 'Tensor'"),
    (lambda g: [g[0], None], TypeError, "expected tuple, but hook returned 'list'"),
    (lambda g: (3.0, None), TypeError, "expected Variable, but hook returned 'float'"),
]


@pytest.mark.parametrize(("hook", "expected", "message"), POSTHOOKS, ids=range(len(POSTHOOKS)))
def test_what_posthooks_return(side, leaf, hook, expected, message):
    x = leaf(1.0)
    y = x * 2
    y.grad_fn.register_hook(lambda inputs, outputs: hook(inputs))
    if message is None:
        y.backward()
        assert number(x.grad) == expected
    else:
        with pytest.raises(expected, match=message):
            y.backward()


PREHOOKS = [
    (lambda g: (g[0] * 3,), 6.0, None),
    (lambda g: g, 2.0, None),
    (lambda g: (None,), None, None),
    (
        lambda g: (g[0], g[0]),
        RuntimeError,
        r"has returned an incorrect number of values \(got 2, but expected 1\)",
    ),
    (lambda g: g[0], TypeError, "expected tuple, but hook returned 'Tensor'"),
    (lambda g: 3, TypeError, "expected tuple, but hook returned 'int'"),
    (lambda g: (3.0,), TypeError, "expected Variable, but hook returned 'float'"),
]


@pytest.mark.parametrize(("hook", "expected", "message"), PREHOOKS, ids=range(len(PREHOOKS)))
def test_what_prehooks_return(side, leaf, hook, expected, message):
    x = leaf(1.0)
    y = x * 2
    y.grad_fn.register_prehook(hook)
    if message is None:
        y.backward()
        assert number(x.grad) == expected
    else:
        with pytest.raises(expected, match=message):
            y.backward()


def test_grad_mode_and_create_graph(side, leaf):
    x = leaf(3.0)
    log = []
    y = x * x
    y.grad_fn.register_hook(
        lambda inputs, outputs: log.append(enabled(side)) or tuple(g * x for g in inputs)
    )
    (g,) = side.autograd.grad(side.xp.sum(y), x, create_graph=True)  # 2x * x
    assert number(g) == 18.0
    # what the hook did was recorded
    (h,) = side.autograd.grad(side.xp.sum(g), x, retain_graph=True)
    assert number(h) == 12.0
    side.xp.sum(y).backward()
    assert log == [True, False]


def test_only_asked_for_inputs_accumulate_with_their_hooks(side, leaf):
    x, w = leaf(1.0), leaf(2.0)
    log = []
    hooked(log, x=x, w=w)
    side.xp.sum(x * w).backward(inputs=[x])
    assert log == ["x", "x accumulated"]
    assert w.grad is None and number(x.grad) == 2.0


def test_handles(side, leaf):
    x = leaf(1.0)
    y = x * 2
    log = []
    handle = y.grad_fn.register_hook(named(log, "post"))
    with y.grad_fn.register_prehook(named(log, "pre")):
        y.backward(retain_graph=True)
    handle.remove()
    handle.remove()
    y.backward()
    assert log == ["pre", "post"]
