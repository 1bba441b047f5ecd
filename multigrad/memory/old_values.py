"""Copies of saved values, made before the memory of these values is written.

An in-place operation whose own rule needs the old value always keeps a copy. Inside of
`autograd.graph.allow_mutation_on_saved_tensors` every node that has saved an array of the memory
keeps one. Nodes keep the version cells of what they save. So an `OldValues`, which is notified of
every node, finds by the cell the nodes that a write concerns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import ref

from .. import locks, observe
from ..core.aliasing import last_write
from ..core.element import SCALARS
from ..core.graph import Node, flat_cells, written_after
from ..core.level import Layer
from ..core.nested import put_together, taken_apart
from ..core.tensor import element_of
from ..observe import gate
from .saved import Copy, Keeper, Saved, packed_raw, store, stored, tracked


def before_write(cell: list[int]) -> None:
    """Make the necessary copies before the memory of this version cell is written."""
    mode = gate.get()
    if mode is not True and mode.watch.observers:
        for observer in mode.watch.observers:
            if type(observer) is OldValues:
                observer.spare(cell)


def keep_old(node: Node, cell: list[int], copied: Copy) -> None:
    """Let a node keep copies of the saved arrays on this cell, which later writes do not reach."""
    while not _keeps_old(node, cell, copied):
        pass


def _keeps_old(node: Node, cell: list[int], copied: Copy) -> bool:
    """Whether a node keeps copies; False if what it keeps has changed meanwhile."""
    cells, saved, rule = node.cells, stored(node), node.rule
    if saved is None or not any(c is cell for c in flat_cells(cells)):
        return True
    places = [i for i, source in enumerate(rule.sources) if source is not None]
    # the cells of index arrays follow the others
    places += [i for i, name in enumerate(rule.plan) if rule.op.roles.get(name) == "plain"]
    values = list(saved)
    for i, nested in zip(places, tracked(node), strict=False):
        values[i] = _with_copies(values[i], nested, cell, copied)
    rest = without(cells, cell, [])
    if node.cells is not cells:  # what ran in between, such as a signal handler, has written
        return False
    node.cells = rest
    store(node, values)
    return True


def without(cells: Any, old: list[int], new: list[int]) -> Any:
    """The version cells of a node, with `new` in place of `old`."""
    if cells is old:
        return new
    return tuple(without(c, old, new) for c in cells) if type(cells) is tuple else cells


def _with_copies(value: Any, cells: Any, cell: list[int], copied: Copy) -> Any:
    """A saved value with copies of the arrays that have this cell."""
    if isinstance(value, tuple):
        fits = type(cells) is tuple and len(cells) == len(value)
        each = cells if fits else (cells,) * len(value)
        parts = [_with_copies(v, c, cell, copied) for v, c in zip(value, each, strict=True)]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if cells is not cell:
        return value
    if isinstance(value, Saved):
        return packed_raw(value.keeper, value.name, copied(value.unpack()), [])
    return copied(value) if hasattr(value, "dtype") else value


class Copies:
    """Makes copies of values, one of each array.

    The immutable arrays of a library are not copied. Of a layer the raw arrays inside are copied.
    """

    __slots__ = ("_copies",)

    def __init__(self) -> None:
        # each copy with its original, whose id then is not used again
        self._copies: dict[int, tuple[Any, Any]] = {}

    def __call__(self, value: Any) -> Any:
        if id(value) not in self._copies:
            self._copies[id(value)] = value, self._copy(value)
        return self._copies[id(value)][1]

    def _copy(self, value: Any) -> Any:
        if isinstance(value, Layer):
            arrays: list[Any] = []
            shell = taken_apart(value, arrays, [])
            return put_together(shell, map(self, arrays))
        if type(value) in SCALARS:
            return value
        library = element_of(value).library
        if isinstance(value, library.fixed):
            return value
        return library.xp.asarray(value, copy=True)


class OldValues(Keeper):
    """Lets all saved values keep their old arrays when memory is written in its contexts.

    fresh  weak references to the holders that saved something since the last search
    of     by the id of a version cell, the holders that saved arrays of a memory since it was
           written
    holder  refers to the context manager that entered it, which is gone if an interrupt came before
            it left
    """

    __slots__ = ("__weakref__", "_few", "_listed", "_lock", "_many", "fresh", "holder", "of")
    exclusive = True

    def __init__(self) -> None:
        self.fresh: list[ref[Any]] = []
        self.of: dict[int, list[ref[Any]]] = {}
        self.holder: Callable[[], Any] = lambda: None
        self._listed = 0
        self._few = self._many = FEW
        self._lock = locks.new_lock()

    def note(self, holder: Node | Saved) -> None:
        """Note that `holder` has saved arrays."""
        self.fresh.append(ref(holder))
        if len(self.fresh) > self._few:
            self._forget()

    def recorded(self, node: Node, operands: tuple[Any, ...], result: Any) -> None:
        if node.cells is not None and not node.exchanged:
            self.note(node)

    recorded_alone = recorded

    def spare(self, cell: list[int]) -> None:
        """Let all holders of arrays with this version cell keep copies."""
        fresh, of = self.fresh, self.of
        if not fresh and id(cell) not in of:
            return
        with self._lock:
            while last := fresh[-1:]:
                holder = last[0]()
                if holder is not None:
                    for c in flat_cells(holder.cells):
                        of.setdefault(id(c), []).append(last[0])
                        self._listed += 1
                if fresh[-1:] == last:
                    fresh.pop()  # found in `of` before it is gone from here
            holders = of.get(id(cell), ())
        copied = Copies()
        # Forgotten after they have copied: what runs in between may write to the memory, too.
        for reference in holders:
            holder = reference()
            # what was written outside of this context is gone, and the pass raises
            if holder is not None and not written_after(cell, holder.seq):
                if isinstance(holder, Node):
                    keep_old(holder, cell, copied)
                else:
                    holder.keep_old(cell, copied)
        with self._lock:
            self._listed -= len(of.pop(id(cell), ()))
            if self._listed > self._many:
                self._forget_all()

    def _forget(self) -> None:
        """Drop holders that are gone from `fresh`."""
        with self._lock:
            n = len(self.fresh)  # other threads may add to it
            alive = [x for x in self.fresh[:n] if x() is not None]
            self.fresh[:n] = alive
            self._few = max(FEW, 2 * len(alive))

    def _forget_all(self) -> None:
        for key in list(self.of):
            alive = [x for x in self.of[key] if x() is not None]
            if alive:
                self.of[key] = alive
            else:
                del self.of[key]
        self._listed = sum(map(len, self.of.values()))
        self._many = max(FEW, 2 * self._listed)


FEW = 1000
"""The number of new holders after which those that are gone are dropped."""


def noted(holder: Node | Saved) -> None:
    """Report a holder that saved arrays without hooks to the OldValues of this context, if any."""
    if isinstance(holder, Saved):
        holder.seq = last_write[0]
    for observer in observe.watching():
        if isinstance(observer, OldValues):
            observer.note(holder)
