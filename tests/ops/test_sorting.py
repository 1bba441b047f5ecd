"""sort keeps its permutation for the backward pass, so what was sorted may be written to; and
residuals, by which it does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import values

import multigrad as mg
from multigrad import registry
from multigrad.dispatch import codegen
from multigrad.errors import GradientError, RegistrationError
from multigrad.registry import define

X = np.array([[0.5, -1.0, 2.0, 0.5], [1.5, 3.0, 1.5, -2.5]])
WEIGHTS = np.array([[1.0, 10.0, 100.0, 1000.0], [2.0, 20.0, 200.0, 2000.0]])


def expected(axis: int = -1, descending: bool = False) -> Any:
    """The weights at the place that each element has after a stable sort."""
    order = np.argsort(-X if descending else X, axis=axis, kind="stable")
    found = np.zeros_like(X)
    np.put_along_axis(found, order, WEIGHTS, axis)
    return found


class TestWrites:
    @pytest.mark.parametrize("kwargs", [{}, {"axis": -2, "descending": True}], ids=str)
    def test_to_the_argument(self, xp, kwargs):
        x = xp.asarray(X, requires_grad=True)
        y = x * 1.0
        z = xp.sort(y, **kwargs)
        y *= -7.0
        (g,) = mg.autograd.grad(xp.sum(z * xp.asarray(WEIGHTS)), x)
        np.testing.assert_array_equal(
            values(g), expected(kwargs.get("axis", -1), kwargs.get("descending", False))
        )

    def test_in_recorded_passes(self, xp):
        x = xp.asarray(X, requires_grad=True)
        y = x * x
        z = xp.sort(y)
        y += 1.0
        (g,) = mg.autograd.grad(xp.sum(z * z), x, create_graph=True)  # 4 x^3
        np.testing.assert_allclose(values(g), 4 * X**3)
        np.testing.assert_allclose(values(mg.autograd.grad(xp.sum(g), x)[0]), 12 * X**2)

    def test_inside_transformations(self, xp):
        def loss(x: Any) -> Any:
            y = x * 1.0
            z = xp.sort(y)
            y *= -7.0
            return xp.sum(z * z * xp.asarray(WEIGHTS[0]))

        row, weights = xp.asarray(X[0]).array, expected()[0]
        slope = mg.func.grad(loss)
        np.testing.assert_allclose(values(slope(row)), 2 * X[0] * weights)
        rows = xp.asarray(np.stack([X[0], X[0]])).array
        np.testing.assert_allclose(values(mg.func.vmap(slope)(rows)), [2 * X[0] * weights] * 2)
        np.testing.assert_allclose(values(mg.func.hessian(loss)(row)), np.diag(2 * weights))

    def test_of_complex_numbers(self):
        xp = mg.namespace("numpy")
        data = X[0] + 1j * X[1]
        x = xp.asarray(data, requires_grad=True)
        y = x * 1.0
        z = xp.sort(y)
        y *= -7.0
        (g,) = mg.autograd.grad(z, x, grad_outputs=xp.asarray(WEIGHTS[0] * (1 + 2j)))
        order = np.argsort(data, kind="stable")
        np.testing.assert_array_equal(values(g)[order], WEIGHTS[0] * (1 + 2j))

    def test_the_permutation_is_what_is_kept(self, xp):
        x = xp.asarray(X, requires_grad=True)
        z = xp.sort(x)
        assert registry.OPS["sort"].kept("x") == ("order",)
        np.testing.assert_array_equal(values(z.grad_fn._saved_order), np.argsort(X, kind="stable"))
        assert z.grad_fn._saved_x is None
        packed: list[Any] = []
        with mg.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
            z = xp.sort(x)
        np.testing.assert_array_equal(values(packed[0]), np.argsort(X, kind="stable"))
        np.testing.assert_array_equal(
            values(mg.autograd.grad(xp.sum(z * xp.asarray(WEIGHTS)), x)[0]), expected()
        )


@pytest.fixture
def declared(operations) -> Any:
    """An operation with a residual, and how often that was computed."""
    made: list[Any] = []

    def order(xp: Any, x: Any, axis: Any) -> Any:
        made.append(x)
        return xp.argsort(x, axis=axis)

    define(
        "t.sorted(x, /, *, axis=-1)",
        forward=lambda xp, x, axis: xp.sort(x, axis=axis),
        residuals={"order": order},
        batching="form",
        x=lambda xp, g, order, axis: xp.take_along_axis(g, xp.argsort(order, axis=axis), axis=axis),
        jvp=lambda xp, t, order, axis: xp.take_along_axis(t, order, axis=axis),
    )
    return made


class TestResiduals:
    @pytest.mark.runs_once
    def test_are_computed_once_and_only_if_recorded(self, xp, declared):
        x = xp.asarray(X, requires_grad=True)
        for _ in range(2):  # by the general path, and by the one that was learnt
            declared.clear()
            xp.t.sorted(x.detach())
            with mg.no_grad():
                xp.t.sorted(x)
            assert declared == []
            z = xp.t.sorted(x)
            for _ in range(2):
                (g,) = mg.autograd.grad(xp.sum(z * xp.asarray(WEIGHTS)), x, retain_graph=True)
                np.testing.assert_array_equal(values(g), expected())
            assert len(declared) == 1

    def test_of_forward_mode(self, xp, declared):
        x = xp.asarray(X).array
        np.testing.assert_array_equal(
            values(mg.func.jvp(lambda x: xp.t.sorted(x), (x,), (x,))[1]), np.sort(X)
        )

    def test_rules_run_by_hand(self, declared):
        xp = mg.namespace("numpy").zeros(1)._elem.library.xp
        (g,) = codegen.vjp(registry.OPS["t.sorted"], xp, [X, -1], np.sort(X), WEIGHTS, (True,))
        np.testing.assert_array_equal(g, expected())

    def test_must_not_be_floating(self, xp, operations):
        define(
            "t.scaled(x, /)",
            forward=lambda xp, x: x * x,
            residuals={"twice": lambda xp, x: 2 * x},
            x=lambda xp, g, twice: g * twice,
            jvp=lambda xp, t, twice: t * twice,
        )
        with pytest.raises(
            GradientError,
            match=r"the residual 'twice' of the operation 't.scaled' is of .*float64; it must "
            r"be an array of integers or booleans. Let the rule compute",
        ):
            xp.t.scaled(xp.asarray(X, requires_grad=True))

    def test_refused_declarations(self, operations):
        how: dict[str, Any] = {"x": lambda xp, g: g, "jvp": lambda xp, t: t}
        with pytest.raises(
            RegistrationError, match="t.bad: the rule 'order' takes 'g', which is not one of"
        ):
            define("t.bad(x, /)", residuals={"order": lambda xp, g: g}, **how)
        with pytest.raises(
            RegistrationError, match="t.bad: an output or residual cannot be called 'x'"
        ):
            define("t.bad(x, /)", residuals={"x": lambda xp, x: x}, **how)
        with pytest.raises(
            RegistrationError, match="t.bad: the rule 'order' must be a function, not the number 1"
        ):
            define("t.bad(x, /)", residuals={"order": 1}, **how)
        with pytest.raises(RegistrationError, match="t.bad: the rule 'order' must take xp first"):
            define("t.bad(x, /)", residuals={"order": lambda x: x}, **how)
