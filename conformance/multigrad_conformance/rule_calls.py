"""How the engine calls rules: each output may be the only one that is used, and nothing that a rule
is given may be changed by it.
"""

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
    """What rules were given, as it was: to be compared with what it is once they have run."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.arrays: list[tuple[str, Any, Any]] = []

    def note(self, what: str, value: Any) -> Any:
        """Remember the arrays in `value`, however they are nested, under that name.

        Returns `value`.
        """
        for x in leaves(value):
            raw = x.array if isinstance(x, mg.Tensor) else x
            if self.target.is_raw(raw):
                self.arrays.append((what, raw, self.target.numpy(raw).copy()))
        return value

    def noting(self, what: str) -> Callable[[Any], None]:
        """A hook that remembers the gradient it sees."""

        def note(g: Any) -> None:
            if g is not None:  # of an output that was not used
                self.note(what, g)

        return note

    def assert_unchanged(self, mode: str) -> None:
        """Raise if one of them is not what it was: its memory may be the caller's, or that of
        another gradient.
        """
        for what, raw, before in self.arrays:
            now = self.target.numpy(raw)
            assert np.array_equal(now, before, equal_nan=before.dtype.kind in "fc"), (
                f"{what} was changed while the {mode} ran: {before.tolist()} became "
                f"{now.tolist()}. A rule must not write into what it is given: write `g = g * "
                "x` for `g *= x`"
            )


def unwritten_gradients(target: Target, problem: Problem) -> list[Any]:
    """The gradients, as raw arrays.

    In a pass of these, and in a recorded one, the vjp leaves its cotangents, arguments and outputs
    as they were.
    """
    # values are traced there, or nothing can be written
    if target.wrap is not None or not target.capabilities.mutable:
        return raw_gradients(
            target,
            problem,
            [target.raw(x) for x in problem.leaves()],
            [target.raw(g) for g in problem.cotangents],
        )
    found: list[Any] = []
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
        found = found or [g.array for g in gradients]
    return found


def assert_each_output(target: Target, problem: Problem, tolerance: float, precision: str) -> None:
    """Each output differentiated alone, the others unused: the gradients are those of finite
    differences, in both kinds of passes.
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
            found = mg.autograd.grad(
                outs[i],
                xs,
                grad_outputs=target.raw(cotangent),
                create_graph=recorded,
                allow_unused=True,
                materialize_grads=True,
            )
            for g, x, e in zip(found, xs, expected, strict=True):
                what = f"gradient of output {i} alone{', recorded' * recorded}"
                assert_gradient(target, g.array, x.array, what)
                assert_close(target.numpy(g), e, what, DIFFERENCE, tolerance, precision)


def several(problem: Problem) -> bool:
    """Whether there is more than one output to differentiate."""
    return problem.op.outputs != () and len(problem.outputs) > 1
