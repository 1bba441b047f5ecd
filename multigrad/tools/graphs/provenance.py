"""Where nodes were made: the source line, the labels in force, what the outputs are like.

For what draws or counts a graph.

Noted by an observer while `record_lines` or `label` is entered; at other times nothing is noted and
nothing costs.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import os
import sys
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, Self, TypeVar

from ... import observe
from ...core import element
from ...core.each_call import each_call
from ...core.graph import TRACEBACK, AccumulateGrad, Node, notes
from ...core.tensor import Tensor
from ...errors import PACKAGE
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
        """The file without its folders, and the line."""
        return f"{Path(shown(self.file)).name}:{self.line}" if self.line else self.file


_here = ""
"""What the names of files are shown without: the folder in which a command was typed, while it
runs.
"""


def shown(file: str) -> str:
    """The name of a file, or of a cell of a notebook, as a message has it."""
    return _cell(file) or file.removeprefix(_here)


def _cell(file: str) -> str:
    """`Cell In[3]`, if IPython runs that cell as a file of this name."""
    ask = getattr(sys.modules.get("IPython"), "get_ipython", None)
    compiler = getattr(ask() if callable(ask) else None, "compile", None)
    name = getattr(compiler, "format_code_name", None)  # since IPython 8
    parts = name(file) if callable(name) else None
    return " ".join(parts) if parts else ""


def shown_from(folder: str) -> str:
    """Show the names of files without this folder from now on. Returns the former one."""
    global _here
    former, _here = _here, folder
    return former


UNKNOWN = Site("<unknown>", 0, "")
OWN = PACKAGE
GENERATED = ("<multigrad", "<pullback", "<frozen")
PASSING = tuple(module.__file__ for module in (contextlib, copy, functools) if module.__file__)
"""What calls on behalf of others."""
_folders: dict[int, tuple[str, ...]] = {}


def skipped() -> tuple[str, ...]:
    """How the file names begin that are nobody's own: those of multigrad, of what it generates, and
    of the array libraries in use.
    """
    known = len(element._libraries)
    found = _folders.get(known)
    if found is None:
        names = {"numpy"}
        for library in list(element._libraries.values()):
            kinds = (*library.backend.array_types, *library.backend.scalar_types)
            names |= {kind.__module__.partition(".")[0] for kind in kinds}
            names.add(getattr(library.backend.namespace, "__name__", "numpy").partition(".")[0])
        files = (
            getattr(sys.modules.get(name), "__file__", None)
            for name in sorted(names - {"builtins", "__main__"})
        )
        found = _folders[known] = (
            OWN,
            *GENERATED,
            *PASSING,
            *(str(Path(f).parent) + os.sep for f in files if f and Path(f).name == "__init__.py"),
        )
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
    """What was noted of a node; `labels` are those in force, outermost first, each with the number
    of its block.
    """

    site: Site | None
    labels: tuple[tuple[str, int], ...]
    outputs: tuple[Output | None, ...]


_numbers = count(1)
NOTE = "note"


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


class _Block:
    """A block, as long as it is open: with a label, or, without a name, one whose lines are
    noted.
    """

    __slots__ = ("name", "number", "open")

    def __init__(self, name: str | None, number: int = 0) -> None:
        self.name, self.number, self.open = name, number, True

    def end(self) -> None:
        self.open = False
        _ended[0] = object()


_ended: list[object] = [object()]
"""Exchanged whenever a block ends: who knows it from elsewhere (as tasks do, and generators end
theirs anywhere) then looks at its own.
"""


class _Notes(Observer):
    """Notes of every new node the blocks that are open.

    There is one in a context: entering or leaving a block puts another in its place.

    lines  whether the line of the program is wanted
    known  what `_ended` held when all blocks were open
    plain  the same where no line is wanted
    """

    __slots__ = ("blocks", "known", "labels", "lines", "plain")
    events = frozenset({NODE})

    def __init__(self, blocks: Sequence[_Block]) -> None:
        self.known = _ended[0]
        self.blocks = tuple(b for b in blocks if b.open)
        self.labels = tuple((b.name, b.number) for b in self.blocks if b.name is not None)
        self.lines = any(b.name is None for b in self.blocks)
        self.plain = None if self.lines else self.known

    def recorded(self, node: Node, operands: tuple[Any, ...], result: Any) -> None:
        if operands and self.plain is _ended[0] and type(result) is Tensor:
            # what `noted` makes a Note of
            notes(node)[NOTE] = self.labels, result._elem, result._array.shape
        elif type(node) is not AccumulateGrad:
            self._note(node, result)

    def recorded_alone(self, node: Node, operands: tuple[Any, ...], result: Any) -> None:
        if operands and self.plain is _ended[0] and type(result) is Tensor:
            node.noted = {NOTE: (self.labels, result._elem, result._array.shape)}
        else:
            self.recorded(node, operands, result)

    def _note(self, node: Node, result: Any) -> None:
        if self.known is not _ended[0]:
            put(self.blocks)
        current = in_force()
        if current is not None:
            where = site(sys._getframe(2), skipped()) if current.lines else None
            outs = (result,) if isinstance(result, Tensor) else tuple(result)
            notes(node)[NOTE] = Note(where, current.labels, tuple(map(output_of, outs)))


def in_force() -> _Notes | None:
    """What notes new nodes here."""
    return next((o for o in observe.watching() if type(o) is _Notes), None)


def put(blocks: Sequence[_Block]) -> None:
    """Have those of these blocks that are open be the ones of this context."""
    others = tuple(o for o in observe.watching() if type(o) is not _Notes)
    ours = _Notes(blocks)
    observe.put((*others, ours) if ours.blocks else others)


def noted(node: Node) -> Note | None:
    """What `label`, `record_lines` or the report noted of a node."""
    known = getattr(node, "noted", {})
    note = known.get(NOTE)
    if type(note) is tuple:
        labels, elem, shape = note
        note = known[NOTE] = Note(None, labels, (Output(tuple(shape), dtype_name(elem.dtype)),))
    return note


def note_of(node: Node) -> Note | None:
    """What was noted of a node; of one that only anomaly mode has seen, its line."""
    note = noted(node)
    trace = getattr(node, "noted", {}).get(TRACEBACK)
    if trace is not None and (note is None or note.site is None) and (lines := trace.lines()):
        where = Site(*lines[-1])
        return Note(where, (), ()) if note is None else note._replace(site=where)
    return note


class _Noting:
    """A context manager whose blocks are noted.

    It may be entered several times, and left in any order and context.
    """

    def __init__(self) -> None:
        self._entered: list[_Block] = []

    def _block(self) -> _Block:
        raise NotImplementedError

    def __enter__(self) -> Self:
        block = self._block()
        self._entered.append(block)
        put((*_open(), block))
        return self

    def __exit__(self, *exc: object) -> None:
        inside = _open()
        # a generator may end it anywhere
        block = next((b for b in reversed(inside) if b in self._entered), None) or self._entered[-1]
        self._entered.remove(block)
        block.end()
        if block in inside or not _open():
            put(_open())


def _open() -> tuple[_Block, ...]:
    """The open blocks of this context, outermost first."""
    current = in_force()
    return () if current is None else tuple(b for b in current.blocks if b.open)


class record_lines(_Noting):
    """Within this context, nodes remember the line of the program that made them, and the shapes
    and dtypes of their outputs.

    `draw`, `print_graph` and `memory_report` tell these. Anomaly mode remembers lines as well. It
    belongs to this thread and asyncio task, to tasks begun inside, and to threads that run in a
    copy of its context. Also a decorator: while the function runs, which may be a coroutine
    function; of a generator, while its steps do.
    """

    def _block(self) -> _Block:
        return _Block(None)

    def __call__(self, function: F) -> F:
        return each_call(function, record_lines)  # type: ignore[return-value]


class label(_Noting):
    """Within this context, on this thread or task, nodes belong to the part of the graph of this
    name: what `draw` folds a large graph by.

    Labels nest. Also a decorator: each call of the function is one block of that name, of a
    coroutine function, too. A generator function that is decorated has its label while its steps
    run, and what runs between them has not; the label of a `with` around a `yield` stays in force
    until the block ends.
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(
                f"label takes the name of a part of the graph, a str, not {type(name).__name__}"
            )
        super().__init__()
        self.name = name
        self._number = 0  # of the call that it is for

    def _block(self) -> _Block:
        return _Block(self.name, self._number or next(_numbers))

    def __call__(self, function: F) -> F:
        return each_call(function, self._of_a_call)  # type: ignore[return-value]

    def _of_a_call(self) -> label:
        found = label(self.name)
        found._number = next(_numbers)
        return found
