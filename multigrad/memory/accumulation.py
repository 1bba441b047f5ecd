"""Sums of gradients: of the contributions to a node in a pass, and in the `.grad` of a leaf."""

from __future__ import annotations

from typing import Any

from .. import locks
from ..core.aliasing import Location, last_change, note_write
from ..core.graph import AccumulateGrad, GradCell, Node
from ..core.level import Layer
from ..core.passes import Pass
from ..core.tensor import Tensor, element_of, wrap_at
from ..errors import GradientError, kind
from .old_values import before_write
from .views import keepable, unwritable, write, written

_accumulating = locks.new_lock()


def widened(node: Node, total: Any, narrow: dict[Node, Any]) -> Any:
    """A gradient received so far, in the dtype for sums: in float16, 2048 + 1 is 2048."""
    elem = element_of(total)
    if elem.wide is None:
        return total
    narrow[node] = elem.dtype
    return astype(total, elem.wide)


def astype(x: Any, dtype: Any) -> Any:
    library = element_of(x).library
    return (library.bound if isinstance(x, Layer) else library.xp).astype(x, dtype)


def accumulate(node: AccumulateGrad, box: list[Any], p: Pass) -> Tensor | None:
    """Add the gradient in `box` to a leaf's. Returns the leaf.

    As in PyTorch, a raw array is added in place to the user's gradient at the base level. In a
    transformation, a gradient is a value like all others: it may be an argument on the user's
    memory, or saved by operations that used it. So the sum is a new Tensor, as in a recorded pass.
    """
    leaf: Tensor | None = node.tensor()
    if leaf is None or not node.enabled:
        return None
    cell = node.cell
    layered = leaf._elem.layered or isinstance(box[0], Layer)
    plain = not p.create_graph and not layered
    with _accumulating:
        # again if the code of a signal handler has accumulated in between
        while not _accumulated(cell, leaf, box, plain):
            pass
    return leaf


def _accumulated(cell: GradCell, leaf: Tensor, box: list[Any], plain: bool) -> bool:
    """Add the gradient in `box` to the present one of a leaf, unless that changes meanwhile."""
    before = cell.grad
    changed = 0 if before is None else last_change(before._cell)
    total: Any
    if plain and before is None:
        library = leaf._elem.library
        array = library.take_ownership(library.xp, box.pop(), leaf._array)
        # sums of arrays in another byte order have the machine's
        if array.dtype != leaf._elem.dtype:
            array = library.xp.astype(array, leaf._elem.dtype)
        total = object.__new__(Tensor)
        total._array = array
        total._elem = leaf._elem
        total._cell = []
        total._node = None
        box.append(array)
    elif plain and before is not None and before._elem.run is None:
        _add_in_place(before, box[0])
        return True
    else:
        g = box[0]
        if isinstance(g, Layer) and g._level > leaf._level and g._elem.run is not leaf._elem.run:
            raise GradientError(outer_leaf(g))
        gradient: Any = g if isinstance(g, Tensor) and g._level >= leaf._level else wrap_at(leaf, g)
        keepable(leaf, gradient)
        if before is not None:
            total = before + gradient  # recorded only if the pass is, see run_pass
        else:
            # later gradients are added to it in place
            total = gradient.clone() if gradient._elem.run is None else gradient
    if before is not None and last_change(before._cell) != changed:
        return False
    if cell.grad is not before:  # compared last, so that nothing comes before it is stored
        return False
    cell.grad = total
    return True


def outer_leaf(g: Layer) -> str:
    """The error for a gradient of a transformation that would outlive it in a leaf from outside."""
    return (
        f"backward() cannot accumulate a gradient that is a {kind(g)} of a running transformation; "
        "use multigrad.autograd.grad"
    )


def _add_in_place(before: Tensor, g: Any) -> None:
    before._check()
    if before._view is not None:
        # made by the user, a part of other memory
        total = before._array + g
        keepable(before, total)
        place = Location(before)
        before_write(before._cell)
        before._put(write(before, place, place.part, before._array, total, "backward"))
        written(before, place)
        return
    library = before._elem.library
    before_write(before._cell)
    while True:
        total = old = before._array
        try:
            total += g
        except ValueError as error:  # the user's own array, which .grad was set to
            raise unwritable(before, "adding to .grad", error) from error
        if not library.mutable:
            total = library.take_ownership(library.xp, total, old)
        if before._array is old:
            before._array = total
            break
    note_write(before._cell)
