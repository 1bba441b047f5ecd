"""Random programs of in-place operations, where the graph keeps what it saved: values, gradients and
second derivatives are those of the same program written without them.

A program works on a few arrays without views of each other.
"""

from __future__ import annotations

import operator
import random
from typing import Any

import numpy as np
import pytest
from conftest import values

import multigrad as mg

BINARY = ("add", "sub", "mul", "truediv", "pow")
UNARY = ("sin", "exp", "tanh", "sqrt", "abs", "negative", "square")
KEYS: tuple[Any, ...] = (
    0,
    slice(1, 3),
    slice(None, None, -2),
    Ellipsis,
    [2, 0],
    [0, 0],
    [True, False, True],
)
Step = tuple[Any, ...]


def program(seed: int) -> list[Step]:
    """Steps over the arrays 0 and 1, which require grad, 2, a constant, and what the steps
    append.
    """
    draw = random.Random(seed)
    steps: list[Step] = []
    n = 3
    for _ in range(draw.randrange(3, 9)):
        kind = draw.choice(
            ("new", "new unary", "in place", "in place", "number", "twin", "write", "write number")
        )
        x, y = draw.randrange(n), draw.randrange(n)
        if kind.startswith("new"):
            n += 1
        steps.append(
            (
                kind,
                draw.choice(UNARY if kind in ("new unary", "twin") else BINARY),
                x,
                y,
                draw.choice(KEYS),
                draw.choice((2, 0.5)),
            )
        )
    return steps


def run(xp: Any, steps: list[Step], leaves: list[Any], in_place: bool) -> list[Any]:
    """What the arrays are in the end."""
    x = [leaf * 1.0 for leaf in leaves[:2]] + [leaves[2]]
    for kind, name, i, j, key, number in steps:
        if kind == "new":
            x.append(getattr(operator, name)(x[i], x[j]))
        elif kind == "new unary":
            x.append(getattr(xp, name)(x[i]))
        elif kind in ("in place", "number"):
            other = number if kind == "number" else x[j]
            if in_place:
                getattr(operator, f"i{name}")(x[i], other)
            else:
                x[i] = xp.astype(getattr(operator, name)(x[i], other), x[i].dtype)
        elif kind == "twin":
            if in_place:
                getattr(x[i], f"{name}_")()
            else:
                x[i] = getattr(xp, name)(x[i])
        else:
            key = xp.asarray(np.asarray(key)) if isinstance(key, list) else key
            # a copy, broadcast
            value = number if kind == "write number" else xp.take(x[j], xp.asarray(np.asarray([1])))
            if in_place:
                x[i][key] = value
            else:
                x[i] = xp.setitem(x[i], key, value)
    return x


def outcome(xp: Any, seed: int, in_place: bool) -> list[Any]:
    """Values, gradients, second derivatives."""
    random_values = np.random.default_rng(seed)
    leaves = [
        xp.asarray(random_values.uniform(0.6, 1.4, 3).astype(d), requires_grad=i < 2)
        for i, d in enumerate(("float64", "float32", "float64"))
    ]
    results = run(xp, program(seed), leaves, in_place)
    total = sum(xp.sum(x) * (i + 1.0) for i, x in enumerate(results) if x.requires_grad)
    first = mg.autograd.grad(total, leaves[:2], create_graph=True)
    products = sum(xp.sum(g * g) for g in first)
    second = (
        mg.autograd.grad(products, leaves[:2], allow_unused=True, materialize_grads=True)
        if products.requires_grad
        else ()
    )
    return [values(x) for x in (*results, *first, *second)]


@pytest.mark.sweep_after(1)
def test_as_without_in_place(xp: Any, backend: str) -> None:
    with np.errstate(all="ignore"):
        for seed in range(12 if backend == "jax" else 150):
            with mg.autograd.graph.allow_mutation_on_saved_tensors():
                found = outcome(xp, seed, True)
            expected = outcome(xp, seed, False)
            for got, want in zip(found, expected, strict=True):
                assert got.dtype == want.dtype and got.shape == want.shape, (seed, program(seed))
                np.testing.assert_allclose(
                    got, want, rtol=1e-4, atol=1e-4, err_msg=f"seed {seed}: {program(seed)}"
                )
