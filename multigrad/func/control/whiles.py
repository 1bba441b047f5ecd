"""while_loop and fori_loop: loops that carry a state.

A while_loop runs as long as a condition holds, a fori_loop for a number of steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import tree
from ...core.element import Library, is_array
from ...core.tensor import element_of
from ...custom.definition import new_ctx_class
from ...errors import GradientError
from ...layers.transforming import namespace
from ...tracebacks import entry
from ..reverse import check_function
from ..variables import State
from .arguments import (
    Results,
    TreeArgument,
    arguments_of,
    described,
    finished,
    fitted,
    known_number,
    library_in,
    library_of,
    numbers_as_arrays,
)
from .bodies import Body, Changed, Flags, halved, repeated
from .captured import Traced, applied
from .checkpoints import Checkpoint, checked
from .looping import Batches, Counts, Derived, Looped
from .scan import Words, looped


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
    state = TreeArgument(init_val)
    state.check_arrays("while_loop: init_val", True)
    library = library_in("while_loop", state.leaves)
    raw = not tree.has_layer(state.leaves)
    check_function(cond_fun, "while_loop", "cond_fun")
    check_function(body_fun, "while_loop", "body_fun")
    one = arguments_of(state.structure)
    condition, body = (
        Traced("cond_fun of while_loop", cond_fun, one),
        Traced("body_fun of while_loop", body_fun, one),
    )

    def stepped(results: Results) -> list[Any]:
        return fitted(
            state, results, "while_loop: body_fun must return the state in the form it was given"
        )

    results = stepped(body.discover(state.leaves))
    found = library or library_of("while_loop", results)
    numbers_as_arrays(state, results, found)
    _truth(condition.discover(state.leaves), found)

    def made() -> tuple[While, list[Any]]:
        consts = [*condition.consts, *body.consts]
        n = len(condition.consts)
        rule = While(
            lambda consts, carry: [_truth(condition(consts[:n], carry), found)],
            lambda consts, carry: stepped(body(consts[n:], carry)),
            Counts(len(consts), len(state.leaves)),
        )
        return rule, [*consts, *state.leaves]

    outs = applied((condition, body), made)
    out: State = tree.built(state.structure, map(finished(raw), outs))
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
    check_function(body_fun, "fori_loop", "body_fun")
    bounds = [
        known_number(x, f"fori_loop: {what}") for what, x in (("lower", lower), ("upper", upper))
    ]
    checkpoint = checked(checkpoint, "fori_loop")
    args = TreeArgument((bounds[0] or 0, init_val))
    library = library_in("fori_loop", args.leaves, [lower, upper])
    if library is None:  # there are only numbers, so the result of the body decides
        traced = Traced("body_fun of fori_loop", body_fun, args.structure)
        library = library_of("fori_loop", traced.discover(args.leaves)[0])
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
    first = lower if is_array(lower) else library.xp.asarray(lower)
    return while_loop(
        lambda pair: pair[0] < upper,
        lambda pair: (pair[0] + 1, body_fun(pair[0], pair[1])),
        (first, init_val),
    )[1]


_FORI = Words(
    "fori_loop", "body_fun", "init_val", "body_fun must return the state in the form it was given"
)


def _truth(results: Results, library: Library) -> Any:
    """The result of a condition, as a boolean array of shape ()."""
    leaves, structure = results
    output = tree.built(structure, leaves)
    if type(output) is bool:
        return library.xp.asarray(output)
    if not is_array(output) or tuple(output.shape) or not element_of(output).bool:
        raise TypeError(
            "while_loop: cond_fun must return a boolean array of shape (), or a bool, but it "
            f"returned {described(output)}"
        )
    return output


class _Examples(Batches):
    """The step of a while_loop on batches.

    differs  whether the condition differs between the examples. Then all of the carry is a batch,
             and its last array says for which examples the loop still runs
    """

    of: While
    differs = False

    @property
    def arguments(self) -> list[Any]:
        holds = [self._holds(*self.parts[:2])] if self.differs else ()
        return [*super().arguments, *holds]

    @property
    def counts(self) -> Counts:
        n = super().counts
        return n._replace(carry=n.carry + self.differs)

    def look(self, later: Sequence[bool]) -> Flags:
        _, _, (self.differs,) = self.called(self.of.condition, *self.of.first(self.parts))
        after = super().look(later)
        return [True] * len(after) if self.differs else after

    def _holds(self, consts: Sequence[Any], carry: Sequence[Any]) -> Any:
        """The examples for which the condition holds, as a boolean array."""
        (holds,), _, (mine,) = self.called(self.of.condition, consts, carry)
        return repeated(holds, mine, self.size)

    def condition(self, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        if self.differs:
            return [namespace(args[-1]).any(args[-1])]
        outs, _, (mine,) = self.called(self.of.condition, consts, args)
        if mine:
            raise Changed(self, [True] * len(self.own[1]))
        return outs

    def step(self, body: Body, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        if not self.differs:
            return super().step(body, consts, args)
        *carry, runs = args
        outs = super().step(body, consts, carry)
        outs = [_where(runs, x, before) for x, before in zip(outs, carry, strict=True)]
        holds = self._holds(consts, outs)
        return [*outs, namespace(runs, holds).logical_and(runs, holds)]

    def raised(self, outs: Sequence[Any]) -> list[Any]:
        return super().raised(outs[: self.of.counts.carry])


class While(Looped):
    """A loop that runs as long as condition(consts, carry) is [true]."""

    __name__ = "while_loop"
    batches = _Examples
    _backward_cls = new_ctx_class("while_loop")

    def __init__(self, condition: Body, body: Body, counts: Counts) -> None:
        self.condition, self.counts = condition, counts
        self.bodies = (body,)

    def derived(self, step: Derived, bodies: list[Body], counts: Counts) -> While:
        if isinstance(step, _Examples):
            return While(step.condition, bodies[0], counts)

        def condition(consts: Sequence[Any], carry: Sequence[Any]) -> list[Any]:  # without tangents
            return self.condition(halved(consts, step.own[0])[0], halved(carry, step.own[1])[0])

        return While(condition, bodies[0], counts)

    def backward(self, ctx: Any, *grads: Any) -> tuple[Any, ...]:
        raise GradientError(
            "while_loop has forward mode only, since the number of its steps is not known "
            "beforehand. Use fori_loop with fixed bounds, or scan, for a gradient; or detach() "
            "the inputs that are not to be differentiated"
        )


def _where(runs: Any, x: Any, before: Any) -> Any:
    """`x` for the examples for which the loop runs, and `before` for the others."""
    xp = namespace(runs, x, before)
    return xp.where(xp.reshape(runs, (runs.shape[0], *(1,) * (len(x.shape) - 1))), x, before)
