"""func.compile on random programs: whatever is computed, written, branched on and differentiated,
it is what the function does itself.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest
import replays

import multigrad as mg
from multigrad import func
from multigrad_conformance.target import Target

UNARY = (
    mg.sin,
    mg.tanh,
    lambda x: x * 0.5,
    lambda x: -x,
    lambda x: x[..., ::-1],
    lambda x: x.mT,
    lambda x: mg.exp(-x * x),
    lambda x: x + x[:1],
    lambda x: mg.where(x > 0, x, 0.5 * x),
    lambda x: mg.cumulative_sum(x, axis=0),
    lambda x: x * 1.0,
    lambda x: x + 0.0,
)
BINARY = (
    lambda x, y: x + y,
    lambda x, y: x * y,
    lambda x, y: x @ y,
    lambda x, y: mg.maximum(x, y),
    lambda x, y: x - mg.mean(y),
    lambda x, y: mg.concat([x, y])[:3],
    lambda x, y: x / (1.0 + y * y),
)


def program(seed, steps=12):
    """A function of two 3 x 3 matrices and a number: operations, writes to parts and views,
    branches and a loop, by a seed.
    """

    def f(a, b, t):
        draw = np.random.default_rng(seed)
        values = [a, b, a * t]
        for _ in range(steps):
            kind = draw.integers(0, 10)
            x, y = (values[i] for i in draw.integers(0, len(values), 2))
            if kind < 4:
                values.append(UNARY[draw.integers(0, len(UNARY))](x))
            elif kind < 7:
                values.append(BINARY[draw.integers(0, len(BINARY))](x, y))
            elif kind == 7:
                fresh = x * 1.0
                row = fresh[draw.integers(0, 3)]
                row += y[draw.integers(0, 3)]
                fresh[:, 1] = y[0] * t
                values.append(fresh)
            elif kind == 8:
                values.append(x if mg.sum(x) > t else y)
            else:
                for i in range(int(draw.integers(1, 3))):
                    x = x * t + i
                values.append(mg.tanh(x))
        return values[-1] * t, mg.sum(mg.tanh(values[-2]))

    return f


def update(seed):
    """The same, with a gradient, which writes to its arguments."""
    f = program(seed, 8)

    def g(a, b, t):
        value, slope = func.value_and_grad(lambda x: mg.sum(mg.tanh(f(x, b, t)[0])))(a)
        b[1:] -= t * slope[:2]
        a -= t * slope
        return value, b.T

    return g


def points(seed, n):
    draw = np.random.default_rng(1000 + seed)
    return [
        (draw.normal(size=(3, 3)), draw.normal(size=(3, 3)), float(draw.choice([0.5, 0.25, 1.5])))
        for _ in range(n)
    ]


def compare(function, calls):
    compiled = func.compile(function, max_programs=64)
    for a, b, t in calls:
        own, ours = (a.copy(), b.copy()), (a.copy(), b.copy())
        try:
            found = compiled(*ours, t)
        except mg.errors.GradientError as error:  # as inside of any transformation
            assert "cannot be written into an array from outside of it" in str(error)
            continue
        for x, y in zip(found, function(*own, t), strict=True):
            y = y.array if isinstance(y, mg.Tensor) else y
            np.testing.assert_array_equal(x, y)
        np.testing.assert_array_equal(ours, own)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("make", [program, update])
@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 200))]
)
def test_random_programs(make, seed):
    compare(make(seed), points(seed, 5))


def written(seed, steps=14):
    """A function of three 3 x 3 arrays of NumPy and a number: elements, which are scalars, writes
    to arrays, rows and elements, and branches.
    """

    def f(a, b, t, w):
        draw = np.random.default_rng(seed)
        values, scalars = [a, b * 1.0, a * t, w], [a[0, 0], b[1, 2], t]

        def put_rows(x, y, s, i, j):
            z = np.zeros_like(x)
            z[i] = y[j]
            z[:, j] += s
            values.append(z)

        def put_sums(x, y, s, i, j):
            total = x.sum()
            before = total
            total *= 0.25
            first, second, y[j, 0] = x[i]
            scalars.extend((total + before * 0.1, first * 0.3 + second))

        def swap(x, y, s, i, j):
            element = x[i, j]
            element += 1.0
            scalars.append(element)
            x[i, j], x[j, i] = x[j, i], x[i, j]

        kinds = (
            lambda x, y, s, i, j: values.append(x * s + y),
            lambda x, y, s, i, j: scalars.append(x[i, j]),
            lambda x, y, s, i, j: scalars.append(s * 2.0),
            lambda x, y, s, i, j: x.__setitem__((i, j), s),
            lambda x, y, s, i, j: x.__setitem__(i, y[j]),
            lambda x, y, s, i, j: x.__iadd__(s),
            lambda x, y, s, i, j: x[i].__imul__(0.5),
            lambda x, y, s, i, j: values.append(np.where(x > s, x, y)),
            lambda x, y, s, i, j: values.append(np.tanh(x) @ y),
            lambda x, y, s, i, j: values.append(x.T if i else x[::-1]),
            lambda x, y, s, i, j: values.append(y - 1.0 if x[i, j] > s else y * 0.5),
            put_rows,
            put_sums,
            swap,
        )
        for _ in range(steps):
            x, y = (values[i] for i in draw.integers(0, len(values), 2))
            i, j = (int(k) for k in draw.integers(0, 3, 2))
            kinds[draw.integers(0, len(kinds))](x, y, scalars[draw.integers(0, len(scalars))], i, j)
        return values[-1] * 1.0, scalars[-1], values[-2].sum()

    return f


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "seed", [*range(12), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 400))]
)
def test_random_programs_of_numpy(seed):
    f = written(seed)
    g, draw = func.compile(f, max_programs=64), np.random.default_rng(1000 + seed)
    for _ in range(4):
        arrays = [draw.normal(size=(3, 3)) for _ in range(3)]
        own, ours = [x.copy() for x in arrays], [x.copy() for x in arrays]
        t = float(draw.normal())
        for found, expected in zip(
            (*g(*ours[:2], t, ours[2]), *ours), (*f(*own[:2], t, own[2]), *own), strict=True
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)


def recording_time(n):
    def chain(x):
        for _ in range(n // 2):
            x = x * 1.01
            x = x + 0.1
        return x

    def once():
        g = func.compile(chain)
        start = time.thread_time()
        g(np.ones(10))
        return (time.thread_time() - start) / n

    return min(once() for _ in range(5))


def test_the_time_of_a_recording_is_linear_in_its_length():
    recording_time(10)
    assert recording_time(3200) < 4 * recording_time(400)  # if quadratic, 8


@pytest.mark.sweep_after(20)
@pytest.mark.parametrize("name", replays.names())
def test_samples_recorded_at_one_point_are_replayed_at_another(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert list(replays.replayed(name, Target("numpy"), short=True)) == []


@pytest.mark.slow
@pytest.mark.parametrize("on", ["numpy", "strict", "jax"])
@pytest.mark.parametrize("name", replays.names())
def test_all_samples_are_replayed(name, on):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            target = Target(on)
        except mg.errors.BackendError as error:
            pytest.skip(str(error))
        assert list(replays.replayed(name, target, short=on == "jax")) == []
