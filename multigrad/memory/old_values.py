"""What operations saved of a memory that is about to be written: they are given copies of the old
values.

An operation in place whose own rule needs the value that it spoils keeps a copy of it, always.
Inside of `autograd.graph.allow_mutation_on_saved_tensors` all that has saved an array of that
memory does. The version cell is where a write meets what was saved: who saves keeps the cell, so an
`OldValues`, which is told of every node, finds by it those that a write concerns.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any
from weakref import ref

from .. import observe
from ..core.element import SCALARS
from ..core.graph import Node, flat_cells
from ..core.level import Layer
from ..core.nested import put_together, taken_apart
from ..core.tensor import element_of
from ..observe import gate
from .saved import Keeper, Take, slot

Copy = Callable[[Any], Any]


def before_write(cell: list[int]) -> None:
    """The memory of this version cell is about to be written: what is to keep its values gets
    copies of them.
    """
    mode = gate.get()
    if mode is not True and mode.watch.observers:
        for observer in mode.watch.observers:
            if type(observer) is OldValues:
                observer.spare(cell)


def keep_old(node: Node, cell: list[int], copied: Copy) -> None:
    """Let a node keep copies of the arrays of this version cell that it saved, of which later
    writes say nothing.
    """
    # what hooks have packed, as they give it back
    saved = node.saved if node.unchecked else slot.__get__(node)
    if not saved or not any(c is cell for c in flat_cells(node.cells)):
        return
    rule = node.rule
    places = [i for i, source in enumerate(rule.sources) if source is not None]
    # the cells of index arrays follow the others
    places += [i for i, name in enumerate(rule.plan) if rule.op.roles.get(name) == "plain"]
    cells = (node.cells,) if type(node.cells) is list else node.cells
    kept = list(saved)
    for i, nested in zip(places, cells, strict=False):
        kept[i] = _kept(kept[i], nested, cell, copied)
    if node.unchecked:
        node.saved = tuple(kept)
    else:
        slot.__set__(node, tuple(kept))
    node.cells = without(node.cells, cell, [])


def without(cells: Any, old: list[int], new: list[int]) -> Any:
    """The version cells of a node with another one in the place of `old`."""
    if cells is old:
        return new
    return tuple(without(c, old, new) for c in cells) if type(cells) is tuple else cells


def _kept(value: Any, cells: Any, cell: list[int], copied: Copy) -> Any:
    """What was saved, with copies of the arrays whose cell it is."""
    if cells is cell:
        return _all_copied(value, copied)
    if type(cells) is tuple and isinstance(value, tuple) and len(cells) == len(value):
        return _alike(value, [_kept(v, c, cell, copied) for v, c in zip(value, cells, strict=True)])
    return value


def _all_copied(value: Any, copied: Copy) -> Any:
    if isinstance(value, tuple):
        return _alike(value, [_all_copied(v, copied) for v in value])
    return copied(value) if hasattr(value, "dtype") else value


def _alike(value: tuple[Any, ...], parts: Sequence[Any]) -> tuple[Any, ...]:
    return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)


class Copies:
    """Copies of values, one of each array.

    A library's immutable arrays stand for themselves; of a layer the arrays inside are copied.
    """

    __slots__ = ("_made",)

    def __init__(self) -> None:
        self._made: dict[int, tuple[Any, Any]] = {}

    def __call__(self, value: Any) -> Any:
        known = self._made.get(id(value))
        if known is None:
            # which keeps the identity taken
            known = self._made[id(value)] = value, self._copy(value)
        return known[1]

    def _copy(self, value: Any) -> Any:
        if isinstance(value, Layer):
            arrays: list[Any] = []
            shell = taken_apart(value, arrays, [])
            return put_together(shell, iter([self(x) for x in arrays]))
        if type(value) in SCALARS:
            return value
        library = element_of(value).library
        return (
            value
            if not library.mutable or isinstance(value, library.fixed)
            else library.xp.asarray(value, copy=True)
        )


class OldValues(Keeper):
    """Lets all that is saved in the contexts that it was entered in keep its values when the memory
    is written there.

    fresh  weakly, who saved something since it was last looked through
    of     by the identity of its version cell, who saved arrays of a memory since that was written
    """

    __slots__ = ("__weakref__", "_few", "_known", "_lock", "_many", "fresh", "of")
    exclusive = True

    def __init__(self) -> None:
        self.fresh: list[ref[Any]] = []
        self.of: dict[int, list[ref[Any]]] = {}
        self._known = 0
        self._few = self._many = FEW
        self._lock = threading.RLock()

    def wants(self, name: str, level: int) -> bool:
        return True

    def take(self, name: str) -> Take | None:
        return None

    def note(self, holder: Any) -> None:
        """`holder` has saved arrays: a node, or what has `cells` and `keep_old(cell, copied)`."""
        self.fresh.append(ref(holder))
        if len(self.fresh) > self._few:
            self._forget()

    def recorded(self, node: Node, operands: tuple[Any, ...], result: Any) -> None:
        if node.cells is not None and not node.unchecked:
            self.fresh.append(ref(node))
            if len(self.fresh) > self._few:
                self._forget()

    recorded_alone = recorded

    def spare(self, cell: list[int]) -> None:
        """Have all that saved arrays of this version cell keep copies."""
        fresh, of = self.fresh, self.of
        if not fresh and id(cell) not in of:
            return
        with self._lock:
            while fresh:
                known = fresh.pop()
                holder = known()
                if holder is not None:
                    for c in flat_cells(holder.cells):
                        of.setdefault(id(c), []).append(known)
                        self._known += 1
            holders = of.pop(id(cell), ())
            self._known -= len(holders)
            if self._known > self._many:
                self._forget_all()
        copied = Copies()
        for known in holders:
            holder = known()
            if isinstance(holder, Node):
                keep_old(holder, cell, copied)
            elif holder is not None:
                holder.keep_old(cell, copied)

    def _forget(self) -> None:
        """Leave out of what is fresh what is gone."""
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
        self._known = sum(map(len, self.of.values()))
        self._many = max(FEW, 2 * self._known)


FEW = 1000
"""How much is noted before what is gone is looked for."""


def noted(holder: Any) -> None:
    """`holder` has saved arrays, which no hooks have taken.

    The OldValues that is in force is told, if one is.
    """
    for observer in observe.watching():
        if isinstance(observer, OldValues):
            observer.note(holder)
