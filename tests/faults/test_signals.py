"""A signal handler that runs a backward pass and the interrupted program itself, at each point at
which Python looks for signals; and a finalizer that does.
"""

from __future__ import annotations

import contextvars
import gc
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from fault_points import Point, at_point, every_point, points
from fault_programs import PROGRAMS, check_state, leaf, plain, state, warmed_up

import multigrad as mg
from multigrad import func
from multigrad.func.control import replaying

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(
        not hasattr(signal, "SIGUSR1") or threading.current_thread() is not threading.main_thread(),
        reason="this system has no signal for users, or this is not the thread that gets signals",
    ),
]


OWN = str(Path(mg.__file__).parent)


@pytest.fixture
def handled() -> Iterator[list[Callable[[], Any]]]:
    """The signal handler calls what is in this list."""
    calls: list[Callable[[], Any]] = []

    def handler(number: int, frame: FrameType | None) -> None:
        calls[0]()

    before = signal.signal(signal.SIGUSR1, handler)
    yield calls
    signal.signal(signal.SIGUSR1, before)


def raised(frame: FrameType) -> None:
    signal.raise_signal(signal.SIGUSR1)


def is_own(point: Point) -> bool:
    return point.code[0].startswith((OWN, "<"))


SEES_THE_PASS = "detect_breaks"
"""Inside of a pass it notes nothing, as in hooks, and a handler is no exception."""


def anew(function: Callable[[], Any]) -> Callable[[], Any]:
    """A handler runs with the grad mode and in the transformation of what it interrupts, but for
    this.
    """
    return lambda: contextvars.Context().run(function)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_handler_that_runs_the_program_inside_of_itself(name: str, handled: Any) -> None:
    program = PROGRAMS[name]
    met = leaf()
    failed: list[Any] = []
    runs = 0

    @anew
    def other() -> None:
        nonlocal runs
        runs += 1
        mg.sum(met * 1.0).backward()
        out = plain(program())
        if out != result and name not in SEES_THE_PASS:
            failed.append(out)

    handled.append(other)
    with warmed_up(program):
        result, before = plain(program()), state()
        total, chosen = points(program, 0)
        chosen = [p for p in chosen if is_own(p)]
        for point in chosen:
            out = plain(at_point(program, point, raised))
            assert failed == [], f"interrupted at {point}"
            assert out == result, f"interrupted at {point}"
            check_state(before, point)
    print(f"{name}: {runs} of {total} points")
    assert runs > 0.99 * len(chosen)
    assert plain(met.grad) == [float(runs)] * 3


# What the program and the handler change together

Scene = tuple[Callable[[], Any], Callable[[], Any], Callable[[bool], None]]
"""A program, a handler, and a check whose argument says whether the handler has run."""


def backward(x: Any) -> None:
    mg.sum(x * 1.0).backward()


def first_gradient() -> Scene:
    w = leaf()

    def check(ran: bool) -> None:
        assert plain(w.grad) == [1.0 + ran] * 3

    return lambda: backward(w), anew(lambda: backward(w)), check


def later_gradient() -> Scene:
    w = leaf()
    backward(w)

    def check(ran: bool) -> None:
        assert plain(w.grad) == [2.0 + ran] * 3

    return lambda: backward(w), anew(lambda: backward(w)), check


def recorded_gradient() -> Scene:
    w = leaf(np.ones(3))
    backward(w)

    def check(ran: bool) -> None:
        assert plain(w.grad) == [3.0 + ran] * 3

    return lambda: mg.sum(w * w).backward(create_graph=True), anew(lambda: backward(w)), check


def retained_gradient() -> Scene:
    w = leaf()
    y = w * 2.0
    y.retain_grad()

    def program() -> None:
        mg.sum(y).backward(retain_graph=True)

    def check(ran: bool) -> None:
        assert plain(y.grad) == [1.0 + ran] * 3

    return program, anew(program), check


def hooks_of_a_node() -> Scene:
    calls: list[str] = []
    y = leaf() * 2.0

    def check(ran: bool) -> None:
        mg.sum(y).backward()
        assert sorted(calls) == ["other"] * ran + ["program"]

    return (
        lambda: y.grad_fn.register_hook(lambda *_: calls.append("program")),
        lambda: y.grad_fn.register_hook(lambda *_: calls.append("other")),
        check,
    )


def hooks_of_a_leaf() -> Scene:
    calls: list[str] = []
    w = leaf()

    def check(ran: bool) -> None:
        backward(w)
        assert sorted(calls) == ["other"] * ran + ["program"]

    return (
        lambda: w.register_hook(lambda g: calls.append("program")),
        lambda: w.register_hook(lambda g: calls.append("other")),
        check,
    )


def second_forward() -> Scene:
    w = leaf()
    y = mg.sum(func.checkpoint(mg.sin)(w))

    def program() -> None:
        func.grad(lambda t: mg.sum(func.checkpoint(mg.sin)(t)))(np.ones(3))

    def check(ran: bool) -> None:
        y.backward()
        assert np.allclose(w.grad.numpy(), np.cos(w.detach().numpy()))

    return program, anew(program), check


def program_of_a_loop() -> Scene:
    replaying._made.clear()

    def program() -> None:
        _, ys = func.scan(lambda c, x: (c + x, c * x), np.zeros(2), np.ones((3, 2)))
        assert plain(ys) == [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]

    return program, anew(program), lambda ran: None


def compiled_function() -> Scene:
    f = func.compile(lambda x: mg.sum(x * x))

    def program() -> None:
        assert f(np.ones(3)) == 3.0

    def check(ran: bool) -> None:
        assert 1 <= len(f.programs) <= 1 + ran
        program()

    return program, anew(program), check


def write_to_what_was_saved() -> Scene:
    w, a = leaf(), mg.asarray(np.ones(3))
    keeping = mg.autograd.graph.allow_mutation_on_saved_tensors()
    keeping.__enter__()
    y = w * a

    def program() -> None:
        a[...] = 5.0

    def other() -> None:
        a[...] = 7.0

    def check(ran: bool) -> None:
        keeping.__exit__(None, None, None)
        mg.sum(y).backward()
        assert plain(w.grad) == [1.0] * 3

    return program, other, check


SCENES = [
    first_gradient,
    later_gradient,
    recorded_gradient,
    retained_gradient,
    hooks_of_a_node,
    hooks_of_a_leaf,
    second_forward,
    program_of_a_loop,
    compiled_function,
    write_to_what_was_saved,
]


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_a_handler_that_changes_what_the_program_changes(scene: Any, handled: Any) -> None:
    for _ in range(10):
        program, _, check = scene()
        program()
        check(False)
    program, _, check = scene()
    tried = [p for p in every_point(program) if is_own(p)]
    check(False)
    runs = 0
    for point in tried:
        program, other, check = scene()
        ran = False

        def noted(other: Callable[[], Any] = other) -> None:
            nonlocal ran
            ran = True
            other()

        handled[:] = [noted]
        at_point(program, point, raised)
        try:
            check(ran)
        except AssertionError as error:
            raise AssertionError(f"interrupted at {point}") from error
        runs += ran
    assert runs > 0.9 * len(tried) > 3


def test_a_finalizer_that_runs_a_pass() -> None:
    w = leaf()
    calls = 0

    class Last:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            nonlocal calls
            gc.disable()
            backward(w)
            calls += 1
            gc.enable()

    before = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(300):
            Last()
            w.register_hook(lambda g: None).remove()
            backward(w)
    finally:
        gc.set_threshold(*before)
    gc.collect()
    assert calls > 100
    assert plain(w.grad) == [300.0 + calls] * 3
