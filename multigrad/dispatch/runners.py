"""Runners: straight code for exactly one signature of an operation, and the table that holds them.

The function of an operation computes the key of a call (signature.py) and calls the runner that its
table has for the key. Without one, the general path carries the call out, and a runner is written
from what the call returned (writer.py). Writing takes as long as 40 calls of the general path. A
runner begins with its guards. If one fails, it calls the next runner of the same key.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from operator import add
from typing import Any
from weakref import WeakSet, WeakValueDictionary

from ..core.level import highest, restored, settle, undo
from ..plugins.discovery import lasts
from ..registry import OPS, Op, keeping
from .general import general
from .signature import classes, fresh
from .writer import Unwritten, writers

BOUND = 16 << 20
"""The bytes that all runners take at most; beyond them, the oldest are dropped."""

REFUSAL = 500
"""The bytes of a key without a runner, estimated."""

LONGEST = 8
"""The number of runners for one key."""


class Budget:
    """The bytes of the runners of all keys, the oldest first, which BOUND limits.

    entries  bytes by table and key
    """

    __slots__ = ("bytes", "entries")

    def __init__(self) -> None:
        self.entries: OrderedDict[tuple[Table, Any], int] = OrderedDict()
        self.bytes = 0

    def add(self, table: Table, key: Any, size: int) -> None:
        """Add a runner of a table, and drop the oldest keys, with all of their runners."""
        self.entries[table, key] = self.entries.get((table, key), 0) + size
        self.bytes += size
        while self.bytes > BOUND:
            (table, key), size = self.entries.popitem(last=False)
            self.bytes -= size
            table.dropped += table.found.pop(key, None) is not None


budget = Budget()
_met: WeakSet[type] = WeakSet()
"""The classes in keys that were met once, of those that the program may make in a loop."""


class Table:
    """The runners of an operation by key.

    found    the first runner of a key, or a Next
    dropped  the number of keys that were dropped for BOUND
    general  the number of calls that had no runner. Those from which a runner was written, or might
             have been, do not count
    """

    __slots__ = ("__weakref__", "dropped", "found", "general", "op", "plain_key")

    def __init__(self, op: Op, plain_key: bool) -> None:
        self.op, self.plain_key = op, plain_key
        self.found: dict[Any, Any] = {}
        self.dropped = self.general = 0

    def missed(
        self,
        key: Any,
        carry_out: Callable[..., Any],
        values: tuple[Any, ...],
        after: Next | None = None,
    ) -> Any:
        """Carry out a call that has no runner, and write one.

        carry_out  the general path, for a function or for an operator
        after      the end of the runners of the key, if it has any
        """
        result = carry_out(self.op, values)
        if result is NotImplemented or interpreting():
            return result
        top = highest(values)
        # what is not of multigrad's classes may come and go
        if type(top) in fresh and (after is None or after.length < LONGEST):
            self.learn(key, values, top, result, after)
        elif after is not None:
            self.general += 1
        return result

    def learn(
        self, key: Any, values: tuple[Any, ...], top: Any, result: Any, after: Next | None
    ) -> None:
        """Write a runner for such values. `after`: the end of the runners of the key."""
        for cls in classes(key):  # one that the program has just made may never come again
            if not lasts(cls) and cls not in _met:
                _met.add(cls)
                return
        op = self.op
        length = 1 if after is None else after.length + 1
        runner: Any = Next(self, key, length)
        size = REFUSAL
        writer = writers.get(top._elem.kind.cls)
        if writer is not None:
            with suppress(Unwritten):  # perhaps the next call of the key is another one
                runner, size = writer(op, self.plain_key, values, top, result).written(runner)
        with keeping:
            if OPS.get(op.name) is not op:
                return
            if after is None:
                if key in self.found:  # another thread was first
                    return
                self.found[key] = runner
            elif size == REFUSAL:
                after.length = length
                return
            elif after.runner is None:
                after.runner = runner
            else:
                return
            budget.add(self, key, size)


class Next:
    """The end of the runners of a key, which carries out the calls that all guards have refused.

    runner  the next runner, once it is written
    length  the number of runners before it, and of calls from which none could be written
    """

    __slots__ = ("key", "length", "runner", "table")

    def __init__(self, table: Table, key: Any, length: int) -> None:
        self.table, self.key, self.length = table, key, length
        self.runner: Any = None

    def __call__(self, _mode: Any, *values: Any) -> Any:
        runner = self.runner
        if runner is not None:
            return runner(_mode, *values)
        return self.table.missed(self.key, general, values, self)


_tables: WeakValueDictionary[tuple[Op, bool], Table] = WeakValueDictionary()


def table_of(op: Op, plain_key: bool) -> Table:
    """The table of an operation, one for all of its functions, which own it.

    The program may hold a function of a declaration that was replaced, and that comes back.
    """
    with keeping:
        return _tables.setdefault((op, plain_key), Table(op, plain_key))


def _all() -> list[Table]:
    """All tables; a signal handler may declare an operation meanwhile."""
    return [table for ref in _tables.valuerefs() if (table := ref()) is not None]


def forget() -> None:
    """Drop all runners, after an operation or a backend was replaced."""
    with keeping:
        for table in _all():
            table.found.clear()
        budget.entries.clear()
        budget.bytes = 0


def report() -> list[tuple[str, int, int, int, int, int]]:
    """What has become of the signatures of each operation that was called, the slowest first.

    Each entry has the name, the number of keys with a runner, their bytes, the keys that were
    dropped for BOUND, those without a runner, and the calls that the general path carried out.
    """
    rows: dict[str, tuple[int, ...]] = {}
    sizes: Counter[Table] = Counter()
    for (table, _), size in list(budget.entries.items()):
        sizes[table] += size
    for table in _all():
        without = sum(type(f) is Next and f.runner is None for f in list(table.found.values()))
        keyed = len(table.found) - without
        row = keyed, sizes[table], table.dropped, without, table.general
        if any(row):
            name = table.op.name
            rows[name] = tuple(map(add, rows.get(name, (0,) * len(row)), row))
    found: list[Any] = [(name, *row) for name, row in rows.items()]
    return sorted(found, key=lambda row: (-row[-1], -row[1], row[0]))


_interpreting: ContextVar[bool] = restored(ContextVar("multigrad.interpreting", default=False))
interpreting = _interpreting.get
"""Whether operations take the general path in this context, and no runner is written.

What writes runners asks this, and the functions of the debug mode; others do not.
"""


@contextmanager
def interpreted(drop: bool = True) -> Iterator[None]:
    """Let every operation take the general path inside, as its first call does.

    drop  whether to drop all runners, for all threads. The functions of the debug mode do not use
          them inside in any case
    """
    before = undo()
    try:
        _interpreting.set(True)
        if drop:
            forget()
        yield
    finally:
        settle(before[0])
