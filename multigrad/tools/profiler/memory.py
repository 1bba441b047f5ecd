"""Memory of arrays by their sizes: results of operations and passes, while they are alive."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from threading import get_ident
from time import perf_counter_ns
from typing import Any, NamedTuple

from ... import locks
from ...core.element import Library, library_of
from ...core.level import Layer
from ...core.tensor import Tensor, View


@dataclass(slots=True, eq=False)
class Held:
    """One memory, from when `see` first got an array on it until it was freed.

    Times are nanoseconds; `freed` is None while it is alive. `device` is None for the memory of the
    host. `about` is what the observer noted of the array.
    """

    nbytes: int
    device: str | None
    time: int
    about: Any
    thread: int
    freed_on: int = 0
    freed: int | None = None


class Change(NamedTuple):
    """At `time` (ns), on `thread`, `nbytes` were allocated; a negative number was freed."""

    time: int
    thread: int
    nbytes: int
    device: str | None


class Memory:
    """Follows the arrays that it is shown.

    Each memory counts once, from when `see` first gets an array on it until it is freed.

    Arrays made earlier are unknown. So is memory that a library allocates and frees within one
    function.
    """

    def __init__(self) -> None:
        self.held: list[Held] = []
        self.closed = False
        self._alive: dict[int, weakref.ref[Any]] = {}
        self._lock = locks.new_lock()  # an array may be freed while another one is registered

    def see(
        self, value: Any, time: int, about: Callable[[Any, Library], Any] | None = None
    ) -> None:
        """Count the memory of a result: an array, a layer, or a tuple, list or dict of them.

        time   when the result existed
        about  returns what to note of an array whose memory is new
        """
        for x, library, holder, nbytes in self._new(value):
            if nbytes:
                device = library.backend.kernel("accelerator")(library.xp, x)
                noted = None if about is None else about(x, library)
                self._hold(holder, Held(nbytes, device, time, noted, get_ident()))

    def ignore(self, value: Any) -> None:
        """Register existing arrays, so that they do not count when they appear again."""
        for _, _, holder, _ in self._new(value):
            self._hold(holder, None)

    def _new(self, value: Any) -> Iterator[tuple[Any, Library, Any, int]]:
        """Yield the arrays on unknown memories: array, library, what owns the memory, its bytes."""
        for x in arrays(value):
            library = library_of(x)
            # a NumPy scalar has no memory besides its own object
            if library is not None and not (library.scalars and isinstance(x, library.scalars)):
                holder, nbytes = _storage(library)(library.xp, x)
                if id(holder) not in self._alive:
                    yield x, library, holder, nbytes

    def _hold(self, holder: Any, held: Held | None) -> None:
        key = id(holder)
        with self._lock:
            if key in self._alive or self.closed:
                return
            # an object without weak references, such as bytes, cannot be followed
            with contextlib.suppress(TypeError):
                self._alive[key] = weakref.ref(holder, lambda _: self._free(key, held))
                if held is not None:
                    self.held.append(held)

    def _free(self, key: int, held: Held | None) -> None:
        with self._lock:
            if self._alive.pop(key, None) is not None and held is not None and not self.closed:
                held.freed, held.freed_on = perf_counter_ns(), get_ident()

    def close(self) -> None:
        """Follow the arrays no longer. Their weak references refer to this object."""
        with self._lock:
            self.closed = True
            self._alive.clear()

    def changes(self) -> list[Change]:
        """Return what was allocated and freed, in order of time."""
        changes = [Change(h.time, h.thread, h.nbytes, h.device) for h in self.held]
        changes += [
            Change(h.freed, h.freed_on, -h.nbytes, h.device)
            for h in self.held
            if h.freed is not None
        ]
        return sorted(changes, key=lambda change: change.time)

    def timeline(self) -> Iterator[tuple[int, int, int]]:
        """Yield (time in ns, bytes on the host, bytes on devices) after each change."""
        library = device = 0
        for change in self.changes():
            if change.device is None:
                library += change.nbytes
            else:
                device += change.nbytes
            yield change.time, library, device

    def alive(self, time: int) -> Iterator[Held]:
        """Yield the memories that are alive right after that time."""
        return (h for h in self.held if h.time <= time and (h.freed is None or h.freed > time))


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
