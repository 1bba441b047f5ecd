"""Memory of arrays by their sizes: results of operations and passes, while they are alive."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Iterator
from functools import cache
from time import perf_counter_ns
from typing import Any

from ... import locks
from ...core.element import Library, library_of
from ...core.level import Layer
from ...core.tensor import Tensor, View


class Record:
    """One change of memory: at `time` (ns), on `thread`, `nbytes` were allocated.

    A negative `nbytes` was freed. `device` is None for the memory of the host.
    """

    __slots__ = ("device", "nbytes", "thread", "time")

    def __init__(self, nbytes: int, device: str | None, time: int | None = None) -> None:
        self.time = perf_counter_ns() if time is None else time
        self.thread = threading.get_ident()
        self.nbytes = nbytes
        self.device = device


class Memory:
    """Follows the arrays that it is shown.

    Each memory counts once, from when `see` first gets an array on it until it is freed.

    Arrays made earlier are unknown. So is memory that a library allocates and frees within one
    function.
    """

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.closed = False
        self._alive: dict[int, weakref.ref[Any]] = {}
        self._lock = locks.new_lock()  # an array may be freed while another one is registered

    def see(self, value: Any, time: int) -> None:
        """Count the memory of a result: an array, a layer, or a tuple, list or dict of them.

        `time`: when the result existed.
        """
        for x in arrays(value):
            library = library_of(x)
            # a NumPy scalar has no memory besides its own object
            if library is not None and not (library.scalars and isinstance(x, library.scalars)):
                holder, nbytes = _storage(library)(library.xp, x)
                if nbytes and id(holder) not in self._alive:
                    self._hold(
                        holder, nbytes, library.backend.kernel("accelerator")(library.xp, x), time
                    )

    def known(self, value: Any) -> None:
        """Register existing arrays, so that they do not count when they appear again."""
        for x in arrays(value):
            library = library_of(x)
            if library is not None and not (library.scalars and isinstance(x, library.scalars)):
                holder, _ = _storage(library)(library.xp, x)
                if id(holder) not in self._alive:
                    self._hold(holder, 0, None, 0)

    def _hold(self, holder: Any, nbytes: int, device: str | None, time: int) -> None:
        key = id(holder)
        with self._lock:
            if key in self._alive or self.closed:
                return
            # an object without weak references, such as bytes, cannot be followed
            with contextlib.suppress(TypeError):
                self._alive[key] = weakref.ref(holder, lambda _: self._free(key, nbytes, device))
                if nbytes:
                    self.records.append(Record(nbytes, device, time))

    def _free(self, key: int, nbytes: int, device: str | None) -> None:
        with self._lock:
            if self._alive.pop(key, None) is not None and nbytes and not self.closed:
                self.records.append(Record(-nbytes, device))

    def close(self) -> None:
        """Follow the arrays no longer. Their weak references refer to this object."""
        with self._lock:
            self.closed = True
            self._alive.clear()

    def timeline(self) -> Iterator[tuple[int, int, int]]:
        """Yield (time in ns, bytes on the host, bytes on devices) after each change."""
        library = device = 0
        for record in sorted(self.records, key=lambda r: r.time):
            if record.device is None:
                library += record.nbytes
            else:
                device += record.nbytes
            yield record.time, library, device


@cache
def _storage(library: Library) -> Any:
    return library.backend.kernel("storage")


def arrays(value: Any) -> list[Any]:
    """Return the raw arrays in a value; a layer may hold several."""
    raws: list[Any] = []
    _collect(value, raws)
    return raws


def _collect(value: Any, raws: list[Any]) -> None:
    kind = type(value)
    if kind is Tensor or kind is View:
        value = value._array
        if not isinstance(value, Layer):
            raws.append(value)
            return
    if isinstance(value, (tuple, list)):
        for part in value:
            _collect(part, raws)
    elif isinstance(value, dict):
        for part in value.values():
            _collect(part, raws)
    elif isinstance(value, Layer):
        _collect(getattr(value, "_array", None), raws)
        _collect(getattr(value, "_tangent", None), raws)
    elif library_of(value) is not None:
        raws.append(value)
