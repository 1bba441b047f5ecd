"""Grad modes: every way of recording, coroutines, threads, transformations. What PyTorch has of them
is in parity/test_grad_modes.py.
"""

from __future__ import annotations

import asyncio
import threading

import numpy as np

import multigrad as mg
from multigrad import func


def test_every_way_of_recording_obeys(xp):
    x = xp.asarray(np.ones((2, 2)), requires_grad=True)
    w = xp.asarray(np.ones((2, 2)))
    with mg.no_grad():
        for y in (
            xp.sin(x),
            x + x,
            x + 1.0,
            2.0 * x,
            x @ w,
            x.T,
            x[0, ...],
            xp.sum(x),
            xp.concat([x, w]),
            *xp.unstack(x),
            xp.where(x > 0, x, w),
        ):
            assert not y.requires_grad


def test_one_instance_entered_twice():
    guard = mg.no_grad()
    with guard:
        with guard:
            assert not mg.is_grad_enabled()
        assert not mg.is_grad_enabled()
    assert mg.is_grad_enabled()


def test_decorated_generator_is_closed_in_its_mode():
    seen = []

    @mg.no_grad()
    def numbers():
        try:
            yield 1
        finally:
            seen.append(mg.is_grad_enabled())

    g = numbers()
    next(g)
    g.close()
    assert seen == [False]


def test_coroutines_and_tasks_keep_to_themselves():
    seen = []

    @mg.no_grad()
    async def off():
        seen.append(mg.is_grad_enabled())
        await asyncio.sleep(0.001)
        seen.append(mg.is_grad_enabled())

    async def on():
        for _ in range(3):
            assert mg.is_grad_enabled()
            await asyncio.sleep(0.0005)

    async def main():
        await asyncio.gather(off(), on(), off())
        assert mg.is_grad_enabled()

    asyncio.run(main())
    assert seen == [False] * 4


def test_async_generator():
    @mg.no_grad()
    async def numbers():
        assert not mg.is_grad_enabled()
        yield 1
        assert not mg.is_grad_enabled()
        yield 2

    async def main():
        found = []
        async for n in numbers():
            assert mg.is_grad_enabled()
            found.append(n)
        assert found == [1, 2]

    asyncio.run(main())


def test_a_new_thread_starts_enabled():
    seen = []
    with mg.no_grad():
        thread = threading.Thread(target=lambda: seen.append(mg.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_a_transformation_starts_enabled_and_has_its_own_mode():
    def f(x):
        with mg.no_grad():
            c = x * x
        return (x * c).sum()

    with mg.no_grad():
        np.testing.assert_allclose(func.grad(f)(np.array([1.0, 3.0])), [1.0, 9.0])
        assert not mg.is_grad_enabled()
