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
from typing import Any

from ...core.level import innermost
from ...core.tensor import element_of, strip
from ...custom.definition import new_ctx_class
from ...errors import GradientError
from ...layers.transforming import namespace
from .arguments import layered, unwrapped
from .bodies import (
    Body,
    Changed,
    Flags,
    Pulled,
    chosen,
    cut,
    either,
    first,
    flagged,
    floating,
    joined,
    settled,
    slices,
    spread,
    still,
    there,
    totals,
    zeros,
)
from .checkpoints import Checkpoint, backwards, positions
from .looping import Counts, Looped, apply, recorded_by, unrecorded


class Scan(Looped):
    """A scan over `length` steps of a body, forwards or backwards.

    doubted  whether it is the loop itself, as opposed to a part of the way back
    """

    __name__ = "scan"
    stacked = doubted = True
    _backward_cls = new_ctx_class("scan")

    def __init__(
        self,
        body: Body,
        counts: Counts,
        length: int,
        reverse: bool,
        checkpoint: Checkpoint = "step",
    ) -> None:
        self.bodies = (body,)
        self.body, self.counts, self.reverse, self.checkpoint = body, counts, reverse, checkpoint
        self.length = self.steps = length

    def derived(self, step: object, bodies: list[Body], counts: Counts) -> Scan:
        return Scan(bodies[0], counts, self.length, self.reverse, self.checkpoint)

    def first_slices(self, xs: Sequence[Any]) -> list[Any]:
        return first(xs, self.length, self.reverse)

    def setup_context(self, ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        super().setup_context(ctx, inputs, output)
        consts, _, xs = self.arguments(inputs)
        ctx.save_for_backward(*consts, *xs, *self.results(output)[3])

    def backward(self, ctx: Any, *grads: Any) -> tuple[Any, ...]:
        if not self.length:
            return (*[None] * self.counts.consts, *self.results(grads)[0], *[None] * self.counts.xs)
        back = _Back(self, ctx, grads)
        start = slices(self.kept_at(0), back.kept)
        flags = [
            *back.need[1],
            *[a is not None or b is not None for a, b in zip(back.g[0], back.g[3], strict=True)],
        ]
        return settled(lambda flags: _Gradients(self, back, start, flags), flags, back.gradients)

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

    def part(self, xs: Sequence[Any], start: int, stop: int) -> list[Any]:
        """The arrays that the scan goes over, for the steps from `start` up to `stop`."""
        if (start, stop) == (0, self.length):
            return list(xs)
        low, high = sorted((self.place(start), self.place(stop - 1)))
        return [x[low : high + 1, ...] for x in xs]


class _Gradients:
    """The step of the way back, from the cotangents after a step to those before it.

    The cotangents after a step are those of the carry and of the results of the step.

    active   which arrays of the carry depend on the differentiated values
    cot      which of these have a cotangent
    has      which results of the step have a cotangent
    lengths  the numbers of the first parts of its arguments. The second part is the carry after the
             step, or nothing if the step computes it
    """

    def __init__(self, scan: Scan, back: _Back, start: list[Any], flags: Flags) -> None:
        self.of, self.back, self.start = scan, back, start
        self.active, cot = cut(flags, scan.counts.carry)
        self.cot = [a and b for a, b in zip(self.active, cot, strict=True)]
        self.flags = flags
        self.wanted = [*back.need[0], *self.active, *back.need[2]]
        self.has = [*self.cot, *[g is not None for g in (*back.g[1], *back.g[2])]]
        self.has_kept = [k is not None for k in chosen(back.g[3], self.cot)]
        n = scan.counts
        # the parts of the arguments besides the last one, the cotangents of the kept carries
        self.lengths = sum(self.cot), 0, n.carry, n.xs, sum(g is not None for g in back.g[1])

    def look(self, later: Sequence[bool]) -> Flags:
        back = self.back
        consts = still(back.consts)
        args = [*still(self.start), *slices(self.of.place(0), still(back.xs))]
        if all(self.flags):  # a step cannot set more of them
            if 1 in self.of.kept:
                back.check(self.of.body(consts, args), 1)
            return self.flags
        p = Pulled(self.of.body, consts, args, self.wanted, back.level)
        outs = p.values()
        back.check(outs, 1)
        grads = p.gradients(
            [
                zeros(x) if flag and floating(x) else None
                for x, flag in zip(outs, self.has, strict=True)
            ]
        )
        carry = cut(grads, len(consts), len(self.start))[1]
        return [*p.depends[: len(self.start)], *[g is not None for g in carry]]

    def __call__(self, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        """Return the cotangents before a step of the loop, given those after it.

        consts  [*constants, *cotangents of sums]
        args    [*cotangents of the carry, *carry after the step, *carry before it, *x,
                *cotangents of y, *cotangents of the kept carries]
        """
        n, need = self.of.counts, self.back.need
        own, g_sums = cut(consts, n.consts)
        g, behind, carry, x, g_ys, g_kept = cut(args, *self.lengths)
        p = Pulled(self.of.body, own, [*carry, *x], self.wanted, self.back.level)
        if behind:
            _known(p.values(), behind)
        grads = p.gradients(spread([*g, *g_ys, *g_sums], self.has))
        by_const, by_carry, by_x = cut(grads, n.consts, n.carry)
        found = [*p.depends[: n.carry], *[t is not None for t in by_carry]]
        for flag, expected in zip(found, [*self.active, *self.cot], strict=True):
            if flag and not expected:
                raise Changed(self, either(self.flags, found))
        by_carry = there(flagged(by_carry, carry, self.cot))
        return [
            *(totals(by_carry, spread(g_kept, self.has_kept)) if g_kept else by_carry),
            *(carry if behind else ()),
            *there(flagged(by_x, x, need[2])),
            *there(flagged(by_const, own, need[0])),
        ]


def _known(outs: Sequence[Any], values: Sequence[Any]) -> None:
    """Let the recorded program of the way back use results that the loop has computed.

    The body would compute them again.
    """
    from ...compiling.recorded import Recorded

    for x, y in zip(outs, values, strict=False):
        if isinstance(x, Recorded) and isinstance(y, Recorded):
            x.known(y)


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
        if scan.checkpoint in ("step", None):
            by_carry = self._pulled(step, 0, scan.length, self.kept, self._ends(step), True)
        else:
            by_carry = self._in_segments(step)
        return (
            *spread(self.sums, self.need[0]),
            *[
                t if need else None
                for t, need in zip(spread(by_carry, step.cot), self.need[1], strict=True)
            ],
            *spread(joined(self.parts), self.need[2]),
        )

    def _ends(self, step: _Gradients) -> list[Any]:
        """The cotangents of the last carry."""
        return there(flagged(self.g[0], step.start, step.cot))

    def _in_segments(self, step: _Gradients) -> list[Any]:
        """Go back through all steps, from one kept carry to the one before it."""
        scan, g = self.of, self._ends(step)
        at = {number: slices(scan.kept_at(number), self.kept) for number in scan.kept}
        for what, start, stop in backwards(scan.checkpoint, scan.length):
            if what == "keep":
                at[stop] = self._advanced(start, stop, at[start], False)
                continue
            carries = self._advanced(start, stop, at.pop(start), True)
            if stop == scan.kept[-1]:
                args = slices(0 if scan.reverse else -1, still(carries))
                args += slices(scan.place(stop - 1), still(self.xs))
                self.check(scan.body(still(self.consts), args), stop)
                del args
            g = self._pulled(step, start, stop, carries, g, False)
            del carries  # frees their memory before the next segment
            if start in scan.kept:
                here = scan.kept_at(start)
                kept = chosen(self.g[3], step.cot)
                g = totals(g, [k if k is None else k[here, ...] for k in kept])
        return g

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
        outs = apply(rule, [*self.consts, *carry, *scan.part(self.xs, start, stop)])
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
            *scan.part(self.xs, start, stop),
            *scan.part(there(self.g[1]), start, stop),
            *g_kept,
        ]
        behind = self._behind() if whole else []
        step.lengths = (len(g), len(behind), *step.lengths[2:])
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
        self.sums = totals(self.sums, sums)
        return g

    def _behind(self) -> list[Any]:
        """The carry after the last step, if the steps of the way back receive it.

        They receive it if they are programs on raw arrays.
        """
        from .replaying import records

        scan = self.of
        library = element_of(self.kept[0]).library if self.kept else None
        if library is None or not library.mutable or not records(library, scan.length):
            return []
        parts = self.consts, self.xs, self.kept
        consts, xs, kept = (list(map(unwrapped, part)) for part in parts)
        if layered(consts, xs, kept):
            return []
        last = scan.length - 1
        args = [*slices(scan.kept_at(last), kept), *slices(scan.place(last), xs)]
        outs = scan.body(consts, args)
        return [strip(x) for x in outs[: scan.counts.carry]]
