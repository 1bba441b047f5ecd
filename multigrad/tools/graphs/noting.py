"""Where nodes were made: the source line, the labels in force, what the outputs are like. For what draws or counts a graph.

Noted by an instrument (engine/instruments.py) while `record_lines` or `label` is entered; at other times nothing is noted and nothing costs.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import os
import re
import sys
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from ...engine import element, instruments
from ...engine.anomaly import TRACEBACK
from ...engine.each_call import each_call
from ...engine.graph import Node
from ...engine.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])


class Site(NamedTuple):
    """A place in a program."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        file = self.file.removeprefix(here)
        return f"{file}:{self.line}" if self.line else file

    @property
    def short(self) -> str:
        """The file without its folders, and the line."""
        return f"{Path(self.file).name}:{self.line}" if self.line else self.file


here = ""
"""What the names of files are shown without: the folder in which a command was typed, while it runs."""
UNKNOWN = Site("<unknown>", 0, "")
OWN = instruments.PACKAGE
GENERATED = ("<multigrad", "<pullback", "<frozen")
PASSING = tuple(module.__file__ for module in (contextlib, copy, functools) if module.__file__)
"""What calls on behalf of others."""
_folders: dict[int, tuple[str, ...]] = {}


def skipped() -> tuple[str, ...]:
    """How the file names begin that are nobody's own: those of multigrad, of what it generates, and of the array libraries in use."""
    known = len(element._hosts)
    found = _folders.get(known)
    if found is None:
        names = {"numpy"}
        for host in list(element._hosts.values()):
            kinds = (*host.backend.array_types, *host.backend.scalar_types)
            names |= {kind.__module__.partition(".")[0] for kind in kinds}
            names.add(getattr(host.backend.namespace, "__name__", "numpy").partition(".")[0])
        files = (getattr(sys.modules.get(name), "__file__", None) for name in sorted(names - {"builtins", "__main__"}))
        found = _folders[known] = (OWN, *GENERATED, *PASSING, *(str(Path(f).parent) + os.sep for f in files if f and Path(f).name == "__init__.py"))
    return found


def site(frame: FrameType | None, skip: tuple[str, ...]) -> Site | None:
    """The innermost place in a program whose file is none of `skip`."""
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(skip):
            return Site(code.co_filename, frame.f_lineno, code.co_qualname)
        frame = frame.f_back
    return None


class Output(NamedTuple):
    """What an output of a node is like, as far as it is known."""

    shape: tuple[int, ...] | None
    dtype: str | None


class Note(NamedTuple):
    """What was noted of a node; `labels` are those in force, outermost first, each with the number of its block."""

    site: Site | None
    labels: tuple[tuple[str, int], ...]
    outputs: tuple[Output | None, ...]


_notes: WeakKeyDictionary[Node, Note] = WeakKeyDictionary()
_labels: ContextVar[tuple[_Block, ...]] = ContextVar("multigrad.graph_labels", default=())
_numbers = count(1)
_recorders: list[object] = []
"""One entry for each `record_lines` that is entered."""


_dtypes: dict[Any, str] = {}


def dtype_name(dtype: Any) -> str:
    """A dtype as users write it."""
    key = (type(dtype), dtype)  # dtypes of two libraries are not to be compared
    found = _dtypes.get(key)
    if found is None:
        text = getattr(dtype, "name", None) or str(dtype)
        found = _dtypes[key] = str(text).rpartition(".")[2].strip("'>")
    return found


def output_of(t: Any) -> Output | None:
    """What a Tensor is like."""
    return Output(tuple(t.shape), dtype_name(t.dtype)) if isinstance(t, Tensor) else None


def _remember(node: Node, values: Sequence[Any], result: Any) -> None:
    where = site(sys._getframe(1), skipped()) if _recorders else None
    outs = (result,) if isinstance(result, Tensor) else tuple(result)
    labels = tuple((b.name, b.number) for b in _labels.get() if b.open)
    _notes[node] = Note(where, labels, tuple(map(output_of, outs)))


_ENTRY = re.compile(r'  File "(.*)", line (\d+), in (.*)\n')


def note_of(node: Node) -> Note | None:
    """What was noted of a node; of one that only anomaly mode has seen, its line."""
    found = _notes.get(node)
    if found is None or found.site is None:
        e = getattr(node, "extra", None)
        stack = e.metadata.get(TRACEBACK) if e is not None else None
        entry = _ENTRY.match(stack[-1]) if stack else None
        if entry is not None:
            where = Site(entry[1], int(entry[2]), entry[3])
            return Note(where, (), ()) if found is None else found._replace(site=where)
    return found


class record_lines:
    """Within this context, on every thread, nodes remember the line of the program that made them, and the shapes and dtypes of their outputs.

    `draw`, `print_graph` and `memory_report` tell these. Anomaly mode remembers lines as well. Also a decorator: while the function runs, which
    may be a coroutine function; of a generator, while its steps do.
    """

    def __call__(self, function: F) -> F:
        return each_call(function, record_lines)  # type: ignore[return-value]

    def __enter__(self) -> record_lines:
        instruments.install(_remember)
        _recorders.append(None)
        return self

    def __exit__(self, *exc: object) -> None:
        _recorders.pop()
        instruments.remove(_remember)


class _Block:
    """A block with a label, as long as it is open."""

    __slots__ = ("name", "number", "open")

    def __init__(self, name: str, number: int) -> None:
        self.name, self.number, self.open = name, number, True


class label:
    """Within this context, on this thread or task, nodes belong to the part of the graph of this name: what `draw` folds a large graph by.

    Labels nest. Also a decorator: each call of the function is one block of that name, of a coroutine function, too. A generator function that
    is decorated has its label while its steps run, and what runs between them has not; the label of a `with` around a `yield` stays in force
    until the block ends.
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"label takes the name of a part of the graph, a str, not {type(name).__name__}")
        self.name = name
        self._number = 0  # of the call that it is for
        self._blocks: list[_Block] = []

    def __enter__(self) -> label:
        instruments.install(_remember)
        block = _Block(self.name, self._number or next(_numbers))
        self._blocks.append(block)
        _labels.set((*_labels.get(), block))
        return self

    def __exit__(self, *exc: object) -> None:
        inside = _labels.get()
        block = next((b for b in reversed(inside) if b in self._blocks), None) or self._blocks[-1]  # a generator may end it anywhere
        self._blocks.remove(block)
        block.open = False
        _labels.set(tuple(b for b in inside if b.open))
        instruments.remove(_remember)

    def __call__(self, function: F) -> F:
        return each_call(function, self._of_a_call)  # type: ignore[return-value]

    def _of_a_call(self) -> label:
        found = label(self.name)
        found._number = next(_numbers)
        return found
