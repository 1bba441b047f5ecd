"""An allocation that fails, at each point of a program."""

from __future__ import annotations

import contextvars
import gc
import traceback
from collections import Counter
from collections.abc import Callable
from typing import Any

import fault_programs
import pytest
from fault_programs import PROGRAMS, check_state, plain, state, warmed_up
from forks import Crash, in_child, needs_fork

testcapi = pytest.importorskip("_testcapi", reason="this Python has no _testcapi, which fails them")

pytestmark = [needs_fork, pytest.mark.filterwarnings("ignore")]

EACH = 500
"""So many allocations from the first on fail one by one; of the others fewer and fewer do."""

CONFUSED = (AssertionError, AttributeError, LookupError, NameError)
"""What a clean-up raises that does not find what it expects."""


def failing(program: Callable[[], Any], n: int) -> Any:
    """What a run returns where the n-th allocation fails, or the exception."""
    # Python leaves a `with` block by a call with a tuple of three. Without memory for that a lock
    # stays held, so there are some to take from.
    [(n, n, i) for i in range(200)]
    testcapi.set_nomemory(n, n + 1)
    try:
        result = program()
    except BaseException as error:
        testcapi.remove_mem_hooks()
        return error
    testcapi.remove_mem_hooks()
    return result


def is_at_the_end_of_a_block(error: BaseException) -> bool:
    """Whether Python could not call the `__exit__` of a block of the program, or the first function
    in it: the state of the block stays.
    """
    frames = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    if frames[-1].co_name == "__exit__":
        frames.pop()
    return frames[-1].co_filename == fault_programs.__file__


def tried(program: Callable[[], Any], n: int, before: dict[str, Any], result: Any) -> str:
    """How a run ended where the n-th allocation failed."""
    out = failing(program, n)
    end, at_end = "result", False
    if isinstance(out, BaseException):
        end, at_end = type(out).__name__, is_at_the_end_of_a_block(out)
        assert not isinstance(out, CONFUSED), repr(out)
    else:
        assert plain(out) == result
    del out
    gc.collect()
    if not at_end:
        # Python 3.11 loses a reference in list(x), so that a node with hooks stays alive
        before = before | {"watched": state()["watched"]}
        check_state(before, f"a failure of allocation {n}")
    return end


def tries(say: Any, program: Callable[[], Any], first: int) -> tuple[int, Counter[str]]:
    """About the number of allocations, and how runs ended whose allocation from `first` on failed."""
    ends: Counter[str] = Counter()
    with warmed_up(program):
        result, before = plain(program()), state()
        n = fine = 0
        while fine < 30:
            if n >= first:
                say(n)
                end = contextvars.copy_context().run(tried, program, n, before, result)
                assert plain(program()) == result, f"after a failure of allocation {n}"
                ends[end] += 1
                fine = fine + 1 if end == "result" else 0
            n += 1 + max(0, n - EACH) // 100
    return n, ends


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_allocation_that_fails(name: str) -> None:
    ends: Counter[str] = Counter()
    first = 0
    while True:
        try:
            total, more = in_child(tries, PROGRAMS[name], first)
        except Crash as crash:  # Python itself, or NumPy: multigrad has no code in C
            ends["crash"] += 1
            first = crash.said + 1
            print(crash)
            assert ends["crash"] < 40
        else:
            break
    ends += more
    print(f"{name}: about {total} allocations, {dict(ends)}")
