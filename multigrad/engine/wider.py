"""What functions of the standard take besides, as NumPy's of the same name: `std(x, ddof=1)`, `any(x, out=None)`, `where(c)`, `take(x, [0, 2])`.

Such a call is NumPy's, which the protocols carry out. It is told from one of the standard by the first lines of the generated function. A `strict`
backend has the standard's functions alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..provided import wanted
from ..registry import Op

MORE = ("all", "any", "argmax", "argmin", "max", "mean", "min", "prod", "round", "std", "sum", "take", "var")
"""The functions that take further keywords."""

OMITTED = {"where": ("x1", "x2")}
"""The parameters that may be left out, all of them."""

LISTS = {"take": "indices"}
"""The parameters that may be a list or a number in the place of an array."""


@wanted
def as_numpy(op: Op, arguments: dict[str, Any], more: dict[str, Any]) -> Any:
    """Carry out NumPy's function of the name of an operation, with its arguments and further keywords. (protocols)"""


def lines(op: Op) -> Iterator[str]:
    """The text that tells a call of NumPy's."""
    tests = ["_more"] * (op.name in MORE)
    tests += [f"{n} is None" for n in OMITTED.get(op.name, ())]
    tests += [f"isinstance({LISTS[op.name]}, (int, list, tuple))"] if op.name in LISTS else []
    if tests:
        arguments = ", ".join(f"{n!r}: {n}" for n in op.roles)
        yield f"    if {' or '.join(tests)}:"
        yield f"        return _as_numpy(_op, {{{arguments}}}, {'_more' if op.name in MORE else '{}'})"
