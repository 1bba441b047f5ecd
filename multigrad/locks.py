"""The locks of multigrad: a thread may meet its own lock, and a process may fork.

A signal handler, a finalizer or the garbage collector may run any code between two steps of a block
that holds a lock, such as a backward pass. So every lock may be taken again by its thread, and such
a block expects that any call changes what it works on: it compares again where it stores.

In the child of a fork only the thread that forked is alive. So a fork waits until no other thread
holds a lock: then the child finds whole tables and free locks.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from time import monotonic
from weakref import WeakSet

PATIENCE = 30.0
"""The seconds that a fork waits at most: a thread that holds a lock may be waiting for the fork."""

_locks: WeakSet[threading.RLock] = WeakSet()
_adding = threading.RLock()
_taken: dict[int, list[threading.RLock]] = {}


def new_lock() -> threading.RLock:
    """A new lock.

    `with locks.new_lock():` around a block keeps other threads from forking during the block, and
    keeps no thread out of it.
    """
    lock = threading.RLock()
    with _adding:
        _locks.add(lock)
    return lock


def _all() -> Iterator[threading.RLock]:
    yield _adding
    yield from list(_locks)  # no other thread adds to it now


def _before_fork() -> None:
    """Take all locks.

    Other threads take several of them in an order of their own. So while locks are held, another
    one is waited for only for a moment, in which a thread may be done with it.
    """
    end = monotonic() + PATIENCE
    mine: list[threading.RLock] = []
    busy: threading.RLock | None = _adding
    try:
        while busy is not None and busy.acquire(timeout=max(0.0, end - monotonic())):
            mine.append(busy)
            busy = None
            for lock in _all():
                if not lock.acquire(timeout=0.005):
                    busy = lock
                    break
                mine.append(lock)
            else:
                _taken[threading.get_ident()], mine = mine, []
            while mine:
                mine.pop().release()
    finally:  # an interrupt
        while mine:
            mine.pop().release()


def _in_parent() -> None:
    for lock in _taken.pop(threading.get_ident(), ()):
        lock.release()


def _in_child() -> None:
    _in_parent()
    _taken.clear()
    for lock in (_adding, *_locks):
        # a thread that is not alive here may hold it, if the fork did not wait any longer
        if not lock._is_owned():  # type: ignore[attr-defined]
            lock._at_fork_reinit()  # type: ignore[attr-defined]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
