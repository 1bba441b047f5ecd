"""The loops themselves, on raw arrays: step by step, or as the library's own loop.

The library's own loop is used while the library traces, when it does not know the values yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ...backward.gradients import owned
from ...core.element import Library
from ...core.tensor import element_of
from ...dispatch.creation import default_library
from ...layers.transforming import namespace
from .arguments import control_of, layered
from .bodies import columns, joined, slices, totals
from .replaying import FEWEST, Stepper, other_form, records


def library_of_all(*groups: Sequence[Any]) -> Library:
    """The library of these arrays."""
    return (
        next((element_of(x).library for group in groups for x in group), None) or default_library()
    )


def scan(rule: Any, consts: list[Any], carry: list[Any], xs: list[Any]) -> list[Any]:
    """The last carry, the stacked results, the sums, and the kept carries, if a pass may follow."""
    loop = _Loop(rule, consts, carry, xs)
    library = loop.library
    if not rule.length:
        return loop.without_steps()
    control = control_of(library, consts, carry, xs)
    if control is not None:
        return loop.staged(control)
    if library.mutable and not library.backend.capabilities.lazy and not loop.around:
        x = _room(library, (*carry, *xs)[0], (2,)) if carry or xs else library.xp.empty((2,))
        if library.shares_memory(library.xp, x[0, ...], x):  # a slice can be written
            return loop.in_place()
    return loop.anew()


class _Loop:
    """One run of a scan.

    kept    the steps before which the carry is kept, or None
    around  whether an enclosing transformation records the loop
    every   whether the carry is kept before each step
    """

    def __init__(self, rule: Any, consts: list[Any], carry: list[Any], xs: list[Any]) -> None:
        self.rule, self.consts, self.carry, self.xs = rule, consts, carry, xs
        self.kept: Sequence[int] | None = rule.kept if rule.saves else None
        self.library = library = library_of_all(consts, carry, xs)
        self.around = layered(consts, carry, xs)
        self.every = self.kept is not None and len(self.kept) == rule.length
        self.step = Stepper(
            rule.body,
            library,
            rule.counts.sums,
            records(library, rule.length) and not self.around,
            rule.doubted,
            rule.expected,
        )
        rule.expected = None

    def in_place(self) -> list[Any]:
        """Take one step after the other, and write each result to its final place.

        The carry alternates between two places. If it is kept before each step, it moves from one
        of these places to the next.
        """
        rule, library, step, every = self.rule, self.library, self.step, self.every
        write, xp = library.write, library.xp
        n, length, kept = rule.counts, rule.length, self.kept or ()
        stacks = [] if self.kept is None else [_room(library, x, (len(kept),)) for x in self.carry]
        ends = [_room(library, x, ()) for x in self.carry]
        spare = [] if every else [_room(library, x, ()) for x in self.carry]
        places = range(length)[::-1] if rule.reverse else range(length)
        # chosen so that the last carry is in `ends`
        now = slices(places[0], stacks) if every else (ends, spare)[length % 2]
        for place, x in zip(now, self.carry, strict=True):
            write(xp, place, x)
        ys: list[Any] = []
        sums: list[Any] = []
        for number, at in enumerate(places):
            if not every and number in kept:
                for stack, x in zip(stacks, now, strict=True):
                    write(xp, stack[rule.kept_at(number), ...], x)
            args = [*now, *slices(at, self.xs)]
            remaining = length - 1 - number
            if every and remaining:
                after = slices(places[number + 1], stacks)
            else:
                after = (ends, spare)[remaining % 2]
            if number:
                step(self.consts, args, [*after, *slices(at, ys), *sums])
            else:
                outs = step.recorded(self.consts, args)
                ys = [_room(library, x, (length,)) for x in outs[n.carry : n.carry + n.ys]]
                sums = [xp.zeros_like(x) for x in outs[n.carry + n.ys :]]
                targets = [*after, *slices(at, ys), *sums]
                step.store(targets, outs)
                step.bind(targets)
                del outs, targets
            now = after
        return [*ends, *ys, *sums, *stacks]

    def anew(self) -> list[Any]:
        """Take one step after the other, each of which makes new arrays."""
        rule, step, carry, kept = self.rule, self.step, self.carry, self.kept or ()
        ys: list[tuple[int, list[Any]]] = []
        stacks: list[tuple[int, list[Any]]] = []
        sums: list[Any] = []
        for number in range(rule.length):
            at = rule.place(number)
            if number in kept:
                stacks.append((rule.kept_at(number), carry))
            args = [*carry, *slices(at, self.xs)]
            if number:
                outs = step(self.consts, args)
            else:
                outs = step.recorded(self.consts, args)
                control = control_of(self.library, outs)
                if control is not None:  # the body captures traced arrays
                    return self.staged(control)
                step.bind(None)
            carry, y, terms = rule.results(outs)[:3]
            ys.append((at, y))
            sums = totals(sums, terms)
        del args, outs, y
        return [
            *_own(carry),
            *_stacked(ys),
            *sums,
            *(_stacked(stacks) if self.kept is not None else []),
        ]

    def without_steps(self) -> list[Any]:
        """Call the body once on zeros, to determine the form of the results."""
        xp, carry = self.library.xp, self.carry
        args = [*carry, *self.rule.first_slices(self.xs)]
        _, ys, sums, _ = self.rule.results(self.step.plain(self.consts, args))
        empty = [*ys, *(carry if self.kept is not None else ())]
        stacks = [xp.zeros((0, *x.shape), dtype=x.dtype) for x in empty]
        zeros = [xp.zeros(tuple(x.shape), dtype=x.dtype) for x in sums]
        return [*_own(carry[:]), *stacks[: len(ys)], *zeros, *stacks[len(ys) :]]

    def staged(self, control: Any) -> list[Any]:
        """The library's own scans, one between each two kept carries."""
        rule, xp, kept, carry = self.rule, self.library.xp, self.kept, self.carry
        plain = self.step.plain
        outs = plain(self.consts, [*carry, *rule.first_slices(self.xs)])
        sums = [xp.zeros_like(x) for x in rule.results(outs)[2]]

        def one(state: Any, x: Any) -> Any:
            carry, sums = state
            after, ys, terms, _ = rule.results(plain(self.consts, [*carry, *x]))
            total = [a + b for a, b in zip(sums, terms, strict=True)]
            return (after, total), [*ys, *(carry if self.every else ())]

        ends = [0, rule.length] if self.every or not kept else [*kept, rule.length]
        parts: list[tuple[int, list[Any]]] = []
        stacks: list[list[Any]] = []
        for start, stop in pairwise(ends):
            stacks.append(carry)
            xs = rule.part(self.xs, start, stop)
            (carry, sums), ys = control.scan(one, (carry, sums), xs, stop - start, rule.reverse)
            parts.append((rule.place(start), ys))
        ys = joined(parts)
        if kept is not None and not self.every:
            ys += [xp.stack(list(x)) for x in zip(*stacks, strict=True)]
        n = rule.counts.ys
        return [*carry, *ys[:n], *sums, *ys[n:]]


def _room(library: Library, x: Any, axes: tuple[int, ...]) -> Any:
    """Empty arrays of the form of `x`."""
    return library.xp.empty((*axes, *x.shape), dtype=x.dtype, device=library.device(library.xp, x))


def _stacked(parts: list[tuple[int, list[Any]]]) -> list[Any]:
    """The columns of numbered lists, as arrays with an axis for the lists in front.

    Raises an error if the arrays of a column differ in shape or dtype.
    """
    by_array = columns(parts)
    parts.clear()
    stacks = []
    for column in by_array:
        for x in column:
            if tuple(x.shape) != tuple(column[0].shape) or x.dtype != column[0].dtype:
                raise other_form(x, column[0])
        stacks.append(namespace(*column).stack(list(column)))
    return stacks


def _own(values: list[Any]) -> list[Any]:
    """Arrays that nothing else references."""
    values.reverse()
    return [owned(values, None) for _ in range(len(values))]


def while_loop(rule: Any, consts: list[Any], carry: list[Any], _: list[Any]) -> list[Any]:
    """The carry when the condition no longer holds."""
    library = library_of_all(consts, carry)
    around = layered(consts, carry)
    holds, called = (
        Stepper(body, library, 0, records(library, FEWEST) and not around)
        for body in (rule.condition, *rule.bodies)
    )

    control = control_of(library, consts, carry)
    steps = 0
    while control is None:
        # a loop that ends soon is not recorded
        held = (holds if steps > FEWEST else holds.plain)(consts, carry)
        if steps or (control := control_of(library, held)) is None:
            if not bool(held[0]):
                return _own(carry[:])
            carry = (called if steps > FEWEST else called.plain)(consts, carry)
            # the body may capture traced arrays
            control = None if steps else control_of(library, carry)
            steps += 1
    return list(
        control.while_loop(
            lambda state: holds.plain(consts, state)[0],
            lambda state: called.plain(consts, state),
            carry,
        )
    )


def switch(rule: Any, consts: list[Any], _: list[Any], args: list[Any]) -> list[Any]:
    """The result of the body whose number is the first of the constants."""
    index = consts[0]
    library = library_of_all(consts[1:], args, [index])
    control = library.backend.kernel("control")(library.xp, (*consts, *args))
    xp, n = library.xp, len(rule.bodies)
    number = xp.astype(index, xp.asarray(0).dtype)
    number = xp.minimum(xp.maximum(number, xp.zeros_like(number)), xp.full_like(number, n - 1))
    steppers = [Stepper(body, library, 0, False) for body in rule.bodies]
    return list(
        control.switch(
            number,
            [lambda args, stepper=stepper: stepper.plain(*args) for stepper in steppers],
            (consts, args),
        )
    )
