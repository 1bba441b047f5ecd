"""Provenance of nodes: the source line, the active labels, shapes and dtypes of the outputs.

The tools that draw a graph or count its memory read it. An observer records it while `record_lines`
or `label` is active; otherwise it costs nothing.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, Self, TypeVar

from ... import observe
from ...core import element
from ...core.each_call import each_call
from ...core.graph import TRACEBACK, AccumulateGrad, Node, notes
from ...core.tensor import Tensor
from ...errors import OWN
from ...observe import NODE, Observer

F = TypeVar("F", bound=Callable[..., Any])


class Site(NamedTuple):
    """A place in a program."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{shown(self.file)}:{self.line}" if self.line else shown(self.file)

    @property
    def short(self) -> str:
        """The file name without its folders, and the line."""
        return f"{Path(shown(self.file)).name}:{self.line}" if self.line else self.file


_here = ""
"""This prefix of file names is not shown: the working directory of a running command."""


def shown(file: str) -> str:
    """Return the name of a file, or of a notebook cell, for a message."""
    ask = getattr(sys.modules.get("IPython"), "get_ipython", None)
    compiler = getattr(ask() if callable(ask) else None, "compile", None)
    name = getattr(compiler, "format_code_name", None)  # since IPython 8
    cell = name(file) if callable(name) else None  # ("Cell", "In[3]") if IPython runs it
    return " ".join(cell) if cell else file.removeprefix(_here)


def shown_from(folder: str) -> str:
    """Set the folder that `shown` removes from file names, and return the former one."""
    global _here
    former, _here = _here, folder
    return former


UNKNOWN = Site("<unknown>", 0, "")
PASSING = tuple(module.__file__ for module in (contextlib, copy, functools) if module.__file__)
"""Modules of the standard library that call a function on behalf of other code."""
_folders: dict[int, tuple[str, ...]] = {}


def skipped() -> tuple[str, ...]:
    """Return the prefixes of file names outside the user's program.

    They belong to multigrad, to the code that it generates, and to the array libraries in use.
    """
    libraries = element.libraries()
    prefixes = _folders.get(len(libraries))
    if prefixes is None:
        # not `tracebacks.library_roots`: a program may be in one package with its own backend
        names = {"numpy"}
        for library in libraries:
            backend = library.backend
            kinds = (*backend.array_types, *backend.scalar_types)
            names |= {kind.__module__.partition(".")[0] for kind in kinds}
            names.add(getattr(backend.namespace, "__name__", "numpy").partition(".")[0])
        roots = sorted(names - {"builtins", "__main__"})
        files = (getattr(sys.modules.get(root), "__file__", None) for root in roots)
        prefixes = _folders[len(libraries)] = (
            *OWN,
            "<frozen",
            *PASSING,
            *(str(Path(f).parent) + os.sep for f in files if f and Path(f).name == "__init__.py"),
        )
    return prefixes


def frames(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame and its callers, innermost first."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def site(frame: FrameType | None, skip: tuple[str, ...]) -> Site | None:
    """Return the innermost place in a file whose name starts with none of `skip`."""
    while frame is not None:  # `frames` would cost more than the rest
        code = frame.f_code
        if not code.co_filename.startswith(skip):
            return Site(code.co_filename, frame.f_lineno, code.co_qualname)
        frame = frame.f_back
    return None


class Output(NamedTuple):
    """Shape and dtype of an output of a node, None where unknown."""

    shape: tuple[int, ...] | None
    dtype: str | None


class Note(NamedTuple):
    """The recorded provenance of a node.

    `labels` are the active labels, outermost first, each with the number of its block.
    """

    site: Site | None
    labels: tuple[tuple[str, int], ...]
    outputs: tuple[Output | None, ...]


SITE, LABELS, OUTPUTS = "site", "labels", "outputs"
"""The keys of the notes (`graph.notes`) from which `note_of` makes a Note."""


_numbers = count(1)
_dtypes: dict[Any, str] = {}


def dtype_name(dtype: Any) -> str:
    """Return the name of a dtype as users write it."""
    key = (type(dtype), dtype)  # comparing dtypes of two libraries may raise
    name = _dtypes.get(key)
    if name is None:
        text = getattr(dtype, "name", None) or str(dtype)
        name = _dtypes[key] = str(text).rpartition(".")[2].strip("'>")
    return name


def output_of(x: Any) -> Output | None:
    """Return the shape and dtype of an array, None for any other object."""
    array = hasattr(x, "dtype") and hasattr(x, "shape")
    return Output(tuple(x.shape), dtype_name(x.dtype)) if array else None


def elements(result: Any) -> tuple[Any, ...]:
    """Return what OUTPUTS notes: Element and shape of each output, None for one that is no Tensor.

    It is cheaper than an Output.
    """
    if type(result) is Tensor:  # most are
        return ((result._elem, result._array.shape),)
    outs = result if isinstance(result, (tuple, list)) else (result,)
    return tuple((t._elem, t._array.shape) if isinstance(t, Tensor) else None for t in outs)


class _Notes(Observer):
    """What an open block of `label` or, without labels, of `record_lines` notes of new nodes.

    A block may end in another context: asyncio tasks inherit it, and a generator may end its block
    anywhere. `ended` ends it in all of them.
    """

    __slots__ = ("ended", "labels")
    events = frozenset({NODE})

    def __init__(self, *labels: tuple[str, int]) -> None:
        self.labels = labels
        self.ended = False

    def recorded(self, node: Node, operands: tuple[Any, ...], result: Any) -> None:
        if type(node) is AccumulateGrad:
            return
        noted = notes(node)
        if OUTPUTS not in noted:
            noted[OUTPUTS] = elements(result)
        if self.labels:
            noted[LABELS] = self.labels + noted.get(LABELS, ())  # those inside come first
        elif SITE not in noted:
            noted[SITE] = site(sys._getframe(1), skipped())

    def recorded_alone(self, node: Node, operands: tuple[Any, ...], result: Any) -> None:
        if self.ended:
            observe.leave(self)
        elif operands and self.labels and type(result) is Tensor:
            node.noted = {LABELS: self.labels, OUTPUTS: ((result._elem, result._array.shape),)}
        else:
            self.recorded(node, operands, result)

    @staticmethod
    def _recorded_by(blocks: Sequence[Any]) -> Callable[..., None]:
        labels = tuple([label for block in reversed(blocks) for label in block.labels])
        plain = all(block.labels for block in blocks)

        def recorded(node: Node, operands: tuple[Any, ...], result: Any) -> None:
            if plain and operands and type(result) is Tensor:
                for block in blocks:
                    if block.ended:
                        break
                else:
                    node.noted = {LABELS: labels, OUTPUTS: ((result._elem, result._array.shape),)}
                    return
            observe.record(blocks, node, operands, result)

        return recorded


def note_of(node: Node) -> Note | None:
    """Return the provenance of a node that `label`, `record_lines` or the report recorded.

    Anomaly mode has the line if nothing else has it.
    """
    noted = getattr(node, "noted", {})
    where, trace = noted.get(SITE), noted.get(TRACEBACK)
    if where is None and trace is not None and (lines := trace.lines()):
        where = Site(*lines[-1])
    if where is None and OUTPUTS not in noted:
        return None
    outputs = (
        out and Output(tuple(out[1]), dtype_name(out[0].dtype)) for out in noted.get(OUTPUTS, ())
    )
    return Note(where, noted.get(LABELS, ()), tuple(outputs))


class _Noting:
    """A context manager whose blocks are recorded.

    It may be entered several times, and left in any order and in any context.
    """

    _number = 0  # the number of the call, for a decorated function

    def __init__(self) -> None:
        self._entered: list[_Notes] = []

    def __enter__(self) -> Self:
        name = getattr(self, "name", None)
        labels = [] if name is None else [(name, self._number or next(_numbers))]
        block = _Notes(*labels)
        self._entered.append(block)
        try:
            observe.enter(block)
        except BaseException:  # an interrupt, after which `__exit__` is not called
            self._end(block)
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        block: _Notes | None = None
        try:
            block = self._last()
            self._end(block)
        except BaseException:  # an interrupt
            self._end(block or self._last())
            raise

    def _last(self) -> _Notes:
        # a generator may end its block in any context
        open_here = [o for o in observe.watching() if type(o) is _Notes and not o.ended]
        return next((b for b in reversed(open_here) if b in self._entered), self._entered[-1])

    def _end(self, block: _Notes) -> None:
        block.ended = True
        if block in self._entered:
            self._entered.remove(block)
        observe.leave(block)


class record_lines(_Noting):
    """Record for each new node its source line, and the shapes and dtypes of its outputs.

    `draw`, `print_graph` and `memory_report` show these. Anomaly mode records lines as well.

    The context manager applies to this thread and asyncio task, to tasks started inside, and to
    threads that run in a copy of its context. As a decorator it applies while the function or
    coroutine function runs; for a generator function, while one of its steps runs.
    """

    def __call__(self, function: F) -> F:
        return each_call(function, record_lines)  # type: ignore[return-value]


class label(_Noting):
    """Assign new nodes to a named part of the graph, by which `draw` folds a large graph.

    Labels nest. As a decorator, each call of the function or coroutine function is one block of
    that name. A decorated generator function has its label while its steps run, and code between
    the steps does not have it. The label of a `with` around a `yield` stays active until the block
    ends. A label applies to this thread or asyncio task.
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(
                f"label takes the name of a part of the graph, a str, not {type(name).__name__}"
            )
        super().__init__()
        self.name = name

    def __call__(self, function: F) -> F:
        return each_call(function, self._of_a_call)  # type: ignore[return-value]

    def _of_a_call(self) -> label:
        copy = label(self.name)
        copy._number = next(_numbers)
        return copy
