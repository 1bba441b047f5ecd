"""Dual, the array object of forward mode: its surface, what it refuses, in-place operations and
views; on every backend.
"""

from __future__ import annotations

import copy
import operator
import pickle

import numpy as np
import pytest
from conftest import values
from forward_programs import at, close, raw

import multigrad as mg
from multigrad import func
from multigrad.autograd import forward_ad
from multigrad.core.level import Transformation
from multigrad.errors import GradientError, LeakError, MissingRuleError
from multigrad.layers.dual import Dual
from multigrad.layers.value_layer import ValueLayer


class TestDual:
    """The array object itself."""

    def test_it_is_an_array(self, xp):
        def f(x):
            assert isinstance(x, Dual) and x.__array_namespace__() is xp
            assert (x.shape, x.ndim, x.size, x.dtype) == ((2, 3), 2, 6, xp.float64)
            assert x.device == xp.asarray(x.array).device
            assert len(x) == 2 and [tuple(row.shape) for row in x] == [(3,), (3,)]
            assert not x.requires_grad and "tangent=" in repr(x) and "Dual(" in repr(x)
            assert (
                float(x[0, 1].detach()) == 1.0
                and bool(x[0, 1])
                and int(x[0, 1].detach()) == 1
                and x[0, 1].item() == 1.0
            )
            assert operator.index(xp.argmax(x)) == 5 and x.tolist() == [
                [0.0, 1.0, 2.0],
                [3.0, 4.0, 5.0],
            ]
            assert f"{x[0, 1]:.2f}" == "1.00" and hash(x) == hash(x)
            assert x.mT.shape == x.T.shape == (3, 2) and x.reshape(-1).shape == (6,)
            return x

        at(xp, f, np.arange(6.0).reshape(2, 3))

    def test_several_outputs_have_names(self, xp):
        def f(x):
            q = xp.linalg.qr(x)
            assert isinstance(q.R, Dual) and isinstance(q.Q, Dual)
            return q.Q @ q.R

        x = np.array([[2.0, 1.0], [0.5, 3.0]])
        out, t = at(xp, f, x)
        close(out, x)
        np.testing.assert_allclose(values(t), np.ones((2, 2)), atol=1e-12)

    def test_leaving_it_is_not_silent(self, xp):
        def f(x):
            with pytest.warns(
                UserWarning,
                match=r"Converting a Dual with a tangent to a scalar by float\(\) drops the "
                r"tangent",
            ):
                float(x[0])
            for leave in (np.asarray, lambda x: x.numpy(), np.from_dlpack, copy.copy, pickle.dumps):
                with pytest.raises((RuntimeError, BufferError), match="Dual"):
                    leave(x)
            with pytest.raises(GradientError, match="a Dual is not a leaf of a graph"):
                x.requires_grad_()
            with pytest.raises(
                GradientError, match=r"backward\(\) starts at a Tensor, not at a Dual"
            ):
                xp.sum(x).backward()
            with pytest.raises(TypeError, match="element 0 of tensors is a Dual"):
                mg.autograd.grad(xp.sum(x), [xp.ones(1, requires_grad=True)])
            with pytest.raises(
                RuntimeError, match="Can't call a function that takes no gradient on a Dual"
            ):
                xp.arange(x[0])
            with pytest.raises(TypeError, match="made by the transformation"):
                Dual()
            copied = mg.tensor(x.detach(), requires_grad=True)
            assert type(copied) is not Dual and copied.is_leaf
            return x

        at(xp, f, np.array([1.0, 2.0]))

    def test_leaks(self, xp):
        kept = {}

        def f(x):
            kept["dual"] = x * 2
            kept["view"] = x[:1]
            kept["tensor"] = xp.ones(2, dtype=xp.float64) * x
            kept["constant"] = xp.ones(2, dtype=xp.float64)
            return x

        at(xp, f, np.array([1.0, 2.0]))
        for use in (
            lambda t: t + 1,
            lambda t: xp.sum(t),
            lambda t: t[0],
            lambda t: func.grad(lambda y: xp.sum(y * t))(raw(xp, [1.0])),
            lambda t: func.jvp(lambda y: y * t, (raw(xp, [1.0]),), (raw(xp, [1.0]),)),
        ):
            for name in ("dual", "view", "tensor"):
                with pytest.raises(
                    LeakError,
                    match="inside the transformation 'jvp' was used after it had finished; "
                    "return it",
                ):
                    use(kept[name])
        with pytest.raises(LeakError, match="used after it had finished"):
            kept["dual"] += 1
        assert "leaked" in repr(kept["dual"]) and "leaked" in repr(kept["tensor"])
        close(kept["constant"] + 1, [2, 2])

    def test_a_missing_rule_says_so(self, xp):
        op = mg.registry.define(
            "forward_test.half(x, /)",
            forward=lambda xp, x: x / 2,
            x=lambda xp, g: g / 2,
            doc="Half.",
        )
        sums = mg.registry.linear(
            "forward_test.pick(x, y, /)",
            forward=lambda xp, x, y: x + 0 * y,
            x=lambda xp, g: g,
            doc="The first.",
        )
        try:
            half, pick = xp.forward_test.half, xp.forward_test.pick
            with pytest.raises(
                MissingRuleError,
                match="'forward_test.half' has no jvp, so it cannot be differentiated in "
                "forward mode",
            ):
                at(xp, half, 1.0)
            close(at(xp, lambda x: half(x.detach()) * x, 3.0)[1], 1.5)
            with pytest.raises(
                MissingRuleError,
                match="'forward_test.pick' has no derivative rule for its argument 'y'",
            ):
                at(xp, pick, 1.0, 2.0)
            close(at(xp, lambda x: pick(x, 2.0 * xp.ones_like(x.detach())), 3.0)[1], 1)
        finally:
            for o in (op, sums):
                mg.registry.OPS.pop(o.name)


class TestInPlace:
    def test_the_result_takes_the_place_of_the_value(self, xp):
        def f(x):
            same = y = x * 1
            y += x
            y *= 2.0
            y **= xp.asarray(np.array([1.0, 2.0]))
            y.sin_()
            assert same is y and y._version == 4
            return y

        x = np.array([0.3, 0.8])
        _, t = at(xp, f, x)
        close(t, np.cos((4 * x) ** [1, 2]) * [4, 2 * 16 * x[1]])

    def test_what_it_was_made_of_is_not_written(self, xp):
        x = raw(xp, [1.0, 2.0])

        def f(y):
            y *= 3
            y[0] = 7.0
            return y

        out, t = func.jvp(f, (x,), (x,))
        close(x, [1, 2])
        close(out, [7, 6])
        close(t, [0, 6])

    def test_views_follow(self, xp):
        def f(x):
            y = x * 1
            flat, last, rest = y.reshape(-1), y.T[1, :], xp.unstack(y)[1]
            y *= 2
            rest[0] *= x[0, 1]
            return flat, last, rest

        _, t = at(xp, f, np.array([[1.0, 2.0], [3.0, 4.0]]))
        for found, expected in zip(t, ([2, 2, 10, 2], [2, 2], [10, 2]), strict=True):
            close(found, expected)

    def test_refusals(self, xp):
        outside = xp.zeros(2, dtype=xp.float64)

        def f(x):
            with pytest.raises(
                RuntimeError,
                match=r"output with shape \[2\] doesn't match the broadcast shape \[3, 2\]",
            ):
                x += (
                    np.ones((3, 2))
                    if xp.__name__ == "multigrad.numpy"
                    else xp.ones((3, 2), dtype=xp.float64)
                )
            with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
                x += 1j * xp.ones(2, dtype=xp.float64)
            integers = xp.argmax(xp.stack([x, x]), axis=0)
            with pytest.raises(RuntimeError, match="result type .* can't be cast"):
                integers[0] = x[0]
            with pytest.raises(
                RuntimeError,
                match="more than one element of the written-to tensor refers to a single memory "
                "location",
            ):
                xp.broadcast_to(x, (3, 2))[...] = 1.0
            with pytest.raises(
                GradientError, match="a Dual that was detached shows the value of another one"
            ):
                x.detach()[0] = 1.0
            with pytest.raises(GradientError, match="cannot be written into an array from outside"):
                outside[0] = x[0]
            with pytest.raises(GradientError, match="cannot be written into an array from outside"):
                func.grad(lambda z: xp.sum(operator.imul(x, z)))(raw(xp, [1.0, 1.0]))
            with pytest.raises(TypeError):
                x += "a"
            return x

        out, t = at(xp, f, np.array([1.0, 2.0]))
        close(out, [1, 2])
        close(t, [1, 1])
        close(outside, [0, 0])

    def test_a_detached_one_follows(self, xp):
        def f(x):
            y = x * 1
            d = y.detach()
            y *= 2
            return d * x

        close(at(xp, f, np.array([1.0, 2.0]))[1], [2, 4])

    def test_a_captured_dual_is_version_checked(self, xp):
        def f(x):
            w = x * 1

            def g(y):
                z = y * w
                w.__iadd__(1)
                return xp.sum(z)

            return func.grad(g)(x)

        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            at(xp, f, np.array([1.0, 2.0]))

    def test_an_argument_keeps_its_value(self, xp):
        """Of another transformation: there it is a value, which a write to the Dual does not
        exchange.
        """

        def f(x):
            w = x * 1

            def g(y):
                z = y * y
                w.__iadd__(1)
                return xp.sum(z * y)

            v = x * 1

            def h(y):
                v.__iadd__(1)
                return y * y

            return func.grad(g)(w), func.jvp(h, (v,), (xp.ones_like(x),))[1]

        _, t = at(xp, f, np.array([1.0, 2.0]))
        close(t[0], [6, 12])
        close(t[1], [2, 2])


def test_a_list_in_the_place_of_an_array_is_named_as_one():
    x = np.ones(3)
    with pytest.raises(TypeError, match=r"got builtins\.list\. Wrap lists with"):
        mg.func.jvp(lambda x: mg.matmul(x, [1.0, 1.0, 1.0]), (x,), (x,))


class TestHistoriesFurtherIn:
    """Duals of Tensors that require grad, under no_grad."""

    @staticmethod
    def leaf(xp):
        return xp.asarray(np.array([1.0, 2.0, 3.0]), requires_grad=True)

    def test_a_view_that_is_looked_at_keeps_its_history(self, xp):
        x = self.leaf(xp)
        with forward_ad.dual_level():
            y = forward_ad.make_dual(x, xp.ones_like(x)) * 1.0
            v = y[1:]
            y *= 2.0
            with mg.no_grad():
                assert v.shape == (2,) and values(forward_ad.unpack_dual(v).primal).tolist() == [
                    4.0,
                    6.0,
                ]
            forward_ad.unpack_dual(xp.sum(v * v)).primal.backward()
        close(x.grad, [0, 16, 24])

    @pytest.mark.xfail(strict=True, reason="what takes the place of the value has no history")
    def test_a_write_keeps_the_history_of_the_rest(self, xp):
        x = self.leaf(xp)
        with forward_ad.dual_level():
            y = forward_ad.make_dual(x, xp.ones_like(x)) * 1.0
            with mg.no_grad():
                y[0] = 5.0
            forward_ad.unpack_dual(xp.sum(y * y)).primal.backward()
        close(x.grad, [10, 4, 6])  # as of a Tensor


def test_a_class_that_cannot_apply_a_function_is_named():
    class Mute(ValueLayer):
        __slots__ = ()

    class Same(mg.autograd.Function):
        forward = staticmethod(lambda ctx, x: x * 1)

    run = Transformation("mute")
    with pytest.raises(
        NotImplementedError,
        match=r"under Mute yet: let the class Mute define the static method _apply_custom\(app",
    ):
        run.call(lambda: Same.apply(Mute._around(np.ones(2), run, run.own_level)))
