"""A layer that multigrad does not know goes through every operation, and with every transformation,
by its own `_apply`.
"""

from __future__ import annotations

import numpy as np
import pytest

import multigrad as mg
from multigrad import func
from multigrad.autograd import Function
from multigrad.core.element import is_array
from multigrad.core.level import Layer, Transformation
from multigrad.core.tensor import detached
from multigrad.dispatch.general import carried_out
from multigrad.layers.value_layer import ValueLayer


class Logged(ValueLayer):
    """An array that notes the names of the operations on it."""

    __slots__ = ()

    @classmethod
    def of(cls, x, run):
        return cls._around(x, run, run.own_level)

    def _take(self, value):
        self._put(value._array)

    def _constant(self, x):
        return Logged.of(x, self._run)

    def _copied(self, stop=False):
        return Logged.of(detached(self._array) if stop else self._array, self._run)

    def _mapped(self, function):
        return Logged.of(function(self._array), self._run)

    @staticmethod
    def _apply(op, values, top):
        log.append(op.name)

        def inner(x):
            if isinstance(x, (tuple, list)):
                return tuple(map(inner, x))
            return x._array if isinstance(x, Logged) and x._run is top._run else x

        arguments = [inner(v) for v in values]
        found, _, _ = carried_out(op, arguments, arguments, top)
        outs = found if isinstance(found, (tuple, list)) else (found,)
        wrapped = tuple(Logged.of(x, top._run) if is_array(x) else x for x in outs)
        return wrapped if op.outputs != () else wrapped[0]

    @staticmethod
    def _apply_custom(application, values, top):
        log.append(application.name)
        own = [isinstance(x, Logged) and x._run is top._run for x in values]
        return application.through(values, own, lambda x: Logged.of(x, top._run))


log: list[str] = []


def logged(function, *args):
    """The value of the function, called on layers of this class, and the operations that it ran."""
    log.clear()
    run = Transformation("logged")
    found = run.call(lambda: function(*(Logged.of(x, run) if is_array(x) else x for x in args)))
    while isinstance(found, Logged):
        found = found._array
    return found, list(log)


def program(x, w):
    y = x * w + 1.5 - w * 2
    y = mg.sin(y) @ mg.stack([x, w])[:, 0] if x.ndim == 2 else mg.sin(y) * mg.concat([x[1:], x[:1]])
    return mg.sum(mg.where(y > 0, y, 0.1 * y) ** 2)


X, W = np.array([0.4, -1.3, 2.0]), np.array([1.1, 0.7, -0.2])
OPERATIONS = [
    "multiply",
    "add",
    "multiply",
    "subtract",
    "sin",
    "getitem",
    "getitem",
    "concat",
    "multiply",
    "greater",
    "multiply",
    "where",
    "pow",
    "sum",
]


def values(x):
    while isinstance(x, Layer):
        x = x._array
    return np.asarray(x)


class TestAStranger:
    def test_sees_every_operation_once(self):
        for _ in range(3):  # whatever was learnt on the way
            found, seen = logged(program, X, W)
            np.testing.assert_allclose(values(found), values(program(mg.asarray(X), W)))
            assert seen == OPERATIONS

    @pytest.mark.parametrize("beside", ["raw", "Tensor", "float64"])
    def test_beside_other_operands(self, beside):
        w = {"raw": W, "Tensor": mg.asarray(W), "float64": np.float64(0.7)}[beside]
        for function in (
            lambda x: x * w,
            lambda x: w * x,
            lambda x: mg.where(x > 0, x, w),
            lambda x: mg.clip(x, -1.0, w),
        ):
            found, seen = logged(function, X)
            np.testing.assert_allclose(values(found), values(function(mg.asarray(X))))
            assert seen

    def test_inside_of_transformations(self):
        for transform in TRANSFORMS.values():
            function = transform(program)
            expected = values(function(X, W))
            for _ in range(2):
                np.testing.assert_allclose(values(logged(function, X, W)[0]), expected)

    @pytest.mark.parametrize("order", ["grad", "vmap", "jvp"])
    def test_outside_of_transformations(self, order):
        outside(order, program, program)
        assert log == OPERATIONS


def outside(order, function, same):
    """A function that runs on layers of this class, in a transformation; it computes the same."""

    def inner(x):
        return logged(function, x, W)[0]

    if order == "grad":
        found, expected = func.grad(inner)(X), func.grad(same)(X, W)
    elif order == "vmap":
        rows = np.stack([X, W])
        found, expected = func.vmap(inner)(rows), [values(same(mg.asarray(r), W)) for r in rows]
    else:
        found, expected = func.jvp(inner, (X,), (W,))[1], func.grad(same)(X, W) @ W
    np.testing.assert_allclose(found, expected)


class Square(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, n):
        return x * x, x * n

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.save_for_forward(inputs[0])
        ctx.n = inputs[1]

    @staticmethod
    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        return 2 * x * g + ctx.n * h, None

    @staticmethod
    def jvp(ctx, t, _):
        (x,) = ctx.saved_tensors
        return 2 * x * t, ctx.n * t


@func.custom_vjp
def cube(x):
    return x**3


cube.defvjp(lambda x: (cube(x), mg.sin(x) * 0 + x), lambda x, g: (3 * g * x**2,))


@func.custom_jvp
def exp(x):
    return mg.exp(x)


exp.defjvp(lambda primals, tangents: (exp(*primals), exp(*primals) * tangents[0]))


def own_derivatives(x, w):
    square, double = Square.apply(mg.sin(x), 3)
    return mg.sum(square * w + double * cube(x) - exp(w) * x)


def same(x, w):
    return mg.sum(mg.sin(x) ** 2 * w + mg.sin(x) * 3 * x**3 - mg.exp(w) * x)


TRANSFORMS = {
    "nothing": lambda f: f,
    "grad": lambda f: func.grad(f),
    "jvp": lambda f: lambda x, w: func.jvp(lambda u: f(u, w), (x,), (W,))[1],
    "vmap of grad": lambda f: (
        lambda x, w: func.vmap(func.grad(f), in_axes=(0, None))(mg.stack([x, w]), w)
    ),
    "jvp of grad": lambda f: lambda x, w: func.jvp(func.grad(lambda u: f(u, w)), (x,), (W,))[1],
    "hessian": lambda f: lambda x, w: func.hessian(f)(x, w),
    "jacrev of jacfwd": lambda f: func.jacrev(func.jacfwd(f)),
    "grad of checkpoint": lambda f: func.grad(func.checkpoint(f)),
}


class TestDerivativesOfOnesOwn:
    """A layer takes part in autograd.Function, custom_vjp and custom_jvp by the static method
    `_apply_custom`.
    """

    @pytest.mark.parametrize("name", TRANSFORMS)
    def test_inside_of_transformations(self, name):
        transform = TRANSFORMS[name]
        expected = values(transform(same)(mg.asarray(X), mg.asarray(W)))
        np.testing.assert_allclose(
            values(transform(own_derivatives)(mg.asarray(X), mg.asarray(W))), expected
        )
        out, seen = logged(transform(own_derivatives), X, W)
        np.testing.assert_allclose(values(out), expected)
        assert {"VmappedSquare", "Square"} & set(seen)

    @pytest.mark.parametrize("order", ["grad", "vmap", "jvp"])
    def test_outside_of_transformations(self, order):
        outside(order, own_derivatives, same)
        assert "Square" in log

    def test_over_a_leaf(self):
        x = mg.asarray(X, requires_grad=True)
        out, _ = logged(own_derivatives, x, W)
        (g,) = mg.autograd.grad(out, x)
        np.testing.assert_allclose(values(g), func.grad(same)(X, W))

    def test_without_the_method_the_error_names_it(self):
        class Mute(Logged):
            __slots__ = ()
            _apply_custom = staticmethod(Layer._apply_custom)

        run = Transformation("mute")
        with pytest.raises(
            NotImplementedError,
            match=r"under Mute yet: let the class Mute define the static method "
            r"_apply_custom\(application",
        ):
            run.call(lambda: Square.apply(Mute._around(X, run, run.own_level), 3))
