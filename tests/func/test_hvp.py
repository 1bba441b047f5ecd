"""func.hvp: the value and the product with the Hessian in one run of forward over reverse mode, on
every backend.
"""

from __future__ import annotations

import numpy as np
import pytest
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


def test_aux_and_tensors(xp):
    x = xp.asarray(np.array([1.0, 2.0]), requires_grad=True)
    v = xp.ones(2, dtype=xp.float64)
    value, (product,), aux = func.hvp(
        lambda x: (xp.sum(x**4), {"y": x * 2, "n": 3}), (x,), (v,), has_aux=True
    )
    assert aux["n"] == 3 and isinstance(product, mg.Tensor) and isinstance(value, mg.Tensor)
    close(aux["y"], [2, 4])
    close(product, [12, 48])
    close(mg.autograd.grad(xp.sum(product), x)[0], [24, 48])


def test_errors(xp):
    x = raw(xp, [1.0, 2.0])
    with pytest.raises(
        TypeError, match="hvp: primals must be a tuple of at least one argument, .* not tuple of 0"
    ):
        func.hvp(xp.sum, (), ())
    with pytest.raises(
        ValueError,
        match=r"hvp: tangents must have the structure of primals: expected a dictionary with the "
        r"keys \['a'\] at \[0\], got dict of 1",
    ):
        func.hvp(lambda d: xp.sum(d["a"]), ({"a": x},), ({"b": x},))


def test_the_function_must_return_a_scalar(xp):
    x = raw(xp, [1.0, 2.0])
    with pytest.raises(
        RuntimeError, match="grad can be implicitly created only for scalar outputs"
    ):
        func.hvp(lambda x: x * x, (x,), (x,))
