"""Forward mode: jvp, jacfwd and linearize over raw arrays, Tensors and each other, on every
backend.

That each operation carries its tangent, and that forward mode over the gradients gives the second
derivative, is tested by the conformance suite (checks `dual` and `nested`).
"""

from __future__ import annotations

import numpy as np
import pytest
from conftest import values
from forward_programs import along, at, close, raw

import multigrad as mg
from multigrad import func
from multigrad.errors import GradientError, MixedBackendsError


class TestJvp:
    def test_raw_in_raw_out(self, xp):
        x, v = raw(xp, [1.0, 2.0]), raw(xp, [3.0, 4.0])
        out, tangent = func.jvp(lambda x: xp.sin(x) * x, (x,), (v,))
        assert type(out) is type(tangent) is type(x)
        close(out, np.sin([1, 2]) * [1, 2])
        close(tangent, (np.cos([1, 2]) * [1, 2] + np.sin([1, 2])) * [3, 4])

    def test_structures(self, xp):
        x, y = raw(xp, [1.0, 2.0]), raw(xp, [3.0, 4.0])
        f = lambda p, q: {"a": (p["w"] * q[0], None), "b": [xp.sum(p["w"])]}
        out, tangent = func.jvp(f, ({"w": x}, [y]), ({"w": y}, [x]))
        assert set(tangent) == {"a", "b"} and tangent["a"][1] is None
        close(out["a"][0], [3, 8])
        close(tangent["a"][0], [3 * 3 + 1, 4 * 4 + 4])
        close(tangent["b"][0], 7)

    def test_tensors_in_tensors_out(self, xp):
        x = xp.asarray(np.array([1.0, 2.0]), requires_grad=True)
        out, tangent = func.jvp(lambda x: x**3, (x,), (xp.ones(2, dtype=xp.float64),))
        assert (
            isinstance(out, mg.Tensor) and isinstance(tangent, mg.Tensor) and tangent.requires_grad
        )
        close(mg.autograd.grad(xp.sum(tangent), x)[0], [6, 12])
        constant, _ = func.jvp(lambda x: x**3, (x.detach(),), (raw(xp, [1.0, 1.0]),))
        assert isinstance(constant, mg.Tensor) and not constant.requires_grad

    def test_a_captured_tensor_keeps_its_graph(self, xp):
        w = xp.asarray(np.array([1.0, 2.0]), requires_grad=True)
        _, tangent = func.jvp(
            lambda x: w * w * x * x, (raw(xp, [3.0, 4.0]),), (raw(xp, [1.0, 1.0]),)
        )
        close(mg.autograd.grad(xp.sum(tangent), w)[0], [2 * 2 * 3, 2 * 2 * 2 * 4])  # of 2 w^2 x

    def test_the_tangent_may_require_grad(self, xp):
        v = xp.asarray(np.array([1.0, 1.0]), requires_grad=True)
        _, tangent = func.jvp(lambda x: x**3, (raw(xp, [1.0, 2.0]),), (v,))
        close(mg.autograd.grad(xp.sum(tangent), v)[0], [3, 12])

    def test_what_does_not_depend_is_zero(self, xp):
        x = raw(xp, [1.0, 2.0])
        out, tangent = func.jvp(
            lambda x: (xp.asarray(np.ones(3)), xp.argmax(x), x > 1, xp.floor(x)), (x,), (x,)
        )
        for o, t in zip(out, tangent, strict=True):
            assert t.dtype == o.dtype and t.shape == o.shape
            assert not values(t).any()
        with pytest.raises(
            GradientError, match="with strict=True every output must depend on the primals"
        ):
            func.jvp(lambda x: (x, xp.asarray(np.ones(3))), (x,), (x,), strict=True)

    def test_aux(self, xp):
        x = raw(xp, [1.0, 2.0])
        _, tangent, aux = func.jvp(
            lambda x: (x * x, {"y": x * 2, "n": 3}), (x,), (x,), has_aux=True
        )
        close(tangent, [2, 8])
        assert aux["n"] == 3 and type(aux["y"]) is type(x)
        close(aux["y"], [2, 4])

    def test_a_stale_view_is_returned_up_to_date(self, xp):
        def f(x):
            y = x * 1
            v = y[0]
            y *= x
            z = xp.zeros(2, dtype=xp.float64)
            w = z[1]
            z += x
            return (v, w), (y[1:], w)

        out, tangent, aux = func.jvp(
            f, (raw(xp, [3.0, 2.0]),), (raw(xp, [1.0, 10.0]),), has_aux=True
        )
        assert [float(x) for x in (*out, *tangent)] == [9.0, 2.0, 6.0, 10.0]
        assert float(aux[0][0]) == 4.0 and float(aux[1]) == 2.0

    def test_dtypes(self, xp):
        x = raw(xp, [1.0, 2.0], "float32")
        out, tangent = func.jvp(
            lambda x: (x * xp.asarray(np.array([1.0, 2.0])), x * 2, xp.astype(x, xp.complex128)),
            (x,),
            (raw(xp, [1.0, 1.0]),),
        )  # converted
        assert (
            [t.dtype for t in tangent]
            == [o.dtype for o in out]
            == [xp.float64, xp.float32, xp.complex128]
        )

    def test_complex_tangents_are_directional_derivatives(self, xp):
        z, v = np.array([1 + 2j, 0.5 - 1j]), np.array([1j, 2 - 1j])
        f = lambda z: (z * z, xp.real(z) * xp.imag(z), xp.abs(z), xp.conj(z))
        _, tangent = func.jvp(f, (raw(xp, z, "complex128"),), (raw(xp, v, "complex128"),))
        expected = (
            2 * z * v,
            v.real * z.imag + z.real * v.imag,
            (np.conj(z) * v).real / abs(z),
            np.conj(v),
        )
        for t, e in zip(tangent, expected, strict=True):
            close(t, e)

    @pytest.mark.parametrize(
        "primals, tangents, error, match",
        [
            ("[x]", "[x]", TypeError, "primals must be a tuple"),
            (
                "(x,)",
                "x",
                ValueError,
                "tangents must have the structure of primals: expected a tuple of 1",
            ),
            (
                "(x,)",
                "(x[:1],)",
                RuntimeError,
                r"different size than that of the original.*size \[2\] while.*size \[1\]",
            ),
            ("(x,)", "(z,)", RuntimeError, "the tangent of a real array must be real"),
            ("(x,)", "(i,)", ValueError, "Expected tangent to be floating point or complex"),
            ("(i,)", "(x,)", TypeError, "cannot differentiate with respect to an array of dtype"),
            ("(1.0,)", "(1.0,)", TypeError, "cannot differentiate with respect to a Python float"),
        ],
    )
    def test_errors(self, xp, primals, tangents, error, match):
        names = {
            "x": raw(xp, [1.0, 2.0]),
            "i": raw(xp, [1, 2], "int64"),
            "z": raw(xp, [1.0, 2.0], "complex128"),
        }
        with pytest.raises(error, match=match):
            func.jvp(lambda x: x, eval(primals, names), eval(tangents, names))

    def test_errors_of_functions(self, xp):
        x = raw(xp, [1.0, 2.0])
        with pytest.raises(
            TypeError,
            match="jvp: the function must return arrays, or nested.*but it returned float",
        ):
            func.jvp(lambda x: 1.0, (x,), (x,))
        with pytest.raises(
            TypeError, match="jvp: with has_aux=True the function must return a tuple"
        ):
            func.jvp(lambda x: x, (x,), (x,), has_aux=True)

    def test_two_libraries(self):
        pytest.importorskip("array_api_strict")
        x, y = raw(mg.namespace("numpy"), [1.0]), raw(mg.namespace("strict"), [1.0])
        with pytest.raises(MixedBackendsError, match="jvp: got arrays of two backends"):
            func.jvp(lambda x: x, (x,), (y,))
        with pytest.raises(MixedBackendsError, match="add: got arrays of two backends"):
            func.jvp(lambda x, y: x + y, (x, y), (x, y))
        with pytest.raises(MixedBackendsError, match="multiply: got arrays of two backends"):
            func.jvp(lambda x: x * y, (x,), (x,))
        out, tangent = func.jvp(lambda x: (x * 3).to_backend("strict") * 2, (x,), (x,))
        assert type(out) is type(tangent) is type(y) and float(tangent[0]) == 6.0


class TestNesting:
    D = ("forward", "reverse")

    @pytest.mark.parametrize("outer", D)
    @pytest.mark.parametrize("inner", D)
    def test_perturbations_are_not_confused(self, xp, outer, inner):
        d = {"forward": lambda f: along(f, xp), "reverse": func.grad}
        one, three = raw(xp, 1.0), raw(xp, 3.0)
        outer, inner = d[outer], d[inner]
        assert float(outer(lambda x: x * inner(lambda y: x + y)(one))(three)) == 1.0
        assert float(outer(lambda x: x * inner(lambda y: x * y)(one))(three)) == 6.0
        assert float(outer(lambda x: x * inner(lambda y: y * y)(x))(three)) == 12.0
        assert float(outer(lambda x: inner(lambda y: x)(x))(three)) == 0.0
        # 2 x y at y = 2 x
        assert float(outer(lambda x: inner(lambda y: x * y * y)(x * 2))(three)) == 24.0

    @pytest.mark.parametrize("modes", ["fff", "ffr", "frf", "rff", "frr", "rfr", "rrf"])
    def test_third_derivatives(self, xp, modes):
        f = lambda x: x**5 * xp.sin(x)
        for mode in modes:
            f = func.grad(f) if mode == "r" else along(f, xp)
        x = 2.0
        s, c = np.sin(x), np.cos(x)
        expected = 60 * x**2 * s + 3 * 20 * x**3 * c - 3 * 5 * x**4 * s - x**5 * c
        np.testing.assert_allclose(float(f(raw(xp, x))), expected, rtol=1e-12)

    def test_jvp_of_vjp_and_of_its_pullback(self, xp):
        x, u, v = (raw(xp, d) for d in ([1.0, 2.0], [3.0, 5.0], [7.0, 11.0]))
        _, t = func.jvp(lambda x: func.vjp(lambda x: x**3, x)[1](u)[0], (x,), (v,))
        close(t, [6 * 3 * 7, 12 * 5 * 11])
        _, pullback = func.vjp(lambda x: x**3, x)
        out, t = func.jvp(lambda u: pullback(u)[0], (u,), (v,))
        close(out, [9, 60])
        close(t, [21, 132])

    def test_closures_over_levels(self, xp):
        """The same value at several levels: only the levels that it comes from move it."""

        def f(x):
            _, inner = func.jvp(lambda y: y * x * x, (x * 2,), (x,))  # x^3
            return inner * func.grad(lambda z: z * z * x)(x)  # 2 x^2

        assert float(along(f, xp)(raw(xp, 1.0))) == 10.0
        assert float(along(along(f, xp), xp)(raw(xp, 1.0))) == 40.0

    def test_autograd_inside(self, xp):
        def f(x):
            w = xp.asarray(np.array([2.0, 3.0]), requires_grad=True)
            (gw,) = mg.autograd.grad(xp.sum(x * x * w * w), w)
            xp.sum(x * w).backward()
            return xp.sum(gw * w.grad)  # 2 x^3 w

        _, t = func.jvp(f, (raw(xp, [1.0, 2.0]),), (raw(xp, [1.0, 1.0]),))
        close(t, 6 * 2 + 6 * 4 * 3)

    def test_functional_inside(self, xp):
        _, t = func.jvp(
            lambda x: mg.autograd.functional.hessian(lambda y: xp.sum(y**3) * x[0], x),
            (raw(xp, [1.0, 2.0]),),
            (raw(xp, [1.0, 0.0]),),
        )
        close(t, [[6 + 6, 0], [0, 12]])

    def test_no_grad_inside_does_not_stop_the_tangent(self, xp):
        def f(x):
            with mg.no_grad():
                return x * x

        close(along(f, xp)(raw(xp, [3.0])), [6])
        close(func.grad(lambda x: along(f, xp)(x)[0])(raw(xp, [3.0])), [2])

    def test_detach_stops_every_level(self, xp):
        x = raw(xp, [3.0])
        close(along(lambda x: x * x.detach(), xp)(x), [3])
        close(along(along(lambda x: x * x * x.detach(), xp), xp)(x), [6])


class TestJacfwd:
    def test_shapes(self, xp):
        x = np.arange(1.0, 7).reshape(2, 3)
        found = func.jacfwd(lambda x: xp.sum(x * x, axis=0))(raw(xp, x))
        assert tuple(found.shape) == (3, 2, 3) and not isinstance(found, mg.Tensor)
        close(found, np.stack([np.where(np.arange(3) == k, 2 * x, 0) for k in range(3)]))
        assert tuple(func.jacfwd(lambda x: xp.sum(x))(raw(xp, x)).shape) == (2, 3)
        assert tuple(
            func.jacfwd(lambda x: x * xp.ones((4, 1), dtype=xp.float64))(raw(xp, np.ones(0))).shape
        ) == (4, 0, 0)

    def test_structure_is_that_of_torch(self, xp):
        x, y = raw(xp, [1.0, 2.0]), raw(xp, [3.0, 4.0])
        f = lambda x, y: (x * y, {"a": xp.sum(x)})
        first, second = func.jacfwd(f, argnums=(0, 1))(x, y)
        assert isinstance(first, tuple) and isinstance(second["a"], tuple)
        close(first[0], np.diag([3.0, 4.0]))
        close(first[1], np.diag([1.0, 2.0]))
        close(second["a"][0], [1, 1])
        close(second["a"][1], [0, 0])
        swapped = func.jacfwd(f, argnums=(1, 0))(x, y)
        close(swapped[0][0], np.diag([1.0, 2.0]))
        close(swapped[0][1], np.diag([3.0, 4.0]))
        assert isinstance(func.jacfwd(lambda x, y: (y * x,), argnums=(1,))(x, y)[0], tuple)
        close(func.jacfwd(lambda x, y: y * x, argnums=-1)(x, y), np.diag([1.0, 2.0]))
        tree = func.jacfwd(lambda d: d["a"] * d["b"][0])({"a": x, "b": [y]})
        close(tree["a"], np.diag([3.0, 4.0]))
        close(tree["b"][0], np.diag([1.0, 2.0]))

    def test_errors(self):
        with pytest.raises(
            TypeError, match="jacfwd: argnums must be an int or a tuple of ints, not 'a'"
        ):
            func.jacfwd(lambda x: x, argnums="a")
        with pytest.raises(
            ValueError, match="jacfwd: randomness must be 'error', 'different' or 'same', not 'foo'"
        ):
            func.jacfwd(lambda x: x, randomness="foo")


class TestLinearize:
    def test_the_function_runs_once(self, xp):
        calls = []

        def f(x, y):
            calls.append(1)
            return {"p": xp.exp(x) * y, "i": xp.argmax(x), "c": xp.ones(1)}

        x, y = raw(xp, [1.0, 2.0]), raw(xp, [3.0, 4.0])
        out, push = func.linearize(f, x, y)
        close(out["p"], np.exp([1, 2]) * [3, 4])
        for u, v in ((x, y), (y, y)):
            found = push(u, v)
            assert type(found["p"]) is type(x)
            close(found["p"], np.exp([1, 2]) * ([3, 4] * values(u) + values(v)))
            assert (
                found["i"].dtype == out["i"].dtype
                and not values(found["i"]).any()
                and not values(found["c"]).any()
            )
        assert calls == [1]

    def test_errors(self, xp):
        x = raw(xp, [1.0, 2.0])
        _, push = func.linearize(lambda x, y: x * y, x, x)
        with pytest.raises(
            ValueError,
            match="takes tangents with the structure of the primals: expected a tuple of 2",
        ):
            push(x)
        with pytest.raises(RuntimeError, match="different size than that of the original"):
            push(x[:1], x)


class TestMixed:
    def test_a_gradient_along_a_dual(self, xp):
        """A Tensor's pass with a gradient that has a tangent gives gradients that have one."""
        w = xp.asarray(np.array([1.0, 2.0]), requires_grad=True)
        y = w**3
        _, t = func.jvp(
            lambda g: mg.autograd.grad(y, w, g, retain_graph=True)[0],
            (raw(xp, [1.0, 1.0]),),
            (raw(xp, [1.0, 10.0]),),
        )
        close(t, [3, 120])
        with pytest.raises(
            GradientError, match=r"backward\(\) cannot accumulate a gradient that is a Dual"
        ):
            at(xp, lambda g: y.backward(g), np.array([1.0, 1.0]))

    def test_a_function_that_is_given_tensors_and_raw_arrays(self, xp):
        x, v = xp.asarray(np.array([1.0, 2.0])), raw(xp, [1.0, 1.0])
        out, t = func.jvp(lambda x, y: x * y, (x, v), (v, x))
        assert isinstance(out, mg.Tensor)
        close(t, [2, 5])
