"""Bodies of loops and branches under transformations.

A body is a function `body(consts, args)` of two lists of arrays that returns a list of arrays. The
constants are the same at each step. The arrays may be raw, or layers of any level. A loop must know
before it begins which arrays of the carry have a tangent, have a cotangent, or are batches. That
depends on the steps, so `settled` tries one step to find out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from operator import itemgetter
from typing import Any, TypeVar

from ...backward.gradients import check_gradient
from ...core.element import is_array
from ...core.level import Layer, Switch, Transformation, outside
from ...core.tensor import Tensor, detached, element_of, wrap_in
from ...errors import GradientError
from ...layers import transforming
from ...layers.batched import batch
from ...layers.batched import repeated as same_for_all
from ...layers.transforming import depends_on, left_of, namespace, reached, within
from ..vmap import _unbatched

Body = Callable[[Sequence[Any], Sequence[Any]], list[Any]]
Flags = list[bool]
S = TypeVar("S", bound=Any)
T = TypeVar("T")


# Lists


def cut(values: Sequence[Any], *lengths: int) -> list[list[Any]]:
    """The values in parts of these lengths, and the rest as the last part."""
    parts, at = [], 0
    for n in lengths:
        parts.append(list(values[at : at + n]))
        at += n
    return [*parts, list(values[at:])]


def there(values: Sequence[Any]) -> list[Any]:
    """The values that are not None."""
    return [x for x in values if x is not None]


def chosen(values: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    return list(compress(values, flags))


def spread(values: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    """The next of `values` for each flag that is set, and None for the others."""
    remaining = iter(values)
    return [next(remaining) if flag else None for flag in flags]


def flagged(derivatives: Sequence[Any], values: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    """The derivatives whose flags are set, with zeros for None; None for the others."""
    return [
        (zeros(x) if t is None else t) if flag else None
        for t, x, flag in zip(derivatives, values, flags, strict=True)
    ]


def doubled(values: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    """The values, followed by those of their tangents that are not None."""
    return [*values, *there(tangents)]


def halved(values: Sequence[Any], flags: Flags) -> tuple[list[Any], list[Any]]:
    """The inverse of `doubled`, if `flags` says which values have a tangent."""
    return list(values[: len(flags)]), spread(values[len(flags) :], flags)


# Values


def slices(at: int, xs: Sequence[Any]) -> list[Any]:
    return list(map(itemgetter((at, ...)), xs))


def floating(x: Any) -> bool:
    return is_array(x) and element_of(x).floating


def zeros(x: Any) -> Any:
    """A zero derivative with respect to `x`, as a constant of every level."""
    with outside():
        return namespace(x).zeros_like(detached(x))


def totals(xs: list[Any], ys: list[Any]) -> list[Any]:
    """The sums of the values of two lists. None is zero in the second list.

    An empty first list is one of zeros.
    """
    if not xs:
        return ys
    return [x if y is None else namespace(x, y).add(x, y) for x, y in zip(xs, ys, strict=True)]


def columns(parts: Iterable[tuple[int, list[Any]]]) -> Iterable[tuple[Any, ...]]:
    """The columns of numbered lists, in the order of their numbers."""
    return zip(*[part for _, part in sorted(parts, key=itemgetter(0))], strict=True)


def joined(parts: Iterable[tuple[int, list[Any]]]) -> list[Any]:
    """The arrays of numbered lists, with the parts of each of them concatenated."""
    return [
        column[0] if len(column) == 1 else namespace(*column).concat(list(column), axis=0)
        for column in columns(parts)
    ]


def constant(x: Any) -> Any:
    """A value as a constant of every level, for a step that is only tried."""
    while isinstance(x, Tensor):
        x._check()
        x = x._array
    return detached(x)


def still(values: Sequence[Any]) -> list[Any]:
    return list(map(constant, values))


def first(xs: Sequence[Any], length: int, reverse: bool = False) -> list[Any]:
    """The slices of the arrays for the first step, as constants; zeros for a scan without steps."""
    if not length:
        return [namespace(x).zeros(tuple(x.shape[1:]), dtype=x.dtype) for x in xs]
    at = -1 if reverse else 0
    return [constant(x)[at, ...] for x in xs]


# Steps


class Changed(Exception):
    """A step has a tangent, a cotangent or a batch where the first step had none.

    flags  those of the carry and then of the other results, with those that this step has set
    """

    def __init__(self, owner: object, flags: Flags) -> None:
        super().__init__(owner, flags)
        self.owner, self.flags = owner, flags


def settled(make: Callable[[Flags], S], flags: Flags, run: Callable[[S], T]) -> T:
    """`run(make(flags))` for the smallest set of flags, beginning with these, that a step keeps.

    `look` of what `make` returns tries a step. It is given the flags of the other results that
    later steps have set, and returns those of the carry that the step sets. If a later step sets
    other flags, they are added, and the loop begins again.
    """
    later: Flags = []
    while True:
        step = make(flags)
        after = either(flags, step.look(later))
        if after != flags:
            flags = after
            continue
        try:
            return run(step)
        except Changed as error:
            if error.owner is not step:
                raise
            found = error.flags
        n = len(flags)
        more, rest = either(flags, found[:n]), found[n:]
        if (more, rest) == (flags, later):
            raise GradientError(
                "the body of a loop, or its condition, depends on another array at a later step "
                "than at the first one, although its arguments do not tell. Choose between both "
                "results with where(), so that each step depends on both"
            )
        flags, later = more, rest


def either(xs: Sequence[bool], ys: Sequence[bool]) -> Flags:
    """The flags that are set in one of the lists or in both; the second list may be empty."""
    return [x or y for x, y in zip(xs, ys, strict=True)] if ys else list(xs)


# Transformations


def pushed(
    body: Body, consts: Sequence[Any], args: Sequence[Any], tangents: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """The results of a body, and their tangents.

    The tangents of the constants and the arguments are given, with None for zero.
    """
    values, n = [*consts, *args], len(consts)
    moving = [i for i, t in enumerate(tangents) if t is not None]
    if not moving:
        outs = body(consts, args)
        return outs, [None] * len(outs)
    run = Transformation("jvp")

    def listed(duals: list[Any]) -> list[Any]:
        full = list(values)
        for i, x in zip(moving, duals, strict=True):
            full[i] = x
        return within(body(full[:n], full[n:]), run)

    return transforming.jvp(listed, [values[i] for i in moving], [tangents[i] for i in moving], run)


class PassMode(Switch):
    """The grad mode of a pass through a body. `level` is that of the level of the pass."""

    __slots__ = ("level",)

    def __init__(self, level: Switch) -> None:
        self.level = level


def level_of(mode: Switch) -> Switch:
    """The grad mode of the level that a pass, or a pass within passes, belongs to."""
    while isinstance(mode, PassMode):
        mode = mode.level
    return mode


class Pulled:
    """A body, recorded at some values, whose gradients can be computed once.

    wanted   the constants and arguments to differentiate with respect to
    level    the grad mode of the level that the pass belongs to
    outs     the results of the body
    depends  the results that depend on the wanted values
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
        self.run = run = Transformation("vjp", PassMode(level))
        self.wanted = wanted
        self.inputs: list[Tensor] = []
        for i, want in enumerate(wanted):
            if want:
                x = values[i]
                t = wrap_in(run, run.own_level, x._frozen() if isinstance(x, Layer) else x)
                run.inputs.append(t._become_leaf())
                self.inputs.append(t)
                values[i] = t
        self.outs = run.call(lambda: within(body(values[:n], values[n:]), run))
        self.depends = [depends_on(x, run) for x in self.outs]

    def gradients(self, cotangents: Sequence[Any]) -> list[Any]:
        """The gradients of the constants and arguments for these cotangents.

        A cotangent may be None for zero. A gradient is None if it is zero or not wanted.
        """
        seeds = [
            check_gradient(t, g, i) if own and g is not None else None
            for i, (t, g, own) in enumerate(zip(self.outs, cotangents, self.depends, strict=True))
        ]
        return spread(reached(self.outs, seeds, self.inputs, self.run, keep=False), self.wanted)

    def values(self) -> list[Any]:
        """The results of the body, one level below."""
        return [left_of(x, self.run) for x in self.outs]


def of_batch(
    body: Body, consts: Sequence[Any], args: Sequence[Any], own: Sequence[bool]
) -> tuple[list[Any], Flags]:
    """The results of a body on batches along the first axis, and a flag for each result.

    own  which constants and arguments are batches

    The flags say which results are batches.
    """
    run, n = Transformation("vmap"), len(consts)
    run.randomness = "error"

    def called() -> list[tuple[Any, bool]]:
        full = [batch(x, run) if mine else x for x, mine in zip((*consts, *args), own, strict=True)]
        return [_unbatched(x, run) for x in body(full[:n], full[n:])]

    outs = run.call(called)
    return [x for x, _ in outs], [mine for _, mine in outs]


def repeated(x: Any, mine: bool, size: int) -> Any:
    """A value as a batch. It is a batch already, or the same for all examples."""
    return x if mine else same_for_all(x, size)


def swapped(x: Any) -> Any:
    """An array with the examples of a batch and the steps of a scan swapped."""
    return namespace(x).moveaxis(x, 0, 1)
