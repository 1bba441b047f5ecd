"""Loops and branches at their edges: what libraries trace without telling, numbers, odd
arguments.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from loop_programs import near

import multigrad as mg
from multigrad import func

STEPS = np.linspace(0.5, 1.0, 5)


# What JAX traces


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("checkpoint", "length"), [(1, 5), ("binomial", 2), (7, 3)])
def test_gradients_under_jit_where_an_int_keeps_each_carry(
    checkpoint: Any, length: int, reverse: bool
) -> None:
    jax = pytest.importorskip("jax")

    def loss(w: Any, xs: Any) -> Any:
        c, ys = func.scan(
            lambda c, x: (mg.sin(c * w + x), c * w),
            xs[0] * 0.3,
            xs,
            reverse=reverse,
            checkpoint=checkpoint,
        )
        return c + mg.sum(ys**2)

    with jax.enable_x64(True):
        args = jax.numpy.asarray(0.7), jax.numpy.asarray(STEPS[:length])
        near(
            jax.jit(func.grad(loss, (0, 1)))(*args),
            func.grad(loss, (0, 1))(np.array(0.7), STEPS[:length]),
        )


@pytest.mark.parametrize(
    ("steps", "checkpoint"),
    [
        (5, None),
        (40, "step"),
        pytest.param(5, "step", marks=pytest.mark.slow),
        pytest.param(40, 3, marks=pytest.mark.slow),
        pytest.param(40, "binomial", marks=pytest.mark.slow),
    ],
)
def test_captured_arrays_that_jax_transforms(steps: int, checkpoint: Any) -> None:
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        xs = jax.numpy.linspace(0.0, 1.0, steps)

        def ours(a: Any) -> Any:
            return func.scan(
                lambda c, x: (mg.sin(c * a) + x, None), 0.0, xs, checkpoint=checkpoint
            )[0]

        def theirs(a: Any) -> Any:
            return jax.lax.scan(lambda c, x: (jax.numpy.sin(c * a) + x, None), 0.0, xs)[0]

        points = jax.numpy.asarray([0.3, 0.4])
        near(jax.vmap(ours)(points), jax.vmap(theirs)(points))
        near(jax.grad(ours)(points[0]), jax.grad(theirs)(points[0]))
        near(jax.jvp(ours, (points[0],), (points[1],)), jax.jvp(theirs, (points[0],), (points[1],)))
        near(jax.vmap(func.grad(ours))(points), jax.vmap(jax.grad(theirs))(points))
        near(
            jax.vmap(lambda a: func.scan(lambda c, x: (ours(a) * c + x, None), 0.0, xs)[0])(points),
            jax.vmap(lambda a: jax.lax.scan(lambda c, x: (theirs(a) * c + x, None), 0.0, xs)[0])(
                points
            ),
        )


def test_a_while_loop_that_captures_what_jax_transforms() -> None:
    jax = pytest.importorskip("jax")

    def root(a: Any) -> Any:
        return func.while_loop(lambda x: mg.abs(x * x - a) > 1e-5, lambda x: 0.5 * (x + a / x), 1.0)

    def doubled(a: Any) -> Any:
        return func.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * a), (0, 1.0))[1]

    for function, expected in ((root, np.sqrt), (doubled, lambda a: a**3)):
        for a in (function(jax.numpy.asarray(2.0)), jax.jit(function)(2.0)):
            assert np.isclose(a, expected(2.0), rtol=1e-5)
        for mapped in (jax.vmap(function), jax.jit(func.vmap(function)), func.vmap(function)):
            assert np.allclose(
                mapped(jax.numpy.asarray([2.0, 3.0])), expected(np.array([2.0, 3.0])), rtol=1e-5
            )


# Numbers


def test_numbers_where_the_body_needs_arrays() -> None:
    near(
        func.scan(lambda c, x: (mg.sin(c) + x, c.ndim), 0.0, STEPS),
        func.scan(lambda c, x: (mg.sin(c) + x, 0), np.array(0.0), STEPS),
    )
    narrow = STEPS.astype(np.float32)
    assert func.scan(lambda c, x: (mg.sin(c) + x, None), 0.0, narrow)[0].dtype == np.float32
    assert func.scan(lambda c, x: (mg.expand_dims(c, axis=0)[0] + 1, None), 0, narrow)[0] == 5
    assert np.isclose(
        func.fori_loop(0, 3, lambda i, c: mg.sin(c), 1.0), np.sin(np.sin(np.sin(1.0)))
    )
    assert func.while_loop(lambda c: mg.abs(c) < 3, lambda c: mg.abs(c) + 1, 0.0) == 3.0
    with pytest.raises(AttributeError, match="nothing"):
        func.scan(lambda c, x: (c.nothing, None), 0.0, STEPS)


def test_numbers_alone_belong_to_the_library_of_what_the_body_makes_of_them() -> None:
    jax = pytest.importorskip("jax")
    one = jax.numpy.ones(())
    assert isinstance(func.scan(lambda c, _: (c * one, 1.0), 1.0, length=3)[0], jax.Array)
    assert isinstance(func.fori_loop(0, 3, lambda i, c: c * one + i, 1.0), jax.Array)
    assert isinstance(func.while_loop(lambda c: c < 3, lambda c: c + one, 1.0), jax.Array)


def test_a_branch_may_return_a_number_for_an_array() -> None:
    choose, x = np.array([True, False]), np.array([2.0, 3.0], dtype=np.float32)
    for given, number in ((x, 0), (x, 0.5), (x > 0, False), (x.astype(np.int16), 4)):
        found = func.vmap(
            lambda p, x, number=number: func.cond(p, lambda x: x, lambda x: number, x)
        )(choose, given)
        assert found.dtype == given.dtype and found[0] == given[0] and found[1] == number
    found = func.vmap(lambda p: func.cond(p, lambda: 1, lambda: 2.5))(choose)
    assert found.dtype == np.float64 and list(found) == [1.0, 2.5]
    with pytest.raises(
        TypeError,
        match=r"cond: all functions must return the same, but true_fun of cond differs from "
        r"false_fun of cond: the leaf is of shape \(\) and dtype int16, and not of shape "
        r"\(\) and dtype float64",
    ):
        func.vmap(lambda p, x: func.cond(p, lambda x: x, lambda x: 0.5, x))(
            choose, x.astype(np.int16)
        )
    jax = pytest.importorskip("jax")
    assert (
        float(
            jax.jit(lambda p, x: func.cond(p, lambda x: x, lambda x: 0, x))(
                False, jax.numpy.ones(())
            )
        )
        == 0.0
    )


@pytest.mark.parametrize("checkpoint", [1, 3, "binomial"])
def test_what_changes_before_the_pass_is_found_out_with_each_checkpoint(checkpoint: Any) -> None:
    w, factor = mg.asarray(0.7, requires_grad=True), np.array(2.0)
    kept, _ = func.scan(
        lambda c, x: (c * w * factor + x, None), 1.0, STEPS, checkpoint=checkpoint, reverse=True
    )
    kept.backward(retain_graph=True)  # nothing has changed
    factor *= 2.0
    with pytest.raises(mg.errors.GradientError, match="another result in the backward pass"):
        kept.backward()


# Arguments


def test_integers_of_numpy_are_integers() -> None:
    assert func.scan(lambda c, _: (c * 2.0, None), 1.0, length=np.int64(3))[0] == 8.0
    assert func.scan(lambda c, _: (c * 2.0, None), 1.0, length=np.array(3))[0] == 8.0
    assert (
        func.grad(
            lambda a: func.scan(lambda c, _: (c * a, None), 1.0, length=4, checkpoint=np.int32(2))[
                0
            ]
        )(np.array(2.0))
        == 32.0
    )


@pytest.mark.parametrize("length", [True, 2.0, np.array([3])])
def test_lengths_that_are_none(length: Any) -> None:
    with pytest.raises(
        ValueError, match=r"scan: length must be an int of at least 0, or None, not "
    ):
        func.scan(lambda c, _: (c, None), 1.0, length=length)


@pytest.mark.parametrize("checkpoint", ["Step", True, [1], np.array([1, 2])])
def test_checkpoints_that_are_none(checkpoint: Any) -> None:
    with pytest.raises(
        ValueError,
        match="fori_loop: checkpoint must be 'step', 'binomial', None, or an int above 0, not ",
    ):
        func.fori_loop(0, 3, lambda i, c: c, 1.0, checkpoint=checkpoint)


def test_messages_of_fori_loop_speak_of_it() -> None:
    with pytest.raises(
        TypeError,
        match=r"fori_loop: body_fun must return the state in the form it was given: the leaf at "
        r"\['h'\] is of shape \(1,\)",
    ):
        func.fori_loop(0, 3, lambda i, s: {"h": s["h"][:1]}, {"h": np.zeros(2)})
    with pytest.raises(
        TypeError, match="fori_loop: init_val: the leaf is a str, but must be an array or a number"
    ):
        func.fori_loop(0, 3, lambda i, s: s, "state")
    with pytest.raises(
        mg.errors.GradientError, match="body_fun of fori_loop must not write to an argument"
    ):
        func.fori_loop(0, 3, lambda i, s: s.add_(1.0), np.zeros(2))


@pytest.mark.parametrize(
    "loop",
    [
        lambda x, other: func.scan(lambda c, _: (other, c), x, None, length=2),
        lambda x, other: func.while_loop(lambda s: s[0] < 1, lambda s: (s[0] + 1, other), (0, x)),
        lambda x, other: func.fori_loop(0, 2, lambda i, c: other, x),
    ],
    ids=["scan", "while_loop", "fori_loop"],
)
def test_a_carry_keeps_its_library(loop: Any) -> None:
    """JAX has the dtypes of NumPy: shape and dtype are those of the carry."""
    jax = pytest.importorskip("jax")
    x = np.ones(2, dtype="float32")
    with pytest.raises(mg.errors.MixedBackendsError, match="two backends, 'numpy' and 'jax'"):
        loop(x, jax.numpy.ones(2, dtype="float32"))
