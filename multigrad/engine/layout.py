"""What part of a memory a view shows: how it is read from the root that the memory belongs to, and whether a reshape is a view.

Nothing here looks at values. A part is a tuple of steps (operation, its arguments but the first, number of the output), as the kernel
operation copy_slices takes it.
"""

from __future__ import annotations

from math import prod
from typing import Any

from .element import Host, host_named
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
