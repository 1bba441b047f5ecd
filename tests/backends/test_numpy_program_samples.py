"""Programs on NumPy, over the samples of the conformance suite and programs that are drawn: the
code gives what eager calls give, to the last bit.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy_samples import flat, operation_on
from recorded_programs import assert_same, check, copied, poisoned, recorded

import multigrad as mg
from multigrad import func
from multigrad.registry import OPS
from multigrad_conformance.sample import Sample
from multigrad_conformance.samples import samples_of

mg.zeros(1)


def functions(
    name: str, sample: Sample, narrow: bool
) -> Iterator[tuple[str, Callable[..., Any], list[Any]]]:
    """The operation on the arrays of a sample, its gradient and its tangent."""
    forward, arrays = operation_on(name, sample, narrow)
    floating = tuple(i for i, x in enumerate(arrays) if x.dtype.kind in "fc")
    if not arrays or (narrow and not floating):
        return

    def loss(*xs: Any) -> Any:
        out = forward(*xs)
        parts = [
            mg.astype(x, x.dtype) * 0.75
            for x in (out if type(out) in (tuple, list) or hasattr(out, "_fields") else (out,))
            if hasattr(x, "dtype") and np.dtype(x.dtype).kind in "fc"
        ]
        return sum(
            (mg.sum(mg.real(x * x) if np.dtype(x.dtype).kind == "c" else x * x) for x in parts),
            mg.zeros(()),
        )

    yield "forward", forward, arrays
    if floating and OPS[name].kind != "nondifferentiable":
        yield "gradient", func.grad(loss, argnums=floating), arrays
        yield (
            "tangent",
            lambda *xs: func.jvp(
                lambda *ys: loss(
                    *(ys[floating.index(i)] if i in floating else x for i, x in enumerate(xs))
                ),
                tuple(xs[i] for i in floating),
                tuple(xs[i] * 0.5 for i in floating),
            )[1],
            arrays,
        )


def compare(name: str, sample: Sample, narrow: bool) -> None:
    for what, f, arrays in functions(name, sample, narrow):
        if not sample.values:
            continue
        try:
            expected = flat(f(*arrays))
        except Exception:  # no derivative, or not of this dtype
            continue
        try:
            program = recorded(f, *arrays)
        except (TypeError, ValueError):
            # more than a program: it looks at values, or returns no arrays
            continue
        with np.errstate(all="ignore"):
            p = poisoned(program, arrays)
            got = p.poisoned(arrays)
            assert_same(got, p.one_by_one(arrays))
            assert_same(p.code(arrays), got)
        if len(got) == len(expected):
            assert_same([np.asarray(x) for x in got], expected), what


NAMES = sorted(name for name in OPS if samples_of(name))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [n for n in NAMES if not n.startswith("special.")])
def test_short_samples(name: str) -> None:
    for sample in samples_of(name):
        if sample.short:
            compare(name, sample, narrow=False)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_every_sample(name: str) -> None:
    for sample in samples_of(name):
        for narrow in (False, True):
            compare(name, sample, narrow)


# ----- Programs that are drawn -----

UNARY: tuple[Callable[[Any], Any], ...] = (
    mg.sin,
    mg.exp,
    mg.tanh,
    mg.abs,
    mg.square,
    mg.sign,
    lambda x: x * 1,
    lambda x: x + 0.0,
    lambda x: x - 0.0,
    lambda x: x**2,
    lambda x: 0.5 * x,
    lambda x: mg.negative(-x),
    lambda x: mg.clip(x, -0.5, 0.5),
    lambda x: mg.where(x > 0, x, 0.0),
    lambda x: mg.astype(x, np.float64),
    lambda x: mg.astype(mg.astype(x, np.float32), np.float64),
    lambda x: mg.maximum(x, 0.1),
)
MOVED: tuple[Callable[[Any], Any], ...] = (
    mg.matrix_transpose,
    lambda x: x[::-1],
    lambda x: x[:, 1:],
    lambda x: mg.reshape(x, (x.shape[1], x.shape[0])),
    lambda x: mg.flip(x, axis=1),
    lambda x: mg.roll(x, 1, axis=0),
    lambda x: mg.broadcast_to(x[:1], x.shape),
    lambda x: mg.concat([x, x[:1]]),
    lambda x: x[::2],
    lambda x: mg.broadcast_to(mg.sum(x, axis=1, keepdims=True), x.shape),
    lambda x: mg.cumulative_sum(x, axis=0),
    lambda x: x[np.asarray([1, 0, 1])],
)
REDUCED: tuple[Callable[[Any], Any], ...] = (
    mg.sum,
    mg.mean,
    mg.max,
    lambda x: mg.sum(x, axis=0)[0],
    lambda x: mg.prod(x, axis=1)[1],
    lambda x: x[0, 1],
    lambda x: mg.matmul(x[0], x[0]),
)


def drawn(random_: random.Random, steps: int, writes: bool = True) -> Callable[..., Any]:
    """A function of matrices that computes `steps` matrices, returns some of them, and may write
    some into its arguments.
    """
    script = [
        (
            random_.choice(
                ("unary", "unary", "binary", "binary", "binary", "moved", "reduced", "matmul")
            ),
            random_.random(),
            random_.random(),
            random_.random(),
        )
        for _ in range(steps)
    ]
    kept, written = random_.random(), random_.random()

    def f(*xs: Any) -> Any:
        values = list(xs)
        for kind, a, b, c in script:
            x, y = values[int(a**0.5 * len(values))], values[int(b**0.5 * len(values))]
            if kind == "unary":
                found = UNARY[int(c * len(UNARY))](x)
            elif kind == "moved" and min(x.shape) > 2:
                found = MOVED[int(c * len(MOVED))](x)
            elif kind == "reduced":
                found = x * REDUCED[int(c * len(REDUCED))](y) if min(y.shape) > 1 else x
            elif kind == "matmul" and x.shape[1] == y.shape[0]:
                found = mg.matmul(x, y)
            else:
                rows, columns = (min(m, n) for m, n in zip(x.shape, y.shape, strict=True))
                found = (mg.add, mg.multiply, mg.subtract, mg.maximum)[int(c * 4)](
                    x[:rows, :columns], y[:rows, :columns]
                )
            values.append(mg.tanh(found) if c < 0.2 else found)
        for i, x in enumerate(xs):
            same = [v for v in values[len(xs) :] if v.shape == x.shape]
            if same and writes and written < 0.5:
                if i % 2:
                    x[...] = same[int(kept * len(same))]
                else:
                    x -= 0.1 * same[-1]
        last = values[-1 - int(kept * 3) :]
        return last, [mg.sum(v) for v in last], mg.sum(values[int(kept * len(values))], axis=0)

    return f


def trial(seed: int) -> None:
    random_, rng = random.Random(seed), np.random.default_rng(seed)
    shapes = [(4, 5), (5, 4), (4, 4)]
    args = [
        rng.choice([-1.0, -0.0, 0.0, 0.5, 1.0, 2.0], size=shape) * rng.choice([1.0, rng.uniform()])
        for shape in shapes
    ]
    if seed % 3 == 1:
        args = [np.asfortranarray(x) for x in args]
    if seed % 3 == 2:
        args = [np.repeat(np.repeat(x, 2, axis=0), 2, axis=1)[::2, ::2] for x in args]
    f = drawn(random_, 5 + seed % 40)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = func.compile(f, check=False)
        compiled(*[x.copy(order="K") for x in args])
        if not compiled.programs:
            return
        arena = (64 << 20, 500, 0)[seed % 3]
        p = poisoned(compiled.programs[0], args, arena)
        # The layouts of what is given decide the order of sums, so eager and compiled start from
        # arrays of the same strides.
        given = [[copied(x) for x in args] for _ in range(3)]
        expected = flat(f(*given[0]))
        for code, own in ((p.poisoned, given[1]), (p.code, given[2])):
            got = code(own)
            if len(got) == len(expected):
                assert_same([np.asarray(x) for x in got], expected)
            assert_same(own, given[0])


@pytest.mark.parametrize("seed", range(90))
def test_drawn_programs(seed: int) -> None:
    trial(seed)


@pytest.mark.slow
def test_many_drawn_programs() -> None:
    for seed in range(90, 3000):
        trial(seed)


def test_gradients_of_drawn_programs() -> None:
    for seed in range(40):
        f = drawn(random.Random(seed), 12, writes=False)
        g = func.grad(
            lambda *xs, f=f: sum(
                (mg.sum(x) for x in flat_layers(f(*(x * 1.0 for x in xs)))), mg.zeros(())
            ),
            argnums=(0, 1, 2),
        )
        args = [
            np.random.default_rng(seed).normal(size=shape) for shape in ((4, 5), (5, 4), (4, 4))
        ]
        with np.errstate(all="ignore"):
            check(lambda *xs, g=g: g(*xs), *args)


def flat_layers(x: Any) -> list[Any]:
    return [z for y in x for z in flat_layers(y)] if isinstance(x, (tuple, list)) else [x]
