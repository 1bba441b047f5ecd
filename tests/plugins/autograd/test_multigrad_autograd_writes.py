"""Augmented assignments in programs of HIPS autograd: `y += v` makes a new array, as boxes and
numbers do, and leaves other names of the old one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as onp
import pytest

import multigrad as mg
from multigrad import extend, func

pytest.importorskip("scipy", reason="SciPy is not installed")

import multigrad_autograd as ag
import multigrad_autograd.numpy as np
from multigrad_autograd.misc.fixed_points import fixed_point
from multigrad_autograd.scipy.integrate import odeint

ALL = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"]


def kept(x: Any) -> Any:
    """A running sum whose steps are kept by their names: t1, t1 + t2, and so on."""
    total, steps = 0.0 * x[0], []
    for i in range(3):
        total += x[i] ** 2
        steps.append(total)
    return steps[0] * steps[1] * steps[2]


def derivatives(f: Callable[[Any], Any], x: Any) -> list[Any]:
    """The gradient, by both modes and by a pass that is differentiated."""
    jvp = ag.make_jvp(f)(x)
    forward = onp.asarray([jvp(e)[1] for e in onp.eye(3)])
    through = ag.grad(lambda y: np.sum(ag.grad(lambda z: f(z) * y[0])(x)))(onp.ones(3))[0]
    return [ag.grad(f)(x), forward, ag.make_vjp(f)(x)[0](1.0), ag.jacobian(f)(x), through]


def test_an_alias_of_a_number_keeps_its_value() -> None:
    x = onp.asarray([1.0, 2.0, 3.0])
    a, b, c = x[0] ** 2, x[0] ** 2 + x[1] ** 2, onp.sum(x**2)
    expected = 2 * x * onp.asarray([b * c + a * c + a * b, a * c + a * b, a * b])
    *rows, through = derivatives(kept, x)
    for row in rows:
        onp.testing.assert_allclose(row, expected)
    onp.testing.assert_allclose(through, onp.sum(expected))
    assert ag.make_vjp(kept)(x)[1] == a * b * c


def test_an_alias_of_an_array_keeps_its_value() -> None:
    def f(x: Any) -> Any:
        y = z = 2.0 * x
        y += x
        row = z[1:]
        row *= 5.0
        return np.sum(y) + 10.0 * np.sum(z)

    for row in derivatives(f, onp.ones(3))[:4]:
        onp.testing.assert_allclose(row, onp.full(3, 23.0))


def test_an_argument_is_left_to_its_caller() -> None:
    def add_one(y: Any) -> Any:
        y += 1.0
        return y

    assert ag.grad(lambda x: add_one(x) * x)(3.0) == 7.0
    onp.testing.assert_allclose(ag.grad(lambda x: np.sum(add_one(x) * x))(onp.ones(3)), 3.0)


def test_an_item_is_written_to() -> None:
    def f(x: Any) -> Any:
        y = 1.0 * x
        y[0] += x[1]
        y[1:] *= 2.0
        return np.sum(y * y)

    for row in derivatives(f, onp.ones(3))[:4]:
        onp.testing.assert_allclose(row, [4.0, 12.0, 8.0])


@pytest.mark.parametrize("name", ALL)
def test_every_augmented_assignment_gives_what_the_operator_gives(name: str) -> None:
    augmented, plain = getattr(operator, f"i{name}"), getattr(operator, name)

    def f(x: Any) -> Any:
        y = 1.5 * x
        z = augmented(y, x)
        assert z is not y and not np.array_equal(y, z)
        return plain(z, 1.0 + y)

    x = onp.asarray([2.0, 3.0])
    expected = ag.elementwise_grad(lambda x: plain(plain(1.5 * x, x), 1.0 + 1.5 * x))(x)
    onp.testing.assert_allclose(ag.elementwise_grad(f)(x), expected)
    onp.testing.assert_allclose(ag.make_jvp(f)(x)(onp.ones(2))[1], expected)


def test_a_product_of_matrices_and_bits() -> None:
    def f(a: Any) -> Any:
        b = c = 1.0 * a
        b @= a
        big = other = a > 1.0
        big |= a > 0.0
        assert np.all(big) and not np.any(other)
        return np.sum(b) + np.sum(c)

    onp.testing.assert_allclose(ag.grad(f)(onp.ones((2, 2))), onp.full((2, 2), 5.0))


def test_the_other_way_round_is_asked_for() -> None:
    class Right:
        def __radd__(self, other: Any) -> str:
            return "right"

    def f(x: Any) -> Any:
        y = 1.0 * x
        y += Right()
        assert y == "right"
        return x

    assert ag.grad(f)(1.0) == 1.0
    with pytest.raises(TypeError, match=r"unsupported operand type"):
        ag.grad(lambda x: operator.iadd(x, object()))(1.0)


def test_a_raw_array_cannot_take_a_box() -> None:
    def f(x: Any) -> Any:
        y = onp.zeros(3)
        y += x
        return np.sum(y)

    with pytest.raises(RuntimeError, match=r"Write a = a \+ t instead of a \+= t"):
        ag.grad(f)(onp.ones(3))


def test_functions_that_are_iterated_and_integrated() -> None:
    def iterated(a: Any) -> Any:
        def step(x: Any) -> Any:
            y = z = 0.5 * x
            y += a
            b = a
            b += x
            return z + 0.5 * a / x

        return step

    def slope(y: Any, t: Any, a: Any) -> Any:
        d = e = -a * y[0]
        d += t
        a += t
        return np.array([e])

    def root(a: Any) -> Any:
        return fixed_point(iterated, a, 1.0, lambda x, y: np.abs(x - y), 1e-12)

    assert ag.grad(root)(2.0) == pytest.approx(0.5 * 2.0**-0.5)
    assert ag.grad(ag.grad(root))(2.0) == pytest.approx(-0.25 * 2.0**-1.5)
    assert ag.make_jvp(root)(2.0)(1.0)[1] == pytest.approx(0.5 * 2.0**-0.5)
    t = onp.linspace(0.0, 1.0, 5)

    def total(a: Any) -> Any:
        return np.sum(odeint(slope, onp.ones(1), t, (a,)))

    assert ag.grad(total)(1.5) == pytest.approx(-onp.sum(t * onp.exp(-1.5 * t)), rel=1e-6)
    assert ag.grad(ag.grad(total))(1.5) == pytest.approx(
        onp.sum(t**2 * onp.exp(-1.5 * t)), rel=1e-5
    )
    f = ag.checkpoint(kept)
    onp.testing.assert_allclose(ag.grad(f)(onp.ones(3)), ag.grad(kept)(onp.ones(3)))
    onp.testing.assert_allclose(ag.hessian(f)(onp.ones(3)), ag.hessian(kept)(onp.ones(3)))


# -- what it rests on


def test_only_the_transformation_that_asks_for_it_rebinds() -> None:
    def writes(x: Any) -> Any:
        y = z = 2.0 * x
        y += x
        return mg.sum(z)

    def rebinds(x: Any) -> Any:
        extend.rebind_augmented()
        return writes(x)

    x = onp.ones(3)
    onp.testing.assert_allclose(func.grad(writes)(x), 3.0)
    onp.testing.assert_allclose(func.grad(rebinds)(x), 2.0)
    onp.testing.assert_allclose(func.jvp(rebinds, (x,), (x,))[1], 6.0)
    onp.testing.assert_allclose(func.vmap(rebinds)(x), 2.0)
    onp.testing.assert_allclose(func.vmap(writes)(x), 3.0)
    # the inner one is multigrad's
    onp.testing.assert_allclose(ag.grad(lambda x: np.sum(func.grad(writes)(x) * x))(x), 3.0)
    onp.testing.assert_allclose(func.grad(lambda x: mg.sum(ag.grad(writes)(x) * x))(x), 2.0)
    t = u = mg.asarray(x)
    t += 1.0
    assert t is u


def test_methods_write_where_augmented_assignments_do_not() -> None:
    def f(x: Any) -> Any:
        extend.rebind_augmented()
        y = z = 2.0 * x
        y.add_(x)
        return mg.sum(z)

    onp.testing.assert_allclose(func.grad(f)(onp.ones(3)), 3.0)
    onp.testing.assert_allclose(func.jvp(f, (onp.ones(3),), (onp.ones(3),))[1], 9.0)


def test_outside_of_transformations_there_is_nothing_to_ask_for() -> None:
    with pytest.raises(
        RuntimeError,
        match=r"^extend.rebind_augmented: no transformation is running; call it in the function "
        r"that is transformed$",
    ):
        extend.rebind_augmented()
