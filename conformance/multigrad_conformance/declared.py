"""Checks of declarations that hide a capability of a library.

At no level would a test of an operation detect them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .target import Target


def hidden(target: Target) -> Iterator[str]:
    """Yield each wrong declaration in Capabilities, with the observation that refutes it."""
    c = target.capabilities
    for declared, said, test, seen in (
        (
            "mutable=False",
            not c.mutable,
            is_written,
            "x[0] = v changes the memory that a view shows",
        ),
        ("negative_steps=False", not c.negative_steps, goes_backwards, "x[::-1] reverses x"),
        (
            "lazy=True",
            c.lazy,
            looks_at_values,
            "take raises at once for an index that is out of bounds, which only values tell",
        ),
    ):
        if said and _holds(test, target):
            yield f"{declared}, yet {seen}"


def is_written(target: Target) -> bool:
    """Return whether a write to an array is visible in a view of it."""
    x = target.raw(np.asarray([1.0, 2.0]))
    view = x[:1]
    x[0] = 5.0
    return float(target.numpy(view)[0]) == 5.0


def goes_backwards(target: Target) -> bool:
    x = target.raw(np.asarray([1.0, 2.0]))
    return bool(np.array_equal(target.numpy(x[::-1]), [2.0, 1.0]))


def looks_at_values(target: Target) -> bool:
    """Return whether an error that depends on values is raised before values are requested."""
    x, inside, outside = (target.raw(np.asarray(a)) for a in ([1.0, 2.0], [0, 1], [0, 7]))
    target.xp.take(x, inside, axis=0)
    try:
        target.xp.take(x, outside, axis=0)
    except Exception:  # libraries raise different errors
        return True
    return False


def _holds(test: Callable[[Target], bool], target: Target) -> Any:
    try:
        return test(target)
    except Exception:  # libraries raise different errors for what they do not support
        return False
