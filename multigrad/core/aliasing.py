"""Where a view lies in its memory: one climb along its bases, and what part of the memory the steps
back show. When memory was written.

Nothing here looks at values. A part is a tuple of steps (operation, its arguments but the first,
number of the output), as the kernel operation copy_slices takes it.
"""

from __future__ import annotations

from math import gcd, prod
from typing import Any

from ..registry import OPS, Op
from .element import Library, library_named
from .graph import Node, tick
from .level import Layer, innermost

Step = tuple[Op | None, tuple[Any, ...], int | None, bool | None]
"""How a view was made of its base: the operation, its arguments but the first, the number of the
output if there are several, and whether it was recorded: True, False in a mode that does not
record, None inside an autograd.Function."""

ViewSpec = tuple[Any, Op | None, tuple[Any, ...], int | None, bool | None]
"""What makes an array object a view: its base, and the step from there.

No operation: it shows all of the base, without its history.

A view holds it as `_view`, and as `_seen` how many writes to the memory it has seen. Generated code
makes it, so it is a plain tuple.
"""

WHOLE: Step = (None, (), None, None)

Part = tuple[tuple[str, tuple[Any, ...], int | None], ...]

last_write = [0]
"""The clock reading of the last in-place write anywhere: if a node is younger, nothing that it
saved has changed.
"""


def note_write(cell: list[int]) -> None:
    """Note that the memory of this version cell was written now."""
    now = last_write[0] = tick()
    cell.append(now)


def refresh(t: Any) -> None:
    """Bring a view that is older than the last write to its memory up to date, its bases first."""
    line = lineage(t)
    now = len(t._cell)
    stale = []
    for x in line:
        if x._view is None or x._seen == now:
            x._check()
            break
        stale.append(x)
    for view in reversed(stale):
        if not view._renew():
            return


def lineage(t: Any) -> list[Any]:
    """An array object and those that it is a view of, one of the other, up to the one that the
    memory belongs to: a few, however many there were.
    """
    line = climb(t)
    i = 0
    clear = _clear(line) if len(line) > DEPTH + 1 else 0
    while len(line) > DEPTH + 1 + i:
        stuck = _shorten(line, i, i + 1 >= len(line) - clear)
        if not stuck:
            line[i:] = climb(line[i])
        i += stuck or 1
    return line


def climb(t: Any) -> list[Any]:
    """The same, of all that there are."""
    line = [t]
    while (view := t._view) is not None and view[0]._cell is t._cell:
        t = view[0]
        line.append(t)
    return line


DEPTH = 4
"""How many views of views stand before a chain is shortened."""


class Location:
    """What one climb from an array object to the root of its memory tells.

    memory  the object that the memory belongs to
    part    the steps from there
    owner   the object whose history its own is part of: the root of the memory, or a view on the
            way that was detached
    own     the steps from there
    odd     the first view on the way to the owner whose history cannot follow a write
    data    the first object on the way that is `x.data`, through which writes are quiet
    wide    whether a view on the way is larger than its base, so that an element may show at
            several places
    """

    memory: Any
    owner: Any
    part: Part = ()
    own: Part = ()
    odd: Any = None
    data: Any = None
    wide = False

    def __init__(self, t: Any) -> None:
        if t._view is None:
            self.memory = self.owner = t
            return
        line = lineage(t)
        self.memory = root = line[-1]
        self.owner = None
        steps: list[Any] = []
        for x in line if root._view is not None else line[:-1]:
            base, op, arguments, output, recorded = x._view
            if self.data is None and (x._quiet or base._quiet):
                self.data = x if x._quiet else base
            if op is None:
                if self.owner is None:
                    self.owner, self.own = x, tuple(reversed(steps))
                continue
            if (
                self.owner is None
                and self.odd is None
                and (output is not None or recorded is not True)
            ):
                self.odd = x
            if x is root:  # whose base was given other memory
                break
            if op.name == "read_slices":
                steps += reversed(arguments[0])
            else:
                steps.append((op.name, arguments, None if op.outputs == () else output))
                self.wide = self.wide or (op.name != "getitem" and _enlarges(x))
        self.part = tuple(reversed(steps))
        if self.owner is None:
            self.owner, self.own = root, self.part

    def overlaps(self, part: Part) -> bool:
        """Whether an element of the memory shows at several places of a part of it, which is here
        or further on. Only if `wide`.
        """
        import numpy as np

        root = self.memory
        numbers = np.reshape(np.arange(prod(root.shape)), root.shape)
        places = _read(numbers, tuple(step for step in part if step[0] not in ("real", "imag")))
        return bool(np.unique(places).size < places.size)

    def holds(self, array: Any) -> bool:
        """Whether writing to `array`, shown here or further on, changes the memory: not all that
        the standard allows to be a view is one.

        What lies behind a place that shows an element several times counts as a copy.
        """
        root = self.memory
        library: Library = root._elem.library
        if (
            not library.mutable
            or isinstance(array, library.fixed)
            or (self.wide and self.overlaps(self.part))
        ):
            return False
        return array is root._array or (
            not isinstance(root._array, Layer)
            and bool(library.shares_memory(library.xp, array, root._array))
        )


def _clear(line: list[Any]) -> int:
    """How many at the end of a lineage are views of known memory, by steps that can become one, and
    that memory: reshaping them made no copies.
    """
    root = line[-1]
    if not _is_by_rows(root):
        return 0
    n = 1
    while n < len(line) - 1 and _merges(line[-n - 1], line[-2]):
        n += 1
    return n


def _shorten(line: list[Any], i: int, clear: bool) -> int:
    """Give the view at the place `i` of a long lineage a base that shows the same, and is a view of
    what stands as far up as possible.

    So what a write costs does not grow with the length of a chain of written views. A leaf, and
    what has hooks, keeps its place in the history. The view gets its base by one assignment, since
    other threads may look at it.

    clear  whether there are only views of known memory from there on

    Returns 0, or how many views are passed by where it cannot.
    """
    first = line[i + 1]
    steps: list[Any] = []
    for x in line[i + 1 : -1]:
        _, op, arguments, _, _ = x._view
        # where memory is not known, a copy may be what one step gives
        if not _merges(x, first) or (not clear and _reshapes(op, arguments)):
            break
        steps.append((op.name, arguments, None))
    if len(steps) < 2:
        return 1
    base = line[i + len(steps) + 1]
    step = compact(tuple(base.shape), tuple(reversed(steps)), first._view[4])
    if step is None:
        return len(steps)
    line[i]._view = (first._again(base, step), *line[i]._view[1:])
    return 0


def _merges(x: Any, other: Any) -> bool:
    """Whether how a view was made of its base can become part of one step, with that of `other`.

    One of broadcast_to shows elements twice.
    """
    _, op, _, output, recorded = x._view
    return (
        op is not None
        and output is None
        and recorded is other._view[4]
        and _moves(op)
        and type(x._node) in (type(None), Node)
        and (op.name == "getitem" or not _enlarges(x))
    )


def _enlarges(x: Any) -> bool:
    """Whether a view is larger than its base, as one of broadcast_to."""
    return bool(prod(x.shape) > prod(x._view[0].shape))


def _reshapes(op: Op, arguments: tuple[Any, ...]) -> bool:
    return op.name == "reshape" or (
        op.name == "read_slices" and any(name == "reshape" for name, _, _ in arguments[0])
    )


def _moves(op: Op) -> bool:
    """Whether an operation that makes views arranges elements only, in a way that is known."""
    return op.module.startswith("multigrad.") and op.name not in ("real", "imag")


def _is_by_rows(root: Any) -> bool:
    """Whether an array counts as laid out row by row, as `allows` sees it."""
    library: Library = root._elem.library
    inner = innermost(root._array)
    return (
        not library.mutable
        or inner.shape != root.shape
        or isinstance(inner, library.scalars)
        or bool(library.is_c_contiguous(library.xp, inner))
    )


def _read(x: Any, part: Part) -> Any:
    return library_named("numpy").xp.read_slices(x, part)


def compact(shape: tuple[int, ...], part: Part, recorded: bool | None) -> Step | None:
    """One step, from an array of that shape, that shows what all of `part` does; None where that
    cannot be told.

    The steps are taken on an array of bytes without values: where it starts and its strides say
    what they select.
    """
    import numpy as np

    x: Any = np.empty(shape, bool)
    out = _read(x, part)
    if not out.size:
        made: Part | None = (_reshape((-1,)), _getitem((slice(0, 0, 1),)), _reshape(out.shape))
    elif not np.may_share_memory(x, out):
        return None
    else:
        start = out.__array_interface__["data"][0] - x.__array_interface__["data"][0]
        made = next(
            (
                p
                for p in (_by_axes(x, start, out), _by_blocks(x.size, start, out))
                if p is not None and _same(_read(x, p), out)
            ),
            None,
        )
    if made is None:
        return None
    if len(made) == 1 and made[0][0] == "getitem":
        return OPS["getitem"], made[0][1], None, recorded
    return (
        (OPS["read_slices"], (made,), None, recorded)
        if made
        else (OPS["getitem"], (Ellipsis,), None, recorded)
    )


def _same(x: Any, y: Any) -> bool:
    """Whether two arrays show the same elements of one memory."""
    a, b = x.__array_interface__, y.__array_interface__
    return bool(
        a["data"][0] == b["data"][0]
        and x.shape == y.shape
        and all(s == t for n, s, t in zip(x.shape, x.strides, y.strides, strict=True) if n > 1)
    )


def _getitem(key: tuple[Any, ...]) -> Any:
    return "getitem", ((*key, ...),), None


def _reshape(shape: tuple[int, ...]) -> Any:
    return "reshape", (shape, None), None


def _by_axes(x: Any, start: int, out: Any) -> Part | None:
    """`out` as parts of the axes of `x`, which lies row by row, in another order."""
    key: list[Any] = []
    for stride in x.strides:
        key.append(start // stride)
        start %= stride
    order = []
    for n, s in zip(out.shape, out.strides, strict=True):
        if n > 1:
            axis = next(
                (
                    i
                    for i, (m, stride) in enumerate(zip(x.shape, x.strides, strict=True))
                    if s
                    and s % stride == 0
                    and type(key[i]) is int
                    and 0 <= key[i] + (n - 1) * (s // stride) < m
                ),
                None,
            )
            if axis is None:
                return None
            step = s // x.strides[axis]
            key[axis] = range(key[axis], key[axis] + n * step, step)
            order.append(axis)
    return _arranged(x.shape, key, sorted(order), order, out.shape)


def _by_blocks(size: int, start: int, out: Any) -> Part | None:
    """`out` as parts of the elements of a row of that size, which is cut into blocks, and these
    into smaller ones.
    """
    axes = sorted((i for i, n in enumerate(out.shape) if n > 1), key=lambda i: -abs(out.strides[i]))
    strides = [abs(out.strides[i]) for i in axes]
    if 0 in strides:
        return None
    start += sum((out.shape[i] - 1) * out.strides[i] for i in axes if out.strides[i] < 0)
    part = [_reshape((-1,))]
    common = gcd(*strides) or 1
    if common > 1:
        part.append(_getitem((slice(start % common, None, common),)))
        size, start = len(range(start % common, size, common)), start // common
    shape: list[int] = []
    key: list[Any] = []
    for k, i in enumerate(axes[:-1]):
        width = 1 + sum(
            (out.shape[j] - 1) * s // common
            for j, s in zip(axes[k + 1 :], strides[k + 1 :], strict=True)
        )
        cut = _cut(size, start, out.shape[i], strides[k] // common, width)
        if cut is None:
            return None
        before, count, block = cut
        if count * block < size:
            part.append(
                _getitem((*[slice(None)] * len(shape), slice(before, before + count * block, 1)))
            )
        shape.append(count)
        key.append(range(0, count, strides[k] // common // block))
        part.append(_reshape((*shape, block)))
        size, start = block, start - before
    if axes:
        n, step = out.shape[axes[-1]], strides[-1] // common
        key.append(range(start, start + (n - 1) * step + 1, step))
    else:
        key.append(start)
    key = [
        k if type(k) is int or out.strides[i] > 0 else k[::-1]
        for k, i in zip(key, axes or (0,), strict=True)
    ]
    rest = _arranged(
        (*shape, size), key, axes, [i for i, n in enumerate(out.shape) if n > 1], out.shape
    )
    return (*part, *rest)


def _cut(size: int, start: int, n: int, stride: int, width: int) -> tuple[int, int, int] | None:
    """How to cut a row into blocks, of which some hold `n` pieces of that width, a stride apart:
    what stands before, how many, of what length.
    """
    for parts in range(1, stride // width + 1):
        block, rest = divmod(stride, parts)
        count = (n - 1) * parts + 1
        before = min(start, size - count * block)
        if not rest and before >= 0 and start - before + width <= block:
            return before, count, block
    return None


def _arranged(
    shape: tuple[int, ...],
    key: list[Any],
    names: list[int],
    order: list[int],
    result: tuple[int, ...],
) -> Part:
    """The steps that select `key` of an array, bring the axes that are left, named `names`, into an
    order, and insert axes of length 1.
    """
    part: list[Any] = []
    if any(k != range(n) for k, n in zip(key, shape, strict=True)):
        part.append(_getitem(tuple(k if type(k) is int else _slice_of(k) for k in key)))
    if names != order:
        part.append(("permute_dims", (tuple(names.index(i) for i in order),), None))
    if len(order) < len(result):
        part.append(_getitem(tuple(None if n == 1 else slice(None) for n in result)))
    return tuple(part)


def _slice_of(chosen: range) -> slice:
    """A slice, with bounds that the standard allows, that selects a range of the indices of an
    axis.
    """
    stop = chosen[-1] + (1 if chosen.step > 0 else -1)
    return slice(chosen[0], stop if stop >= 0 else None, chosen.step)


def allows(x: Any, array: Any, reshaped: Any) -> bool:
    """Whether reshaping `array`, the value of `x`, to the shape of `reshaped` made no copy.

    Where memory cannot be seen, what is computed counts as laid out row by row, and views of it as
    they would be in NumPy.
    """
    library: Library = x._elem.library
    inner = innermost(array)
    if library.mutable and inner.shape == array.shape:
        if isinstance(inner, library.scalars):
            return True
        try:
            library.xp.reshape(inner, reshaped.shape, copy=False)
        except (ValueError, AttributeError):  # AttributeError: of array_api_strict
            return False
        return True
    place = Location(x)
    if not place.part:
        return True
    import numpy as np

    try:
        _read(np.empty(place.memory.shape, bool), place.part).reshape(reshaped.shape, copy=False)
    except ValueError:
        return False
    return True
