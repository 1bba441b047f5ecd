"""A program that runs for days takes no more memory and no more time for its last iterations.

Memory is counted in blocks of Python's allocator, of which any object has at least one, and in bytes
of larger ones. Time is counted in calls of functions, which do not depend on what else the machine
does, and as time of the CPU.
"""

from __future__ import annotations

import builtins
import ctypes
import functools
import gc
import itertools
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import Mock

import pytest
from growth_programs import LEAVES, MANY, PROGRAMS, Program, of_lengths, w

from multigrad import registry, tree
from multigrad.core import aliasing
from multigrad.custom import decorators
from multigrad.custom.definition import ctx_class
from multigrad.dispatch import generated
from multigrad.func.control import replaying
from multigrad.plugins import discovery
from multigrad.protocols import ufuncs

BLOCKS, BYTES = 4, 8192
"""What a third of the iterations may leave, however many they are: of 2,000, 4 bytes each."""
CALLS, SLOWER = 40, 2.0
"""By how many calls, and by which factor of time, the same iteration may cost more at the end."""
FIXED = 7
"""The iteration that is run again, for what it costs."""
COUNT = 12
"""The iterations in a third of a short run, where one object left by each is too many."""
OF_OTHERS = ("JAX", "SciPy's solvers")
"""The programs that wait for other libraries."""


class Growth(NamedTuple):
    """What a third of the iterations leaves, and what the same iteration costs.

    cycles  objects that only the collector frees, for each iteration
    code    whether an iteration compiles code
    """

    blocks: int
    bytes: int
    cycles: float
    code: int
    calls: tuple[int, int]
    seconds: tuple[float, float]


def forget() -> int:
    """Free gradients, garbage, and what Python keeps of the attributes of classes.

    Returns how many objects were garbage.
    """
    for x in (w, *LEAVES):
        x.grad = None
    (getattr(sys, "_clear_internal_caches", None) or sys._clear_type_cache)()
    return gc.collect()


class _Info(ctypes.Structure):
    """What the function mallinfo2 of the C library returns."""

    _fields_ = (("numbers", ctypes.c_size_t * 10),)


@functools.cache
def _told() -> Any:
    """mallinfo2, or None where the C library has none."""
    try:
        function = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError, TypeError):
        return None
    function.restype = _Info
    return function


def bytes_in_use() -> int:
    """The bytes that the C library has given out; blocks of small objects are no part of them."""
    numbers = (_told() or _Info)().numbers
    return int(numbers[7] + numbers[4])  # uordblks and hblkhd: from the heap, and mapped


def calls(run: Callable[[int], Any], number: int = FIXED) -> tuple[int, int]:
    """How many functions `run` calls, those of C among them, and how often it compiles code."""
    run(number)
    count, compiled = 0, 0

    def seen(frame: Any, event: str, argument: Any) -> None:
        nonlocal count, compiled
        count += event.endswith("call")
        compiled += argument is builtins.compile

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        run(number)
    finally:
        sys.setprofile(before)
    return count, compiled


def fastest(run: Callable[[int], Any], number: int = FIXED, goal: float = 0.0) -> float:
    """The seconds that `run` takes: the least of 10, or of up to 100 until it reaches `goal`."""
    times: list[float] = []
    while len(times) < 10 or (min(times) > goal > 0.0 and len(times) < 100):
        start = time.thread_time()
        run(number)
        times.append(time.thread_time() - start)
    return min(times)


@contextmanager
def collecting(on: bool) -> Iterator[None]:
    before = gc.isenabled()
    (gc.enable if on else gc.disable)()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a registry of warnings keeps each text
            yield
    finally:
        (gc.enable if before else gc.disable)()


def growth(program: Program, count: int, collector: bool) -> Growth:
    """The growth in three times `count` iterations: that of the third with the least.

    What grows for ever grows in each of them; tables that get a larger size do not.
    """
    run, numbers = program.run, program.numbers
    with collecting(collector):
        for _ in range(program.warm):
            run(next(numbers))
        (first, _), before = calls(run), fastest(run) if collector else 1.0
        forget()
        left: list[tuple[int, int, float]] = []
        for _ in range(4):  # the first fills what `forget` has emptied
            blocks, size = sys.getallocatedblocks(), bytes_in_use()
            for _ in range(count if left else max(8, count // 8)):
                run(next(numbers))
            cycles = forget() / count
            left.append((sys.getallocatedblocks() - blocks, bytes_in_use() - size, cycles))
        last, code = calls(run)
        after = fastest(run, goal=SLOWER * before) if collector else 1.0
    least = [min(some) for some in zip(*left[1:], strict=True)]
    return Growth(*least, code, (first, last), (before, after))  # type: ignore[arg-type]


def exceeded(program: Program, found: Growth) -> set[str]:
    """The limits that do not hold."""
    holds = {
        "blocks": found.blocks <= BLOCKS,
        "bytes": found.bytes <= BYTES,
        "cycles": found.cycles <= program.cycles,
        "code": program.writes or not found.code,
        "calls": found.calls[1] <= found.calls[0] + CALLS,
        "seconds": found.seconds[1] <= SLOWER * found.seconds[0],
    }
    return {name for name, held in holds.items() if not held}


def check(program: Program, count: int, collector: bool) -> None:
    found = growth(program, count, collector)
    assert not exceeded(program, found), found


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.sweep] * (n in OF_OTHERS)) for n in PROGRAMS],
)
def test_without_the_collector(name: str) -> None:
    check(PROGRAMS[name], COUNT, collector=False)


@pytest.mark.slow
@pytest.mark.parametrize("count", [200, 2000])
@pytest.mark.parametrize("name", PROGRAMS)
def test_with_the_collector(name: str, count: int) -> None:
    check(PROGRAMS[name], count, collector=True)


def linear(run: Callable[[int], Any]) -> bool:
    """Whether twice as many steps call twice as many functions."""
    return calls(run, 120)[0] <= 2.1 * calls(run, 60)[0]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MANY)
def test_a_step_calls_as_many_functions_beside_many(name: str) -> None:
    assert linear(MANY[name])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MANY)
def test_a_step_takes_as_long_beside_many(name: str) -> None:
    few = fastest(MANY[name], 500)
    assert fastest(MANY[name], 2000, 6 * few) < 6 * few


class TestFinds:
    """What is wrong on purpose: each kind of growth, and a limit of multigrad's that does not hold."""

    @pytest.mark.parametrize(
        ("what", "leak"),
        [
            ("blocks", lambda i, kept: kept.append(object())),
            ("bytes", lambda i, kept: kept.append(bytes(1000))),
            ("cycles", lambda i, kept: (cycle := []).append(cycle)),
            ("code", lambda i, kept: exec(compile(f"{i}", "<growth>", "exec"))),
            ("calls", lambda i, kept: [kept.append(None), [abs(0) for _ in kept]]),
            ("seconds", lambda i, kept: [kept.extend([0] * 2000), 1 in kept]),
        ],
    )
    def test_a_leak(self, what: str, leak: Callable[[int, list[Any]], Any]) -> None:
        if what == "bytes" and not bytes_in_use():
            pytest.skip("the C library does not tell how much it has given out")
        kept: list[Any] = []
        program = Program(lambda i: leak(i, kept), 2, 0, False, itertools.count())
        assert what in exceeded(program, growth(program, COUNT, collector=what == "seconds"))

    def test_a_step_that_looks_at_all_others(self) -> None:
        assert not linear(lambda n: [abs(k) for i in range(n) for k in range(i)])

    @pytest.mark.sweep_after(3)
    @pytest.mark.parametrize(
        ("name", "what", "owner", "attribute", "value"),
        [
            ("classes of arrays", "blocks", discovery, "SUBCLASSES", 10**9),
            ("registered classes", "blocks", tree, "_lasts", lambda cls: True),
            ("arguments of a compiled function", "blocks", of_lengths, "_most", 10**9),
            ("writes to one memory", "blocks", aliasing, "MOST", 10**9),
            ("names of custom_vjp", "blocks", decorators, "ctx_class", functools.cache(ctx_class)),
            ("constants of bodies", "blocks", replaying, "KEPT", 10**9),
            ("overrides", "blocks", registry, "_remembered", []),
            ("overrides", "blocks", generated, "weakref", SimpleNamespace(finalize=Mock())),
            ("NumPy's functions", "code", ufuncs, "keep", Mock()),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_a_limit_that_does_not_hold(
        self,
        name: str,
        what: str,
        owner: Any,
        attribute: str,
        value: Any,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        program = PROGRAMS[name]
        monkeypatch.setattr(owner, attribute, value)
        assert what in exceeded(program, growth(program, COUNT, collector=False))
