"""Residuals: arrays that rules need and that are neither arguments nor outputs.

An example is the permutation of a sort. See registry.py.
"""

from __future__ import annotations

from typing import Any

from ..core.element import Library
from ..core.level import Layer, outside
from ..core.tensor import strip, wrap
from ..errors import GradientError
from ..registry import Op, Rule, per_operation


@per_operation
def residuals(op: Op) -> dict[str, Rule]:
    """The functions that compute the residuals that rules of `op` take, by name."""
    rules = (op.vjp,) if isinstance(op.vjp, Rule) else op.vjp.values()
    return {
        name: f
        for rule in (*rules, *([] if op.jvp is None else [op.jvp]))
        for name, f in rule.residuals.items()
    }


def compute(op: Op, name: str, xp: Any, *args: Any) -> Any:
    """Compute the residual `name` from the arguments of its function, with namespace `xp`."""
    function: Any = residuals(op)[name].fn
    out = function(xp, *args)
    if not hasattr(out, "dtype") or not xp.isdtype(out.dtype, ("bool", "integral")):
        kind = getattr(out, "dtype", type(out).__name__)
        raise GradientError(
            f"the residual {name!r} of the operation {op.name!r} is of {kind}; it must be an "
            "array of integers or booleans. Let the rule compute what depends on an argument "
            "differentiably."
        )
    return out


def compute_while_recording(op: Op, name: str, library: Library, *args: Any) -> Any:
    """Compute a residual for a new node.

    Arguments are raw arrays, or, if a value is itself a layer, layers only, as for rules.
    """
    if not any(isinstance(x, Layer) for x in args):
        return compute(op, name, library.xp, *args)
    with outside():
        out = compute(
            op,
            name,
            library.bound,
            *(wrap(x) if hasattr(x, "dtype") and not isinstance(x, Layer) else x for x in args),
        )
    return strip(out)
