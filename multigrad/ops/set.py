"""Set functions of the standard.

The values of unique_* are elements of x. The gradient of each value goes to the element that
`indices` names.
"""

from __future__ import annotations

from math import prod
from typing import Any

from ..registry import About, composite, define, nondifferentiable
from . import batching


def unique_all_vjp(xp: Any, g_values: Any, indices: Any, x_shape: tuple[int, ...]) -> Any:
    """Among equal elements, the element at `indices` receives the gradient."""
    return xp.reshape(xp.scatter_add(g_values, indices, prod(x_shape)), x_shape)


def isin(xp: Any, x1: Any, x2: Any, invert: bool) -> Any:
    """The form for libraries without the function: compare all pairs.

    O(size of x1 * size of x2).
    """
    other = xp.reshape(x2, (-1,)) if hasattr(x2, "dtype") else x2
    if not hasattr(x1, "dtype"):
        x1 = xp.asarray(x1, dtype=other.dtype, device=xp.device_of(other))
    equal = xp.any(xp.expand_dims(x1, axis=-1) == other, axis=-1)
    return ~equal if invert else equal


# ----- the operations -----

# fmt: off
define("unique_all(x, /)", batching=batching.refused("unique_all", "Sort, and compare neighbours."),
       outputs=("values", "indices", "inverse_indices", "counts"), materialize=False,
       doc="The distinct elements, the index of each, the inverse indices that rebuild x, and the "
           "counts.",
       x=unique_all_vjp,
       jvp=lambda xp, t, indices: (
           xp.take(xp.reshape(t, (-1,)), indices, axis=0), None, None, None
       ),
       about=About(gradient="the cotangent of each value, added to its element of x",
                   example="mg.asarray([2.0, 1.0, 2.0])", sized_by_values=True))
# Computed from unique_all, whose values have a gradient.
_VALUES = About(example="mg.asarray([2.0, 1.0, 2.0])", sized_by_values=True)
composite("unique_counts(x, /)", lambda xp, x: xp.unique_all(x)[::3], outputs=("values", "counts"),
          doc="The distinct elements, and the count of each.", about=_VALUES)
composite("unique_inverse(x, /)", lambda xp, x: xp.unique_all(x)[:3:2],
          outputs=("values", "inverse_indices"),
          doc="The distinct elements, and the inverse indices that rebuild x.", about=_VALUES)
composite("unique_values(x, /)", lambda xp, x: xp.unique_all(x)[0], doc="The distinct elements.",
          about=_VALUES)
nondifferentiable("isin(x1, x2, /, *, invert=False)", forward={"*": isin}, batching=batching.isin,
                  doc="Whether each element of x1 occurs in x2.",
                  about=About(example="V, mg.asarray([1.0])", returns="booleans"))
