"""Transformations under jax.jit: compiled once, equal to eager, and no more work for XLA than JAX's
own; and JAX's transformations over ours.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pytest

import multigrad as mg
from multigrad import func

jax = pytest.importorskip("jax")
jnp = jax.numpy

SIZES = (20, 16, 16, 4)


def network(xp: Any) -> Any:
    """The loss of a classifier of three layers, from the names of the standard alone."""

    def loss(parameters: Any, x: Any, t: Any) -> Any:
        for i, (w, b) in enumerate(parameters):
            x = xp.matmul(x, w) + b
            if i < len(parameters) - 1:
                x = xp.maximum(x, 0.0)
        z = x - xp.max(x, axis=-1, keepdims=True)
        return -xp.mean(
            xp.sum(t * (z - xp.log(xp.sum(xp.exp(z), axis=-1, keepdims=True))), axis=-1)
        )

    return loss


OURS = network(mg.namespace("jax"))
THEIRS = network(jnp)


@pytest.fixture
def problem() -> Any:
    rng = np.random.default_rng(0)
    parameters = [
        (jnp.asarray(rng.normal(size=s) * 0.3), jnp.asarray(rng.normal(size=s[1]) * 0.1))
        for s in pairwise(SIZES)
    ]
    return (
        parameters,
        jnp.asarray(rng.normal(size=(8, SIZES[0]))),
        jnp.asarray(np.eye(SIZES[-1])[rng.integers(0, SIZES[-1], 8)]),
    )


def close(found: Any, expected: Any) -> None:
    assert jax.tree_util.tree_structure(found) == jax.tree_util.tree_structure(expected)
    for a, b in zip(
        jax.tree_util.tree_leaves(found), jax.tree_util.tree_leaves(expected), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def counted(f: Any) -> tuple[Any, list[int]]:
    """`f` under jit, and a list that grows by one each time that it is traced."""
    traces: list[int] = []

    @jax.jit
    def traced(*args: Any) -> Any:
        traces.append(1)
        return f(*args)

    return traced, traces


PER_EXAMPLE = {
    "ours": func.vmap(func.grad(OURS), in_axes=(None, 0, 0)),
    "theirs": jax.vmap(jax.grad(THEIRS), in_axes=(None, 0, 0)),
}
BOTH = {
    "grad": (func.grad(OURS), jax.grad(THEIRS)),
    "value_and_grad": (func.value_and_grad(OURS), jax.value_and_grad(THEIRS)),
    "per-example gradients": (PER_EXAMPLE["ours"], PER_EXAMPLE["theirs"]),
    "jvp of grad": (
        lambda p, x, t: func.jvp(lambda p: func.grad(OURS)(p, x, t), (p,), (p,))[1],
        lambda p, x, t: jax.jvp(lambda p: jax.grad(THEIRS)(p, x, t), (p,), (p,))[1],
    ),
}


@pytest.mark.sweep_after(1)
@pytest.mark.parametrize("name", BOTH)
def test_compiled_once_and_equal(problem, name):
    ours, theirs = BOTH[name]
    compiled, traces = counted(ours)
    found = compiled(*problem)
    close(found, jax.jit(theirs)(*problem))
    close(found, ours(*problem))
    compiled(*problem)
    compiled(problem[0], problem[1] * 2, problem[2])
    assert len(traces) == 1


def test_a_training_step_with_tensors_and_updates_in_place(problem):
    """Parameters as Tensors in and out of jit, momentum, and a view that is written through."""
    parameters, x, t = problem

    def step(flat: Any, velocity: Any, x: Any, t: Any) -> Any:
        for p in flat:
            p.requires_grad_()
        loss = OURS([(flat[0], flat[1]), (flat[2], flat[3]), (flat[4], flat[5])], x, t)
        loss.backward()
        with mg.no_grad():
            for p, v in zip(flat, velocity, strict=True):
                v *= 0.9
                v += p.grad
                p -= 0.1 * v
            flat[0][0] *= 0.5  # decay of one row
        return loss.detach(), [p.detach() for p in flat], velocity

    def tensors() -> Any:
        flat = [mg.asarray(a) for pair in parameters for a in pair]
        return flat, [mg.asarray(jnp.zeros_like(p.array)) for p in flat]

    def run(step: Any) -> list[Any]:
        flat, velocity = tensors()
        losses = []
        for _ in range(4):
            loss, flat, velocity = step(flat, velocity, mg.asarray(x), mg.asarray(t))
            losses.append(float(loss))
        return [losses, *(np.asarray(p.array) for p in flat)]

    compiled, traces = counted(step)
    for a, b in zip(run(compiled), run(step), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)
    assert len(traces) == 1


def work(f: Any, *args: Any) -> Counter[str]:
    """How often each operation of XLA stands in the compiled program."""
    return Counter(re.findall(r"= \S+ ([a-z\-]+)\(", jax.jit(f).lower(*args).compile().as_text()))


@pytest.mark.parametrize("name", ["grad", "per-example gradients"])
def test_xla_does_the_same_work(problem, name):
    """As many matrix products and transcendental functions, no more passes over memory; the rest
    differs by how ties of a maximum are told.
    """
    ours, theirs = (work(f, *problem) for f in BOTH[name])
    for operation in (
        "dot",
        "custom-call",
        "exponential",
        "log",
        "reduce",
        "transpose",
        "copy",
        "while",
        "gather",
        "scatter",
        "sort",
    ):
        assert ours[operation] <= theirs[operation], (operation, ours, theirs)
    assert ours["fusion"] <= theirs["fusion"] + 3
    assert sum(ours.values()) <= 1.15 * sum(theirs.values())


def test_jax_transformations_over_ours(problem):
    """jax.grad, jax.jvp, jax.vmap and jax.hessian of functions that differentiate and batch
    inside.
    """
    xp = mg.namespace("jax")
    x = jnp.linspace(0.2, 1.4, 4)
    rows = jnp.stack([x, x + 1, x * x])
    ours = lambda x: xp.sum(func.hessian(lambda y: xp.sum(xp.sin(y) * y**2))(x) @ x).array
    theirs = lambda x: jnp.sum(jax.hessian(lambda y: jnp.sum(jnp.sin(y) * y**2))(x) @ x)
    batched = lambda x: xp.sum(func.vmap(func.grad(lambda s: s**4))(x)).array
    for f, g in ((ours, theirs), (batched, lambda x: jnp.sum(4 * x**3))):
        for transformed in (jax.grad, lambda f: lambda x: jax.jvp(f, (x,), (x,))[1], jax.hessian):
            close(jax.jit(transformed(f))(x), jax.jit(transformed(g))(x))
        close(jax.jit(jax.vmap(jax.grad(f)))(rows), jax.jit(jax.vmap(jax.grad(g)))(rows))


def test_ours_over_functions_compiled_by_jax():
    """jax.jit inside our transformations cannot be differentiated by us: it raises and says so,
    instead of a silent zero.
    """
    inner = jax.jit(lambda t: t * 2)
    with pytest.raises((RuntimeError, TypeError, ValueError)):
        func.grad(lambda x: mg.sum(inner(x)))(jnp.ones(3))
    with pytest.raises((RuntimeError, TypeError, ValueError)):
        func.vmap(lambda x: inner(x))(jnp.ones(3))


class TestWritesUnderEagerTransformations:
    """JAX makes tracers of the arguments alone: zeros made inside are an array like any other, and
    are written to all the same.
    """

    @staticmethod
    def ours(a):
        z = a.__array_namespace__().zeros(2)
        z[:] = a
        y = mg.zeros_like(a)
        y += a
        part = y[1:]
        part *= z[0]
        return mg.sum(z * y**2)

    @staticmethod
    def theirs(a):
        return jnp.sum(a * (a * jnp.asarray([1.0, 0.0]) + a * a[0] * jnp.asarray([0.0, 1.0])) ** 2)

    PROGRAMS: ClassVar = {
        "vmap of grad": (lambda f: jax.vmap(func.grad(f)), lambda f: jax.vmap(jax.grad(f))),
        "grad of grad": (
            lambda f: lambda x: jax.grad(lambda a: jnp.sum(func.grad(f)(a)))(x[0]),
            lambda f: lambda x: jax.grad(lambda a: jnp.sum(jax.grad(f)(a)))(x[0]),
        ),
        "plain Tensors": (
            lambda f: lambda x: jax.grad(lambda a: f(mg.asarray(a)).array)(x[0]),
            lambda f: lambda x: jax.grad(f)(x[0]),
        ),
        "leaves": (
            lambda f: jax.vmap(
                lambda a: mg.autograd.grad(f(t := mg.asarray(a, requires_grad=True)), t)[0].array
            ),
            lambda f: jax.vmap(jax.grad(f)),
        ),
    }

    @pytest.mark.sweep_after(2)
    @pytest.mark.parametrize("name", PROGRAMS)
    def test_as_in_jax(self, name):
        ours, theirs = self.PROGRAMS[name]
        x = jnp.asarray([[1.0, 2.0], [3.0, 4.0]])
        expected = jax.jit(theirs(self.theirs))(x)
        close(ours(self.ours)(x), expected)
        close(jax.jit(ours(self.ours))(x), expected)

    @staticmethod
    def writing(c):
        def f(a):
            with mg.no_grad():
                c.__imul__(mg.asarray(a))
            return jnp.sum(c.array)

        return f

    EAGER: ClassVar = {
        "vmap": jax.vmap,
        "grad": lambda f: lambda x: jax.grad(f)(x[0]),
        "jvp": lambda f: lambda x: jax.jvp(f, (x[0],), (x[0],)),
    }

    @pytest.mark.parametrize("name", EAGER)
    def test_a_tensor_from_outside(self, name):
        """A leaf that requires grad is protected; of another Tensor JAX itself says that it was
        written to, when it is used again.
        """
        transform, x = self.EAGER[name], jnp.ones((2, 2)) * 3
        w = mg.asarray(jnp.ones(2), requires_grad=True)
        with pytest.raises(
            mg.errors.GradientError,
            match="write a tracer into .* that Tensor itself, which requires grad",
        ) as info:
            transform(self.writing(w))(x)
        assert "backward()" not in str(info.value)
        assert w.array.tolist() == [1, 1]
        c = mg.asarray(jnp.ones(2))
        part = c[:1]
        transform(self.writing(c))(x)
        for use in (
            lambda: c + 1,
            lambda: part * 2,
            c.tolist,
            lambda: jax.jit(lambda y: (c * y).array)(x),
            lambda: transform(self.writing(c))(x),
        ):
            with pytest.raises(jax.errors.UnexpectedTracerError):
                use()

    @pytest.mark.parametrize(
        "transform",
        [
            lambda f: lambda x: jax.jit(f)(x[0]),
            lambda f: jax.jit(jax.vmap(f)),
            lambda f: lambda x: jax.lax.map(f, x),
        ],
    )
    def test_a_tensor_from_outside_where_jax_compiles(self, transform):
        x = jnp.ones((2, 2)) * 3
        c = mg.asarray(jnp.ones((2, 2)))
        for t in (c, c[0], mg.asarray(jnp.ones(2), requires_grad=True)):
            with pytest.raises(
                mg.errors.GradientError,
                match=r"write in place, .* would put a tracer into a Tensor with an array from "
                r"outside",
            ):
                transform(self.writing(t))(x)
        assert c.array.tolist() == [[1, 1], [1, 1]]
        close(transform(lambda a: self.writing(c[0].clone())(a))(x), transform(jnp.sum)(x))

    def test_a_gradient_that_is_a_view(self):
        rows = mg.asarray(jnp.zeros((2, 2)))
        w = mg.asarray(jnp.ones(2), requires_grad=True)
        w.grad = rows[0]
        with pytest.raises(mg.errors.GradientError, match=r"write a tracer into the \.grad"):
            jax.vmap(lambda a: (mg.sum(w * mg.asarray(a)).backward(), a)[1])(jnp.ones((2, 2)))
        assert rows.array.tolist() == [[0, 0], [0, 0]]
