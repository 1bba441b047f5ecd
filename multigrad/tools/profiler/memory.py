"""Memory by the sizes of arrays: what operations and passes made, as long as it lives."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Iterator
from functools import cache
from time import perf_counter_ns
from typing import Any

from ...core.element import Library, library_of
from ...core.level import Layer
from ...core.tensor import Tensor, View


class Record:
    """At `time` (ns) on `thread`, `nbytes` were allocated, or freed if negative; on `device`, or
    the host's memory where that is None.
    """

    __slots__ = ("device", "nbytes", "thread", "time")

    def __init__(self, nbytes: int, device: str | None, time: int | None = None) -> None:
        self.time = perf_counter_ns() if time is None else time
        self.thread = threading.get_ident()
        self.nbytes = nbytes
        self.device = device


class Memory:
    """Follows the arrays that are shown to it.

    Each memory counts once, from when an array of it is first seen until it is freed.

    Arrays that were there before are not known. What a library allocates inside of a function and
    frees again is not seen either.
    """

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.closed = False
        self._alive: dict[int, weakref.ref[Any]] = {}
        self._lock = threading.RLock()  # a reference may be dropped while another is made

    def see(self, value: Any, time: int) -> None:
        """Count the memory of a result: an array, a layer, or a tuple, list or dictionary of them.

        `time`: when it was there.
        """
        for x in arrays(value):
            library = library_of(x)
            # a NumPy scalar is part of its own object
            if library is not None and not (library.scalars and isinstance(x, library.scalars)):
                holder, nbytes = _storage(library)(library.xp, x)
                if nbytes and id(holder) not in self._alive:
                    self._hold(
                        holder, nbytes, library.backend.kernel("accelerator")(library.xp, x), time
                    )

    def known(self, value: Any) -> None:
        """Note arrays that were there before, so that they do not count where they turn up
        again.
        """
        for x in arrays(value):
            library = library_of(x)
            if library is not None and not (library.scalars and isinstance(x, library.scalars)):
                holder, _ = _storage(library)(library.xp, x)
                if id(holder) not in self._alive:
                    self._hold(holder, 0, None, 0)

    def _hold(self, holder: Any, nbytes: int, device: str | None, time: int) -> None:
        key = id(holder)
        with self._lock:
            if key in self._alive:
                return
            # what takes no weak references (bytes) cannot be followed
            with contextlib.suppress(TypeError):
                self._alive[key] = weakref.ref(holder, lambda _: self._free(key, nbytes, device))
                if nbytes:
                    self.records.append(Record(nbytes, device, time))

    def _free(self, key: int, nbytes: int, device: str | None) -> None:
        with self._lock:
            if self._alive.pop(key, None) is not None and nbytes and not self.closed:
                self.records.append(Record(-nbytes, device))

    def timeline(self) -> Iterator[tuple[int, int, int]]:
        """(time in ns, bytes on the host, bytes on devices) after each change."""
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
    """The raw arrays of a value, or of all in it: of a layer that stands for several, all of
    them.
    """
    found: list[Any] = []
    _collect(value, found)
    return found


def _collect(value: Any, found: list[Any]) -> None:
    kind = type(value)
    if kind is Tensor or kind is View:
        value = value._array
        if not isinstance(value, Layer):
            found.append(value)
            return
    if isinstance(value, (tuple, list)):
        for part in value:
            _collect(part, found)
    elif isinstance(value, dict):
        for part in value.values():
            _collect(part, found)
    elif isinstance(value, Layer):
        _collect(getattr(value, "_array", None), found)
        _collect(getattr(value, "_tangent", None), found)
    elif library_of(value) is not None:
        found.append(value)
