"""Programs on NumPy: the code gives what the operations give one by one, to the last bit, and keeps
its memory to itself.
"""

from __future__ import annotations

import itertools
import threading
import warnings
from typing import Any

import numpy as np
import pytest
from recorded_programs import assert_same, check, copied, recorded, replay

import multigrad as mg
from multigrad import extend, func, registry
from multigrad.program import Missed, Torn

RNG = np.random.default_rng(3)


def chain(x: Any, y: Any) -> Any:
    for _ in range(5):
        x = mg.tanh(mg.sin(x) * y + y) * 0.98
    return mg.sum(x * x)


def dense(*shape: int, dtype: Any = "float64") -> Any:
    x = RNG.uniform(0.1, 0.9, shape)
    return (
        (x + 1j * RNG.uniform(0.1, 0.9, shape)).astype(dtype)
        if np.dtype(dtype).kind == "c"
        else x.astype(dtype)
    )


# ----- Operations -----

PROGRAMS: dict[str, tuple[Any, ...]] = {
    "chain": (chain, dense(10), dense(10)),
    "no axes": (lambda x, y: x * y + 2.0 * mg.exp(x), np.asarray(0.3), np.asarray(0.7)),
    "NumPy's scalars": (lambda x, y: mg.sin(x) * y, np.float64(0.3), np.float64(0.7)),
    "scalars that arrays meet": (
        lambda x: x * mg.sum(x) / mg.max(x) + mg.mean(x, axis=0),
        dense(4, 3),
    ),
    "nothing": (lambda x: mg.sin(x) + mg.sum(x), dense(0)),
    "complex128 in place": (
        lambda x: mg.real(mg.conj(x * (1 + 2j)) * x * x),
        dense(33, dtype="complex128"),
    ),
    "views of the argument": (
        lambda x: (x[1:], x.T, mg.reshape(x, (12,)), x[0, 0], mg.broadcast_to(x[0], (2, 3))),
        dense(4, 3),
    ),
    "one view twice": (lambda x: (mg.sin(x).T, mg.sin(x)[1:]), dense(4, 3)),
    "where": (
        lambda x, y: mg.where(x > y, x, 0.0) + mg.where(x > y, 1.0, mg.exp(y)),
        dense(9),
        dense(9),
    ),
    "powers": (lambda x: x**2 + x**3 + x**4 + x**0.5 + x**-1 + x**2.5 + x**0 + x**1, dense(9)),
    "clip": (lambda x: mg.clip(x, 0.2, 0.7) + mg.clip(x, 0.3, mg.max(x)), dense(9)),
    "writes inside": (lambda x: _written(x), dense(4, 3)),
    "numbers": (lambda x, a, n: x * a + x**n * (a * 2 + 1), dense(5), 0.25, 3),
    "constants": (lambda x: (np.arange(3.0), x + np.arange(3.0), mg.zeros(3) + x), dense(3)),
}


def _written(x: Any) -> Any:
    v = x * 1.0
    v[1:, 0] = v[0, :1] * 2.0
    v[0] += v[1]
    v *= v
    return v, mg.sum(v, axis=0)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("arena", [64 << 20, 0], ids=["arena", "none"])
def test_code_gives_what_operations_give(name: str, arena: int) -> None:
    f, *args = PROGRAMS[name]
    check(f, *args, arena=arena)


LAYOUTS = {
    "rows": lambda x: x,
    "columns": np.asfortranarray,
    "transposed": lambda x: np.ascontiguousarray(x.transpose(2, 0, 1)).transpose(1, 2, 0),
    "every other": lambda x: np.repeat(x, 2, axis=2)[:, :, ::2],
    "backwards": lambda x: np.ascontiguousarray(x[::-1, :, ::-1])[::-1, :, ::-1],
    "repeated": lambda x: np.broadcast_to(x[:, :1], x.shape),
    "inside": lambda x: np.pad(x, 1)[1:-1, 1:-1, 1:-1],
}


def summed(x: Any, y: Any) -> Any:
    """Sums in the orders that intermediate results have in memory."""
    z = mg.sin(x) * y
    w = mg.matrix_transpose(z) * 1.0 + mg.permute_dims(x, (0, 2, 1))
    return (
        mg.sum(z),
        mg.sum(z, axis=1),
        mg.sum(w, axis=(0, 2)),
        mg.sum(mg.exp(x)),
        mg.mean(w),
        mg.sum(mg.where(x > 0.5, x, y)),
        mg.sum(mg.reshape(w, (-1,))),
        mg.sum(mg.astype(x, np.float32), axis=0),
        mg.cumulative_sum(w, axis=2),
        mg.sum(mg.concat([z, y]), axis=(0, 1)),
    )


@pytest.mark.parametrize("second", LAYOUTS)
@pytest.mark.parametrize("first", LAYOUTS)
def test_sums_are_taken_in_the_same_order(first: str, second: str) -> None:
    check(summed, LAYOUTS[first](dense(5, 7, 9)), LAYOUTS[second](dense(5, 7, 9)))


@pytest.mark.parametrize("second", ("rows", "columns"))
@pytest.mark.parametrize("first", ("rows", "columns"))
def test_gradients_of_products_are_the_products_that_a_call_takes(first: str, second: str) -> None:
    """A rule chooses a product by the memory order of an operand, so which it is shows in the order
    of the result, whatever the library rounds.
    """
    x, y = LAYOUTS[first](dense(3, 4)), LAYOUTS[second](dense(5, 4))
    f = func.grad(lambda x, y: mg.sum(mg.tanh(x @ mg.matrix_transpose(y))), argnums=(0, 1))
    compiled = func.compile(f, check=False)
    expected = f(x, y)
    assert [g.strides for g in expected] == [x.strides, y.strides]
    for _ in range(3):
        got = compiled(x, y)
        assert_same(got, expected)
        assert [g.strides for g in got] == [x.strides, y.strides]


@pytest.mark.parametrize("dtype", (np.complex64, np.complex128))
@pytest.mark.parametrize("shape", ((), (1,), (1, 1), (3,)))
def test_products_of_complex_numbers_are_rounded_as_a_call_rounds_them(
    shape: tuple[int, ...], dtype: Any
) -> None:
    """NumPy rounds the product of arrays of one element otherwise if it is written over one."""
    rng = np.random.default_rng(0)
    f = lambda x, y: ((mg.exp(x) * mg.sin(y)) * mg.exp(y), mg.sin(x) ** 4, mg.cos(y) ** 3)
    for _ in range(20):
        x, y = (
            np.asarray(rng.normal(size=shape) + 1j * rng.normal(size=shape), dtype)
            for _ in range(2)
        )
        check(f, x, y)


@pytest.mark.parametrize(
    "view",
    (
        lambda y: mg.broadcast_to(y, ()),
        lambda y: mg.reshape(y, ()),
        lambda y: mg.permute_dims(y, ()),
    ),
)
def test_a_view_of_a_numpy_scalar_is_what_a_call_gives(view: Any) -> None:
    """The code gives the object that a call of the view gives, an array where that is one."""
    x, f = np.asarray(1.5), lambda x: view(mg.sum(x) * 2.0)
    check(f, x)
    run = replay(f, x)
    run(x)
    assert run._one_by_one not in run._codes.values()


def test_too_many_strides_run_one_by_one() -> None:
    run = replay(lambda x: mg.sum(mg.sin(x)), dense(3))
    for step in range(1, 14):
        y = dense(3 * step)[::step]
        for _ in range(2):
            assert_same(run(y), (np.add.reduce(np.sin(y)),))
    assert len(run._codes) == 8


# ----- The code -----


def test_the_source_is_readable() -> None:
    run = replay(lambda x: mg.cos(mg.sin(x)) * 2.0, dense(5))
    lines = [line.partition("  #")[0].strip() for line in run.source.splitlines()]
    assert lines[lines.index("b0, = arrays") + 1 :][:2] == ["sin(v0, b0)", "cos(b0, b0)"]
    assert "/test_numpy_program.py:" in run.source  # the line of the call


@pytest.mark.parametrize("arena", [0, 100, 10_000, 100_000])
def test_the_arena_keeps_to_its_budget(arena: int) -> None:
    def f(x: Any, y: Any) -> Any:
        parts = [mg.sin(x * i) + mg.sum(y * i) for i in range(1, 9)]
        small = [mg.cos(y * i) for i in range(1, 9)]
        return sum(parts[1:], parts[0]), sum(small[1:], small[0])

    x, y = dense(3000), dense(10)
    run = replay(f, x, y, arena=arena)
    assert run.memory <= arena
    check(f, x, y, arena=arena)


def test_results_are_not_the_memory_of_later_calls() -> None:
    run = replay(
        lambda x: (mg.sin(x).T, mg.sum(mg.sin(x), axis=0), mg.sin(x)[1:] * 1.0), dense(4, 3)
    )
    x = dense(4, 3)
    first = run(x)
    before = [r.copy() for r in first]
    run(x * 2)
    assert_same(before, [np.array(r) for r in first])
    assert all(r.flags.writeable for r in first)


def test_a_result_is_no_constant() -> None:
    run = replay(lambda x: (np.arange(3.0) * 2.0, x), dense(3))
    (first,) = run(dense(3))[:1]
    first[...] = 9
    assert_same(run(dense(3))[:1], (np.arange(3.0) * 2.0,))


def test_warnings_are_those_of_the_operations() -> None:
    with np.errstate(all="ignore"):
        run = replay(lambda x: mg.log(x) / x + np.float64(2.0) * mg.log(mg.zeros(1)), dense(3))
    with pytest.warns(RuntimeWarning) as eager:
        np.log(np.zeros(3)) / np.zeros(3)
        np.log(np.zeros(1))
    with pytest.warns(RuntimeWarning) as seen:
        run(np.zeros(3))
    assert {str(w.message) for w in seen} == {str(w.message) for w in eager}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error")
        run(np.zeros(3))


def test_an_exchanged_function_is_called(operations: Any) -> None:
    """Forms are for the functions of the backend alone."""
    registry.elementwise(
        "programs_twice(x, /)",
        x=2,
        forward=lambda xp, x: x + x,
        doc="Twice each element.",
        chapter="elementwise",
    )
    f = mg.programs_twice
    check(lambda x: f(mg.sin(x)) * 2.0, dense(5))


# ----- Guards and writes -----


def test_a_guard_misses_before_anything_is_written() -> None:
    def f(x: Any, w: Any) -> Any:
        w -= 0.1 * x
        if mg.sum(x) > 0:
            w *= 2.0
        return mg.sum(w)

    x, w = dense(4), dense(4)
    run = replay(f, x, w)
    expected = (w - 0.1 * x) * 2.0
    given = w.copy()
    assert_same(run(x, given), (np.add.reduce(expected),))
    assert_same((given,), (expected,))
    before = given.copy()
    with pytest.raises(Missed) as missed:
        run(-x, given)
    assert missed.value.got is False and missed.value.guard.kind == "bool"
    assert_same((given,), (before,))
    run(x, given)


def test_an_error_before_the_writes_leaves_arguments() -> None:
    def f(w: Any, x: Any) -> Any:
        w += mg.sum(x)
        return mg.linalg.inv(x)

    w, x = dense(3), np.eye(3) + 0.1
    run = replay(f, w, x)
    given = w.copy()
    with pytest.raises(np.linalg.LinAlgError):
        run(given, np.zeros((3, 3)))
    assert_same((given,), (w,))
    run(given, x)
    assert_same((given,), (w + np.add.reduce(x, None),))


def test_an_error_after_a_write_has_begun_is_told() -> None:
    def f(w: Any, v: Any) -> None:
        w += 1.0
        v += 1.0

    run = replay(f, dense(3), dense(3))
    w, v = dense(3), dense(3)
    v.setflags(write=False)
    with pytest.raises(Torn) as torn:
        run(w, v)
    assert isinstance(torn.value.error, ValueError)
    v.setflags(write=True)
    run(w, v)


# ----- Simultaneous calls -----


def test_threads_have_frames_of_their_own() -> None:
    f = func.value_and_grad(chain)
    y = dense(50)
    run = replay(lambda x, y: f(x, y), dense(50), y)
    inputs = [dense(50) for _ in range(8)]
    expected = [run(x, y) for x in inputs]
    wrong = []

    def call(i: int) -> None:
        for _ in range(300):
            got = run(inputs[i], y)
            if not all(np.array_equal(a, b) for a, b in zip(got, expected[i], strict=True)):
                wrong.append(i)

    threads = [threading.Thread(target=call, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    (code,) = run._codes.values()
    assert 1 <= len(code.frames) <= 9


def test_a_call_inside_of_a_call_has_a_frame_of_its_own() -> None:
    run = replay(lambda x: mg.log(mg.sin(x)) * mg.exp(mg.sin(x)) + 1.0, dense(5))
    x, y = np.zeros(5), dense(5)
    with np.errstate(all="ignore"):
        expected, others = run(x), run(y)
    inner: list[Any] = []
    with np.errstate(divide="call", call=lambda *_: inner.append(run(y))):
        assert_same(run(x), expected)
    assert_same(inner[0], others)


@pytest.mark.parametrize(("arena", "kept"), [(64 << 20, 2), (1 << 10, 1)])
def test_frames_of_simultaneous_calls_are_kept_within_the_arena(arena: int, kept: int) -> None:
    f = lambda x: mg.log(mg.sin(x)) * mg.exp(mg.sin(x)) + 1.0
    run = replay(f, dense(40), arena=arena)
    with np.errstate(divide="call", call=lambda *_: run(dense(40))):
        run(np.zeros(40))
    (code,) = run._codes.values()
    assert len(code.frames) == kept and run.memory <= arena


def test_a_frame_is_given_back_after_an_error() -> None:
    run = replay(lambda x: mg.linalg.inv(mg.exp(x) * x), np.eye(3))
    with pytest.raises(np.linalg.LinAlgError):
        run(np.zeros((3, 3)))
    (code,) = run._codes.values()
    assert len(code.frames) == 1


def test_what_is_laid_out_otherwise_runs_one_by_one(operations: Any) -> None:
    orders = iter("CCCF" * 9)
    registry.elementwise(
        "programs_order(x, /)",
        x=1,
        forward=lambda xp, x: np.array(x, order=next(orders)),
        doc="x.",
        chapter="elementwise",
    )
    f = mg.programs_order
    x = dense(3, 4)
    program = recorded(lambda x: mg.sum(f(x) * 2.0, axis=0), x)
    run = replay(program, x)
    for _ in range(4):
        assert_same(run(copied(x)), (np.add.reduce(x * 2.0, 0),))


def test_code_with_other_results_than_the_operations_is_not_used(operations: Any) -> None:
    """An operation that counts its calls gives other results whenever it runs: what the comparison
    has written is undone, and the operations run one by one.
    """
    calls = itertools.count()
    registry.elementwise(
        "programs_counted(x, /)",
        x=1,
        forward=lambda xp, x: x + next(calls),
        doc="x and the number of earlier calls.",
        chapter="elementwise",
    )
    f = mg.programs_counted

    def step(w: Any, x: Any) -> Any:
        w += f(x) * 0
        w *= 2.0
        return mg.sum(f(x))

    x, w = dense(3), dense(3)
    run = extend.backend("numpy").kernel("compile")(
        extend.raw_namespace("numpy"), recorded(step, w.copy(), x), arena=0
    )
    given = w.copy()
    run(given, x)
    assert_same((given,), (w * 2.0,))
    assert list(run._codes.values()) == [run._one_by_one]
