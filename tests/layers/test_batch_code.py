"""The straight code for batches: random programs compute by it what the general path computes, in
any composition; it declines what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import multigrad as mg
from multigrad import func
from multigrad.dispatch import plans
from multigrad.errors import BatchingError, LeakError, MixedBackendsError
from multigrad.layers import batched
from multigrad.registry import elementwise, linear
from multigrad_conformance.elementwise import BINARY, UNARY

DTYPES = ("float64", "float64", "float32", "complex128", "int64", "bool")


def axes_for(rng: Any, x: Any, several: bool = True) -> Any:
    """An axis of an example, most often one that it has; or a tuple of them, or None."""
    n = x.ndim
    kind = rng.integers(0, 8)
    if kind == 0:
        return None
    if kind == 1 and several and n:
        return tuple(
            int(a) - (n if rng.random() < 0.5 else 0)
            for a in rng.permutation(n)[: rng.integers(1, n + 1)]
        )
    return int(rng.integers(-n, n)) if n and kind != 2 else int(rng.integers(-3, 3))


def key_for(rng: Any, x: Any, pick: Callable[[str], Any]) -> Any:
    """An indexing key: integers, slices, new axes, index arrays, raw or batched."""

    def entry() -> Any:
        kind = rng.integers(0, 8)
        if kind == 0:
            return int(rng.integers(-2, 2))
        if kind == 1:
            return slice(None, None, -1)
        if kind == 2:
            return None
        if kind == 3:
            return ...
        if kind == 4:
            return pick("index")
        return slice(int(rng.integers(0, 2)), None)

    if rng.random() < 0.1:
        return [0, 1]
    return entry() if rng.random() < 0.5 else tuple(entry() for _ in range(rng.integers(1, 3)))


def unary(xp: Any, rng: Any, x: Any, pick: Any) -> Any:
    return getattr(xp, list(UNARY)[rng.integers(0, len(UNARY))])(x)


def binary(xp: Any, rng: Any, x: Any, pick: Any) -> Any:
    name, y = [*BINARY, "matmul", "vecdot"][rng.integers(0, len(BINARY) + 2)], pick("other")
    if rng.random() < 0.7 or not hasattr(y, "dtype"):
        return getattr(xp, name)(x, y)
    return getattr(xp, name)(y, x)


def along(name: str, several: bool = True, **options: Any) -> Callable[..., Any]:
    def run(xp: Any, rng: Any, x: Any, pick: Any) -> Any:
        return getattr(xp, name)(
            x,
            axis=axes_for(rng, x, several),
            **{k: v[rng.integers(0, len(v))](xp) for k, v in options.items()},
        )

    return run


def written(xp: Any, rng: Any, x: Any, pick: Any) -> None:
    """A write in place: of a part, or by an operator. Views of the same memory see it."""
    if rng.random() < 0.5:
        x[key_for(rng, x, pick)] = pick("other")
    elif rng.random() < 0.5:
        x += pick("other")
    else:
        x.sin_()


KEEP = (lambda xp: False, lambda xp: True)

STEPS: list[Callable[..., Any]] = [
    *[unary] * 12,
    *[binary] * 24,
    lambda xp, rng, x, pick: xp.zeros_like(x),
    lambda xp, rng, x, pick: xp.imag(x),
    lambda xp, rng, x, pick: xp.logical_not(x),
    *(
        along(name, keepdims=KEEP)
        for name in ("sum", "mean", "max", "any", "count_nonzero", "var", "std")
    ),
    along("sum", dtype=(lambda xp: xp.float32, lambda xp: xp.complex64, lambda xp: None)),
    *(along(name, False, keepdims=KEEP) for name in ("argmax", "argmin")),
    *(along(name, False) for name in ("argsort", "sort", "cumulative_sum", "unstack", "flip")),
    along("flip"),
    along("squeeze"),
    lambda xp, rng, x, pick: xp.where(pick("mask"), x, pick("other")),
    lambda xp, rng, x, pick: xp.where(x > 0, pick("other"), pick("other")),
    lambda xp, rng, x, pick: xp.clip(x, pick("other") if rng.random() < 0.5 else None, 0.7),
    lambda xp, rng, x, pick: xp.astype(
        x, getattr(xp, DTYPES[rng.integers(0, len(DTYPES))]), copy=bool(rng.random() < 0.5)
    ),
    lambda xp, rng, x, pick: x.mT if rng.random() < 0.5 else xp.tril(x, k=int(rng.integers(-1, 2))),
    lambda xp, rng, x, pick: xp.linalg.trace(x),
    lambda xp, rng, x, pick: xp.reshape(
        x, (-1,) if rng.random() < 0.7 else [2, -1], copy=(None, None, True)[rng.integers(0, 3)]
    ),
    lambda xp, rng, x, pick: xp.reshape(x, tuple(reversed(x.shape))),
    lambda xp, rng, x, pick: xp.expand_dims(x, axis=axes_for(rng, x, False) or 0),
    lambda xp, rng, x, pick: xp.permute_dims(x, tuple(int(a) for a in rng.permutation(x.ndim))),
    lambda xp, rng, x, pick: xp.moveaxis(x, 0, -1),
    lambda xp, rng, x, pick: xp.broadcast_to(x, (2, *x.shape)),
    lambda xp, rng, x, pick: xp.roll(x, 1, axis=axes_for(rng, x, False)),
    lambda xp, rng, x, pick: xp.take(x, pick("index"), axis=int(rng.integers(-2, 2))),
    lambda xp, rng, x, pick: xp.stack([x, pick("other"), x], axis=int(rng.integers(-2, 2))),
    lambda xp, rng, x, pick: xp.concat(
        (x, pick("other"), x), axis=(0, -1, None)[rng.integers(0, 3)]
    ),
    lambda xp, rng, x, pick: xp.broadcast_arrays(x, pick("other")),
    lambda xp, rng, x, pick: xp.tile(x, (2, 1)),
    lambda xp, rng, x, pick: xp.repeat(x, 2, axis=axes_for(rng, x, False)),
    lambda xp, rng, x, pick: xp.tensordot(x, pick("other"), axes=1),
    *[lambda xp, rng, x, pick: x[key_for(rng, x, pick)]] * 4,
    *[written] * 4,
    lambda xp, rng, x, pick: x.detach(),
    lambda xp, rng, x, pick: pick("other") * x,
]


def program(xp: Any, seed: int, told: list[str], *inputs: Any) -> list[Any]:
    """A random program: all arrays that it made, and, in `told`, what its steps raised."""
    rng = np.random.default_rng(seed)
    raw = lambda x: xp.asarray(np.array(x)).detach().array
    plain = [raw(rng.normal(size=shape)) for shape in ((), (3,), (2, 3), (2, 1, 3))]
    plain += [
        raw(rng.normal(size=3).astype(np.float32)),
        raw(rng.normal(size=3) + 1j),
        raw(np.arange(3)),
    ]
    with mg.no_grad():
        constants = [xp.asarray(x) for x in plain]
    pool = list(inputs)

    def pick(what: str) -> Any:
        of_pool = pool[rng.integers(0, len(pool))]
        if what == "other":
            scalar = (2, 0.5, True, 1j, np.float64(1.5))[rng.integers(0, 5)]
            choice: Any = (
                of_pool,
                of_pool,
                plain[rng.integers(0, len(plain))],
                constants[rng.integers(0, len(constants))],
                scalar,
            )
            return choice[rng.integers(0, 5)]
        if what == "mask":
            return of_pool > 0.5 if rng.random() < 0.7 else constants[1] > 0
        index = raw(rng.integers(0, 2, size=3))
        choice = (
            index,
            xp.asarray(index),
            xp.astype(of_pool > 0.5, "int64") if rng.random() < 0.7 else 1,
        )
        return choice[rng.integers(0, 3)]

    for _ in range(14):
        step = STEPS[rng.integers(0, len(STEPS))]
        try:
            found = step(xp, rng, pool[rng.integers(0, len(pool))], pick)
        except Exception as error:  # the same one on both ways
            told.append(f"{type(error).__name__}: {error}")
            continue
        pool += [
            x
            for x in (found if isinstance(found, (tuple, list)) else (found,))
            if hasattr(x, "dtype")
        ]
    return pool


def loss(xp: Any, arrays: list[Any]) -> Any:
    """A real scalar of all arrays with few elements."""
    total = xp.asarray(0.0)
    for x in arrays:
        if not xp.isdtype(x.dtype, ("bool", "integral")) and x.size and x.size < 100:
            total = total + xp.mean(xp.astype(xp.real(xp.sin(x)), "float64"))
    return total


def composed(xp: Any, seed: int, told: list[str]) -> dict[str, Callable[[Any, Any], Any]]:
    """The compositions in which the program runs; two arrays with a batch in front, the second one
    of two batches for nested ones.
    """
    run = lambda *inputs: program(xp, seed, told, *inputs)
    summed = lambda *inputs: loss(xp, run(*inputs))
    pushed = lambda f: lambda x, y: func.jvp(f, (x, y), (x * 0.5, y + 1))
    return {
        "vmap": lambda x, y: func.vmap(run)(x, y),
        "vmap of one": lambda x, y: func.vmap(run, in_axes=(0, None))(x, y[0, ...]),
        "vmap of vmap": lambda x, y: func.vmap(
            func.vmap(run, in_axes=(0, None)), in_axes=(None, 0)
        )(x, y),
        "vmap of grad": lambda x, y: func.vmap(func.grad(summed, argnums=(0, 1)))(x, y),
        "grad of vmap": lambda x, y: func.grad(
            lambda x, y: xp.sum(func.vmap(summed)(x, y)), argnums=(0, 1)
        )(x, y),
        "vmap of jvp": lambda x, y: func.vmap(pushed(run))(x, y),
        "jvp of vmap": lambda x, y: pushed(func.vmap(run))(x, y),
        "vmap of Tensors": lambda x, y: func.vmap(run)(
            *(xp.asarray(v, requires_grad=True) for v in (x, y))
        ),
    }


def outcome(
    function: Callable[..., Any], told: list[str], *inputs: Any
) -> tuple[list[Any], list[str]]:
    """What a function returns and what its steps raised.

    What is the same for all examples is written where it lies, so it gets copies.
    """
    told.clear()
    try:
        found = function(*(mg.asarray(x, copy=True).array for x in inputs))
    except Exception as error:
        told.append(f"outside: {type(error).__name__}: {error}")
        found = []
    return list(func.tree.leaves(found)), list(told)


def generally(
    function: Callable[..., Any], told: list[str], *inputs: Any
) -> tuple[list[Any], list[str]]:
    with plans.interpreted():
        return outcome(function, told, *inputs)


def as_numpy(x: Any) -> Any:
    return np.asarray(mg.asarray(x, backend="numpy").detach().array)


def same(found: list[Any], expected: list[Any], single: bool = False) -> None:
    assert len(found) == len(expected)
    for x, y in zip(found, expected, strict=True):
        assert (
            type(x) is type(y)
            and x.dtype == y.dtype
            and getattr(x, "requires_grad", None) == getattr(y, "requires_grad", None)
        )
        np.testing.assert_allclose(as_numpy(x), as_numpy(y), rtol=1e-12, atol=1e-12)


NAMES = (
    "vmap",
    "vmap of one",
    "vmap of vmap",
    "vmap of grad",
    "grad of vmap",
    "vmap of jvp",
    "jvp of vmap",
    "vmap of Tensors",
)


@pytest.mark.sweep_after(4)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("library", ["numpy", "strict"])
def test_programs(library, name):
    xp = mg.namespace(library)
    raised: list[str] = []
    steps = 0
    for seed in range(60 if library == "numpy" else 25):
        rng = np.random.default_rng(seed)
        shape = [(), (3,), (2, 3), (3, 3)][seed % 4]
        x, y = (xp.asarray(rng.normal(size=(2, *s))).detach().array for s in (shape, (3,)))
        told: list[str] = []
        run = composed(xp, seed, told)[name]
        expected, errors = generally(run, told, x, y)
        for _ in range(2):  # the endings are written in the first run
            found, others = outcome(run, told, x, y)
            assert others == errors
            same(found, expected)
        raised += errors
        steps += len(expected)
    # programs that do something, right and wrong
    assert steps > (40 if "grad" in name else 100) and len(set(raised)) > 10


class TestEndings:
    """What is taken, and what is declined."""

    def run(self, f: Callable[[Any], Any], x: Any = None) -> Any:
        return func.vmap(f)(np.ones((2, 3)) if x is None else x)

    @pytest.mark.runs_once
    @pytest.mark.parametrize(
        "name",
        ["sin", "multiply", "sum", "tril", "reshape", "getitem", "stack", "matmul", "unstack"],
    )
    def test_none_reaches_the_general_path(self, name, monkeypatch):
        """After the first call, the operation on batches is straight code: of raw values, and of
        layers.
        """
        calls = {
            "sin": mg.sin,
            "multiply": lambda x: 2.0 * x * np.ones(2),
            "sum": lambda x: mg.sum(x, axis=-1),
            "getitem": lambda x: x[1:, 0],
            "tril": mg.tril,
            "reshape": lambda x: mg.reshape(x, (-1,)),
            "stack": lambda x: mg.stack([x, np.ones((2, 2))]),
            "matmul": lambda x: np.ones((2, 2)) @ x,
            "unstack": lambda x: mg.unstack(x)[0],
        }
        f, x = calls[name], np.ones((3, 2, 2))
        both = func.vmap(f), func.vmap(func.vmap(f, in_axes=0), in_axes=0)
        inputs = x, np.ones((2, 3, 2, 2))
        expected = [run(v) for run, v in zip(both, inputs, strict=True)]

        def refused(*_: Any) -> Any:
            raise AssertionError("the general path")

        monkeypatch.setattr(batched.Batched, "_apply", staticmethod(refused))
        for run, v, before in zip(both, inputs, expected, strict=True):
            np.testing.assert_array_equal(run(v), before)

    def test_what_is_declared_anew(self, operations):
        elementwise("t.f(x, /)", forward=lambda xp, x: x + 1, x=1)
        f = mg.t.f
        np.testing.assert_array_equal(self.run(f), np.full((2, 3), 2.0))
        elementwise("t.f(x, /)", forward=lambda xp, x: x + 2, x=1, override=True)
        np.testing.assert_array_equal(self.run(f), np.full((2, 3), 3.0))
        linear(
            "t.f(x, /)",
            forward=lambda xp, x: x + 3,
            x=lambda xp, g: g,
            batching=lambda xp, x: x + 4,
            override=True,
        )
        np.testing.assert_array_equal(self.run(f), np.full((2, 3), 5.0))

    def test_a_replacement_while_it_is_running(self, operations):
        elementwise("t.f(x, /)", forward=lambda xp, x: x + 1, x=1)
        f = mg.t.f

        def run(x: Any) -> Any:
            x = f(x)
            elementwise("t.f(x, /)", forward=lambda xp, x: x + 10, x=1, override=True)
            return f(x)

        np.testing.assert_array_equal(self.run(run), np.full((2, 3), 12.0))

    def test_parameters_with_names_of_builtins(self, operations):
        rule = lambda xp, x, max, len, sum: x * max + len + sum
        linear(
            "t.f(x, y, /, max, len=1.0, *, sum=0.5)",
            forward=lambda xp, x, y, *args: rule(xp, x + y, *args),
            x=lambda xp, g, max: g * max,
            y=lambda xp, g, max: g * max,
            batching=lambda xp, x, y, max, len, sum: rule(xp, x + y, max, len, sum),
        )
        np.testing.assert_array_equal(self.run(lambda x: mg.t.f(x, 1.0, 2.0)), np.full((2, 3), 5.5))

    @pytest.mark.runs_once
    @pytest.mark.parametrize("batching", ["axis", "leading", "elementwise", "rule"])
    def test_what_a_rule_is_told(self, operations, batching):
        told: list[Any] = []

        def rule(xp: Any, x: Any, y: Any, sizes: Any, size: Any, batched: Any) -> Any:
            told.append((x.shape, getattr(y, "shape", y), size, batched))
            return x + y

        if batching == "rule":
            linear(
                "t.f(x, y, /, sizes)",
                forward=lambda xp, x, y, sizes: x + y,
                x=lambda xp, g: g,
                y=lambda xp, g: g,
                batching=rule,
            )
            both = {"x": True, "sizes": (False, False)}
            for y, shape, own in (
                (np.ones(3), (1, 3), False),
                (2.0, 2.0, False),
                (None, (2, 3), True),
            ):
                told.clear()
                for _ in range(2):
                    self.run(lambda x, y=y: mg.t.f(x, x if y is None else y, (1, 2)))
                assert told == [((2, 3), shape, 2, both | {"y": own})] * 2
            return
        linear(
            "t.f(x, y, /, axis=None)",
            forward=lambda xp, x, y, axis: x + y,
            x=lambda xp, g: g,
            y=lambda xp, g: g,
            batching=batching,
        )
        for _ in range(2):  # two arrays are declared for one: the general path sees to it
            if batching == "elementwise":
                np.testing.assert_array_equal(
                    self.run(lambda x: mg.t.f(x, x)), np.full((2, 3), 2.0)
                )
            else:
                assert self.run(lambda x: mg.t.f(x, 1.0), np.ones((2, 3, 3))).shape == (2, 3, 3)

    def test_an_axis_that_is_not_declared(self, operations):
        linear("t.f(x, /)", forward=lambda xp, x: x, x=lambda xp, g: g, batching="axis")
        for _ in range(2):
            with pytest.raises(TypeError, match="KeyError: .axes."):
                self.run(mg.t.f)

    def test_what_is_wrong(self):
        other = mg.asarray([1.0, 2.0, 3.0], backend="strict")
        leaked: list[Any] = []
        for _ in range(2):
            self.run(lambda x: leaked.append(x) or x)
            for f, error in (
                (lambda x: x + other, MixedBackendsError),
                (lambda x: mg.multiply(other.array, x), MixedBackendsError),
                (lambda x: mg.sin(leaked[0]), LeakError),
                (lambda x: x + leaked[-1], LeakError),
                (lambda x: leaked[0][0], LeakError),
                (lambda x: mg.sum(x, axis=x[0]), BatchingError),
                (lambda x: mg.roll(x, (x[0],)), BatchingError),
                (lambda x: mg.sum(x, axis=1), IndexError),
                (lambda x: mg.tril(x), ValueError),
                (lambda x: x[x > 0], BatchingError),
                (lambda x: x + "a", TypeError),
                (lambda x: mg.stack([x, "a"]), TypeError),
            ):
                with pytest.raises(error):
                    self.run(f)
