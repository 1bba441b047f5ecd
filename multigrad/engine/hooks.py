"""Calling the hooks of a node, in the order of PyTorch: hooks in order of registration, then what retain_grad stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import GradientError
from .dispatch import innermost
from .graph import AccumulateGrad, GradCell, Node
from .level import Layer
from .tensor import Tensor, element_of, wrap_at

if TYPE_CHECKING:
    from .backward import Pass


def run_hooks(node: Node, g: Any, p: Pass) -> Any:
    """Pass the gradient of a Tensor through its hooks and store it if the Tensor retains it."""
    inside = not isinstance(g, Tensor) or g._level < p.like._level
    t = wrap_at(p.like, g) if inside else g
    for hook in tuple(node.extra.hooks.values()):
        result = hook(t)
        if result is not None:
            t = _checked(hook, result, t)
    if node.extra.retain is not None:
        node.extra.retain.grad = _own(t, node.extra.retain, p)
    return t._array if inside and isinstance(t, Tensor) and t._level == p.like._level and not p.create else t


def _own(t: Tensor, cell: GradCell, p: Pass) -> Tensor:
    """What retain_grad stores: not the array that is still on its way through the pass."""
    if isinstance(t._array, Layer):
        return t
    holder = cell.holder() if cell.holder is not None else None
    host = t._elem.host
    array = host.own(host.xp, t._array, None if holder is None else innermost(holder))
    return t.clone() if p.create else wrap_at(t, array)


def _checked(hook: Any, result: Any, before: Tensor) -> Tensor:
    if not isinstance(result, Layer):
        raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'")
    name = getattr(hook, "__name__", type(hook).__name__)
    if tuple(result.shape) != tuple(before.shape):  # type: ignore[attr-defined]
        raise GradientError(f"hook '{name}' has changed the size of value")
    if element_of(result) is not before._elem:
        raise GradientError(f"hook '{name}' has changed the type of value (was {before._elem.host.name} {before.dtype} got "
                            f"{element_of(result).host.name} {element_of(result).dtype})")
    return result  # type: ignore[return-value]


def run_post_accumulate(node: AccumulateGrad, leaf: Tensor) -> None:
    """Call the hooks that follow the accumulation into a leaf; they get the leaf and return nothing."""
    for hook in tuple(node.extra.post_accumulate.values()):
        if hook(leaf) is not None:
            raise GradientError("Tensor post accumulate grad hooks should return None.")
