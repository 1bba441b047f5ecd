"""What part of a memory a view shows: how it is read from the root that the memory belongs to, and whether a reshape is a view.

Nothing here looks at values. A part is a tuple of steps (operation, its arguments but the first, number of the output), as the kernel
operation copy_slices takes it.
"""

from __future__ import annotations

from math import prod
from typing import Any

from .element import Host, host_named
from .graph import Node
from .level import Layer, innermost

Part = tuple[tuple[str, tuple[Any, ...], int | None], ...]


def memory(t: Any) -> tuple[Any, Part]:
    """The Tensor that the memory of `t` belongs to, and what part of it `t` shows."""
    return _ascend(t, through_detached=True)


def history(t: Any) -> tuple[Any, Part]:
    """The Tensor whose history that of `t` is part of, and what part of it `t` shows. A detached Tensor has one of its own."""
    return _ascend(t, through_detached=False)


def _ascend(t: Any, through_detached: bool) -> tuple[Any, Part]:
    steps = []
    while t._born is not None and (t._how is not None or through_detached) and t._cell is t._base._cell:
        if t._how is not None:
            op, args, number, _ = t._how
            steps.append((op.name, args, None if op.outputs == () else number))
        t = t._base
    return t, tuple(reversed(steps))


DEPTH = 4
"""How many views of views stand before a chain is shortened."""


def shortcut(t: Any) -> tuple[Any, Any] | None:
    """What the base of the view `t` is a view of, past views by indices and slices, and how. None where the chain is short, or cannot be shortened.

    So what a write costs does not grow with the length of a chain of written views. A leaf, and what has hooks, keeps its place in the history.
    """
    x = t
    for _ in range(DEPTH):
        if x._born is None or x._how is None or x._cell is not x._base._cell:
            return None
        x = x._base
    first = x = t._base
    key = how = None
    while x._born is not None and x._how is not None and x._cell is x._base._cell and (x._node is None or type(x._node) is Node):
        if x._how[0].name != "getitem" or x._how[2] is not None or x._how[2:] != first._how[2:]:
            break
        key = x._how[1][0] if key is None else _composed(x._base.shape, x._how[1][0], key)
        if key is None:
            break
        x, how = x._base, (x._how[0], (key,), *x._how[2:])
    return None if how is None or x is first._base else (x, how)


def _composed(shape: tuple[int, ...], first: Any, second: Any) -> tuple[Any, ...] | None:
    """The key that selects `x[first][second]` of an array of that shape. None if the keys have other entries than integers and slices."""
    outer = _by_axis(first, len(shape))
    if outer is None:
        return None
    inner = _by_axis(second, sum(type(k) is slice for k in outer))
    if inner is None:
        return None
    rest = iter(inner)
    found: list[Any] = []
    for n, k in zip(shape, outer, strict=True):
        if type(k) is slice:
            chosen = range(n)[k][next(rest)]
            k = chosen if type(chosen) is int else _slice_of(chosen, n)
        found.append(k)
    return (*found, ...)


def _by_axis(key: Any, ndim: int) -> list[Any] | None:
    """The integer or slice of a key for each axis."""
    entries = key if type(key) is tuple else (key,)
    if any(type(k) not in (int, slice) and k is not Ellipsis for k in entries):
        return None
    found: list[Any] = []
    missing = ndim - sum(k is not Ellipsis for k in entries)
    for k in entries if any(k is Ellipsis for k in entries) else (*entries, ...):
        found += [slice(None)] * missing if k is Ellipsis else [k]
    return found if len(found) == ndim else None


def _slice_of(chosen: range, n: int) -> slice:
    """A slice, with bounds that the standard allows, that selects a range of the indices of an axis of length `n`."""
    if not chosen:
        return slice(0, 0, 1)
    stop = chosen[-1] + (1 if chosen.step > 0 else -1)
    return slice(chosen[0], stop if stop >= 0 else None, chosen.step)


def in_memory(t: Any) -> bool:
    """Whether writing to the array of `t` changes the memory: not all that the standard allows to be a view is one in every library."""
    host: Host = t._elem.host
    if not host.mutable or isinstance(t._array, host.fixed):
        return False
    if t._born is None:
        return True
    root, _ = memory(t)
    return root is t or (not isinstance(root._array, Layer) and (t._array is root._array or bool(host.shared(host.xp, t._array, root._array))))


def allows(x: Any, array: Any, reshaped: Any) -> bool:
    """Whether reshaping `array`, the value of the Tensor `x`, to the shape of `reshaped` made no copy.

    Where memory cannot be seen, what is computed counts as laid out row by row, and views of it as they would be in NumPy.
    """
    host: Host = x._elem.host
    inner = innermost(array)
    if host.mutable and inner.shape == array.shape:
        if isinstance(inner, host.scalars):
            return True
        try:
            host.xp.reshape(inner, reshaped.shape, copy=False)
        except (ValueError, AttributeError):  # AttributeError: of array_api_strict
            return False
        return True
    root, part = memory(x)
    if not part:
        return True
    try:
        host_named("numpy").xp.read_slices(_without_memory(root.shape), part).reshape(reshaped.shape, copy=False)
    except ValueError:
        return False
    return True


def _without_memory(shape: tuple[int, ...]) -> Any:
    """An array that has strides, and one byte for all its elements."""
    import numpy as np

    strides = []
    step = 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return np.lib.stride_tricks.as_strided(np.zeros(1, bool), shape, strides[::-1])


def overlaps(t: Any) -> bool:
    """Whether an element of the memory shows at several places of the view `t`."""
    x = t
    while x._born is not None and x._cell is x._base._cell:
        if prod(x.shape) > prod(x._base.shape):  # no other view can
            break
        x = x._base
    else:
        return False
    import numpy as np

    root, part = memory(t)
    numbers = np.reshape(np.arange(prod(root.shape)), root.shape)
    places = host_named("numpy").xp.read_slices(numbers, tuple(step for step in part if step[0] not in ("real", "imag")))
    return bool(np.unique(places).size < places.size)
