"""What custom_vjp and custom_jvp refuse: captured values whose derivative would be lost, and rules
that do not keep to their form.
"""

from __future__ import annotations

import numpy as np
import pytest
from custom_rules import BOTH, D
from forward_programs import along, close, raw

import multigrad as mg
from multigrad import func
from multigrad.errors import GradientError


class TestCaptured:
    def make(self, xp, held, which):
        f = func.custom_vjp(lambda x: held[0] * x)
        f.defvjp(lambda x: (held[0] * x, None), lambda r, g: (g * held[0],))
        h = func.custom_jvp(lambda x: held[0] * x)
        h.defjvp(lambda p, t: (h(*p), t[0] * held[0]))
        return (f, h)[which]

    @BOTH
    def test_of_the_function(self, xp, which):
        """What it needs a derivative of and did not get is refused wherever it comes from; a
        constant is not.
        """
        held = [xp.asarray(np.array([2.0]), requires_grad=True)]
        x, t = raw(xp, [3.0]), xp.asarray(np.array([3.0]), requires_grad=True)
        f = self.make(xp, held, which)
        match = (
            f"{f.name} depends on a Tensor that requires grad, or on one of a running "
            "transformation, that is not among the arguments"
        )
        for use in (
            lambda: f(x),
            lambda: f(t),
            lambda: func.grad(lambda x: xp.sum(f(x)))(x),
            lambda: func.jvp(f, (x,), (x,)),
            lambda: func.grad(lambda x: along(lambda y: xp.sum(f(y)), xp)(x))(x),
        ):
            with pytest.raises(GradientError, match=match):
                use()
        with mg.no_grad():
            close(f(x), [6])
            close(f(t), [6])
        held[0] = held[0].detach()
        close(func.grad(lambda x: xp.sum(f(x)))(x), [2])
        close(along(f, xp)(x), [2])

    @pytest.mark.parametrize("outer", "fr")
    @pytest.mark.parametrize("inner", "fr")
    @BOTH
    def test_of_another_transformation(self, xp, outer, inner, which):
        x, held = raw(xp, 3.0), [None]
        f = self.make(xp, held, which)

        def g(w):
            held[0] = w
            return D[inner](f, xp)(x)

        with pytest.raises(
            GradientError,
            match="depends on a Tensor that requires grad, or on one of a running transformation",
        ):
            D[outer](g, xp)(x)

    def test_an_argument_that_is_not_differentiated(self, xp):
        f = func.custom_vjp(lambda x, w: x * w, nondiff_argnums=1)
        f.defvjp(lambda x, w: (x * w, None), lambda w, r, g: (g * w,))
        w = xp.asarray(np.array([2.0]), requires_grad=True)
        with pytest.raises(
            GradientError, match="that is not among the arguments which its rule differentiates"
        ):
            f(xp.asarray(np.ones(1)), w)
        close(func.grad(lambda x: xp.sum(f(x, w.detach())))(raw(xp, [1.0])), [2])

    @BOTH
    def test_of_a_rule(self, xp, which):
        """The text of a rule is differentiated in all that it uses."""
        w = xp.asarray(np.array([2.0]), requires_grad=True)
        f = func.custom_vjp(lambda x: x * 1)
        f.defvjp(lambda x: (x * 1, None), lambda r, g: (g * w * w,))
        h = func.custom_jvp(lambda x: x * 1)
        h.defjvp(lambda p, t: (h(*p), t[0] * w * w))
        g = (f, h)[which]
        for found in (
            func.grad(lambda x: xp.sum(g(x)))(raw(xp, [1.0])),
            along(g, xp)(raw(xp, [1.0])),
        ):
            close(found, [4])
            close(mg.autograd.grad(xp.sum(found), w)[0], [4])

    def test_of_residuals(self, xp):
        w = xp.asarray(np.array([2.0]), requires_grad=True)
        f = func.custom_vjp(lambda x: x * 1)
        f.defvjp(lambda x: (x * 1, x * w), lambda r, g: (g * r,))
        with pytest.raises(
            GradientError,
            match="custom_vjp function <lambda> depends on a Tensor that requires grad",
        ):
            func.grad(lambda x: xp.sum(f(x)))(raw(xp, [1.0]))


class TestErrors:
    def test_before_the_rule_is_defined(self, xp):
        @func.custom_vjp
        def f(x):
            return x

        h = func.custom_jvp(f.fun)
        with pytest.raises(
            GradientError,
            match=r"custom_vjp function f was called before its rule was defined by "
            r"defvjp\(fwd, bwd\)",
        ):
            f(raw(xp, [1.0]))
        with pytest.raises(
            GradientError,
            match=r"custom_jvp function f was called before its rule was defined by defjvp\(jvp\)",
        ):
            h(raw(xp, [1.0]))

    @pytest.mark.parametrize(
        "fwd, bwd, error, match",
        [
            (
                "x * 2",
                "(g,)",
                TypeError,
                r"fwd must return a tuple \(output, residuals\), but it returned",
            ),
            (
                "(x * 2, 1)",
                "g",
                ValueError,
                "bwd must return a tuple with the gradient of each of the 2 arguments .* but it "
                "returned .*Tensor",
            ),
            (
                "(x * 2, 1)",
                "(g, None, None)",
                ValueError,
                "each of the 2 arguments that it differentiates, but it returned tuple of 3",
            ),
            (
                "(x * 2, 1)",
                "(g, g)",
                ValueError,
                r"bwd must return gradients .*: expected a dictionary with the keys \['a'\] at "
                r"\[1\], got .*Tensor",
            ),
            (
                "(x * 2, 1)",
                "((g, g), None)",
                ValueError,
                r"bwd must return gradients .*: expected an array at \[0\], got tuple of 2",
            ),
            (
                "(x * 2, 1)",
                "(g[:1], None)",
                ValueError,
                r"the gradient that bwd returned for leaf 0 is of shape \(1,\), expected \(2,\)",
            ),
            (
                "(x * 2, 1)",
                "(None, {'a': 1.0})",
                TypeError,
                r"the gradient that bwd returned for leaf 1 is of type float, expected an array",
            ),
            (
                "(x * 2, 1)",
                "(g * 1j, None)",
                TypeError,
                "the gradient that bwd returned for leaf 0 is of dtype .*complex128, expected "
                "the real dtype",
            ),
        ],
    )
    def test_what_bwd_returns(self, xp, fwd, bwd, error, match):
        f = func.custom_vjp(lambda x, d: x * 2)
        f.defvjp(lambda x, d: eval(fwd, {"x": x}), lambda r, g: eval(bwd, {"g": g}))
        x = raw(xp, [1.0, 2.0])
        for use in (
            lambda: func.grad(lambda d: xp.sum(f(d["a"], d)))({"a": x}),
            lambda: func.jvp(f, (x, {"a": x}), (x, {"a": x})),
        ):
            with pytest.raises(error, match=f"custom_vjp function <lambda>: .*{match}"):
                use()

    @pytest.mark.parametrize(
        "returned, error, match",
        [
            ("t", TypeError, r"the jvp must return a tuple \(output, tangent\), but it returned"),
            (
                "(x, t)",
                ValueError,
                "the jvp must return an output in the structure of that of the function: "
                "expected a tuple of 2, got",
            ),
            (
                "((x, x), t)",
                ValueError,
                "the jvp must return tangents in the structure of the output.*: expected a "
                "tuple of 2, got",
            ),
            (
                "((x, x), (t, t[:1]))",
                ValueError,
                r"the tangent that the jvp returned for leaf 1 is of shape \(1,\), expected \(2,\)",
            ),
            (
                "((x, x), (t * 1j, t))",
                TypeError,
                "the tangent that the jvp returned for leaf 0 is of dtype .*complex128, "
                "expected the real dtype",
            ),
            (
                "((x, x), (0.0, t))",
                TypeError,
                "the tangent that the jvp returned for leaf 0 is of type float, expected an array",
            ),
        ],
    )
    def test_what_the_jvp_returns(self, xp, returned, error, match):
        f = func.custom_jvp(lambda x: (x * 1, x * 2))
        f.defjvp(lambda p, t: eval(returned, {"x": p[0], "t": t[0]}))
        x = raw(xp, [1.0, 2.0])
        for use in (
            lambda: func.grad(lambda x: xp.sum(f(x)[0]))(x),
            lambda: func.jvp(f, (x,), (x,)),
        ):
            with pytest.raises(error, match=f"custom_jvp function <lambda>: .*{match}"):
                use()

    def test_of_definitions(self, xp):
        with pytest.raises(TypeError, match="custom_vjp: expected a function, got int"):
            func.custom_vjp(3)
        with pytest.raises(
            TypeError,
            match="custom_jvp: nondiff_argnums must be an int or a tuple of ints, not 'ab'",
        ):
            func.custom_jvp(lambda x: x, nondiff_argnums="ab")
        f = func.custom_vjp(lambda x: x, nondiff_argnums=2)
        with pytest.raises(
            TypeError, match="custom_vjp function <lambda>: bwd must be a function, not NoneType"
        ):
            f.defvjp(lambda x: x, None)
        f.defvjp(lambda x: x, lambda x: x)
        with pytest.raises(
            ValueError,
            match="custom_vjp function <lambda>: nondiff_argnums names argument 2, but it was "
            "called with 1",
        ):
            f(raw(xp, [1.0]))
        h = func.custom_jvp(lambda x: x, nondiff_argnums=0)
        with pytest.raises(
            TypeError, match="custom_jvp function <lambda>: the jvp must be a function, not int"
        ):
            h.defjvp(3)
        with pytest.raises(TypeError, match="defjvps is not for functions with nondiff_argnums"):
            h.defjvps(None)
        k = func.custom_jvp(lambda x: x)
        k.defjvps(None, None)
        with pytest.raises(
            TypeError, match="defjvps got 2 rules, but the function has 1 arguments"
        ):
            func.jvp(k, (raw(xp, [1.0]),), (raw(xp, [1.0]),))

    def test_an_argument_that_was_modified_since(self, xp):
        f = func.custom_vjp(lambda x: x * x)
        f.defvjp(lambda x: (x * x, x), lambda x, g: (2 * x * g,))
        x = xp.asarray(np.array([0.5]), requires_grad=True)
        y = x * 1
        out = xp.sum(f(y))
        y += 1
        with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
            out.backward()
