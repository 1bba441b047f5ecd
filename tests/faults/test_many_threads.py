"""Twelve threads on the same leaves, graphs, arrays and compiled functions: the results are those
of one thread.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from fault_programs import PROGRAMS, ROWS, Scaled, X, check_state, leaf, loss, plain, state, tripled
from threads_at_once import together

import multigrad as mg
from multigrad import func, registry

pytestmark = pytest.mark.filterwarnings("ignore")

THREADS, ROUNDS = 12, 25


@pytest.fixture(autouse=True)
def taking_turns() -> Iterator[None]:
    """Threads take turns as often as they can, and leave the state as it was."""
    for program in PROGRAMS.values():
        program()
    before, interval = state(), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)
    check_state(before)


def test_every_program_at_once() -> None:
    names = list(PROGRAMS)
    results = {name: plain(program()) for name, program in PROGRAMS.items()}

    def work(i: int) -> list[str]:
        mine = (names[i:] + names[:i]) * 2
        return [name for name in mine if plain(PROGRAMS[name]()) != results[name]]

    assert together(work, THREADS) == [[]] * THREADS


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_program_on_every_thread(name: str) -> None:
    result = plain(PROGRAMS[name]())
    outs = together(lambda i: [plain(PROGRAMS[name]()) for _ in range(3)], THREADS)
    assert all(out == result for each in outs for out in each)


class Cycle:
    __del__ = lambda self: sum(range(50))

    def __init__(self) -> None:
        self.me = self


def test_signatures_are_read_on_every_thread() -> None:
    """CPython 3.11 raises SystemError where the collector calls code while a tree is made."""
    text = "f(x, y, /, *, axis=None, keepdims=False, k=(1, 2, (3, 4)))"
    thresholds = gc.get_threshold()
    gc.set_threshold(5)
    together(lambda i: [Cycle() and registry.parse(text) for _ in range(400)], THREADS)
    gc.set_threshold(*thresholds)


def test_a_shared_leaf() -> None:
    """No gradient is lost, and a hook runs once in each pass."""
    w, b = leaf(np.zeros(3)), leaf(np.zeros(()))
    seen: list[int] = []
    after: list[int] = []
    w.register_hook(lambda g: seen.append(1))
    w.register_post_accumulate_grad_hook(lambda t: after.append(1))

    def work(i: int) -> None:
        for k in range(ROUNDS):
            (mg.sum(w * 2.0 + w) + b).backward(create_graph=k % 5 == 0)

    together(work, THREADS)
    assert plain(w.grad) == [3.0 * THREADS * ROUNDS] * 3
    assert plain(b.grad) == 1.0 * THREADS * ROUNDS
    assert len(seen) == len(after) == THREADS * ROUNDS


def test_a_shared_graph() -> None:
    w = leaf()
    y = mg.sin(w) * w
    y.retain_grad()
    total = mg.sum(y * 2.0)
    expected = plain(mg.autograd.grad(total, w, retain_graph=True)[0])

    def work(i: int) -> list[Any]:
        total.backward(retain_graph=True)
        return [
            plain(mg.autograd.grad(total, w, retain_graph=True, create_graph=k % 2 == 0)[0])
            for k in range(ROUNDS)
        ]

    assert together(work, THREADS) == [[expected] * ROUNDS] * THREADS
    passes = 1 + THREADS * (1 + ROUNDS)  # also those of `grad` reach y
    assert plain(y.grad) == [2.0 * passes] * 3
    assert np.allclose(w.grad.numpy(), THREADS * np.asarray(expected))


def test_hooks_of_a_shared_node_that_come_and_go() -> None:
    w = leaf()
    y = w * 2.0
    total = mg.sum(y)
    calls: list[int] = []

    def work(i: int) -> None:
        y.grad_fn.register_hook(lambda *_: calls.append(i))
        for _ in range(ROUNDS):
            w.register_hook(lambda g: None).remove()
            y.register_hook(lambda g: None).remove()

    together(work, THREADS)
    total.backward()
    assert sorted(calls) == list(range(THREADS))


def test_a_shared_compiled_function() -> None:
    """Its first calls, of several shapes and of both branches, come at once."""

    def branching(t: Any) -> Any:
        return loss(t) if mg.sum(t) > 0 else mg.sum(t) * 3.0

    f = func.compile(func.grad(branching))
    given = [sign * np.arange(1.0, n + 1.0) for n in range(1, 7) for sign in (1.0, -1.0)]
    expected = [plain(func.grad(branching)(x)) for x in given]

    def work(i: int) -> list[Any]:
        order = [(i + k) % len(given) for k in range(len(given))] * 2
        return [k for k in order if plain(f(given[k])) != expected[k]]

    assert together(work, THREADS) == [[]] * THREADS
    # a call records while it waits for none, so that two may record the same
    assert len(given) <= len(f.programs) <= THREADS * len(given)


def test_shared_derivatives_of_the_user() -> None:
    w = leaf()
    y = mg.sum(Scaled.apply(tripled(w)))
    again = mg.sum(func.checkpoint(lambda t: Scaled.apply(t) * w)(w))
    looped = mg.sum(func.scan(lambda c, v: (c + v, c * v), w, ROWS)[1])
    outputs = [y, again, looped]
    expected = [plain(mg.autograd.grad(out, w, retain_graph=True)[0]) for out in outputs]

    def work(i: int) -> list[Any]:
        return [
            k % 3
            for k in range(i, i + ROUNDS)
            if plain(mg.autograd.grad(outputs[k % 3], w, retain_graph=True)[0]) != expected[k % 3]
        ]

    assert together(work, THREADS) == [[]] * THREADS


def test_a_shared_array_whose_rows_are_written() -> None:
    w = leaf()
    y = mg.zeros((THREADS, 3)) + w

    def work(i: int) -> None:
        row = y[i]
        for _ in range(ROUNDS):
            row += 1.0
        row *= float(i)

    together(work, THREADS)
    assert plain(y) == [plain((X + ROUNDS) * i) for i in range(THREADS)]
    mg.sum(y).backward()
    assert plain(w.grad) == [float(sum(range(THREADS)))] * 3
    assert y._version == THREADS * (ROUNDS + 1)


def test_operations_that_are_declared_while_others_use_them() -> None:
    def work(i: int) -> list[Any]:
        if i % 3 == 0:
            return [plain(PROGRAMS["registration"]()) for _ in range(4)][:0]
        wrong = []
        for _ in range(ROUNDS):
            w = leaf()
            mg.sum(mg.faults.cube(w)).backward()
            if plain(w.grad) != plain(3.0 * X * X):
                wrong.append(plain(w.grad))
        return wrong

    assert together(work, THREADS) == [[]] * THREADS
