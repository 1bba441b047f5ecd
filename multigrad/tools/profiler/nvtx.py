"""Ranges for NVIDIA's profilers: `emit_nvtx`, as torch.autograd.profiler.emit_nvtx.

It needs the package `nvtx`, and no GPU.
"""

from __future__ import annotations

import importlib
from typing import Any, Literal

from ... import observe
from ...core import graph
from ...core.element import library_of
from ...observe import FUNCTION, LABEL, OPERATION, STEP, TANGENT, WRITE, Call, Label, Observer
from .memory import arrays
from .recorder import Detail, describe, node_sequence

LEAF = 2**64 - 1


class _Ranges(Observer):
    """Tells NVTX of everything that begins and ends; on a library with a profiler of its own, that
    one, too.
    """

    events = frozenset({OPERATION, WRITE, FUNCTION, STEP, TANGENT, LABEL})

    def __init__(self, nvtx: Any, record_shapes: bool) -> None:
        self.nvtx = nvtx
        self.record_shapes = record_shapes
        self._labels: dict[Label, Any] = {}

    def begin(self, call: Call) -> Any:
        text = (
            f"{call.name}, seq={upcoming()}"
            if call.node is None
            else f"{call.name}, stashed seq={_number(call.node)}"
        )
        if self.record_shapes:
            detail = Detail()
            describe(call, detail)
            text += f", sizes={detail.shapes}"
        own = self._own(call, text)
        self.nvtx.push_range(text)
        if own is not None:
            own.__enter__()
        return own

    def end(self, token: Any, call: Call) -> None:
        if token is not None:
            token.__exit__(None, None, None)
        self.nvtx.pop_range()

    def opened(self, label: Label) -> None:
        # of a task it may end while another one has the thread
        self._labels[label] = self.nvtx.start_range(label.name)

    def closed(self, label: Label) -> None:
        opened = self._labels.pop(label, None)
        if opened is not None:
            self.nvtx.end_range(opened)

    def _own(self, call: Call, text: str) -> Any:
        x = next(iter(arrays((call.args, call.kwargs))), None)
        library = None if x is None else library_of(x)
        return None if library is None else library.backend.kernel("annotation")(library.xp, text)


def _number(node: graph.Node) -> int:
    """The number that the node was made with; of the end of the graph at a leaf, which no operation
    made, PyTorch's for these.
    """
    found = node_sequence(node)
    return found if found >= 0 else LEAF


def upcoming() -> int:
    """The number that the next node will get, if there is one."""
    counter: Any = graph.tick.__self__  # type: ignore[attr-defined]
    return int(repr(counter)[len("count(") : -1])


class emit_nvtx:
    """Context manager: every operation and every node is a range for Nsight Systems, and for
    nvprof.

        nsys profile --capture-range=none -o trace python program.py
        nvprof --profile-from-start off -o trace.prof -- python program.py

    enabled        False: nothing happens
    record_shapes  the shapes of the arguments stand in the name: [[2, 3], [3], []], with [] for
                   what is no array

    An operation's range is `multiply, seq=N`, where N is the number that its node gets if it makes
    one. A node's is `MultiplyBackward, stashed seq=M`, where M is the number that it got. Equal
    numbers belong together; that of AccumulateGrad, which no operation made, is 2**64 - 1. An
    operation that makes no node has the number as well, which a later one may get: of several, the
    node is that of the last. What runs inside a node has a seq as well, which means something if
    the pass is itself recorded (create_graph=True): then the nodes of the second derivative are
    stashed with it. Times can be read after the process has ended, by `load_nvprof`. Where arrays
    are JAX's, the ranges are jax.profiler.TraceAnnotations, too.
    """

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled
        self.entered = False
        self.record_shapes = record_shapes
        self._ranges: _Ranges | None = None

    def __enter__(self) -> emit_nvtx:
        if not self.enabled:
            return self
        if self.entered:
            raise RuntimeError("NVTX annotation context manager is not reentrant")
        try:
            nvtx = importlib.import_module("nvtx")
        except ImportError as error:
            raise ImportError(
                "emit_nvtx needs the package nvtx: pip install 'multigrad-array[nvtx]'"
            ) from error
        self.entered = True
        self._ranges = _Ranges(nvtx, self.record_shapes)
        observe.enter(self._ranges)
        return self

    def __exit__(self, *exc: object) -> Literal[False]:
        if self._ranges is not None:
            observe.leave(self._ranges)
            self._ranges = None
        return False
