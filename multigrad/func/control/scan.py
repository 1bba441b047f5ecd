"""scan: a loop that carries a state from step to step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ... import tree
from ...core.element import SCALARS, Library, is_array
from ...core.level import Layer, innermost
from ...layers.transforming import returned
from ...tracebacks import entry
from .arguments import (
    TreeArgument,
    as_index,
    finished,
    fitted,
    library_in,
    library_of,
    numbers_as_arrays,
)
from .bodies import first
from .captured import Late, Traced
from .checkpoints import Checkpoint, checked
from .looping import apply, recorded
from .scanning import Counts, Scan


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
    given, over = TreeArgument(carry), TreeArgument(xs)
    given.check_arrays(f"{words.name}: {words.carry}", True)
    over.check_arrays(f"{words.name}: xs", False)
    n = _length(over, length)
    library = library_in(words.name, given.leaves, over.leaves)
    raw = not any(isinstance(x, Layer) for x in (*given.leaves, *over.leaves))
    body_of = _Body(words, body, given, over)
    outs = body_of.traced.discover([*given.leaves, *first(over.leaves, n)])
    results = body_of.leaves(outs)
    library = body_of.library = library or library_of(words.name, results)
    numbers_as_arrays(given, results, library)
    count = len(given.leaves)
    if (
        checkpoint is None
        and n
        and any(map(recorded, (*body_of.traced.consts, *given.leaves, *over.leaves)))
        and not _traced(library, given, over)
    ):
        return _step_by_step(body_of, given, over, range(n)[::-1] if reverse else range(n), library)
    while True:
        traced = body_of.traced
        rule = Scan(
            body_of,
            Counts(len(traced.consts), count, len(over.leaves), body_of.results, 0),
            n,
            reverse,
            checkpoint,
            body_of.what,
        )
        try:
            outputs = apply(rule, [*traced.consts, *given.leaves, *over.leaves])
            break
        except Late as late:
            traced.late(late)
    outputs = list(map(finished(raw), outputs))
    return tree.built(given.structure, outputs[:count]), tree.built(
        body_of.structure, outputs[count : count + body_of.results]
    )


def _traced(library: Library, *groups: TreeArgument) -> bool:
    """Whether the library traces the program."""
    arrays = [innermost(x) for group in groups for x in group.leaves]
    return library.backend.kernel("control")(library.xp, arrays) is not None


def _step_by_step(
    body: _Body, given: TreeArgument, over: TreeArgument, order: range, library: Library
) -> tuple[Any, Any]:
    """The loop as a Python loop, which records the operations of each step."""
    carry: list[Any] = list(map(returned, given.leaves))
    parts: dict[int, list[Any]] = {}
    for i in order:
        args = tree.built(body.pair, [*carry, *(returned(x)[i, ...] for x in over.leaves)])
        outs = body.arrays(body.traced.function(*args))
        carry, parts[i] = list(map(returned, outs[: len(carry)])), outs[len(carry) :]
    finish = finished(not any(isinstance(x, Layer) for x in (*given.leaves, *over.leaves)))
    ys = [
        library.bound.stack(list(column))
        for column in zip(*(parts[i] for i in sorted(parts)), strict=True)
    ]
    return tree.built(given.structure, map(finish, carry)), tree.built(
        body.structure, map(finish, ys)
    )


class _Body:
    """The user's body as a function of lists.

    pair       the structure of its two arguments
    structure  the structure of y
    results    the number of leaves of y
    what       the names of these leaves in messages
    """

    library: Library
    structure: tree.Structure

    def __init__(
        self, words: Words, body: Callable[..., Any], given: TreeArgument, over: TreeArgument
    ) -> None:
        if not callable(body):
            raise TypeError(
                f"{words.name}: {words.body} must be a function, not {type(body).__name__}"
            )
        self.words = words
        self.pair = tree.Structure(
            tree.flattened(())[1].kind, None, (given.structure, over.structure)
        )
        self.traced = Traced(f"{words.body} of {words.name}", body, self.pair)
        self.given = given
        self.results = 0
        self.what: list[str] = []

    def leaves(self, output: Any) -> list[Any]:
        """Check the body's result (carry, y), and return the leaves of carry, then those of y."""
        if not isinstance(output, tuple) or len(output) != 2:
            raise TypeError(
                f"scan: the body must return a tuple (carry, y), but it returned "
                f"{'an array' if is_array(output) else tree.shown(output)}"
            )
        carry = fitted(self.given, output[0], f"{self.words.name}: {self.words.wrong}")
        named = tree.named_leaves(output[1])
        for name, y in named:
            if not is_array(y) and type(y) not in SCALARS:
                raise TypeError(
                    "scan: the body must return arrays as y, but the "
                    f"leaf{f' at {name}' if name else ''} is a {type(y).__name__}"
                )
        structure = tree.flattened(output[1])[1]
        if not hasattr(self, "structure"):
            self.structure, self.results = structure, len(named)
            self.what = [f"scan: y{f' at {name}' if name else ''}" for name, _ in named]
        elif structure != self.structure:
            raise TypeError(
                "scan: the body must return y with the same structure at each step, but it "
                "returned another structure"
            )
        return [*carry, *(y for _, y in named)]

    def arrays(self, output: Any) -> list[Any]:
        """The leaves of the body's result, with arrays in place of numbers."""
        return [
            self.library.xp.asarray(x) if type(x) in SCALARS else x for x in self.leaves(output)
        ]

    def __call__(self, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        return self.arrays(self.traced(consts, args))


def _length(over: TreeArgument, length: int | None) -> int:
    """The number of steps."""
    if length is not None:
        given, length = length, as_index(length, 0)
        if length is None:
            raise ValueError(f"scan: length must be an int of at least 0, or None, not {given!r}")
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
