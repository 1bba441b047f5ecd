"""The engine over JAX: under jax.jit with Tensors as pytrees, inside jax.grad and jax.vmap, on arrays sharded over devices."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import multigrad as mg
from multigrad import func

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


def test_flags_of_a_tensor_do_not_travel_into_jit():
    seen = []

    @jax.jit
    def f(t):
        seen.append(t.requires_grad)
        t.requires_grad_()
        y = (t * t).sum()
        y.backward()
        return t.grad

    leaf = mg.asarray(jnp.arange(3.0), requires_grad=True)
    np.testing.assert_allclose(f(leaf).array, [0, 2, 4])
    f(mg.asarray(jnp.arange(3.0)))
    assert seen == [False]
    assert leaf.grad is None
    with pytest.raises((RuntimeError, ValueError, TypeError), match="leaf|detach"):
        f(leaf * 2)


def test_second_derivative_and_indexing_under_jit():
    def f(x):
        xp = x.__array_namespace__()
        return xp.sum(xp.take(x, xp.asarray(np.array([0, 2, 2]))) ** 3) + x[1] ** 2 + xp.sum(xp.where(x > 1.0, x, 0.0) ** 2)

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
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(gradient_norm)))(rows), jax.vmap(jax.grad(in_jax))(rows), rtol=1e-12)


def test_a_tracer_does_not_land_in_a_gradient_outside():
    outside = mg.asarray(jnp.ones(2), requires_grad=True)

    @jax.jit
    def f(x):
        (mg.asarray(x) * outside).sum().backward()
        return x

    with pytest.raises(RuntimeError, match=r"trace|tracer"):
        f(jnp.ones(2))
    assert outside.grad is None


def test_a_tracer_does_not_land_in_anything_outside():
    w = mg.asarray(jnp.ones(2), requires_grad=True)
    (w * 2).sum().backward()
    c = mg.asarray(jnp.zeros(2))

    def again(t):
        (w * t).sum().backward()

    def recorded(t):
        w.grad = None
        (w * w * t).sum().backward(create_graph=True)

    def assigned(t):
        w.grad = t

    def added(t):
        c.__iadd__(t)

    def written(t):
        c[0] = t[0]

    for f in (again, recorded, assigned, added, written):
        with pytest.raises(RuntimeError, match=r"trace|tracer"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            jax.jit(lambda x, f=f: (f(mg.asarray(x)), x)[1])(jnp.ones(2))
    np.testing.assert_array_equal(c.array, 0)


def test_a_tensor_of_a_transformation_does_not_pass_through_jax():
    with pytest.raises(RuntimeError, match="cannot pass into or out of a JAX transformation"):
        func.grad(lambda x: mg.sum(jax.jit(lambda z: z * z)(x)))(jnp.ones(3))


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
t = mg.asarray(x, requires_grad=True)
with mg.no_grad():
    t -= 0.5 * t
assert t.array.sharding.is_equivalent_to(rows, 2)
print("sharded")
"""


def test_gradients_of_sharded_arrays_stay_sharded():
    env = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", SHARDED], env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0 and "sharded" in done.stdout, done.stderr
