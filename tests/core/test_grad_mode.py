"""Grad modes: contexts, decorators, generators, coroutines, threads.

SEMANTICS: torch.autograd.grad_mode.
"""

from __future__ import annotations

import asyncio
import inspect
import threading

import numpy as np
import pytest

import multigrad as mg
from multigrad import func


@pytest.fixture
def x():
    return mg.asarray(np.ones(2), requires_grad=True)


def test_no_grad(x):
    with mg.no_grad():
        y = x * 2
        z = mg.zeros(3, requires_grad=True)
    assert not y.requires_grad and y.is_leaf and y.grad_fn is None
    assert z.requires_grad
    assert (x * 2).requires_grad


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


def test_enable_grad(x):
    with mg.no_grad():
        with mg.enable_grad():
            y = (x * 2).sum()
        assert not (x * 2).requires_grad
    assert y.requires_grad
    y.backward()
    with mg.enable_grad():
        assert mg.is_grad_enabled()


def test_set_grad_enabled_as_a_function_and_as_a_context(x):
    mg.set_grad_enabled(False)
    assert not (x * 2).requires_grad
    mg.set_grad_enabled(True)
    assert (x * 2).requires_grad
    with mg.set_grad_enabled(False):
        mg.set_grad_enabled(True)
        assert mg.is_grad_enabled()
    assert mg.is_grad_enabled()
    with mg.no_grad():
        mg.set_grad_enabled(True)
    assert mg.is_grad_enabled()
    with pytest.raises(
        TypeError,
        match=r"set_grad_enabled\(\): argument 'enabled' \(position 1\) must be bool, not int",
    ):
        mg.set_grad_enabled(1)


def test_restored_after_an_exception():
    with pytest.raises(ZeroDivisionError), mg.no_grad():
        1 / 0
    assert mg.is_grad_enabled()


def test_one_instance_entered_twice():
    guard = mg.no_grad()
    with guard:
        with guard:
            assert not mg.is_grad_enabled()
        assert not mg.is_grad_enabled()
    assert mg.is_grad_enabled()


def test_decorators(x):
    @mg.no_grad()
    def doubled(t):
        """Twice."""
        return t * 2

    @mg.no_grad
    def tripled(t):
        return t * 3

    @mg.enable_grad()
    def recorded(t):
        return t * 2

    class Model:
        @mg.no_grad()
        def __call__(self, t):
            return t * 2

    assert doubled.__doc__ == "Twice."
    for f in (doubled, tripled, Model()):
        assert not f(x).requires_grad
    with mg.no_grad():
        assert recorded(x).requires_grad
        assert not mg.is_grad_enabled()
    assert mg.is_grad_enabled()


def test_decorating_with_set_grad_enabled_leaves_the_caller_alone():
    @mg.set_grad_enabled(False)
    def f():
        return mg.is_grad_enabled()

    assert mg.is_grad_enabled()
    assert f() is False and f() is False
    assert mg.is_grad_enabled()


def test_decorated_recursion():
    @mg.no_grad()
    def f(n):
        assert not mg.is_grad_enabled()
        return f(n - 1) if n else 0

    f(5)
    assert mg.is_grad_enabled()


def test_decorated_class_warns(x):
    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):

        @mg.no_grad()
        class Model:
            def __init__(self, t):
                self.y = t * 2

    assert not Model(x).y.requires_grad
    assert isinstance(Model, type)


def test_decorated_generator():
    seen = []

    @mg.no_grad()
    def numbers():
        seen.append(mg.is_grad_enabled())
        got = yield 1
        seen.append((got, mg.is_grad_enabled()))
        try:
            yield 2
        except KeyError:
            seen.append(mg.is_grad_enabled())
            yield 3
        return 4

    assert inspect.isgeneratorfunction(numbers)
    g = numbers()
    assert next(g) == 1 and mg.is_grad_enabled()
    assert g.send("a") == 2 and mg.is_grad_enabled()
    assert g.throw(KeyError()) == 3
    with pytest.raises(StopIteration) as stop:
        next(g)
    assert stop.value.value == 4
    assert seen == [False, ("a", False), False]


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


def test_inference_mode(x):
    with mg.inference_mode():
        assert not (x * 2).requires_grad
    with mg.inference_mode(False):
        assert (x * 2).requires_grad
    with mg.no_grad(), mg.inference_mode(False):
        assert mg.is_grad_enabled()  # as in PyTorch

    @mg.inference_mode()
    def f(t):
        return t * 2

    assert not f(x).requires_grad


def test_a_transformation_starts_enabled_and_has_its_own_mode():
    def f(x):
        with mg.no_grad():
            c = x * x
        return (x * c).sum()

    with mg.no_grad():
        np.testing.assert_allclose(func.grad(f)(np.array([1.0, 3.0])), [1.0, 9.0])
        assert not mg.is_grad_enabled()
