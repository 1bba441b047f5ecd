"""Loops and branches as operations with their own derivatives (`custom.definition.Definition`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.computed import mark
from ...core.level import BASE, Layer, Switch, innermost
from ...core.tensor import Tensor, strip, wrap, wrap_at
from ...custom.definition import Definition
from ...custom.function import Application, apply_function
from ...custom.kept import lowered
from ...dispatch.general import recording_at
from ...layers.batched import Batched, batch
from ...layers.dual import Dual

UNROLLED = 100
"""The largest number of steps that a compiled function around the loop records one by one."""


class Looped(Definition):
    """A loop or a branch, for one application: a function of lists of arrays.

    At each level it is applied to arguments of that level.

    saves  whether a level records, so that the values for a pass are among the results
    steps  the number of steps, if it is known
    """

    saves = False
    steps = 0

    def forward(self, *flat: Any) -> tuple[Any, ...]:
        """Run the loop or the branch on the innermost raw arrays, and return new arrays.

        The raw arrays have no history.
        """
        inner = [_bottom(x) for x in flat]
        for x in inner:
            # a compiling.recording.Recording has this method
            noted = getattr(getattr(x, "_run", None), "noted", None)
            if noted is not None and self.steps > UNROLLED:
                noted(f"a loop of {self.steps} steps in it is a program of its own")
                inner = [innermost(y) for y in inner]
                break
        outs = self.run(inner)
        marked = any(isinstance(x, Tensor) and x._node is not None and x._node.hidden for x in flat)
        return tuple([mark(wrap(x)) for x in outs]) if marked else tuple(outs)

    def run(self, flat: list[Any]) -> list[Any]:
        raise NotImplementedError

    def setup_context(self, ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        ctx.set_materialize_grads(False)


def _bottom(x: Any) -> Any:
    """The value of Tensors without a history: a raw array, or a layer that records operations."""
    while isinstance(x, Tensor):
        x = x._array
    return x


def apply(rule: Looped, flat: Sequence[Any]) -> list[Any]:
    """Apply a loop or a branch to its arguments."""
    rule.saves = any(map(recorded, flat))
    return list(apply_function(rule, tuple(flat), ()))


def inside(application: Application, rule: Looped, flat: Sequence[Any]) -> list[Any]:
    """Apply the loop or the branch one level below."""
    rule.saves = application.rule.saves or any(map(recorded, flat))
    return list(application.inside(list(flat), (), rule).output)


def recorded(x: Any) -> bool:
    """Whether a level of a value has a history and records."""
    while isinstance(x, Layer):
        if isinstance(x, Tensor) and x._node is not None and not x._node.hidden and recording_at(x):
            return True
        x = x._array
    return False


def recorded_by(ctx: Any) -> Switch:
    """The grad mode of the level that a node belongs to."""
    return BASE if ctx._run is None else ctx._run.grad_mode


def unrecorded(x: Any) -> Any:
    """A saved value without its history, unless the pass is recorded."""
    if isinstance(x, Tensor) and x._node is not None and not recording_at(x):
        return wrap_at(x, x._array)
    return x


def tangents_at(values: Sequence[Any], top: Dual) -> tuple[list[Any], list[Any]]:
    """The values one level below the Duals of the level of `top`, and their tangents.

    A zero tangent is None.
    """
    top._check()
    own = [type(x) is Dual and x._level == top._level for x in values]
    return lowered(values, own), [
        x._tangent if mine else None for x, mine in zip(values, own, strict=True)
    ]


def dual(x: Any, t: Any, top: Dual) -> Any:
    return Dual._make(strip(x), None if t is None else strip(t), top._run, top._level)


def batches_at(values: Sequence[Any], top: Batched) -> tuple[list[Any], list[bool]]:
    """The values one level below the batches of the level of `top`, and a flag for each batch."""
    top._check()
    own = [isinstance(x, Batched) and x._elem.run is top._elem.run for x in values]
    return lowered(values, own), own


def batched(x: Any, mine: bool, top: Batched) -> Any:
    return batch(strip(x), top._run) if mine else x
