"""Bodies of loops and branches, and what transformations make of them.

A body is a function `body(consts, args)` of two lists of arrays that returns a list of arrays; the
constants are the same at each step. The arrays may be raw, or layers of any level. Whether an array
of the carry moves, has a cotangent, or is a batch has to be known before a loop begins, and depends
on what a step does with it: `settled` finds out by trying one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from ...backward.gradients import check_gradient
from ...core.element import is_array
from ...core.level import Layer, Run, Switch, outside
from ...core.tensor import element_of, stopped
from ...layers import transforming
from ...layers.batched import batch
from ...layers.batched import repeated as same_for_all
from ...layers.transforming import depends_on, input_of, left_of, reached, within
from ..vmap import _unbatched

Body = Callable[[Sequence[Any], Sequence[Any]], list[Any]]
Flags = list[bool]
T = TypeVar("T")


# Lists


def cut(values: Sequence[Any], *lengths: int) -> list[list[Any]]:
    """Values in parts of these lengths, and the rest."""
    parts, at = [], 0
    for n in lengths:
        parts.append(list(values[at : at + n]))
        at += n
    return [*parts, list(values[at:])]


def there(values: Sequence[Any]) -> list[Any]:
    """Those that are not None."""
    return [x for x in values if x is not None]


def chosen(values: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    return [x for x, flag in zip(values, flags, strict=True) if flag]


def spread(values: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    """The next of `values` for each flag that is set, None for the others."""
    given = iter(values)
    return [next(given) if flag else None for flag in flags]


def filled(values: Sequence[Any], like: Sequence[Any]) -> list[Any]:
    """Derivatives, with zeros for None."""
    return [zeros(x) if t is None else t for t, x in zip(values, like, strict=True)]


# Values


def floating(x: Any) -> bool:
    return is_array(x) and element_of(x).floating


def zeros(x: Any) -> Any:
    """A derivative with respect to `x` that is zero, and a constant of every level."""
    library = element_of(x).library
    with outside():
        return (library.bound if isinstance(x, Layer) else library.xp).zeros_like(stopped(x))


def namespace(*arrays: Any) -> Any:
    """The namespace that computes with these."""
    library = element_of(arrays[0]).library
    return library.bound if any(isinstance(x, Layer) for x in arrays) else library.xp


def added(x: Any, y: Any) -> Any:
    return namespace(x, y).add(x, y)


def still(values: Sequence[Any]) -> list[Any]:
    """Values as constants of every level, for a step that is only looked at."""
    return [stopped(x) for x in values]


def first(xs: Sequence[Any], length: int) -> list[Any]:
    """What a scan goes over at one step, as a constant; zeros where it has no steps."""
    return [
        None
        if x is None
        else stopped(x)[0, ...]
        if length
        else namespace(x).zeros(tuple(x.shape[1:]), dtype=x.dtype)
        for x in xs
    ]


# Steps


class Changed(Exception):
    """A step does what the first one did not: a tangent, a cotangent or a batch is where none
    was.
    """

    def __init__(self, owner: object) -> None:
        super().__init__(owner)
        self.owner = owner


class Step(Protocol):
    """A body for given flags of the carry."""

    def look(self) -> Sequence[bool]:
        """Try a step. Returns which flags it finds set."""


S = TypeVar("S", bound=Step)


def settled(
    make: Callable[[Flags], S], flags: Flags, most: Sequence[bool], run: Callable[[S], T]
) -> T:
    """`run(make(flags))` for the least flags, from these on, that a step leaves as they are, or for
    `most`, where a later step sets others.
    """
    while True:
        step = make(flags)
        after = [a or b for a, b in zip(flags, step.look(), strict=True)]
        if after == flags:
            break
        flags = after
    try:
        return run(step)
    except Changed as error:
        if error.owner is not step:
            raise
    step = make(list(most))
    step.look()
    return run(step)


# Transformations


def pushed(
    body: Body, consts: Sequence[Any], args: Sequence[Any], tangents: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """What a body returns, and the tangents of that, for tangents of the constants and the
    arguments, None for zero.
    """
    values, n = [*consts, *args], len(consts)
    moving = [i for i, t in enumerate(tangents) if t is not None]
    if not moving:
        outs = body(consts, args)
        return outs, [None] * len(outs)
    run = Run("jvp")

    def listed(duals: list[Any]) -> list[Any]:
        full = list(values)
        for i, x in zip(moving, duals, strict=True):
            full[i] = x
        return within(body(full[:n], full[n:]), run)

    return transforming.jvp(listed, [values[i] for i in moving], [tangents[i] for i in moving], run)


class Pull(Run):
    """The transformation that differentiates a body for a pass; `level` is the grad mode of the
    level that the pass is of.
    """

    __slots__ = ("level",)
    level: Switch


class Pulled:
    """A body at some values, recorded, to be asked for gradients once.

    wanted   with respect to which of its constants and arguments
    level    the grad mode of the level that the pass is of
    outs     what it returned
    depends  which of that depends on these
    """

    def __init__(
        self,
        body: Body,
        consts: Sequence[Any],
        args: Sequence[Any],
        wanted: Sequence[bool],
        level: Switch,
    ) -> None:
        values, n = [*consts, *args], len(consts)
        self.run = run = Pull("vjp")
        run.level = level
        self.wanted = wanted
        self.inputs = [input_of(x, run, "vjp") for x in chosen(values, wanted)]

        def called() -> list[Any]:
            given = iter(self.inputs)
            full = [next(given) if want else x for x, want in zip(values, wanted, strict=True)]
            return within(body(full[:n], full[n:]), run)

        self.outs = run.call(called)
        self.depends = [depends_on(x, run) for x in self.outs]

    def gradients(self, cotangents: Sequence[Any]) -> list[Any]:
        """The gradients of the constants and arguments, None for zero and for what is not wanted,
        for cotangents, None for zero.
        """
        pairs = [
            (t, check_gradient(t, g, i))
            for i, (t, g, own) in enumerate(zip(self.outs, cotangents, self.depends, strict=True))
            if own and g is not None
        ]
        if not pairs:
            return [None] * len(self.wanted)
        return spread(
            reached(
                [t for t, _ in pairs], [g for _, g in pairs], self.inputs, self.run, keep=False
            ),
            self.wanted,
        )

    def values(self) -> list[Any]:
        """What the body returned, one layer further in."""
        return [left_of(x, self.run) for x in self.outs]


def of_batch(
    body: Body, consts: Sequence[Any], args: Sequence[Any], own: Sequence[bool]
) -> tuple[list[Any], Flags]:
    """What a body returns where some of its constants and arguments are batches along their first
    axis, and which of it are such.
    """
    run, n = Run("vmap"), len(consts)
    run.randomness = "error"

    def called() -> list[tuple[Any, bool]]:
        full = [batch(x, run) if mine else x for x, mine in zip((*consts, *args), own, strict=True)]
        return [_unbatched(x, run) for x in body(full[:n], full[n:])]

    found = run.call(called)
    return [x for x, _ in found], [mine for _, mine in found]


def repeated(x: Any, mine: bool, size: int) -> Any:
    """A value that is a batch already, or the same for all examples, as a batch."""
    return x if mine else same_for_all(x, size)


def swapped(x: Any) -> Any:
    """An array with its first two axes exchanged: the examples of a batch, and the steps of a
    scan.
    """
    return namespace(x).moveaxis(x, 0, 1)
