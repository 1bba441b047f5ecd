"""Programs on JAX: under jax.jit, with guards that are looked at before anything is returned."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from recorded_programs import recorded

import multigrad as mg
from multigrad import extend, func
from multigrad.compiling.checks import HiddenStateError
from multigrad.program import Missed

pytest.importorskip("jax")

import jax
import jax.numpy as jnp

from multigrad.backends.jax import program as jax_program
from multigrad.backends.jax.program import Jitted

X, Y = jnp.linspace(0.1, 0.9, 5), jnp.linspace(0.5, 1.5, 5)


def replay(f: Any, *args: Any) -> Any:
    return extend.backend("jax").kernel("compile")(
        extend.raw_namespace("jax"), recorded(f, *args), arena=0
    )


def chain(x: Any, y: Any) -> Any:
    for _ in range(4):
        x = mg.tanh(mg.sin(x) * y + y) * 0.5
    return mg.sum(x)


@pytest.mark.parametrize("piece", [500, 3])
def test_a_program_is_compiled(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax_program, "PIECE", piece)
    f = func.value_and_grad(chain, argnums=(0, 1))
    run = replay(f, X, Y)
    assert isinstance(run, Jitted) and (len(run._pieces) == 1) is (piece == 500)
    value, (gx, gy) = f(X * 2, Y)
    for _ in range(2):
        for a, b in zip(run(X * 2, Y), (value, gx, gy), strict=True):
            assert isinstance(a, jax.Array) and np.allclose(a, b, rtol=1e-6)


def test_guards_are_looked_at_before_results_are_given() -> None:
    def f(x: Any) -> Any:
        y = mg.sin(x)
        return y * 2 if mg.sum(y) > 0 else y

    run = replay(f, X)
    assert np.allclose(run(X)[0], np.sin(X) * 2)
    with pytest.raises(Missed) as missed:
        run(-X)
    assert missed.value.got is False and missed.value.guard.kind == "bool"


def test_numbers_keep_the_precision_of_python() -> None:
    def f(x: Any, a: float, n: int) -> Any:
        b = a / 3 + n // 2
        return x * b if b > 1 else x * (a * a)

    run = replay(f, X, 5.0, 3)
    assert np.array_equal(run(X, 7.0, 5)[0], X * (7.0 / 3 + 2))
    with pytest.raises(Missed) as missed:
        run(X, 0.25, 1)
    assert missed.value.guard.kind == "bool"
    assert np.array_equal(run(X, 7.0, 5)[0], X * (7.0 / 3 + 2))


def test_shapes_that_depend_on_values_run_one_by_one() -> None:
    run = replay(lambda x: mg.sum(x[mg.nonzero(x > 0.4)[0]]), X)
    assert not isinstance(run, Jitted)
    assert np.allclose(run(X)[0], np.sum(X[X > 0.4]))


def test_checks_run_one_by_one() -> None:
    run = replay(mg.nanargmax, X)
    assert int(run(X)[0]) == 4


def test_a_function_of_numpy_is_named_as_the_cause_of_another_class() -> None:
    compiled = func.compile(lambda x: (np.sin(x), x * 2.0))
    compiled(X)
    with pytest.raises(
        HiddenStateError, match="an array of numpy where its program returns one of"
    ):
        compiled(X)
