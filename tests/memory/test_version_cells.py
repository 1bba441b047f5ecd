"""The version cell of a memory: it does not grow with the number of writes, and says the same."""

from __future__ import annotations

import re
import threading
import tracemalloc
from typing import Any

import numpy as np
import pytest

import multigrad as mg
from multigrad.core.graph import KEPT, MOST
from multigrad.errors import GradientError

MANY = 5 * KEPT
"""Writes after which a cell has been shortened several times."""


def update(t: Any, times: int) -> None:
    with mg.no_grad():
        for _ in range(times):
            t -= 0.5


LITTLE = 15_000
"""In bytes, less than half of what a list of the times of 1,000 writes would take."""


def grown(write: Any) -> int:
    """The memory in bytes that 1,000 writes leave behind, after some that fill caches."""
    for _ in range(4 * KEPT):
        write()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(1000):
            write()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


class TestMemory:
    def test_of_updates_of_a_parameter(self):
        w = mg.asarray([1.0, 2.0], requires_grad=True)
        assert grown(lambda: update(w, 1)) < LITTLE

    def test_on_every_backend(self, backend):
        x = mg.asarray([1.0, 2.0], backend=backend)
        row, data = x[0:1], x.data
        for _ in range(MANY):
            row += 1.0
            data += 1.0
            assert len(x._cell) <= MOST and len(data._cell) <= MOST

    def test_of_a_dual(self):
        def f(x: Any) -> Any:
            y = x * 1.0

            def write() -> None:
                nonlocal y
                y += 1.0

            assert grown(write) < LITTLE
            return y

        mg.func.jvp(f, (np.ones(2),), (np.ones(2),))


class TestVersions:
    def test_all_writes_count(self, backend):
        x = mg.asarray([1.0, 2.0], backend=backend)
        data = x.data
        for n in range(1, MANY):
            x += 1.0
            data += 1.0
            assert x._version == n

    def test_a_part_that_python_assigns_again_counts(self):
        x = mg.asarray([1.0, 2.0])
        for _ in range(MANY):
            x[0] += 1.0
        assert x._version == 2 * MANY and x.tolist() == [1.0 + MANY, 2.0]

    @pytest.mark.parametrize("since", [0, 1, KEPT - 1, KEPT, 2 * KEPT, 2 * KEPT + 1, MANY])
    def test_a_view_that_was_not_used_since(self, backend, since):
        """However many writes it has missed."""
        x = mg.asarray([1.0, 2.0], backend=backend, requires_grad=True)
        y = x * 1.0
        row = y[0:1]
        for _ in range(since):
            y *= 1.0
        y[0] = 5.0 * x[1]
        assert row.tolist() == [10.0]
        row.sum().backward()
        assert x.grad.tolist() == [0.0, 5.0]

    def test_writes_of_several_threads_count(self):
        x = mg.asarray(np.zeros((4, 3)))
        rows = [x[i] for i in range(4)]

        def write(row: Any) -> None:
            for _ in range(1000):
                row += 1.0

        threads = [threading.Thread(target=write, args=(row,)) for row in rows]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert x._version == 4000 and len(x._cell) <= MOST + 4
        np.testing.assert_array_equal(x.array, 1000.0)


class TestErrors:
    @pytest.mark.parametrize("later", [1, KEPT - 1, KEPT, 2 * KEPT, MANY])
    def test_of_a_value_that_was_saved_before_the_first_write(self, backend, later):
        w = mg.asarray([1.0, 2.0], backend=backend, requires_grad=True)
        loss = mg.sum(w * w)
        update(w, later)
        message = f"is at version {later}; expected version 0 instead"
        with pytest.raises(GradientError, match=re.escape(message)):
            loss.backward()

    def test_of_a_value_that_was_saved_between_writes(self):
        w = mg.asarray([1.0, 2.0], requires_grad=True)
        update(w, MANY)
        loss = mg.sum(w * w)
        update(w, KEPT - 1)
        message = f"is at version {MANY + KEPT - 1}; expected version {MANY} instead"
        with pytest.raises(GradientError, match=message):
            loss.backward()

    def test_of_a_value_whose_time_the_cell_no_longer_lists(self):
        """The version is then given as a bound."""
        w = mg.asarray([1.0, 2.0], requires_grad=True)
        update(w, 10)
        loss = mg.sum(w * w)
        update(w, MANY)
        with pytest.raises(GradientError, match="expected one before version") as raised:
            loss.backward()
        found = re.search(r"is at version (\d+); .* before version (\d+)", str(raised.value))
        assert found is not None
        now, bound = map(int, found.groups())
        assert now == MANY + 10 and 10 < bound <= now

    def test_not_after_writes_through_data(self):
        w = mg.asarray([1.0, 2.0], backend="jax", requires_grad=True)
        loss = mg.sum(w * w)
        data = w.data
        for _ in range(MANY):
            data *= 1.0
        loss.backward()
        assert w.grad.tolist() == [2.0, 4.0]

    def test_a_write_is_not_hidden_by_later_changes_that_count_for_views_only(self):
        w = mg.asarray([1.0, 2.0], backend="jax", requires_grad=True)
        loss = mg.sum(w * w)
        update(w, 1)
        data = w.data
        for _ in range(MANY):
            data *= 1.0
        with pytest.raises(GradientError, match="is at version 1; expected version 0 instead"):
            loss.backward()
