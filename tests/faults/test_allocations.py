"""An allocation that fails, at each point of a program."""

from __future__ import annotations

import contextvars
import gc
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from fault_programs import PROGRAMS, check_state, plain, state, warmed_up
from forks import Crash, in_child, needs_fork

testcapi = pytest.importorskip("_testcapi", reason="this Python has no _testcapi, which fails them")

pytestmark = [needs_fork, pytest.mark.filterwarnings("ignore")]

EACH, MORE = 600, 300
"""So many allocations from the first on fail one by one, and so many spread over the others."""


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
        return error.with_traceback(None)
    testcapi.remove_mem_hooks()
    return result


def tried(program: Callable[[], Any], n: int, before: dict[str, Any], result: Any) -> str:
    """How a run ended where the n-th allocation failed."""
    out = failing(program, n)
    end = type(out).__name__ if isinstance(out, BaseException) else "result"
    if end == "result":
        assert plain(out) == result
    # SystemError: a library returns NULL and raises nothing
    elif end not in ("MemoryError", "SystemError"):
        assert str(out) == "can't allocate lock", repr(out)
    del out
    gc.collect()
    # Python 3.11 loses a reference in list(x), so that a node with hooks stays alive
    check_state(before | {"watched": state()["watched"]}, f"a failure of allocation {n}")
    return end


def tries(say: Any, program: Callable[[], Any], first: int) -> tuple[int, Counter[str]]:
    """The number of allocations, and how runs ended whose allocation from `first` on failed."""
    ends: Counter[str] = Counter()
    with warmed_up(program):
        result, before = plain(program()), state()
        n = step = fine = 0
        while fine < 30:
            if n >= first:
                say(n)
                end = contextvars.copy_context().run(tried, program, n, before, result)
                assert plain(program()) == result, f"after a failure of allocation {n}"
                ends[end] += 1
                fine = fine + 1 if end == "result" else 0
            n += 1
    return n - fine, ends


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
            assert ends["crash"] < 20
        else:
            break
    ends += more
    print(f"{name}: {total} allocations, {dict(ends)}")
