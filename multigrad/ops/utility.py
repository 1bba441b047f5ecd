"""Utility functions of the standard."""

from __future__ import annotations

from typing import Any

from ..registry import About, composite, nondifferentiable
from .keys import along, place

# fmt: off
for _name in ("all", "any"):
    nondifferentiable(
        f"{_name}(x, /, *, axis=None, keepdims=False)", batching="axis",
        doc="Whether all elements are true." if _name == "all" else "Whether any element is true.",
        about=About(example="mg.asarray([True, False])", returns="booleans", numpy_keywords=True))
# fmt: on


def diff(xp: Any, x: Any, axis: int, n: int, prepend: Any, append: Any) -> Any:
    """Join, then subtract n times.

    For n = 0 the result is x itself, without prepend and append, as in NumPy.
    """
    if n < 0:
        raise ValueError(
            f"diff: n is {n}; it must be 0 or more, the number of times that differences are taken."
        )
    if n == 0:
        return x
    parts = [a for a in (prepend, x, append) if a is not None]
    if len(parts) > 1:
        x = xp.concat(parts, axis=axis)
    axis = place("diff", "axis", axis, len(x.shape))
    # with more differences than elements, the result is empty
    for _ in range(min(n, x.shape[axis])):
        x = x[along(axis, 1, None)] - x[along(axis, 0, -1)]
    return x


composite(
    "diff(x, /, *, axis=-1, n=1, prepend: array = None, append: array = None)",
    diff,
    doc="The n-th differences of neighbouring elements along an axis.",
    about=About(
        gradient="-diff(g), with zeros at both ends, for n = 1",
        example="V",
        positional=("n", "axis"),
    ),
)
