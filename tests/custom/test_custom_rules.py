"""custom_vjp and custom_jvp: over raw arrays, Tensors and pytrees, in any nesting of
transformations, on every backend.

Rules that give twice the true derivative tell whether it is the rule that was asked, and how often.
"""

from __future__ import annotations

import dataclasses
import gc
import inspect
import textwrap
import weakref
from functools import partial

import numpy as np
import pytest
from conftest import values
from custom_rules import BOTH, D, cube_jvp, cube_vjp, sine_jvp, sine_jvps, sine_vjp
from forward_programs import along, close, raw

import multigrad as mg
from multigrad import func

KINDS = pytest.mark.parametrize("kind", [sine_vjp, sine_jvp, sine_jvps])
CUBES = pytest.mark.parametrize("kind", [cube_vjp, cube_jvp])


class TestDerivatives:
    @KINDS
    def test_raw_in_raw_out(self, xp, kind):
        f = kind(xp)
        x, y = raw(xp, [0.5, 1.0]), raw(xp, [2.0, 3.0])
        out = f(x, y)
        assert type(out) is type(x)
        close(out, np.sin([0.5, 1]) * [2, 3])
        out, pullback = func.vjp(f, x, y)
        for _ in range(2):
            gx, gy = pullback(y)
            assert type(out) is type(gx) is type(x)
            close(gx, np.cos([0.5, 1]) * [4, 9])
            close(gy, np.sin([0.5, 1]) * [2, 3])
        out, t = func.jvp(f, (x, y), (y, x))
        assert type(out) is type(t) is type(x)
        close(t, np.cos([0.5, 1]) * [4, 9] + np.sin([0.5, 1]) * [0.5, 1])

    @CUBES
    @pytest.mark.parametrize(
        "modes, expected",
        [
            ("f", 24),
            ("r", 24),
            ("ff", 24),
            ("fr", 24),
            ("rf", 24),
            ("rr", 24),
            ("frf", 12),
            ("rfr", 12),
        ],
    )
    def test_the_rule_is_asked(self, xp, kind, modes, expected):
        g = kind(xp)
        for mode in modes:
            g = D[mode](g, xp)
        assert float(g(raw(xp, 2.0))) == expected

    @CUBES
    def test_the_rule_is_asked_for_the_value_at_every_level(self, xp, kind):
        """The value of an inner transformation is differentiated by the outer one by the same
        rule.
        """
        f = kind(xp)
        x = raw(xp, 2.0)
        assert float(func.grad(lambda x: func.value_and_grad(f)(x)[0])(x)) == 24
        assert float(along(lambda x: func.value_and_grad(f)(x)[0], xp)(x)) == 24
        assert float(func.grad(lambda x: func.jvp(f, (x,), (raw(xp, 1.0),))[0])(x)) == 24
        assert float(along(lambda x: func.jvp(f, (x,), (raw(xp, 1.0),))[0], xp)(x)) == 24

    @KINDS
    def test_tensors(self, xp, kind):
        f = kind(xp)
        x = xp.asarray(np.array([0.5, 1.0]), requires_grad=True)
        y = xp.asarray(np.array([2.0, 3.0]), requires_grad=True)
        out = f(x, y)
        assert isinstance(out, mg.Tensor) and out.requires_grad
        d = mg.autograd.grad
        gx, gy = d(xp.sum(out), (x, y), create_graph=True)
        hxx, hxy = d(xp.sum(gx), (x, y), create_graph=True)
        close(hxx, -np.sin([0.5, 1]) * [2, 3])
        close(hxy, np.cos([0.5, 1]))
        close(d(xp.sum(gy), x, retain_graph=True)[0], np.cos([0.5, 1]))
        third, mixed = d(xp.sum(hxx), (x, y))
        close(third, -np.cos([0.5, 1]) * [2, 3])
        close(mixed, -np.sin([0.5, 1]))
        xp.sum(f(x, y)).backward()
        close(x.grad, np.cos([0.5, 1]) * [2, 3])
        close(y.grad, np.sin([0.5, 1]))
        constant = f(x.detach(), y.detach())
        assert isinstance(constant, mg.Tensor) and not constant.requires_grad
        with mg.no_grad():
            assert not f(x, y).requires_grad

    @KINDS
    def test_forward_ad(self, xp, kind):
        ad = mg.autograd.forward_ad
        with ad.dual_level():
            out = kind(xp)(
                ad.make_dual(xp.asarray(np.array([0.5])), xp.asarray(np.array([1.0]))),
                xp.asarray(np.array([2.0])),
            )
            close(ad.unpack_dual(out).tangent, np.cos([0.5]) * 2)

    def test_complex(self, xp):
        z, v = np.array([1 + 2j, 0.5 - 1j]), np.array([1j, 2 - 1j])
        square = func.custom_vjp(lambda z: z * z)
        square.defvjp(lambda z: (square(z), z), lambda z, g: (2 * xp.conj(z) * g,))
        other = func.custom_jvp(lambda z: z * z)
        other.defjvp(lambda p, t: (other(*p), 2 * p[0] * t[0]))
        for f in (square, other):
            close(
                func.jvp(f, (raw(xp, z, "complex128"),), (raw(xp, v, "complex128"),))[1], 2 * z * v
            )
            close(
                func.vjp(f, raw(xp, z, "complex128"))[1](raw(xp, v, "complex128"))[0],
                2 * np.conj(z) * v,
            )

    def test_what_runs(self, xp):
        calls = []
        f = func.custom_vjp(lambda x: calls.append("f") or x * 2)
        f.defvjp(
            lambda x: calls.append("fwd") or (x * 2, None),
            lambda r, g: calls.append("bwd") or (g * 2,),
        )
        x = raw(xp, [1.0])
        f(x)
        f(xp.asarray(np.ones(1)))
        with mg.no_grad():
            f(xp.asarray(np.ones(1), requires_grad=True))
        func.grad(lambda y: xp.sum(y * f(x)))(x)
        assert calls == ["f"] * 4
        del calls[:]
        func.grad(lambda x: xp.sum(f(x)))(x)
        func.grad(lambda x: func.grad(lambda x: xp.sum(f(x)))(x)[0])(x)
        assert calls == ["fwd", "bwd"] * 2
        del calls[:]
        func.jvp(f, (x,), (x,))
        assert calls == ["fwd", "bwd"]


@dataclasses.dataclass(frozen=True)
class Layer:
    w: object
    b: object
    name: str = dataclasses.field(default="dense", metadata={"static": True})


def dense_vjp(xp):
    @func.custom_vjp
    def dense(layer, x):
        return {"y": layer.w * x["in"] + layer.b, "n": 3}

    def fwd(layer, x):
        return dense(layer, x), {"layer": layer, "x": x, "shape": layer.w.shape, "kind": layer.name}

    def bwd(residuals, g):
        assert residuals["shape"] == (2,) and residuals["kind"] == "dense" and g["n"] is None
        return Layer(g["y"] * residuals["x"]["in"], None), {
            "in": g["y"] * residuals["layer"].w,
            "unused": None,
        }

    dense.defvjp(fwd, bwd)
    return dense


def dense_jvp(xp):
    @func.custom_jvp
    def dense(layer, x):
        return {"y": layer.w * x["in"] + layer.b, "n": 3}

    @dense.defjvp
    def rule(primals, tangents):
        (layer, x), (dl, dx) = primals, tangents
        # without that of b
        return dense(layer, x), {"y": dl.w * x["in"] + layer.w * dx["in"], "n": None}

    return dense


class TestStructures:
    @pytest.mark.parametrize("kind", [dense_vjp, dense_jvp])
    def test_pytrees_everywhere(self, xp, kind):
        dense = kind(xp)
        w, b, x = raw(xp, [1.0, 2.0]), raw(xp, [0.5, 0.5]), raw(xp, [3.0, 4.0])
        layer, inputs = Layer(w, b), {"in": x, "unused": [None, x]}
        out = dense(layer, inputs)
        assert type(out["y"]) is type(x) and out["n"] == 3
        loss = lambda layer, inputs: xp.sum(dense(layer, inputs)["y"] ** 2)
        gl, gx = func.grad(loss, (0, 1))(layer, inputs)
        y = np.array([3.5, 8.5])
        assert type(gl) is Layer and gl.name == "dense"
        close(gl.w, 2 * y * [3, 4])
        close(gl.b, [0, 0])
        close(gx["in"], 2 * y * [1, 2])
        close(gx["unused"][1], [0, 0])
        found = func.jvp(
            lambda layer, inputs: dense(layer, inputs)["y"], (layer, inputs), (layer, inputs)
        )[1]
        close(found, [6, 16])
        second = func.grad(lambda layer: xp.sum(func.grad(loss)(layer, inputs).w))(layer)
        close(second.w, 2 * np.array([9.0, 16]))

    @pytest.mark.parametrize("n", [(0, 2), (0, -1), 0])
    def test_nondiff_argnums(self, xp, n):
        both = n != 0
        scaled = func.custom_vjp(lambda f, x, k: f(x) * k, nondiff_argnums=n)
        if both:
            scaled.defvjp(lambda f, x, k: (f(x) * k, x), lambda f, k, x, g: (g * k * 10,))
        else:
            scaled.defvjp(lambda f, x, k: (f(x) * k, (x, k)), lambda f, r, g: (g * r[1] * 10, None))
        x = raw(xp, [1.0, 2.0])
        close(scaled(lambda x: x * x, x, 3), [3, 12])
        close(func.grad(lambda x: xp.sum(scaled(lambda x: x * x, x, 3)))(x), [30, 30])
        close(func.jvp(lambda x: scaled(lambda x: x * x, x, 3), (x,), (x,))[1], [30, 60])

        @partial(func.custom_jvp, nondiff_argnums=n)
        def other(f, x, k):
            return f(x) * k

        if both:
            other.defjvp(lambda f, k, p, t: (f(p[0]) * k, t[0] * 10 * k))
        else:
            other.defjvp(lambda f, p, t: (f(p[0]) * p[1], t[0] * 10 * p[1]))
        close(func.grad(lambda x: xp.sum(other(lambda x: x * x, x, 3)))(x), [30, 30])
        close(func.jvp(lambda x: other(lambda x: x * x, x, k=3), (x,), (x,))[1], [30, 60])

    def test_arguments_by_name_and_defaults(self, xp):
        @func.custom_vjp
        def f(x, scale=2.0, *more):
            """A docstring."""
            return x * scale

        f.defvjp(lambda x, scale, *more: (x * scale, scale), lambda scale, g: (g * scale, None))
        assert f.__doc__ == "A docstring." and f.__name__ == "f" and f.__wrapped__ is f.fun
        x = raw(xp, [1.0])
        for call in (lambda x: f(x), lambda x: f(x, 2.0), lambda x: f(scale=2.0, x=x)):
            close(func.grad(lambda x, call=call: xp.sum(call(x)))(x), [2])
        g = func.custom_vjp(lambda x, *, scale: x)
        g.defvjp(lambda x: (x, None), lambda r, g: (g,))
        with pytest.raises(
            TypeError,
            match="custom_vjp function <lambda>: the arguments scale can only be given by name",
        ):
            g(x, scale=2)
        with pytest.raises(TypeError, match="missing a required argument: 'x'"):
            f(scale=2)

    @BOTH
    def test_integers(self, xp, which):
        """They have no gradient, and what is said of it is ignored."""
        i, x = raw(xp, [1, 0], "int64"), raw(xp, [1.0, 2.0])
        f = func.custom_vjp(lambda x, i: (xp.take(x, i), i + 1))
        f.defvjp(lambda x, i: (f(x, i), i), lambda i, g: (xp.take(g[0], i), g[1]))
        h = func.custom_jvp(lambda x, i: (xp.take(x, i), i + 1))

        @h.defjvp
        def rule(primals, tangents):
            assert tangents[1] is None
            return h(*primals), (xp.take(tangents[0], primals[1]), None)

        g = (f, h)[which]
        out, pullback = func.vjp(lambda x: g(x, i)[0] * xp.asarray(np.array([1.0, 10.0])), x)
        close(pullback(x)[0], [20, 1])
        out, moved = func.jvp(lambda x: g(x, i), (x,), (x,))
        close(moved[0], [2, 1])
        assert moved[1].dtype == out[1].dtype and not values(moved[1]).any()

    def test_outputs_that_are_arguments_or_one_another(self, xp):
        f = func.custom_vjp(lambda x, y: (x, x, y))
        f.defvjp(lambda x, y: ((x, x, y), None), lambda _, g: (g[0] + 2 * g[1], 3 * g[2]))
        h = func.custom_jvp(lambda x, y: (x, x, y))
        h.defjvp(lambda p, t: (h(*p), (t[0], 2 * t[0], 3 * t[1])))
        for g in (f, h):
            _, pullback = func.vjp(g, raw(xp, [1.0]), raw(xp, [2.0]))
            gx, gy = pullback((raw(xp, [1.0]), raw(xp, [10.0]), raw(xp, [100.0])))
            close(gx, [21])
            close(gy, [300])
            x = xp.asarray(np.array([1.0]), requires_grad=True)
            a, b, _ = g(x, x)
            close(mg.autograd.grad(xp.sum(a + 10 * b), x)[0], [21])
            _, t = func.jvp(g, (raw(xp, [1.0]), raw(xp, [2.0])), (raw(xp, [1.0]), raw(xp, [1.0])))
            assert [float(v[0]) for v in t] == [1, 2, 3]

    def test_an_output_that_was_not_used(self, xp):
        f = func.custom_vjp(lambda x: (x, x * 2, 5))
        f.defvjp(lambda x: (f(x), x), lambda x, g: (g[0] + g[1] * x,))
        close(func.grad(lambda x: xp.sum(f(x)[1]))(raw(xp, [3.0, 4.0])), [3, 4])

    @BOTH
    def test_rules_that_say_zero(self, xp, which):
        x = raw(xp, [1.0, 2.0])
        f = func.custom_vjp(lambda x: x * 2)
        f.defvjp(lambda x: (x * 2, None), lambda r, g: (None,))
        h = func.custom_jvp(lambda x: x * 2)
        h.defjvp(lambda p, t: (h(*p), None))
        g = (f, h)[which]
        close(func.grad(lambda x: xp.sum(g(x) + x))(x), [1, 1])
        close(func.jvp(g, (x,), (x,))[1], [0, 0])
        k = func.custom_jvp(lambda x, y: x * y)
        k.defjvps(None, lambda t, ans, x, y: x * t)
        close(func.grad(lambda x: xp.sum(k(x, x)))(x), [1, 2])


def test_the_examples(xp):
    """Those of the docstrings, the first with bounds that are Python scalars or arrays."""
    names = {"mg": mg, "custom_vjp": func.custom_vjp, "custom_jvp": func.custom_jvp}
    for cls in (func.custom_vjp, func.custom_jvp):
        example = inspect.cleandoc(cls.__doc__).split("\n\nnondiff_argnums")[0].split("\n\n", 1)[1]
        exec(textwrap.dedent(example), names)
    x = raw(xp, [-1.0, 0.5, 3.0])
    for low in (0.0, raw(xp, [0.0, 0.0, 0.0])):
        clip = lambda x, low=low: names["clip"](x, low, 2.0)
        close(clip(x), [0, 0.5, 2])
        close(func.grad(lambda x, clip=clip: xp.sum(clip(x)))(x), [0, 1, 0])
        close(func.jvp(clip, (x,), (x,))[1], [0, 0.5, 0])
    close(func.grad(lambda x: xp.sum(names["log1pexp"](x)))(x), 1 / (1 + np.exp([1, -0.5, -3])))


def test_the_text_of_rules_is_that_of_jax():
    """Under jit, and in forward mode, where JAX refuses."""
    jax = pytest.importorskip("jax")
    xp = mg.namespace("jax")
    x, y = raw(xp, [0.5, 1.0]), raw(xp, [2.0, 3.0])

    def made(lib, xp):
        f = lib.custom_vjp(lambda x, y: xp.sin(x) * y)
        f.defvjp(
            lambda x, y: (f(x, y), (xp.cos(x), xp.sin(x), y)),
            lambda r, g: (r[0] * g * r[2] * 3, r[1] * g),
        )
        h = lib.custom_jvp(lambda x, y: f(x, y) * x)
        h.defjvp(lambda p, t: (h(*p), f(*p) * t[0] * 5 + t[1]))
        return lambda x, y: xp.sum(f(h(x, y), y))

    ours = made(func, xp)
    expected = jax.grad(made(jax, jax.numpy), (0, 1))(x, y)
    for found, wanted in zip(jax.jit(func.grad(ours, (0, 1)))(x, y), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    along = jax.jit(lambda x, y: func.jvp(ours, (x, y), (y, x))[1])(x, y)
    np.testing.assert_allclose(along, np.sum(expected[0] * y + expected[1] * x), rtol=1e-12)


def test_the_call_keeps_no_arrays():
    """What bwd does not ask for is freed with its last user: the arguments, where all that is kept
    is an output.
    """
    xp = mg.namespace("numpy")
    f = func.custom_vjp(lambda x: xp.exp(x))
    f.defvjp(lambda x: (y := f(x), y), lambda y, g: (y * g,))
    x = xp.asarray(np.ones(3), requires_grad=True)
    x2 = x * 2
    array = weakref.ref(x2.array)
    out = f(x2)
    del x2
    gc.collect()
    assert array() is None
    close(mg.autograd.grad(xp.sum(out), x)[0], 2 * np.exp([2, 2, 2]))
    double = func.custom_vjp(lambda x: x * 2)
    double.defvjp(lambda x: (x * 2, None), lambda _, g: (g * 2,))
    x2 = x * 2
    arrays = [weakref.ref(x2.array), weakref.ref((y := double(x2)).array)]
    out = xp.sum(y)
    del x2, y
    gc.collect()
    assert [a() for a in arrays] == [None, None]
    close(mg.autograd.grad(out, x)[0], [4, 4, 4])


@KINDS
def test_hooks_on_saved_tensors(xp, kind):
    """Arguments and residuals go through them."""
    packed = []
    x = xp.asarray(np.array([0.5]), requires_grad=True)
    with mg.autograd.graph.saved_tensors_hooks(
        lambda t: packed.append(1) or (t.array, 1), lambda p: mg.asarray(p[0])
    ):
        out = kind(xp)(x, xp.asarray(np.array([3.0])))
    close(mg.autograd.grad(xp.sum(out), x)[0], 3 * np.cos([0.5]))
    assert packed
