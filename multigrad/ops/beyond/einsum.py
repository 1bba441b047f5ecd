"""einsum: sums of products over named axes, where each step is one product of two operands.

The subscripts and shapes alone determine the computation, so its plan is cached for them. The plan
is a list of contractions, each with its sums, the order of axes and the kind of product.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from ...registry import About, composite
from ..kernels import conj, is_bool, is_integral
from ..keys import index_dtype
from . import subscripts
from .subscripts import Labels

Shape = tuple[int, ...]


def einsum(xp: Any, operands: Sequence[Any], optimize: Any) -> Any:
    """Multiply pair by pair, in the cheapest order."""
    text, factors = subscripts.read(operands)
    shapes = tuple([getattr(x, "shape", None) for x in factors])
    plan = _plan(text, shapes, _fixed(optimize))
    xs = [x for i, x in enumerate(factors) if i not in plan.scalars]
    truths = [is_bool(xp, x.dtype) for x in xs]
    counted = True in truths and not plan.moves
    result = _run(xp, _numbers(xp, xs, truths) if counted else xs, plan.steps)
    for i in plan.scalars:
        result = xp.multiply(result, factors[i])
    return result != 0 if counted and False not in truths else result


def _numbers(xp: Any, xs: list[Any], truths: list[bool]) -> list[Any]:
    """Convert booleans to numbers, for which products are defined; only booleans become counts."""
    other = next((x.dtype for x, truth in zip(xs, truths, strict=True) if not truth), None)
    dtype = index_dtype(xp, xp.device_of(xs[0])) if other is None else other
    return [xp.astype(x, dtype) if truth else x for x, truth in zip(xs, truths, strict=True)]


def _fixed(optimize: Any) -> Any:
    """`optimize` without lists, so that a plan can be cached for it."""
    if isinstance(optimize, dict):
        raise TypeError(subscripts.OPTIMIZE.format(optimize))
    return tuple(map(_fixed, optimize)) if isinstance(optimize, (list, tuple)) else optimize


# ----- planning, from labels and lengths -----


class Single(NamedTuple):
    """The preparation of one operand.

    Axes of length 1 that are broadcast are dropped, diagonals are taken, axes are summed over.
    """

    shape: Shape | None
    diagonals: tuple[tuple[int, int], ...]
    axes: Shape


class Arrangement(NamedTuple):
    """The order of the axes of an operand, and its shape after that; None leaves it as it is."""

    order: Shape | None = None
    shape: Shape | None = None


class Pair(NamedTuple):
    """A product of two operands: the kind, the arrangement of each, the shape of the result."""

    kind: str  # "multiply", "matmul", "tensordot", "vecdot"
    one: Arrangement = Arrangement()
    two: Arrangement = Arrangement()
    axes: Any = None
    shape: Shape | None = None
    swap: bool = False


class Step(NamedTuple):
    """One step of a plan.

    Take one or two operands at `places`, prepare each, multiply them, and append the result with
    its axes in `order`.
    """

    places: Shape
    singles: tuple[Single | None, ...]
    pair: Pair | None
    order: Shape | None


class Plan(NamedTuple):
    """The steps, and which operands are Python scalars; the result is multiplied by those.

    `moves` says that no element is computed: one operand, of which the result is a view.
    """

    steps: tuple[Step, ...]
    scalars: Shape
    moves: bool


@lru_cache(maxsize=1024)
def _plan(text: str, shapes: tuple[Shape | None, ...], optimize: Any) -> Plan:
    """Plan the steps for these subscripts and shapes; the shape of a Python scalar is None."""
    inputs, output, sizes = subscripts.parse(
        text, tuple(() if shape is None else tuple(shape) for shape in shapes)
    )
    operands = [
        (labels, tuple(shape))
        for labels, shape in zip(inputs, shapes, strict=True)
        if shape is not None
    ]
    if not operands:
        raise TypeError(
            "einsum: no operand is an array. Wrap lists and scalars with multigrad.asarray."
        )
    path = subscripts.order(tuple(labels for labels, _ in operands), output, sizes, optimize)
    steps = []
    for places in path:
        chosen = [operands[i] for i in places]
        operands = [x for i, x in enumerate(operands) if i not in places]
        needed = set(output).union(*(labels for labels, _ in operands))
        step, labels = _step(places, chosen, needed, None if operands else output, sizes)
        steps.append(step)
        operands.append((labels, tuple(sizes[label] for label in labels)))
    moves = len(shapes) == 1 and not any(s and s.axes for step in steps for s in step.singles)
    return Plan(tuple(steps), tuple(i for i, shape in enumerate(shapes) if shape is None), moves)


def _step(
    places: Shape,
    operands: list[tuple[Labels, Shape]],
    needed: set[str],
    output: Labels | None,
    sizes: dict[str, int],
) -> tuple[Step, Labels]:
    present = [
        {label for label, n in zip(labels, shape, strict=True) if n == sizes[label]}
        for labels, shape in operands
    ]
    singles, names = [], []
    for i, (labels, shape) in enumerate(operands):
        single, labels = _single(
            labels, shape, needed.union(*present[:i], *present[i + 1 :]), sizes
        )
        singles.append(single)
        names.append(labels)
    pair, order, labels = None, None, names[0]
    if len(names) == 2:
        pair, labels = _pair(names[0], names[1], needed, output, sizes)
    if output is not None and labels != output:
        order, labels = _moved(labels, output), output
    return Step(places, tuple(singles), pair, order), labels


def _single(
    labels: Labels, shape: Shape, needed: set[str], sizes: dict[str, int]
) -> tuple[Single | None, Labels]:
    places = [
        i for i, (label, n) in enumerate(zip(labels, shape, strict=True)) if n == sizes[label]
    ]
    squeezed = tuple(shape[i] for i in places) if len(places) < len(labels) else None
    names = [labels[i] for i in places]
    diagonals = []
    for label in dict.fromkeys(names):
        while names.count(label) > 1:
            i = names.index(label)
            j = names.index(label, i + 1)
            diagonals.append((i, j))
            del names[j], names[i]
            names.append(label)
    axes = tuple(i for i, label in enumerate(names) if label not in needed)
    labels = tuple(label for label in names if label in needed)
    if squeezed is None and not diagonals and not axes:
        return None, labels
    return Single(squeezed, tuple(diagonals), axes), labels


def _pair(
    one: Labels, two: Labels, needed: set[str], output: Labels | None, sizes: dict[str, int]
) -> tuple[Pair, Labels]:
    summed = tuple(label for label in one if label in two and label not in needed)
    if not summed:
        return _product(one, two, output, sizes)
    batch = tuple(
        label for label in output or one if label in one and label in two and label in needed
    )
    rows = _own(one, two, output)
    columns = _own(two, one, output)
    swap = output is not None and output == (*batch, *columns, *rows) != (*batch, *rows, *columns)
    if swap:
        one, two, rows, columns = two, one, columns, rows
    front, m, n = (tuple(sizes[label] for label in labels) for labels in (batch, rows, columns))
    k, plain = prod(sizes[label] for label in summed), len(summed) == 1
    first, second = _moved(one, (*batch, *rows, *summed)), _moved(two, (*batch, *summed, *columns))
    if batch and not rows and not columns:
        shape = None if plain else (*front, k)
        return Pair("vecdot", Arrangement(first, shape), Arrangement(second, shape)), batch
    if batch:
        shape1 = None if plain and len(rows) == 1 else (*front, prod(m), k)
        shape2 = None if plain and len(columns) == 1 else (*front, k, prod(n))
        shape = None if len(rows) == len(columns) == 1 else (*front, *m, *n)
        arrangements = Arrangement(first, shape1), Arrangement(second, shape2)
        return Pair("matmul", *arrangements, shape=shape, swap=swap), (*batch, *rows, *columns)
    if plain and len(one) <= 2 and len(two) <= 2:
        return Pair("matmul", Arrangement(first), Arrangement(second), swap=swap), (*rows, *columns)
    rows, columns = (
        tuple(label for label in labels if label not in summed) for labels in (one, two)
    )
    axes = tuple(one.index(label) for label in summed), tuple(two.index(label) for label in summed)
    return Pair("tensordot", axes=axes, swap=swap), (*rows, *columns)


def _own(one: Labels, two: Labels, output: Labels | None) -> Labels:
    """The labels that the other operand lacks, in the order of the result."""
    return tuple(label for label in (output or one) if label in one and label not in two)


def _moved(labels: Labels, order: Labels) -> Shape | None:
    return None if labels == order else tuple(labels.index(label) for label in order)


def _product(
    one: Labels, two: Labels, output: Labels | None, sizes: dict[str, int]
) -> tuple[Pair, Labels]:
    """Plan a product without a sum: both operands get the axes of the result."""
    labels = output or (*one, *(label for label in two if label not in one))
    arrangements = []
    for own in (one, two):
        present = tuple(label for label in labels if label in own)
        first = labels.index(present[0]) if present else len(labels)
        spread = labels[first:]  # leading axes of length 1 can be omitted
        shape = tuple(sizes[label] if label in own else 1 for label in spread)
        arrangements.append(Arrangement(_moved(own, present), None if spread == present else shape))
    return Pair("multiply", arrangements[0], arrangements[1]), labels


# ----- execution -----


def _run(xp: Any, xs: list[Any], steps: tuple[Step, ...]) -> Any:
    for step in steps:
        y, *other = [
            xs[i] if single is None else _prepared(xp, xs[i], single)
            for i, single in zip(step.places, step.singles, strict=True)
        ]
        xs = [x for i, x in enumerate(xs) if i not in step.places]
        if step.pair is not None:
            y = _multiplied(xp, step.pair, y, *other)
        xs.append(y if step.order is None else xp.permute_dims(y, step.order))
    return xs[0]


def _prepared(xp: Any, x: Any, single: Single) -> Any:
    if single.shape is not None:
        x = xp.reshape(x, single.shape)
    for axes in single.diagonals:
        last = (len(x.shape) - 2, len(x.shape) - 1)
        x = xp.linalg.diagonal(x if axes == last else xp.moveaxis(x, axes, last))
    return _sum(xp, x, single.axes) if single.axes else x


def _sum(xp: Any, x: Any, axes: Any) -> Any:
    # `sum` would promote integers
    return xp.sum(x, axis=axes, dtype=x.dtype) if is_integral(xp, x.dtype) else xp.sum(x, axis=axes)


def _laid(xp: Any, x: Any, arrangement: Arrangement) -> Any:
    order, shape = arrangement
    if order is not None:
        x = xp.matrix_transpose(x) if order == (1, 0) else xp.permute_dims(x, order)
    return x if shape is None else xp.reshape(x, shape)


def _multiplied(xp: Any, pair: Pair, x1: Any, x2: Any) -> Any:
    if pair.swap:
        x1, x2 = x2, x1
    if pair.kind == "tensordot":
        return xp.tensordot(x1, x2, axes=pair.axes)
    x1, x2 = _laid(xp, x1, pair.one), _laid(xp, x2, pair.two)
    if pair.kind == "vecdot":  # it conjugates its first operand
        x1 = conj(xp, x1)
    y = getattr(xp, pair.kind)(x1, x2)
    return y if pair.shape is None else xp.reshape(y, pair.shape)


composite(
    "einsum(*operands, optimize=False)",
    einsum,
    doc="Sums of products over axes named by subscripts: 'ij,jk->ik'. Same as numpy.einsum; more "
    "than two operands are contracted pair by pair.",
    about=About(example="'ij,ij->i', A, A"),
)
