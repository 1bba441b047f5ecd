"""The steps of a loop as they are run: many, of programs that take turns, and of ones that
raise.
"""

from __future__ import annotations

import numpy as np
import pytest

import multigrad as mg
from multigrad import func
from multigrad.func.control.checkpoints import positions


def unrolled(body, carry, xs):
    ys = []
    for x in xs:
        carry, y = body(carry, x)
        ys.append(y)
    return carry, np.stack(ys)


def test_what_is_kept_of_a_long_loop_takes_no_memory_to_name():
    """As lists of numbers they were looked through at each step, and time grew with the square of
    the length.
    """
    assert positions("step", 10**9) == range(10**9) and positions(7, 10**9)[-1] == 999999994
    assert len(positions("binomial", 10**6)) < 20


@pytest.mark.parametrize("turns", [2, 3, 30], ids=str)
def test_programs_that_take_turns(turns):
    """Each step tells the guard something else than the one before, or all steps but every 30th."""
    xs = np.arange(100.0)

    def body(c, x):
        if x % turns == 0:
            return c * 0.5 + x, c
        return mg.sin(c) + x, c + 1.0

    expected = unrolled(
        lambda c, x: (c * 0.5 + x, c) if x % turns == 0 else (np.sin(c) + x, c + 1.0),
        np.ones(3),
        xs,
    )
    for got, want in zip(func.scan(body, np.ones(3), xs), expected, strict=True):
        assert np.allclose(got, want, rtol=1e-13)


@pytest.mark.parametrize("at", [1, 2, 3, 20])
def test_an_error_at_a_step_is_that_of_the_body(at):
    xs = np.arange(30.0)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
        func.scan(lambda c, x: (c + 1.0 / (x - at), None), np.ones(3), xs)
    last, _ = func.scan(lambda c, x: (c + 1.0 / (x + 1.0), None), np.ones(3), xs)
    assert np.allclose(last, 1.0 + np.sum(1.0 / (xs + 1.0)))


def test_a_loop_within_the_same_loop_and_results_that_stay():
    """Programs of two loops that run at a time, and arrays that the next call does not write."""

    def nested(n):
        def body(c, x):
            inner = (
                func.scan(lambda d, y: (mg.tanh(d * y), d), c, xs)[1]
                if n
                else mg.tanh(c * x)[None, ...]
            )
            return mg.sum(inner, axis=0) / 20.0 + x, c

        return body

    xs = np.linspace(0.5, 1.5, 20)
    before = func.scan(nested(1), np.ones(3), xs)
    kept = [x.copy() for x in before]
    after = func.scan(nested(1), np.ones(3) * 2.0, xs)
    again = func.scan(nested(1), np.ones(3), xs)
    assert not np.array_equal(after[1], before[1])
    for x, y, z in zip(before, kept, again, strict=True):
        assert np.array_equal(x, y) and np.array_equal(x, z)
