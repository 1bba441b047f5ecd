"""Where a view lies in the memory of its base, and when memory was written.

This module does not read values. A part of the memory is a tuple of steps (operation, its arguments
after the first, number of the output), in the format of the kernel operation copy_slices.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, takewhile
from math import prod
from typing import Any

from ..observe import internally
from ..registry import OPS, Op
from .element import Library, library_named
from .graph import MOST, Node, shorten, tick
from .level import Layer, innermost

Step = tuple[Op | None, tuple[Any, ...], int | None, bool | None]
"""How a view was made from its base: (operation, arguments after the first, output, recorded).

The output is a number if the operation has several. `recorded` is True, or False in a mode that
does not record, or None inside an autograd.Function.
"""

ViewSpec = tuple[Any, Op | None, tuple[Any, ...], int | None, bool | None]
"""What makes an array object a view: its base, followed by the entries of a Step.

The operation is None for a view that shows all of its base, without its history.

A view holds it as `_view`, and the last change of the memory that it has seen as `_seen`. It is a
plain tuple because generated code makes it.
"""

WHOLE: Step = (None, (), None, None)

Part = tuple[tuple[str, tuple[Any, ...], int | None], ...]

last_write = [0]
"""The clock reading of the last in-place write to any memory.

If a node is younger, no array that it saved has changed.
"""


def note_write(cell: list[int]) -> None:
    """Note that the memory of this version cell is written now."""
    now = last_write[0] = tick()
    cell.append(now)
    if len(cell) > MOST:
        shorten(cell)


def last_change(cell: list[int]) -> int:
    """A number that is another one after each change of the memory; 0 before the first.

    A view stores it as `_seen`. Generated code has the same expression.
    """
    return cell[-1] if cell else 0


def note_written_copy(cell: list[int]) -> None:
    """Note a write inside of a transformation, after which saved values remain valid.

    They lie elsewhere, or nothing had saved them. Passes look at nodes that are older, since a node
    may have saved a layer, and not its value.
    """
    now = last_write[0] = tick()
    cell.append(-2 * now)
    if len(cell) > MOST:
        shorten(cell)


def refresh(t: Any) -> None:
    """Bring a view up to date if its memory was written since; its bases come first."""
    line = lineage(t)
    now = last_change(t._cell)
    stale = []
    for x in line:
        if x._view is None or x._seen == now:
            x._check()
            break
        stale.append(x)
    for view in reversed(stale):
        if not internally(view._renew):
            return


def lineage(t: Any) -> list[Any]:
    """The chain of bases: an array object, its base, and so on up to the root of the memory.

    In a chain longer than DEPTH, views that were made one after the other are replaced by one that
    is made in one step. So the cost of a write does not grow with the length of a chain of written
    views. The base of a view is exchanged by one assignment, since other threads may read it.
    """
    line = climb(t)
    if len(line) <= DEPTH + 1:
        return line
    clear = len(line) - 1  # from there on, the layout is known
    if _is_by_rows(line[-1]):
        while clear > 1 and _merges(line[-2]._view[4], line[clear - 1]):
            clear -= 1
    short = [t]
    i = 1
    while i < len(line) - 1:
        views, step = _mergeable(line, i, i >= clear), None
        while views[1:]:
            base = line[i + len(views)]
            step = compact(tuple(base.shape), _steps(views), views[0]._view[4])
            if step is not None:
                break
            views.pop()  # those that are left may be one step
        i += len(views)
        if step is not None:
            views = [views[0]._again(base, step)]
            short[-1]._view = (views[0], *short[-1]._view[1:])
        short += views
    return [*short, line[-1]]


def climb(t: Any) -> list[Any]:
    """The chain of bases as it is, without shortening."""
    line = [t]
    while (view := t._view) is not None and view[0]._cell is t._cell:
        t = view[0]
        line.append(t)
    return line


DEPTH = 4
"""The length that a chain of views may have before it is shortened."""


class Location:
    """The place of a view in its memory, from one climb to the root of the memory.

    memory        the root: the object that the memory belongs to
    part          the steps from the root to the view
    owner         the object whose history contains that of the view: the root of the memory, or a
                  detached view on the way
    owner_part    the steps from the owner to the view
    unrecordable  the first view on the way to the owner whose history cannot follow a write
    data          the first `x.data` on the way; writes through it are not checked
    repeats       whether a view on the way is larger than its base, so that an element may show at
                  several places
    """

    memory: Any
    owner: Any = None
    part: Part = ()
    owner_part: Part = ()
    unrecordable: Any = None
    data: Any = None
    repeats = False

    def __init__(self, t: Any) -> None:
        if t._view is None:
            self.memory = self.owner = t
            return
        line = lineage(t)
        self.memory = root = line[-1]
        views: list[Any] = []
        for x in line if root._view is not None else line[:-1]:
            base, op, _, output, recorded = x._view
            if self.data is None and (x._quiet or base._quiet):
                self.data = x if x._quiet else base
            if op is None:
                if self.owner is None:
                    self.owner, self.owner_part = x, _steps(views)
                continue
            if (
                self.owner is None
                and self.unrecordable is None
                and (output is not None or not recorded)
            ):
                self.unrecordable = x
            if x is root:  # whose base was given other memory
                break
            views.append(x)
            self.repeats = self.repeats or (op.name != "getitem" and _enlarges(x))
        self.part = _steps(views)
        if self.owner is None:
            self.owner, self.owner_part = root, self.part

    def overlaps(self, part: Part) -> bool:
        """Whether an element shows at several places of a part; asked only if `repeats`."""
        import numpy as np

        root = self.memory
        numbers = np.reshape(np.arange(prod(root.shape)), root.shape)
        places = _read(numbers, tuple(step for step in part if step[0] not in ("real", "imag")))
        return bool(np.unique(places).size < places.size)

    def holds(self, array: Any) -> bool:
        """Whether a write to `array`, shown by this view or a view of it, changes the memory.

        The standard leaves open whether some functions return views, so this looks at the memory. A
        part that shows an element several times counts as a copy.
        """
        root = self.memory
        library: Library = root._elem.library
        if isinstance(array, library.fixed) or (self.repeats and self.overlaps(self.part)):
            return False
        return array is root._array or (
            not isinstance(root._array, Layer)
            and bool(library.shares_memory(library.xp, array, root._array))
        )


def _mergeable(line: list[Any], i: int, clear: bool) -> list[Any]:
    """The views of a chain from index `i` on that one view may replace; at least one.

    clear  whether their layout is known. If not, a reshape in another place might make a copy
    """
    recorded = line[i]._view[4]
    views = takewhile(
        lambda x: _merges(recorded, x) and (clear or not _reshapes(x)),
        islice(line, i, len(line) - 1),
    )
    return list(views) or [line[i]]


def _merges(recorded: bool | None, x: Any) -> bool:
    """Whether the step that made a view may be merged with others, of the same `recorded`.

    A leaf and an object with hooks keep their places in the history. A step of broadcast_to shows
    elements twice, so it keeps its place, too.
    """
    _, op, _, output, mode = x._view
    return (
        op is not None
        and output is None
        and mode is recorded
        and op.builtin
        and op.name not in ("real", "imag")
        and type(x._node) in (type(None), Node)
        and not _enlarges(x)
    )


def _enlarges(x: Any) -> bool:
    """Whether a view is larger than its base, as the result of broadcast_to."""
    return bool(prod(x.shape) > prod(x._view[0].shape))


def _reshapes(x: Any) -> bool:
    return any(name == "reshape" for name, _, _ in _steps([x]))


def _steps(views: list[Any]) -> Part:
    """The steps from the base of the last of these views to the first one."""
    steps: list[Any] = []
    for x in views:
        _, op, arguments, output, _ = x._view
        if op.name == "read_slices":
            steps += reversed(arguments[0])
        else:
            steps.append((op.name, arguments, None if op.outputs == () else output))
    return tuple(reversed(steps))


def _is_by_rows(root: Any) -> bool:
    """Whether `allows` treats an array as laid out in C order."""
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
    """One step, from an array of that shape, equivalent to all of `part`; None if none is found.

    The steps are applied to an uninitialised array of bytes. The start and the strides of the
    result show which elements they select.
    """
    import numpy as np

    x: Any = np.empty(shape, bool)
    out = _read(x, part)
    steps: Part | None = None
    if not out.size:
        steps = _reshape((-1,)), _getitem((slice(0, 0, 1),)), _reshape(out.shape)
    elif np.may_share_memory(x, out):
        steps = next(filter(None, (_by_axes(x, flat, out) for flat in _reshapings(x, out))), None)
    return None if steps is None else (OPS["read_slices"], (steps,), None, recorded)


def _reshapings(x: Any, out: Any) -> Iterator[Part]:
    """Steps that reshape a slice of `x`, so that `out` may then be slices of its axes."""
    yield ()
    axes = sorted((i for i, n in enumerate(out.shape) if n > 1), key=lambda i: -abs(out.strides[i]))
    step = abs(out.strides[axes[-1]]) if axes else 0
    start = _distance(x, out)
    start += sum((out.shape[i] - 1) * out.strides[i] for i in axes if out.strides[i] < 0)
    end = start + (out.size - 1) * step + 1
    if step and end <= x.size:  # else it has gaps
        elements = slice(start, end, step)
        part = [_reshape((-1,))]
        if out.size < x.size:
            part.append(_getitem((elements,)))
        if len(axes) > 1:
            part.append(_reshape(tuple(out.shape[i] for i in axes)))
        yield tuple(part)


def _by_axes(x: Any, flat: Part, out: Any) -> Part | None:
    """The steps `flat`, then slices of the axes in another order, if that is `out`; else None."""
    x = _read(x, flat)
    start = _distance(x, out)
    key: list[Any] = []
    for stride in x.strides:
        index, start = divmod(start, stride)
        key.append(index)
    order = []
    for n, s in zip(out.shape, out.strides, strict=True):
        if n == 1:
            continue
        for axis, stride in enumerate(x.strides):
            step, rest = divmod(s, stride)
            if step and not rest and type(key[axis]) is int:
                last = key[axis] + (n - 1) * step
                if 0 <= last < x.shape[axis]:
                    key[axis] = range(key[axis], last + (1 if step > 0 else -1), step)
                    order.append(axis)
                    break
        else:
            return None
    part = list(flat)
    if any(k != range(n) for k, n in zip(key, x.shape, strict=True)):
        part.append(_getitem(tuple(k if type(k) is int else _slice_of(k) for k in key)))
    names = sorted(order)
    if names != order:
        part.append(("permute_dims", (tuple(names.index(i) for i in order),), None))
    if len(order) < len(out.shape):
        part.append(_getitem(tuple(None if n == 1 else slice(None) for n in out.shape)))
    shown = _read(x, tuple(part[len(flat) :]))
    same = (
        not _distance(shown, out)
        and shown.shape == out.shape
        and all(s == t for n, s, t in zip(out.shape, shown.strides, out.strides) if n > 1)
    )
    return (tuple(part) or (_getitem(()),)) if same else None


def _slice_of(chosen: range) -> slice:
    """A slice, with bounds of the standard, that selects a range of the indices of an axis."""
    stop = chosen[-1] + (1 if chosen.step > 0 else -1)
    return slice(chosen[0], stop if stop >= 0 else None, chosen.step)


def _distance(x: Any, y: Any) -> int:
    """The number of bytes from the first element of `x` to that of `y`."""
    start: int = y.__array_interface__["data"][0] - x.__array_interface__["data"][0]
    return start


def _getitem(key: tuple[Any, ...]) -> Any:
    return "getitem", ((*key, ...),), None


def _reshape(shape: tuple[int, ...]) -> Any:
    return "reshape", (shape, None), None


def laid_out(value: Any, like: Any) -> Any:
    """A new value of `like`, with the strides of `like` if the arrays are those of NumPy.

    Both are layers or raw arrays. An array that is written in place keeps its strides, and these
    decide whether reshaping it makes a copy. Where it has no axes, it stays an array: a scalar that
    was written into it does not take its place.
    """
    import numpy as np

    old = innermost(like)
    if type(old) is np.ndarray and isinstance(value, Layer):
        value = value._whole()
    inner = innermost(value)
    if (
        type(old) is not np.ndarray
        or type(inner) is not np.ndarray
        or inner.shape != old.shape
        or inner.dtype != old.dtype
    ):
        return value
    argument = _argument(like)
    if inner.strides != old.strides:
        inner = _strided(inner, old.strides)
    elif argument is None:
        return value
    out = x = _around(value, inner)
    while argument is not None and isinstance(x, Layer):
        if type(x) is type(argument) and x._level == argument._level:
            x._given = True  # type: ignore[attr-defined]
        x = x._array
    return out


def _argument(x: Any) -> Any:
    """The batch inside of a value that is an argument of vmap, or None."""
    while isinstance(x, Layer):
        if getattr(x, "_given", False):
            return x
        x = x._array
    return None


def _around(value: Any, inner: Any) -> Any:
    """A value with another raw array inside of its layers."""
    if not isinstance(value, Layer):
        return inner
    out: Any = value._frozen()
    if out is value:  # a Tensor
        out = value.clone()
    out._array = _around(value._array, inner)
    return out


def _strided(x: Any, strides: tuple[int, ...]) -> Any:
    """A copy of a NumPy array with these strides. Axes with a stride of 0 become the outermost."""
    import numpy as np

    steps = list(strides)
    size = x.itemsize + sum((n - 1) * abs(s) for n, s in zip(x.shape, steps, strict=True) if n)
    for i, n in enumerate(x.shape):
        if n > 1 and steps[i] == 0:
            steps[i], size = size, size * n
    start = sum((1 - n) * s for n, s in zip(x.shape, steps, strict=True) if s < 0 and n)
    out: Any = np.ndarray(x.shape, x.dtype, np.empty(size, np.uint8), start, tuple(steps))
    out[...] = x
    return out


def _example(root: Any) -> Any:
    """The first example of a batch of NumPy arrays that is an argument of vmap, or None."""
    import numpy as np

    inner = innermost(_argument(root))
    more = inner.ndim - len(root.shape) if type(inner) is np.ndarray else 0
    if more <= 0 or not inner.size:
        return None
    example = inner[(0,) * more]
    return example if example.shape == tuple(root.shape) else None


def allows(x: Any, array: Any, reshaped: Any) -> bool:
    """Whether reshaping `array`, the value of `x`, to the shape of `reshaped` made no copy.

    For libraries that do not show their memory, a computed array counts as laid out in C order, and
    its views as in NumPy. So does a computed batch, whose examples need not lie in memory as they
    would one by one.
    """
    library: Library = x._elem.library
    inner = innermost(array)
    if library.mutable and inner.shape == array.shape:
        if isinstance(inner, library.scalars):
            return True
        try:
            library.xp.reshape(inner, reshaped.shape, copy=False)
        except (ValueError, AttributeError):  # array_api_strict raises AttributeError
            return False
        return True
    place = Location(x)
    example = _example(place.memory)
    if not place.part and example is None:
        return True
    import numpy as np

    if example is None:
        example = np.empty(place.memory.shape, bool)
    try:
        _read(example, place.part).reshape(reshaped.shape, copy=False)
    except ValueError:
        return False
    return True


def is_contiguous(x: Any) -> bool:
    """Whether the elements of `x` lie in memory one after the other, row by row.

    For libraries that do not show their memory, a computed array counts as laid out in C order, and
    its views as in NumPy.
    """
    library: Library = x._elem.library
    inner = innermost(x._array)
    shows_order = "is_c_contiguous" in library.backend.kernels
    if library.mutable and inner.shape == x.shape and shows_order:
        return bool(library.xp.is_contiguous(inner))
    place = Location(x)
    if not place.part:
        return True
    import numpy as np

    return bool(_read(np.empty(place.memory.shape, bool), place.part).flags.c_contiguous)
