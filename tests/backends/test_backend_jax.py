"""The JAX backend: what it mends, its kernels, Tensors as pytrees."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import multigrad as mg
from multigrad.backends.raw import RawNamespace
from multigrad.errors import GradientError
from multigrad.plugins import discovery


def jax_parts() -> tuple[Any, Any, Any]:
    jax = pytest.importorskip("jax")
    return jax, jax.numpy, RawNamespace(discovery.get("jax"))


@pytest.mark.parametrize("x64", [False, True])
def test_jax_mends(x64: bool) -> None:
    jax, jnp, xp = jax_parts()
    with discovery.get("jax").variants["x64" if x64 else "x32"]() as device:
        assert device is None
        x = jnp.arange(6.0).reshape(2, 3)
        assert xp.permute_dims(x, (-1, 0)).shape == (3, 2)
        assert xp.cumulative_prod(jnp.ones(3, jnp.int8)).dtype == jnp.asarray(1).dtype
        assert xp.cumulative_prod(jnp.ones(3, jnp.float32)).dtype == jnp.float32
        assert xp.searchsorted(jnp.array([1.0, 2.0]), 1.5).dtype == jnp.asarray(1).dtype
        assert type(xp.broadcast_arrays(x, x)) is tuple
        assert type(xp.meshgrid(x[0], x[1])) is tuple
        for made in (
            xp.asarray(2.0),
            xp.full((2,), 2.0),
            xp.asarray(True),
            xp.asarray(1),
            xp.asarray(1j),
            xp.zeros(3),
            xp.arange(3),
        ):
            assert not made.weak_type
        assert xp.asarray(2.0).dtype == (jnp.float64 if x64 else jnp.float32)
        assert not xp.zeros((3,), device=xp.device_of(x)).committed
        assert jax.config.jax_enable_x64 == x64


def test_jax_index_out_of_bounds() -> None:
    _, jnp, xp = jax_parts()
    x = jnp.arange(6.0).reshape(2, 3)
    for key, message in [
        (5, "index 5 is out of bounds for axis 0 with size 2"),
        (-3, "index -3 is out of bounds for axis 0 with size 2"),
        ((Ellipsis, 3), "index 3 is out of bounds for axis 1 with size 3"),
        ((slice(None), -4), "index -4 .* axis 1"),
        ((None, 0, 7), "index 7 .* axis 1"),
        (np.array([0, 2]), "index 2 .* axis 0"),
        (np.array([0, -3]), "index -3"),
    ]:
        with pytest.raises(IndexError, match=message):
            xp.getitem(x, key)
        with pytest.raises(IndexError, match=message):
            xp.setitem(x, key, 0.0)
    key = jnp.array([0, 2])
    assert np.isnan(xp.getitem(x, key)[1]).all()  # and no gradient comes back from there
    np.testing.assert_array_equal(xp.unindex(jnp.ones((2, 3)), key, (2, 3)), [[1, 1, 1], [0, 0, 0]])


def test_jax_scatters_under_jit() -> None:
    jax, jnp, xp = jax_parts()
    x, mask = jnp.arange(6.0).reshape(2, 3), jnp.array([[True, False, True], [False, False, True]])
    values = jnp.array([7.0, 8.0, 9.0])
    got = jax.jit(
        lambda x, m, v: (xp.setitem(x, m, v), xp.unindex(v, m, (2, 3)), xp.setitem(x, m, 0.0))
    )(x, mask, values)
    np.testing.assert_array_equal(got[0], [[7, 1, 8], [3, 4, 9]])
    np.testing.assert_array_equal(got[1], [[7, 0, 8], [0, 0, 9]])
    np.testing.assert_array_equal(got[2], [[0, 1, 0], [3, 4, 0]])
    added = jax.jit(lambda v, i: xp.scatter_add(v, i, 4))(values, jnp.array([0, -1, 0]))
    np.testing.assert_array_equal(added, [16, 0, 0, 8])


def test_jax_shares_no_memory_of_numpy() -> None:
    _, _, xp = jax_parts()
    with pytest.raises(ValueError, match="they cannot share the memory of a NumPy array"):
        xp.asarray(np.ones(3), copy=False)
    assert xp.from_dlpack(np.ones((3, 4), np.float32)[:, ::2]).shape == (3, 2)


def test_jax_kernels() -> None:
    jax, jnp, xp = jax_parts()
    kernel = discovery.get("jax").kernel
    x = jnp.ones(3)
    assert kernel("take_ownership")(xp, x, x) is x
    assert kernel("write")(xp, x, x + 1).tolist() == [2, 2, 2]
    assert kernel("constant")(xp, 2.0, x.dtype, None) is kernel("constant")(xp, 2.0, x.dtype, None)
    assert math.copysign(1, kernel("constant")(xp, -0.0, x.dtype, None)) == -1
    assert kernel("devices")(xp) == tuple(jax.devices())
    kernel("synchronize")(xp, x)
    seen = []

    def traced(t: Any) -> Any:
        assert kernel("device")(xp, t) is None
        assert kernel("place_like")(xp, t, x) is t
        assert kernel("take_ownership")(xp, t, t + 1) is t
        kernel("synchronize")(xp, t)
        seen.append(kernel("constant")(xp, 123.5, t.dtype, None))
        return t * seen[-1]

    jax.jit(traced)(x)
    assert float(kernel("constant")(xp, 123.5, x.dtype, None)) == 123.5  # no tracer was remembered
    with pytest.raises(
        GradientError, match=r"would write a tracer into the \.grad of a Tensor from outside it"
    ):
        jax.jit(lambda t: kernel("take_ownership")(xp, t, x))(x)


def test_a_tensor_is_a_pytree() -> None:
    jax, jnp, _ = jax_parts()
    x = mg.asarray(jnp.arange(3.0))
    leaves, tree = jax.tree_util.tree_flatten({"x": x})
    assert [type(v) for v in leaves] == [type(jnp.ones(1))]
    assert type(jax.tree_util.tree_unflatten(tree, leaves)["x"]) is mg.Tensor
    # JAX passes placeholders
    assert type(jax.tree_util.tree_unflatten(tree, [object()])["x"]) is mg.Tensor
    assert jax.tree_util.tree_unflatten(tree, [np.ones(2)])["x"].array.tolist() == [1, 1]
    assert jax.eval_shape(lambda t: t, x).shape == (3,)
    assert jax.vmap(lambda t: t * 2)(x).array.tolist() == [0, 2, 4]
