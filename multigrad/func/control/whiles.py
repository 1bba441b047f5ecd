"""while_loop and fori_loop: loops that carry a state.

A while_loop runs as long as a condition holds, a fori_loop for a number of steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ... import tree
from ...core.element import Library, is_array
from ...core.level import Layer
from ...core.tensor import element_of
from ...custom.definition import Applied, new_ctx_class
from ...custom.function import Application
from ...errors import GradientError
from ...layers.batched import Batched
from ...layers.dual import Dual
from ...tracebacks import entry
from ..variables import State
from .arguments import (
    TreeArgument,
    finished,
    fitted,
    form,
    library_in,
    library_of,
    numbers_as_arrays,
)
from .bodies import (
    Body,
    Changed,
    Flags,
    chosen,
    cut,
    either,
    filled,
    namespace,
    of_batch,
    pushed,
    repeated,
    settled,
    spread,
    still,
    zeros,
)
from .captured import Late, Traced
from .checkpoints import Checkpoint, checked
from .looping import Looped, apply, batched, batches_at, dual, inside, tangents_at
from .scan import Words, looped
from .scanning import doubled, halved
from .unknown import known_number


@entry
def while_loop(
    cond_fun: Callable[[State], Any], body_fun: Callable[[State], State], init_val: State
) -> State:
    """Apply a function to a state as long as a condition holds.

    cond_fun  cond_fun(state) returns a boolean: an array of shape (), or a bool
    body_fun  body_fun(state) returns the next state, with the structure, the shapes and the dtypes
              of its argument
    init_val  the first state: arrays, Tensors, numbers, or a nested structure of these

    Returns the last state. Raw arrays give raw arrays, Tensors give Tensors. The functions receive
    Tensors. A number becomes a 0-d array of the dtype that `body_fun` returns for it. If the state
    changes its form, TypeError names the leaf.

    It has forward mode only, since the number of steps is unknown when memory for a backward pass
    would be allocated. GradientError is raised in a backward pass through a result that depends on
    differentiated values. fori_loop with fixed bounds and scan have both modes. Under vmap, if the
    condition differs between examples, the loop runs as long as it holds for any of them, and
    leaves the states of the others unchanged. If values are unknown, as under jax.jit, it is
    jax.lax.while_loop. The functions may capture arrays, and have the restrictions of the body of
    `func.scan`.

    Corresponds to jax.lax.while_loop.
    """
    given = TreeArgument(init_val)
    given.check_arrays("while_loop: init_val", True)
    library = library_in("while_loop", given.leaves)
    raw = not any(isinstance(x, Layer) for x in given.leaves)
    for what, function in (("cond_fun", cond_fun), ("body_fun", body_fun)):
        if not callable(function):
            raise TypeError(f"while_loop: {what} must be a function, not {type(function).__name__}")
    one = tree.Structure(tree.flattened(())[1].kind, None, (given.structure,))
    condition, body = (
        Traced("cond_fun of while_loop", cond_fun, one),
        Traced("body_fun of while_loop", body_fun, one),
    )

    def stepped(output: Any) -> list[Any]:
        return fitted(
            given, output, "while_loop: body_fun must return the state in the form it was given"
        )

    results = stepped(body.discover(given.leaves))
    library = library or library_of("while_loop", results)
    numbers_as_arrays(given, results, library)
    _truth(condition.discover(given.leaves), library)
    while True:
        n = len(condition.consts)
        rule = While(
            partial(_condition, condition, n, library),
            partial(_stepped, body, n, stepped),
            n + len(body.consts),
        )
        try:
            outs = apply(rule, [*condition.consts, *body.consts, *given.leaves])
            break
        except Late as late:
            (condition if late.traced is condition else body).late(late)
    out: State = tree.built(given.structure, list(map(finished(raw), outs)))
    return out


@entry
def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, State], State],
    init_val: State,
    *,
    checkpoint: Checkpoint = "step",
) -> State:
    """Apply a function to a state for each integer from `lower` up to `upper` (exclusive).

    lower, upper  ints, or integer arrays of shape ()
    body_fun      body_fun(i, state) returns the next state, as that of `while_loop` does. i is an
                  integer array of shape ()
    init_val      the first state
    checkpoint    as in `func.scan`

    Returns the last state, which is `init_val` if `upper` is not above `lower`. If the bounds are
    known and the same for all examples, it is a scan, with forward and reverse mode. Otherwise it
    is a while_loop, which has forward mode only: under jax.jit with bounds that are arguments, and
    under vmap with bounds that differ.

    Corresponds to jax.lax.fori_loop.
    """
    if not callable(body_fun):
        raise TypeError(f"fori_loop: body_fun must be a function, not {type(body_fun).__name__}")
    bounds = [
        known_number(x, f"fori_loop: {what}") for what, x in (("lower", lower), ("upper", upper))
    ]
    checkpoint = checked(checkpoint, "fori_loop")
    given = TreeArgument((bounds[0] or 0, init_val))
    library = library_in("fori_loop", given.leaves, [lower, upper])
    if library is None:  # there are only numbers, so the result of the body decides
        output = Traced("body_fun of fori_loop", body_fun, given.structure).discover(given.leaves)
        library = library_of("fori_loop", tree.leaves(output))
    if None not in bounds:
        start, stop = bounds
        numbers = library.xp.arange(start, max(start, stop))  # type: ignore[type-var]
        out: State = looped(
            _FORI,
            lambda state, i: (body_fun(i, state), None),
            init_val,
            numbers,
            None,
            False,
            checkpoint,
        )[0]
        return out
    integer = library.xp.asarray(0).dtype
    first = lower if is_array(lower) else library.xp.asarray(lower, dtype=integer)
    return while_loop(
        lambda pair: pair[0] < upper,
        lambda pair: (pair[0] + 1, body_fun(pair[0], pair[1])),
        (first, init_val),
    )[1]


_FORI = Words(
    "fori_loop", "body_fun", "init_val", "body_fun must return the state in the form it was given"
)


def _condition(
    condition: Traced, n: int, library: Library, consts: Sequence[Any], args: Sequence[Any]
) -> list[Any]:
    return [_truth(condition(consts[:n], args), library)]


def _stepped(
    body: Traced,
    n: int,
    checked: Callable[[Any], list[Any]],
    consts: Sequence[Any],
    args: Sequence[Any],
) -> list[Any]:
    return checked(body(consts[n:], args))


def _truth(output: Any, library: Library) -> Any:
    """The result of a condition, as a boolean array of shape ()."""
    if type(output) is bool:
        return library.xp.asarray(output)
    if not is_array(output) or tuple(output.shape) or not element_of(output).bool:
        told = f"an array of {form(output)}" if is_array(output) else f"a {type(output).__name__}"
        raise TypeError(
            "while_loop: cond_fun must return a boolean array of shape (), or a bool, but it "
            f"returned {told}"
        )
    return output


class While(Looped):
    """A loop that runs as long as condition(consts, carry) is [true].

    body(consts, carry) returns the next carry.
    """

    __name__ = "while_loop"
    _backward_cls = new_ctx_class("while_loop")

    def __init__(self, condition: Body, body: Body, consts: int) -> None:
        self.condition, self.body, self.consts = condition, body, consts

    def run(self, flat: list[Any]) -> list[Any]:
        # imported late, since it needs multigrad.extend
        from . import stepping

        return stepping.while_loop(self, *cut(flat, self.consts))

    def at_dual(self, application: Application, values: Sequence[Any], top: Dual) -> Applied:
        inner, tangents = tangents_at(values, top)
        parts, moving = cut(inner, self.consts), cut(tangents, self.consts)

        def run(step: _Tangents) -> list[Any]:
            given = [
                *doubled(parts[0], moving[0]),
                *parts[1],
                *chosen(filled(moving[1], parts[1]), step.own[1]),
            ]
            return [
                dual(x, t, top)
                for x, t in zip(
                    *halved(inside(application, step.rule, given), step.own[1]), strict=True
                )
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
        parts, mine = cut(inner, self.consts), cut(own, self.consts)

        def run(step: _Batches) -> list[Any]:
            flags = step.own[1]
            carry = [
                repeated(x, own, size) if flag else x
                for x, own, flag in zip(parts[1], mine[1], flags, strict=True)
            ]
            if step.differs:
                carry = [*carry, step.holds(parts[0], carry)]
            outs = inside(application, step.rule, [*parts[0], *carry])
            return [batched(x, flag, top) for x, flag in zip(outs, flags, strict=False)]

        outputs = settled(
            lambda flags: _Batches(self, parts, mine, flags, size),
            list(mine[1]),
            run,
        )
        return Applied(tuple(outputs), None)

    def backward(self, ctx: Any, *grads: Any) -> tuple[Any, ...]:
        raise GradientError(
            "while_loop has forward mode only, since the number of its steps is not known "
            "beforehand. Use fori_loop with fixed bounds, or scan, for a gradient; or detach() "
            "the inputs that are not to be differentiated"
        )


class _Tangents:
    """The step of a loop with tangents. `own`: which of its constants and of its carry have one."""

    def __init__(
        self, loop: While, parts: list[list[Any]], moving: list[list[Any]], flags: Flags
    ) -> None:
        self.of = loop
        self.own = [[t is not None for t in moving[0]], flags]
        self.start = still(parts[0]), still(parts[1])
        self.moving = [
            *still(moving[0]),
            *still(spread(chosen(filled(moving[1], parts[1]), flags), flags)),
        ]
        self.rule = While(self.condition, self, loop.consts + sum(self.own[0]))

    def look(self, later: Sequence[bool]) -> Flags:
        return [t is not None for t in pushed(self.of.body, *self.start, self.moving)[1]]

    def condition(self, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        return self.of.condition(halved(consts, self.own[0])[0], halved(args, self.own[1])[0])

    def __call__(self, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        pairs = halved(consts, self.own[0]), halved(args, self.own[1])
        outs, moved = pushed(self.of.body, pairs[0][0], pairs[1][0], [*pairs[0][1], *pairs[1][1]])
        if any(t is not None and not flag for t, flag in zip(moved, self.own[1], strict=True)):
            raise Changed(self, either(self.own[1], [t is not None for t in moved]))
        return doubled(
            outs,
            [
                (zeros(x) if t is None else t) if flag else None
                for x, t, flag in zip(outs, moved, self.own[1], strict=True)
            ],
        )


class _Batches:
    """The step of a loop on batches.

    differs  whether the condition differs between the examples. Then all of the carry is a batch,
             and its last array says for which examples the loop still runs
    """

    def __init__(
        self, loop: While, parts: list[list[Any]], mine: list[Flags], flags: Flags, size: int
    ) -> None:
        self.of, self.size = loop, size
        self.own = [mine[0], flags]
        carry = [
            repeated(x, own, size) if flag else x
            for x, own, flag in zip(still(parts[1]), mine[1], flags, strict=True)
        ]
        self.start = still(parts[0]), carry
        self.rule = While(self.condition, self, loop.consts)

    def look(self, later: Sequence[bool]) -> Flags:
        self.differs = of_batch(self.of.condition, *self.start, [*self.own[0], *self.own[1]])[1][0]
        out_flags = of_batch(self.of.body, *self.start, [*self.own[0], *self.own[1]])[1]
        return [True] * len(out_flags) if self.differs else out_flags

    def holds(self, consts: Sequence[Any], carry: Sequence[Any]) -> Any:
        """The examples for which the condition holds, as a boolean array."""
        outs, batch_flags = of_batch(self.of.condition, consts, carry, [*self.own[0], *self.own[1]])
        return repeated(outs[0], batch_flags[0], self.size)

    def condition(self, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        if self.differs:
            return [namespace(args[-1]).any(args[-1])]
        outs, batch_flags = of_batch(self.of.condition, consts, args, [*self.own[0], *self.own[1]])
        if batch_flags[0]:
            raise Changed(self, [True] * len(self.own[1]))
        return outs

    def __call__(self, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        runs = args[-1] if self.differs else None
        carry = args[:-1] if self.differs else args
        outs, batch_flags = of_batch(self.of.body, consts, carry, [*self.own[0], *self.own[1]])
        if any(mine and not flag for mine, flag in zip(batch_flags, self.own[1], strict=True)):
            raise Changed(self, either(self.own[1], batch_flags))
        outs = [
            repeated(x, mine, self.size) if flag else x
            for x, mine, flag in zip(outs, batch_flags, self.own[1], strict=True)
        ]
        if runs is None:
            return outs
        outs = [_where(runs, x, before) for x, before in zip(outs, carry, strict=True)]
        return [*outs, _both(runs, self.holds(consts, outs))]


def _both(x: Any, y: Any) -> Any:
    return namespace(x, y).logical_and(x, y)


def _where(runs: Any, x: Any, before: Any) -> Any:
    """`x` for the examples for which the loop runs, and `before` for the others."""
    xp = namespace(runs, x, before)
    return xp.where(xp.reshape(runs, (runs.shape[0], *(1,) * (len(x.shape) - 1))), x, before)
