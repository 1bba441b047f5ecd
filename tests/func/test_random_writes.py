"""Random programs that write to what they have used, compared with the same programs without writes.

A program is run twice: with arrays that are written, through views too, and with values that are
replaced.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import multigrad as mg
from multigrad import func

N = 4
Step = tuple[Any, ...]


def steps(seed: int) -> list[Step]:
    draw = random.Random(seed)
    made, out = 2, []
    for _ in range(14):
        kind = draw.choice(
            ["new", "product", "sine", "add", "scale", "item", "part", "view", "mask"]
        )
        a, b = draw.randrange(made), draw.randrange(made)
        i = draw.randrange(N - 1)
        value = round(draw.uniform(0.5, 1.5), 2)
        out.append((kind, a, b, i, value))
        made += kind in ("new", "product", "sine")
    return out


def written(x: Any, program: list[Step]) -> Any:
    """Write into arrays; a view of each array is kept and used."""
    arrays = [x * 1.0, mg.ones(N) * 0.5]
    views = [a[1:] for a in arrays]
    total = mg.sum(x)
    for kind, a, b, i, value in program:
        p, q = arrays[a], arrays[b]
        if kind == "new":
            arrays.append(mg.full(N, value))
        elif kind == "product":
            arrays.append(p * q + value)
        elif kind == "sine":
            arrays.append(mg.sin(p * value))
        elif kind == "add":
            p += q * value
        elif kind == "scale":
            p *= value
        elif kind == "item":
            p[i] = value * q[i + 1]
        elif kind == "part":
            p[i : i + 2] = q[:2] * value
        elif kind == "view":
            views[a] *= q[1:] * value
        else:
            p[p > value] = value
        views += [array[1:] for array in arrays[len(views) :]]
        total = total + mg.sum(arrays[a] * arrays[b]) + mg.sum(views[a] * value)
    return total + mg.sum(arrays[-1])


def replaced(x: Any, program: list[Step]) -> Any:
    """Make a new value in place of each write."""
    arrays = [x * 1.0, mg.ones(N) * 0.5]
    total = mg.sum(x)
    for kind, a, b, i, value in program:
        p, q = arrays[a], arrays[b]
        if kind == "new":
            arrays.append(mg.full(N, value))
        elif kind == "product":
            arrays.append(p * q + value)
        elif kind == "sine":
            arrays.append(mg.sin(p * value))
        elif kind == "add":
            arrays[a] = p + q * value
        elif kind == "scale":
            arrays[a] = p * value
        elif kind == "item":
            arrays[a] = mg.concat([p[:i], value * q[i + 1 : i + 2], p[i + 1 :]])
        elif kind == "part":
            arrays[a] = mg.concat([p[:i], q[:2] * value, p[i + 2 :]])
        elif kind == "view":
            arrays[a] = mg.concat([p[:1], p[1:] * (q[1:] * value)])
        else:
            arrays[a] = mg.where(p > value, value, p)
        total = total + mg.sum(arrays[a] * arrays[b]) + mg.sum(arrays[a][1:] * value)
    return total + mg.sum(arrays[-1])


def late(f: Callable[[Any], Any], x: Any) -> Any:
    out, pullback = func.vjp(lambda x: mg.exp(x) * f(x) * 1e-3, x)
    out *= 0.0
    return pullback(x)[0]


TRANSFORMATIONS: list[Callable[[Callable[[Any], Any], Any], Any]] = [
    lambda f, x: func.grad(f)(x),
    lambda f, x: func.jvp(f, (x,), (x,))[1],
    lambda f, x: func.jvp(func.grad(f), (x,), (x,))[1],
    lambda f, x: func.grad(lambda x: mg.sum(func.grad(f)(x) * x))(x),
    lambda f, x: func.vmap(func.grad(f))(np.stack([x, 0.5 * x])),
    lambda f, x: func.grad(lambda x: mg.sum(func.vmap(f)(mg.stack([x, 0.5 * x]))))(x),
    lambda f, x: func.grad(func.checkpoint(f))(x),
    late,
]


@pytest.mark.parametrize(
    "seed", [*range(8), *(pytest.param(i, marks=pytest.mark.sweep) for i in range(8, 60))]
)
def test_a_random_program(seed):
    program = steps(seed)
    x = np.array([0.3, 0.7, 1.1, 0.2])
    for apply in TRANSFORMATIONS:
        expected = apply(lambda x: replaced(x, program), x)
        found = apply(lambda x: written(x, program), x)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
