"""Derivatives as users get them: arrays that nothing else shares, writable where the library's arrays are.

A pass may end with one array as the gradient of two arguments, with a broadcast, or with the array that the user gave as a cotangent. What
is handed out is copied, unless reference counts prove that it is in nobody else's hands, as the kernel `own` does for the `.grad` of a leaf.
"""

from __future__ import annotations

import sys
from typing import Any

from ..backends.kernels import SOLE_OWNER
from .computed import mark
from .graph import AccumulateGrad
from .level import Layer
from .tensor import Tensor, element_of, wrap_at


def owned(values: list[Any], like: Any) -> Any:
    """Take the last of `values`, a derivative with respect to `like` or of it, and return it as an array of its own.

    The list should hold the only reference to a value that need not be copied. A scalar of the library stays one if `like` is one.
    """
    x = values[-1]
    if isinstance(x, Layer):
        layered = _owned_tensor if isinstance(x, Tensor) else _owned_layer
        del x
        return layered(values)
    host = element_of(x).host
    if not host.mutable or (isinstance(x, host.scalars) and isinstance(like, host.scalars)):
        return values.pop()
    del x
    return host.own(host.xp, values.pop(), None)


def _owned_tensor(values: list[Any]) -> Any:
    """The same of a Tensor. One with a history owns its memory unless it is a view; whatever writes there counts versions."""
    if values[-1]._history is not None and _is_sole(values):
        return values.pop()
    sole = _references(values) <= SOLE
    t = values.pop()
    t._check()
    if t._history is not None:
        return t.clone()
    inner = [t._array]
    if sole:
        t._array = None
    found = wrap_at(t, owned(inner, t))
    return found if t._node is None else mark(found)


def _owned_layer(values: list[Any]) -> Any:
    """The same of a layer that is never written: another layer, since a write exchanges the value, of parts that can be handed out in turn."""
    sole = _references(values) <= SOLE
    x = values.pop()
    x._check()
    if not sole or x._view is not None:
        x = x._copied()
    for name in x._parts:
        inner = [getattr(x, name)]
        if inner[0] is not None:
            setattr(x, name, None)
            setattr(x, name, owned(inner, x))
    return x


def _references(values: list[Any]) -> int:
    return sys.getrefcount(values[-1])


SOLE = -1 if SOLE_OWNER < 0 else _references([object()])
"""What `_references` says where only the list holds the value. No count is as low where a count proves nothing."""


def _is_sole(values: list[Any]) -> bool:
    """Whether only the list holds this Tensor, and it shares its memory with no other one."""
    if _references(values) > SOLE:
        return False
    t = values[-1]
    if t._view is None:
        return type(t._node) is not AccumulateGrad
    base = [t._view[0]]  # of which a reshaped or transposed array shows all
    return base[0].size == t.size and sys.getrefcount(base[0]) <= SOLE + 1 and base[0]._view is None and type(base[0]._node) is not AccumulateGrad
