"""An exception, as Ctrl-C raises one, at each point at which Python looks for signals."""

from __future__ import annotations

import contextvars
import gc
import sys
from types import FrameType
from typing import Any

import fault_programs
import pytest
from fault_points import ENTRY, Point, at_point, points
from fault_programs import PROGRAMS, check_state, plain, state, warmed_up

pytestmark = pytest.mark.filterwarnings(
    "ignore",  # also those of anomaly mode, and of an exception in a weak reference's callback
)

FEW = 300


class Interrupt(KeyboardInterrupt):
    pass


def is_at_the_end_of_a_block(frame: FrameType | None, kind: str) -> bool:
    """Whether a context manager that the program entered has not begun to restore anything.

    An exception that comes after the block and before that leaves its state in force: at the entry
    of `__exit__`, in its own steps, or at the entry of a function that it calls.
    """
    for _ in range(2 if kind == ENTRY else 1):
        caller = frame and frame.f_back
        if (
            frame is not None
            and caller is not None
            and frame.f_code.co_name in ("__init__", "__enter__", "__exit__")
            and caller.f_code.co_filename == fault_programs.__file__
        ):
            return True
        frame = caller
    return False


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_exception_at_every_point(name: str) -> None:
    program = PROGRAMS[name]
    with warmed_up(program):
        result, before = plain(program()), state()
        total, chosen = points(program, FEW)
        reached = 0
        for point in chosen:
            reached += contextvars.copy_context().run(interrupted, program, point, before, result)
            assert plain(program()) == result, f"after {point}"
    print(f"{name}: {reached} of {total} points")
    assert reached > 0.99 * len(chosen)  # but for finalizers, all are in every run


def interrupted(program: Any, point: Point, before: dict[str, Any], result: Any) -> bool:
    reached = at_end = False

    def interrupt(frame: FrameType) -> None:
        nonlocal reached, at_end
        reached, at_end = True, is_at_the_end_of_a_block(frame, point.kind)
        raise Interrupt

    try:
        out = plain(at_point(program, point, interrupt))
    except Interrupt:
        pass
    else:  # it came in a finalizer
        assert out == result, f"swallowed: {point}"
    if not at_end:
        gc.collect()
        check_state(before, point)
    return reached
