"""NVTX ranges for NVIDIA's profilers: `emit_nvtx`, as torch.autograd.profiler.emit_nvtx.

It needs the package `nvtx`, but no GPU.
"""

from __future__ import annotations

import importlib
from typing import Any, Literal

from ... import observe
from ...core import graph
from ...core.element import library_of
from ...observe import FUNCTION, LABEL, OPERATION, STEP, TANGENT, WRITE, Call, Label, Observer
from ...tracebacks import entry
from .memory import arrays
from .recorder import describe, node_sequence

LEAF = 2**64 - 1
"""The number of AccumulateGrad, as in PyTorch: no operation made it."""


class _Ranges(Observer):
    """Reports the start and end of every call to NVTX.

    If the array library has a profiler of its own, that profiler gets the range as well.
    """

    events = frozenset({OPERATION, WRITE, FUNCTION, STEP, TANGENT, LABEL})

    def __init__(self, nvtx: Any, record_shapes: bool) -> None:
        self.nvtx = nvtx
        self.record_shapes = record_shapes
        self._labels: dict[Label, Any] = {}

    def begin(self, call: Call) -> Any:
        text = f"{call.name}, seq={upcoming()}"
        if call.node is not None:
            number = node_sequence(call.node)
            text = f"{call.name}, stashed seq={number if number >= 0 else LEAF}"
        if self.record_shapes:
            text += f", sizes={[shape for shape, *_ in describe(call)]}"
        x = next(iter(arrays((call.args, call.kwargs))), None)
        library = None if x is None else library_of(x)
        annotation = None
        if library is not None:
            annotation = library.backend.kernel("annotation")(library.xp, text)
        self.nvtx.push_range(text)
        if annotation is not None:
            annotation.__enter__()
        return annotation

    def end(self, token: Any, call: Call) -> None:
        if token is not None:
            token.__exit__(None, None, None)
        self.nvtx.pop_range()

    def opened(self, label: Label) -> None:
        # the range of a task may end while another task runs on the thread
        self._labels[label] = self.nvtx.start_range(label.name)

    def closed(self, label: Label) -> None:
        opened = self._labels.pop(label, None)
        if opened is not None:
            self.nvtx.end_range(opened)


def upcoming() -> int:
    """Return the number that the next node will get."""
    counter: Any = graph.tick.__self__  # type: ignore[attr-defined]
    return int(repr(counter)[len("count(") : -1])


class emit_nvtx:
    """Context manager: each operation and each node is a range for Nsight Systems and nvprof.

        nsys profile --capture-range=none -o trace python program.py
        nvprof --profile-from-start off -o trace.prof -- python program.py

    enabled        False disables the context manager
    record_shapes  append the shapes of the arguments to the name: [[2, 3], [3], []], with [] for an
                   argument that is not an array

    The range of an operation is named `multiply, seq=N`, where N is the number of its node. The
    range of a node is named `MultiplyBackward, stashed seq=M`, where M is the number of the node.
    Equal numbers belong together. AccumulateGrad, which no operation made, has the number 2**64 -
    1.

    An operation that makes no node still has the number of the next node, so several operations may
    share a number; the node belongs to the last of them. Operations inside a node have a seq as
    well. It has a meaning if the pass is itself recorded (create_graph=True): the nodes of the
    second derivative are stashed with it.

    `load_nvprof` reads the times after the process has ended. If the arrays are JAX arrays, the
    ranges are also jax.profiler.TraceAnnotations.
    """

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled
        self.entered = False
        self.record_shapes = record_shapes
        self._ranges: _Ranges | None = None

    @entry
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
