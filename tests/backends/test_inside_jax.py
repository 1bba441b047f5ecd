"""Tensors inside JAX: under jax.jit as pytrees, inside jax.grad and jax.vmap, on arrays sharded
over devices.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import multigrad as mg
from multigrad import autograd, func
from multigrad.dispatch import runners
from multigrad.errors import GradientError

jax = pytest.importorskip("jax")
jnp = jax.numpy


def loss_of(w, b, x, y):
    xp = w.__array_namespace__()
    h = xp.tanh(x @ w + b)
    return xp.mean((h - y) ** 2)


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    return [jnp.asarray(rng.normal(size=s)) for s in ((4, 3), (3,), (8, 4), (8, 3))]


def reference(problem):
    return jax.grad(loss_of_jax, argnums=(0, 1))(*problem)


def loss_of_jax(w, b, x, y):
    return jnp.mean((jnp.tanh(x @ w + b) - y) ** 2)


def test_gradient_under_jit(problem):
    for f in (func.grad(loss_of, argnums=(0, 1)), jax.jit(func.grad(loss_of, argnums=(0, 1)))):
        for found, expected in zip(f(*problem), reference(problem), strict=True):
            assert isinstance(found, jax.Array)
            np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_whole_training_step_under_jit(problem):
    traced = []

    @jax.jit
    def step(w, b, x, y):
        traced.append(1)
        w, b = mg.asarray(w, requires_grad=True), mg.asarray(b, requires_grad=True)
        loss = loss_of(w, b, x, y)
        loss.backward()
        with mg.no_grad():
            for p in (w, b):
                p -= 0.1 * p.grad
        return loss.detach(), w.detach(), b.detach()

    w, b, x, y = (mg.asarray(a) for a in problem)
    gw, gb = reference(problem)
    loss, w1, b1 = step(w, b, x, y)
    assert isinstance(w1, mg.Tensor) and isinstance(loss, mg.Tensor)
    np.testing.assert_allclose(loss.array, loss_of_jax(*problem), rtol=1e-12)
    np.testing.assert_allclose(w1.array, problem[0] - 0.1 * gw, rtol=1e-12)
    np.testing.assert_allclose(b1.array, problem[1] - 0.1 * gb, rtol=1e-12)
    step(w1, b1, x, y)
    step(w1, b1, x, y)
    assert len(traced) == 1


def square(t):
    return (t * t).sum()


CROSSINGS = {
    "jit": lambda t: jax.jit(square)(t),
    "vmap": lambda t: jax.vmap(square)(t),
    "checkpoint": lambda t: jax.checkpoint(square)(t),
    "grad": lambda t: jax.grad(lambda a: square(a).array)(t),
    "jvp": lambda t: jax.jvp(square, (t,), (t,)),
    "tree.map": lambda t: jax.tree.map(lambda a: 2 * a, {"a": [t]}),
    "tree.leaves": lambda t: jax.tree.leaves((t, 1)),
    "tree_flatten_with_path": lambda t: jax.tree_util.tree_flatten_with_path({"a": t})[0][0][1],
    "scan": lambda t: jax.lax.scan(lambda carry, _: (carry, None), t, None, length=2),
    "cond": lambda t: jax.lax.cond(True, square, square, t),
    "eval_shape": lambda t: jax.eval_shape(square, t),
    "the result of jit": lambda t: jax.jit(lambda x: mg.asarray(x).requires_grad_())(jnp.ones(3)),
    "the result of tree.map": lambda t: jax.jit(
        lambda x: jax.tree.map(lambda a: mg.asarray(a).requires_grad_(), x)
    )(jnp.ones(3)),
}
LEAVES = {
    "a leaf": lambda: mg.asarray(jnp.asarray([1.0, 2.0, 3.0]), requires_grad=True),
    "a leaf on the memory of another": lambda: (
        mg.asarray(jnp.arange(5.0))[1:4].detach().requires_grad_()
    ),
    "a leaf on .data": lambda: mg.asarray(jnp.arange(3.0)).data.requires_grad_(),
}
REFUSED = (
    r"a Tensor that requires grad cannot pass into or out of a JAX transformation, .*\. Into a JAX "
    r"transformation, pass t\.detach\(\) .* `with mg\.no_grad\(\):`"
)
INSIDE = (
    r"a Tensor that requires grad cannot pass into or out of a JAX transformation, .* write "
    r"jax\.jit\(func\.grad\(f\)\) for func\.grad\(jax\.jit\(f\)\).* pass t\.detach\(\)"
)


class TestLeavesThatRequireGrad:
    """JAX sees the array alone: the gradient through it would be lost in silence."""

    @pytest.mark.parametrize("leaf", LEAVES)
    @pytest.mark.parametrize("crossing", CROSSINGS)
    def test_it_does_not_cross(self, crossing, leaf):
        with pytest.raises(mg.errors.GradientError, match=REFUSED):
            CROSSINGS[crossing](LEAVES[leaf]())

    @pytest.mark.parametrize("leaf", LEAVES)
    @pytest.mark.parametrize("crossing", [name for name in CROSSINGS if "result" not in name])
    def test_it_is_a_constant_under_no_grad(self, crossing, leaf):
        """As in the updates of an optimiser, which are trees of parameters and gradients."""
        t = LEAVES[leaf]()
        with mg.no_grad():
            found = jax.tree.leaves(CROSSINGS[crossing](t))
        with mg.no_grad():
            expected = jax.tree.leaves(CROSSINGS[crossing](t.detach()))
        assert t.requires_grad
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(getattr(a, "shape", a), getattr(b, "shape", b))
            if isinstance(a, jax.Array):
                np.testing.assert_array_equal(a, b)

    @pytest.mark.parametrize(
        "of",
        [lambda t: t[1:], lambda t: t * 2, lambda t: t.mT if t.ndim > 1 else t.reshape((3, 1))],
    )
    def test_what_is_computed_of_it_never_crosses(self, of):
        y = of(LEAVES["a leaf"]())
        for mode in (mg.enable_grad, mg.no_grad):
            with (
                mode(),
                pytest.raises(
                    mg.errors.GradientError,
                    match=r"a Tensor with a grad_fn cannot pass into or out .*, pass t\.detach",
                ),
            ):
                jax.jit(square)(y)

    @pytest.mark.parametrize(
        "of", [lambda t: t.detach(), lambda t: t.data, lambda t: t.detach()[:2]]
    )
    def test_a_constant_on_its_memory_crosses(self, of):
        t = of(LEAVES["a leaf"]())
        np.testing.assert_allclose(jax.jit(square)(t).array, float((t.array**2).sum()), rtol=1e-6)

    @pytest.mark.parametrize("crossing", CROSSINGS)
    def test_inside_transformations(self, crossing):
        """What a transformation differentiates, and leaves that are made inside; their levels
        record, whatever the base level does.
        """
        cross = CROSSINGS[crossing]
        with mg.no_grad(), pytest.raises(mg.errors.GradientError, match=INSIDE):
            func.grad(lambda x: (cross(x), mg.sum(x))[1])(jnp.ones(3))
        with pytest.raises(mg.errors.GradientError, match=INSIDE):
            func.grad(lambda x: (cross(mg.ones(3, requires_grad=True)), mg.sum(x))[1])(jnp.ones(3))

    def test_constants_inside_transformations(self):
        def f(x):
            with mg.no_grad():
                factor = jax.jit(lambda t: t * t)(x)
            return mg.sum(x * factor)

        x = jnp.asarray([1.0, 2.0, 3.0])
        np.testing.assert_allclose(func.grad(f)(x), x * x)
        np.testing.assert_allclose(
            jax.grad(lambda x: jnp.sum(x * jax.lax.stop_gradient(x * x)))(x), x * x
        )
        # a constant to the inner transformation alone
        with pytest.raises(mg.errors.GradientError, match=INSIDE):
            func.grad(lambda x: mg.sum(func.grad(f)(x)))(x)
        with pytest.raises(
            mg.errors.GradientError,
            match="a Tensor that holds a Dual cannot pass into or out of a JAX transformation",
        ):
            func.jvp(func.grad(f), (x,), (x,))
        with pytest.raises(
            mg.errors.GradientError,
            match="a Tensor that holds a batch cannot pass into or out of a JAX transformation",
        ):
            func.vmap(func.grad(f))(x[None])


def test_second_derivative_and_indexing_under_jit():
    def f(x):
        xp = x.__array_namespace__()
        return (
            xp.sum(xp.take(x, xp.asarray(np.array([0, 2, 2]))) ** 3)
            + x[1] ** 2
            + xp.sum(xp.where(x > 1.0, x, 0.0) ** 2)
        )

    def hessian_rows(x):
        return func.grad(lambda x: (func.grad(f)(x) ** 2).sum())(x)

    x = jnp.asarray([0.5, 1.5, 2.0])
    np.testing.assert_allclose(jax.jit(hessian_rows)(x), hessian_rows(x), rtol=1e-12)


def test_inside_transformations_of_jax():
    def gradient_norm(x):
        g = func.grad(lambda x: mg.sum(mg.sin(x) * x))(x)
        return jnp.sum(g**2)

    def in_jax(x):
        g = jax.grad(lambda x: jnp.sum(jnp.sin(x) * x))(x)
        return jnp.sum(g**2)

    x = jnp.linspace(0.1, 2.0, 5)
    np.testing.assert_allclose(jax.grad(gradient_norm)(x), jax.grad(in_jax)(x), rtol=1e-12)
    rows = jnp.stack([x, 2 * x, x + 1])
    np.testing.assert_allclose(jax.vmap(gradient_norm)(rows), jax.vmap(in_jax)(rows), rtol=1e-12)
    np.testing.assert_allclose(
        jax.jit(jax.vmap(jax.grad(gradient_norm)))(rows),
        jax.vmap(jax.grad(in_jax))(rows),
        rtol=1e-12,
    )


SHARDED = """
import jax, numpy as np, multigrad as mg
from multigrad import func
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
assert len(jax.devices()) == 8
mesh = Mesh(np.array(jax.devices()), ("i",))
rows = NamedSharding(mesh, P("i"))
x = jax.device_put(np.arange(32.0).reshape(16, 2), rows)

def losses(xp):
    yield "sum", lambda t: xp.sum(t)
    yield "square", lambda t: xp.sum(t * t)
    yield "mean", lambda t: xp.mean(xp.sin(t) @ xp.ones((2, 3), dtype=t.dtype))
    yield "max", lambda t: xp.max(t) + xp.sum(xp.max(t, axis=0))
    yield "rows", lambda t: xp.sum(xp.var(t, axis=1))

for name, loss in losses(mg.namespace("jax")):
    t = mg.asarray(x, requires_grad=True)
    y = loss(t)
    y.backward(retain_graph=True)
    (g,) = mg.autograd.grad(y, t)
    for found in (t.grad.array, g.array):
        assert found.sharding.is_equivalent_to(rows, 2), (name, found.sharding)
        t2 = mg.asarray(np.asarray(x), requires_grad=True)
        dict(losses(mg.namespace("numpy")))[name](t2).backward()
        np.testing.assert_allclose(np.asarray(found), t2.grad.array, rtol=1e-6)
kernel = mg.extend.backend("jax").kernel
for name in ("place_like", "take_ownership"):
    assert kernel(name)(jax.numpy, jax.numpy.ones((16, 2)), x).sharding == rows
everywhere = kernel("device")(jax.numpy, x)
assert mg.namespace("jax").zeros((3,), device=everywhere).array.sharding.num_devices == 8
t = mg.asarray(x, requires_grad=True)
with mg.no_grad():
    t -= 0.5 * t
assert t.array.sharding.is_equivalent_to(rows, 2)
print("sharded")
"""


@pytest.mark.sweep
def test_gradients_of_sharded_arrays_stay_sharded():
    env = {
        **os.environ,
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
        "JAX_ENABLE_X64": "1",
        "JAX_PLATFORMS": "cpu",
    }
    done = subprocess.run(
        [sys.executable, "-c", SHARDED],
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0 and "sharded" in done.stdout, done.stderr


@pytest.mark.parametrize(
    "action", ["accumulate", "create_graph", "retain", "assign", "add", "setitem"]
)
def test_no_tracer_is_kept_outside(action):
    w = mg.asarray(jnp.ones(3), requires_grad=True)
    constant = mg.asarray(jnp.ones(3))
    y = w * 2
    y.retain_grad()
    mg.sum(w * 2).backward()

    def f(x):
        nonlocal constant
        t = mg.asarray(x)
        if action == "accumulate":
            mg.sum(w * t).backward()
        elif action == "create_graph":
            mg.sum(w * w * t).backward(create_graph=True)
        elif action == "retain":
            autograd.grad(mg.sum(y * t), w, retain_graph=True)
        elif action == "assign":
            w.grad = t
        elif action == "add":
            constant += t
        else:
            constant[0] = t[0]
        return x

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        with pytest.raises(GradientError, match="tracer"):
            jax.jit(f)(jnp.ones(3))
    for kept in (w.grad, y.grad, constant):
        assert kept is None or not isinstance(kept.array, jax.core.Tracer)


@pytest.mark.parametrize("name", ["positive", "conj"])
def test_what_is_computed_of_each_element_is_a_new_array(name):
    """Of a tracer JAX returns the tracer itself, by the general path as by generated code."""

    def written(a):
        x = mg.asarray(a)
        y = getattr(mg, name)(x)
        y[0] = 5.0
        return x.array, y.array

    with runners.interpreted():
        x, y = jax.jit(written)(jnp.asarray([1.0, 2.0]))
    assert (x.tolist(), y.tolist()) == ([1.0, 2.0], [5.0, 2.0])
