"""What a rule gets for outputs that were not used and for arguments that do not move: zeros, or
None where it says so.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pytest
from conftest import values

import multigrad as mg
from multigrad.errors import RegistrationError
from multigrad.registry import define, linear


@pytest.fixture(autouse=True)
def table(operations):
    """Whatever a test declares is gone afterwards."""
    return operations


X = np.array([[0.5, -1.0, 2.0], [1.5, 3.0, -2.5]])


def declare_parts() -> Any:
    """The cube of x and the sums of its rows, by rules that read both cotangents without asking
    whether there are any.
    """
    return define(
        "t.parts(x, /)",
        outputs=("cubes", "sums"),
        forward=lambda xp, x: (x * x * x, xp.sum(x, axis=1)),
        batching="form",
        x=lambda xp, g_cubes, g_sums, x: 3 * x * x * g_cubes + g_sums[:, None],
        jvp=lambda xp, t, x: (3 * x * x * t, xp.sum(t, axis=1)),
    )


def declare_halves() -> Any:
    """The two halves of x, as outputs of a variable number."""
    return linear(
        "t.halves(x, /)",
        outputs=None,
        forward=lambda xp, x: (x[:1, ...], x[1:, ...]),
        x=lambda xp, g: xp.concat(list(g)),
    )


class TestUnusedOutputs:
    def test_zeros_stand_for_them(self, xp):
        declare_parts()
        x = xp.asarray(X, requires_grad=True)
        for loss, expected in (
            (lambda c, s: xp.sum(c), 3 * X**2),
            (lambda c, s: xp.sum(s), np.ones_like(X)),
            (lambda c, s: xp.sum(c) + xp.sum(s * s), 3 * X**2 + 2 * X.sum(1, keepdims=True)),
        ):
            (g,) = mg.autograd.grad(loss(*xp.t.parts(x)), x)
            np.testing.assert_allclose(values(g), expected)

    def test_in_transformations(self, xp):
        declare_parts()
        raw = xp.asarray(X).array

        def cubes(x: Any) -> Any:
            return xp.sum(xp.t.parts(x)[0])

        def sums(x: Any) -> Any:
            return xp.sum(xp.t.parts(x)[1] ** 2)

        np.testing.assert_allclose(values(mg.func.grad(cubes)(raw)), 3 * X**2)
        np.testing.assert_allclose(
            values(mg.func.jvp(mg.func.grad(cubes), (raw,), (raw,))[1]), 6 * X**2
        )
        batch = xp.stack([xp.asarray(X), xp.asarray(2 * X)]).array
        for f, expected in (
            (cubes, [3 * X**2, 12 * X**2]),
            (sums, [2 * X.sum(1, keepdims=True) + 0 * X, 4 * X.sum(1, keepdims=True) + 0 * X]),
        ):
            np.testing.assert_allclose(values(mg.func.vmap(mg.func.grad(f))(batch)), expected)

    def test_of_a_variable_number(self, xp):
        declare_halves()
        x = xp.asarray(X, requires_grad=True)
        (g,) = mg.autograd.grad(xp.sum(xp.t.halves(x)[1]), x)
        np.testing.assert_allclose(values(g), [[0, 0, 0], [1, 1, 1]])

    def test_dtype_and_shape_are_those_of_the_output(self, xp):
        seen: list[Any] = []
        define(
            "t.cast(x, /)",
            outputs=("same", "single"),
            forward=lambda xp, x: (x * 1, xp.astype(x[:, 0], xp.float32)),
            x=lambda xp, g_same, g_single: seen.append((g_single.shape, g_single.dtype)) or g_same,
            jvp=lambda xp, t: (t, t),
        )
        x = xp.asarray(X, requires_grad=True)
        mg.autograd.grad(xp.sum(xp.t.cast(x).same), x)
        assert seen == [((2,), xp.float32)]

    def test_none_for_a_rule_that_says_so(self, xp):
        seen: list[Any] = []

        def vjp(xp: Any, g_cubes: Any, g_sums: Any, x: Any) -> Any:
            seen.append((g_cubes is None, g_sums is None))
            return 3 * x * x * g_cubes if g_sums is None else 0 * x + g_sums[:, None]

        define(
            "t.parts(x, /)",
            outputs=("cubes", "sums"),
            forward=lambda xp, x: (x * x * x, xp.sum(x, axis=1)),
            materialize=False,
            x=vjp,
            jvp=lambda xp, t, x: (3 * x * x * t, xp.sum(t, axis=1)),
        )
        tuples: list[Any] = []
        x = xp.asarray(X, requires_grad=True)
        mg.autograd.grad(xp.sum(xp.t.parts(x).cubes), x)
        mg.autograd.grad(xp.sum(xp.t.parts(x).sums), x, create_graph=True)
        assert seen == [(False, True), (True, False)]
        linear(
            "t.two(x, /)",
            outputs=None,
            forward=lambda xp, x: (2 * x, 3 * x),
            materialize=False,
            x=lambda xp, g: tuples.append(g) or 3 * g[1],
        )
        mg.autograd.grad(xp.sum(xp.t.two(x)[1]), x)
        assert tuples[0][0] is None

    def test_a_joint_rule(self, xp):
        define(
            "t.cross(x, y, /)",
            outputs=("total", "product"),
            forward=lambda xp, x, y: (x + y, x * y),
            vjp=lambda xp, g_total, g_product, x, y, needs: (
                g_total + g_product * y,
                g_total + g_product * x,
            ),
            jvp=lambda xp, t_x, t_y, x, y: (t_x + t_y, t_x * y + x * t_y),
        )
        x, y = xp.asarray(X, requires_grad=True), xp.asarray(2 * X, requires_grad=True)
        for loss, gx, gy in (
            (lambda r: r.total, np.ones_like(X), np.ones_like(X)),
            (lambda r: r.product, 2 * X, X),
        ):
            for found, expected in zip(
                mg.autograd.grad(xp.sum(loss(xp.t.cross(x, y))), (x, y)), (gx, gy), strict=True
            ):
                np.testing.assert_allclose(values(found), expected)

    def test_a_rule_of_a_backend(self, monkeypatch):
        declare_parts()
        library = mg.namespace("numpy").zeros(1)._elem.library
        monkeypatch.setitem(
            library.backend.rules,
            "t.parts",
            {"x": lambda xp, g_cubes, g_sums, x: 30 * x * x * g_cubes + g_sums[:, None]},
        )
        xp = mg.namespace("numpy")
        x = xp.asarray(X, requires_grad=True)
        (g,) = mg.autograd.grad(xp.sum(xp.t.parts(x).cubes), x)
        np.testing.assert_allclose(values(g), 30 * X**2)

    @pytest.mark.parametrize("output", (0, 1))
    @pytest.mark.parametrize("create_graph", (False, True))
    def test_with_hooks_on_saved_arrays(self, xp, output, create_graph):
        declare_parts()
        x = xp.asarray(X, requires_grad=True)
        expected = (3 * X**2, np.ones_like(X))[output]
        with mg.autograd.graph.saved_tensors_hooks(lambda t: t.detach(), lambda t: t):
            loss = xp.sum(xp.t.parts(x)[output])
        (g,) = mg.autograd.grad(loss, x, create_graph=create_graph)
        np.testing.assert_allclose(values(g), expected)

    def test_a_named_tuple_among_what_is_saved_keeps_its_names(self, xp):
        scales = namedtuple("scales", "first second")
        define(
            "t.scaled(x, /, by)",
            forward=lambda xp, x, by: x * x * by.first,
            x=lambda xp, g, x, by: 2 * x * g * by.first,
        )
        x = xp.asarray(X, requires_grad=True)
        with mg.autograd.graph.saved_tensors_hooks(lambda t: t.detach(), lambda t: t):
            loss = xp.sum(xp.t.scaled(x, scales(3.0, 5.0)))
        loss.backward()
        np.testing.assert_allclose(values(x.grad), 6 * X)


class TestArgumentsThatDoNotMove:
    def test_zeros_stand_for_their_tangents(self, xp):
        define(
            "t.times(x, y, /)",
            forward=lambda xp, x, y: x * y,
            x=lambda xp, g, y: g * y,
            y=lambda xp, g, x: g * x,
            jvp=lambda xp, t_x, t_y, x, y: t_x * y + x * t_y,
        )
        x, y = xp.asarray(X).array, xp.asarray(2 * X).array
        for f, expected in (
            (lambda x: xp.t.times(x, y), 2 * X),
            (lambda x: xp.t.times(y, x), 2 * X),
            (lambda x: xp.t.times(x, x), 2 * X),
        ):
            np.testing.assert_allclose(
                values(mg.func.jvp(f, (x,), (xp.ones_like(xp.asarray(X)).array,))[1]), expected
            )
        hessian = mg.func.jvp(mg.func.grad(lambda x: xp.sum(xp.t.times(x, y) ** 2)), (x,), (x,))[1]
        np.testing.assert_allclose(values(hessian), 8 * X**3)

    def test_of_lists_and_of_integers(self, xp):
        define(
            "t.sum(arrays: arrays, n: array, /)",
            forward=lambda xp, arrays, n: arrays[0] + arrays[1] * n,
            arrays=lambda xp, g, n, needs: [g, g * n],
            jvp=lambda xp, t_arrays, t_n, arrays, n: (
                t_arrays[0] + t_arrays[1] * n + arrays[1] * t_n
            ),
        )
        x, n = xp.asarray(X).array, xp.asarray(3.0).array
        out = mg.func.jvp(lambda x: xp.t.sum([xp.asarray(X), x], n), (x,), (x,))[1]
        np.testing.assert_allclose(values(out), 3 * X)
        define(
            "t.scaled(x, n, /)",
            forward=lambda xp, x, n: x * xp.astype(n, x.dtype),
            x=lambda xp, g, n: g,
            jvp=lambda xp, t_x, t_n, x, n: t_x * xp.astype(n, x.dtype) + x * t_n,
        )
        whole = xp.asarray(np.array(3)).array
        np.testing.assert_allclose(
            values(mg.func.jvp(lambda x: xp.t.scaled(x, whole), (x,), (x,))[1]), 3 * X
        )

    @pytest.mark.runs_once
    def test_none_for_a_rule_that_says_so(self, xp):
        seen: list[Any] = []
        define(
            "t.times(x, y, /)",
            forward=lambda xp, x, y: x * y,
            x=lambda xp, g, y: g * y,
            y=lambda xp, g, x: g * x,
            materialize=False,
            jvp=lambda xp, t_x, t_y, x, y: (
                seen.append((t_x is None, t_y is None)) or (t_x * y if t_y is None else x * t_y)
            ),
        )
        x = xp.asarray(X).array
        mg.func.jvp(lambda x: xp.t.times(x, xp.asarray(X)), (x,), (x,))
        mg.func.jvp(lambda x: xp.t.times(xp.asarray(X), x), (x,), (x,))
        assert seen == [(False, True), (True, False)]


class TestDeclarations:
    def test_names_of_outputs(self):
        for outputs, name in (
            (("x", "y"), "x"),
            (("y", "y"), "y"),
            (("ans", "y"), "ans"),
            (("y", "axis"), "axis"),
        ):
            with pytest.raises(
                RegistrationError, match=f"t.bad: an output or residual cannot be called '{name}'"
            ):
                define(
                    "t.bad(x, /, *, axis=0)",
                    outputs=outputs,
                    x=lambda xp, g_y: g_y,
                    jvp=lambda xp, t: t,
                )

    def test_materialize_is_a_bool(self):
        with pytest.raises(
            RegistrationError, match="t.bad: materialize must be True or False, not None"
        ):
            define("t.bad(x, /)", x=lambda xp, g: g, jvp=lambda xp, t: t, materialize=None)
