"""The version cell of a memory: it does not grow with the number of writes, and says the same."""

from __future__ import annotations

import re
from typing import Any

import pytest

import multigrad as mg
from multigrad.autograd.graph import saved_tensors_hooks
from multigrad.core.graph import KEPT, written_after
from multigrad.errors import GradientError
from multigrad.registry import define

MANY = 5 * KEPT
"""Writes after which a cell has been shortened several times."""


def update(t: Any, times: int) -> None:
    with mg.no_grad():
        for _ in range(times):
            t -= 0.5


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


class WrittenMeanwhile(list[Any]):
    """A cell that another thread shortens as soon as it is walked through."""

    def __iter__(self) -> Any:
        for entry in super().__iter__():
            yield entry
            del self[:-1]


def test_a_last_write_is_seen_while_another_thread_shortens_the_cell():
    assert written_after(WrittenMeanwhile(range(1, KEPT + 1)), KEPT - 1)


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


@pytest.mark.usefixtures("operations")
class TestWhatHooksHave:
    """Versions do not apply to it, and apply to the rest of what the node saves."""

    @pytest.mark.parametrize("hooked", [False, True])
    def test_a_list_of_arrays(self, backend, hooked):
        define(
            "t.product(*arrays)",
            forward=lambda xp, *arrays: arrays[0] * arrays[1],
            arrays=lambda xp, g, arrays, needs: [g * arrays[1], g * arrays[0]],
        )
        x = mg.asarray([1.0, 2.0], backend=backend, requires_grad=True)
        factors = x * 3.0, x * 5.0
        if hooked:
            with saved_tensors_hooks(
                lambda t: t.tolist(), lambda a: mg.asarray(a, backend=backend)
            ):
                y = mg.t.product(*factors)
        else:
            y = mg.t.product(*factors)
        for t in factors:
            t += 1.0
        if hooked:
            mg.sum(y).backward()
            assert x.grad.tolist() == [30.0, 60.0]
        else:
            with pytest.raises(GradientError, match="an array saved by TProductBackward is at"):
                mg.sum(y).backward()

    def test_an_index_array(self, backend):
        define(
            "t.chosen(x, /, key)",
            forward=lambda xp, x, key: (x * x)[key],
            x=lambda xp, g, x, key, x_shape: 2.0 * x * xp.unindex(g, key, x_shape),
        )
        x = mg.asarray([1.0, 2.0, 3.0], backend=backend, requires_grad=True)
        index = mg.asarray([0, 1], backend=backend)
        with saved_tensors_hooks(lambda t: t, lambda t: t):
            y = mg.t.chosen(x, index)
            z = mg.t.chosen(x, index)
        mg.sum(y).backward()
        assert x.grad.tolist() == [2.0, 4.0, 0.0]
        index += 1
        with pytest.raises(GradientError, match="an index array of TChosenBackward is at version"):
            mg.sum(z).backward()
