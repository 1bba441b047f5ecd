"""Anomaly mode, as torch.autograd.anomaly_mode.

It shows which forward call made a node that fails, and which node computes nan.

The mode is an observer of the contexts in which it was switched on: this thread and task, the tasks
that it starts, and threads that run in a copy of its context. (PyTorch's mode belongs to the
process.)
"""

from __future__ import annotations

import sys
import traceback
import warnings
from contextvars import ContextVar
from itertools import dropwhile, islice
from types import CodeType, FrameType
from typing import Any
from weakref import ref

from .. import observe
from ..backward.run import STOP
from ..core.graph import ENABLE, TRACEBACK, AccumulateGrad, Node, notes
from ..core.level import innermost
from ..errors import OWN, GradientError, program
from ..memory import fingerprints
from ..observe import NODE, STEP, Call, Observer

__all__ = [
    "detect_anomaly",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "set_detect_anomaly",
]

PARENT = "parent_"

_check_nan: ContextVar[bool] = ContextVar("multigrad.anomaly_check_nan", default=True)
_running: ContextVar[ref[Call] | None] = ContextVar("multigrad.running_step", default=None)
"""The step whose rule runs. Under create_graph, its node induces the nodes that are recorded.

The reference is weak, because an interrupt may hide the end of the step.
"""


def is_anomaly_enabled() -> bool:
    """Return whether anomaly mode is on in this context."""
    return any(not o.ended for o in _in_force())


def is_anomaly_check_nan_enabled() -> bool:
    """Return whether anomaly mode, if it is on, raises for nan."""
    return _check_nan.get()


def _in_force() -> list[_Anomaly]:
    """The observers of anomaly mode in this context."""
    return [o for o in observe.watching() if isinstance(o, _Anomaly)]


def _set_enabled(enabled: bool, check_nan: bool = True) -> _Anomaly | None:
    """Switch the mode on or off in this context, and return the new observer, if any."""
    for value, name, position in ((enabled, "enabled", 1), (check_nan, "check_nan", 2)):
        if not isinstance(value, bool):
            raise TypeError(
                f"set_anomaly_enabled(): argument '{name}' (position {position}) must be bool, "
                f"not {type(value).__name__}"
            )
    _check_nan.set(check_nan)
    if enabled and not is_anomaly_enabled():
        observer = _Anomaly()
        observe.enter(observer)
        return observer
    for former in _in_force() if not enabled else ():
        observe.leave(former)
    return None


class _Restoring:
    """A context manager that restores the mode of the time at which it was made."""

    def __init__(self) -> None:
        self.prev = is_anomaly_enabled()
        self.prev_check_nan = is_anomaly_check_nan_enabled()

    def __exit__(self, *exc: object) -> None:
        try:
            _set_enabled(self.prev, self.prev_check_nan)
        except BaseException:  # an interrupt
            _set_enabled(self.prev, self.prev_check_nan)
            raise


class detect_anomaly(_Restoring):
    """Context manager in which a failing backward pass shows the forward call of the failing node.

    A nan in a gradient is an error there, and so is a saved array that the program modified past
    multigrad, as by writing to a raw array.

    check_nan  whether nan raises RuntimeError

    The forward pass must run within the context, too. The mode is slow: use it only to find errors.
    Corresponds to torch.autograd.detect_anomaly.
    """

    def __init__(self, check_nan: bool = True) -> None:
        super().__init__()
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should "
            "only be enabled for debugging.",
            stacklevel=2,
        )
        self._entered: list[_Anomaly | None] = []

    def __enter__(self) -> None:
        try:
            self._entered.append(_set_enabled(True, self.check_nan))
        except BaseException:  # an interrupt, after which `__exit__` is not called
            super().__exit__()
            raise

    def __exit__(self, *exc: object) -> None:
        observer = self._entered[-1]
        if observer is not None:
            # needed if the block ends in another context than it began in, as generators may
            observer.ended = True
        super().__exit__()
        self._entered.pop()


class set_detect_anomaly(_Restoring):
    """Switch anomaly mode on or off; as a context manager, restore the former state at the end.

    See `detect_anomaly`.
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        super().__init__()
        try:
            _set_enabled(mode, check_nan)
        except BaseException:  # an interrupt, after which `__exit__` is not called
            self.__exit__()
            raise

    def __enter__(self) -> None:
        pass


class Trace:
    """The stack of the call that made a node, and the node that induced it.

    The text is made on first use.
    """

    __slots__ = ("frames", "parent")

    def __init__(self, frame: FrameType | None, parent: Node | None) -> None:
        self.parent = parent
        self.frames: list[tuple[CodeType, int]] = []
        while frame is not None:
            self.frames.append((frame.f_code, frame.f_lasti))
            frame = frame.f_back

    def lines(self) -> list[tuple[str, int, str]]:
        """File, line and function of each frame, outermost first.

        multigrad's own frames at the end are left out.
        """
        users = dropwhile(lambda frame: frame[0].co_filename.startswith(OWN), self.frames)
        return [(code.co_filename, _line(code, at), code.co_name) for code, at in users][::-1]

    def tell(self, metadata: dict[str, Any]) -> None:
        """Put the trace into the metadata of a node, under the names of PyTorch."""
        if TRACEBACK not in metadata:
            metadata[TRACEBACK] = traceback.format_list([(*line, None) for line in self.lines()])
            if self.parent is not None:
                metadata[PARENT] = self.parent


def _line(code: CodeType, at: int) -> int:
    """The line of the instruction at this offset, in bytes; an instruction has two."""
    return next(islice(code.co_positions(), at // 2, None))[0] or code.co_firstlineno


class _Anomaly(Observer):
    """Stores the Python frames that led to each node, and checks what it saved and its results."""

    events = frozenset({NODE, STEP})

    def recorded(self, node: Node, operands: tuple[Any, ...], result: Any) -> None:
        if type(node) is not AccumulateGrad:
            running = _running.get()
            step = None if running is None else running()
            runs = step is not None and step.result is NotImplemented
            notes(node)[TRACEBACK] = Trace(sys._getframe(1), step.node if runs else None)  # type: ignore[union-attr]
            fingerprints.take(node, operands)

    def begin(self, call: Call) -> ref[Call] | None:
        array = fingerprints.modified(call.node)
        if array:
            _tell(call.node)
            text = fingerprints.UNSEEN.format(call.node.name(), array)
            raise GradientError(f"{text}{_used(call.node)}")
        before = _running.get()
        _running.set(ref(call))
        return before

    def end(self, token: ref[Call] | None, call: Call) -> None:
        _running.set(token)
        result = call.result
        if isinstance(result, Exception):
            result.args = tuple(
                a.replace(ENABLE, GOOD_LUCK) if isinstance(a, str) else a for a in result.args
            )
            _tell(call.node)
        elif _check_nan.get() and not (
            result is STOP or result is NotImplemented or isinstance(result, BaseException)
        ):
            _refuse_nan(call.node, result)


def _used(node: Node) -> str:
    """The line of the program on which the operation of `node` was called."""
    lines = notes(node)[TRACEBACK].lines()
    return " It was used at {}:{} in {}.".format(*lines[-1]) if lines else ""


GOOD_LUCK = (
    "Hint: the backtrace further above shows the operation that failed to compute its gradient. "
    "The variable in question was changed in there or anywhere later. Good luck!"
)


def _refuse_nan(node: Node, results: Any) -> None:
    gradients = iter((results,) if node.rule.single else results)
    xp = node.library.xp
    for i, (parent, _) in enumerate(node.next_functions):
        x = None if parent is None else innermost(next(gradients))
        if x is None:
            continue
        any_nan = xp.any(xp.isnan(x))
        try:
            found = bool(any_nan)
        except Exception:  # under a trace (jax.jit) the value is unknown
            continue
        if found:
            _tell(node)
            raise RuntimeError(f"Function '{node.name()}' returned nan values in its {i}th output.")


def _tell(node: Node | None) -> None:
    """Warn with the forward call that made `node`, and those of the nodes that induced it."""
    texts = (
        "Error detected in {0}. Traceback of forward call that caused the error:\n{1}",
        "Error detected in {0}. No forward pass information available. Enable detect anomaly "
        "during forward pass for more information.",
    )
    while node is not None:
        metadata = node.metadata
        trace = metadata.get(TRACEBACK)
        warnings.warn(
            texts[trace is None].format(node.name(), "".join(trace or ())),
            UserWarning,
            stacklevel=program(),
        )
        node = metadata.get(PARENT)
        texts = (
            "\n\nPrevious calculation was induced by {0}. Traceback of forward call that induced "
            "the previous calculation:\n{1}",
            "\n\nNo forward pass information available of the previous calculation that was "
            "induced by {0}. Enable detect anomaly during forward pass for more information.",
        )
