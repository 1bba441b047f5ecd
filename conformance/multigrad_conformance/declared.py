"""Declarations of a backend that hide what its library can do, where no test of an operation would
tell at every level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .target import Target


def hidden(target: Target) -> Iterator[str]:
    """What the backend says of its library by Capabilities, yet is not so, with how that was
    seen.
    """
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
    """Whether a write is seen by a view of the array."""
    x = target.raw(np.asarray([1.0, 2.0]))
    view = x[:1]
    x[0] = 5.0
    return float(target.numpy(view)[0]) == 5.0


def goes_backwards(target: Target) -> bool:
    x = target.raw(np.asarray([1.0, 2.0]))
    return bool(np.array_equal(target.numpy(x[::-1]), [2.0, 1.0]))


def looks_at_values(target: Target) -> bool:
    """Whether what only the values of an array tell is an error before anything asks for values."""
    x, inside, outside = (target.raw(np.asarray(a)) for a in ([1.0, 2.0], [0, 1], [0, 7]))
    target.xp.take(x, inside, axis=0)
    try:
        target.xp.take(x, outside, axis=0)
    except Exception:  # whatever the library raises
        return True
    return False


def _holds(test: Callable[[Target], bool], target: Target) -> Any:
    try:
        return test(target)
    except Exception:  # what a library cannot do, it says by whatever error it likes
        return False
