"""How the engine calls rules: outputs may be unused, and a rule must not change its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import multigrad as mg

from .compare import DIFFERENCE, assert_close, assert_gradient
from .problem import Problem, raw_gradients, tensors_of
from .sample import leaves
from .target import Target, call


class Given:
    """Records copies of the arguments of rules, to compare them after the rules have run."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.arrays: list[tuple[str, Any, Any]] = []

    def note(self, what: str, value: Any) -> Any:
        """Record the arrays in `value`, nested or not, under that name. Returns `value`."""
        for x in leaves(value):
            raw = x.array if isinstance(x, mg.Tensor) else x
            if self.target.is_raw(raw):
                self.arrays.append((what, raw, self.target.numpy(raw).copy()))
        return value

    def noting(self, what: str) -> Callable[[Any], None]:
        """Return a hook that records the gradient that it receives."""

        def note(g: Any) -> None:
            if g is not None:  # the gradient of an unused output is None
                self.note(what, g)

        return note

    def assert_unchanged(self, mode: str) -> None:
        """Raise AssertionError if a recorded array has changed.

        Its memory may belong to the caller, or to another gradient.
        """
        for what, raw, before in self.arrays:
            now = self.target.numpy(raw)
            assert np.array_equal(now, before, equal_nan=before.dtype.kind in "fc"), (
                f"{what} was changed while the {mode} ran: {before.tolist()} became "
                f"{now.tolist()}. A rule must not write into what it is given: write `g = g * "
                "x` for `g *= x`"
            )


def unwritten_gradients(target: Target, problem: Problem) -> list[Any]:
    """Return the gradients, as raw arrays.

    In this pass, and in a recorded one, the vjp must not change its cotangents, arguments and
    outputs.
    """
    # under a tracer, or with immutable arrays, a rule cannot write
    if target.wrap is not None or not target.capabilities.mutable:
        return raw_gradients(
            target,
            problem,
            [target.raw(x) for x in problem.leaves()],
            [target.raw(g) for g in problem.cotangents],
        )
    grads: list[Any] = []
    for recorded in (False, True):
        given = Given(target)
        values = [
            given.note(f"the argument {name}", target.raw(v))
            for name, v in zip(problem.op.roles, problem.values, strict=True)
        ]
        xs = [
            mg.asarray(values[i] if j is None else values[i][j], requires_grad=True)
            for i, j in problem.places
        ]
        out = call(problem.op, target.function(problem.op), problem.replaced(xs, values))
        for i, y in enumerate(out if isinstance(out, (tuple, list)) else (out,)):
            name = (
                problem.op.outputs[i] if problem.op.outputs else "ans" if y is out else f"ans[{i}]"
            )
            given.note(f"the output {name}", y)
            if isinstance(y, mg.Tensor) and y.requires_grad:
                y.register_hook(given.noting(f"the cotangent of {name}"))
        finished = tensors_of(problem.finished(target.bound, out))
        gradients = mg.autograd.grad(
            finished,
            xs,
            grad_outputs=[target.raw(g) for g in problem.cotangents],
            create_graph=recorded,
        )
        given.assert_unchanged("vjp" if not recorded else "vjp, in a pass that is recorded,")
        grads = grads or [g.array for g in gradients]
    return grads


def assert_each_output(target: Target, problem: Problem, tolerance: float, precision: str) -> None:
    """Differentiate each output alone, with the others unused; compare with finite differences.

    This is done in passes with and without create_graph.
    """
    values = [target.raw(v) for v in problem.values]
    for i, cotangent in enumerate(problem.cotangents):
        expected = problem.wide.gradients_of_output(i)
        for recorded in (False, True):
            xs = [mg.asarray(target.raw(x), requires_grad=True) for x in problem.leaves()]
            outs = tensors_of(
                problem.finished(
                    target.bound,
                    call(problem.op, target.function(problem.op), problem.replaced(xs, values)),
                )
            )
            grads = mg.autograd.grad(
                outs[i],
                xs,
                grad_outputs=target.raw(cotangent),
                create_graph=recorded,
                allow_unused=True,
                materialize_grads=True,
            )
            for g, x, e in zip(grads, xs, expected, strict=True):
                what = f"gradient of output {i} alone{', recorded' * recorded}"
                assert_gradient(target, g.array, x.array, what)
                assert_close(target.numpy(g), e, what, DIFFERENCE, tolerance, precision)


def several(problem: Problem) -> bool:
    """Return whether there is more than one output to differentiate.

    A forward that raises has none: its own tests fail, and say why.
    """
    if problem.op.outputs == ():
        return False
    try:
        return len(problem.outputs) > 1
    except Exception:
        return False
