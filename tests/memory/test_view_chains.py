"""Views of views of views, each written: what they cost, and that a chain which is shortened means
the same.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest
from leaves import check

import multigrad as mg
from multigrad import func
from multigrad.core.aliasing import DEPTH, Location, compact


def lines(f: Callable[[], Any]) -> int:
    """How many lines of multigrad run: what it costs, without the noise of a clock."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if "multigrad" not in frame.f_code.co_filename:
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        f()
    finally:
        sys.settrace(before)
    return count


def turned(v: Any, i: int) -> Any:
    return v.mT


def reshaped(v: Any, i: int) -> Any:
    return mg.reshape(v, ((-1,), (2, -1), (-1, 4), (4, 2, -1))[i % 4])


def extended(v: Any, i: int) -> Any:
    return mg.expand_dims(v, axis=0) if v.ndim < 4 else v[0, ...]


def flipped(v: Any, i: int) -> Any:
    return mg.flip(v, axis=0)


def mixed(v: Any, i: int) -> Any:
    steps: list[Callable[[Any], Any]] = [
        lambda v: mg.reshape(v, (-1,)),
        lambda v: v[8:] if v.size > 80 else v,
        lambda v: mg.reshape(v, (4, -1)),
        lambda v: mg.flip(v, axis=1).mT,
        lambda v: mg.flip(v, axis=0).mT,
    ]
    return steps[i % 5](v)


def same_shape(v: Any, i: int) -> Any:
    """Which NumPy marks as read-only."""
    return mg.broadcast_to(v, tuple(v.shape))


def written_chain(x: Any, n: int, step: Callable[[Any, int], Any]) -> Any:
    """x with its elements multiplied by 1.001 for each of the first n views that hold it, each made
    of the one before.
    """
    xp = x.__array_namespace__()
    y = v = x * 1.0
    for i in range(n):
        v = step(v, i)
        v *= 1.001
    return xp.sum(y)


M = np.ones((40, 32))
TRANSFORMED: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "constants": lambda f: f(mg.asarray(M.copy())),
    "backward": lambda f: f(mg.asarray(M.copy(), requires_grad=True)).backward(),
    "grad": lambda f: func.grad(f)(M),
    "jvp": lambda f: func.jvp(f, (M,), (M,)),
    "vmap": lambda f: func.vmap(f)(np.stack([M, M])),
}


@pytest.mark.sweep_after(8)
@pytest.mark.parametrize("step", [turned, reshaped, extended, flipped, mixed, same_shape])
@pytest.mark.parametrize("way", TRANSFORMED)
def test_whatever_the_views_are_made_by(way: str, step: Callable[[Any, int], Any]) -> None:
    run = TRANSFORMED[way]
    run(lambda x: written_chain(x, 20, step))
    few, many = (lines(lambda n=n: run(lambda x: written_chain(x, n, step))) for n in (50, 300))  # type: ignore[misc]
    assert 0 < many < 6.5 * few  # it was 28 to 36 times


@pytest.mark.parametrize("step", [turned, reshaped, extended, flipped, mixed])
def test_the_gradient_of_any_chain(xp: Any, backend: str, step: Callable[[Any, int], Any]) -> None:
    n = 6 if backend == "jax" else 23  # JAX compiles each write
    x = xp.asarray(M.copy(), requires_grad=True)
    written_chain(x, n, step).backward()
    expected = M.copy()
    v = expected
    for i in range(n):
        v = step(mg.asarray(v), i).array
        v *= 1.001
    check(x.grad, expected)
    check(
        func.jvp(
            lambda x: written_chain(x, n, step), (xp.asarray(M).array,), (xp.asarray(M).array,)
        )[1],
        expected.sum(),
    )


@pytest.mark.parametrize("step", [lambda v: v[:], lambda v: v.T], ids=["getitem", "T"])
@pytest.mark.parametrize("way", TRANSFORMED)
def test_views_of_what_shows_elements_several_times(way: str, step: Callable[[Any], Any]) -> None:
    """Each looked at after a write further up."""

    def program(x: Any, n: int) -> Any:
        y = x * 1.0
        v = mg.broadcast_to(y, (3, *y.shape))[:, 0, :]
        total = 0.0
        for _ in range(n):
            v = step(v)
            y *= 1.001
            total = total + v[0, 0]
        return total

    run = TRANSFORMED[way]
    run(lambda x: program(x, 20))
    few, many = (lines(lambda n=n: run(lambda x: program(x, n))) for n in (30, 120))  # type: ignore[misc]
    assert 0 < many < 5 * few  # it was 14 to 40 times


@pytest.mark.parametrize(
    "root",
    [mg.real, lambda y: y.detach(), lambda y: mg.unstack(y)[1]],
    ids=["real", "detach", "unstack"],
)
def test_what_cannot_be_shortened_costs_a_step_per_view(root: Callable[[Any], Any]) -> None:
    """Reshapes of what is no known memory."""

    def program(n: int) -> None:
        v = root(mg.asarray(M * 1j))
        for i in range(n):
            v = reshaped(v, i)
            v *= 1.001

    program(20)
    few, many = (lines(lambda n=n: program(n)) for n in (30, 120))  # type: ignore[misc]
    assert 0 < many < 18 * few  # it was 50 times


def with_gaps(y: Any) -> Any:
    """Rows of one reshape, columns of another: not by slices of the axes of `y`."""
    return mg.reshape(mg.reshape(y, (-1,))[::2], (32, -1))[:, 1:3]


def test_what_only_several_steps_can_make_is_shortened_in_parts() -> None:
    def program(n: int) -> None:
        v = with_gaps(mg.asarray(M.copy()))
        for _ in range(n):
            v = v[...]
            v *= 1.001

    program(20)
    few, many = (lines(lambda n=n: program(n)) for n in (30, 120))  # type: ignore[misc]
    assert 0 < many < 5 * few  # it was 14 times


def test_a_part_that_is_no_slice_of_a_flat_array() -> None:
    """Nor is there a slice as long as it, with its smallest stride, from its first element on."""
    y = mg.asarray(np.zeros(8)) * 1
    v = mg.reshape(y, (2, 4))[:, ::3]
    for _ in range(6):
        v = v[...]
        v += 1
    np.testing.assert_array_equal(y.array, [6, 0, 0, 6] * 2)


def test_no_step_for_what_moves_elements() -> None:
    turned = ("matrix_transpose", (), None)
    repeated = ("broadcast_to", ((2, 3, 4),), None)
    for part in (
        (turned, ("reshape", ((-1,), None), None)),
        (repeated, ("getitem", ((slice(None), 0, ...),), None)),
    ):
        assert compact((3, 4), part, True) is None


def drawn(random: np.random.Generator, x: Any) -> Callable[[Any, Any], Any]:
    """A step of a function of a namespace and an array of that shape, which shows a part of it or
    arranges its axes.
    """
    n = x.ndim
    axis = int(random.integers(-n, n)) if n else None
    key: list[Any] = [slice(None, None, int(random.choice([-2, -1, 1, 1]))) for _ in range(n)]
    if n:
        key[axis] = [slice(1, None), slice(None, -1), slice(None, None, 3), 0][
            random.integers(0, 4)
        ]
    order = tuple(map(int, random.permutation(n)))
    steps: list[Callable[[Any, Any], Any]] = [
        lambda xp, v: v[(*key, ...)],
        lambda xp, v: xp.reshape(v, (-1,)),
        lambda xp, v: xp.reshape(v, (-1, 2, 2) if x.size % 4 == 0 else (-1, 1)),
        lambda xp, v: xp.permute_dims(v, order),
        lambda xp, v: xp.flip(v, axis=axis),
        lambda xp, v: xp.expand_dims(v, axis=0),
    ]
    return steps[random.integers(0, len(steps))]


@pytest.mark.parametrize("backend", ["numpy", "strict"], indirect=True)
def test_random_chains_are_what_numpy_computes(xp: Any, backend: str) -> None:
    """And few steps lead from a view to its memory."""
    for seed in range(300 if backend == "numpy" else 30):
        random = np.random.default_rng(seed)
        expected = np.arange(1.0, 433.0).reshape(6, 9, 8)
        x = xp.asarray(expected.copy())
        v, part = x, expected
        for _ in range(20):
            step = drawn(random, part)
            new = step(np, part)
            if (np.shares_memory(new, expected) or not new.size) and new.ndim < 6:
                v, part = step(xp, v), new
                v *= 1.5
                part *= 1.5
            if not part.size:
                break
        check(x, expected)
        check(v, part)
        assert len(Location(v).part) <= 4 * DEPTH


def test_a_chain_of_parts_without_elements(xp: Any) -> None:
    v = xp.zeros((2, 3), dtype=xp.float64)
    for _ in range(10):
        v = v[:0, ...].mT
        v += 1.0
    assert v.shape == (0, 0)


class TestPlaces:
    def test_a_leaf_keeps_its_place(self, xp: Any) -> None:
        y = xp.asarray(np.arange(9.0))
        w = y[1:][1:].requires_grad_()
        v = w[1:][1:][1:][1:]
        with mg.no_grad():
            y *= 2.0
            v *= 1.0
        xp.sum(v * v).backward()
        check(w.grad, [0, 0, 0, 0, 24, 28, 32])

    def test_what_has_hooks_keeps_its_place(self, xp: Any) -> None:
        x = xp.asarray(np.arange(9.0), requires_grad=True)
        y = x * 1.0
        u = y[1:][1:]
        y *= 2.0
        u.retain_grad()
        v = u[1:][1:][1:][1:]
        y *= 2.0
        xp.sum(v * v).backward()
        check(u.grad, [0, 0, 0, 0, 48, 56, 64])
        check(x.grad, [0] * 6 + [192, 224, 256])

    def test_a_base_with_other_memory(self) -> None:
        y = mg.asarray(np.arange(9.0))
        u = y[1:][1:][1:]
        v = u[1:][1:][1:]
        u.data = mg.zeros(6, dtype=mg.float64)
        v += 1.0
        check(v, [7, 8, 9])
        check(u, np.zeros(6))
        check(y, [0, 1, 2, 3, 4, 5, 7, 8, 9])
        y += 1.0
        check(v, [8, 9, 10])
