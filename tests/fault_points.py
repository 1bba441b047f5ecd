"""The points of a program at which something may come between two of its steps.

Python looks for signals where a function begins, where a function written in C has returned, and
where a loop goes back. So a handler may run there, and an exception such as that of Ctrl-C may come
from there.
"""

from __future__ import annotations

import contextlib
import dis
import gc
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import CodeType, FrameType
from typing import Any, NamedTuple

ENTRY, RETURN, JUMP = "call", "c_return", "opcode"


class Point(NamedTuple):
    """The `visit`-th time that a run comes to this place."""

    code: tuple[str, str, int]
    kind: str
    offset: int
    visit: int

    def __str__(self) -> str:
        kind = {ENTRY: "entry", RETURN: "return into", JUMP: "loop"}[self.kind]
        file, name, line = self.code
        return f"{kind} {self.visit} of {name}, {file}:{line}, byte {self.offset}"


@cache
def place(code: CodeType) -> tuple[str, str, int]:
    """What generated code has in common with the code that is generated in another run."""
    file = code.co_filename
    return (
        re.sub(r"\d+", "", file) if file.startswith("<") else file,
        code.co_qualname,
        code.co_firstlineno,
    )


@cache
def loops(code: CodeType) -> frozenset[int]:
    """The offsets of the jumps back in this code."""
    found, first = [], None
    for step in dis.get_instructions(code):
        if "JUMP_BACKWARD" in step.opname and "NO_INTERRUPT" not in step.opname:
            found.append(step.offset if first is None else first)
        if step.opname != "EXTENDED_ARG":
            first = None
        elif first is None:
            first = step.offset
    return frozenset(found)


@contextmanager
def traced(profile: Any = None, trace: Any = None) -> Iterator[None]:
    """Let Python call these functions, and leave the collector out."""
    before, collecting = (sys.gettrace(), sys.getprofile()), gc.isenabled()
    gc.disable()
    try:
        sys.settrace(trace)
        sys.setprofile(profile)
        yield
    finally:
        sys.setprofile(before[1])
        sys.settrace(before[0])
        if collecting:
            gc.enable()


def of_loops(
    at: Callable[[FrameType], None], of: tuple[str, str, int] | None = None
) -> Callable[..., Any]:
    """A trace function that calls `at` at each jump back, of all code or of one."""

    def local(frame: FrameType, event: str, _: Any) -> Any:
        if event == JUMP and frame.f_lasti in loops(frame.f_code):
            at(frame)
        return local

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if not loops(frame.f_code) or (of is not None and place(frame.f_code) != of):
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        return local

    return trace


def every_point(program: Callable[[], Any]) -> list[Point]:
    met: dict[Any, int] = defaultdict(int)
    every: list[Point] = []

    def at(frame: FrameType, kind: str = JUMP) -> None:
        key = place(frame.f_code), kind, frame.f_lasti
        met[key] += 1
        every.append(Point(*key, met[key]))

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event in (ENTRY, RETURN) and frame.f_code.co_filename not in HARNESS:
            at(frame, event)

    with traced(profile, of_loops(at)):
        program()
    return every


HARNESS = (__file__, contextlib.__file__)


def points(program: Callable[[], Any], few: int, runs: int = 2) -> tuple[int, list[Point]]:
    """How many points a run has, and those to try.

    All of them, if there are no more than `few`. Else of each entry of a function the first, the
    second and the last, and of each other place the first.
    """
    every = every_point(program)
    for _ in range(runs - 1):  # without finalizers of former runs
        again = set(every)
        every = [p for p in every_point(program) if p in again]
    if len(every) <= few:
        return len(every), every
    last = {p[:3]: p.visit for p in every}
    return len(every), [
        p for p in every if p.visit == 1 or (p.kind == ENTRY and p.visit in (2, last[p[:3]]))
    ]


def at_point(program: Callable[[], Any], point: Point, act: Callable[[FrameType], None]) -> Any:
    """Run `program`, and `act` at this point of it."""
    code, kind, offset, left = point

    def profile(frame: FrameType, event: str, _: Any) -> None:
        nonlocal left
        if event == kind and frame.f_lasti == offset and place(frame.f_code) == code:
            left -= 1
            if not left:
                sys.setprofile(None)
                act(frame)

    def jump(frame: FrameType) -> None:
        profile(frame, JUMP, None)

    with traced(None, of_loops(jump, code)) if kind == JUMP else traced(profile):
        return program()
