"""Where a view lies in the memory of its base, and when memory was written.

This module does not read values. A part of the memory is a tuple of steps (operation, its arguments
after the first, number of the output), in the format of the kernel operation copy_slices.
"""

from __future__ import annotations

from math import gcd, prod
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


def last_change(cell: list[Any]) -> int:
    """A number that is another one after each change of the memory; 0 before the first.

    A view stores it as `_seen`. Generated code has the same expression.
    """
    change: int = cell[-1] if cell else 0
    return change


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

    A chain longer than DEPTH is shortened on the way, so the result has few entries.
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

    memory  the root: the object that the memory belongs to
    part    the steps from the root to the view
    owner   the object whose history contains that of the view: the root of the memory, or a
            detached view on the way
    own     the steps from the owner to the view
    odd     the first view on the way to the owner whose history cannot follow a write
    data    the first `x.data` on the way; writes through it are not checked
    wide    whether a view on the way is larger than its base, so an element may show at several
            places
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
        """Whether an element of the memory shows at several places of a part of it.

        `part` starts at the root. Needed only if `wide`.
        """
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
    """How many entries at the end of a chain of bases, the root included, have a known layout.

    These views were made by steps that can be merged, so reshaping them made no copies.
    """
    root = line[-1]
    if not _is_by_rows(root):
        return 0
    n = 1
    while n < len(line) - 1 and _merges(line[-n - 1], line[-2]):
        n += 1
    return n


def _shorten(line: list[Any], i: int, clear: bool) -> int:
    """Shorten a long chain: give the view at index `i` an equivalent base nearer to the root.

    So the cost of a write does not grow with the length of a chain of written views. A leaf and an
    object with hooks keep their places in the history. The base is exchanged by one assignment,
    since other threads may read it.

    clear  whether the layout of all views from there on is known

    Returns 0, or the number of views to skip if they cannot be merged.
    """
    first = line[i + 1]
    steps: list[Any] = []
    for x in line[i + 1 : -1]:
        _, op, arguments, _, _ = x._view
        # if the layout is not known, a step may have made a copy
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
    """Whether the step that made a view can be merged into one step with that of `other`.

    A step of broadcast_to cannot, since it shows elements twice.
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
    """Whether a view is larger than its base, as the result of broadcast_to."""
    return bool(prod(x.shape) > prod(x._view[0].shape))


def _reshapes(op: Op, arguments: tuple[Any, ...]) -> bool:
    return op.name == "reshape" or (
        op.name == "read_slices" and any(name == "reshape" for name, _, _ in arguments[0])
    )


def _moves(op: Op) -> bool:
    """Whether an operation that makes views only rearranges elements, in a known way."""
    return op.builtin and op.name not in ("real", "imag")


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
    """One step, from an array of that shape, equivalent to all of `part`; None if impossible.

    The steps are applied to an uninitialised array of bytes. The start and the strides of the
    result show which elements they select.
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
    """The steps to `out` as slices of the axes of `x` in another order; `x` is in C order."""
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
    """The steps to `out` as slices of a flat array that is cut into blocks, repeatedly."""
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
    """How to cut a flat array into blocks: (elements before them, number of blocks, their length).

    Some of the blocks hold `n` pieces of that width, which are a stride apart.
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
    """The steps that select `key` of an array, permute the axes, and insert axes of length 1.

    `names` are the names of the axes that remain, and `order` is their order afterwards.
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
    """A slice, with bounds of the standard, that selects a range of the indices of an axis."""
    stop = chosen[-1] + (1 if chosen.step > 0 else -1)
    return slice(chosen[0], stop if stop >= 0 else None, chosen.step)


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
    given = _given(like)
    if inner.strides != old.strides:
        inner = _strided(inner, old.strides)
    elif given is None:
        return value
    out = x = _around(value, inner)
    while given is not None and isinstance(x, Layer):
        if type(x) is type(given) and x._level == given._level:
            x._given = True  # type: ignore[attr-defined]
        x = x._array
    return out


def _given(x: Any) -> Any:
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

    given = _given(root)
    inner = innermost(given)
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
    if library.mutable and inner.shape == x.shape and shows_order(library):
        return bool(library.xp.is_contiguous(inner))
    place = Location(x)
    if not place.part:
        return True
    import numpy as np

    return bool(_read(np.empty(place.memory.shape, bool), place.part).flags.c_contiguous)


def shows_order(library: Library) -> bool:
    """Whether a library with mutable arrays can say that an array is contiguous."""
    return "is_c_contiguous" in library.backend.kernels
