"""The points of a program at which something may come between two of its steps.

Python looks for signals where a function begins, where a function written in C has returned, and
where a loop goes back. So a handler may run there, and an exception such as that of Ctrl-C may come
from there.
"""

from __future__ import annotations

import dis
import gc
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from types import CodeType, FrameType
from typing import Any, NamedTuple

ENTRY, RETURN, JUMP = "call", "c_return", "opcode"


class Point(NamedTuple):
    """The `visit`-th time that a run comes to this place."""

    code: CodeType
    kind: str
    offset: int
    visit: int

    def __str__(self) -> str:
        kind = {ENTRY: "entry", RETURN: "return into", JUMP: "loop"}[self.kind]
        return f"{kind} {self.visit} at {self.code.co_filename}:{self.code.co_qualname}+{self.offset}"


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


def _traced(program: Callable[[], Any], at: Callable[[FrameType, str], None]) -> Any:
    """Run `program`, and `at(frame, kind)` at each point of it."""

    def local(frame: FrameType, event: str, _: Any) -> Any:
        if event == JUMP and frame.f_lasti in loops(frame.f_code):
            at(frame, JUMP)
        return local

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if not loops(frame.f_code):
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        return local

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if (event == ENTRY or event == RETURN) and frame.f_code is not here:
            at(frame, event)

    here = sys._getframe().f_code
    before = sys.gettrace(), sys.getprofile()
    collecting = gc.isenabled()
    gc.disable()
    try:
        sys.settrace(trace)
        sys.setprofile(profile)
        return program()
    finally:
        sys.setprofile(before[1])
        sys.settrace(before[0])
        if collecting:
            gc.enable()


def points(program: Callable[[], Any], few: int) -> tuple[int, list[Point]]:
    """How many points a run has, and those to try.

    All of them, if there are no more than `few`; else of each entry of a function the first, the
    second and the last, and of each other place the first.
    """
    met: dict[tuple[CodeType, str, int], int] = defaultdict(int)
    every: list[Point] = []

    def at(frame: FrameType, kind: str) -> None:
        key = frame.f_code, kind, frame.f_lasti
        met[key] += 1
        every.append(Point(*key, met[key]))

    _traced(program, at)
    if len(every) <= few:
        return len(every), every
    return len(every), [
        p
        for p in every
        if p.visit == 1 or (p.kind == ENTRY and p.visit in (2, met[p.code, p.kind, p.offset]))
    ]


def at_point(program: Callable[[], Any], point: Point, act: Callable[[FrameType], None]) -> Any:
    """Run `program`, and `act` at this point of it."""
    code, kind, offset, left = point

    def at(frame: FrameType, event: str) -> None:
        nonlocal left
        if event == kind and frame.f_lasti == offset and frame.f_code == code:
            left -= 1
            if not left:
                act(frame)

    return _traced(program, at)
