"""Runners: the table that holds them, what a key leaves to guards, and that they compute what the
general path computes.
"""

from __future__ import annotations

import gc
import operator
import tracemalloc
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest
from conftest import values
from runner_checks import WHERE, agree, agree_in_turn, described, reaching, same, told
from threads_at_once import together

import multigrad as mg
from multigrad import func, registry
from multigrad.core.level import innermost
from multigrad.dispatch import functions, runners
from multigrad.errors import GradientError
from multigrad.registry import define, elementwise, linear, multilinear

A, B = np.array([0.4, 1.3, 2.0]), np.array([1.1, 0.7, 0.2])
SQUARE = np.array([[1.5, 0.2], [0.3, 2.0]])
INDEX = np.array([0, 2])
CONSTANT = mg.asarray(np.array([2.0, 3.0, 5.0]))


class Row(NamedTuple):
    """What `report` tells of an operation."""

    keys: int = 0
    bytes: int = 0
    dropped: int = 0
    without: int = 0
    general: int = 0


def reported(name: str) -> Row:
    return next((Row(*row[1:]) for row in runners.report() if row[0] == name), Row())


@pytest.fixture(autouse=True)
def table(no_runners: None) -> Iterator[None]:
    """An empty table."""
    for table in runners._tables.values():
        table.dropped = table.general = 0
    yield
    runners.forget()


def leaf(x: Any) -> Any:
    return mg.asarray(np.array(x), requires_grad=True)


def of_dtype(name: str) -> Any:
    return np.ones(3, name)


DTYPES = ("float32", "int8", "int16", "int32", "uint8", "uint16", "uint32", "complex64", "bool")


class TestTheTable:
    def test_is_bounded_in_bytes(self, monkeypatch):
        """By all operations together; the oldest goes first, and is written again."""
        functions = {"multiply": mg.multiply, "add": mg.add, "maximum": mg.maximum}
        calls = [
            lambda f=f, d=d: f(leaf(A), mg.asarray(of_dtype(d)))
            for d in DTYPES
            for f in functions.values()
        ]
        expected = [described(call()) for call in calls]
        before = [reported(n) for n in functions]
        assert [row.keys for row in before] == [len(DTYPES)] * 3
        assert all(row.bytes > 0 == row.dropped for row in before)
        assert runners.budget.bytes >= sum(row.bytes for row in before)
        monkeypatch.setattr(runners, "BOUND", runners.budget.bytes // 4)
        mg.stack([leaf(A), mg.asarray(of_dtype("float32"))])
        after = [reported(n) for n in functions]
        assert all(row.dropped > 3 and row.keys + row.dropped == len(DTYPES) for row in after)
        same(described(calls[-1]()), expected[-1])
        assert [reported(n) for n in functions] == after  # the newest is still there
        for call, result in zip(calls * 2, expected * 2, strict=True):
            same(described(call()), result)
            assert sum(runners.budget.entries.values()) == runners.budget.bytes
            assert runners.budget.bytes <= runners.BOUND
        assert sum(reported(n).keys for n in functions) <= len(runners.budget.entries)

    def test_the_bytes_are_those_that_a_runner_takes(self):
        left, others = leaf(A), [mg.asarray(of_dtype(d)) for d in DTYPES]
        for f in (mg.multiply, mg.add, mg.subtract):
            f(left, others[0])  # the function itself
        runners.forget()
        gc.collect()
        tracemalloc.start()
        for f in (mg.multiply, mg.add, mg.subtract):
            for x in others:
                f(left, x)
        gc.collect()
        size, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert 0.5 < runners.budget.bytes / size < 2

    def test_what_no_runner_is_written_for(self):
        strict, expected = mg.asarray(np.ones(3), backend="strict"), [2.0, 2.0, 2.0]
        for _ in range(runners.LONGEST + 2):
            assert values((strict * np.float64(2.0)).to_backend("numpy")).tolist() == expected
        # from the first of these calls one might have been written
        assert reported("multiply") == Row(bytes=runners.REFUSAL, without=1, general=2)

    def test_a_chain_has_an_end(self):
        """The key has the type of raw arrays; their dtype is a guard."""
        dtypes = (*DTYPES, "float16", "complex128", "int64")
        for _ in range(3):
            for d in dtypes:
                x = leaf(A)
                y = x * of_dtype(d)
                assert y.dtype == np.result_type(A, of_dtype(d))
                assert y.grad_fn is not None
        row = reported("multiply")
        assert row.keys == 1 and row.general == 3 * (len(dtypes) - runners.LONGEST)

    def test_keys_and_guards_of_levels(self):
        """Constants with and without a history, of this level and of lower ones, in one key."""

        def nested(place: Callable[..., Any]) -> Any:
            return func.grad(
                lambda x: mg.sum(func.grad(lambda y: mg.sum(y * mg.sin(place(x, y))))(x * 1.0))
            )

        single = lambda x: mg.astype(x, "float32")
        for _ in range(2):
            for place in (
                lambda x, y: single(y),
                lambda x, y: single(x),
                lambda x, y: mg.asarray(B.astype("float32")),
                lambda x, y: mg.asarray(B.astype("float32"), requires_grad=True),
                lambda x, y: B.astype("float32"),
                lambda x, y: y[...],
                lambda x, y: single(y).detach(),
            ):
                agree(lambda x, place=place: nested(place)(x), (A,), ("vmap", "jvp", "tape"))
        assert reported("multiply").general == 0

    def test_constants_with_and_without_a_history(self):
        leaf_, constant = leaf(B), mg.asarray(B.copy())
        calls = [
            (lambda x, z=z: func.grad(lambda y: mg.sum(y * y * z))(x.array), (A,), "tape")
            for z in (constant, leaf_, constant, leaf_)
        ]
        agree_in_turn(calls)

    @pytest.mark.runs_once
    def test_what_is_declared_anew_while_it_is_used(self, operations):
        """By several threads: after a replacement, no runner from before it is used."""

        def declare(n: int) -> None:
            elementwise(
                "t.times(x1, x2, /)",
                forward=lambda xp, x1, x2: x1 * x2 * n,
                x1=lambda xp, g, x2: g * x2 * n,
                x2=lambda xp, g, x1: g * x1 * n,
                override=n > 1,
            )

        declare(1)
        before = mg.t.times
        declared = [1]
        single = B.astype("float32")

        def work(i: int) -> list[str]:
            wrong = []
            for n in range(2, 40) if not i else range(150):
                if not i:
                    declare(n)
                    declared[0] = n
                    continue
                for f in (before, mg.t.times):
                    least = declared[0]
                    y, t = func.jvp(lambda x, f=f: f(x, single), (A,), (A,))
                    g = func.grad(lambda x, f=f: mg.sum(f(x, single)))(A)
                    for found in (y, t, g * A):
                        # one call may meet several declarations, but none from before it
                        if np.any(np.asarray(found) < 0.999 * A * single * least):
                            wrong.append(f"{found} of declaration {least}")
            return wrong

        assert together(work, 3) == [[]] * 3
        for f in (before, mg.t.times):
            for _ in range(3):
                np.testing.assert_allclose(values(f(leaf(A), single)), A * single * 39)

    def test_nothing_of_the_first_call_stays_alive(self):
        """Neither arrays nor Tensors, nor the transformation."""

        class Array(np.ndarray):
            """That can be referred to weakly, as the others cannot."""

        gc.collect()
        gc.disable()
        try:
            for where, run in WHERE.items():
                alive: list[Any] = []

                def f(x: Any, y: Any, alive: list[Any] = alive) -> Any:
                    other = B.astype("float32").view(Array)
                    single = mg.astype(y, "float32")
                    made = [
                        x * other,
                        x * single,
                        mg.stack([x, single, other]),
                        mg.concat([x, y] * 6),
                        mg.clip(x, other, 2.0),
                        x[mg.asarray(INDEX)],
                        mg.sum(x, axis=[0]),
                    ]
                    for z in (x, y, other, single, *made):
                        alive.append(weakref.ref(z))
                    return made

                run(f, (A, B))  # the functions and rules themselves
                alive.clear()
                runners.forget()
                for _ in range(2):
                    run(f, (A, B))
                assert len(alive) > 20
                left = [r() for r in alive if r() is not None]
                assert [z for z in left if z is not A and z is not B] == [], where
        finally:
            gc.enable()

    @pytest.mark.runs_once
    def test_calls_that_no_runner_is_written_for(self):
        """A runner is written for others of the same key, before it and after it."""

        def indexed(own: bool) -> Any:
            def outer(y: Any) -> Any:
                above = mg.astype(y * 0, "int64")
                return mg.sum(
                    func.grad(
                        lambda x: mg.sum(
                            (x * 1.0)[above if own is False else mg.astype(x * 0, "int64")]
                        )
                    )(A)
                )

            return func.grad(outer)(A)

        for first in (True, False):
            runners.forget()
            for own in (first, not first, True):
                indexed(own)
            with reaching() as reached:
                indexed(True)
            assert "getitem" not in reached

    @pytest.mark.runs_once
    def test_arrays_of_an_ended_transformation(self):
        """They neither stand for others in a key, nor keep a runner from being written."""
        left: list[Any] = []
        single = lambda x: mg.astype(x * 1.0, "float32")

        def f(x: Any) -> Any:
            left.append(single(x))
            return mg.sum(x * single(x))

        grad, jvp = func.grad(f), lambda x: func.jvp(f, (x,), (x,))
        vmap = lambda x: func.vmap(f)(np.stack([x, x]))
        for run in (grad, jvp, vmap):
            run(A)
        runners.forget()
        for run in (grad, jvp, vmap):
            for old in list(left):
                try:
                    run_with_old = {
                        grad: func.grad,
                        jvp: lambda g: lambda x: func.jvp(g, (x,), (x,)),
                    }
                    run_with_old.get(run, func.vmap)(lambda x, old=old: mg.sum(x * old))(A)
                except mg.errors.LeakError:
                    continue
        for run in (grad, jvp, vmap):
            run(A)
            with reaching() as reached:
                run(A)
            assert reached == []


# ----- What is served -----


def written(x: Any, key: Any, value: Any) -> Any:
    y = x * 1.0
    y[key] = value
    return y, operator.imul(y, x), y[...]


FORMS: dict[str, Callable[[Any], Any]] = {
    "a function": lambda x: mg.tanh(mg.sin(x)),
    "raw on either side": lambda x: (x * B, B * x, x < B),
    "scalars of NumPy": lambda x: (x * np.float64(1.5), np.float64(2.0) + x, x ** np.float32(2)),
    "Python scalars": lambda x: (2 - x * 3.0, 1 / x, x**2, x**0.5, 2.0**x, x > 1, True * x),
    "complex scalars": lambda x: (x * 1j, 1j - x, np.float64(1.5) * (x * 2j)),
    "another dtype": lambda x: (x * mg.asarray(B.astype(np.float32)), x * B.astype(np.float32)),
    "integers": lambda x: (x * mg.asarray(np.array([1, 2, 3])), x + np.array([1, 2, 3], np.int8)),
    "a constant": lambda x: (x * CONSTANT / CONSTANT[::-1], CONSTANT - x),
    "made inside": lambda x: x * mg.asarray(np.ones(3)) + mg.asarray(B, requires_grad=True),
    "astype": lambda x: (mg.astype(x, np.float32), x.astype("float64"), x.astype("float32")),
    "other shapes": lambda x: (x + np.ones((2, 1)), np.ones((2, 1)) * x, x * mg.sum(x)),
    "keyword arrays": lambda x: mg.clip(x, min=mg.asarray(0.5), max=x * 1.5),
    "keyword scalars": lambda x: (mg.clip(x, 0.5, 1.5), mg.clip(x, max=1.5)),
    "choices": lambda x: (mg.where(x > 1, x, 0.0), mg.where(B > 1, B, x), mg.where(x > 1, x, x)),
    "an index": lambda x: (x[0], x[1:], x[..., None], x[()], x[::-1], x[-1, None]),
    "index arrays": lambda x: (x[INDEX], x[mg.asarray(INDEX)], x[INDEX[:1], None], x[[0, 1]]),
    "an index of its values": lambda x: x[mg.argmax(mg.asarray(B))],
    "in a tuple": lambda x: (mg.reshape(x, (3, 1))[INDEX, :], x[(mg.asarray(INDEX),)]),
    "a raw mask": lambda x: (x[B > 1.0], x[np.array(True)]),
    "products": lambda x: (x @ x, mg.vecdot(x, B), B @ x, np.ones((2, 3)) @ x),
    "views": lambda x: (mg.expand_dims(mg.flip(x), axis=0), mg.reshape(x, (1, 3)), mg.real(x)),
    "reductions": lambda x: (mg.sum(x), mg.mean(x, axis=0), mg.sum(x, axis=(0,)), mg.max(x)),
    "a dtype": lambda x: (mg.sum(x, dtype="float32"), mg.sum(x, dtype=mg.float32), mg.prod(x)),
    "lists of settings": lambda x: (mg.sum(x, axis=[0]), mg.flip(x, axis=[0]), mg.roll(x, [1])),
    "rules of their own": lambda x: (mg.sort(x), mg.std(x), mg.cumulative_sum(x), mg.abs(x)),
    "take": lambda x: mg.take(x, mg.asarray(INDEX), axis=0),
    "several outputs": lambda x: (mg.unstack(x)[0], mg.broadcast_arrays(x, np.ones((2, 1)))[0]),
    "lists": lambda x: (
        mg.stack([x, B, x]),
        mg.concat([x, CONSTANT]),
        mg.concat([x, x], axis=None),
    ),
    "no derivative": lambda x: (x > B, mg.argmax(x), mg.zeros_like(x), mg.isnan(x), mg.sign(x)),
    "writes": lambda x: (
        written(x, 0, x[1]),
        written(x, slice(0, 1), 2.0),
        written(x, INDEX, B[:2]),
    ),
    "lengths of lists": lambda x: [mg.stack([x * n] * n) for n in (1, 2, 8, 9, 20)],
}
NOT_SERVED = {
    "writes": {"copy_slices", "getitem", "read_slices"},  # of further levels
    "products": {"expand_dims"},  # of 0-d examples
    "lengths of lists": {"stack"},  # of gradients of several kinds
}


class TestServed:
    """What users write is carried out by runners, which agree with the general path, everywhere."""

    @pytest.mark.runs_once
    @pytest.mark.filterwarnings("ignore")
    @pytest.mark.parametrize("name", FORMS)
    def test_of(self, name: str) -> None:
        f = FORMS[name]
        agree(f, (A,))
        for where in WHERE:
            told(f, (A,), where)  # signatures that share a key are learnt one after the other
        for where in WHERE:
            with reaching() as reached:
                told(f, (A,), where)
            assert set(reached) <= NOT_SERVED.get(name, set()), where

    def test_the_power_of_zero(self):
        """Along a constant direction, of an array with a history."""
        agree(lambda x: func.jvp(lambda y: y**0, (x,), (B,)), (A,), ("tape", "grad"))

    def test_lists_of_several_kinds(self):
        """Of all lengths: for short ones the key has a part for each element."""
        single = B.astype("float32")
        kinds = lambda x: (x, B, CONSTANT, single, x * 2.0, x[...], mg.asarray(single))
        for n in range(1, 21):
            for shift in (0, 1):
                agree(
                    lambda x, n=n, s=shift: (
                        mg.stack([kinds(x)[(i + s) % 7] for i in range(n)]),
                        mg.concat((x, *[kinds(x)[(i * i) % 7] for i in range(n)])),
                    ),
                    (A,),
                    ("tape", "jvp", "vmap", "jvp of grad"),
                    times=2,
                )

    def test_operands_of_every_kind_in_every_position(self):
        """In turn, with one table: what one kind has learnt is not used for another."""

        def stale(x: Any) -> Any:
            whole = mg.stack([x, x])
            part = whole[0]
            whole *= 2.0
            return part

        def at_once(x: Any) -> Any:
            base = mg.asarray(np.stack([B, B]), requires_grad=True) * 1.0
            old = base[1]
            base += 1.0
            return [
                (f(u, v), f(v, u))
                for f in (mg.multiply, mg.maximum, lambda u, v: mg.clip(v, u, 5.0))
                for u in (x, x[...], stale(x))
                for v in (x * 1.0, x[::-1], stale(x), old, CONSTANT, B, B[:1], 2.0, B.astype("f4"))
            ]

        agree(at_once, (A,), times=2)

    def test_an_index_that_is_written(self):
        """The node further in knows its version."""

        def pushed(x: Any) -> str:
            index = mg.asarray(INDEX.copy())
            y, _ = func.jvp(lambda x: x[index], (x,), (A,))
            index[0] = 1
            with pytest.raises(RuntimeError) as caught:
                mg.sum(y).backward()
            return str(caught.value)

        assert len({pushed(leaf(A)) for _ in range(3)}) == 1

    def test_writes_between_calls(self):
        """Of operands and of results: the version cells are those of the general path."""

        def f(x: Any) -> Any:
            y, made = x * 1.0, []
            view, constant = y[1:], mg.asarray(B.copy())
            for _ in range(3):
                made.append(mg.stack([y[:2], view]) * constant[:2])
                y *= 1.5
                made[-1] += 1.0
                constant[0] = 3.0
                made.append(view * B[1:].astype("float32"))
                view[0] = made[-1][1]
            return made, y, view

        def stored(x: Any) -> Any:
            y = x * mg.asarray(B.astype("float32"))
            z = y * mg.astype(x, "float32")
            y += 1.0  # z has saved it
            return z

        def of_a_level_below(x: Any) -> Any:
            below = x * 1.0

            def inner(y: Any) -> Any:
                z = y * below * y
                below.sin_()  # z has saved it
                return mg.sum(z)

            return func.grad(inner)(B)

        agree(f, (A,))
        agree(stored, (A,))
        agree(of_a_level_below, (A,))

    @pytest.mark.parametrize("seed", range(6))
    def test_settings_and_keys_in_turn(self, seed):
        """Values that a runner for the same types, or the one before, was not written for."""
        rng = np.random.default_rng(seed)
        raw = np.array([[0, 1], [1, 0]])
        dtypes = ("float32", "float64", np.float32, np.dtype("f4"), "complex64", mg.float64)
        calls = [
            *[lambda x, d=d, c=c: mg.astype(x, d, copy=c) for d in dtypes for c in (True, False)],
            *[lambda x, d=d: mg.sum(x, dtype=d) for d in (*dtypes, None)],
            *[lambda x, c=c: mg.reshape(x, (-1,), copy=c) for c in (None, True, False)],
            *[lambda x, c=c: mg.asarray(x, copy=c) for c in (None, True, False)],
            lambda x: [mg.reshape(y, (-1,)) for y in (x, x.mT, x[:, :1], x[:, ::-1], x * 1.0)],
            *[
                lambda x, a=a, k=k: mg.sum(x, axis=a, keepdims=k)
                for a in (None, 0, -1, (0,), (), [0, 1], np.int64(1))
                for k in (True, False)
            ],
            *[
                lambda x, n=n, a=a: mg.roll(x, n, axis=a)
                for n, a in ((1, 0), ((1,), (0,)), ([1], [1]))
            ],
            *[lambda x, n=n: mg.linalg.vector_norm(x, ord=n) for n in (1, 2, 2.0, np.inf, 0)],
            *[lambda x, key=key: x[key] for key in (0, -1, slice(1, None), slice(None, None, -1))],
            *[lambda x, key=key: x[key] for key in (slice(np.int64(1), None), np.int64(1), (0, 1))],
            *[lambda x, key=key: x[key] for key in (None, ..., True, False, (), (..., 0))],
            *[lambda x, key=key: x[key] for key in ([0, 1], [True, False], np.array(True))],
            *[lambda x, key=key: x[key] for key in (raw, raw.astype("int8"), raw > 0)],
            *[lambda x, key=key: x[key] for key in (mg.asarray(raw), mg.asarray(raw > 0))],
            *[lambda x, key=key: x[key] for key in ((None, slice(1), None), (slice(None), raw[0]))],
            lambda x: x[raw[0], mg.asarray(raw[1])],
            lambda x: x[raw[0], ..., raw[0].astype("uint8")],
            lambda x: x[mg.asarray(1), 0],
            lambda x: x[mg.astype(x[0] > 0, "int64")],
            lambda x: x[mg.astype(x > 0, "int64"), :],
            lambda x: x[mg.asarray(raw), mg.astype(x > 0, "int64")],
        ]
        order = rng.permutation(len(calls))

        def attempts(x: Any) -> list[Any]:
            found = []
            for i in order:
                try:
                    found.append(calls[i](x))
                except (TypeError, ValueError, IndexError, RuntimeError) as error:
                    told_of.append(f"{type(error).__name__}: {error}")
            return found

        told_of: list[str] = []
        places = list(rng.permutation(list(WHERE))[:6])
        agree(attempts, (SQUARE,), places, times=2)
        times = len(told_of) // 3
        assert told_of[:times] == told_of[times : 2 * times] == told_of[2 * times :]


# ----- Errors -----

WRONG: dict[str, Callable[[Any], Any]] = {
    "shapes": lambda x: x * np.ones(2, "float32"),
    "shapes of Tensors": lambda x: x + mg.asarray(np.ones(2, "float32")),
    "an index": lambda x: x[np.array([7])],
    "an axis": lambda x: mg.sum(x, axis=5),
    "a list": lambda x: mg.stack([x, np.ones(2)]),
    "a string": lambda x: x + "a",
    "a string in a list": lambda x: mg.stack([x, "a"]),
    "a dtype": lambda x: mg.astype(x, "float1"),
    "another backend": lambda x: x * mg.asarray(np.ones(3), backend="strict"),
    "its arrays": lambda x: mg.multiply(x, mg.asarray(np.ones(3), backend="strict").array),
    "objects": lambda x: x * np.array([1, 2, 3], dtype=object),
    "too many indices": lambda x: x[0, 0],
    "a float as index": lambda x: x[x * 1.0],
    "a keyword": lambda x: mg.sum(x, axes=0),
    "reshape": lambda x: mg.reshape(x, (2, 2)),
    "an overflow": lambda x: mg.astype(x, "int8") * 1000,
    "the wrong type": lambda x: mg.bitwise_and(x, 1),
    "a matrix with a number": lambda x: x @ 2.0,
    "a number with a matrix": lambda x: 2 @ x,
    "nothing": lambda x: x + None,
    "compared": lambda x: x < None,
}


class TestErrors:
    @pytest.mark.parametrize(
        "name",
        WRONG,
    )
    def test_are_the_same_at_each_call(self, name):
        """Type and text, in each transformation, before and after right calls of that signature."""
        agree(WRONG[name], (A,), times=3)

    def test_after_right_calls_of_that_signature(self):
        def attempts(x: Any) -> str:
            right = [
                lambda: x * B.astype("float32"),
                lambda: mg.stack([x, B]),
                lambda: x[np.array([0])],
                lambda: mg.sum(x, axis=0),
                lambda: mg.reshape(x, (3, 1)),
            ]
            for f in right:
                f()
            errors = []
            for name in ("shapes", "a list", "an index", "an axis", "reshape"):
                with pytest.raises((ValueError, IndexError)) as caught:
                    WRONG[name](x)
                errors.append(f"{type(caught.value).__name__}: {caught.value}")
            texts.append(errors)
            return x * 1.0

        texts: list[list[str]] = []
        for where in WHERE:
            texts.clear()
            agree(attempts, (A,), (where,), times=3)
            assert all(t == texts[i % (len(texts) // 4)] for i, t in enumerate(texts)), where

    def test_an_operand_that_defers(self):
        """Its own method is called at each call, whatever was learnt."""

        class Other:
            def __rmul__(self, x: Any) -> str:
                return "its own"

            __rmatmul__ = __radd__ = __rmul__

        agree(lambda x: [x * Other() == "its own" and x, x @ Other() == "its own" and x], (A,))


# ----- Operations of others -----


class TestOperationsOfOthers:
    @pytest.fixture(autouse=True)
    def declared(self, operations):
        return operations

    def test_parameters_with_names_of_builtins(self):
        """And of other names that generated code uses."""
        rule = lambda g, max, len: g * max * len
        linear(
            "t.f(range, zip: arrays, /, max, len=2.0, *, any=False, axis=None, map=())",
            forward=lambda xp, range, zip, max, len, any, axis, map: (
                (range + zip[0] - zip[1]) * max * len
            ),
            range=lambda xp, g, max, len: rule(g, max, len),
            zip=lambda xp, g, max, len, needs: [rule(g, max, len), -rule(g, max, len)],
            batching=lambda xp, range, zip, max, len, any, axis, map, size: (
                (range + zip[0] - zip[1]) * max * len
            ),
        )
        elementwise(
            "t.g(min, object, all, /, *, range=3, sum=0)",
            forward=lambda xp, min, object, all, range, sum: min * object * range + all,
            min=lambda xp, object, range: object * range,
            object=lambda xp, g, min, range: g * min * range,
            all=1,
        )
        agree(lambda x: mg.t.f(x, [x * 2.0, B], 3.0), (A,))
        agree(lambda x: mg.t.f(x, (B, x), 3.0, axis=0, map=(1, "a"), any=True), (A,))
        agree(lambda x: mg.t.g(x, B.astype("float32"), x * x), (A,))
        agree(lambda x: mg.t.g(mg.asarray(B), x, 2.0, range=2, sum=1), (A,))

    @pytest.mark.runs_once
    @pytest.mark.parametrize("kind", ["linear", "elementwise", "define"])
    def test_that_return_their_argument(self, kind):
        """Now and then, so that the result is a view although the first one was not."""

        def forward(xp: Any, x: Any, y: Any, same: bool) -> Any:
            return x if same else x * 1.0

        rules: Any = {"x": lambda xp, g: g}
        if kind == "define":
            rules = {"x": lambda xp, g: g, "jvp": lambda xp, t_x: t_x, "batching": "elementwise"}
        if kind == "elementwise":
            rules = {"x": 1}
        {"linear": linear, "elementwise": elementwise, "define": define}[kind](
            "t.f(x, y, /, same=False)", forward=forward, **rules
        )
        linear(
            "t.first(arrays: arrays, /, same=False)",
            forward=lambda xp, arrays, same: arrays[0] if same else arrays[0] * 1.0,
            arrays=lambda xp, g, needs: [g, *[None] * (len(needs) - 1)],
        )

        def f(x: Any) -> Any:
            found = []
            for same_ in (False, True, False, True):
                found.append(mg.t.f(x, B, same_))
                y = x * 1.0
                z = mg.t.f(y, x, same_)
                found += [z, mg.t.first((y, x), same_)]
                y += 1.0
                found += [z, found[-1]]
            return found

        agree(f, (A,), times=2)

    def test_a_key_that_is_not_the_second_parameter(self):
        """The version of an index array in it is noticed at each call."""
        linear(
            "t.f(x, y, /, key)",
            forward=lambda xp, x, y, key: x[key] + 0.0 * y,
            x=lambda xp, g, key, x_shape: xp.scatter_add(xp.zeros(x_shape), key[1:], g),
            y=lambda xp, g: 0.0 * g,
        )
        for _ in range(3):
            x, index = leaf(SQUARE), mg.asarray(np.array([0, 1]))
            y = mg.sum(mg.t.f(x, 2.0, (0, index)))
            index += 1
            with pytest.raises(GradientError, match="an index array of TFBackward"):
                mg.autograd.grad(y, x)

    def test_that_a_backend_carries_out_itself(self, monkeypatch):
        """Its function returns the argument, or no array, for some values of a setting."""

        def roll(x: Any, shift: int, *, axis: Any = None) -> Any:
            return np.roll(x, shift, axis) if 0 < shift < 3 else x if shift == 0 else 2.0

        def f(x: Any) -> Any:
            y = x * 1.0
            found = [mg.roll(y, shift) for shift in (1, 0, 2, 0)]
            y += 1.0
            return found

        library = CONSTANT._elem.library
        monkeypatch.setitem(library.backend.functions, "roll", roll)
        library.xp._forget()
        try:
            agree(f, (A,), ("tape", "no_grad", "grad", "jvp", "vmap", "jvp of grad"))
            with runners.interpreted():
                expected = mg.roll(CONSTANT, 3)
            for shift in (1, 1, 3):
                found = mg.roll(CONSTANT, shift)
            assert found == expected == 2.0
        finally:
            monkeypatch.undo()
            library.xp._forget()

    @pytest.mark.parametrize("first", ["same", "integer", "truth"])
    def test_whose_results_change(self, first):
        """Another dtype, another shape, a subclass, an array of another library, a number."""

        class Sub(np.ndarray):
            pass

        strict = mg.asarray(np.ones(3), backend="strict").array
        results = {
            "same": lambda x: x * 2.0,
            "dtype": lambda x: (x * 2.0).astype("float32"),
            "integer": lambda x: x.astype("int64"),
            "truth": lambda x: x > 1,
            "shape": lambda x: np.sum(x, axis=-1),
            "subclass": lambda x: (x * 2.0).view(Sub),
            "scalar": lambda x: np.float64(2.0),
            "library": lambda x: strict,
            "number": lambda x: 2.0,
            "nothing": lambda x: None,
        }
        for declare, rules in (
            (linear, {"x": lambda xp, g: g}),
            (elementwise, {"x": lambda xp, g: g * 2.0}),
            (elementwise, {"x": 2.0}),
            (define, {"x": lambda xp, g: g, "jvp": lambda xp, t: t}),
            (define, {"nondifferentiable": True}),
        ):
            if "nondifferentiable" in rules:
                registry.nondifferentiable(
                    "t.f(x, /, what)", forward=lambda xp, x, what: results[what](x), override=True
                )
            else:
                declare(
                    "t.f(x, /, what)",
                    forward=lambda xp, x, what: results[what](x),
                    override="t.f" in registry.OPS,
                    **rules,
                )

            def f(x: Any) -> Any:
                found = []
                for what in (first, *results):
                    try:
                        found.append(mg.t.f(x, what))
                    except Exception as error:
                        found.append(f"{what}: {type(error).__name__}: {error}")
                return found

            with (
                pytest.warns(UserWarning, match="batching")
                if declare is define
                else (warnings.catch_warnings())
            ):
                agree(f, (A,), ("tape", "no_grad", "jvp", "vmap", "jvp of grad", "grad of grad"))

    def test_a_rule_that_stands_for_another(self):
        """It shows the code of the other, which returns its argument, and does more."""

        class Tenfold:
            def __init__(self, rule: Any) -> None:
                self.rule = rule

            def __getattr__(self, name: str) -> Any:
                return getattr(self.rule, name)

            def __call__(self, *args: Any) -> Any:
                return 10 * self.rule(*args)

        elementwise("t.f(x, /)", forward=lambda xp, x: x * 10, x=Tenfold(lambda xp, g: g))
        agree(mg.t.f, (A,))
        x = leaf(A)
        (g,) = mg.autograd.grad(mg.sum(mg.t.f(x)), x)
        np.testing.assert_array_equal(g.array, np.full(3, 10.0))

    def test_a_setting_before_the_arrays(self):
        """What stands for a scalar in the text is that of its own parameter."""
        elementwise(
            "t.f(m: plain, x, y, /)",
            forward=lambda xp, m, x, y: m * x - y,
            x=lambda xp, g, m: g * m,
            y=-1,
        )
        agree(lambda x: mg.t.f(2, x, 3.0), (A,))

    def test_a_declaration_that_comes_back(self):
        """A function that was held meanwhile follows what replaces it then."""
        before = linear("t.f(x, /)", forward=lambda xp, x: x * 1.0, x=lambda xp, g: g)
        held, table = functions.function_of(before), dict(registry.OPS)
        expected = []
        for factor in (2.0, 3.0):
            expected += [held(CONSTANT), held(CONSTANT)]
            linear(
                "t.f(x, /)",
                forward=lambda xp, x, factor=factor: x * factor,
                x=lambda xp, g: g,
                override=True,
            )
            np.testing.assert_array_equal(held(CONSTANT).array, CONSTANT.array * factor)
            registry.restore(table)
        for y in expected:
            np.testing.assert_array_equal(y.array, CONSTANT.array)

    def test_a_complex_number_beside_a_scalar_of_numpy(self):
        """Its operators take np.float64 for a float, and return a complex number of Python."""
        elementwise("t.f(x, y, z, /)", forward=lambda xp, x, y, z: y * z, x=0)
        agree(lambda x: mg.t.f(x, 1j, np.float64(2.0)), (A[0, ...],), ("tape", "jvp"))

    @pytest.mark.filterwarnings("ignore:the operation")
    @pytest.mark.runs_once
    def test_of_every_kind(self):
        """With and without rules for tangents and batches."""
        size: dict[str, Any] = {"batching": lambda xp, x, y, size: x * y}
        mean = {
            "forward": lambda xp, x, y: x * y,
            "x": lambda xp, g, y: g * y,
            "y": lambda xp, g, x: g * x,
        }
        tangents = lambda xp, t_x, t_y, x, y: t_x * y + x * t_y
        moving = lambda xp, t_x, t_y, x, y: (
            t_x * y if t_y is None else x * t_y if t_x is None else t_x * y + x * t_y
        )
        declared = {
            "t.e1(x, y, /)": (elementwise, mean),
            "t.e2(x, y, /)": (elementwise, mean | {"x": lambda xp, y: y, "y": lambda xp, x: x}),
            "t.e3(x, y, /)": (elementwise, {"forward": mean["forward"], "x": lambda xp, y: y}),
            "t.m1(x, y, /)": (multilinear, mean),
            "t.m2(x, y, /)": (multilinear, mean | size),
            "t.l1(x, y, /)": (linear, {"forward": mean["forward"], "x": mean["x"]}),
            "t.l2(x, y, /)": (linear, {"forward": mean["forward"], "x": mean["x"]} | size),
            "t.d1(x, y, /)": (define, mean | {"jvp": tangents}),
            "t.d2(x, y, /)": (define, mean | {"jvp": tangents} | size),
            "t.d3(x, y, /)": (define, mean | {"jvp": tangents, "batching": "elementwise"}),
            "t.d4(x, y, /)": (define, mean | {"jvp": moving, "materialize": False}),
            "t.d5(x, y, /)": (define, mean),
        }
        for text, (declare, rules) in declared.items():
            declare(text, **rules)
        others = (B, B.astype("float32"), CONSTANT, 2.0, np.float64(2.0), np.ones((2, 1)))
        for name in (text[2:4] for text in declared):

            def f(x: Any, name: str = name) -> Any:
                call, found = getattr(mg.t, name), []
                for y in (x, x * 2.0, *others):
                    for pair in ((x, y), (y, x)):
                        try:
                            found.append(call(*pair))
                        except Exception as error:
                            found.append(f"{type(error).__name__}: {error}")
                return found

            agree(f, (A,), times=2)


# ----- Dtypes of JAX -----


class TestJAX:
    """The dtype of a result is not always that of the first one."""

    @pytest.fixture(autouse=True)
    def restored(self):
        self.jax = pytest.importorskip("jax")
        before = self.jax.config.jax_enable_x64
        self.jax.config.update("jax_enable_x64", True)
        yield
        self.jax.config.update("jax_enable_x64", before)

    @staticmethod
    def dtypes(f: Callable[[Any], Any], x: Any) -> list[Any]:
        """What Tensors, Duals and batches say, and what their arrays have."""
        found: list[Any] = []

        def run(t: Any) -> Any:
            y = f(t)
            found.append((str(y.dtype), str(innermost(y).dtype)))
            return y

        run(mg.asarray(x, requires_grad=x.dtype.kind == "f"))
        func.vmap(run)(x[None])
        if x.dtype.kind == "f":
            func.jvp(run, (x,), (x,))
            func.grad(lambda x: mg.sum(run(x) * x))(x)
        return found

    OPERATIONS: ClassVar[dict[str, Callable[[Any], Any]]] = {
        "argmax": mg.argmax,
        "argsort": mg.argsort,
        "count_nonzero": mg.count_nonzero,
        "searchsorted": lambda x: mg.searchsorted(x, x),
        "sum": mg.sum,
        "cumulative_sum": mg.cumulative_sum,
        "divide": lambda x: x / 2,
        "multiply": lambda x: x * 2.5,
        "astype": lambda x: mg.astype(x, "float64"),
        "where": lambda x: mg.where(x > 1, x, 2.5),
    }

    @pytest.mark.filterwarnings("ignore:Explicitly requested dtype")
    @pytest.mark.parametrize(
        ("name", "dtype"),
        [("divide", "int32"), ("multiply", "int32"), ("astype", "float32"), ("where", "int32")]
        + [(n, "float32") for n in ("argmax", "sum", "divide", "where")]
        + [
            (n, "int32")
            for n in ("argmax", "argsort", "count_nonzero", "searchsorted", "sum", "cumulative_sum")
        ],
    )
    def test_after_the_switch_to_64_bits(self, name, dtype):
        x = self.jax.numpy.asarray(np.array([3, 1, 2], dtype))
        expected = {}
        for on in (True, False):
            self.jax.config.update("jax_enable_x64", on)
            with runners.interpreted():
                expected[on] = self.dtypes(self.OPERATIONS[name], x)
        seen = []
        for on in (False, True, False):
            self.jax.config.update("jax_enable_x64", on)
            for _ in range(2):
                seen.append(self.dtypes(self.OPERATIONS[name], x) == expected[on])
        assert all(seen)

    @pytest.mark.filterwarnings("ignore:Explicitly requested dtype")
    @pytest.mark.parametrize("name", ["sum", "mean", "cumulative_sum", "matmul", "multiply"])
    def test_what_64_bits_have_left(self, name):
        """Arrays of float64 live on when the switch is off."""
        x = mg.asarray(self.jax.numpy.asarray([1.0, 2.0]), requires_grad=True)
        f = getattr(mg, name)
        run = lambda: f(x, x) if name in ("matmul", "multiply") else f(x)
        for _ in range(2):
            run()
        self.jax.config.update("jax_enable_x64", False)
        found = run()
        assert found._elem.dtype == found.array.dtype

    @pytest.mark.parametrize("weak_first", [False, True])
    def test_arrays_of_a_weak_type(self, weak_first):
        """Beside another dtype, they give way; two arrays of one dtype need not be alike."""
        jnp = self.jax.numpy
        single = jnp.asarray([1.0, 2.0], dtype="float32")
        weak, strong = jnp.asarray(1.5), jnp.asarray(1.5, dtype="float64")
        assert weak.weak_type and weak.dtype == strong.dtype
        for f in (
            lambda x: x * mg.asarray(single),
            lambda x: single + x,
            lambda x: mg.where(x > 0, x, mg.asarray(single)),
            lambda x: mg.concat([mg.reshape(x, (1,)), mg.asarray(single)]),
        ):
            with runners.interpreted():
                expected = [self.dtypes(f, x) for x in (strong, weak)]
            for is_weak in (weak_first, weak_first, not weak_first):
                assert self.dtypes(f, (strong, weak)[is_weak]) == expected[is_weak]


# ----- More -----

PART = (("getitem", (slice(0, 2),), None),)


class TestViews:
    """The first call, on the general path, and later ones make the same views."""

    @pytest.mark.parametrize(
        ("name", "usual", "same"),
        [
            ("read_slices", lambda x: (x, PART), lambda x: (x, ())),
            ("copy_slices", lambda x: (x, x[:2], PART), lambda x: (x, x, ())),
            ("softmax", lambda x: (x,), lambda x: (x[:0],)),
        ],
    )
    def test_of_functions_that_may_return_their_argument(self, name, usual, same):
        x, function = leaf(A), functions.function_of(registry.OPS[name])
        for _ in range(3):
            assert function(*usual(x))._view is None
        assert function(*same(x))._cell is x._cell

    def test_in_the_forward_of_a_function(self):
        class Reshaped(mg.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                runners.forget()
                views = [x.reshape((3, 1)) for _ in range(3)]
                assert [v._view[4] for v in views] == [False] * 3
                return views[0] * 1.0

            @staticmethod
            def backward(ctx, g):
                return g.reshape((3,))

        Reshaped.apply(leaf(A))


@pytest.mark.parametrize("kind", [list, type("Axes", (list,), {})])
@pytest.mark.parametrize("name", ["sum", "max", "flip"])
def test_a_list_of_axes_at_every_level(xp, name, kind):
    x = xp.reshape(xp.arange(6.0), (2, 3)).array
    places = ("tape", "grad", "jvp", "vmap", "jvp of grad")
    for where in places * 3:
        found = told(lambda x: getattr(xp, name)(x, axis=kind([0, 1])), (x,), where)
        same(found, told(lambda x: getattr(xp, name)(x, axis=(0, 1)), (x,), where), where)


@pytest.mark.parametrize("name", ["sum", "astype"])
def test_the_name_of_a_dtype_at_every_level(xp, name):
    call = {"sum": lambda x, d: mg.sum(x, dtype=d), "astype": mg.astype}[name]
    x = xp.asarray([1.0, 2.0]).array
    for where in ("tape", "grad", "jvp", "vmap", "jvp of grad") * 3:
        found = told(lambda x: call(x * x, "float32"), (x,), where)
        same(found, told(lambda x: call(x * x, xp.float32), (x,), where), where)
        assert "float32" in found[0]["dtype"]


def test_scalar_to_the_power_of_a_0d_tensor(xp):
    for base in (2, 2.5):
        for _ in range(3):
            x = xp.asarray(1.5, dtype=xp.float32, requires_grad=True)
            y = base**x
            assert y.dtype == x.dtype
            y.backward()
            np.testing.assert_allclose(values(x.grad), base**1.5 * np.log(base), rtol=1e-6)


def test_rule_that_widens_on_every_call(operations):
    elementwise(
        "t.widen(x, /)",
        forward=lambda xp, x: x * x,
        x=lambda xp, x: 2 * x * xp.sqrt(xp.asarray(1.0)),
    )
    for _ in range(3):
        x = leaf(np.array([1.0, 2.0], np.float32))
        mg.sum(mg.t.widen(x)).backward()
        assert x.grad.dtype == x.dtype and x.grad.array.dtype == np.float32


def test_byte_swapped_leaf_keeps_its_dtype():
    x = mg.asarray(np.array([1.0, 2.0], dtype=">f8"), requires_grad=True)
    for _ in range(3):
        mg.sum(x * x * 3).backward()
    assert values(x.grad).tolist() == [18, 36]
    assert x.grad.dtype == x.dtype


def test_where_of_another_backend():
    jnp = pytest.importorskip("jax.numpy")
    x = leaf([1.0, 2.0])
    for _ in range(3):
        mg.where(mg.asarray(np.array([True, False])), x, 0.0)
    with pytest.raises(TypeError, match="two backends"):
        mg.where(mg.asarray(jnp.asarray([True, False])), x, 0.0)


@pytest.fixture
def cube():
    """An operation that a test may declare anew; it is gone afterwards."""
    registry.elementwise(
        "test_cube(x, /)",
        x=lambda xp, x: 3 * x * x,
        forward=lambda xp, x: x * x * x,
        override="test_cube" in registry.OPS,
    )
    yield lambda partial: registry.elementwise(
        "test_cube(x, /)", x=partial, forward=lambda xp, x: x * x * x, override=True
    )
    del registry.OPS["test_cube"]
    registry.forget_remembered()


@pytest.mark.filterwarnings("ignore")
def test_a_function_held_from_before_computes_no_old_rule(cube):
    held = mg.test_cube
    ways = {
        "tape": lambda: mg.autograd.grad(mg.sum(held(x := leaf(A))), x)[0],
        "func.grad": lambda: func.grad(lambda x: mg.sum(held(x)))(A),
        "jvp": lambda: func.jvp(held, (A,), (np.ones(3),))[1],
        "vmap of grad": lambda: func.vmap(func.grad(lambda x: mg.sum(held(x))))(A[None, :])[0],
        "jvp of vmap": lambda: func.jvp(func.vmap(held), (A[None, :],), (np.ones((1, 3)),))[1][0],
        "hvp": lambda: func.jvp(func.grad(lambda x: mg.sum(x * held(x))), (A,), (np.ones(3),))[1],
    }
    for _ in range(12):
        for way, run in ways.items():
            np.testing.assert_allclose(values(run()), 12 * A**2 if way == "hvp" else 3 * A**2)
    cube(lambda xp, x: 5 * x * x)
    for _ in range(12):
        for way, run in ways.items():
            np.testing.assert_allclose(
                values(run()),
                5 * A**2 + 5 * A**2 + 10 * A**2 if way == "hvp" else 5 * A**2,
                err_msg=way,
            )
    assert mg.test_cube is not held


class TestElements:
    def test_what_outlives_its_transformation_computes_on(self):
        kept = []
        func.grad(lambda x: kept.append((x * 2).detach()) or mg.sum(x * x))(A)
        np.testing.assert_allclose(values(kept[0] * kept[0] + A), 4 * A * A + A)

    def test_nodes_do_not_keep_transformations(self):
        class Big:
            pass

        token = Big()
        seen = weakref.ref(token)
        x = leaf(A)
        y = x * B

        def f(u, token):
            return mg.sum(u * y)

        func.grad(lambda u, t=token: f(u, t))(A)
        del token
        gc.collect()
        assert seen() is None


def test_a_name_of_the_module_is_looked_up_once_and_follows_an_override(cube):
    first = mg.test_cube
    assert vars(mg)["test_cube"] is first is functions.function_of(registry.OPS["test_cube"])
    cube(lambda xp, x: 7 * x * x)
    assert "test_cube" not in vars(mg) and mg.test_cube is not first
    np.testing.assert_allclose(func.grad(lambda x: mg.sum(mg.test_cube(x)))(A), 7 * A * A)
