"""What the engine promises as a whole, on each backend and in PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
from function_programs import leaf, same


def rosenbrock(side, x):
    return side.xp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def test_only_the_flag_is_declared(side):  # F001
    plain, watched = side.tensor([0.5, 1.5, 2.0]), leaf(side, 0.5, 1.5, 2.0)
    value, loss = rosenbrock(side, plain), rosenbrock(side, watched)
    assert not value.requires_grad and loss.requires_grad
    assert side.values(loss) == side.values(value)
    loss.backward()
    eps = 1e-6
    for i in range(3):
        step = np.eye(3)[i] * eps
        up, down = (
            side.values(rosenbrock(side, side.tensor((side.values(plain) + s).tolist())))
            for s in (step, -step)
        )
        np.testing.assert_allclose(side.values(watched.grad)[i], (up - down) / (2 * eps), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_dtypes_that_may_require_grad(side, dtype):  # F002
    x = side.tensor([1.0, 2.0], dtype=dtype, requires_grad=True)
    side.xp.sum(side.xp.abs(x * x)).backward()
    assert x.grad.dtype == x.dtype
    np.testing.assert_allclose(side.values(x.grad), [2, 4])


@pytest.mark.parametrize(
    ("backend", "dtype"),
    [("numpy", "float16"), ("jax", "float16"), ("jax", "bfloat16")],
    indirect=["backend"],
)
def test_half_precision(backend, dtype, xp):  # F002
    x = xp.asarray(xp.ones(2).array.astype(dtype), requires_grad=True)
    xp.sum(x * x).backward()
    assert x.grad.dtype == x.dtype and str(np.dtype(x.dtype)) == dtype and x.grad.tolist() == [2, 2]


@pytest.mark.parametrize("dtype", ["int64", "int32", "bool"])
def test_dtypes_that_may_not(side, dtype):  # F002
    message = "nly Tensors of floating point (and complex )?dtype can require gradients"
    with pytest.raises(RuntimeError, match=message):
        side.tensor([1, 0], dtype=dtype, requires_grad=True)
    t = side.tensor([1, 0], dtype=dtype)
    with pytest.raises(RuntimeError, match=message):
        t.requires_grad_()
    assert not t.requires_grad


def test_the_graph_is_the_run(side):
    # F003: a branch that looks at values, a loop as long as they make it
    def f(x):
        y, steps = x, 0
        while side.values(y)[0] < 100:
            y, steps = (y * 3 if side.values(y)[0] > 10 else y * y + 1), steps + 1
        return y, steps

    for start, steps, slope in ((2.0, 4, 4 * 10 * 9), (3.0, 2, 6 * 20), (9.0, 2, 18 * 3)):
        x = leaf(side, start)
        y, taken = f(x)
        y.backward()
        assert taken == steps
        same(side, x.grad, [slope])


def test_a_result_carries_its_history(side):  # F004
    x, w = leaf(side, 1.0, 2.0), leaf(side, 3.0, 4.0)
    y = x * w
    z = side.xp.sum(side.xp.exp(y))
    names = []
    node = z.grad_fn
    while node is not None:
        names.append(node.name().rpartition(":")[2].rstrip("0").removesuffix("Backward"))
        node = node.next_functions[0][0] if node.next_functions else None
    assert names in (
        ["Sum", "Exp", "Multiply", "AccumulateGrad"],
        ["Sum", "Exp", "Mul", "AccumulateGrad"],
    )
    assert [n.variable for n, _ in y.grad_fn.next_functions] == [x, w]
    assert x.grad_fn is None and side.tensor([1.0]).grad_fn is None


def test_factories_take_requires_grad(side):  # F005
    xp = side.xp
    data = np.random.default_rng(0).normal(size=(2, 3, 4))
    for t in (
        xp.zeros((2, 3), requires_grad=True),
        xp.ones((2,), requires_grad=True),
        xp.full((2,), 1.5, requires_grad=True),
        xp.linspace(0.0, 1.0, 5, requires_grad=True),
        xp.empty((2,), requires_grad=True),
        xp.arange(0.0, 3.0, 1.0, requires_grad=True),
        side.tensor(data.tolist(), requires_grad=True),
    ):
        assert t.requires_grad and t.is_leaf and t.grad is None
    assert not xp.zeros((2,)).requires_grad


def test_the_gradient_is_a_sum_over_paths(side):  # F007
    x = leaf(side, 2.0)
    a, b = x * 3, side.xp.exp(x)
    y = a * b + b * x + a
    y.backward()
    e = np.exp(2.0)
    paths = [3 * e, 6 * e, e * 2, e, 3]  # x-a-ab, x-b-ab, x-b-bx, x-bx, x-a
    same(side, x.grad, [sum(paths)])


def test_a_vector_jacobian_product(side):  # F008
    def f(x):
        return side.xp.stack([x[0] * x[1], side.xp.sin(x[0]), x[1] ** 2])

    x, v = leaf(side, 0.5, 1.5), np.array([1.0, -2.0, 0.25])
    J = side.values(side.autograd.functional.jacobian(f, x.detach()))
    assert J.shape == (3, 2)
    f(x).backward(side.tensor(v.tolist()))
    same(side, x.grad, J.T @ v)
    same(side, x.grad, v @ J)
