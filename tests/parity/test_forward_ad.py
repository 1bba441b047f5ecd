"""autograd.forward_ad, and what goes with it: jvp of a Function, gradcheck in forward mode; on each
backend and in PyTorch.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import multigrad as mg
from multigrad.autograd import Function, forward_ad


@pytest.fixture
def ad(side):
    return side.autograd.forward_ad


@pytest.fixture
def x(side):
    return side.tensor([1.0, 2.0])


@pytest.fixture
def v(side):
    return side.tensor([3.0, 4.0])


def same(side, found, expected):
    np.testing.assert_allclose(side.values(found), expected, rtol=1e-12)


def tangent(ad, f, *pairs):
    """The tangent of `f` at primals, given with their tangents; None for a constant."""
    with ad.dual_level():
        return ad.unpack_dual(
            f(*(p if t is None else ad.make_dual(p, t) for p, t in pairs))
        ).tangent


class TestLevels:
    def test_a_derivative(self, side, ad, x, v):
        with ad.dual_level():
            dual = ad.make_dual(x, v)
            found = ad.unpack_dual(side.xp.sin(dual) * dual)
            assert isinstance(found, ad.UnpackedDualTensor) and found._fields == (
                "primal",
                "tangent",
            )
            primal, moved = found
        same(side, primal, np.sin([1, 2]) * [1, 2])
        same(side, moved, (np.cos([1, 2]) * [1, 2] + np.sin([1, 2])) * [3, 4])
        assert ad.UnpackedDualTensor(primal=1, tangent=None) == (1, None)

    def test_outside_of_any(self, ad, x, v):
        assert ad.unpack_dual(x).primal is x and ad.unpack_dual(x).tangent is None
        with pytest.raises(
            RuntimeError,
            match="Trying to create a dual Tensor for forward AD but no level exists, make sure "
            "to enter",
        ):
            ad.make_dual(x, v)
        with pytest.raises(RuntimeError, match="Dual level must be a positive number"):
            ad.exit_dual_level()

    def test_numbers(self, side, ad, x, v):
        assert ad.enter_dual_level() == 0
        try:
            with pytest.raises(
                RuntimeError,
                match="Trying to exit a forward AD level that was not the last one that was "
                "created. This is not",
            ):
                ad.exit_dual_level(level=3)
            same(side, ad.unpack_dual(ad.make_dual(x, v, level=0) * 2, level=0).tangent, [6, 8])
            for use in (
                lambda: ad.make_dual(x, v, level=5),
                lambda: ad.unpack_dual(ad.make_dual(x, v), level=1),
            ):
                with pytest.raises(RuntimeError, match="Invalid level given to"):
                    use()
        finally:
            ad.exit_dual_level(level=0)
        with ad.dual_level() as level:
            assert level == 0

    def test_what_is_left_of_a_level(self, side, ad, x, v):
        with ad.dual_level():
            dual = ad.make_dual(x, v)
            view = dual[:1]
        assert ad.unpack_dual(dual).tangent is None
        same(side, ad.unpack_dual(dual).primal, [1, 2])
        same(side, dual * dual, [1, 4])
        same(side, view + 1, [2])
        with ad.dual_level():
            assert ad.unpack_dual(dual).tangent is None
            assert ad.unpack_dual(dual * 2).tangent is None
            same(side, ad.unpack_dual(ad.make_dual(dual, v) * dual).tangent, [3, 8])

    def test_a_decorator(self, side, ad, x, v):
        @ad.dual_level()
        def derivative(f):
            return ad.unpack_dual(f(ad.make_dual(x, v))).tangent

        for _ in range(2):
            same(side, derivative(lambda a: a * a), [6, 16])
        assert type(ad.dual_level().clone()) is ad.dual_level
        with pytest.raises(RuntimeError, match="no level exists"):
            ad.make_dual(x, v)

    def test_an_exception_leaves_the_level(self, ad, x, v):
        with pytest.raises(ZeroDivisionError), ad.dual_level():
            raise ZeroDivisionError
        with pytest.raises(RuntimeError, match="no level exists"):
            ad.make_dual(x, v)


class TestDuals:
    def test_errors(self, side, ad, x, v):
        whole = side.tensor([1, 2], dtype="int64")
        with ad.dual_level():
            dual = ad.make_dual(x, v)
            for primal, moved, error, message in (
                (
                    x,
                    v[:1],
                    RuntimeError,
                    "Trying to set a forward gradient that has a different size than that of the original Tensor, this is "
                    r"not supported. Tensor is of size \[2\] while the given forward gradient is of size \[1\]",
                ),
                (
                    whole,
                    v,
                    ValueError,
                    "Expected primal to be floating point or complex, but got: .*int64",
                ),
                (
                    x,
                    whole,
                    ValueError,
                    "Expected tangent to be floating point or complex, but got: .*int64",
                ),
                (
                    dual,
                    v,
                    RuntimeError,
                    "Making a dual Tensor based on a Tensor that already has a forward gradient "
                    "at the same level 0",
                ),
                (
                    x,
                    dual,
                    RuntimeError,
                    "Setting a forward grad that itself has a forward gradient at the same "
                    "level ?0 is not supported",
                ),
            ):
                with pytest.raises(error, match=message):
                    ad.make_dual(primal, moved)

    def test_what_has_no_tangent(self, side, ad, x, v):
        xp = side.xp
        for f in (
            lambda a: xp.argmax(a),
            lambda a: a > 1,
            lambda a: xp.astype(a, xp.int64),
            lambda a: a.detach(),
            lambda a: xp.zeros_like(a),
        ):
            assert tangent(ad, f, (x, v)) is None
        same(side, tangent(ad, lambda a: xp.floor(a), (x, v)), [0, 0])
        assert tangent(ad, lambda a: a * 2, (x, None)) is None

    def test_several_arguments(self, side, ad, x, v):
        same(side, tangent(ad, lambda a, b: a * b, (x, v), (v, x)), [10, 20])
        same(side, tangent(ad, lambda a, b: a * b, (x, None), (v, x)), [1, 4])
        same(
            side, tangent(ad, lambda a, b: side.xp.concat([a, b]), (x, None), (v, x)), [0, 0, 1, 2]
        )

    def test_complex(self, side, ad):
        z = side.tensor([1 + 2j], dtype="complex128")
        t = side.tensor([2 - 1j], dtype="complex128")
        same(side, tangent(ad, lambda a: a * a, (z, t)), [2 * (1 + 2j) * (2 - 1j)])
        same(
            side,
            tangent(ad, lambda a: side.xp.abs(a), (z, t)),
            [((1 - 2j) * (2 - 1j)).real / 5**0.5],
        )

    def test_in_place(self, side, ad, x, v):
        def f(a):
            y = side.xp.asarray(a, copy=True)
            part, flat = y[1:], side.xp.reshape(y, (2, 1))
            y *= 2
            y += a
            part *= a[:1]
            y[0] = a[1] * 5
            return side.xp.concat([y, part, side.xp.reshape(flat, (-1,))])

        same(side, tangent(ad, f, (x, v)), [20, 3 * 4 + 3 * 2 * 3, 30, 20, 30])

    def test_no_grad_does_not_stop_it(self, side, ad, x, v):
        def f(a):
            with side.no_grad():
                return a * a

        same(side, tangent(ad, f, (x, v)), [6, 16])

    def test_backward_over_it(self, side, ad, v):
        w = side.tensor([1.0, 2.0], requires_grad=True)
        with ad.dual_level():
            dual = ad.make_dual(w, v)
            assert dual.requires_grad
            primal, moved = ad.unpack_dual(side.xp.sum(dual**3))
            assert moved.requires_grad
            same(side, moved, 3 * 3 + 12 * 4)
            same(side, side.autograd.grad(moved, w, retain_graph=True)[0], [18, 48])
            primal.backward()
        same(side, w.grad, [3, 12])

    def test_the_tangent_may_require_grad(self, side, ad, x):
        v = side.tensor([3.0, 4.0], requires_grad=True)
        moved = tangent(ad, lambda a: side.xp.sum(a**3), (x, v))
        same(side, side.autograd.grad(moved, v)[0], [3, 12])


class TestFunction:
    """A Function's own jvp."""

    def product(self, side, **methods):
        def forward(ctx, a, b, factor):
            ctx.save_for_forward(a, b)
            ctx.factor = factor
            return a * b * factor

        def jvp(ctx, t, u, none):
            assert none is None
            a, b = ctx.saved_tensors
            return (t * b + u * a) * ctx.factor

        methods = {"forward": forward, "jvp": jvp} | methods
        return type(
            "Product",
            (side.autograd.Function,),
            {name: staticmethod(f) for name, f in methods.items()},
        ).apply

    def test_jvp(self, side, ad, x, v):
        apply = self.product(side)
        same(side, tangent(ad, lambda a: apply(a, a, 2), (x, v)), [12, 32])
        same(side, tangent(ad, lambda a, b: apply(a, b, 2), (x, v), (v, None)), [18, 32])
        same(
            side, tangent(ad, lambda a, b: apply(b, apply(a, b, 1), 1), (x, v), (v, None)), [27, 64]
        )

    def test_missing(self, side, ad, x, v):
        apply = type(
            "Twice", (side.autograd.Function,), {"forward": staticmethod(lambda ctx, a: a * 2)}
        ).apply
        with pytest.raises(
            NotImplementedError,
            match="You must implement the jvp function for custom autograd.Function to use it "
            "with forward mode",
        ):
            tangent(ad, apply, (x, v))
        assert tangent(ad, lambda a: apply(a.detach()), (x, v)) is None

    def test_tangents_that_are_not_there(self, side, ad, x, v):
        seen = []

        def forward(ctx, a, b, materialize):
            ctx.set_materialize_grads(materialize)
            return a + b

        def jvp(ctx, t, u, none):
            seen.append(u if u is None else side.values(u).tolist())
            return t * 1

        apply = self.product(side, forward=forward, jvp=jvp)
        for materialize in (True, False):
            tangent(ad, partial(apply, materialize=materialize), (x, v), (v, None))
        assert seen == [[0, 0], None]

    def test_several_outputs(self, side, ad, x, v):
        def forward(ctx, a):
            count = side.xp.argmax(a)
            ctx.mark_non_differentiable(count)
            return a * 2, count

        apply = self.product(side, forward=forward, jvp=lambda ctx, t: (t * 2, None))
        with ad.dual_level():
            double, count = apply(ad.make_dual(x, v))
            same(side, ad.unpack_dual(double).tangent, [6, 8])
            assert ad.unpack_dual(count).tangent is None

    def test_setup_context(self, side, ad, x, v):
        def setup(ctx, inputs, output):
            ctx.save_for_forward(output)

        apply = self.product(
            side,
            forward=lambda a: side.xp.exp(a),
            setup_context=setup,
            jvp=lambda ctx, t: t * ctx.saved_tensors[0],
        )
        same(side, tangent(ad, apply, (x, v)), np.exp([1, 2]) * [3, 4])

    def test_backward_over_it(self, side, ad, v):
        w = side.tensor([1.0, 2.0], requires_grad=True)

        def backward(ctx, g):
            return (g, g, None)

        moved = tangent(ad, lambda a: self.product(side, backward=backward)(a, a, 2), (w, v))
        same(side, side.autograd.grad(side.xp.sum(moved), w)[0], [12, 16])


class TestGradcheck:
    @pytest.mark.parametrize("fast", [False, True], ids=["slow", "fast"])
    def test_forward_ad(self, side, fast):
        x = side.tensor([1.0, 2.0], requires_grad=True)
        z = side.tensor([1 + 2j, 0.5], dtype="complex128", requires_grad=True)
        check = side.autograd.gradcheck
        assert check(lambda a: (a**3, side.xp.sum(a)), x, check_forward_ad=True, fast_mode=fast)
        assert check(lambda a, b: a * b * b, (x, z), check_forward_ad=True, fast_mode=fast)
        assert check(
            lambda a: side.xp.abs(a) * side.xp.real(a),
            z,
            check_forward_ad=True,
            check_backward_ad=False,
            fast_mode=fast,
        )
        with pytest.raises(
            RuntimeError,
            match="Jacobian computed with forward mode mismatch for output 0 with respect to "
            "input 0",
        ):
            check(
                lambda a: a * a.detach(),
                x,
                check_forward_ad=True,
                check_backward_ad=False,
                fast_mode=fast,
            )

    @pytest.mark.parametrize("fast", [False, True], ids=["slow", "fast"])
    def test_forward_over_reverse(self, side, fast):
        x = side.tensor([1.0, 2.0], requires_grad=True)
        y = side.tensor([0.5, -1.0], requires_grad=True)
        check = side.autograd.gradgradcheck
        assert check(
            lambda a, b: (a**3 * b, side.xp.sum(a)), (x, y), check_fwd_over_rev=True, fast_mode=fast
        )
        assert check(
            lambda a, b: a**3 * b,
            (x, y),
            check_fwd_over_rev=True,
            check_rev_over_rev=False,
            check_undefined_grad=False,
            fast_mode=fast,
        )
        Function = side.autograd.Function
        slope = type(
            "Slope",
            (Function,),
            {
                "forward": staticmethod(lambda ctx, a: 2 * a),
                "jvp": staticmethod(lambda ctx, t: t * 3),
            },
        )

        def forward(ctx, a):
            ctx.save_for_backward(a)
            ctx.save_for_forward(a)
            return a * a

        square = type(
            "Square",
            (Function,),
            {
                "forward": staticmethod(forward),
                "jvp": staticmethod(lambda ctx, t: 2 * t * ctx.saved_tensors[0]),
                "backward": staticmethod(lambda ctx, g: g * slope.apply(ctx.saved_tensors[0])),
            },
        )
        with pytest.raises(
            RuntimeError,
            match="Jacobian computed with forward mode mismatch for output 0 with respect to "
            "input 0",
        ):
            check(
                square.apply,
                x,
                check_fwd_over_rev=True,
                check_rev_over_rev=False,
                check_undefined_grad=False,
                fast_mode=fast,
            )


class TestOnlyHere:
    def test_levels_nest(self, xp):
        x, one = xp.asarray(np.array([2.0])), xp.ones(1, dtype=xp.float64)
        with forward_ad.dual_level():
            outer = forward_ad.make_dual(x, one)
            with forward_ad.dual_level() as level:
                assert level == 1
                y = forward_ad.make_dual(outer, one) ** 3 * outer
                inner = forward_ad.unpack_dual(y).tangent  # 3 x^2 z
                by_outer = forward_ad.unpack_dual(y, level=0)
                assert forward_ad.unpack_dual(y, level=1).tangent is not None
                # (x^3 z)', both moved
                assert float(forward_ad.unpack_dual(by_outer.tangent).primal[0]) == 32.0
                assert float(forward_ad.unpack_dual(by_outer.tangent).tangent[0]) == 36.0
                with pytest.raises(RuntimeError, match="not the last one"):
                    forward_ad.exit_dual_level(level=0)
            assert float(forward_ad.unpack_dual(inner).primal[0]) == 24.0
            assert float(forward_ad.unpack_dual(inner).tangent[0]) == 6 * 2 * 2 + 3 * 4

    def test_perturbations_are_not_confused(self, xp):
        x, one = xp.asarray(np.array([3.0])), xp.ones(1, dtype=xp.float64)
        with forward_ad.dual_level():
            outer = forward_ad.make_dual(x, one)
            with forward_ad.dual_level():
                inner = forward_ad.unpack_dual(outer + forward_ad.make_dual(one, one)).tangent
            assert float(forward_ad.unpack_dual(outer * inner).tangent[0]) == 1.0

    def test_transformations_inside_and_outside(self, xp):
        x, one = xp.asarray(np.array([2.0])), xp.ones(1, dtype=xp.float64)
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(x, one)
            primal, moved = forward_ad.unpack_dual(
                mg.func.grad(lambda a: xp.sum(a**3 * dual))(dual)
            )
            assert (float(primal[0]), float(moved[0])) == (24.0, 36.0)
            tensor, _ = forward_ad.unpack_dual(mg.func.jvp(lambda a: a * dual, (dual,), (one,))[1])
            assert float(tensor[0]) == 2.0

            def late(a):
                return xp.sum(forward_ad.make_dual(a, one))

            with pytest.raises(
                RuntimeError,
                match="an array of a transformation that began after this level cannot be made "
                "a Dual of it",
            ):
                mg.func.grad(late)(x)
            with pytest.raises(
                RuntimeError,
                match="the dual is the value of a Tensor of a transformation that runs inside "
                "of its level",
            ):
                mg.func.grad(lambda a: xp.sum(forward_ad.unpack_dual(a * dual).primal))(x)

        def f(a):
            with forward_ad.dual_level():
                return xp.sum(forward_ad.unpack_dual(forward_ad.make_dual(a, one) ** 3).tangent)

        assert float(mg.func.grad(f)(x)[0]) == 12.0
        assert float(mg.func.jvp(f, (x,), (one,))[1]) == 12.0

    def test_raw_arrays(self, xp):
        x = xp.asarray(np.array([1.0, 2.0])).array
        with forward_ad.dual_level():
            found = forward_ad.unpack_dual(forward_ad.make_dual(x, x) * 2)
            assert all(isinstance(t, mg.Tensor) for t in found)
            with pytest.raises(
                TypeError,
                match="tensor: expected a Tensor or an array of a known library, got float",
            ):
                forward_ad.make_dual(1.0, x)
        assert forward_ad.unpack_dual(x).primal is x

    def test_the_tangent_has_the_dtype_of_the_primal(self, xp):
        x = xp.asarray(np.array([1.0, 2.0]))
        with forward_ad.dual_level():
            assert (
                forward_ad.unpack_dual(
                    forward_ad.make_dual(x, xp.astype(x, xp.float32))
                ).tangent.dtype
                == xp.float64
            )
            with pytest.raises(
                RuntimeError, match="make_dual: the tangent of a real array must be real"
            ):
                forward_ad.make_dual(x, x * 1j)

    def test_a_dual_is_a_value_of_its_own(self, xp):
        x = xp.asarray(np.array([1.0, 2.0]))
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(x, x)
            dual *= 2
            dual[0] = 7.0
            np.testing.assert_array_equal(np.asarray(x.array), [1, 2])
            np.testing.assert_array_equal(
                np.asarray(forward_ad.unpack_dual(dual).tangent.array), [0, 4]
            )
            for write in (lambda: x.__iadd__(dual), lambda: x.__setitem__(0, dual[0])):
                with pytest.raises(
                    RuntimeError,
                    match="a value of a running transformation cannot be written into an array "
                    "from outside",
                ):
                    write()
            with pytest.raises(
                RuntimeError, match="a Dual cannot become the value of a Tensor from outside"
            ):
                mg.autograd.functional.jacobian(lambda a: a * 2, dual)

    def test_each_thread_has_its_own_levels(self):
        from threading import Thread

        found = []
        with forward_ad.dual_level():
            thread = Thread(target=lambda: found.append(forward_ad.enter_dual_level()))
            thread.start()
            thread.join()
        assert found == [0]

    def test_what_a_jvp_must_return(self, xp):
        x = xp.asarray(np.array([1.0, 2.0]))

        def apply(jvp, forward=lambda ctx, a: a * 2):
            cls = type(
                "Twice", (Function,), {"forward": staticmethod(forward), "jvp": staticmethod(jvp)}
            )
            return tangent(forward_ad, cls.apply, (x, x))

        assert apply(lambda ctx, t: None) is None
        for jvp, error, message in (
            (lambda ctx, t: (t, t), RuntimeError, "Twice: jvp returned 2 tangents for 1 outputs"),
            (
                lambda ctx, t: 1.0,
                TypeError,
                "Twice: jvp must return arrays or None, but tangent 0 is of type float",
            ),
            (
                lambda ctx, t: t[:1],
                RuntimeError,
                r"Twice: jvp returned a tangent of shape \(1,\) at index 0 for an output",
            ),
            (
                lambda ctx, t: t * 1j,
                RuntimeError,
                "Twice: jvp returned a complex tangent at index 0 for a real output",
            ),
        ):
            with pytest.raises(error, match=message):
                apply(jvp)

        def dirty(ctx, a):
            ctx.mark_dirty(a)
            a *= 2
            return a

        with pytest.raises(
            RuntimeError, match="Twice: mark_dirty is not supported in forward mode"
        ):
            apply(lambda ctx, t: t, dirty)
