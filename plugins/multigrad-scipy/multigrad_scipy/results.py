"""What solvers return: SciPy's results with arrays of the user's library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .arguments import Point
from .levels import Examples

__all__ = ["gathered"]


def gathered(
    found: Sequence[Any],
    point: Point,
    examples: Examples,
    arrays: Sequence[str],
    vectors: Sequence[str],
) -> Any:
    """One result for all examples.

    arrays   the fields that become arrays of the library of x0
    vectors  those of them that have an element for each of x0, and get its structure

    Inside of `vmap`, `success` is whether all examples succeeded, numbers of calls are their sums,
    and `examples` has SciPy's results.
    """
    import numpy as np

    result = type(found[0])(found[0])
    if examples.batched:
        result = type(found[0])(
            {
                key: sum(f[key] for f in found)
                for key in ("nfev", "njev", "nhev", "nit")
                if key in found[0]
            }
        )
        worst = min(found, key=lambda f: bool(f.success))
        result.update(
            success=worst.success,
            status=worst.get("status"),
            message=worst.message,
            examples=list(found),
        )
    for key in arrays:
        if key in found[0]:
            stacked = np.stack([np.asarray(f[key], dtype=np.float64) for f in found])
            array = examples.array(stacked, point.raw)
            result[key] = (
                point.unravel(point.returned(array)) if key in vectors else point.returned(array)
            )
    return result
