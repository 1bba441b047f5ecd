"""The loops themselves, on raw arrays: step by step, or as the library's own loop.

The library's own loop is used while the library traces, when it does not know the values yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ...backward.gradients import owned
from ...core.element import Library
from ...core.level import Layer
from ...core.tensor import element_of
from ...dispatch.creation import default_library
from .bodies import added
from .replaying import FEWEST, Stepper, layered, other_form, records


def library_of_all(*groups: Sequence[Any]) -> Library:
    """The library of these arrays."""
    return (
        next((element_of(x).library for group in groups for x in group), None) or default_library()
    )


def scan(
    rule: Any, consts: list[Any], carry: list[Any], xs: list[Any], kept: Sequence[int] | None
) -> list[Any]:
    """The last carry, the stacked results, the sums, and the carries before the steps in `kept`.

    Without `kept`, there are no such carries.
    """
    n, length = rule.counts, rule.length
    library = library_of_all(consts, carry, xs)
    around = layered(consts, carry, xs)
    called = Stepper(
        rule.body, library, n.sums, records(library, length) and not around, rule.doubted
    )
    if not length:
        return _no_steps(library, called, n, consts, carry, xs, kept)
    control = (
        None if around else library.backend.kernel("control")(library.xp, (*consts, *carry, *xs))
    )
    if control is not None:
        return _staged(control, rule, called, library, consts, carry, xs, kept)
    if (
        library.mutable
        and not library.backend.capabilities.lazy
        and not around
        and _views(library, xs, carry)
    ):
        return _in_place(rule, called, library, consts, carry, xs, kept)
    return _anew(rule, called, library, consts, carry, xs, kept, around)


def _in_place(
    rule: Any,
    called: Stepper,
    library: Library,
    consts: list[Any],
    carry: list[Any],
    xs: list[Any],
    kept: Sequence[int] | None,
) -> list[Any]:
    """Take one step after the other, and write each result to its final place.

    The carry alternates between two places. If it is kept before each step, it moves from one of
    these places to the next.
    """
    n, length = rule.counts, rule.length
    every = kept is not None and len(kept) == length
    stacks = [_room(library, x, (len(kept),)) for x in carry] if kept is not None else []
    ends = [_room(library, x, ()) for x in carry]
    spare = [] if every else [_room(library, x, ()) for x in carry]
    numbers = kept or ()
    places = range(length)[::-1] if rule.reverse else range(length)
    # chosen so that the last carry is in `ends`
    now = [stack[places[0], ...] for stack in stacks] if every else spare if length % 2 else ends
    for place, x in zip(now, carry, strict=True):
        library.write(library.xp, place, x)
    ys: list[Any] = []
    sums: list[Any] = []
    for number, at in enumerate(places):
        if not every and number in numbers:
            for stack, x in zip(stacks, now, strict=True):
                library.write(library.xp, stack[rule.kept_at(number), ...], x)
        args = [*now, *[x[at, ...] for x in xs]]
        if every:
            after = (
                ends
                if number == length - 1
                else [stack[places[number + 1], ...] for stack in stacks]
            )
        else:
            after = ends if now is spare else spare
        if number:
            called.into([*after, *[y[at, ...] for y in ys], *sums], consts, args)
        else:
            outs = called.recorded(consts, args)
            ys = [_room(library, x, (length,)) for x in outs[n.carry : n.carry + n.ys]]
            sums = [library.xp.zeros_like(x) for x in outs[n.carry + n.ys :]]
            targets = [*after, *[y[at, ...] for y in ys], *sums]
            called.store(targets, outs)
            called.bind(targets)
            del outs, targets
        now = after
    return [*ends, *ys, *sums, *stacks]


def _views(library: Library, xs: list[Any], carry: list[Any]) -> bool:
    """Whether a slice of an array is known to be a view that can be written."""
    x = _room(library, (*carry, *xs, None)[0], (2,)) if carry or xs else library.xp.empty((2,))
    return bool(library.shares_memory(library.xp, x[0, ...], x))


def _room(library: Library, x: Any, axes: tuple[int, ...]) -> Any:
    """Empty arrays of the form of `x`."""
    return library.xp.empty((*axes, *x.shape), dtype=x.dtype, device=library.device(library.xp, x))


def _anew(
    rule: Any,
    called: Stepper,
    library: Library,
    consts: list[Any],
    carry: list[Any],
    xs: list[Any],
    kept: Sequence[int] | None,
    around: bool,
) -> list[Any]:
    """Take one step after the other, each of which makes new arrays."""
    n = rule.counts
    ys: list[tuple[int, list[Any]]] = []
    stacks: list[tuple[int, list[Any]]] = []
    sums: list[Any] = []
    numbers = kept or ()
    for number in range(rule.length):
        at = rule.place(number)
        if number in numbers:
            stacks.append((rule.kept_at(number), carry))
        args = [*carry, *[x[at, ...] for x in xs]]
        if number:
            outs = called(consts, args)
        else:
            outs = called.recorded(consts, args)
            control = None if around else library.backend.kernel("control")(library.xp, outs)
            if control is not None:  # the body captures traced arrays
                return _staged(control, rule, called, library, consts, carry, xs, kept)
            called.bind(None)
        carry, y, terms = outs[: n.carry], outs[n.carry : n.carry + n.ys], outs[n.carry + n.ys :]
        ys.append((at, y))
        sums = [added(a, b) for a, b in zip(sums, terms, strict=True)] if sums else terms
    del args, outs, y
    return [
        *_own(carry),
        *_stacked(library, ys),
        *sums,
        *(_stacked(library, stacks) if kept is not None else []),
    ]


def _stacked(library: Library, parts: list[tuple[int, list[Any]]]) -> list[Any]:
    """The columns of numbered lists, as arrays with an axis for the lists in front.

    Raises an error if the arrays of a column differ in shape or dtype.
    """
    columns = zip(*[part for _, part in sorted(parts, key=lambda part: part[0])], strict=True)
    parts.clear()
    stacks = []
    for column in columns:
        for x in column:
            if tuple(x.shape) != tuple(column[0].shape) or x.dtype != column[0].dtype:
                raise other_form(x, column[0])
        stacks.append(
            (library.bound if any(isinstance(x, Layer) for x in column) else library.xp).stack(
                list(column)
            )
        )
    return stacks


def _own(values: list[Any]) -> list[Any]:
    """Arrays that nothing else references."""
    values.reverse()
    return [owned(values, None) for _ in range(len(values))]


def _no_steps(
    library: Library,
    called: Stepper,
    n: Any,
    consts: list[Any],
    carry: list[Any],
    xs: list[Any],
    kept: Sequence[int] | None,
) -> list[Any]:
    """A scan without steps.

    It calls the body once on zeros to determine the form of the results.
    """
    xp = library.xp
    outs = called.plain(
        consts, [*carry, *[xp.zeros(tuple(x.shape[1:]), dtype=x.dtype) for x in xs]]
    )
    ys, sums = outs[n.carry : n.carry + n.ys], outs[n.carry + n.ys :]
    empty = [[xp.zeros((0, *x.shape), dtype=x.dtype) for x in part] for part in (ys, carry)]
    zeros = [xp.zeros(tuple(x.shape), dtype=x.dtype) for x in sums]
    return [*_own(carry[:]), *empty[0], *zeros, *(empty[1] if kept is not None else [])]


def _staged(
    control: Any,
    rule: Any,
    called: Stepper,
    library: Library,
    consts: list[Any],
    carry: list[Any],
    xs: list[Any],
    kept: Sequence[int] | None,
) -> list[Any]:
    """The library's own scans, one between each two kept carries."""
    n, length, xp = rule.counts, rule.length, library.xp
    each = kept is not None and len(kept) == length
    outs = called.plain(consts, [*carry, *[x[rule.place(0), ...] for x in xs]])
    sums = [xp.zeros_like(x) for x in outs[n.carry + n.ys :]]

    def one(state: Any, x: Any) -> Any:
        carry, sums = state
        outs = called.plain(consts, [*carry, *x])
        ys = outs[n.carry : n.carry + n.ys] + (list(carry) if each else [])
        return (
            outs[: n.carry],
            [a + b for a, b in zip(sums, outs[n.carry + n.ys :], strict=True)],
        ), ys

    ends = [0, length] if each or not kept else [*kept, length]
    parts: list[tuple[int, list[Any]]] = []
    stacks: list[list[Any]] = []
    for start, stop in pairwise(ends):
        stacks.append(carry)
        low, high = sorted((rule.place(start), rule.place(stop - 1)))
        (carry, sums), ys = control.scan(
            one, (carry, sums), [x[low : high + 1, ...] for x in xs], stop - start, rule.reverse
        )
        parts.append((low, ys))
    ys = [
        xp.concat(list(y)) if len(y) > 1 else y[0]
        for y in zip(*[ys for _, ys in sorted(parts, key=lambda part: part[0])], strict=True)
    ]
    if kept is not None and not each:
        ys += [xp.stack(list(x)) for x in zip(*stacks, strict=True)]
    return [*carry, *ys[: n.ys], *sums, *ys[n.ys :]]


def while_loop(rule: Any, consts: list[Any], carry: list[Any]) -> list[Any]:
    """The carry when the condition no longer holds."""
    library = library_of_all(consts, carry)
    around = layered(consts, carry)
    holds, called = (
        Stepper(body, library, 0, records(library, FEWEST) and not around)
        for body in (rule.condition, rule.body)
    )

    def traced(values: Sequence[Any]) -> Any:
        return None if around else library.backend.kernel("control")(library.xp, values)

    control = traced((*consts, *carry))
    steps = 0
    while control is None:
        # a loop that ends soon is not recorded
        held = (holds if steps > FEWEST else holds.plain)(consts, carry)
        if steps or (control := traced(held)) is None:
            if not bool(held[0]):
                return _own(carry[:])
            carry = (called if steps > FEWEST else called.plain)(consts, carry)
            # the body may capture traced arrays
            control = None if steps else traced(carry)
            steps += 1
    return list(
        control.while_loop(
            lambda state: holds.plain(consts, state)[0],
            lambda state: called.plain(consts, state),
            carry,
        )
    )


def switch(rule: Any, index: Any, consts: list[Any], args: list[Any]) -> list[Any]:
    """The result of the body with that index."""
    library = library_of_all(consts, args, [index])
    control = library.backend.kernel("control")(library.xp, (index, *consts, *args))
    xp, n = library.xp, len(rule.bodies)
    number = xp.astype(index, xp.asarray(0).dtype)
    number = xp.minimum(xp.maximum(number, xp.zeros_like(number)), xp.full_like(number, n - 1))
    branches = [Stepper(body, library, 0, False) for body in rule.bodies]
    return list(
        control.switch(
            number,
            [lambda given, branch=branch: branch.plain(*given) for branch in branches],
            (consts, args),
        )
    )
