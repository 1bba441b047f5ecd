"""Threads that begin at the same moment."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def together(work: Callable[[int], Any], threads: int) -> list[Any]:
    """What `work(i)` returns on each thread; exceptions are raised here."""
    barrier = threading.Barrier(threads)

    def run(i: int) -> Any:
        barrier.wait(60)
        return work(i)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(run, range(threads)))
