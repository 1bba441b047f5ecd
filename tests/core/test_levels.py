"""Transformations and levels: nesting without confusion, over raw arrays and Tensors."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import values
from forward_programs import raw

import multigrad as mg
from multigrad import func
from multigrad.autograd import forward_ad
from multigrad.core.level import Standing, highest


@pytest.fixture
def xp():
    """Levels know nothing of the library below them."""
    return mg.namespace("numpy")


class TestTheHighest:
    """Which operand carries out an operation."""

    def test_the_first_of_the_highest_level(self):
        x, y = mg.asarray(1.0), mg.asarray(2.0)
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(x, y)
            assert highest([x, 1.0, dual, y]) is dual
            assert highest([x, (slice(None), dual)]) is dual  # an indexing key
            assert highest([[y, dual], x]) is dual  # a list of arrays
        assert highest([x, y]) is x
        assert highest(iter([1.0, (y, x)])) is y

    def test_there_is_none(self):
        assert highest([]) is None
        assert highest([np.ones(2), None, (1, ...), {"x": mg.asarray(1.0)}]) is None

    def test_what_replaces_a_scalar_comes_first(self):
        x, scalar = mg.asarray(1.0), Standing()
        assert highest([x, scalar, x]) is scalar
        assert highest([x, (0, scalar)]) is scalar


class TestGrad:
    def test_value_aux_argnums_and_structures(self, xp):
        a, b = raw(xp, [1.0, 2.0]), raw(xp, [3.0, 4.0])
        value, (ga, gb) = func.value_and_grad(lambda x, y: xp.sum(x * y), argnums=(0, 1))(a, b)
        assert float(value) == 11.0
        np.testing.assert_allclose(values(ga), [3, 4])
        np.testing.assert_allclose(values(gb), [1, 2])
        tree = {"w": a, "layers": [b, (a, None)]}
        g, aux = func.grad(
            lambda p: (xp.sum(p["w"] * p["layers"][0] + p["layers"][1][0]), p["w"] * 2),
            has_aux=True,
        )(tree)
        assert set(g) == {"w", "layers"} and g["layers"][1][1] is None
        np.testing.assert_allclose(values(g["w"]), [3, 4])
        np.testing.assert_allclose(values(g["layers"][1][0]), [1, 1])
        np.testing.assert_allclose(values(aux), [2, 4])
        assert not isinstance(aux, mg.Tensor)

    def test_what_does_not_depend_is_zero(self, xp):
        a, b = raw(xp, [1.0, 2.0]), raw(xp, [3.0, 4.0])
        _, gb = func.grad(lambda x, y: xp.sum(x), argnums=(0, 1))(a, b)
        np.testing.assert_allclose(values(gb), [0, 0])
        np.testing.assert_allclose(
            values(func.grad(lambda x: xp.asarray(np.array(3.0)))(a)), [0, 0]
        )

    def test_vjp(self, xp):
        x, y = raw(xp, [1.0, 2.0]), raw(xp, [3.0, 4.0])
        out, pullback = func.vjp(lambda a, b: (a * b, {"sum": xp.sum(a)}), x, y)
        np.testing.assert_allclose(values(out[0]), [3, 8])
        for _ in range(2):
            gx, gy = pullback((raw(xp, [1.0, 10.0]), {"sum": raw(xp, 1.0)}))
            np.testing.assert_allclose(values(gx), [4, 41])
            np.testing.assert_allclose(values(gy), [1, 20])


class TestNesting:
    def test_perturbations_are_not_confused(self, xp):
        one = raw(xp, 1.0)
        f = func.grad(lambda x: x * func.grad(lambda y: x + y)(one))
        assert float(f(raw(xp, 3.0))) == 1.0
        f = func.grad(lambda x: x * func.grad(lambda y: x * y)(one))
        assert float(f(raw(xp, 3.0))) == 6.0
        f = func.grad(lambda x: func.grad(lambda y: func.grad(lambda z: x * y * z * z)(y))(x))
        assert float(f(raw(xp, 2.0))) == 16.0  # 2 x y^2, then 4 x y at y = x, then 8 x

    def test_run_numbers_are_not_reused(self, xp):
        saved = []

        def inner(y):
            saved.append(y)
            return y * y

        def outer(x):
            a = func.grad(inner)(x)
            b = func.grad(lambda z: z * a)(x)
            return a * b

        assert float(func.grad(outer)(raw(xp, 3.0))) == 24.0  # (2x * 2x)'

    def test_captured_tensor_keeps_its_graph(self, xp):
        w = xp.asarray(np.array([1.0, 2.0]), requires_grad=True)
        g = func.grad(lambda y: xp.sum(w * y * y))(raw(xp, [3.0, 4.0]))
        assert isinstance(g, mg.Tensor) and g.requires_grad
        xp.sum(g).backward()
        np.testing.assert_allclose(values(w.grad), [6, 8])

    def test_tensors_in_tensors_out(self, xp):
        x = xp.asarray(np.array([1.0, 2.0]), requires_grad=True)
        g = func.grad(lambda y: xp.sum(y**3))(x)
        assert isinstance(g, mg.Tensor) and g.requires_grad
        (h,) = mg.autograd.grad(xp.sum(g), x)
        np.testing.assert_allclose(values(h), [6, 12])
        c = func.grad(lambda y: xp.sum(y**3))(x.detach())
        assert isinstance(c, mg.Tensor) and not c.requires_grad

    def test_tensors_created_inside(self, xp):
        def f(x):
            w = xp.asarray(np.array([2.0, 3.0]), requires_grad=True)
            (gw,) = mg.autograd.grad(xp.sum(x * x * w), w)
            assert w.grad is None
            return xp.sum(gw * gw)

        np.testing.assert_allclose(values(func.grad(f)(raw(xp, [1.0, 2.0]))), [4, 32])

    def test_two_backwards_inside(self, xp):
        def f(x):
            p = xp.ones(3, dtype=xp.float64, requires_grad=True)
            xp.sum(p * p * x).backward()
            xp.sum(p * x).backward()
            return xp.sum(p.grad * p.grad)

        np.testing.assert_allclose(values(func.grad(f)(raw(xp, [1.0, 2.0, 3.0]))), [18, 36, 54])

    def test_backward_inside_does_not_reach_outer_leaves_unasked(self, xp):
        outer = xp.asarray(np.array([1.0, 2.0]), requires_grad=True)

        def f(x):
            xp.sum(x * outer).backward()
            return xp.sum(x)

        with pytest.raises(
            RuntimeError, match="would not reach the outer Tensor that the result also depends on"
        ):
            func.grad(f)(raw(xp, [1.0, 2.0]))
        assert outer.grad is None

    def test_a_tensor_from_outside_is_no_input_inside(self, xp):
        w = xp.asarray(np.array([1.0, 2.0]), requires_grad=True)
        with pytest.raises(
            RuntimeError,
            match="created outside of the running transformation.*Pass it as an argument",
        ):
            func.grad(lambda x: mg.autograd.grad(xp.sum(w * w * x), w)[0])(raw(xp, [1.0, 2.0]))

    def test_writing_into_an_array_from_outside(self, xp):
        outside = xp.zeros(2, dtype=xp.float64)

        def f(x):
            outside[0] = x[0]
            return xp.sum(x)

        with pytest.raises(RuntimeError, match="cannot be written into an array from outside"):
            func.grad(f)(raw(xp, [1.0, 2.0]))
        np.testing.assert_array_equal(values(outside), [0, 0])

    def test_a_captured_constant_is_version_checked(self, xp):
        w = xp.asarray(np.array([1.0, 2.0]))

        def f(x):
            nonlocal w
            y = x * w
            w += 1
            return xp.sum(y)

        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            func.grad(f)(raw(xp, [1.0, 2.0]))


class TestGradientsThatAreValuesOfATransformation:
    """The `.grad` of a leaf inside may be an argument, or what operations saved, so that nothing is
    added to it in place.
    """

    X = np.array([1.0, 2.0, 3.0])

    @pytest.mark.parametrize("detached", [False, True])
    def test_one_that_is_the_argument(self, xp, detached):
        def f(x):
            a = xp.asarray(self.X, requires_grad=True)
            a.grad = x.detach() if detached else x
            xp.sum(a * a).backward()
            return xp.sum(x * x) + xp.sum(a.grad * 2)

        x = raw(xp, self.X)
        np.testing.assert_allclose(values(func.grad(f)(x)), 2 * self.X + (0 if detached else 2))
        np.testing.assert_array_equal(values(x), self.X)  # the user's memory

    @pytest.mark.parametrize("own", [False, True])
    def test_one_that_was_saved(self, xp, own):
        def f(x):
            d = x if own else x.detach().requires_grad_()
            xp.sum(d * d).backward(inputs=[d])
            g = d.grad
            y = xp.sum(g * x)
            xp.sum(d * 3).backward(inputs=[d])
            np.testing.assert_allclose(values(g.detach()), 2 * self.X)
            return y + xp.sum(d.grad * x)

        np.testing.assert_allclose(values(func.grad(f)(raw(xp, self.X))), 4 * self.X + 3)

    def test_one_of_the_base_level_that_is_the_argument(self, xp):
        def f(x):
            w.grad = x
            xp.sum(w * w).backward()
            return xp.sum(w.grad * w.detach())

        x, w = raw(xp, self.X), xp.asarray(self.X, requires_grad=True)
        np.testing.assert_allclose(values(func.grad(f)(x)), self.X)
        np.testing.assert_array_equal(values(x), self.X)


def test_a_pass_that_reaches_none_of_its_targets_keeps_the_graph(xp):
    """Also where there are as many as leaves of the transformation: they may be others."""
    w = xp.asarray(np.ones(2), requires_grad=True)
    outside = mg.autograd.graph.get_gradient_edge(w)

    def f(x):
        y = xp.sum(x * x)
        assert mg.autograd.grad(y, [outside], allow_unused=True) == (None,)
        return y

    np.testing.assert_allclose(values(func.grad(f)(raw(xp, [1.0, 2.0]))), [2, 4])
