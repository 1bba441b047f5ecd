"""Results of solvers: SciPy's results with arrays of the user's library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .arguments import Point
from .levels import Examples

__all__ = ["gathered"]


def gathered(
    results: Sequence[Any],
    point: Point,
    examples: Examples,
    arrays: Sequence[str],
    vectors: Sequence[str],
) -> Any:
    """Gather the results of all examples in one.

    arrays   the fields that become arrays of x0's library
    vectors  those of them that have an element for each element of x0, and get its structure

    Inside `vmap`, `success` is whether all examples succeeded, numbers of calls are sums over the
    examples, and `examples` has SciPy's results.
    """
    import numpy as np

    result = type(results[0])(results[0])
    if examples.batched:
        result = type(results[0])(
            {
                key: sum(f[key] for f in results)
                for key in ("nfev", "njev", "nhev", "nit")
                if key in results[0]
            }
        )
        worst = min(results, key=lambda f: bool(f.success))
        result.update(
            success=worst.success,
            status=worst.get("status"),
            message=worst.message,
            examples=list(results),
        )
    for key in arrays:
        if key in results[0]:
            stacked = np.stack([np.asarray(f[key], dtype=np.float64) for f in results])
            array = examples.array(stacked, point.raw)
            result[key] = (
                point.unravel(point.returned(array)) if key in vectors else point.returned(array)
            )
    return result
