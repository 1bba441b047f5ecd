"""What a checkpointed function uses from outside, and does not get as an argument: Tensors that do
not require grad.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from checkpoint_programs import Counted, X, leaf
from forward_programs import close

import multigrad as mg
from multigrad.autograd.graph import saved_tensors_hooks
from multigrad.errors import GradientError
from multigrad.func import checkpoint

W = [1.0, 2.0]
CHANGED = (
    "modified by an inplace operation: .*is used in a checkpoint, is at version {}; "
    "expected version {}"
)


def constant(xp: Any, data: Any = W) -> Any:
    return leaf(xp, data).detach()


USES = {
    "multiply": lambda xp, a, w: a * a * w,
    "a view made inside": lambda xp, a, w: a * a * w[:],
    "detached inside": lambda xp, a, w: a * a * w.detach(),
    "in a list": lambda xp, a, w: xp.prod(xp.stack([a, w]), axis=0) * a,
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("how", ["all", "a part"])
def test_a_captured_constant_that_is_changed_afterwards(xp, use, how):
    x, w = leaf(xp), constant(xp)
    y = xp.sum(checkpoint(lambda a: USES[use](xp, a, w))(x))
    if how == "all":
        w *= 10
    else:
        w[0] = 0
    with pytest.raises(GradientError, match=CHANGED.format(1, 0)):
        y.backward()
    assert x.grad is None


def test_a_captured_view_whose_memory_is_changed_afterwards(xp):
    x = leaf(xp)
    w = x * 1.0
    part = w[:]
    y = xp.sum(checkpoint(lambda a: a * a * part)(x))
    w *= 10
    with pytest.raises(GradientError, match="is used in a checkpoint"):
        y.backward()
    assert x.grad is None


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_function_that_changes_what_it_uses(xp, when):
    """Each run would find something else."""
    x, w = leaf(xp), constant(xp)

    def f(a):
        if when == "before":
            w.__imul__(2)
        y = a * a * w
        if when == "after":
            w.__imul__(2)
        return y

    y = xp.sum(checkpoint(f)(x))
    with pytest.raises(
        GradientError, match=CHANGED.format(*((2, 1) if when == "before" else (1, 0)))
    ):
        y.backward()


def test_who_catches_the_error(xp):
    x, w = leaf(xp), constant(xp)

    def f(a):
        try:
            return a * a * w
        except BaseException:
            return a * a * a

    y = xp.sum(checkpoint(f)(x))
    w *= 10
    with pytest.raises(GradientError, match=CHANGED.format(1, 0)):
        y.backward()


def test_a_table_that_the_first_run_makes(xp):
    """It is from outside to the second run, and was not changed since."""
    tables: list[Any] = []

    def f(a):
        if not tables:
            tables.append(xp.zeros(2, dtype=a.dtype))
            tables[0][1] = 4.0
        return a * a * tables[0]

    runs, x = Counted(f), leaf(xp)
    y = xp.sum(checkpoint(runs)(x))
    (g,) = mg.autograd.grad(y, x, retain_graph=True)
    close(g, [0, 8 * X[1]])
    assert runs.begun == 2
    tables[0][0] = 1.0
    with pytest.raises(GradientError, match=CHANGED.format(2, 1)):
        y.backward()


def test_statistics_that_only_change(xp):
    """What no recorded operation uses may change."""
    x, mean = leaf(xp), constant(xp)

    def f(a):
        with mg.no_grad():
            mean.__imul__(0.9)
        return xp.sin(a)

    y = xp.sum(checkpoint(f)(x))
    mean += 1
    y.backward()
    close(x.grad, np.cos(X))


def under_hooks(xp: Any, a: Any, w: Any) -> Any:
    with saved_tensors_hooks(lambda t: t, lambda t: t):
        b = a + w
    return xp.sin(b)


class Shifted(mg.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Any, w: Any) -> Any:
        return a + w

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g, None


WITHOUT_SAVING = {
    "an operation that saves nothing": lambda xp, a, w: xp.sin(a + w),
    "under hooks of its own": under_hooks,
    "in a checkpoint inside": lambda xp, a, w: xp.sin(checkpoint(lambda b: b + w)(a)),
    "in one that keeps it": lambda xp, a, w: xp.sin(
        checkpoint(lambda b: b + w, policy=("add",))(a)
    ),
    "in a Function": lambda xp, a, w: xp.sin(Shifted.apply(a, w)),
}


@pytest.mark.parametrize("use", WITHOUT_SAVING)
def test_a_captured_constant_that_the_checkpoint_does_not_save(xp, use):
    """What it saves was computed with that: the second run would get another value.

    On the first call, and when the runners are written.
    """
    for _ in range(2):
        x, w = leaf(xp), constant(xp)
        y = xp.sum(checkpoint(lambda a: WITHOUT_SAVING[use](xp, a, w))(x))  # noqa: B023
        w += 1
        with pytest.raises(GradientError, match=CHANGED.format(1, 0)):
            y.backward()
