"""Writes to arguments, and whether a program may make them.

Their memory must be writable and must not be shared with another argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.element import Library, library_of
from ..core.level import outside
from ..core.tensor import Tensor, View
from .leaves import NUMBER, Arguments, raw


def write(target: Any, value: Any) -> None:
    """Write a raw array to a Tensor or a raw array."""
    if isinstance(target, Tensor):
        with outside():
            target[...] = value
        return
    library = library_of(target)
    assert library is not None
    library.write(library.xp, target, value)


def may_write(arguments: Arguments, targets: Sequence[int], others: Sequence[Any] = ()) -> bool:
    """Whether the program may write to these leaves of the arguments as the function itself would.

    others  raw arrays that must not share memory with them
    """
    library = arguments.library
    assert library is not None
    leaves = arguments.leaves
    if any(type(leaves[i]) is View for i in targets):
        return False
    if not library.mutable:
        return all(
            arguments.kinds[i].kind == "Tensor" and sum(x is leaves[i] for x in leaves) == 1
            for i in targets
        )
    arrays = [raw(leaves[i]) for i in arguments.inputs if arguments.kinds[i].kind != NUMBER]
    return apart([raw(leaves[i]) for i in targets], [*arrays, *others], library)


def apart(targets: Sequence[Any], arrays: Sequence[Any], library: Library) -> bool:
    """Whether `targets`, which are among `arrays`, are writable and share no memory with others."""
    for x in targets:
        flags = getattr(x, "flags", None)
        if flags is not None and not getattr(flags, "writeable", True):
            return False
    if len(arrays) == 1:
        return _is_simple(targets[0])
    if all(getattr(x, "base", x) is None for x in arrays):  # each owns its memory
        return len({id(x) for x in arrays}) == len(arrays)
    return all(map(_is_simple, targets)) and _apart(targets, arrays, library)


def _is_simple(x: Any) -> bool:
    """Whether no two elements of an array are at the same address."""
    strides = getattr(x, "strides", None)
    if not isinstance(strides, tuple):
        return True
    reach = x.itemsize
    for stride, n in sorted((abs(s), n) for s, n in zip(strides, x.shape, strict=True) if n > 1):
        if stride < reach:
            return False
        reach = stride * (n - 1) + reach
    return True


def _apart(targets: Sequence[Any], arrays: Sequence[Any], library: Library) -> bool:
    """`apart` by the addresses of the memory if they are known, else by the object that owns it."""
    spans = [_span(x) for x in arrays]
    written = {id(x) for x in targets}
    if any(span is None for span in spans):
        storage = library.backend.kernel("storage")
        roots = [id(storage(library.xp, x)[0]) for x in arrays]
        return all(
            roots.count(root) == 1
            for x, root in zip(arrays, roots, strict=True)
            if id(x) in written
        )
    reached = end_of_targets = -1  # the ends of all that begins before, and of the targets among it
    for (start, end), x in sorted(zip(spans, arrays, strict=True), key=lambda pair: pair[0]):  # type: ignore[arg-type,return-value,misc]
        is_target = id(x) in written
        if start < end_of_targets or (is_target and start < reached):
            return False
        reached = max(reached, end)
        if is_target:
            end_of_targets = max(end_of_targets, end)
    return True


def _span(x: Any) -> tuple[int, int] | None:
    """The first and last address of an array's memory, if it has NumPy's `__array_interface__`."""
    interface = getattr(x, "__array_interface__", None)
    if interface is None:
        return None
    start = end = interface["data"][0]
    if x.size == 0:
        return start, start
    for stride, n in zip(x.strides, x.shape, strict=True):
        if stride < 0:
            start += stride * (n - 1)
        else:
            end += stride * (n - 1)
    return start, end + x.itemsize
