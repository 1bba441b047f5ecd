"""Threads and tasks: the grad mode of each, and gradients into shared parameters, of which none is
lost.
"""

from __future__ import annotations

import asyncio
import threading

import numpy as np
from function_programs import enabled
from threads_at_once import together

import multigrad as mg


def test_graphs_that_share_parameters(side):
    w = side.tensor([1.0, 2.0], requires_grad=True)
    v = side.tensor([3.0, 4.0], requires_grad=True)

    def work(i):
        for _ in range(5):
            side.xp.sum(w * v * (i + 1)).backward()

    together(work, 4)
    np.testing.assert_array_equal(side.values(w.grad), 50 * np.array([3, 4]))
    np.testing.assert_array_equal(side.values(v.grad), 50 * np.array([1, 2]))


def test_two_roots_over_one_part(side):
    """Each thread its own root; the part below is shared and kept."""
    x = side.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    roots = [side.xp.sum(y * (i + 1)) for i in range(4)]
    together(lambda i: roots[i].backward(retain_graph=True), 4)
    np.testing.assert_array_equal(side.values(x.grad), 10 * 2 * np.array([1, 2]))


def test_without_retain_graph_each_pass_is_whole_or_raises():
    """Two threads race for one graph that is freed: every gradient that arrives is a whole one."""
    for _ in range(20):
        x = mg.asarray(np.asarray([2.0]), requires_grad=True)
        loss = mg.sum(mg.exp(x))

        def work(i, loss=loss):
            try:
                loss.backward()
            except RuntimeError as error:
                assert "a second time" in str(error)
                return 0
            return 1

        runs = sum(together(work, 2))
        assert runs >= 1
        np.testing.assert_allclose(x.grad.array, runs * np.exp([2.0]))


def test_a_thread_starts_enabled_and_keeps_to_itself(side):
    seen = []
    inside, checked = threading.Event(), threading.Event()

    def work():
        seen.append(enabled(side))
        with side.no_grad():
            inside.set()
            assert checked.wait(60)
            seen.append(enabled(side))
        seen.append(enabled(side))

    with side.no_grad():
        thread = threading.Thread(target=work)
        thread.start()
        assert inside.wait(60)
        assert not enabled(side)
    assert enabled(side)  # while the thread is inside no_grad
    checked.set()
    thread.join()
    assert seen == [True, False, True]


def test_the_mode_of_a_pass_does_not_reach_another_thread():
    """A hook sees recording off in its own pass while another thread goes on recording."""
    x = mg.asarray(np.ones(2), requires_grad=True)
    y = x * 2
    inside, checked, seen = threading.Event(), threading.Event(), []

    def hook(g):
        inside.set()
        assert checked.wait(60)
        seen.append(mg.is_grad_enabled())

    y.register_hook(hook)
    thread = threading.Thread(target=mg.sum(y).backward)
    thread.start()
    assert inside.wait(60)
    assert mg.is_grad_enabled() and (x * 3).requires_grad
    checked.set()
    thread.join()
    assert seen == [False]


def test_tasks_keep_to_themselves():
    """Each task has a mode of its own, and saves by its own hooks. (PyTorch's belong to the
    thread.)
    """
    x = mg.asarray(np.ones(2), requires_grad=True)
    packed = []

    async def without():
        with mg.no_grad():
            await asyncio.sleep(0)
            assert not mg.is_grad_enabled()
            await asyncio.sleep(0)
            return (x * 2).requires_grad

    async def packing():
        with mg.autograd.graph.saved_tensors_hooks(
            lambda t: packed.append(1) or t.detach(), lambda t: t
        ):
            await asyncio.sleep(0)
            y = x * x
            await asyncio.sleep(0)
        return y.requires_grad

    async def recording():
        found = []
        for _ in range(4):
            found.append(mg.is_grad_enabled() and (x * x).requires_grad)
            await asyncio.sleep(0)
        return all(found)

    async def main():
        return await asyncio.gather(without(), packing(), recording(), without(), recording())

    assert asyncio.run(main()) == [False, True, True, False, True]
    assert packed == [1, 1]
    assert mg.is_grad_enabled()
