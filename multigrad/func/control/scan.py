"""scan: a loop that carries a state from step to step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ... import observe, tree
from ...core.element import SCALARS, is_array
from ...core.level import innermost
from ...layers.transforming import returned
from ...tracebacks import entry
from ..reverse import check_function
from .arguments import (
    Results,
    TreeArgument,
    arguments_of,
    as_index,
    control_of,
    finished,
    fitted,
    library_in,
    library_of,
    numbers_as_arrays,
    place,
)
from .bodies import columns, first
from .captured import Traced, applied
from .checkpoints import Checkpoint, checked
from .looping import Counts, recorded
from .scanning import Scan


@entry
def scan(
    body: Callable[[Any, Any], tuple[Any, Any]],
    carry: Any,
    xs: Any = None,
    *,
    length: int | None = None,
    reverse: bool = False,
    checkpoint: Checkpoint = "step",
) -> tuple[Any, Any]:
    """Carry a state through a loop, and stack the results of its steps.

    body        body(carry, x) returns (carry, y): the next state, and a result of this step, or
                None
    carry       the first state: arrays, Tensors, numbers, or a nested structure of these
    xs          arrays with an axis for the steps in front, or a nested structure of them. `x` is
                the slice of one step. None: `x` is None
    length      the number of steps, if `xs` does not determine it
    reverse     go over `xs` from the end; y is stacked at the place of its x
    checkpoint  the values that are kept for a backward pass. "step": the carry before each step,
                from which the pass computes the step again. An int k: the carry before every k-th
                step. "binomial": as many carries as the logarithm of the number of steps, with the
                fewest repeated steps that this allows. None: everything; reverse mode then records
                step by step, as for a Python loop (under a trace, as "step")

    Returns (carry, ys): the last state, and a structure of arrays with an axis for the steps in
    front. Raw arrays give raw arrays, unless a captured Tensor requires grad. Tensors give Tensors.
    The body receives Tensors. It must return the carry with the structure, the shapes and the
    dtypes that it received; otherwise TypeError names the leaf. A number becomes a 0-d array of the
    dtype that the body returns for it. Without steps, the body is still called once, to determine
    the form of its results.

    scan is one operation. `carry`, `xs` and all arrays that the body captures are differentiated,
    in forward and in reverse mode, and batched, at any nesting of transformations. The time to
    record it does not depend on the number of steps. The body must compute the same whenever it is
    called with the same values, and must not write to its arguments or to arrays from outside
    (GradientError). It is called more often than there are steps. If values are unknown, as under
    jax.jit, scan is jax.lax.scan.

    Corresponds to jax.lax.scan, where jax.checkpoint of the body has the role of `checkpoint`.
    """
    return looped(SCAN, body, carry, xs, length, reverse, checkpoint)


class Words(NamedTuple):
    """The names of a loop, its body and its carry in messages.

    wrong  the message for a body that returns another form of carry
    """

    name: str
    body: str
    carry: str
    wrong: str


SCAN = Words("scan", "the body", "carry", "the body must return the carry in the form it was given")


def looped(
    words: Words,
    body: Callable[[Any, Any], tuple[Any, Any]],
    carry: Any,
    xs: Any,
    length: int | None,
    reverse: bool,
    checkpoint: Checkpoint,
) -> tuple[Any, Any]:
    """Run a scan for a public function whose names are `words`."""
    checkpoint = checked(checkpoint, words.name)
    state, over = TreeArgument(carry), TreeArgument(xs)
    state.check_arrays(f"{words.name}: {words.carry}", True)
    over.check_arrays(f"{words.name}: xs", False)
    n = _length(over, length)
    library = library_in(words.name, state.leaves, over.leaves)
    raw = not (tree.has_layer(state.leaves) or tree.has_layer(over.leaves))
    types = set(map(type, state.leaves))
    step = _Step(words, body, state, over)
    traced, count = step.traced, len(state.leaves)
    slices = observe.internally(first, over.leaves, n, reverse)
    results = step.leaves(traced.discover([*state.leaves, *slices]))
    library = step.library = library or library_of(words.name, results)
    numbers_as_arrays(state, results, library)
    # the values of numbers may differ by the dtype that they get
    numbers = not types.union(map(type, results)).isdisjoint(SCALARS)

    def made() -> tuple[Scan, list[Any]]:
        counts = Counts(len(traced.consts), count, len(over.leaves), len(results) - count)
        rule = Scan(step, counts, n, reverse, checkpoint)
        rule.expected = None if numbers else results
        return rule, [*traced.consts, *state.leaves, *over.leaves]

    if (
        checkpoint is None
        and n
        and any(map(recorded, (*traced.consts, *state.leaves, *over.leaves)))
        # a program that the library traces does not grow with the number of steps
        and control_of(library, list(map(innermost, (*state.leaves, *over.leaves)))) is None
    ):
        outs = _step_by_step(step, state, over, range(n)[::-1] if reverse else range(n))
    else:
        outs = applied((traced,), made)[: len(results)]
    out: tuple[Any, Any] = tree.built(step.form, map(finished(raw), outs))
    return out


def _step_by_step(step: _Step, state: TreeArgument, over: TreeArgument, order: range) -> list[Any]:
    """The loop as a Python loop, which records the operations of each step."""
    carry: list[Any] = list(map(returned, state.leaves))
    parts: list[tuple[int, list[Any]]] = []
    for i in order:
        args = [*carry, *(returned(x)[i, ...] for x in over.leaves)]
        output = step.traced.function(*tree.built(step.traced.structure, args))
        outs = step.leaves(tree.flattened(output))
        carry, ys = list(map(returned, outs[: len(carry)])), outs[len(carry) :]
        parts.append((i, ys))
    return [*carry, *(step.library.bound.stack(list(column)) for column in columns(parts))]


class _Step:
    """The user's body as a function of lists.

    library  the library of its arrays, once it is known
    form     the structure of its result (carry, y), after the first call
    """

    library: Any = None
    form: Any = None

    def __init__(
        self, words: Words, body: Callable[..., Any], state: TreeArgument, over: TreeArgument
    ) -> None:
        check_function(body, words.name, words.body)
        self.state = state
        self.problem = f"{words.name}: {words.wrong}"
        self.traced = Traced(
            f"{words.body} of {words.name}", body, arguments_of(state.structure, over.structure)
        )

    def leaves(self, results: Results) -> list[Any]:
        """Check the body's result (carry, y), and return the leaves of carry, then those of y.

        Numbers become arrays, once the library is known.
        """
        leaves, structure = results
        if self.form is not None and tree.same(structure, self.form):
            n = len(self.state.leaves)
            carry = fitted(self.state, (leaves[:n], self.state.structure), self.problem)
            ys = leaves[n:]
        else:
            output = tree.built(structure, leaves)
            if not isinstance(output, tuple) or len(output) != 2:
                raise TypeError(
                    f"scan: the body must return a tuple (carry, y), but it returned "
                    f"{'an array' if is_array(output) else tree.shown(output)}"
                )
            carry = fitted(self.state, tree.flattened(output[0]), self.problem)
            ys, y_structure = tree.flattened(output[1])
            form = arguments_of(self.state.structure, y_structure)
            if self.form is None:
                self.form = form
            elif form != self.form:
                raise TypeError(
                    "scan: the body must return y with the same structure at each step, but it "
                    "returned another structure"
                )
        for i, y in enumerate(ys):
            if type(y) in SCALARS:
                ys[i] = y if self.library is None else self.library.xp.asarray(y)
            elif not is_array(y):
                raise TypeError(
                    "scan: the body must return arrays as y, but the leaf"
                    f"{place(self.form.children[1], i)} is a {type(y).__name__}"
                )
        return [*carry, *ys]

    def __call__(self, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        return self.leaves(self.traced(consts, args))


def _length(over: TreeArgument, length: int | None) -> int:
    """The number of steps."""
    if length is not None:
        steps = as_index(length, 0)
        if steps is None:
            raise ValueError(f"scan: length must be an int of at least 0, or None, not {length!r}")
        length = steps
    for i, x in enumerate(over.leaves):
        if not x.shape:
            raise ValueError(
                f"scan: xs{over.at(i)} is of shape (), but needs an axis for the steps in front"
            )
        if length is None:
            length = x.shape[0]
        elif x.shape[0] != length:
            other = "length" if i == 0 else f"xs{over.at(0)}"
            raise ValueError(
                f"scan: xs{over.at(i)} has {x.shape[0]} steps along its first axis, but {other} "
                f"says {length}"
            )
    if length is None:
        raise ValueError("scan: xs has no arrays that determine the number of steps; pass length")
    return length
