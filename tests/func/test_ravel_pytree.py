"""func.ravel_pytree: all arrays of a nested structure as one vector, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import multigrad as mg
from multigrad import func
from multigrad.extend import raw_namespace


@dataclass
class Pair:
    a: Any
    b: Any


def test_every_backend_there_and_back(backend: str) -> None:
    xp = raw_namespace(backend)
    tree = {
        "a": xp.ones((2, 3), dtype=xp.float64),
        "b": [xp.zeros((2,), dtype=xp.float32), Pair(xp.asarray(2.0, dtype=xp.float64), None)],
    }
    vector, unravel = func.ravel_pytree(tree)
    assert type(vector) is type(tree["a"]) and vector.shape == (9,) and vector.dtype == xp.float64
    back = unravel(vector * 2.0)
    assert (
        back["a"].shape == (2, 3)
        and back["b"][0].dtype == xp.float32
        and float(back["b"][1].a) == 4.0
        and back["b"][1].b is None
    )
    assert type(back["a"]) is type(vector)
    assert isinstance(unravel(mg.asarray(vector))["a"], mg.Tensor)


def test_it_is_differentiable_at_every_level() -> None:
    tree = {"a": np.ones((2, 2)), "b": np.array(3.0)}
    square = lambda t: mg.sum(func.ravel_pytree(t)[0] ** 2)
    g = func.grad(square)(tree)
    assert np.array_equal(g["a"], 2 * tree["a"]) and g["b"] == 6.0
    vector, unravel = func.ravel_pytree(tree)
    assert np.array_equal(func.hessian(lambda v: square(unravel(v)))(vector), 2 * np.eye(5))
    assert np.array_equal(
        func.vmap(lambda r: func.ravel_pytree((r, r[0]))[0])(np.arange(4.0).reshape(2, 2)),
        [[0, 1, 0], [2, 3, 2]],
    )
    t = mg.asarray(np.ones(2), requires_grad=True)
    mg.sum(func.ravel_pytree([t, t])[0] ** 2).backward()
    assert np.array_equal(t.grad, [4.0, 4.0])


def test_edges() -> None:
    x = np.ones(3)
    assert np.shares_memory(func.ravel_pytree(x)[0], x)
    vector, unravel = func.ravel_pytree({"a": []})
    assert vector.shape == (0,) and unravel(vector) == {"a": []}
    with pytest.raises(
        ValueError, match=r"unravel: expected a vector of shape \(3,\), got shape \(2,\)"
    ):
        func.ravel_pytree(x)[1](x[:2])
    with pytest.raises(
        TypeError,
        match="ravel_pytree: expected arrays, or nested dictionaries, lists and tuples of "
        "arrays, but a leaf is a float",
    ):
        func.ravel_pytree([x, 1.0])


@pytest.mark.parametrize("wrap", [lambda x: x, mg.asarray], ids=["raw", "tensors"])
def test_arrays_of_two_libraries(wrap: Any) -> None:
    other = raw_namespace("strict").asarray([1.0])
    with pytest.raises(
        mg.errors.MixedBackendsError, match=r"^ravel_pytree: .* 'numpy' and 'strict'"
    ):
        func.ravel_pytree([wrap(np.ones(2)), wrap(other)])
