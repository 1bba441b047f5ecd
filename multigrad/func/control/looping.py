"""Loops and branches as operations with their own derivatives (`custom.definition.Definition`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


class Derived:
    """The bodies of a loop on values with tangents, or on batches.

    parts  the arguments of the loop of these bodies: constants, carry, xs
    own    which arguments of the loop have a tangent, or are batches
    out    which of its results (carry, ys, sums, kept carries) have a tangent, or are batches
    rule   the loop of these bodies, once a step was tried

    called(body, consts, args) returns the results of a body, what `joined` needs besides, and which
    of the results have a tangent, or are batches. joined(results, this) returns the results of a
    step. raised(results of `rule`) returns those of the loop, one level further out.
    """

    rule: Looped
    called: Callable[..., tuple[list[Any], list[Any], Flags]]
    joined: Callable[..., list[Any]]
    raised: Callable[..., list[Any]]

    def __init__(self, loop: Looped, parts: list[list[Any]], own: list[Flags]) -> None:
        self.of, self.parts, self.own = loop, parts, own

    @property
    def arguments(self) -> list[Any]:
        consts, carry, xs = self.parts
        return [*consts, *carry, *xs]

    @property
    def counts(self) -> Counts:
        return self.of.counts

    def look(self, later: Sequence[bool]) -> Flags:
        of, n = self.of, self.of.counts.carry
        first = of.first(self.parts)
        found: Flags = []
        for body in of.bodies:
            outs, derived, flags = self.called(body, *first)
            found = either(flags, found)
        self.flags = [*self.own[1], *either(found[n:], later)]
        self.out = of.results([*self.flags, *self.own[1]])
        self.rule = of.derived(self, [partial(self.step, body) for body in of.bodies], self.counts)
        if of.stacked:
            self.rule.expected = self.joined(outs, derived)
        return found[:n]

    def step(self, body: Body, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        outs, derived, flags = self.called(body, consts, args)
        if any(mine and not flag for mine, flag in zip(flags, self.flags, strict=True)):
            raise Changed(self, either(self.flags, flags))
        return self.joined(outs, derived)


class Tangents(Derived):
    """The bodies of a loop with tangents, which follow each part of the arguments and results."""

    def __init__(
        self,
        loop: Looped,
        values: list[list[Any]],
        tangents: list[list[Any]],
        flags: Flags,
        top: Dual,
    ) -> None:
        self.top = top
        tangents = [tangents[0], flagged(tangents[1], values[1], flags), tangents[2]]
        super().__init__(
            loop,
            list(map(doubled, values, tangents)),
            [[t is not None for t in part] for part in tangents],
        )

    @property
    def counts(self) -> Counts:
        more = map(sum, (*self.own, *self.out[1:3]))
        return Counts(*[a + b for a, b in zip(self.of.counts, more, strict=True)])

    def called(
        self, body: Body, consts: Sequence[Any], args: Sequence[Any]
    ) -> tuple[list[Any], list[Any], Flags]:
        parts = consts, *cut(args, len(self.parts[1]))
        (consts, t_consts), (carry, t_carry), (xs, t_xs) = map(halved, parts, self.own)
        outs, moved = pushed(body, consts, [*carry, *xs], [*t_consts, *t_carry, *t_xs])
        return outs, moved, [t is not None for t in moved]

    def joined(self, outs: list[Any], derived: list[Any]) -> list[Any]:
        parts = self.of.results(outs), self.of.results(flagged(derived, outs, self.flags))
        return [x for pair in zip(*parts, strict=True) for x in doubled(*pair)]

    def raised(self, outs: Sequence[Any]) -> list[Any]:
        run, level = self.top._run, self.top._level
        return [
            Dual._make(strip(x), None if t is None else strip(t), run, level)
            for part, flags in zip(self.rule.results(outs), self.out, strict=True)
            if part
            for x, t in zip(*halved(part, flags), strict=True)
        ]


class Batches(Derived):
    """The bodies of a loop on batches."""

    def __init__(
        self, loop: Looped, values: list[list[Any]], own: list[Flags], flags: Flags, top: Batched
    ) -> None:
        self.run, self.size = top._run, top._array.shape[0]
        carry = self.as_batches(values[1], own[1], flags)
        super().__init__(loop, [values[0], carry, values[2]], [own[0], flags, own[2]])

    def as_batches(self, values: Sequence[Any], own: Flags, flags: Flags) -> list[Any]:
        """The values as batches where a flag is set; `own` says which of them are batches."""
        return [
            repeated(x, mine, self.size) if flag else x
            for x, mine, flag in zip(values, own, flags, strict=True)
        ]

    def called(
        self, body: Body, consts: Sequence[Any], args: Sequence[Any]
    ) -> tuple[list[Any], list[Any], Flags]:
        outs, flags = of_batch(body, consts, args, [flag for part in self.own for flag in part])
        return outs, flags, flags

    def joined(self, outs: list[Any], derived: list[Any]) -> list[Any]:
        return self.as_batches(outs, derived, self.flags)

    def raised(self, outs: Sequence[Any]) -> list[Any]:
        stacked = self.of.stacked
        return [
            batch(strip(swapped(x) if stacked and i % 2 else x), self.run) if mine else x
            for i, (part, flags) in enumerate(zip(self.of.results(outs), self.out, strict=True))
            for x, mine in zip(part, flags, strict=False)
        ]


class Looped(Definition):
    """A loop or a branch, for one application: a function of lists of arrays.

    At each level it is applied to arguments of that level. `derived` makes the same loop of other
    bodies, for tangents and batches. `stepping` has a function of its name, which runs it.

    counts    the numbers of its arguments and results
    bodies    the functions body(consts, [*carry, *x]) that it calls; each returns [*carry, *y,
              *terms of sums]
    stacked   whether x and y are slices of arrays with an axis for the steps in front
    saves     whether a level records, so that the values for a pass are among the results
    steps     the number of steps, if it is known
    batches   what carries out its bodies on batches
    first_slices  the arguments of the first step, from the arrays that it goes over
    expected  the results of the first step, from a step that was tried, if they are known
    """

    counts: Counts
    bodies: Sequence[Body]
    stacked = saves = False
    steps = 0
    batches = Batches
    first_slices: Callable[..., list[Any]] = staticmethod(still)
    derived: Callable[..., Looped]
    expected: Sequence[Any] | None = None

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
        # imported late, since it needs multigrad.extend
        from . import stepping

        outs = getattr(stepping, self.__name__)(self, *self.arguments(inner))
        for x in flat:
            if isinstance(x, Tensor) and x._node is not None and x._node.hidden:
                return tuple([mark(wrap(x)) for x in outs])
        return tuple(outs)

    def setup_context(self, ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        ctx.set_materialize_grads(False)

    def at_dual(self, application: Application, values: Sequence[Any], top: Dual) -> Applied:
        inner, tangents = tangents_at(values, top)
        parts, moving = self.arguments(inner), self.arguments(tangents)
        return self.at_level(
            application,
            lambda flags: Tangents(self, parts, moving, flags, top),
            [t is not None for t in moving[1]],
        )

    def at_batch(self, application: Application, values: Sequence[Any], top: Batched) -> Applied:
        top._check()
        own = [isinstance(x, Batched) and x._elem.run is top._elem.run for x in values]
        parts, flags = self.arguments(lowered(values, own)), self.arguments(own)
        if self.stacked:
            parts[2] = [
                swapped(x) if mine else x for x, mine in zip(parts[2], flags[2], strict=True)
            ]
        return self.at_level(
            application, lambda carry: self.batches(self, parts, flags, carry, top), list(flags[1])
        )

    def at_level(
        self, application: Application, make: Callable[[Flags], Derived], flags: Flags
    ) -> Applied:
        """Apply it one level below."""
        self.expected = None

        def run(step: Derived) -> list[Any]:
            rule, arguments = step.rule, step.arguments
            rule.saves = self.saves or any(map(recorded, arguments))
            return step.raised(application.inside(arguments, (), rule).output)

        return Applied(tuple(settled(make, flags, run)), None)


def _bottom(x: Any) -> Any:
    """The value of Tensors without a history: a raw array, or a layer that records operations."""
    while isinstance(x, Tensor):
        x = x._array
    return x


def apply(rule: Looped, flat: Sequence[Any]) -> list[Any]:
    """Apply a loop or a branch to its arguments."""
    rule.saves = any(map(recorded, flat))
    return list(apply_function(rule, tuple(flat), ()))


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
