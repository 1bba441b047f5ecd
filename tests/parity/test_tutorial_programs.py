"""The tutorial's programs on each backend and in PyTorch, in float32 as there.

See test_tutorial.py for all its numbers.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

NAMES = {
    "Mul": "Multiply",
    "Div": "Divide",
    "Slice": "Getitem",
    "Index": "Getitem",
    "Select": "Getitem",
}


def name_of(node):
    """The names of the standard: MulBackward0 of PyTorch is MultiplyBackward."""
    stem = node.name().rpartition(":")[2].rstrip("0").removesuffix("Backward")
    return NAMES.get(stem, stem)


def float32(side, data, **options):
    return side.tensor(data, dtype="float32", **options)


def shown(side, t, expected, **tolerance):
    """To the digits that are printed."""
    found = side.values(t)
    assert found.dtype == np.float32
    np.testing.assert_allclose(
        found, np.asarray(expected, dtype=np.float32), **({"rtol": 6e-5, "atol": 2e-7} | tolerance)
    )


@pytest.fixture
def sine(side):
    a = side.xp.linspace(0.0, 2.0 * math.pi, 25, dtype=side.xp.float32, requires_grad=True)
    b = side.xp.sin(a)
    c = 2 * b
    d = c + 1
    return a, b, c, d, side.xp.sum(d)


def test_values_of_a_sine(side, sine):  # F250, F251, F252
    a, b, _, _, out = sine
    shown(side, a[:3], [0.0, 0.2618, 0.5236], rtol=2e-4)
    shown(side, a[-1], 6.2832)
    shown(side, b[12], -8.7423e-08, rtol=1e-4, atol=0)
    shown(side, b[24], 1.7485e-07, rtol=1e-4, atol=0)
    shown(side, out, 25.0, atol=1e-5)
    assert "requires_grad=True" in repr(a)
    for t, name in ((b, "Sin"), (out, "Sum")):
        assert name_of(t.grad_fn) == name and f"grad_fn=<{name}Backward" in repr(t)


def test_graph_of_a_sine(side, sine):  # F252, F253, F254
    a, b, c, d, out = sine
    node, names = out.grad_fn, []
    while node is not None:
        names.append(name_of(node))
        edges = node.next_functions
        if names[-1] in ("Add", "Multiply"):
            assert len(edges) == 2 and (None, 0) in edges  # the constant
        else:
            assert len(edges) == (names[-1] != "AccumulateGrad") and all(
                number == 0 for _, number in edges
            )
        node = next((n for n, _ in edges if n is not None), None)
    assert names == ["Sum", "Add", "Multiply", "Sin", "AccumulateGrad"]
    assert [None if t.grad_fn is None else name_of(t.grad_fn) for t in (d, c, b, a)] == [
        "Add",
        "Multiply",
        "Sin",
        None,
    ]


def test_gradient_of_a_sine(side, sine):  # F255, F256, F275
    a, _, c, _, out = sine
    out.backward()
    shown(side, a.grad[:6], [2.0, 1.9319, 1.7321, 1.4142, 1.0, 5.1764e-01])
    shown(side, a.grad[6], -8.7423e-08, rtol=1e-4, atol=0)
    shown(side, a.grad[18], 2.3850e-08, rtol=1e-4, atol=0)
    shown(side, a.grad, 2 * np.cos(side.values(a)))  # whatever constant is added
    with pytest.warns(UserWarning, match="is not a leaf Tensor"):
        assert c.grad is None


def test_a_model_and_its_optimizer(side):  # F257, F258, F259, F260
    xp, rng = side.xp, np.random.default_rng(0)
    weight1, weight2 = (
        float32(side, rng.normal(size=shape).tolist(), requires_grad=True)
        for shape in ((10, 40), (3, 10))
    )
    some_input, ideal = (
        float32(side, rng.normal(size=shape).tolist()) for shape in ((16, 40), (16, 3))
    )

    def loss():
        hidden = some_input @ weight1.T
        return xp.sum(
            (ideal - xp.where(hidden > 0, hidden, xp.zeros_like(hidden)) @ weight2.T) ** 2
        )

    assert weight2.requires_grad and weight2.grad is None and "grad_fn=<" in repr(weight2[0, :2])
    start = side.values(weight2).copy()
    first = loss()
    assert name_of(first.grad_fn) == "Sum"
    first.backward()
    np.testing.assert_array_equal(side.values(weight2), start)
    gradient = side.values(weight2.grad).copy()
    hidden = np.maximum(side.values(some_input) @ side.values(weight1).T, 0)
    np.testing.assert_allclose(
        gradient, -2 * (side.values(ideal) - hidden @ start.T).T @ hidden, rtol=2e-3, atol=1e-2
    )
    with side.no_grad():
        for w in (weight1, weight2):
            w -= 1e-5 * w.grad
    np.testing.assert_allclose(side.values(weight2), start - 1e-5 * gradient, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(side.values(weight2.grad), gradient)
    assert float(side.values(loss())) < float(side.values(first))
    for _ in range(5):  # nobody tells them to start anew
        loss().backward()
    assert np.abs(side.values(weight2.grad)).max() > 3 * np.abs(gradient).max()
    weight2.grad.zero_()
    assert not side.values(weight2.grad).any()


def test_requires_grad_switched_off(side):  # F261
    a = side.xp.ones((2, 3), dtype=side.xp.float32, requires_grad=True)
    b1 = 2 * a
    a.requires_grad = False
    b2 = 2 * a
    assert "grad_fn=<Mul" in repr(b1) and "grad" not in repr(b2)
    shown(side, b2, np.full((2, 3), 2.0))


def test_recording_off_and_on(side):  # F262, F263, F264
    a, b = (side.xp.ones((2, 3), dtype=side.xp.float32, requires_grad=True) * n for n in (2, 3))
    c1 = a + b
    with side.no_grad():
        c2 = a + b
    c3 = a * b
    for t, value, name in ((c1, 5, "Add"), (c2, 5, None), (c3, 6, "Multiply")):
        shown(side, t, np.full((2, 3), value))
        assert (None if t.grad_fn is None else name_of(t.grad_fn)) == name
    add1 = lambda x, y: x + y
    add2, add3 = side.autograd.no_grad()(add1), side.autograd.enable_grad()(add1)
    assert add1(a, b).requires_grad and not add2(a, b).requires_grad
    with side.no_grad():
        assert add3(a, b).requires_grad
        with side.autograd.enable_grad():
            assert (a + b).requires_grad


def test_a_detached_copy(side):  # F265
    x = float32(side, np.random.default_rng(1).random(5).tolist(), requires_grad=True)
    y = x.detach()
    assert "requires_grad=True" in repr(x) and "grad" not in repr(y)
    assert side.values(x).tolist() == side.values(y).tolist()


def test_a_thousand_divisions_and_products(side):  # F267: as the graph has them
    x, y = (
        side.tensor(np.random.default_rng(2).uniform(0.9, 1.1, (2, 3)).tolist()) for _ in range(2)
    )
    z = side.xp.ones((2, 3), dtype=side.xp.float64, requires_grad=True)
    leaf, product = z, side.values(y) / side.values(x)
    for _ in range(1000):
        z = (z / x) * y
    node, names = z.grad_fn, []
    while node.next_functions:
        names.append(name_of(node))
        node = node.next_functions[0][0]
    assert (names.count("Divide"), names.count("Multiply"), len(names)) == (1000, 1000, 2000)
    side.xp.sum(z).backward()
    np.testing.assert_allclose(side.values(leaf.grad), product**1000, rtol=1e-9)


def test_the_jacobian_matrix(side):
    # F268: slopes of outputs by inputs; a pass gives J^T v for the v of a later loss
    xp = side.xp
    f = lambda x: xp.stack([xp.sum(x * x), x[0] * x[1] * x[2]])
    x = side.tensor([1.0, 2.0, 3.0], requires_grad=True)
    J = side.values(side.autograd.functional.jacobian(f, x))
    np.testing.assert_allclose(J, [[2, 4, 6], [6, 3, 2]])
    y = f(x)
    y.retain_grad()
    xp.sum(xp.sin(y)).backward()
    np.testing.assert_allclose(side.values(x.grad), J.T @ side.values(y.grad))


def do_some_doubling(x):
    y = x * 2
    while float((y.data * y.data).sum()) < 1000**2:
        y = y * 2
    return y


def test_a_vector_jacobian_product(side):  # F269, F270, F273
    x = float32(side, [0.6, -0.9, 0.4], requires_grad=True)
    y = do_some_doubling(x)
    with pytest.raises(
        RuntimeError, match="grad can be implicitly created only for scalar outputs"
    ):
        y.backward()
    v = float32(side, [0.1, 1.0, 0.0001])
    y.backward(v)
    shown(side, x.grad, [1.0240e02, 1.0240e03, 1.0240e-01])
    outputs, product = side.autograd.functional.vjp(do_some_doubling, x.detach(), v=v)
    shown(side, outputs, side.values(y))
    shown(side, product, [1.0240e02, 1.0240e03, 1.0240e-01])


def test_jacobians_of_the_adder(side):  # F271, F272
    f, exp_adder = side.autograd.functional, lambda x, y: 2 * side.xp.exp(x) + 3 * y
    one = f.jacobian(exp_adder, (float32(side, [0.7212]), float32(side, [0.2079])))
    shown(side, one[0], [[4.1138]])
    shown(side, one[1], [[3.0]])
    three = f.jacobian(
        exp_adder,
        (float32(side, [0.2080, 0.2604, 0.4415]), float32(side, [0.5220, 0.9867, 0.4288])),
    )
    shown(side, three[0], np.diag([2.4625, 2.5949, 3.1101]))
    shown(side, three[1], 3 * np.eye(3))


def test_the_other_products(side):  # F274
    f, xp = side.autograd.functional, side.xp
    adder = lambda x, y: 2 * xp.exp(x) + 3 * y
    loss = lambda x, y: xp.sum(adder(x, y) * y)
    x, y = side.tensor([0.25, 0.5]), side.tensor([1.0, 2.0])
    v = (side.tensor([1.0, 10.0]), side.tensor([100.0, 1000.0]))
    J = np.concatenate(side.values(f.jacobian(adder, (x, y))), axis=1)
    flat = np.array([1.0, 10.0, 100.0, 1000.0])
    np.testing.assert_allclose(side.values(f.jvp(adder, (x, y), v)[1]), J @ flat)
    np.testing.assert_allclose(
        np.concatenate(side.values(f.vjp(adder, (x, y), v[0])[1])), flat[:2] @ J
    )
    H = np.block([[side.values(block) for block in row] for row in f.hessian(loss, (x, y))])
    e = 2 * np.exp([0.25, 0.5])
    np.testing.assert_allclose(
        H, np.block([[np.diag(e * [1, 2]), np.diag(e)], [np.diag(e), 6 * np.eye(2)]])
    )
    np.testing.assert_allclose(np.concatenate(side.values(f.vhp(loss, (x, y), v)[1])), flat @ H)
    np.testing.assert_allclose(np.concatenate(side.values(f.hvp(loss, (x, y), v)[1])), H @ flat)
