"""The straight code of Duals computes what the general path computes: values, tangents, dtypes,
views, errors.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from conftest import values

import multigrad as mg
from multigrad import func, registry
from multigrad.autograd import forward_ad
from multigrad.core.aliasing import last_change
from multigrad.core.level import Layer
from multigrad.core.tensor import element_of
from multigrad.dispatch import plans
from multigrad.errors import GradientError, MissingRuleError, MixedBackendsError
from multigrad.layers import tangents
from multigrad.layers.dual import Dual
from multigrad_conformance.elementwise import BINARY, UNARY

DTYPES = ("float64", "float32", "complex128", "int64", "bool")
SHAPE = (2, 3)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Straight code from the first call on."""
    monkeypatch.setattr(tangents, "PATIENCE", 0)


# Steps take the namespace, a source of choices, and two or three arrays of the pool.
SCALARS = (2, 0.5, -1.5, True, 1 + 2j, 0)

STEPS: dict[str, Callable[..., Any]] = {
    "unary": lambda xp, r, x, y, z: getattr(xp, r.choice(tuple(UNARY)))(x),
    "binary": lambda xp, r, x, y, z: getattr(xp, r.choice(tuple(BINARY)))(x, y),
    "operator": lambda xp, r, x, y, z: r.choice(
        (operator.add, operator.mul, operator.sub, operator.truediv, operator.pow, operator.lt)
    )(x, y),
    "scalar": lambda xp, r, x, y, z: getattr(xp, r.choice(tuple(BINARY)))(
        *r.choice(((x, r.choice(SCALARS)), (r.choice(SCALARS), x)))
    ),
    "scalar operator": lambda xp, r, x, y, z: r.choice(
        (lambda c: x + c, lambda c: c * x, lambda c: c - x, lambda c: x / c)
    )(r.choice(SCALARS)),
    "clip": lambda xp, r, x, y, z: xp.clip(
        x, r.choice((None, -0.5, y)), max=r.choice((None, 0.7, z))
    ),
    "where": lambda xp, r, x, y, z: xp.where(x != y, r.choice((x, 0.0)), z),
    "sum": lambda xp, r, x, y, z: xp.sum(
        x, axis=r.choice((None, 0, -1)), keepdims=r.choice((False, True))
    ),
    "sum in a dtype": lambda xp, r, x, y, z: xp.sum(
        x, axis=0, dtype=r.choice(("float32", "float64", "complex128"))
    ),
    "statistics": lambda xp, r, x, y, z: getattr(
        xp, r.choice(("mean", "var", "std", "max", "prod"))
    )(x, axis=r.choice((None, -1))),
    "sort": lambda xp, r, x, y, z: getattr(xp, r.choice(("sort", "cumulative_sum")))(x, axis=-1),
    "astype": lambda xp, r, x, y, z: xp.astype(
        x, getattr(xp, r.choice(DTYPES[:4])), copy=r.choice((True, False))
    ),
    "shape": lambda xp, r, x, y, z: r.choice(
        (
            lambda: xp.reshape(x, (-1,)),
            lambda: xp.expand_dims(x, axis=0),
            lambda: xp.flip(x, axis=0),
            lambda: xp.broadcast_to(x, (2, *x.shape)),
            lambda: xp.permute_dims(x, (1, 0)),
            lambda: x.mT,
        )
    )(),
    "index": lambda xp, r, x, y, z: x[
        r.choice((0, -1, slice(1, None), Ellipsis, (Ellipsis, 0), (slice(None), None)))
    ],
    "index array": lambda xp, r, x, y, z: x[
        r.choice(
            (np.asarray([1, 0, 1]), (slice(None), np.asarray([0, 1])), np.asarray([True, False]))
        )
    ],
    "index of the pool": lambda xp, r, x, y, z: x[
        y if y._elem.bool else xp.astype(y, xp.int64) % 2
    ],
    "take": lambda xp, r, x, y, z: xp.take(x, np.asarray([0, 0, 1]), axis=0),
    "lists": lambda xp, r, x, y, z: r.choice(
        (
            lambda: xp.stack([x, y, x]),
            lambda: xp.concat([x, z, y]),
            lambda: xp.concat((x, y), axis=None),
        )
    )(),
    "product": lambda xp, r, x, y, z: r.choice(
        (
            lambda: xp.matmul(x, xp.matrix_transpose(y)),
            lambda: xp.tensordot(x, y, axes=0),
            lambda: xp.vecdot(x, y),
            lambda: x @ y,
        )
    )(),
    "parts": lambda xp, r, x, y, z: getattr(xp, r.choice(("real", "imag", "conj")))(x),
    "several": lambda xp, r, x, y, z: r.choice(
        (lambda: xp.unstack(x)[0], lambda: xp.broadcast_arrays(x, y)[1] * 1)
    )(),
    "like": lambda xp, r, x, y, z: r.choice(
        (
            lambda: xp.zeros_like(x),
            lambda: xp.full_like(x, 2.0) * x,
            lambda: xp.linspace(xp.sum(x), 2.0, 3),
        )
    )(),
    "in place": lambda xp, r, x, y, z: r.choice((operator.imul, operator.iadd, operator.ipow))(
        x, r.choice((y, 0.5))
    ),
    "write": lambda xp, r, x, y, z: x.__setitem__(
        r.choice((0, (Ellipsis, 1), slice(None, 1))), r.choice((0.25, y[0]))
    ),
    "detach": lambda xp, r, x, y, z: x.detach() * y,
}


def check(x: Any) -> None:
    """What every Dual of a running transformation is like."""
    while isinstance(x, Layer):
        if isinstance(x, Dual) and (x._view is None or x._seen == last_change(x._cell)):
            t = x._tangent
            assert t is None or (tuple(t.shape), t.dtype) == (tuple(x._array.shape), x._array.dtype)
            assert x._elem.dtype == x._array.dtype
            assert x._elem.layered or not (isinstance(x._array, Layer) or isinstance(t, Layer))
            assert x._elem.base is element_of(x._array)
            assert x._elem.plans is x._elem.base._families[Dual, x._elem.layered]
        x = x._array


def program(seed: int) -> Callable[..., list[Any]]:
    """A function of two arrays that returns all that it computes of them.

    An error is one of its results.
    """
    names = sorted(STEPS)
    choice = random.Random(seed)
    drawn = [
        (choice.choice(names), choice.randrange(1 << 30)) for _ in range(choice.randrange(3, 9))
    ]

    def run(a: Any, b: Any, seen: list[Any] | None = None) -> list[Any]:
        xp = mg.namespace("numpy")
        data = np.random.default_rng(seed)
        pool = [
            a,
            b,
            xp.asarray(data.normal(size=SHAPE)),
            xp.asarray(data.integers(-2, 3, size=SHAPE)),
            data.normal(size=SHAPE).astype(np.float32),
            xp.asarray(data.normal(size=(3,))),
        ]
        found = []
        for name, number in drawn:
            r = random.Random(number)
            x = pool[r.choice((0, 1, len(pool) - 1))] * 1
            operands = [r.choice((x, pool[0])), r.choice(pool), r.choice(pool)]
            try:
                y = STEPS[name](xp, r, *operands)
            except (TypeError, ValueError, RuntimeError, IndexError, AttributeError) as error:
                if seen is not None:
                    seen.append((name, type(error).__name__))
                continue
            y = operands[0] if y is None else y
            y = y if isinstance(y, Layer) else xp.asarray(y)
            check(y)
            pool.append(y)
            if seen is not None:
                seen.append(name)
            if y._elem.floating:
                found.append(y)
        return found or [a * 1.0]

    return run


def inputs(seed: int) -> tuple[Any, Any, Any, Any]:
    data = np.random.default_rng(seed + 1000)
    kinds = random.Random(seed).choices(DTYPES[:3], k=2)
    shapes = random.Random(seed + 1).choice(((SHAPE, SHAPE), (SHAPE, (3,)), ((2, 1), SHAPE)))

    def drawn(kind: str, shape: Any) -> Any:
        x = data.normal(size=shape) + (1j * data.normal(size=shape) if kind == "complex128" else 0)
        return x.astype(kind)

    a, b = (drawn(k, s) for k, s in zip(kinds, shapes, strict=True))
    return a, b, drawn(kinds[0], shapes[0]), drawn(kinds[1], shapes[1])


def total(found: list[Any]) -> Any:
    return sum(mg.sum(mg.real(x) * 0.5) for x in found)


def pushed(f: Callable[..., Any], a: Any, b: Any, ta: Any, tb: Any) -> Any:
    return func.jvp(f, (a, b), (ta, tb))


def _of_grad(f: Callable[..., Any], a: Any, b: Any, ta: Any, tb: Any) -> Any:
    return pushed(func.grad(lambda u, v: total(f(u, v)), argnums=(0, 1)), a, b, ta, tb)


def _of_tensors(f: Callable[..., Any], a: Any, b: Any, ta: Any, tb: Any) -> Any:
    x, y = mg.asarray(a, requires_grad=True), mg.asarray(b)
    outs, moved = pushed(f, x, y, mg.asarray(ta, requires_grad=True), mg.asarray(tb))
    loss = total([*outs, *moved])
    return (
        outs,
        moved,
        mg.autograd.grad(loss, [x], allow_unused=True) if loss.requires_grad else None,
    )


def _of_levels(f: Callable[..., Any], a: Any, b: Any, ta: Any, tb: Any) -> Any:
    with forward_ad.dual_level():
        found = f(forward_ad.make_dual(mg.asarray(a), mg.asarray(ta)), mg.asarray(b))
        return [tuple(forward_ad.unpack_dual(x)) for x in found]


MODES: dict[str, Callable[..., Any]] = {
    "jvp": pushed,
    "jvp by one": lambda f, a, b, ta, tb: func.jvp(lambda u: f(u, b), (a,), (ta,)),
    "jvp of jvp": lambda f, a, b, ta, tb: pushed(
        lambda u, v: pushed(f, u, v, ta, v * 0.5), a, b, ta, tb
    ),
    "jvp of jvp of constants": lambda f, a, b, ta, tb: func.jvp(
        lambda u: func.jvp(lambda v: f(u, v), (b,), (tb,)), (a,), (ta,)
    ),
    "jvp of grad": _of_grad,
    "grad of jvp": lambda f, a, b, ta, tb: func.grad(
        lambda u: total(func.jvp(lambda v: f(u, v), (b,), (tb,))[1])
    )(a),
    "vmap of jvp": lambda f, a, b, ta, tb: func.vmap(
        lambda t: func.jvp(lambda u: f(u, b), (a,), (t,))
    )(np.stack([ta, a, ta])),
    "vmap of jvp of grad": lambda f, a, b, ta, tb: func.vmap(
        lambda t: func.jvp(func.grad(lambda u: total(f(u, b))), (a,), (t,))
    )(np.stack([ta, a])),
    "jvp of vmap": lambda f, a, b, ta, tb: func.jvp(
        func.vmap(lambda u: f(u, b)), (np.stack([a, ta]),), (np.stack([ta, a]),)
    ),
    "of Tensors": _of_tensors,
    "levels": _of_levels,
}


def flat(x: Any) -> Iterator[Any]:
    if isinstance(x, (tuple, list)):
        for y in x:
            yield from flat(y)
    elif x is not None:
        yield x


def outcome(mode: str, seed: int) -> tuple[list[Any], list[Any]]:
    """The results, and which steps were made, or the error that ended it."""
    seen: list[Any] = []
    f = program(seed)
    try:
        with np.errstate(all="ignore"):
            found = list(flat(MODES[mode](lambda a, b: f(a, b, seen), *inputs(seed))))
    except (
        GradientError,
        TypeError,
        ValueError,
        RuntimeError,
        NotImplementedError,
        ZeroDivisionError,
    ) as error:
        return [], [*seen, type(error).__name__]
    return found, seen


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.filterwarnings("ignore")
def test_agrees_with_the_general_path(mode: str) -> None:
    computed = 0
    for seed in range(60):
        quick, made = outcome(mode, seed)
        again, _ = outcome(mode, seed)
        with plans.interpreted():
            slow, expected = outcome(mode, seed)
        assert made == expected, seed
        assert len(quick) == len(slow) == len(again)
        for x, y, z in zip(quick, again, slow, strict=True):
            assert type(x) is type(y) is type(z), seed
            x, y, z = values(x), values(y), values(z)
            assert x.dtype == y.dtype == z.dtype and x.shape == y.shape == z.shape, seed
            narrow = x.dtype == np.float32
            np.testing.assert_allclose(
                x,
                z,
                rtol=2e-5 if narrow else 1e-12,
                atol=1e-5 if narrow else 1e-13,
                equal_nan=True,
                err_msg=str(seed),
            )
            np.testing.assert_array_equal(x, y)
        computed += len(quick)
    assert computed >= 60


# ----- What it serves -----

INDEX = np.asarray([1, 0])
A = np.asarray([0.5, -1.5])
A32 = np.asarray([0.5, 1.5], dtype=np.float32)
CONSTANT = mg.asarray(np.asarray([2.0, 3.0]))
SERVED: dict[str, Callable[..., Any]] = {
    "a unary function": lambda xp, x: xp.tanh(xp.sin(x)),
    "a raw array on either side": lambda xp, x: (x * np.ones(2)) + np.ones(2) * x,
    "a Python scalar on either side": lambda xp, x: 1 - (x * 2.0) ** 2,
    "a scalar of NumPy": lambda xp, x: x * np.float64(2.0),
    "a Tensor": lambda xp, x: x * CONSTANT / CONSTANT[::-1],
    "a Tensor made inside": lambda xp, x: x * mg.asarray(np.ones(2)),
    "another dtype": lambda xp, x: x * A32 + xp.astype(x, xp.float32),
    "other shapes": lambda xp, x: x + np.ones((3, 1)),
    "an array by keyword": lambda xp, x: xp.clip(x, min=x * 0.5, max=np.ones(2)),
    "lists": lambda xp, x: (
        xp.concat([x, np.ones(2), x * x]) + xp.sum(xp.stack((x, mg.asarray(np.ones(2)))))
    ),
    "indices": lambda xp, x: (
        x[0] + x[INDEX] * x[..., 1:] + x[xp.argmax(x)] + x[(xp.asarray(INDEX),)]
    ),
    "a choice": lambda xp, x: xp.where(x > 0, x, 0.0),
    "products": lambda xp, x: x @ x + xp.vecdot(x, np.ones(2)),
    "views": lambda xp, x: xp.expand_dims(xp.flip(x), axis=0) + xp.reshape(x, (1, 2)),
    "reductions": lambda xp, x: xp.sum(x) + xp.mean(x, axis=0) + xp.sum(x, dtype="float32"),
    "a rule of its own": lambda xp, x: xp.sort(xp.abs(x)) + xp.max(x) + xp.std(x),
    "in place": lambda xp, x: operator.imul(x * 1.0, x),
    "a write": lambda xp, x: written(x * 1.0),
}
LEVELS: dict[str, Callable[..., Any]] = {
    "jvp": lambda f: func.jvp(f, (A,), (A,)),
    "jvp of jvp": lambda f: func.jvp(lambda u: func.jvp(f, (u,), (u * 2.0,)), (A,), (A,)),
    "jvp of a Tensor": lambda f: func.jvp(
        f, (mg.asarray(A, requires_grad=True),), (mg.asarray(A),)
    ),
    "jvp of grad": lambda f: func.jvp(func.grad(lambda u: mg.sum(f(u))), (A,), (A,)),
    "jvp along a batch": lambda f: func.vmap(lambda t: func.jvp(f, (A,), (t,)))(np.stack([A, A])),
}


def written(x: Any) -> Any:
    x[0] = x[1]
    return x * 1.0


@pytest.mark.runs_once
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", SERVED)
def test_served(name: str, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    xp = mg.namespace("numpy")
    expected = [values(x) for x in flat(LEVELS[level](lambda x: SERVED[name](xp, x)))]
    general: list[str] = []
    apply = Dual._apply
    monkeypatch.setattr(
        Dual,
        "_apply",
        staticmethod(lambda op, given, top: general.append(op.name) or apply(op, given, top)),
    )
    found = [values(x) for x in flat(LEVELS[level](lambda x: SERVED[name](xp, x)))]
    # On the way of Tensors around Duals: what has several outputs, what may be a view, and writes.
    assert set(general) <= (
        {"unstack", "reshape", "getitem", "copy_slices"} if level == "jvp of grad" else set()
    )
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_array_equal(x, y)


def test_of_raw_arrays_nothing_becomes_layered() -> None:
    """A constant Tensor that meets a Dual is taken bare: with it, all that follows would be
    computed on layers.
    """

    constant = mg.asarray(A)

    def f(x: Any) -> Any:
        y = x * constant + mg.stack([x, constant[::-1]])[0]
        assert not y._elem.layered
        return y

    func.jvp(f, (A,), (A,))


# ----- What it leaves -----


def test_what_is_wrong_raises_as_ever() -> None:
    strict = mg.namespace("strict")
    other = strict.asarray([1.0, 2.0])
    for f in (
        lambda x: x * other,
        lambda x: x * other.array,
        lambda x: mg.stack([x, other]),
        lambda x: x[other > 0],
    ):
        with pytest.raises((MixedBackendsError, TypeError, IndexError)):
            func.jvp(f, (A,), (A,))
    with pytest.raises(TypeError):
        func.jvp(lambda x: mg.namespace("numpy").sin(None) + x, (A,), (A,))
    left: list[Any] = []
    func.jvp(lambda x: left.append(x) or x * 1.0, (A,), (A,))
    with pytest.raises(mg.errors.LeakError):
        left[0] * 2.0


def test_a_level_that_was_left() -> None:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(mg.asarray(A), mg.asarray(A))
        y = x * x
    assert values(y * 2.0).tolist() == (2 * A * A).tolist() and values(x[0]) == 0.5


def test_an_operation_that_is_declared_anew(operations: dict[str, registry.Op]) -> None:
    registry.elementwise("twice(x, /)", x=2.0, forward=lambda xp, x: x * 2.0, doc="Twice.")
    xp = mg.namespace("numpy")
    held = xp.twice

    def tangents() -> list[Any]:
        nested = func.jvp(lambda u: func.jvp(held, (u,), (u,))[1], (A,), (A,))[1]
        return [values(func.jvp(held, (A,), (np.ones(2),))[1]).tolist(), values(nested).tolist()]

    assert tangents() == tangents() == [[2.0, 2.0], (2 * A).tolist()]
    registry.elementwise(
        "twice(x, /)", x=3.0, forward=lambda xp, x: x * 2.0, doc="Twice.", override=True
    )
    assert tangents() == tangents() == [[3.0, 3.0], (3 * A).tolist()]


def test_rules_of_strangers(operations: dict[str, registry.Op]) -> None:
    """Their tangents are checked, and what they make belongs to no transformation."""
    captured = mg.asarray(np.ones(2))
    made: list[Any] = []

    def making(xp: Any, x: Any) -> Any:
        made.append(mg.asarray(np.ones(2)))
        return captured * 1.0

    registry.elementwise(
        "first_of_theirs(x, /)",
        x=lambda xp, x: np.ones((3, 2)),
        forward=lambda xp, x: xp.sin(x),
        doc="Wrong.",
    )
    registry.elementwise(
        "second_of_theirs(x, /)", x=making, forward=lambda xp, x: xp.sin(x), doc="With a Tensor."
    )
    registry.elementwise(
        "third_of_theirs(x1, x2, /)", x1=1, forward=lambda xp, x1, x2: x1 + x2, doc="One rule."
    )
    registry.linear(
        "fourth_of_theirs(x, y, /)",
        x=lambda xp, g: g,
        forward=lambda xp, x, y: x * y,
        doc="One rule.",
    )
    xp = mg.namespace("numpy")
    with pytest.raises((ValueError, RuntimeError)):
        func.jvp(xp.first_of_theirs, (A,), (A,))
    tangent = func.jvp(lambda x: xp.second_of_theirs(xp.second_of_theirs(x)), (A,), (A,))[1]
    np.testing.assert_array_equal(values(tangent), A)
    assert all(t._elem.run is None for t in made) and made
    for f, expected in ((xp.third_of_theirs, A), (xp.fourth_of_theirs, A * A)):
        assert values(func.jvp(lambda x, f=f: f(x, A), (A,), (A,))[1]).tolist() == expected.tolist()
        with pytest.raises(MissingRuleError):
            func.jvp(lambda x, f=f: f(A, x), (A,), (A,))
        with pytest.raises(MissingRuleError):
            func.jvp(lambda y, f=f: func.jvp(lambda x: f(y, x), (A,), (y,))[1], (A,), (A,))
