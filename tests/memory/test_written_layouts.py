"""An array that is written in place keeps its layout, so reshaping it copies or not, as before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import multigrad as mg
from multigrad import func
from multigrad_conformance.differences import slope


def halved(a: Any) -> Any:
    a *= 2
    v = a.reshape(-1)
    v /= 2
    return a.sum()


def row_written(a: Any) -> Any:
    a.T[0] += 3
    v = a.reshape(-1)
    v *= 2
    return a.sum()


def assigned(a: Any) -> Any:
    a[...] = np.sqrt(a)
    v = a.reshape(-1)
    a[0] = 5.0
    return v.sum() + a.sum()


GIVEN: dict[str, Callable[[], Any]] = {
    "strided": lambda: np.arange(1.0, 25.0).reshape(4, 6)[::2, ::2],
    "by columns": lambda: np.arange(1.0, 7.0).reshape(2, 3).T,
    "reversed": lambda: np.arange(1.0, 13.0).reshape(4, 3)[::-1, :2],
    "with an offset": lambda: np.arange(1.0, 13.0).reshape(4, 3)[1:, 1:],
    "by rows": lambda: np.arange(1.0, 7.0).reshape(2, 3),
    "one row": lambda: np.arange(1.0, 17.0).reshape(4, 4)[:1, ::2],
}

FUNCTIONS = pytest.mark.parametrize("f", [halved, row_written, assigned])


@pytest.fixture(params=GIVEN.values(), ids=list(GIVEN))
def given(request: Any) -> Any:
    return request.param


@FUNCTIONS
def test_under_jvp(f: Any, given: Any) -> None:
    x = given()
    ones = np.ones(x.shape)
    expected = slope(lambda t: f(_moved(given, t)))
    for run in (func.jvp, func.compile(lambda x, v: func.jvp(f, x, v))):
        value, tangent = run(f, x, ones) if run is func.jvp else run(x, ones)
        np.testing.assert_allclose(value, f(given()))
        np.testing.assert_allclose(tangent, expected, rtol=1e-6)
    np.testing.assert_array_equal(x, given())


def _moved(given: Any, step: float) -> Any:
    x = given()
    x += step
    return x


@FUNCTIONS
@pytest.mark.parametrize("kind", [np.asarray, mg.asarray])
def test_compiled(f: Any, given: Any, kind: Any) -> None:
    compiled = func.compile(f)
    for k in range(4):
        ours, own = (kind(_moved(given, float(k))) for _ in range(2))
        np.testing.assert_array_equal(_raw(compiled(ours)), _raw(f(own)))
        np.testing.assert_array_equal(_raw(ours), _raw(own))
    assert len(compiled.programs) == 1


def _raw(x: Any) -> Any:
    return x.array if isinstance(x, mg.Tensor) else x


@FUNCTIONS
@pytest.mark.parametrize("part", [False, True])
def test_a_constant_that_is_written_under_grad(f: Any, given: Any, part: bool) -> None:
    def of(x: Any) -> Any:
        a = mg.asarray(given())
        if part:
            a = mg.asarray(np.ones((2 * x.shape[0], 2 * x.shape[1])))[::2, ::-2]
        a += x
        return f(a)

    x = np.zeros(given().shape)
    expected = _raw(of(x))
    for value, _ in (func.value_and_grad(of)(x), func.compile(func.value_and_grad(of))(x)):
        np.testing.assert_allclose(value, expected)
    value, tangent = func.jvp(of, x, np.ones(x.shape))
    np.testing.assert_allclose(value, expected)
    np.testing.assert_allclose(tangent, func.grad(of)(x).sum())


@FUNCTIONS
def test_under_vmap(f: Any, given: Any) -> None:
    one = given()
    whole = one if one.base is None else one.base
    stack = np.stack([whole, whole * 2.0])
    first = one.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    rows = np.ndarray((2, *one.shape), float, stack, first, (stack.strides[0], *one.strides))
    np.testing.assert_array_equal(rows[0], one)
    expected = [f(_own(row)) for row in rows]
    before = rows.copy()
    for run in (
        func.vmap(f),
        func.compile(func.vmap(f)),
        lambda x: func.jvp(func.vmap(f), x, np.ones(x.shape))[0],
        func.vmap(lambda x: func.jvp(f, x, np.ones(x.shape))[0]),
        lambda x: func.vmap(func.vmap(f))(x[None])[0],
    ):
        np.testing.assert_allclose(run(rows), expected)
    np.testing.assert_array_equal(rows, before)


def _own(row: Any) -> Any:
    """A copy with the same strides."""
    memory = np.copy(row.base)
    start = row.__array_interface__["data"][0] - row.base.__array_interface__["data"][0]
    return np.ndarray(row.shape, row.dtype, memory, start, row.strides)


def test_a_written_argument_is_compared_in_its_layout(given: Any) -> None:
    def f(a: Any) -> Any:
        v = a.reshape(-1)
        a[:, 0] = 0.0
        return v

    compiled = func.compile(f)
    for _ in range(3):
        np.testing.assert_array_equal(compiled(given()), f(given()))
