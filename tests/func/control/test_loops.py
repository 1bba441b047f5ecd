"""func.scan, fori_loop, while_loop: against loops written out and jax.lax, on every backend."""

from __future__ import annotations

import gc
import itertools
import math
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from function_programs import Square
from loop_programs import near, unrolled

import multigrad as mg
from multigrad import func
from multigrad.errors import BatchingError, GradientError
from multigrad.extend import raw_namespace
from multigrad.func import tree
from multigrad.func.control import checkpoints, replaying

CHECKPOINTS = ("step", 2, 3, 50, None, "binomial")
rng = np.random.default_rng(0)
W, XS, H0 = rng.normal(size=(3, 3)) * 0.5, rng.normal(size=(7, 3)), rng.normal(size=3)


def body_of(w: Any) -> Callable[[Any, Any], tuple[Any, Any]]:
    def body(h: Any, x: Any) -> tuple[Any, Any]:
        h = mg.tanh(mg.matmul(w, h) + x)
        return h, {"norm": mg.sum(h * h), "first": h[:1] * x[0]}

    return body


def loss_of(run: Any, **options: Any) -> Callable[..., Any]:
    def loss(w: Any, h: Any, xs: Any) -> Any:
        h, ys = run(body_of(w), h, xs, **options)
        return mg.sum(h**3) + mg.sum(mg.sin(ys["norm"])) + mg.sum(ys["first"] ** 2)

    return loss


def on(backend: str, *arrays: Any) -> tuple[Any, ...]:
    xp = raw_namespace(backend)
    return tuple(xp.asarray(x) for x in arrays)


# Values and derivatives


@pytest.mark.parametrize("reverse", [False, True])
def test_values_on_every_backend(backend: str, reverse: bool) -> None:
    w, xs, h = on(backend, W, XS, H0)
    found = func.scan(body_of(w), h, xs, reverse=reverse)
    assert type(found[0]) is type(h) and type(found[1]["norm"]) is type(h)
    near(found, unrolled(body_of(W), H0, XS, reverse=reverse))
    assert isinstance(func.scan(body_of(w), mg.asarray(h), xs)[0], mg.Tensor)


@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
@pytest.mark.parametrize("reverse", [False, True])
def test_derivatives_with_each_checkpoint(checkpoint: Any, reverse: bool) -> None:
    loss = loss_of(func.scan, reverse=reverse, checkpoint=checkpoint)
    expected = loss_of(unrolled, reverse=reverse)
    args, v = (W, H0, XS), (W * 0.3, H0 * 2.0, XS[::-1].copy())
    near(func.grad(loss, (0, 1, 2))(*args), func.grad(expected, (0, 1, 2))(*args))
    near(func.hvp(loss, args, v), func.hvp(expected, args, v))
    near(func.jvp(loss, args, v), func.jvp(expected, args, v))

    def twice(f: Any) -> Any:
        def along(*args: Any) -> Any:
            return sum(
                mg.sum(g * t) for g, t in zip(func.grad(f, (0, 1, 2))(*args), v, strict=True)
            )

        return func.grad(along, (0, 1, 2))(*args)

    near(twice(loss), twice(expected))


@pytest.mark.parametrize("steps", [7, 60])
def test_every_pair_of_transformations(steps: int) -> None:
    """Sixty steps are run by a program."""
    xs = np.random.default_rng(1).normal(size=(steps, 3))
    turns: dict[str, Callable[[Any], Any]] = {
        "grad": lambda f: lambda h: func.grad(lambda h: mg.sum(f(h) ** 2))(h),
        "jvp": lambda f: lambda h: func.jvp(f, (h,), (mg.cos(h),))[1],
        "vmap": lambda f: lambda h: mg.sum(func.vmap(f)(mg.stack([h, 2.0 * h, -h])), axis=0),
        "vmap_w": lambda f: (
            lambda h: mg.sum(func.vmap(lambda s: f(h * s))(np.array([1.0, 0.5])), axis=0)
        ),
        "jacrev": lambda f: lambda h: mg.sum(func.jacrev(f)(h), axis=0),
        "jacfwd": lambda f: lambda h: mg.sum(func.jacfwd(f)(h), axis=1),
    }

    def inner(run: Any) -> Any:
        def f(h: Any) -> Any:
            last, ys = run(body_of(W), h, xs)
            return last * mg.sum(ys["norm"])

        return f

    for first, second in itertools.product(turns.values(), turns.values()):
        found, expected = (first(second(inner(run)))(H0) for run in (func.scan, unrolled))
        near(found, expected, 1e-8)


def test_against_lax() -> None:
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    w, h, xs = (jnp.asarray(x) for x in (W, H0, XS))

    def theirs(w: Any, h: Any, xs: Any, reverse: bool) -> Any:
        def body(h: Any, x: Any) -> Any:
            h = jnp.tanh(w @ h + x)
            return h, {"norm": jnp.sum(h * h), "first": h[:1] * x[0]}

        h, ys = jax.lax.scan(body, h, xs, reverse=reverse)
        return jnp.sum(h**3) + jnp.sum(jnp.sin(ys["norm"])) + jnp.sum(ys["first"] ** 2)

    for reverse in (False, True):
        ours = jax.jit(func.value_and_grad(loss_of(func.scan, reverse=reverse), (0, 1, 2)))
        expected = jax.jit(jax.value_and_grad(lambda *p, r=reverse: theirs(*p, r), (0, 1, 2)))
        near(ours(w, h, xs), expected(w, h, xs))
    loss, expected = lambda w: loss_of(func.scan)(w, h, xs), lambda w: theirs(w, h, xs, False)
    near(jax.jit(jax.grad(lambda w: loss(w).array))(w), jax.jit(jax.grad(expected))(w))
    near(
        jax.jit(lambda w: func.hvp(loss, (w,), (2.0 * w,))[1][0])(w),
        jax.jit(lambda w: jax.jvp(jax.grad(expected), (w,), (2.0 * w,))[1])(w),
    )


@pytest.mark.parametrize(
    "checkpoint",
    ["step", 5, *(pytest.param(c, marks=pytest.mark.slow) for c in (3, 50, None, "binomial"))],
)
def test_under_jit_it_is_one_loop_of_lax(checkpoint: Any) -> None:
    jax = pytest.importorskip("jax")
    args = tuple(jax.numpy.asarray(x) for x in (W, H0, np.tile(XS, (2, 1))))
    gradient = func.grad(loss_of(func.scan, checkpoint=checkpoint), (0, 1, 2))
    near(
        jax.jit(gradient)(*args),
        func.grad(loss_of(unrolled), (0, 1, 2))(W, H0, np.tile(XS, (2, 1))),
    )
    if checkpoint in ("step", None):
        assert str(jax.make_jaxpr(gradient)(*args)).count("scan[") <= 3
    vmapped = jax.jit(
        func.vmap(
            func.grad(lambda h, w: loss_of(func.scan, checkpoint=checkpoint)(w, h, args[2])),
            in_axes=(0, None),
        )
    )
    near(
        vmapped(jax.numpy.asarray(np.stack([H0, -H0])), args[0]),
        np.stack(
            [
                func.grad(lambda h: loss_of(unrolled)(W, h, np.tile(XS, (2, 1))))(h)
                for h in (H0, -H0)
            ]
        ),
    )


# On the tape


def test_one_node_whose_recording_does_not_grow() -> None:
    w = mg.asarray(W, requires_grad=True)
    h, ys = func.scan(body_of(w), H0, XS)
    assert (
        h.grad_fn is ys["norm"].grad_fn
        and h.grad_fn.name() == "scanBackward"
        and h.grad_fn.next_functions[0][0].name() == "AccumulateGrad"
    )
    mg.sum(h**3).backward()
    near(w.grad, func.grad(lambda w: mg.sum(unrolled(body_of(w), H0, XS)[0] ** 3))(W))
    counted = {n: _nodes(func.scan(body_of(w), H0, np.ones((n, 3)))[0].grad_fn) for n in (2, 200)}
    assert counted[2] == counted[200] == 2


def _nodes(node: Any) -> int:
    seen, todo = set(), [node]
    while todo:
        node = todo.pop()
        if node is not None and node not in seen:
            seen.add(node)
            todo += [parent for parent, _ in node.next_functions]
    return len(seen)


def test_create_graph_and_retain_graph() -> None:
    w = mg.asarray(W, requires_grad=True)
    loss = loss_of(func.scan)(w, H0, XS)
    (g,) = mg.autograd.grad(loss, w, create_graph=True)
    (second,) = mg.autograd.grad(mg.sum(g**2), w, retain_graph=True)
    near(
        second,
        func.grad(lambda w: mg.sum(func.grad(lambda w: loss_of(unrolled)(w, H0, XS))(w) ** 2))(W),
    )
    mg.autograd.grad(loss, w)
    with pytest.raises(GradientError, match="second time|freed"):
        mg.autograd.grad(loss, w)


def test_captured_arrays_at_each_level() -> None:
    """A body captures arrays of the base level, of two running transformations, views and what is
    computed of them, in functions and objects.
    """
    base = mg.asarray(W, requires_grad=True)

    class Cell:
        def __init__(self, w: Any) -> None:
            self.w = w

        def __call__(self, h: Any) -> Any:
            return self.w.T @ h

    def f(run: Any) -> Any:
        def outer(a: Any) -> Any:
            def inner(b: Any) -> Any:
                cell, view = Cell(base), a[1:]

                def body(h: Any, x: Any) -> Any:
                    # of captured arrays alone
                    bias = mg.concat([view, a[:1]]) * b.detach() + b * mg.sum(a * b)
                    return mg.tanh(cell(h) + x + bias), mg.sum(a)

                h, ys = run(body, H0, XS)
                return mg.sum(h**2) + mg.sum(ys)

            return mg.sum(func.grad(inner)(2.0 * a) * a)

        value = func.grad(outer)(H0)
        return value, mg.autograd.grad(mg.sum(value), base)

    near(f(func.scan), f(unrolled))


def test_a_scan_in_a_scan_and_in_a_loop() -> None:
    def f(run: Any) -> Any:
        def loss(w: Any) -> Any:
            def outer(h: Any, x: Any) -> Any:
                h, ys = run(lambda h, t: (mg.tanh(w @ h + t * x + h), mg.sum(h * w)), h, XS[:, 0])
                return h, mg.sum(ys)

            h, ys = run(outer, H0, XS)
            return mg.sum(h**2) + mg.sum(ys)

        return func.value_and_grad(loss)(W), func.hvp(loss, (W,), (W,))

    near(f(func.scan), f(unrolled), 1e-9)


def test_functions_of_the_users_own_and_transformations_in_a_body() -> None:
    @func.custom_vjp
    def doubled(x: Any, w: Any) -> Any:
        return x * w

    doubled.defvjp(
        lambda x, w: (x * w, (x, w)), lambda kept, g: (3.0 * g * kept[1], mg.sum(g * kept[0]))
    )

    def f(run: Any) -> Any:
        def loss(s: Any) -> Any:
            def body(h: Any, x: Any) -> Any:
                slope = func.grad(lambda h: mg.sum(mg.sin(h * s)))(h)
                rows = func.vmap(lambda a: a * s)(h)
                return mg.tanh(doubled(h, s) + Square.apply(s * x)) + 0.1 * slope, mg.sum(
                    rows
                ) + func.checkpoint(lambda h: mg.sum(mg.exp(s * h)))(h)

            h, ys = run(body, H0, XS)
            return mg.sum(h) + mg.sum(ys)

        return func.value_and_grad(loss)(np.array(0.7))

    near(f(func.scan), f(unrolled))


def test_what_does_not_depend_has_no_gradient_that_is_nan() -> None:
    """The time of a loop, whose square root has an infinite slope at 0, is no part of the
    derivative.
    """

    def f(run: Any, mode: Any) -> Any:
        def loss(w: Any) -> Any:
            (_, h), _ = run(
                lambda c, x: ((c[0] + 0.5, c[1] * w + mg.sqrt(c[0])), None),
                (np.array(0.0), np.array(1.0)),
                np.zeros(5),
            )
            return h

        return mode(loss)(np.array(0.5))

    for mode in (func.grad, lambda g: lambda w: func.jvp(g, (w,), (w,)), func.hessian):
        near(f(func.scan, mode), f(unrolled, mode))


def test_a_tree_of_carries() -> None:
    """Of a matrix, no elements, none at all, float32 and integers."""
    parts = W, np.zeros((0, 2)), np.ones(2, np.float32)
    xs = (XS, [np.arange(len(XS))])

    def body(c: Any, x: Any) -> Any:
        scale = mg.mean(x[0]) * mg.astype(x[1][0], mg.float64)
        moved = [mg.astype(mg.sin(v * scale) + 0.5 * v, v.dtype) for v in (*c["a"], c["b"][1]["c"])]
        new = {"a": tuple(moved[:2]), "b": [None, {"c": moved[2]}], "n": c["n"] + x[1][0]}
        return new, {"s": mg.sum(moved[0]), "l": (new["n"], moved[2])}

    def run(loop: Any, parts: Any) -> Any:
        start = {"a": parts[:2], "b": [None, {"c": parts[2]}], "n": np.arange(2)}
        return loop(body, start, xs)

    def loss(loop: Any, parts: Any) -> Any:
        return sum(mg.sum(x * 1.0) for x in tree.leaves(run(loop, parts)))

    near(run(func.scan, parts), run(unrolled, parts), 1e-5)
    near(
        func.grad(lambda p: loss(func.scan, p))(parts),
        func.grad(lambda p: loss(unrolled, p))(parts),
        1e-5,
    )


# Carries of many kinds


def test_numbers_and_lengths(backend: str) -> None:
    xp = raw_namespace(backend)
    total, ys = func.scan(lambda c, x: (c + x, c), 0, xp.asarray([1.0, 2.0, 3.0]))
    assert float(total) == 6.0 and ys.dtype == total.dtype and ys.shape == (3,)
    last, none = func.scan(lambda c, x: (c * 2, None), xp.asarray(1.0), length=5)
    assert float(last) == 32.0 and none is None
    assert func.scan(lambda c, x: (c + 1, c), 0, None, length=3)[1].shape == (3,)
    carry, ys = func.scan(lambda c, x: (c * x, (c, {"a": x[:1]})), xp.ones((2,)), xp.ones((0, 2)))
    assert carry.shape == (2,) and ys[0].shape == (0, 2) and ys[1]["a"].shape == (0, 1)
    g = func.grad(
        lambda c: mg.sum(func.scan(lambda c, x: (c * x, c), c, xp.ones((0, 2)))[0] * 3.0)
    )(xp.ones((2,)))
    assert [float(v) for v in (g[0], g[1])] == [3.0, 3.0]
    assert func.scan(lambda c, x: (c, x), (), xp.arange(3))[1].shape == (3,)


def test_results_are_new_arrays() -> None:
    h, xs = np.ones(3), np.ones((40, 3))
    last, ys = func.scan(lambda c, x: (x, c), h, xs)
    last += 1.0
    ys += 1.0
    assert np.all(h == 1.0) and np.all(xs == 1.0)
    last, _ = func.scan(lambda c, x: (c, None), h, length=0)
    last += 1.0
    assert np.all(h == 1.0)


# What is refused


def test_errors() -> None:
    x = np.ones((4, 2))
    cases: list[tuple[Any, type[Exception], str]] = [
        (
            lambda: func.scan(lambda c, x: c, x[0], x),
            TypeError,
            r"scan: the body must return a tuple \(carry, y\), but it returned an array",
        ),
        (
            lambda: func.scan(lambda c, x: ({"a": c["a"]}, 1), {"a": x[0], "b": x[0]}, x),
            TypeError,
            r"scan: the body must return the carry in the form it was given: expected a dictionary "
            r"with the keys \['a', 'b'\], got dict of 1",
        ),
        (
            lambda: func.scan(lambda c, x: ({"a": [c["a"][0][:1]]}, 1), {"a": [x[0]]}, x),
            TypeError,
            r"the leaf at \['a'\]\[0\] is of shape \(1,\) and dtype float64, but was given as "
            r"an array of shape \(2,\) and dtype float64",
        ),
        (
            lambda: func.scan(lambda c, x: (mg.astype(c, np.float32), 1), x[0], x),
            TypeError,
            r"the leaf is of shape \(2,\) and dtype float32, but was given as an array of shape "
            r"\(2,\) and dtype float64",
        ),
        (
            lambda: func.scan(lambda c, x: (c, "y"), x[0], x),
            TypeError,
            "scan: the body must return arrays as y, but the leaf is a str",
        ),
        (
            lambda: func.scan(lambda c, x: (c, x), "c", x),
            TypeError,
            "scan: carry: the leaf is a str, but must be an array or a number",
        ),
        (
            lambda: func.scan(lambda c, x: (c, x), x[0], {"a": 1.0}),
            TypeError,
            r"scan: xs: the leaf at \['a'\] is a float, but must be an array",
        ),
        (
            lambda: func.scan(lambda c, x: (c, x), x[0], [x[0, 0]]),
            ValueError,
            r"scan: xs at \[0\] is of shape \(\), but needs an axis for the",
        ),
        (
            lambda: func.scan(lambda c, x: (c, x), x[0], [x, x[:3]]),
            ValueError,
            r"scan: xs at \[1\] has 3 steps along its first axis, but xs at \[0\] says 4",
        ),
        (
            lambda: func.scan(lambda c, x: (c, x), x[0], x, length=3),
            ValueError,
            "scan: xs has 4 steps along its first axis, but length says 3",
        ),
        (
            lambda: func.scan(lambda c, x: (c, x), x[0]),
            ValueError,
            "scan: xs has no arrays that determine the number of steps; pass length",
        ),
        (
            lambda: func.scan(lambda c, x: (c, x), x[0], length=-1),
            ValueError,
            "scan: length must be an int of at least 0, or None, not -1",
        ),
        (
            lambda: func.scan(lambda c, x: (c, x), x[0], x, checkpoint=0),
            ValueError,
            "scan: checkpoint must be 'step', 'binomial', None, or an int above 0, not 0",
        ),
        (lambda: func.scan(3, x[0], x), TypeError, "scan: the body must be a function, not int"),  # type: ignore[arg-type]
        (lambda: func.while_loop(1, abs, x), TypeError, "while_loop: cond_fun must be a function"),  # type: ignore[arg-type]
        (lambda: func.fori_loop(0, 3, 1, x), TypeError, "fori_loop: body_fun must be a function"),  # type: ignore[arg-type]
        (
            lambda: func.while_loop(lambda c: c, lambda c: c, x),
            TypeError,
            r"while_loop: cond_fun must return a boolean array of shape \(\), or a bool, but it "
            r"returned an array of shape \(4, 2\) and dtype float64",
        ),
        (
            lambda: func.while_loop(lambda c: True, lambda c: c[0], x),
            TypeError,
            r"while_loop: body_fun must return the state in the form it was given: the leaf is of "
            r"shape \(2,\) and dtype float64, but was given",
        ),
        (
            lambda: func.fori_loop(0.5, 3, lambda i, c: c, x),
            TypeError,
            r"fori_loop: lower must be an int or an integer array of shape \(\), not a float",
        ),
        (
            lambda: func.fori_loop(0, x, lambda i, c: c, x),
            TypeError,
            r"fori_loop: upper must be an int or an integer array of shape \(\), not an array",
        ),
    ]
    for run, kind, text in cases:
        with pytest.raises(kind, match=text):
            run()


@pytest.mark.parametrize("steps", [3, 60])
def test_a_body_must_not_write_to_what_it_is_given(steps: int) -> None:
    h, xs, buffer = np.ones(2), np.ones((steps, 2)), mg.asarray(np.zeros(2))

    def writes(c: Any, x: Any) -> Any:
        c += x
        return c, None

    def writes_part(c: Any, x: Any) -> Any:
        x[:1] *= 2.0
        return c, None

    def writes_captured(c: Any, x: Any) -> Any:
        buffer[0] = 1.0
        return c, None

    for body, text in (
        (writes, "write to an argument or a captured array, but add_ does"),
        (writes_part, "but multiply_ does"),
        (
            writes_captured,
            "the body of scan must not write to an array from outside, but setitem does",
        ),
    ):
        with pytest.raises(GradientError, match=text):
            func.scan(body, h, xs)
        with pytest.raises(GradientError, match=text):
            func.grad(lambda h, body=body: mg.sum(func.scan(body, h, xs)[0]))(h)
    assert np.all(h == 1.0) and np.all(xs == 1.0) and np.all(buffer.numpy() == 0.0)

    def own(c: Any, x: Any) -> Any:
        c = c * 1.0
        c += x
        c[0] = 0.0
        return c, None

    near(func.scan(own, h, xs)[0], [0.0, steps + 1.0])


@pytest.mark.parametrize("steps", [2, 60])
def test_hidden_state_is_found_out(steps: int) -> None:
    draw = np.random.default_rng(0)
    again = (
        "returned another result for the same arguments when it was called again.*Pass "
        "the state as a part of the carry"
    )
    with pytest.raises(RuntimeError, match=again):
        func.scan(lambda c, x: (c + draw.normal(), None), 0.0, np.ones(steps))
    with pytest.raises(RuntimeError, match=again):
        func.while_loop(lambda c: c < 99, lambda c: c + draw.uniform(1, 2), 0.0)


@pytest.mark.parametrize("steps", [2, 60])
def test_what_changes_before_the_pass_is_found_out(steps: int) -> None:
    x = mg.asarray(np.array(2.0), requires_grad=True)
    losses = [func.scan(lambda c, _: (c * k, None), x, length=steps)[0] for k in (1.0, 0.5)]  # noqa: B023
    losses[1].backward()
    assert x.grad == 0.5**steps
    k = 0.5
    losses = []
    for k in (1.0, 0.5):
        losses.append(func.scan(lambda c, _: (c * k, None), x, length=steps)[0])  # noqa: B023
    with pytest.raises(
        GradientError,
        match="scan: the body computes another result in the backward pass than when the loop "
        "ran, for the same arg",
    ):
        losses[0].backward()
    scale = np.array(3.0)
    loss = func.scan(lambda c, _: (c * scale, None), x, length=steps)[0]
    scale += 1.0
    with pytest.raises(
        GradientError,
        match="a value that has changed since, such as a variable of a loop around it, or an "
        "array that was written",
    ):
        loss.backward()


@pytest.mark.parametrize("steps", [5, 60])
def test_branches_on_values_and_shapes(steps: int) -> None:
    def body(c: Any, x: Any) -> Any:
        if x > 0.0:
            return c * x, c
        return (c + 1.0, -c) if c < 5.0 else (c - 1.0, c)

    xs = np.random.default_rng(3).normal(size=steps)

    def loop(c: Any) -> Any:
        ys = []
        for x in xs:
            c, y = body(c, x)
            ys.append(y)
        return c, mg.stack(ys)

    start = np.array(1.5)
    near(func.scan(body, start, xs), loop(mg.asarray(start)))
    near(
        func.grad(lambda c: mg.sum(func.scan(body, c, xs)[1]))(start),
        func.grad(lambda c: mg.sum(loop(c)[1]))(start),
    )
    with pytest.raises(BatchingError, match="bool"):
        func.vmap(lambda c: func.scan(body, c, xs)[0])(np.ones(3))


def test_late_captures() -> None:
    """What a body uses at a later step only is differentiated as well."""

    def f(run: Any) -> Any:
        body = lambda c, x, a: (c * a if x > 3.0 else c + 1.0, None)
        return func.grad(
            lambda a: run(lambda c, x: body(c, x, a), np.array(1.0), np.arange(6.0))[0]
        )(np.array(2.0))

    near(f(func.scan), f(unrolled))


# Memory and evaluations


def _peak(run: Callable[[], Any]) -> int:
    run()
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.sweep
def test_memory_is_that_of_the_carries() -> None:
    n, steps = 20_000, 64
    x = np.ones(n)

    def gradient(checkpoint: Any) -> Any:
        def body(c: Any, _: Any) -> Any:
            return mg.tanh(mg.sin(mg.cos(c) * c) + mg.exp(-c * c)) * c, None

        return func.grad(
            lambda c: mg.sum(func.scan(body, c, length=steps, checkpoint=checkpoint)[0])
        )(x)

    peaks = {
        checkpoint: _peak(lambda checkpoint=checkpoint: gradient(checkpoint)) / x.nbytes
        for checkpoint in ("step", 8, "binomial")
    }

    def tape(c: Any) -> Any:
        for _ in range(steps):
            c = mg.tanh(mg.sin(mg.cos(c) * c) + mg.exp(-c * c)) * c
        return mg.sum(c)

    assert (
        peaks["step"] < steps + 30
        and peaks[8] < 8 + 8 + 30
        and peaks["binomial"] < checkpoints.slots(steps) + 32
    ), peaks
    assert _peak(lambda: func.grad(tape)(x)) / x.nbytes > 6 * steps


@pytest.mark.sweep
def test_memory_of_segments_that_are_recorded() -> None:
    """Each segment is a program of its own, whose arrays go with it."""
    x, steps = np.ones(20_000), 900
    gc.disable()
    try:
        peak = _peak(
            lambda: func.grad(
                lambda c: mg.sum(
                    func.scan(lambda c, _: (mg.sin(c) * 1.1, None), c, length=steps, checkpoint=30)[
                        0
                    ]
                )
            )(x)
        )
    finally:
        gc.enable()
    assert peak / x.nbytes < 30 + 30 + 40


def least_steps(length: int, s: int) -> int:
    """The number of forward steps of the schedule: Griewank and Walther, equation (2)."""
    r = checkpoints._repetitions(length, s)
    return r * length - math.comb(s + r, r - 1) if r else 0


@pytest.mark.parametrize("length", [1, 2, 3, 7, 12, 64, 500])
def test_the_binomial_schedule(length: int) -> None:
    """As few steps as dynamic programming finds, and no more carries at a time than there are
    slots, and the one that goes on.
    """
    s = checkpoints.slots(length)
    kept = set(checkpoints.positions("binomial", length))
    first, peak, forward, pulled = max(kept), len(kept), 0, []
    for what, start, stop in checkpoints.backwards("binomial", length):
        assert start in kept
        if what == "keep":
            kept.add(stop)
            forward += stop - start
        else:
            kept.discard(start)
            pulled.append((start, stop))
        peak = max(peak, len(kept))
    assert pulled == [(i, i + 1) for i in reversed(range(length))]
    assert peak <= s + 1 and s <= 1 + np.log2(length)
    assert first + forward == least_steps(length, s)
    if length <= 64:
        least: dict[tuple[int, int], int] = {}
        for n, k in itertools.product(range(1, length + 1), range(1, s + 1)):
            least[n, k] = (
                0
                if n == 1
                else n * (n - 1) // 2
                if k == 1
                else min(m + least[n - m, k - 1] + least[m, k] for m in range(1, n))
            )
        assert least_steps(length, s) == least[length, s]


@pytest.mark.parametrize("checkpoint", ["step", 5, "binomial"])
def test_evaluations(checkpoint: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls of the body in a gradient of few steps, which is not recorded, and some more to see
    what it is like.
    """
    steps, calls = 11, 0
    monkeypatch.setattr(replaying, "FEWEST", 12)

    def body(c: Any, x: Any) -> Any:
        nonlocal calls
        calls += 1
        return mg.sin(c) * x, None

    func.grad(lambda c: func.scan(body, c, np.ones(steps), checkpoint=checkpoint)[0])(np.array(1.0))
    again = sum(
        stop - start
        for what, start, stop in checkpoints.backwards(checkpoint, steps)
        if what == "keep"
    )
    expected = steps + again + steps * (checkpoint == 5) + steps
    assert expected <= calls <= expected + 6, calls


def test_how_often_the_body_is_called() -> None:
    """A short loop calls it at each step, once to find what it captures, and in the pass to look
    for values that have changed. A long one is recorded.
    """
    calls = 0

    def body(c: Any, x: Any) -> Any:
        nonlocal calls
        calls += 1
        return mg.sin(c) * x, c

    def gradient(steps: int) -> Any:
        return func.grad(lambda c: mg.sum(func.scan(body, c, np.ones(steps))[1]))(np.array(1.0))

    assert np.isfinite(gradient(4)) and 4 + 4 < calls <= 4 + 4 + 3
    calls = 0
    assert np.isfinite(gradient(3000)) and calls < 12


# Loops with a condition


def root(a: Any) -> Any:
    """The square root by Newton's method, and how many steps it took."""
    a = mg.asarray(a)
    return func.while_loop(
        lambda s: mg.abs(s[0] * s[0] - a) > 1e-12,
        lambda s: (0.5 * (s[0] + a / s[0]), s[1] + 1),
        (0.0 * a + 1.0, 0),
    )


def test_while_loop(backend: str) -> None:
    (a,) = on(backend, np.array(2.0))
    value, steps = root(a)
    assert abs(float(value) - 2**0.5) < 1e-12 and int(steps) == 5 and type(value) is type(steps)
    near(func.jvp(lambda a: root(a)[0], (a,), (a,))[1], 2**0.5 / 2)
    near(func.jacfwd(func.jacfwd(lambda a: root(a)[0]))(a), -0.25 * 2**-1.5)
    (many,) = on(backend, np.array([2.0, 9.0, 1e4]))
    values, steps = func.vmap(root)(many)
    near(values, [2**0.5, 3.0, 100.0])
    assert [int(n) for n in np.asarray(mg.asarray(steps).numpy())] == [5, 6, 11]
    near(
        func.vmap(lambda a: func.jvp(lambda a: root(a)[0], (a,), (0.0 * a + 1.0,))[1])(many),
        0.5 / np.array([2**0.5, 3.0, 100.0]),
    )
    near(
        func.jvp(func.vmap(lambda a: root(a)[0]), (many,), (many,))[1],
        0.5 * np.array([2**0.5, 3.0, 100.0]),
    )
    assert float(func.while_loop(lambda x: False, lambda x: x + 1.0, a)) == 2.0


def test_while_loop_has_forward_mode_only() -> None:
    text = (
        "while_loop has forward mode only, since the number of its steps is not known "
        "beforehand. Use fori_loop with fixed bounds, or scan"
    )
    with pytest.raises(GradientError, match=text):
        func.grad(lambda a: root(a)[0])(np.array(2.0))
    with pytest.raises(GradientError, match=text):
        func.grad(lambda a: func.while_loop(lambda x: x < 3.0, lambda x: x + a, np.array(0.0)))(
            np.array(2.0)
        )
    near(func.grad(lambda a: a * root(a.detach())[0])(np.array(4.0)), 2.0)


def test_a_long_while_loop_is_a_program() -> None:
    calls = 0

    def body(x: Any) -> Any:
        nonlocal calls
        calls += 1
        return x + 1.0

    assert func.while_loop(lambda x: x < 5000.0, body, np.array(0.0)) == 5000.0 and calls < 40


def test_fori_loop(backend: str) -> None:
    (x,) = on(backend, np.array([1.0, 2.0]))
    near(func.fori_loop(2, 5, lambda i, s: s * mg.astype(i, s.dtype), x), [24.0, 48.0])
    near(func.fori_loop(5, 2, lambda i, s: s * mg.astype(i, s.dtype), x), [1.0, 2.0])
    (w,) = on(backend, np.array(2.0))
    found = func.grad(
        lambda w: mg.sum(func.fori_loop(0, 4, lambda i, s: s * w + mg.astype(i, s.dtype), x))
    )(w)
    near(found, func.grad(lambda w: mg.sum(((mg.asarray(x) * w * w + 1.0) * w + 2.0) * w + 3.0))(w))
    bounds, values = on(backend, np.array([0, 1, 5]), np.array([1.0, 2.0, 3.0]))
    near(
        func.vmap(
            lambda n, x: func.fori_loop(0, n, lambda i, x: x * 2.0 + mg.astype(i, x.dtype), x)
        )(bounds, values),
        [1.0, 4.0, 122.0],
    )


def test_loops_under_jit() -> None:
    jax = pytest.importorskip("jax")
    near(jax.jit(root)(2.0)[0], 2**0.5)
    near(
        jax.jit(func.vmap(root))(jax.numpy.asarray([2.0, 9.0])),
        (np.array([2**0.5, 3.0]), np.array([5, 6])),
    )
    near(
        jax.jit(lambda a: func.jvp(lambda a: root(a)[0], (a,), (a,))[1])(2.0 * jax.numpy.ones(())),
        2**0.5 / 2,
    )
    near(jax.jit(lambda n: func.fori_loop(0, n, lambda i, x: x * 2.0 + i, 1.0))(5), 58.0)
    near(
        jax.jit(func.grad(lambda x: func.fori_loop(0, 5, lambda i, s: s * x, x)))(
            2.0 * jax.numpy.ones(())
        ),
        6 * 2.0**5,
    )
    text = jax.make_jaxpr(lambda a: root(a)[0])(2.0)
    assert "while[" in str(text)
