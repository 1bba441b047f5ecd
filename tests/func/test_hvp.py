"""func.hvp: the value and the product with the Hessian in one run of forward over reverse mode, on
every backend.
"""

from __future__ import annotations

import numpy as np
import pytest
from conftest import values
from forward_programs import close, raw

import multigrad as mg
from multigrad import func


def test_value_and_product(xp):
    calls = []

    def f(x):
        calls.append(1)
        return x[0] ** 2 * xp.exp(x[1]) + xp.sum(x**3)

    x, v = raw(xp, [0.5, 1.5]), raw(xp, [2.0, -1.0])
    value, (product,) = func.hvp(f, (x,), (v,))
    e = np.exp(1.5)
    close(value, 0.25 * e + 0.125 + 3.375)
    close(product, np.array([[2 * e + 3, e], [e, 0.25 * e + 9]]) @ [2, -1])
    assert type(product) is type(x) and calls == [1]


def test_several_arguments_and_structures(xp):
    x, y = raw(xp, [1.0, 2.0]), raw(xp, [3.0, 4.0])
    u, v = raw(xp, [1.0, -1.0]), raw(xp, [0.5, 2.0])
    value, (first, second) = func.hvp(
        lambda p, q: xp.sum(p["a"] ** 2 * q[0]), ({"a": x}, [y]), ({"a": u}, [v])
    )
    close(value, 3 + 16)
    close(first["a"], [2 * 3 * 1 + 2 * 1 * 0.5, 2 * 4 * -1 + 2 * 2 * 2])
    close(second[0], [2 * 1 * 1, 2 * 2 * -1])


def test_it_agrees_with_functional(xp):
    x, v = np.array([0.3, -1.2, 2.0]), np.array([1.0, 0.5, -2.0])
    f = lambda x: xp.sum(xp.sin(x) * xp.cumulative_sum(x * x))
    value, product = mg.autograd.functional.hvp(f, xp.asarray(x), xp.asarray(v))
    found, (other,) = func.hvp(f, (raw(xp, x),), (raw(xp, v),))
    close(found, values(value))
    np.testing.assert_allclose(values(other), values(product), rtol=1e-12)


def test_aux_tensors_and_nesting(xp):
    x = xp.asarray(np.array([1.0, 2.0]), requires_grad=True)
    v = xp.ones(2, dtype=xp.float64)
    value, (product,), aux = func.hvp(
        lambda x: (xp.sum(x**4), {"y": x * 2, "n": 3}), (x,), (v,), has_aux=True
    )
    assert aux["n"] == 3 and isinstance(product, mg.Tensor) and isinstance(value, mg.Tensor)
    close(aux["y"], [2, 4])
    close(product, [12, 48])
    close(mg.autograd.grad(xp.sum(product), x)[0], [24, 48])
    raw_x, ones = raw(xp, [1.0, 2.0]), raw(xp, [1.0, 1.0])
    close(
        func.grad(lambda x: xp.sum(func.hvp(lambda y: xp.sum(y**4) * x[0], (x,), (ones,))[1][0]))(
            raw_x
        ),
        [24 + 60, 48],
    )
    close(
        func.jvp(
            lambda v: func.hvp(lambda y: xp.sum(y**4), (raw_x,), (v,))[1][0], (ones,), (raw_x,)
        )[1],
        [12, 96],
    )


def test_it_is_an_operator_in_jit():
    jax = pytest.importorskip("jax")
    xp = mg.namespace("jax")
    x, v = raw(xp, [1.0, 2.0]), raw(xp, [1.0, 0.5])
    f = lambda xp, x: xp.sum(xp.sin(x) * x[0])
    value, product = jax.jit(lambda x, v: func.hvp(lambda x: f(xp, x), (x,), (v,)))(x, v)
    expected = jax.jvp(jax.grad(lambda x: f(jax.numpy, x)), (x,), (v,))[1]
    np.testing.assert_allclose(product[0], expected, rtol=1e-12)
    np.testing.assert_allclose(value, f(jax.numpy, x), rtol=1e-12)


@pytest.mark.parametrize(
    "primals, tangents, error, match",
    [
        ("[x]", "[x]", TypeError, "hvp: primals must be a tuple of at least one argument, .* not "),
        (
            "()",
            "()",
            TypeError,
            "hvp: primals must be a tuple of at least one argument, .* not tuple of 0",
        ),
        (
            "(x,)",
            "(x, x)",
            ValueError,
            "hvp: tangents must have the structure of primals: expected a tuple of 1, got tuple "
            "of 2",
        ),
        (
            "({'a': x},)",
            "({'b': x},)",
            ValueError,
            r"hvp: .* expected a dictionary with the keys \['a'\] at \[0\], got dict of 1",
        ),
        (
            "(x,)",
            "(x[:1],)",
            RuntimeError,
            r"different size than that of the original.*size \[2\] while.*size \[1\]",
        ),
    ],
)
def test_errors(xp, primals, tangents, error, match):
    names = {"x": raw(xp, [1.0, 2.0])}
    with pytest.raises(error, match=match):
        func.hvp(lambda x: xp.sum(x), eval(primals, names), eval(tangents, names))


def test_the_function_must_return_a_scalar(xp):
    x = raw(xp, [1.0, 2.0])
    with pytest.raises(
        RuntimeError, match="grad can be implicitly created only for scalar outputs"
    ):
        func.hvp(lambda x: x * x, (x,), (x,))
