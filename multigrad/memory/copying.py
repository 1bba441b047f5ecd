"""copy.deepcopy of Tensors and the other layers.

The copy of a leaf is another leaf, with its flag and gradient. The copy of anything else is
differentiable, like that of clone(), so gradients flow through it to the original. Objects that
share memory have copies that share memory, within one call of deepcopy. As in PyTorch, the whole
memory of a view is copied, and the copy is made a view of that in the same way.

So the copy of a view of a leaf is a view of the leaf's copy if that leaf is copied as well, and
leads to the original leaf otherwise. The order in which deepcopy meets them must not matter. So the
copy of the leaf's memory begins as a clone, and becomes a leaf when deepcopy reaches the leaf.

Some libraries call copy.deepcopy within a computation (`is_step`). There a new leaf would silently
drop the gradient, so such a library gets a differentiable copy of a leaf as well.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from ..core.aliasing import climb
from ..core.conversions import conversion
from ..core.graph import AccumulateGrad
from ..core.level import Layer
from ..core.tensor import Data, Tensor, wrap_at
from ..dispatch.general import general, wrap_like
from ..provided import wanted
from . import views

_KEY = "multigrad.copies"


@wanted
def is_step() -> bool:
    """Whether a library such as xarray made the deep copy in order to compute with it.

    Provided by clients/.
    """
    return False


Copies = dict[int, tuple[Any, Any, Any]]
"""By the id of each original: the original, its copy, and its array, whose id may be in the memo.

Bases come before their views.
"""


@conversion
def deepcopy(self: Any, memo: dict[Any, Any]) -> Any:
    """A copy for copy.deepcopy.

    Raises LeakError for a layer of a transformation that has finished.
    """
    if id(self) in memo:
        return memo[id(self)]
    self._check()
    if isinstance(self, Tensor) and self._node is not None and _is_leaf(self) and is_step():
        copied = memo[id(self)] = self.clone()
        return copied
    chain = _chain(self)
    copies: Copies = memo.setdefault(_KEY, {})
    recorded = isinstance(self, Tensor) and self._node is not None
    for x in reversed(chain):
        x._check()
        if id(x) not in copies:
            duplicate = (
                _whole(x, memo, recorded) if x is chain[-1] else _part(x, copies[id(x._view[0])][1])
            )
            copies[id(x)] = x, duplicate, x._array
    copied = memo[id(self)] = copies[id(self)][1]
    if isinstance(self, Tensor):
        if _is_leaf(self):
            _make_leaf(self, copied, copies)
            cell = getattr(self, "_grad_cell", None)
            if cell is not None and cell.grad is not None:
                copied._own_cell().grad = copy.deepcopy(cell.grad, memo)
        else:
            _record(chain, copies)
    return copied


def _chain(x: Any) -> list[Any]:
    """A layer and its chain of bases, up to the root of the memory or to one of several views."""
    return _up_to(climb(x), lambda y: views.is_part(y) and y._view[1].outputs != ())


def _up_to(chain: list[Any], ends: Callable[[Any], bool]) -> list[Any]:
    """The beginning of a chain, with the first object for which `ends` holds."""
    return chain[: next((i for i, x in enumerate(chain, 1) if ends(x)), len(chain))]


def _is_leaf(x: Tensor) -> bool:
    """Whether the copy is a leaf: of a constant, or a leaf that is no argument of a run."""
    return x._node is None or (type(x._node) is AccumulateGrad and not views.is_argument(x))


def _whole(x: Any, memo: dict[Any, Any], recorded: bool) -> Any:
    """A copy of the memory of `x`; `recorded`: the object to copy has a history."""
    array = x._array
    if not isinstance(x, Tensor) or (isinstance(array, Layer) and recorded and x._node is not None):
        return x.clone()
    if isinstance(array, Layer):
        return wrap_at(x, copy.deepcopy(array, memo))
    library = x._elem.library
    # with `x.data`, or with the raw array in the same container
    shared = not isinstance(array, library.fixed)
    if shared and id(array) in memo:
        return wrap_at(x, memo[id(array)])
    out = (
        x.clone()
        if recorded and x._node is not None
        else wrap_at(x, library.xp.asarray(array, copy=True))
    )
    if shared:
        memo[id(array)] = out._array
    return out


def _part(x: Any, base: Any) -> Any:
    """A view of `base` without a history, made as `x` was made of the original of `base`."""
    if type(x) is Data:
        return Data._of(base)
    view = x._view
    _, op, arguments, number, _ = view
    if op is None:
        return base.detach()
    if isinstance(x, Tensor):
        return wrap_like(base, views.shown(base, view), base, view[1:])
    out = general(op, (base, *arguments))
    return out if number is None or op.outputs == () else out[number]


def _history(chain: list[Any]) -> list[Any]:
    """The part of a chain that shares a history, up to a leaf or what is no part of its base."""
    return _up_to(chain, lambda x: not views.is_part(x) or type(x._node) is AccumulateGrad)


def _record(chain: list[Any], copies: Copies) -> None:
    """Give the copy of `chain[0]` its history: that of a view of its base, or that of a clone."""
    bases = _history(chain)
    for x in reversed(bases):
        copied = copies[id(x)][1]
        if copied._node is None and x._node is not None:
            if x is bases[-1]:
                copied._node = x.clone()._node
            else:
                views.record_view(copied)
    t = chain[0]
    if copies[id(t)][1]._node is None:
        copies[id(t)][1]._node = t.clone()._node


def _make_leaf(x: Tensor, copied: Tensor, copies: Copies) -> None:
    """Give the copy of a leaf its flag; earlier copies of its views belong to it from now on."""
    if x._node is None:
        return
    copied._node = None
    copied.requires_grad_()
    for view, other, _ in copies.values():
        if (
            view is not x
            and isinstance(view, Tensor)
            and view._node is not None
            and _history(_chain(view))[-1] is x
        ):
            views.record_view(other)
