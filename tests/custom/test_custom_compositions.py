"""Operations with a derivative of the user's own under every composition of the transformations, up
to fourth derivatives.

Two forms of Function, custom_vjp and custom_jvp, each sin(x) y, are differentiated as x² sin(x).
"""

from __future__ import annotations

import numpy as np
import pytest
from conftest import values
from custom_rules import sine_jvp, sine_vjp
from forward_programs import raw
from function_programs import Double

import multigrad as mg
from multigrad import func
from multigrad.autograd.function import Function
from multigrad.core.level import Layer


def sine_function(xp):
    class Sine(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            ctx.save_for_forward(x, y)
            return xp.sin(x) * y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * xp.cos(x) * y, g * xp.sin(x)

        @staticmethod
        def jvp(ctx, a, b):
            x, y = ctx.saved_tensors
            return xp.cos(x) * y * a + xp.sin(x) * b

    return Sine.apply


def sine_of_two_outputs(xp):
    """What the derivative needs is an output, as it has to be for higher derivatives."""

    class Sine(Function):
        @staticmethod
        def forward(x, y):
            s = xp.sin(x)
            return s * y, s

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs, output[1])
            ctx.save_for_forward(*inputs, output[1])

        @staticmethod
        def backward(ctx, g, h):
            x, y, s = ctx.saved_tensors
            return xp.cos(x) * (g * y + h), g * s

        @staticmethod
        def jvp(ctx, a, b):
            x, y, s = ctx.saved_tensors
            return xp.cos(x) * y * a + s * b, xp.cos(x) * a

    return lambda x, y: Sine.apply(x, y)[0] * 3 - Sine.apply(x, y)[1] * y * 2


def one(x):
    xp = mg.namespace(mg.asarray(x))
    return xp.ones_like(x) if isinstance(x, Layer) else xp.ones_like(x).array


D = {
    "grad": lambda f: func.grad(f),
    "jvp": lambda f: lambda x: func.jvp(f, (x,), (one(x),))[1],
    "vjp": lambda f: lambda x: func.vjp(f, x)[1](one(x))[0],
    "linearize": lambda f: lambda x: func.linearize(f, x)[1](one(x)),
    "jacfwd": lambda f: lambda x: func.jacfwd(f)(x),
    "hvp": lambda f: lambda x: func.hvp(f, (x,), (one(x),))[1][0],
}
ORDER = {name: 2 if name == "hvp" else 1 for name in D}
X, S, C = 0.7, np.sin(0.7), np.cos(0.7)
EXPECTED = [
    X * X * S,
    2 * X * S + X * X * C,
    2 * S + 4 * X * C - X * X * S,
    6 * C - 6 * X * S - X * X * C,
    -12 * S - 8 * X * C + X * X * S,
]


@pytest.fixture(params=[sine_function, sine_of_two_outputs, sine_vjp, sine_jvp])
def sine(request, xp):
    return request.param(xp)


@pytest.mark.parametrize("outer", D)
def test_two_of_them(xp, sine, outer):
    for inner in D:
        found = D[outer](D[inner](lambda x: sine(x, x * x)))(raw(xp, X))
        np.testing.assert_allclose(
            values(found), EXPECTED[ORDER[outer] + ORDER[inner]], rtol=1e-11, err_msg=inner
        )


@pytest.mark.parametrize(
    "names",
    [
        ("grad", "jvp", "grad"),
        ("jvp", "grad", "jvp"),
        ("linearize", "vjp", "jacfwd"),
        ("grad",) * 3,
        ("grad", "jvp", "linearize", "vjp"),
        ("hvp", "hvp"),
    ],
)
def test_third_and_fourth_derivatives(xp, sine, names):
    f = lambda x: sine(x, x * x)
    for name in names:
        f = D[name](f)
    np.testing.assert_allclose(
        values(f(raw(xp, X))), EXPECTED[sum(ORDER[name] for name in names)], rtol=1e-10
    )


def test_an_argument_from_further_out(xp, sine):
    """d/dw of w sin'(x w) w at x = w², where w is a constant to the inner transformation."""
    for outer, inner in (
        ("grad", "jvp"),
        ("jvp", "grad"),
        ("linearize", "vjp"),
        ("vjp", "linearize"),
    ):
        found = D[outer](lambda w, d=D[inner]: d(lambda x: sine(x * w, w))(w * w))(raw(xp, X))
        np.testing.assert_allclose(
            values(found), 2 * X * np.cos(X**3) - 3 * X**4 * np.sin(X**3), rtol=1e-11, err_msg=inner
        )


def test_over_tensors(xp, sine):
    """The result of two transformations over a Tensor has the graph of all of them."""
    for outer, inner in (("grad", "jvp"), ("jvp", "grad")):
        t = xp.asarray(np.asarray(X), requires_grad=True)
        out = D[outer](D[inner](lambda x: sine(x, x * x)))(t)
        (found,) = mg.autograd.grad(out, t)
        np.testing.assert_allclose(values(found), EXPECTED[3], rtol=1e-11, err_msg=outer)


def test_a_function_applied_in_a_backward_passes_on_what_its_gradient_depends_on():
    """The pullback of a pullback: the gradient that backward gets belongs to a transformation that
    began after that of the pass.
    """

    class Outer(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return 2.0 * x

        @staticmethod
        def backward(ctx, g):
            return Double.apply(g) + 0.0 * ctx.saved_tensors[0]

    by_rule = func.custom_vjp(lambda x: 2.0 * x)
    by_rule.defvjp(lambda x: (2.0 * x, None), lambda _, g: (Double.apply(g),))
    x, v = np.array([1.0, 2.0]), np.array([3.0, -1.0])
    for f in (Outer.apply, by_rule):
        assert np.array_equal(func.linearize(lambda x, f=f: f(x**3), x)[1](v), 6 * x**2 * v)
        _, pullback = func.vjp(lambda x, f=f: f(x**3), x)
        assert np.array_equal(
            func.jacrev(lambda g, pullback=pullback: pullback(g)[0])(v), np.diag(6 * x**2)
        )


def test_a_pullback_is_moved_by_a_transformation_that_begins_later(xp, sine):
    x, g = raw(xp, X), raw(xp, 2.0)
    _, pullback = func.vjp(lambda x: sine(x, x * x), x)
    moved = func.jvp(lambda g: pullback(g)[0], (g,), (g,))[1]
    np.testing.assert_allclose(values(moved), 2.0 * EXPECTED[1], rtol=1e-11)
