"""Blocks that generators and coroutines open, in graphs: `graph.label` and `graph.record_lines`."""

from __future__ import annotations

import asyncio
import inspect
import threading

import numpy as np
import pytest

import multigrad as mg
from multigrad import observe
from multigrad.autograd import graph
from multigrad.tools.graphs import provenance


def leaf():
    return mg.asarray(np.ones(3), requires_grad=True)


def labels(t):
    note = provenance.note_of(t.grad_fn)
    return [] if note is None else [name for name, _ in note.labels]


def numbers(*results):
    return {provenance.note_of(t.grad_fn).labels for t in results}


@pytest.fixture(autouse=True)
def nothing_left():
    yield
    assert observe.gate.get() is True


def test_generators_that_take_turns():
    def generator(name):
        with graph.label(name):
            yield
            yield

    x, a, b = leaf(), generator("A"), generator("B")
    next(a)
    next(b)
    (y := mg.exp(x))[:1] = x[1:2]
    assert labels(mg.exp(x)) == labels(y) == ["A", "B"]
    a.close()
    assert labels(mg.exp(x)) == ["B"]
    b.close()
    with graph.record_lines():
        assert labels(mg.exp(x)) == []


def test_a_generator_that_is_closed_on_another_thread():
    def generator():
        with graph.label("A"):
            yield

    x, g = leaf(), generator()
    next(g)
    thread = threading.Thread(target=g.close)
    thread.start()
    thread.join()
    with graph.label("B"):
        assert labels(mg.exp(x)) == ["B"]


def test_one_label_for_several_tasks():
    part, x, found = graph.label("part"), leaf(), {}

    async def task(n):
        with part:
            await asyncio.sleep(0.001 * n)
            found[n] = mg.exp(x)
        with graph.label("after"):
            await asyncio.sleep(0.002)
            found[-n] = mg.exp(x)

    async def main():
        await asyncio.gather(task(1), task(2))

    asyncio.run(main())
    assert [labels(found[n]) for n in (1, 2, -1, -2)] == [["part"], ["part"], ["after"], ["after"]]
    assert len(numbers(found[1], found[2])) == 2


def test_a_coroutine_function():
    x = leaf()

    @graph.label("co")
    async def function(n):
        await asyncio.sleep(0)
        return mg.exp(x), mg.sin(x), n

    async def main():
        return await asyncio.gather(function(1), function(2))

    assert inspect.iscoroutinefunction(function)
    (a, b, one), (c, d, two) = asyncio.run(main())
    assert [labels(t) for t in (a, b, c, d)] == [["co"]] * 4 and (one, two) == (1, 2)
    # each call is one block
    assert len(numbers(a, b)) == len(numbers(c, d)) == 1 and len(numbers(a, c)) == 2


def test_a_generator_function():
    x = leaf()

    @graph.label("steps")
    def function():
        got = yield mg.exp(x)
        try:
            yield mg.sin(got)
        except KeyError:
            yield mg.cos(x)
        return "end"

    g = function()
    first = next(g)
    with graph.label("between"):
        between = mg.tan(x)
    second = g.send(x)
    third = g.throw(KeyError)
    with pytest.raises(StopIteration) as end:
        next(g)
    assert end.value.value == "end" and inspect.isgeneratorfunction(function)
    assert [labels(t) for t in (first, between, second, third)] == [
        ["steps"],
        ["between"],
        ["steps"],
        ["steps"],
    ]
    assert len(numbers(first, second, third)) == 1 and len(numbers(first, next(function()))) == 2


def test_what_runs_when_a_generator_is_closed():
    x, found = leaf(), []

    @graph.label("steps")
    def function():
        try:
            yield
        finally:
            found.append(mg.exp(x))

    g = function()
    next(g)
    g.close()
    assert labels(found[0]) == ["steps"]


def test_an_asynchronous_generator_function():
    x, found = leaf(), []

    @graph.label("steps")
    async def function():
        try:
            try:
                yield mg.exp(x)
            except KeyError:
                yield mg.sin(x)
        finally:
            found.append(mg.cos(x))

    async def main():
        g = function()
        found.append(await anext(g))
        found.append(await g.athrow(KeyError))
        await g.aclose()
        async for t in function():
            found.append(t)

    asyncio.run(main())
    assert inspect.isasyncgenfunction(function) and len(found) == 5
    assert [labels(t) for t in found] == [["steps"]] * 5 and len(numbers(*found[:3])) == 1


def test_lines_in_coroutines_and_generators():
    x = leaf()

    @graph.record_lines()
    async def coroutine():
        await asyncio.sleep(0)
        return mg.exp(x)

    @graph.record_lines()
    def steps():
        yield mg.exp(x)

    @graph.record_lines()
    def function():
        return mg.exp(x)

    for t, name in (
        (asyncio.run(coroutine()), "coroutine"),
        (next(steps()), "steps"),
        (function(), "function"),
    ):
        note = provenance.note_of(t.grad_fn)
        assert note is not None and note.site is not None and note.site.function.endswith(name)
