"""Random programs of everything that users write, in every composition of two transformations:
runners compute what the general path computes, and raise what it raises.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from runner_checks import WHERE, agree

import multigrad as mg
from multigrad_conformance.elementwise import BINARY, UNARY

DTYPES = ("float64", "float64", "float32", "complex128", "int64", "bool")
SCALARS = (2, 0.5, -1.5, True, 1j, 0, np.float64(1.5))
OPERATORS = (operator.add, operator.mul, operator.sub, operator.truediv, operator.pow, operator.lt)
CHANGES = (operator.iadd, operator.imul, operator.isub, operator.ipow)


class Draws:
    """The choices of a program: the same ones each time it runs."""

    def __init__(self, xp: Any, seed: int, inputs: tuple[Any, ...]) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.xp, self.pool = xp, list(inputs)
        plain = [rng.normal(size=shape) for shape in ((), (3,), (2, 3), (2, 1, 3))]
        plain += [rng.normal(size=3).astype("float32"), rng.normal(size=3) + 1j, np.arange(3)]
        self.raw = [xp.asarray(np.array(x)).array for x in plain]
        with mg.no_grad():
            self.constants = [xp.asarray(x) for x in self.raw]

    def one(self, *choices: Any) -> Any:
        return choices[self.rng.integers(0, len(choices))]

    def number(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high))

    def mine(self) -> Any:
        return self.pool[self.number(0, len(self.pool))]

    def other(self) -> Any:
        """Anything that may stand beside an array."""
        kind = self.number(0, 5)
        if kind < 2:
            return self.mine()
        return self.one(*(self.raw, self.constants, SCALARS)[kind - 2])

    def axis(self, x: Any, several: bool = True) -> Any:
        """Most often one that it has; or a tuple of them, or None."""
        n, kind = x.ndim, self.number(0, 8)
        if kind == 0:
            return None
        if kind == 1 and several and n:
            some = self.rng.permutation(n)[: self.number(1, n + 1)]
            return self.one(tuple, list)(int(a) - self.one(0, n) for a in some)
        return self.number(-n, n) if n and kind != 2 else self.number(-3, 3)

    def index(self) -> Any:
        raw = self.xp.asarray(self.rng.integers(0, 2, size=3)).array
        ours = self.xp.astype(self.mine() > 0.5, "int64")
        return self.one(raw, self.xp.asarray(raw), ours, self.mine())

    def key(self) -> Any:
        """Integers, slices, new axes, index arrays of every kind."""

        def entry() -> Any:
            begin = slice(self.number(0, 2), None)
            return self.one(
                self.number(-2, 2), slice(None, None, -1), None, ..., self.index(), begin, begin
            )

        if self.rng.random() < 0.1:
            return self.one([0, 1], True)
        return entry() if self.rng.random() < 0.5 else tuple(entry() for _ in range(2))


def along(*names: str, several: bool = True) -> Callable[[Any, Draws, Any], Any]:
    return lambda xp, d, x: getattr(xp, d.one(*names))(x, axis=d.axis(x, several))


def changed(xp: Any, d: Draws, x: Any) -> None:
    """A write in place: of a part, or by an operator. Views of the same memory see it."""
    kind = d.number(0, 5)
    if kind < 2:
        x[d.key()] = d.other()
    elif kind < 4:
        d.one(*CHANGES)(x, d.other())
    else:
        x.sin_()


STEPS: list[Callable[[Any, Draws, Any], Any]] = [
    *[lambda xp, d, x: getattr(xp, d.one(*UNARY))(x)] * 10,
    *[lambda xp, d, x: getattr(xp, d.one(*BINARY, "matmul", "vecdot"))(x, d.other())] * 14,
    *[lambda xp, d, x: getattr(xp, d.one(*BINARY))(d.other(), x)] * 8,
    *[lambda xp, d, x: d.one(*OPERATORS)(*d.one(lambda y: (x, y), lambda y: (y, x))(d.other()))]
    * 8,
    *[along("sum", "mean", "max", "any", "count_nonzero", "var", "std", "prod", "flip")] * 4,
    *[along("argmax", "argsort", "sort", "cumulative_sum", "unstack", several=False)] * 2,
    along("squeeze"),
    lambda xp, d, x: xp.sum(x, axis=d.axis(x), keepdims=d.one(True, False)),
    lambda xp, d, x: xp.sum(x, dtype=d.one("float32", xp.complex64, None)),
    lambda xp, d, x: d.one(xp.zeros_like, xp.imag, xp.real, xp.conj, xp.logical_not)(x),
    lambda xp, d, x: xp.full_like(x, d.one(2.0, 1)) * x,
    lambda xp, d, x: xp.linspace(xp.sum(x), 2.0, 3),
    lambda xp, d, x: xp.where(d.mine() > 0.5, d.other(), x),
    lambda xp, d, x: xp.where(x > 0, d.other(), d.other()),
    lambda xp, d, x: xp.clip(x, d.one(None, d.other()), max=d.one(None, 0.7, d.other())),
    lambda xp, d, x: xp.astype(x, getattr(xp, d.one(*DTYPES)), copy=d.one(True, False)),
    lambda xp, d, x: xp.reshape(x, d.one((-1,), [2, -1]), copy=d.one(None, None, True)),
    lambda xp, d, x: xp.reshape(x, tuple(reversed(x.shape))),
    lambda xp, d, x: xp.expand_dims(x, axis=d.axis(x, False) or 0),
    lambda xp, d, x: xp.permute_dims(x, tuple(int(a) for a in d.rng.permutation(x.ndim))),
    lambda xp, d, x: d.one(lambda: x.mT, lambda: xp.tril(x, k=1), lambda: xp.moveaxis(x, 0, -1))(),
    lambda xp, d, x: xp.linalg.trace(x),
    lambda xp, d, x: d.one(xp.broadcast_to, xp.tile)(x, d.one((2, *x.shape), (2, 1))),
    lambda xp, d, x: d.one(xp.roll, xp.repeat)(x, 2, axis=d.axis(x, False)),
    lambda xp, d, x: xp.take(x, d.index(), axis=d.number(-2, 2)),
    lambda xp, d, x: xp.stack([x, d.other(), x], axis=d.number(-2, 2)),
    lambda xp, d, x: xp.concat((x, d.other(), x)[: d.number(1, 4)], axis=d.one(0, -1, None)),
    lambda xp, d, x: xp.broadcast_arrays(x, d.other()),
    lambda xp, d, x: xp.tensordot(x, d.other(), axes=d.one(0, 1)),
    *[lambda xp, d, x: x[d.key()]] * 5,
    *[changed] * 5,
    lambda xp, d, x: x.detach(),
]


def program(xp: Any, seed: int, seen: list[str]) -> Callable[..., list[Any]]:
    """A random program: all that it makes of its inputs, and, in `seen`, what its steps raise."""

    def run(*inputs: Any) -> list[Any]:
        d = Draws(xp, seed, inputs)
        for _ in range(12):
            step = STEPS[d.number(0, len(STEPS))]
            try:
                found = step(xp, d, d.mine())
            except Exception as error:  # the same one each time
                seen.append(f"{type(error).__name__}: {error}")
                continue
            found = found if isinstance(found, (tuple, list)) else [found]
            d.pool += [x for x in found if hasattr(x, "dtype") and x.size and x.size < 300]
        return d.pool

    return run


@pytest.mark.sweep_after(6)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("backend", ["numpy", "strict"], indirect=True)
def test_of(backend: str, where: str, no_runners: None) -> None:
    xp = mg.namespace(backend)
    raised: set[str] = set()
    for seed in range(40 if backend == "numpy" else 15):
        rng = np.random.default_rng(seed)
        shapes = [(), (3,), (2, 3), (3, 3)][seed % 4], (3,)
        kinds = [("float64",) * 2, ("float32", "float64"), ("float64", "complex128")][seed % 3]
        inputs = [
            xp.asarray(rng.normal(size=s).astype(k)).array
            for s, k in zip(shapes, kinds, strict=True)
        ]
        seen: list[str] = []
        agree(program(xp, seed, seen), inputs, (where,), times=2)
        times = len(seen) // 3
        assert seen[:times] == seen[times : 2 * times] == seen[2 * times :], seed
        raised.update(seen)
    assert len(raised) > 10  # programs that do something, right and wrong
