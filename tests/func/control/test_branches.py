"""func.cond and func.switch: with values that are known, of a batch, and traced; derivatives,
captured arrays, errors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from loop_programs import near

import multigrad as mg
from multigrad import func
from multigrad.errors import GradientError
from multigrad.extend import raw_namespace

X = np.array([0.5, -1.5])


def chosen(p: Any, x: Any, w: Any) -> Any:
    return func.cond(
        p, lambda x: {"a": mg.sin(x) * w, "n": mg.sum(x)}, lambda x: {"a": x * x, "n": mg.sum(w)}, x
    )


def total(p: Any, x: Any, w: Any) -> Any:
    found = chosen(p, x, w)
    return mg.sum(found["a"]) + found["n"] ** 2


def wanted(p: bool) -> Callable[..., Any]:
    return lambda x, w: (
        mg.sum(mg.sin(x) * w) + mg.sum(x) ** 2 if p else mg.sum(x * x) + mg.sum(w) ** 2
    )


W = np.array(3.0)


def test_only_the_chosen_function_is_called(backend: str) -> None:
    xp = raw_namespace(backend)
    x = xp.asarray(X)
    called = []
    for p in (True, 1, 2.5, xp.asarray(True), xp.asarray(3), mg.asarray(xp.asarray(True))):
        found = func.cond(
            p, lambda x: called.append("true") or 2.0 * x, lambda x: called.append("false") or x, x
        )
        assert type(found) is type(x)
    assert called == ["true"] * 6
    assert func.cond(xp.asarray(0.0), lambda: 1, lambda: 2) == 2
    assert isinstance(func.cond(True, lambda x: x, lambda x: x, mg.asarray(x)), mg.Tensor)
    parts = [lambda x: x[0], lambda x: 2.0 * x[0], lambda x: 3.0 * x[0]]
    assert [float(func.switch(i, parts, x)) for i in (-5, 0, 1, 2, 7)] == [0.5, 0.5, 1.0, 1.5, 1.5]
    near(func.switch(xp.asarray(1), [lambda x: x, lambda x: -x], x), -X)
    assert func.cond(True, lambda a, b: a["k"], lambda a, b: b, {"k": "text"}, None) == "text"
    assert [func.cond(xp.asarray(n), lambda: 1, lambda: 2) for n in (-1, 0, 2)] == [1, 2, 1]


@pytest.mark.parametrize("p", [True, False])
def test_derivatives(p: bool) -> None:
    at = np.array(p)
    near(func.grad(lambda x, w: total(at, x, w), (0, 1))(X, W), func.grad(wanted(p), (0, 1))(X, W))
    near(
        func.jvp(lambda x, w: total(at, x, w), (X, W), (X, W)), func.jvp(wanted(p), (X, W), (X, W))
    )
    near(func.hessian(lambda x: total(at, x, W))(X), func.hessian(lambda x: wanted(p)(x, W))(X))
    w = mg.asarray(W, requires_grad=True)
    total(at, X, w).backward()
    near(w.grad, func.grad(lambda w: wanted(p)(X, w))(W))


def test_a_predicate_of_each_example() -> None:
    xs, ps = np.stack([X, 2.0 * X]), np.array([True, False])
    near(func.vmap(chosen, in_axes=(0, 0, None))(ps, xs, W)["a"], [np.sin(X) * 3.0, 4.0 * X * X])
    each = [func.grad(wanted(bool(p)), (0, 1))(x, W) for p, x in zip(ps, xs, strict=True)]
    near(
        func.vmap(func.grad(total, (1, 2)), in_axes=(0, 0, None))(ps, xs, W),
        tuple(np.stack(g) for g in zip(*each, strict=True)),
    )
    near(
        func.grad(lambda w: mg.sum(func.vmap(total, in_axes=(0, 0, None))(ps, xs, w)))(W),
        sum(
            func.grad(lambda w, p=p, x=x: wanted(bool(p))(x, w))(W)
            for p, x in zip(ps, xs, strict=True)
        ),
    )
    near(
        func.jvp(lambda xs: func.vmap(total, in_axes=(0, 0, None))(ps, xs, W), (xs,), (xs,))[1],
        np.stack(
            [
                func.jvp(lambda x, p=p: wanted(bool(p))(x, W), (x,), (x,))[1]
                for p, x in zip(ps, xs, strict=True)
            ]
        ),
    )
    parts = [lambda x: x, lambda x: 2.0 * x, lambda x: 3.0 * x]
    near(
        func.vmap(lambda i, x: func.switch(i, parts, x))(
            np.array([-1, 0, 1, 2, 9]), np.ones((5, 2))
        ),
        np.repeat([[1.0], [1.0], [2.0], [3.0], [3.0]], 2, axis=1),
    )
    near(func.vmap(lambda x: func.cond(True, lambda x: x, lambda x: x / 0, x))(xs), xs)


def test_in_a_scan() -> None:
    def f(w: Any, xs: Any) -> Any:
        return func.scan(
            lambda c, x: (func.cond(x > 0.0, lambda c: c * w, lambda c: mg.sin(c), c), None),
            np.array(1.0),
            xs,
        )[0]

    def loop(w: Any, xs: Any) -> Any:
        c = mg.asarray(1.0)
        for x in xs:
            c = c * w if x > 0.0 else mg.sin(c)
        return c

    xs = np.random.default_rng(0).normal(size=40)
    near(func.value_and_grad(f)(np.array(1.1), xs), func.value_and_grad(loop)(np.array(1.1), xs))
    near(
        func.vmap(func.grad(f), in_axes=(None, 0))(np.array(1.1), np.stack([xs, -xs])),
        [func.grad(loop)(np.array(1.1), x) for x in (xs, -xs)],
    )


@pytest.mark.parametrize("p", [1.0, -1.0])
def test_under_jit_it_is_a_branch_of_lax(p: float) -> None:
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    x, w = jnp.asarray(X), jnp.asarray(W)
    f = lambda p, x, w: total(p > 0.0, x, w)
    expected = wanted(p > 0.0)
    near(jax.jit(f)(p, x, w), expected(X, W))
    near(jax.jit(func.grad(f, (1, 2)))(p, x, w), func.grad(expected, (0, 1))(X, W))
    near(jax.jit(func.hessian(f, 1))(p, x, w), func.hessian(expected)(X, W))
    near(
        jax.jit(lambda p, x, w: func.jvp(lambda x, w: f(p, x, w), (x, w), (x, w)))(p, x, w),
        func.jvp(expected, (X, W), (X, W)),
    )
    rows = jax.jit(func.vmap(func.grad(f, 1), in_axes=(None, 0, None)))(p, jnp.stack([x, -x]), w)
    near(rows, [func.grad(expected)(v, W) for v in (X, -X)])
    near(jax.grad(lambda w: jax.jit(f)(p, x, w).array)(w), func.grad(expected, 1)(X, W))
    assert "cond[" in str(jax.make_jaxpr(f)(p, x, w))
    each = jax.jit(lambda i: func.switch(i, [lambda: 1.0, lambda: 2.0, lambda: 3.0]))
    assert [float(each(i)) for i in (-3, 0, 1, 2, 8)] == [1.0, 1.0, 2.0, 3.0, 3.0]


def test_errors() -> None:
    x = np.ones(2)
    cases: list[tuple[Any, type[Exception], str]] = [
        (
            lambda: func.cond(x, lambda: 1, lambda: 2),
            TypeError,
            r"cond: pred must be a bool or an array of shape \(\), not an array of shape \(2,\)",
        ),
        (
            lambda: func.cond(None, lambda: 1, lambda: 2),
            TypeError,
            r"cond: pred must be a bool or an array of shape \(\), not a NoneType",
        ),
        (
            lambda: func.cond(True, 1, lambda: 2),
            TypeError,
            "cond: true_fun must be a function, not int",
        ),  # type: ignore[arg-type]
        (
            lambda: func.switch(0, []),
            ValueError,
            "switch: branches must be a list or a tuple of at least one function, not list of 0",
        ),
        (
            lambda: func.switch(0.5, [lambda: 1]),
            TypeError,
            r"switch: index must be an int or an integer array of shape \(\), not a float",
        ),
        (lambda: func.switch(0, [1]), TypeError, "switch: branch 0 must be a function, not int"),  # type: ignore[list-item]
        (
            lambda: func.vmap(lambda p: func.cond(p, lambda: (p, p), lambda: p))(x > 0),
            TypeError,
            "cond: all functions must return the same, but true_fun of cond differs from "
            "false_fun of cond: expected an array, got tuple of 2",
        ),
        (
            lambda: func.vmap(lambda p: func.cond(p, lambda x: x[:1], lambda x: x, x))(x > 0),
            TypeError,
            r"true_fun of cond differs from false_fun of cond: the leaf is of shape \(1,\) and "
            r"dtype float64, and not of shape \(2,\) and dtype",
        ),
        (
            lambda: func.vmap(lambda p: func.cond(p, lambda x: "a", lambda x: "b", x))(x > 0),
            TypeError,
            "cond: false_fun of cond must return arrays, but the leaf is a str",
        ),
    ]
    for run, kind, text in cases:
        with pytest.raises(kind, match=text):
            run()

    def writes(x: Any) -> Any:
        x += 1.0
        return x

    with pytest.raises(
        GradientError,
        match="true_fun of cond must not write to an argument or a captured array, but add_ does",
    ):
        func.vmap(lambda p: func.cond(p, writes, lambda x: x, x))(x > 0)
