"""A scan at each level: an operation with a derivative of its own.

Its tangents, batches and gradients are scans of other bodies. Its arguments are the constants, the
carry and the arrays that it goes over. Its results are the last carry, the stacked results of the
steps, sums over the steps, and, if a pass may follow, the kept carries. A gradient with respect to
a constant is a sum. It could be a part of the carry, but then a second derivative would keep it at
each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

from ...core.level import innermost
from ...core.tensor import Tensor, element_of, strip
from ...custom.definition import Applied, new_ctx_class
from ...custom.function import Application
from ...errors import GradientError
from ...layers.batched import Batched
from ...layers.dual import Dual
from .bodies import (
    Body,
    Changed,
    Flags,
    Pulled,
    added,
    chosen,
    cut,
    either,
    filled,
    first,
    floating,
    namespace,
    of_batch,
    pushed,
    repeated,
    settled,
    spread,
    still,
    swapped,
    there,
    zeros,
)
from .checkpoints import Checkpoint, backwards, positions
from .looping import (
    Looped,
    apply,
    batched,
    batches_at,
    dual,
    inside,
    recorded_by,
    tangents_at,
    unrecorded,
)


class Counts(NamedTuple):
    """The numbers of a scan's arguments and results.

    consts  constants
    carry   arrays of the carry
    xs      arrays that it goes over
    ys      stacked results
    sums    sums over the steps
    """

    consts: int
    carry: int
    xs: int
    ys: int
    sums: int


class Scan(Looped):
    """A scan over `length` steps, forwards or backwards.

    body  body(consts, [*carry, *x]) returns [*carry, *y, *terms of sums]
    what  the names of y in messages
    """

    __name__ = "scan"
    doubted = True  # whether it is the loop itself, as opposed to a part of the way back
    _backward_cls = new_ctx_class("scan")

    def __init__(
        self,
        body: Body,
        counts: Counts,
        length: int,
        reverse: bool,
        checkpoint: Checkpoint = "step",
        what: Sequence[str] = (),
    ) -> None:
        self.body, self.counts, self.reverse, self.checkpoint, self.what = (
            body,
            counts,
            reverse,
            checkpoint,
            what,
        )
        self.length = self.steps = length

    def setup_context(self, ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        super().setup_context(ctx, inputs, output)
        consts, _, xs = self.arguments(inputs)
        ctx.save_for_backward(*consts, *xs, *self.results(output)[3])

    def arguments(self, flat: Sequence[Any]) -> list[list[Any]]:
        """The constants, the carry, and the arrays that it goes over."""
        return cut(flat, self.counts.consts, self.counts.carry)

    def results(self, flat: Sequence[Any]) -> list[list[Any]]:
        """The carry, the stacked results, the sums, and the kept carries, if any."""
        return cut(flat, self.counts.carry, self.counts.ys, self.counts.sums)

    def run(self, flat: list[Any]) -> list[Any]:
        # imported late, since it needs multigrad.extend
        from . import stepping

        kept = self.kept if self.saves else None
        consts, carry, xs = self.arguments(flat)
        return stepping.scan(self, consts, carry, xs, kept)

    def at_dual(self, application: Application, values: Sequence[Any], top: Dual) -> Applied:
        inner, tangents = tangents_at(values, top)
        parts, moving = self.arguments(inner), self.arguments(tangents)

        def run(step: _Tangents) -> list[Any]:
            given = [
                *doubled(parts[0], moving[0]),
                *parts[1],
                *chosen(filled(moving[1], parts[1]), step.own[1]),
                *doubled(parts[2], moving[2]),
            ]
            outs = step.scan.results(inside(application, step.scan, given))[
                : 4 if self.saves else 3
            ]
            return [
                dual(x, t, top)
                for part, flags in zip(outs, step.out, strict=False)
                for x, t in zip(*halved(part, flags), strict=True)
            ]

        outputs = settled(
            lambda flags: _Tangents(self, parts, moving, flags),
            [t is not None for t in moving[1]],
            run,
        )
        return Applied(tuple(outputs), None)

    def at_batch(self, application: Application, values: Sequence[Any], top: Batched) -> Applied:
        inner, own = batches_at(values, top)
        size = top._array.shape[0]
        parts, mine = self.arguments(inner), self.arguments(own)
        parts[2] = [swapped(x) if own else x for x, own in zip(parts[2], mine[2], strict=True)]

        def run(step: _Batches) -> list[Any]:
            carry = [
                repeated(x, own, size) if flag else x
                for x, own, flag in zip(parts[1], mine[1], step.own[1], strict=True)
            ]
            carry, ys, sums, kept = self.results(
                inside(application, step.scan, [*parts[0], *carry, *parts[2]])
            )
            kept = kept if self.saves else []
            ys = [swapped(x) if flag else x for x, flag in zip(ys, step.out[1], strict=True)]
            kept = [swapped(x) if flag else x for x, flag in zip(kept, step.own[1], strict=False)]
            flags = [*step.own[1], *step.out[1], *step.out[2], *step.own[1]]
            return [
                batched(x, flag, top)
                for x, flag in zip([*carry, *ys, *sums, *kept], flags, strict=False)
            ]

        outputs = settled(
            lambda flags: _Batches(self, parts, mine, flags, size),
            list(mine[1]),
            run,
        )
        return Applied(tuple(outputs), None)

    def backward(self, ctx: Any, *grads: Any) -> tuple[Any, ...]:
        if not self.length:
            return (*[None] * self.counts.consts, *self.results(grads)[0], *[None] * self.counts.xs)
        back = _Back(self, ctx, grads)
        start = [x[self.kept_at(0), ...] for x in back.kept]
        flags = [
            *back.need[1],
            *[a is not None or b is not None for a, b in zip(back.g[0], back.g[3], strict=True)],
        ]
        return settled(
            lambda flags: _Gradients(self, back, start, flags),
            flags,
            back.gradients,
        )

    @cached_property
    def kept(self) -> Sequence[int]:
        """The steps before which the carry is kept."""
        return positions(self.checkpoint, self.length)

    def kept_at(self, number: int) -> int:
        """The index of the carry before this step in the stacks of kept carries."""
        return self.place(number) if len(self.kept) == self.length else self.kept.index(number)

    def place(self, number: int) -> int:
        """The index of this step in the arrays that the scan goes over."""
        return self.length - 1 - number if self.reverse else number


def doubled(values: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    """The values, followed by those of their tangents that are not None."""
    return [*values, *there(tangents)]


def halved(values: Sequence[Any], flags: Flags) -> tuple[list[Any], list[Any]]:
    """The inverse of `doubled`, if `flags` says which values have a tangent."""
    return list(values[: len(flags)]), spread(values[len(flags) :], flags)


class _Tangents:
    """The step of a scan with tangents.

    own  which of its arguments (constants, carry, xs) have a tangent
    out  which of its results (carry, ys, sums, kept carries) have a tangent
    """

    def __init__(
        self, scan: Scan, parts: list[list[Any]], moving: list[list[Any]], flags: Flags
    ) -> None:
        self.of, n = scan, scan.counts
        self.own = [[t is not None for t in moving[0]], flags, [t is not None for t in moving[2]]]
        self.start = still(parts[0]), [*still(parts[1]), *first(parts[2], scan.length)]
        self.moving = [
            *still(moving[0]),
            *still(spread(chosen(filled(moving[1], parts[1]), flags), flags)),
            *first(moving[2], scan.length),
        ]
        self.out = [flags, [False] * n.ys, [False] * n.sums, flags]

    def look(self, later: Sequence[bool]) -> Flags:
        n = self.of.counts
        found = [t is not None for t in pushed(self.of.body, *self.start, self.moving)[1]]
        out_flags = self.of.results([*found[: n.carry], *either(found[n.carry :], later)])
        self.out[1:3] = out_flags[1:3]
        self.flags = [*self.own[1], *out_flags[1], *out_flags[2]]
        more = map(sum, (*self.own, *out_flags[1:3]))
        counts = Counts(*[a + b for a, b in zip(n, more, strict=True)])
        self.scan = Scan(self, counts, self.of.length, self.of.reverse, self.of.checkpoint)
        return out_flags[0]

    def __call__(self, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        carry, xs = cut(args, self.scan.counts.carry)
        pairs = [
            halved(values, flags)
            for values, flags in zip((consts, carry, xs), self.own, strict=True)
        ]
        outs, moved = pushed(
            self.of.body,
            pairs[0][0],
            [*pairs[1][0], *pairs[2][0]],
            [t for _, tangents in pairs for t in tangents],
        )
        if any(t is not None and not flag for t, flag in zip(moved, self.flags, strict=True)):
            raise Changed(self, either(self.flags, [t is not None for t in moved]))
        moved = [
            (zeros(x) if t is None else t) if flag else None
            for x, t, flag in zip(outs, moved, self.flags, strict=True)
        ]
        return [
            x
            for pair in zip(self.of.results(outs), self.of.results(moved), strict=True)
            for x in doubled(*pair)
        ]


class _Batches:
    """The step of a scan on batches.

    `own` and `out` say which of its arguments and results are batches.
    """

    def __init__(
        self, scan: Scan, parts: list[list[Any]], mine: list[Flags], flags: Flags, size: int
    ) -> None:
        self.of, self.size = scan, size
        self.own = [mine[0], flags, mine[2]]
        carry = [
            repeated(x, own, size) if flag else x
            for x, own, flag in zip(still(parts[1]), mine[1], flags, strict=True)
        ]
        self.start = still(parts[0]), [*carry, *first(parts[2], scan.length)]
        self.scan = Scan(self, scan.counts, scan.length, scan.reverse, scan.checkpoint, scan.what)

    def look(self, later: Sequence[bool]) -> Flags:
        n = self.of.counts.carry
        _, found = of_batch(self.of.body, *self.start, [*self.own[0], *self.own[1], *self.own[2]])
        self.out = self.of.results([*found[:n], *either(found[n:], later)])
        self.flags = [*self.own[1], *self.out[1], *self.out[2]]
        return self.out[0]

    def __call__(self, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        outs, batch_flags = of_batch(
            self.of.body, consts, args, [*self.own[0], *self.own[1], *self.own[2]]
        )
        if any(mine and not flag for mine, flag in zip(batch_flags, self.flags, strict=True)):
            raise Changed(self, either(self.flags, batch_flags))
        return [
            repeated(x, mine, self.size) if flag else x
            for x, mine, flag in zip(outs, batch_flags, self.flags, strict=True)
        ]


class _Gradients:
    """The step of the way back, from the cotangents after a step to those before it.

    The cotangents after a step are those of the carry and of the results of the step.

    active  which arrays of the carry depend on the differentiated values
    cot     which of these have a cotangent
    behind  whether the step receives the carry after it, and so need not compute it
    """

    def __init__(self, scan: Scan, back: _Back, start: list[Any], flags: Flags) -> None:
        self.of, self.back = scan, back
        self.active, cot = cut(flags, scan.counts.carry)
        self.cot = [a and b for a, b in zip(self.active, cot, strict=True)]
        self.flags, self.behind = flags, False
        self.wanted = [*back.need[0], *self.active, *back.need[2]]
        self.start = start

    def look(self, later: Sequence[bool]) -> Flags:
        back = self.back
        args = [*still(self.start), *[x[self.of.place(0), ...] for x in still(back.xs)]]
        p = Pulled(self.of.body, still(back.consts), args, self.wanted, back.level)
        given = [*self.cot, *[g is not None for g in (*back.g[1], *back.g[2])]]
        outs = p.values()
        back.check(outs, 1)
        grads = p.gradients(
            [
                zeros(x) if flag and floating(x) else None
                for x, flag in zip(outs, given, strict=True)
            ]
        )
        carry = cut(grads, len(back.consts), len(self.start))[1]
        return [*p.depends[: len(self.start)], *[g is not None for g in carry]]

    def __call__(self, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        """Return the cotangents before a step of the loop, given those after it.

        consts  [*constants, *cotangents of sums]
        args    [*cotangents of the carry, *carry after the step, *carry before it, *x,
                *cotangents of y, *cotangents of the kept carries]
        """
        n, back = self.of.counts, self.back
        own, g_sums = cut(consts, n.consts)
        g, behind, carry, x, g_ys, g_kept = cut(
            args, sum(self.cot), n.carry * self.behind, n.carry, n.xs, len(there(back.g[1]))
        )
        p = Pulled(self.of.body, own, [*carry, *x], self.wanted, back.level)
        if behind:
            _known(p.values(), behind)
        g_ys, g_sums = (
            spread(values, [t is not None for t in like])
            for values, like in ((g_ys, back.g[1]), (g_sums, back.g[2]))
        )
        grads = p.gradients([*spread(g, self.cot), *g_ys, *g_sums])
        by_const, by_carry, by_x = cut(grads, n.consts, n.carry)
        found = [*p.depends[: n.carry], *[t is not None for t in by_carry]]
        if any(a and not b for a, b in zip(found, [*self.active, *self.cot], strict=True)):
            raise Changed(self, either(self.flags, found))
        by_carry = chosen(filled(by_carry, carry), self.cot)
        if g_kept:
            kept = iter(g_kept)
            by_carry = [
                added(t, next(kept)) if k is not None else t
                for t, k in zip(by_carry, chosen(back.g[3], self.cot), strict=True)
            ]
        return [
            *by_carry,
            *(carry if behind else ()),
            *chosen(filled(by_x, x), back.need[2]),
            *chosen(filled(by_const, own), back.need[0]),
        ]


def _known(outs: Sequence[Any], values: Sequence[Any]) -> None:
    """Let the recorded program of the way back use results that the loop has computed.

    The body would compute them again.
    """
    from ...compiling.recorded import Recorded

    for x, y in zip(outs, values, strict=False):
        if isinstance(x, Recorded) and isinstance(y, Recorded):
            x.known(y)


def _value(x: Any) -> Any:
    """The raw array in a Tensor that no level differentiates; another value itself."""
    while isinstance(x, Tensor) and x._node is None:
        x = x.array
    return x


def _both(x: Any, y: Any) -> tuple[Any, Any]:
    """Two arrays of one shape as batches of the same transformations, if one of them is a batch."""
    same = tuple(x.shape) == tuple(y.shape) and x.dtype == y.dtype
    if not same or tuple(innermost(x).shape) == tuple(innermost(y).shape):
        return x, y
    xp = namespace(x, y)
    true = xp.ones_like(y, dtype=xp.bool)
    return xp.where(true, x, y), xp.where(true, y, x)


class _Back:
    """The way back through a scan, as scans of the gradient of its body.

    need  which constants, arrays of the carry, and arrays that it goes over are differentiated
    g     the cotangents of the carry, the stacked results, the sums and the kept carries, None for
          zero
    """

    def __init__(self, scan: Scan, ctx: Any, grads: Sequence[Any]) -> None:
        n = scan.counts
        self.of = scan
        self.level = recorded_by(ctx)
        self.consts, self.xs, self.kept = cut(
            [unrecorded(x) for x in ctx.saved_tensors], n.consts, n.xs
        )
        self.need = scan.arguments(ctx.needs_input_grad)
        self.g = scan.results(grads)
        self.g[3] = self.g[3] or [None] * n.carry

    def check(self, outs: Sequence[Any], number: int) -> None:
        """Raise GradientError if the body computes another carry before this step than in the loop.

        It compares the carry only if it was kept and is known.
        """
        from .replaying import alike

        if number not in self.of.kept:
            return
        at = self.of.kept_at(number)
        for x, kept in zip(outs, still(self.kept), strict=False):
            x, y = _both(x, kept[at, ...])
            if not alike([innermost(x)], [innermost(y)], element_of(x).library):
                raise GradientError(
                    "scan: the body computes another result in the backward pass than when the "
                    "loop ran, for the same arguments: it uses a value that has changed "
                    "since, such as a variable of a loop around it, or an array that was "
                    "written. Pass it as a part of the carry, or bind it: lambda c, x, k=k: ..."
                )

    def gradients(self, step: _Gradients) -> tuple[Any, ...]:
        """The gradients of all arguments."""
        scan = self.of
        self.sums: list[Any] = []
        self.parts: list[tuple[int, list[Any]]] = []
        at = (
            {number: [x[scan.kept_at(number), ...] for x in self.kept] for number in scan.kept}
            if scan.checkpoint not in ("step", None)
            else {}
        )
        g = [
            zeros(like) if t is None else t
            for t, like in zip(
                chosen(self.g[0], step.cot), chosen(step.start, step.cot), strict=True
            )
        ]
        if not at:
            g = self._pulled(step, 0, scan.length, self.kept, g, True)
        else:
            for what, start, stop in backwards(scan.checkpoint, scan.length):
                if what == "keep":
                    at[stop] = self._advanced(start, stop, at[start], False)
                else:
                    carries = self._advanced(start, stop, at.pop(start), True)
                    if stop == scan.kept[-1]:
                        args = [x[0 if scan.reverse else -1, ...] for x in still(carries)] + [
                            x[scan.place(stop - 1), ...] for x in still(self.xs)
                        ]
                        self.check(scan.body(still(self.consts), args), stop)
                        del args
                    g = self._pulled(step, start, stop, carries, g, False)
                    del carries  # frees their memory before the next segment
                    if start in scan.kept:
                        g = self._with_kept(step, start, g)
        by_carry = spread(g, step.cot)
        return (
            *spread(self.sums, self.need[0]),
            *[t if need else None for t, need in zip(by_carry, self.need[1], strict=True)],
            *spread(self._joined(), self.need[2]),
        )

    def _advanced(self, start: int, stop: int, carry: list[Any], stacked: bool) -> list[Any]:
        """The carry some steps later, or the stack of the carries before each of them."""
        scan, n = self.of, self.of.counts

        def body(consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
            return [*scan.body(consts, args)[: n.carry], *(args[: n.carry] if stacked else ())]

        if stacked and stop - start == 1:
            return [namespace(x).expand_dims(x, axis=0) for x in carry]
        rule = Scan(
            body,
            Counts(n.consts, n.carry, n.xs, n.carry if stacked else 0, 0),
            stop - start,
            scan.reverse,
        )
        rule.doubted = False
        outs = apply(rule, [*self.consts, *carry, *self._part(self.xs, start, stop)])
        return outs[n.carry : n.carry * 2] if stacked else outs[: n.carry]

    def _pulled(
        self, step: _Gradients, start: int, stop: int, kept: list[Any], g: list[Any], whole: bool
    ) -> list[Any]:
        """Go back from `stop` to `start`, given the stack of carries before each of these steps.

        Returns the cotangents of the carry at `start`.
        """
        scan, n = self.of, self.of.counts
        g_kept = there(chosen(self.g[3], step.cot)) if whole else []
        g_sums = there(self.g[2])
        over = [
            *kept,
            *self._part(self.xs, start, stop),
            *self._part(there(self.g[1]), start, stop),
            *g_kept,
        ]
        behind = self._behind() if whole else []
        step.behind = bool(behind)
        counts = Counts(
            n.consts + len(g_sums),
            len(g) + len(behind),
            len(over),
            sum(self.need[2]),
            sum(self.need[0]),
        )
        rule = Scan(step, counts, stop - start, not scan.reverse)
        rule.doubted = False
        carry, ys, sums = rule.results(apply(rule, [*self.consts, *g_sums, *g, *behind, *over]))[:3]
        g = carry[: len(g)]
        if ys:
            self.parts.append((scan.place(start), ys))
        self.sums = (
            [added(a, b) for a, b in zip(self.sums, sums, strict=True)] if self.sums else sums
        )
        return g

    def _behind(self) -> list[Any]:
        """The carry after the last step, if the steps of the way back receive it.

        They receive it if they are programs on raw arrays.
        """
        from .replaying import layered, records

        scan = self.of
        consts, xs, kept = ([_value(x) for x in part] for part in (self.consts, self.xs, self.kept))
        library = element_of(kept[0]).library if kept else None
        if (
            library is None
            or layered(consts, xs, kept)
            or not library.mutable
            or not records(library, scan.length)
        ):
            return []
        last = scan.length - 1
        outs = scan.body(
            consts,
            [*[x[scan.kept_at(last), ...] for x in kept], *[x[scan.place(last), ...] for x in xs]],
        )
        return [strip(x) for x in outs[: scan.counts.carry]]

    def _with_kept(self, step: _Gradients, start: int, g: list[Any]) -> list[Any]:
        """The cotangents of a kept carry: those at its step plus those of the kept result."""
        at = self.of.kept_at(start)
        return [
            t if k is None else added(t, k[at, ...])
            for t, k in zip(g, chosen(self.g[3], step.cot), strict=True)
        ]

    def _part(self, xs: Sequence[Any], start: int, stop: int) -> list[Any]:
        if (start, stop) == (0, self.of.length):
            return list(xs)
        low, high = sorted((self.of.place(start), self.of.place(stop - 1)))
        return [x[low : high + 1, ...] for x in xs]

    def _joined(self) -> list[Any]:
        """The gradients of the arrays that the scan goes over, for all steps."""
        parts = [ys for _, ys in sorted(self.parts, key=lambda part: part[0])]
        return [
            ys[0] if len(ys) == 1 else namespace(ys[0]).concat(list(ys), axis=0)
            for ys in zip(*parts, strict=True)
        ]
