"""Random programs: generated code computes what the general path computes, and leaves no cycles."""

from __future__ import annotations

import random

import numpy as np
import pytest
from conftest import values
from general_path import general_path

import multigrad as mg
from multigrad import autograd

STEPS = [
    lambda a, b: mg.add(a, b),
    lambda a, b: mg.multiply(a, b),
    lambda a, b: mg.subtract(a, 0.5),
    lambda a, b: mg.divide(a, mg.add(mg.square(b), 3)),
    lambda a, b: mg.tanh(a),
    lambda a, b: mg.pow(mg.add(mg.square(a), 1), 0.5),
    lambda a, b: mg.pow(2.0, mg.multiply(a, 0.1)),
    lambda a, b: mg.sum(a, axis=-1, keepdims=True) if a.ndim else a,
    lambda a, b: mg.matrix_transpose(a) if a.ndim > 1 else a,
    lambda a, b: mg.where(mg.greater(a, 0.1), a, 0.0),
    lambda a, b: a.detach(),
    lambda a, b: mg.reshape(a, a.shape),
    lambda a, b: mg.maximum(a, 0.25),
]


def run_program(seed, dtype):
    r = random.Random(seed)
    data = np.random.default_rng(seed)
    shape = r.choice([(), (3,), (3, 3), (0, 0)])
    leaves = [
        mg.asarray(np.asarray(data.normal(size=shape), dtype=dtype), requires_grad=r.random() < 0.8)
        for _ in range(2)
    ]
    found = list(leaves)
    for _ in range(8):
        found.append(r.choice(STEPS)(r.choice(found), r.choice(found)))
    loss = mg.sum(found[-1]) + mg.sum(found[-2] * found[-2])
    wanted = [x for x in leaves if x.requires_grad]
    result = [values(f) for f in found]
    if loss.requires_grad:
        first = autograd.grad(loss, wanted, create_graph=True, materialize_grads=True)
        total = sum(mg.sum(g * g) for g in first)
        second = autograd.grad(total, wanted, materialize_grads=True)
        result += [values(g) for g in (*first, *second)]
    return result


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_hot_path_agrees_with_general_path(dtype):
    for seed in range(60):
        run_program(seed, dtype)  # learns
    quick = [run_program(seed, dtype) for seed in range(60)]
    with general_path():
        slow = [run_program(seed, dtype) for seed in range(60)]
    for one, other in zip(quick, slow, strict=True):
        for a, b in zip(one, other, strict=True):
            assert a.dtype == b.dtype and a.shape == b.shape
            np.testing.assert_allclose(
                a, b, rtol=2e-5 if dtype is np.float32 else 1e-12, atol=1e-12, equal_nan=True
            )
