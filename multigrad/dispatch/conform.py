"""Check and convert the results of rules to the shape and dtype that they must have.

The results are gradients of arguments and tangents of results. A wrong shape raises.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..core.tensor import element_of
from ..errors import GradientError

if TYPE_CHECKING:
    from ..registry import Op


def conform_gradient(
    xp: Any,
    g: Any,
    shape: tuple[int, ...],
    dtype: Any,
    cotangent: Any = None,
    of: tuple[Op, str] | None = None,
) -> Any:
    """Convert a gradient to the shape and the dtype of its argument.

    of  the operation whose rule has returned it for `cotangent`, and the name of the argument. None
        for a user's function, of which only the shapes are known
    """
    if g is None:
        return None
    try:
        found = g.shape
    except AttributeError:
        raise GradientError(
            f"{_rule_of(*of or ())} returned {type(g).__name__}; it must return an array of the "
            f"shape of its argument, {shape}"
        ) from None
    if found != shape:
        larger = is_larger(found, shape)
        if not larger or (
            of is not None and not _is_broadcast(*of, tuple(found), shape, cotangent)
        ):
            raise GradientError(
                f"{_rule_of(*of or ())} returned a gradient of shape {tuple(found)} for an "
                f"argument of shape {shape}{', which broadcasting does not explain' * larger}"
            )
        g = unbroadcast(xp, g, shape)
    if g.dtype != dtype:
        if xp.isdtype(g.dtype, "complex floating") and not xp.isdtype(dtype, "complex floating"):
            g = xp.real(g)
        if g.dtype != dtype:
            g = xp.astype(g, dtype)
    return g


def shape_tangent(
    xp: Any, t: Any, shape: Any, op: Op, term: bool = False, argument: str = ""
) -> Any:
    """Raise if a tangent that a rule of `op` returned does not have the shape of the result.

    term      whether the tangent is a sum over some arguments of an elementwise operation. Such a
              sum may be smaller than the result, and is returned broadcast to its shape
    argument  the argument that was differentiated, if the tangent is that of one argument
    """
    shape = tuple(shape)
    try:
        found = tuple(t.shape)
    except AttributeError:
        raise GradientError(
            f"{_rule_of(op, argument)} returned {type(t).__name__}; it must return a "
            f"tangent, an array of the shape of the result, {shape}"
        ) from None
    if _alike(found, shape):
        return t
    if not term or not is_larger(shape, found):
        raise GradientError(
            f"{_rule_of(op, argument)} returned a tangent of shape {found} for a result of "
            f"shape {shape}"
        )
    return xp.broadcast_to(t, shape)


def conform_tangent(xp: Any, t: Any, result: Any, op: Op, term: bool = False) -> Any:
    """A tangent in the shape and the dtype of the result; None if that is not floating.

    term  as for `shape_tangent`
    """
    elem = element_of(result)
    if t is None or not elem.floating:
        return None
    t = shape_tangent(xp, t, result.shape, op, term)
    if t.dtype != result.dtype:
        t = xp.astype(xp.real(t) if element_of(t).complex and not elem.complex else t, result.dtype)
    return t


def _rule_of(op: Op | None = None, argument: str = "") -> str:
    if op is None:
        return "a derivative rule"
    of_argument = f" for the argument {argument!r}" if argument else ""
    return f"the derivative rule of the operation {op.name!r}{of_argument}"


def _is_broadcast(
    op: Op, name: str, found: tuple[int, ...], shape: tuple[int, ...], cotangent: Any
) -> bool:
    """Whether a gradient has additional axes because the argument was broadcast along them.

    An elementwise operation, or one on a single array, broadcasts it to the shape of its result. An
    operation along an axis broadcasts its arguments to the shape of the result, except for that
    axis, which is missing there (vecdot) or has another length (take_along_axis). For others
    (matmul), the first axes of the result are the broadcast ones. A written value is broadcast to
    the shape of the part that the key selects; the array that the key is for is not broadcast.
    """
    extra = len(found) - len(shape)
    summed = [*range(extra), *(i for i, n in enumerate(shape, extra) if n == 1 and found[i] != 1)]
    if not summed:  # sizes that are not known yet
        return True
    if "key" in op.roles:
        return name != op.arrays[0]
    outs = [
        tuple(c.shape)
        for c in (cotangent if isinstance(cotangent, (tuple, list)) else (cotangent,))
        if c is not None
    ]
    if op.kind == "elementwise" or op.batching == "elementwise" or len(op.arrays) == 1:
        return any(_alike(found, out) for out in outs)
    if "axis" in op.roles:  # at any position
        return any(
            _alike(_without(found, i), out) or _alike(_without(found, i), _without(out, i))
            for out in outs
            for i in range(len(found))
        )
    return any(
        len(found) <= len(out) and all(i < len(out) and _same(out[i], found[i]) for i in summed)
        for out in outs
    )


def _alike(shape: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return len(shape) == len(other) and all(map(_same, shape, other))


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], *shape[axis + 1 :])


def is_larger(found: Sequence[Any], shape: Sequence[Any]) -> bool:
    """Whether an array of `shape` could be broadcast to the shape `found`."""
    return len(found) >= len(shape) and all(
        n == 1 or _same(n, m) for n, m in zip(reversed(shape), reversed(found))
    )


def _same(n: Any, m: Any) -> bool:
    """Whether two sizes may be equal. Unknown sizes are nan."""
    return bool(n == m or (n != n and m != m))


def unbroadcast(xp: Any, g: Any, shape: tuple[int, ...]) -> Any:
    """Sum `g` over the axes along which an argument of that shape was broadcast."""
    extra = len(g.shape) - len(shape)
    if extra == 1 and g.shape[1:] == shape:  # a bias
        return xp.sum(g, axis=0, dtype=g.dtype)
    axes = tuple(range(extra)) + tuple(
        i + extra for i, n in enumerate(shape) if n == 1 and g.shape[i + extra] != 1
    )
    if axes:
        g = xp.sum(g, axis=axes, keepdims=extra == 0, dtype=g.dtype)
    return g if g.shape == shape else xp.reshape(g, shape)
