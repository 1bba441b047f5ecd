"""The subscripts of einsum: parsing, checks against shapes, and an order of contraction.

A label is a letter. An axis of an ellipsis has a digit string as its label: "1" is the last of
these axes, "2" the one before it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations
from math import prod
from operator import index
from string import ascii_lowercase, ascii_uppercase
from typing import Any

Labels = tuple[str, ...]
LETTERS = ascii_uppercase + ascii_lowercase
GIVEN = (
    "einsum: the subscripts come first, as a string; or each operand is followed by a list "
    "of its subscripts."
)
OPTIMIZE = (
    "einsum: optimize is {!r}; it may be True, False, 'greedy', 'optimal', ('greedy', a number "
    "of elements), or a path that begins with 'einsum_path', as that of numpy.einsum_path."
)


def read(operands: Sequence[Any]) -> tuple[str, list[Any]]:
    """The subscripts as a string, and the operands, for both forms of the call."""
    if operands and isinstance(operands[0], str):
        return operands[0], list(operands[1:])
    if len(operands) < 2 or not all(isinstance(o, (list, tuple)) for o in operands[1::2]):
        raise ValueError(GIVEN)
    texts = [_letters(labels) for labels in operands[1::2]]
    if len(operands) % 2 == 0:
        return ",".join(texts), list(operands[::2])
    if not isinstance(operands[-1], (list, tuple)):
        raise ValueError(GIVEN)
    return f"{','.join(texts)}->{_letters(operands[-1])}", list(operands[:-1:2])


def _letters(labels: Sequence[Any]) -> str:
    """Convert a list of integers, with at most an ellipsis, to letters in the same order."""
    text = ""
    for label in labels:
        if label is Ellipsis:
            text += "..."
            continue
        try:
            number = index(label)
        except TypeError:
            raise TypeError(
                f"einsum: a subscript in a list is an integer or an ellipsis, not {label!r}."
            ) from None
        if not 0 <= number < 52:
            raise ValueError(
                f"einsum: the subscript {number} in a list is out of range: it must be at least "
                "0 and less than 52."
            )
        text += LETTERS[number]
    return text


def parse(
    subscripts: str, shapes: tuple[tuple[int, ...], ...]
) -> tuple[tuple[Labels, ...], Labels, dict[str, int]]:
    """The labels of the axes of each operand and of the result, and the length of each label.

    Raises ValueError where they do not fit.
    """
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    wrong = re.search(r"[^A-Za-z.,]", left + right.replace(",", "!"))
    if wrong is not None:
        raise ValueError(
            f"einsum: {wrong.group().replace('!', ',')!r} in the subscripts {subscripts!r} is "
            "none: they are letters, '...', ',' between operands and one '->'."
        )
    parts = left.split(",")
    if len(parts) != len(shapes):
        raise ValueError(
            f"einsum: the subscripts {subscripts!r} are for {len(parts)} operands, but there are "
            f"{len(shapes)}."
        )
    inputs = tuple(
        _labels(part, shape, subscripts, i)
        for i, (part, shape) in enumerate(zip(parts, shapes, strict=True))
    )
    lengths = _lengths(inputs, shapes)
    hidden = sorted((label for label in lengths if label.isdigit()), key=int, reverse=True)
    if arrow:
        output = _output(right, hidden, lengths, subscripts)
    else:
        letters = [label for labels in inputs for label in labels if not label.isdigit()]
        output = (*hidden, *sorted(label for label in set(letters) if letters.count(label) == 1))
    return inputs, output, lengths


def _split(part: str, subscripts: str, where: str) -> tuple[str, bool, str]:
    before, dots, after = part.partition("...")
    if "." in before or "." in after:
        raise ValueError(
            f"einsum: a '.' in the subscripts {subscripts!r} does not belong to the one '...' of "
            f"{where}."
        )
    return before, bool(dots), after


def _labels(part: str, shape: tuple[int, ...], subscripts: str, i: int) -> Labels:
    before, dots, after = _split(part, subscripts, f"operand {i}")
    missing = len(shape) - len(before) - len(after)
    if missing < 0:
        raise ValueError(
            f"einsum: operand {i} has {len(shape)} axes, fewer than its subscripts in "
            f"{subscripts!r}."
        )
    if missing and not dots:
        raise ValueError(
            f"einsum: operand {i} has {len(shape)} axes, more than its subscripts in "
            f"{subscripts!r}; write '...' for the axes to broadcast."
        )
    return (*before, *(str(n) for n in range(missing, 0, -1)), *after)


def _lengths(inputs: Sequence[Labels], shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
    """The length of each label; a length of 1 broadcasts to that of another operand."""
    lengths: dict[str, int] = {}
    for labels, shape in zip(inputs, shapes, strict=True):
        own: dict[str, int] = {}
        for label, n in zip(labels, shape, strict=True):
            if own.setdefault(label, n) != n:
                raise ValueError(
                    f"einsum: the axes that {label!r} takes the diagonal of have lengths "
                    f"{own[label]} and {n}."
                )
        for label, n in own.items():
            length = lengths.get(label, 1)
            if length not in (1, n) and n != 1:
                name = "'...'" if label.isdigit() else repr(label)
                raise ValueError(
                    f"einsum: {name} has the lengths {length} and {n} in different operands; the "
                    f"shapes are {', '.join(map(str, shapes))}."
                )
            lengths[label] = length if n == 1 else n
    return lengths


def _output(part: str, hidden: list[str], lengths: dict[str, int], subscripts: str) -> Labels:
    before, dots, after = _split(part, subscripts, "the result")
    for label in before + after:
        if label not in lengths:
            raise ValueError(
                f"einsum: no operand has the subscript {label!r} of the result in {subscripts!r}."
            )
        if (before + after).count(label) > 1:
            raise ValueError(
                f"einsum: the result has the subscript {label!r} more than once in {subscripts!r}."
            )
    if hidden and not dots:
        raise ValueError(
            "einsum: '...' covers axes of the operands, but the result has no '...' in "
            f"{subscripts!r}."
        )
    return (*before, *hidden, *after)


# ----- the order of contraction -----


def order(
    inputs: tuple[Labels, ...], output: Labels, sizes: dict[str, int], optimize: Any
) -> tuple[tuple[int, ...], ...]:
    """Choose which operands to contract, step by step.

    A step holds their places in the list; they are removed from it, and the result is appended.
    """
    if isinstance(optimize, tuple) and optimize and optimize[0] == "einsum_path":
        return _pairwise(optimize[1:], len(inputs))
    how, limit = (
        optimize if isinstance(optimize, tuple) and len(optimize) == 2 else (optimize, None)
    )
    if not (isinstance(how, bool) or how in ("greedy", "optimal")) or not isinstance(
        limit, (int, float, type(None))
    ):
        raise TypeError(OPTIMIZE.format(optimize))
    if len(inputs) < 3:
        return (tuple(range(len(inputs))),)
    try:
        from opt_einsum import contract_path, get_symbol
    except ImportError:
        return _smallest_first(inputs, output, sizes)
    letters = {label: get_symbol(i) for i, label in enumerate(sizes)}
    parts = ["".join(letters[label] for label in labels) for labels in (*inputs, output)]
    text = f"{','.join(parts[:-1])}->{parts[-1]}"
    shapes = [tuple(sizes[label] for label in labels) for labels in inputs]
    path, _ = contract_path(
        text,
        *shapes,
        shapes=True,
        optimize="auto" if isinstance(how, bool) else how,
        memory_limit=limit,
    )
    return tuple(map(tuple, path))


def _pairwise(path: tuple[Any, ...], count: int) -> tuple[tuple[int, ...], ...]:
    """A path of the user, with a step of several operands as steps of two."""
    steps: list[tuple[int, ...]] = []
    for step in path:
        if (
            not isinstance(step, tuple)
            or len(set(step)) != len(step)
            or not all(0 <= i < count for i in step)
        ):
            raise ValueError(
                f"einsum: the step {step!r} of the path is invalid: {count} operands are left."
            )
        steps.append(step[:2])
        places = [i for i in range(count) if i not in step[:2]]
        for i in step[2:]:  # with the product so far, which is the last operand
            steps.append((len(places), places.index(i)))
            places.remove(i)
        count -= len(step) - 1
    if count != 1:
        raise ValueError(
            f"einsum: the path leaves {count} operands to contract; add a step for them."
        )
    return tuple(steps)


def _smallest_first(
    inputs: Sequence[Labels], output: Labels, lengths: dict[str, int]
) -> tuple[tuple[int, ...], ...]:
    """Contract the pair whose product saves most elements, at each step."""
    factors = [frozenset(labels) for labels in inputs]
    path = []

    def size(labels: frozenset[str]) -> int:
        return prod(lengths[label] for label in labels)

    def growth(pair: tuple[int, int]) -> tuple[int, int]:
        one, two = (factors[i] for i in pair)
        return size(product_of(*pair)) - size(one) - size(two), size(one | two)

    def product_of(i: int, j: int) -> frozenset[str]:
        others = frozenset(output).union(
            *(labels for k, labels in enumerate(factors) if k not in (i, j))
        )
        return (factors[i] | factors[j]) & others

    while len(factors) > 1:
        i, j = min(combinations(range(len(factors)), 2), key=growth)
        path.append((i, j))
        product = product_of(i, j)
        factors = [labels for k, labels in enumerate(factors) if k not in (i, j)] + [product]
    return tuple(path)
