"""Loops and branches as operations with their own derivatives (`custom.definition.Definition`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from ...core.computed import mark
from ...core.level import BASE, Layer, Switch, innermost
from ...core.tensor import Tensor, strip, wrap, wrap_at
from ...custom.definition import Applied, Definition
from ...custom.dual import tangents_at
from ...custom.function import Application, apply_function
from ...custom.kept import lowered
from ...dispatch.general import recording_at
from ...layers.batched import Batched, batch
from ...layers.dual import Dual
from .bodies import (
    Body,
    Changed,
    Flags,
    cut,
    doubled,
    either,
    flagged,
    halved,
    of_batch,
    pushed,
    repeated,
    settled,
    still,
    swapped,
)

UNROLLED = 100
"""The largest number of steps that a compiled function around the loop records one by one."""


class Counts(NamedTuple):
    """The numbers of a loop's arguments and results.

    consts  constants
    carry   arrays of the carry
    xs      arrays that it goes over
    ys      stacked results
    sums    sums over the steps
    """

    consts: int
    carry: int
    xs: int = 0
    ys: int = 0
    sums: int = 0


class Looped(Definition):
    """A loop or a branch, for one application: a function of lists of arrays.

    At each level it is applied to arguments of that level. `derived` makes the same loop of other
    bodies, for tangents and batches.

    counts    the numbers of its arguments and results
    bodies    the functions body(consts, [*carry, *x]) that it calls; each returns [*carry, *y,
              *terms of sums]
    stacked   whether x and y are slices of arrays with an axis for the steps in front
    saves     whether a level records, so that the values for a pass are among the results
    steps     the number of steps, if it is known
    expected  the results of the first step, from a step that was tried, if they are known
    """

    counts: Counts
    bodies: Sequence[Body]
    stacked = saves = False
    steps = 0
    expected: Sequence[Any] | None = None

    def derived(self, step: Tangents | Batches, bodies: list[Body], counts: Counts) -> Looped:
        raise NotImplementedError

    def arguments(self, flat: Sequence[Any]) -> list[list[Any]]:
        """The constants, the carry, and the arrays that it goes over."""
        return cut(flat, self.counts.consts, self.counts.carry)

    def results(self, flat: Sequence[Any]) -> list[list[Any]]:
        """The carry, the stacked results, the sums, and the kept carries, if any."""
        return cut(flat, self.counts.carry, self.counts.ys, self.counts.sums)

    def first(self, flat: Sequence[Sequence[Any]]) -> tuple[list[Any], list[Any]]:
        """The constants and the arguments of the first step, as constants of every level."""
        consts, carry, xs = flat
        return still(consts), [*still(carry), *self.first_slices(xs)]

    def first_slices(self, xs: Sequence[Any]) -> list[Any]:
        return still(xs)

    def forward(self, *flat: Any) -> tuple[Any, ...]:
        """Run the loop or the branch on the innermost raw arrays, and return new arrays.

        The raw arrays have no history.
        """
        inner = list(map(_bottom, flat))
        for x in inner:
            # a compiling.recording.Recording has this method
            noted = getattr(getattr(x, "_run", None), "noted", None)
            if noted is not None and self.steps > UNROLLED:
                noted(f"a loop of {self.steps} steps in it is a program of its own")
                inner = list(map(innermost, inner))
                break
        outs = self.run(inner)
        for x in flat:
            if isinstance(x, Tensor) and x._node is not None and x._node.hidden:
                return tuple([mark(wrap(x)) for x in outs])
        return tuple(outs)

    def run(self, flat: list[Any]) -> list[Any]:
        raise NotImplementedError

    def setup_context(self, ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        ctx.set_materialize_grads(False)

    def at_dual(self, application: Application, values: Sequence[Any], top: Dual) -> Applied:
        self.expected = None
        inner, tangents = tangents_at(values, top)
        values, moving = self.arguments(inner), self.arguments(tangents)

        def run(step: Tangents) -> list[Any]:
            results = step.rule.results(inside(application, step.rule, step.arguments))
            return [
                Dual._make(strip(x), None if t is None else strip(t), top._run, top._level)
                for part, flags in zip(results, step.out, strict=True)
                if part
                for x, t in zip(*halved(part, flags), strict=True)
            ]

        moves = [t is not None for t in moving[1]]
        return Applied(
            tuple(settled(lambda flags: Tangents(self, values, moving, flags), moves, run)), None
        )

    def at_batch(self, application: Application, values: Sequence[Any], top: Batched) -> Applied:
        self.expected = None
        top._check()
        own = [isinstance(x, Batched) and x._elem.run is top._elem.run for x in values]
        parts, flags = self.arguments(lowered(values, own)), self.arguments(own)
        if self.stacked:
            parts[2] = [
                swapped(x) if mine else x for x, mine in zip(parts[2], flags[2], strict=True)
            ]

        def run(step: Batches) -> list[Any]:
            results = self.results(step.finished(inside(application, step.rule, step.arguments)))
            return [
                batch(strip(swapped(x) if self.stacked and i % 2 else x), top._run) if mine else x
                for i, (part, flags) in enumerate(zip(results, step.out, strict=True))
                for x, mine in zip(part, flags, strict=False)
            ]

        size = top._array.shape[0]
        return Applied(
            tuple(
                settled(lambda carry: self.batches(parts, flags, carry, size), list(flags[1]), run)
            ),
            None,
        )

    def batches(
        self, values: list[list[Any]], own: list[Flags], carry: Flags, size: int
    ) -> Batches:
        return Batches(self, values, own, carry, size)


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


class Tangents:
    """The bodies of a loop with tangents.

    own    which of its arguments (constants, carry, xs) have a tangent
    out    which of its results (carry, ys, sums, kept carries) have a tangent
    rule   the loop of these bodies, once a step was tried, and its `arguments`
    """

    rule: Looped

    def __init__(
        self, loop: Looped, values: list[list[Any]], tangents: list[list[Any]], flags: Flags
    ) -> None:
        self.of, self.values = loop, values
        self.tangents = [tangents[0], flagged(tangents[1], values[1], flags), tangents[2]]
        self.own = [[t is not None for t in part] for part in self.tangents]

    @property
    def arguments(self) -> list[Any]:
        return [x for pair in zip(self.values, self.tangents, strict=True) for x in doubled(*pair)]

    def look(self, later: Sequence[bool]) -> Flags:
        of, n = self.of, self.of.counts
        (consts, args), (t_consts, t_args) = of.first(self.values), of.first(self.tangents)
        found: Flags = []
        for body in of.bodies:
            outs, moved = pushed(body, consts, args, [*t_consts, *t_args])
            found = either([t is not None for t in moved], found)
        after, rest = found[: n.carry], either(found[n.carry :], later)
        self.flags = [*self.own[1], *rest]
        self.out = of.results([*self.flags, *self.own[1]])
        more = map(sum, (*self.own, *self.out[1:3]))
        counts = Counts(*[a + b for a, b in zip(n, more, strict=True)])
        self.rule = of.derived(self, [partial(self.step, body) for body in of.bodies], counts)
        if of.stacked:
            self.rule.expected = self.joined(outs, moved)
        return after

    def step(self, body: Body, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        parts = consts, *cut(args, self.rule.counts.carry)
        (consts, t_consts), (carry, t_carry), (xs, t_xs) = map(halved, parts, self.own)
        outs, moved = pushed(body, consts, [*carry, *xs], [*t_consts, *t_carry, *t_xs])
        if any(t is not None and not flag for t, flag in zip(moved, self.flags, strict=True)):
            raise Changed(self, either(self.flags, [t is not None for t in moved]))
        return self.joined(outs, moved)

    def joined(self, outs: list[Any], tangents: list[Any]) -> list[Any]:
        """The results of a step, each part of them followed by its tangents."""
        parts = self.of.results(outs), self.of.results(flagged(tangents, outs, self.flags))
        return [x for pair in zip(*parts, strict=True) for x in doubled(*pair)]


class Batches:
    """The bodies of a loop on batches.

    `own` and `out` say which of its arguments and results are batches. `rule` is the loop of these
    bodies, once a step was tried, and `arguments` are its arguments.
    """

    rule: Looped

    def __init__(
        self, loop: Looped, values: list[list[Any]], own: list[Flags], flags: Flags, size: int
    ) -> None:
        self.of, self.size = loop, size
        carry = [
            repeated(x, mine, size) if flag else x
            for x, mine, flag in zip(values[1], own[1], flags, strict=True)
        ]
        self.values = [values[0], carry, values[2]]
        self.own = [own[0], flags, own[2]]

    @property
    def arguments(self) -> list[Any]:
        return [x for part in self.values for x in part]

    def look(self, later: Sequence[bool]) -> Flags:
        of, n = self.of, self.of.counts
        consts, args = of.first(self.values)
        found: Flags = []
        for body in of.bodies:
            outs, batch_flags = self.called(body, consts, args)
            found = either(batch_flags, found)
        after, rest = found[: n.carry], either(found[n.carry :], later)
        self.flags = [*self.own[1], *rest]
        self.out = of.results([*self.flags, *self.own[1]])
        self.rule = of.derived(self, [partial(self.step, body) for body in of.bodies], n)
        if of.stacked:
            self.rule.expected = self.joined(outs, batch_flags)
        return after

    def called(
        self, body: Body, consts: Sequence[Any], args: Sequence[Any]
    ) -> tuple[list[Any], Flags]:
        """The results of a body, and which of them are batches."""
        return of_batch(body, consts, args, [flag for part in self.own for flag in part])

    def step(self, body: Body, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        outs, batch_flags = self.called(body, consts, args)
        if any(mine and not flag for mine, flag in zip(batch_flags, self.flags, strict=True)):
            raise Changed(self, either(self.flags, batch_flags))
        return self.joined(outs, batch_flags)

    def joined(self, outs: list[Any], batch_flags: Flags) -> list[Any]:
        """The results of a step, as batches where one is expected."""
        return [
            repeated(x, mine, self.size) if flag else x
            for x, mine, flag in zip(outs, batch_flags, self.flags, strict=True)
        ]

    def finished(self, outs: list[Any]) -> list[Any]:
        """The results of the loop, from those of `rule`."""
        return outs
