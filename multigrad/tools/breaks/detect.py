"""The context manager that finds lines on which gradients are lost."""

from __future__ import annotations

from ... import observe
from .report import BreakReport
from .watch import BreakObserver


class detect_breaks:
    """Record each line of the program on which a gradient is lost, while the context is active.

    Use `with detect_breaks() as report`.

    It observes the thread and the asyncio task that enter it, tasks started inside, and threads
    that run in a copy of the context (`contextvars.copy_context().run`). It records: conversions
    (np.asarray, which is refused, float, int, item, tolist, .array); detach and .data; casts to
    integers; operations without a derivative, or with a derivative of 0 by rule; Tensors that
    require grad used in no_grad; saved arrays that the program modified past multigrad, before the
    backward pass. It records them in transformations of multigrad.func as well. The
    results of the program do not change; its operations take about four times as long.
    """

    def __init__(self) -> None:
        self._observers: list[BreakObserver] = []

    def __enter__(self) -> BreakReport:
        observer = BreakObserver(BreakReport())
        self._observers.append(observer)
        observe.enter(observer)
        return observer.report

    def __exit__(self, *exc: object) -> None:
        observer = self._observers[-1]
        try:
            observer.close()
        finally:
            observe.leave(observer)
        self._observers.pop()
