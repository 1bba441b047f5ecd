"""In-place writes to arrays that the body of a loop has made; those of scan are in properties/."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from loop_programs import near

import multigrad as mg
from multigrad import func

Function = Callable[..., Any]
ROW = np.array([0.7, 1.1, 0.4])
ROWS = np.array([[0.7, 1.1, 0.4], [0.2, 0.5, 1.3]])


def part(h: Any) -> Any:
    h = h * 1.0
    h[1:] = h[:-1] * 3.0
    return h


def view(h: Any) -> Any:
    h = h * 1.0
    tail = h[1:]
    tail *= 2.0
    h[0] = mg.sum(tail)
    return h + tail[0]


def within(h: Any) -> Any:
    def example(x: Any) -> Any:
        y = mg.zeros(2) + x
        y[0] = x * 2.0
        first = y[:1]
        first *= x * 1.0
        return mg.sum(y)

    return func.vmap(example)(h)


WRAPPED: dict[str, Function] = {
    "vmap": lambda f: func.vmap(f)(ROWS),
    "jacfwd": lambda f: func.jacfwd(f)(ROW),
    "jvp(vmap)": lambda f: func.jvp(func.vmap(f), ROWS, ROWS * 0.3),
}


@pytest.mark.parametrize("wrapped", WRAPPED)
@pytest.mark.parametrize("body", [part, view, within])
def test_writes_in_a_while_loop(body: Function, wrapped: str) -> None:
    def while_loop(h: Any) -> Any:
        return func.while_loop(lambda c: c[1] < 3, lambda c: (body(c[0]), c[1] + 1), (h, 0))[0]

    def unrolled(h: Any) -> Any:
        for _ in range(3):
            h = body(h)
        return h

    near(WRAPPED[wrapped](while_loop), WRAPPED[wrapped](unrolled))


def test_a_view_that_is_older_than_a_write() -> None:
    def body(h: Any, _: Any) -> Any:
        h = h * 1.0
        tail = h[1:]
        h[1] = 5.0
        assert tail.requires_grad in (False, True)  # brings it up to date
        return mg.concat([tail, h[:1]]), None

    found = func.vmap(lambda h: func.scan(body, h, length=1)[0])(ROWS)
    assert np.allclose(found, [[5.0, 0.4, 0.7], [5.0, 1.3, 0.2]])
