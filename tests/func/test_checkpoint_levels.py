"""checkpoint, and hooks for saved arrays, inside and outside of transformations and of each other,
on every backend.
"""

from __future__ import annotations

import threading

import numpy as np
import pytest
from checkpoint_programs import PROGRAMS, Counted, X, body, leaf, total
from conftest import values
from forward_programs import along, close, raw

import multigrad as mg
from multigrad import func
from multigrad.autograd import forward_ad, graph
from multigrad.dispatch import plans
from multigrad.errors import GradientError
from multigrad.func import checkpoint


class TestTransformations:
    """Each is compared with the same without checkpoint; `w` is a Tensor from outside that requires
    grad.
    """

    @pytest.mark.parametrize("number", range(len(PROGRAMS)))
    def test_over_raw_arrays_and_tensors(self, xp, number):
        program, f = PROGRAMS[number], body(xp)
        twice = lambda x: checkpoint(f)(f(x))
        nested = checkpoint(lambda x: f(checkpoint(f)(x)))
        for plain, kept in (
            (f, checkpoint(f)),
            (lambda x: f(f(x)), twice),
            (lambda x: f(f(x)), nested),
        ):
            expected = values(program(plain, xp)(leaf(xp).detach()))
            found = program(kept, xp)(leaf(xp).detach())
            np.testing.assert_allclose(values(found), expected, rtol=1e-11)
        found = (
            program(checkpoint(f), xp)(leaf(xp).detach().array) if number not in (3, 12) else None
        )
        assert found is None or type(found) is type(leaf(xp).array)

    @pytest.mark.parametrize("number", range(len(PROGRAMS)))
    def test_over_tensors_that_require_grad(self, xp, number):
        program, found = PROGRAMS[number], []
        for wrap in (lambda f: f, checkpoint):
            w, x = leaf(xp, [0.7, 0.2]), leaf(xp)
            f = wrap(lambda x: xp.sin(w * x) * xp.exp(w * w * x))  # noqa: B023
            (dx, dw) = mg.autograd.grad(xp.sum(program(f, xp)(x)), [x, w], create_graph=True)
            (dxw,) = mg.autograd.grad(xp.sum(dx), w)
            found.append([values(dx), values(dw), values(dxw)])
        np.testing.assert_allclose(found[1], found[0], rtol=1e-11)

    def test_a_captured_dual(self, xp):
        """The second run sees it as the first one did, though its transformation is over."""
        f = lambda wrap: (
            lambda x: func.jvp(
                lambda y: wrap(lambda z: xp.sin(y * z) * z)(y * x), (x,), (xp.ones_like(x),)
            )[1]
        )
        x = leaf(xp).detach()
        expected = func.grad(total(f(lambda g: g), xp))(x)
        close(func.grad(total(f(checkpoint), xp))(x), values(expected))

    def test_a_captured_dual_of_an_outer_one(self, xp):
        ones = xp.ones(2, dtype=xp.float64)
        x = leaf(xp).detach()
        found = []
        for wrap in (lambda g: g, checkpoint):
            inner = lambda x, wrap=wrap: func.vjp(wrap(lambda z: xp.sin(z * x) * x), ones)[0]
            moved = lambda x, inner=inner: func.jvp(inner, (x,), (ones,))[1]
            found.append(values(func.grad(total(moved, xp))(x)))
        np.testing.assert_allclose(found[1], found[0], rtol=1e-12)

    def test_a_captured_dual_of_a_level_that_was_left(self, xp):
        found = []
        for wrap in (lambda f: f, checkpoint):
            x = leaf(xp)
            with forward_ad.dual_level():
                d = forward_ad.make_dual(x, xp.ones_like(x))
                t = forward_ad.unpack_dual(wrap(lambda z: body(xp)(z * d))(x)).tangent  # noqa: B023
            found.append(values(mg.autograd.grad(xp.sum(t), x)[0]))
        np.testing.assert_allclose(found[1], found[0], rtol=1e-12)

    def test_a_dual_level_that_was_left(self, xp):
        found = []
        for wrap in (lambda f: f, checkpoint):
            x = leaf(xp)
            with forward_ad.dual_level():
                y = wrap(body(xp))(forward_ad.make_dual(x, xp.ones_like(x)))
                t = forward_ad.unpack_dual(y).tangent
            found.append(values(mg.autograd.grad(xp.sum(t), x)[0]))
        np.testing.assert_allclose(found[1], found[0], rtol=1e-12)

    def test_the_transformation_is_over_again(self, xp):
        leaked = []

        def f(x):
            leaked.append(x)
            return xp.sin(x) * x

        x = leaf(xp).detach()
        func.grad(total(along(checkpoint(f), xp), xp))(x)
        assert len(leaked) == 2
        for t in leaked:
            with pytest.raises(GradientError):
                t + 1

    def test_a_pullback_runs_it_each_time(self, xp):
        f = Counted(body(xp))
        x = leaf(xp).detach()
        out, pullback = func.vjp(checkpoint(f), x)
        first, second = pullback(xp.ones_like(out)), pullback(xp.ones_like(out))
        assert f.begun == 3
        assert np.array_equal(values(first[0]), values(second[0]))

    def test_in_several_threads(self, xp):
        """A transformation that is over is revived by all of them at once."""
        x = leaf(xp).detach()
        out, pullback = func.vjp(along(checkpoint(body(xp)), xp), x)
        expected, found = values(pullback(xp.ones_like(out))[0]), []

        def work():
            for _ in range(5):
                found.append(values(pullback(xp.ones_like(out))[0]))

        threads = [threading.Thread(target=work) for _ in range(3)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert len(found) == 15 and all(np.array_equal(g, expected) for g in found)

    def test_under_jit(self):
        jax = pytest.importorskip("jax")
        xp = mg.namespace("jax")
        f = body(xp)
        x = raw(xp, X)
        for program in (PROGRAMS[0], PROGRAMS[6], PROGRAMS[1]):
            expected = program(f, xp)(x)
            compiled = jax.jit(program(checkpoint(lambda x: checkpoint(f)(x)), xp))
            close(compiled(x), values(expected))
            close(compiled(x), values(expected))

    def test_under_jit_it_is_computed_again(self):
        """A compiler is not to find that the second run computes what the first one did."""
        jax = pytest.importorskip("jax")
        xp = mg.namespace("jax")

        def f(x):
            for _ in range(3):
                x = checkpoint(lambda x: xp.sin(xp.exp(x)))(x)
            return xp.sum(x)

        text = jax.jit(func.value_and_grad(f)).lower(raw(xp, X)).as_text()
        # the second run ends before sin
        assert text.count("stablehlo.sine") == 3 and text.count("stablehlo.exponential") == 3 + 3
        assert text.count("stablehlo.optimization_barrier") == 3

    def test_a_policy(self, xp):
        plain = total(body(xp), xp)
        kept = total(checkpoint(body(xp), policy=["exp", "tanh"]), xp)
        x = leaf(xp).detach()
        for program in PROGRAMS[:3]:
            np.testing.assert_allclose(
                values(program(kept, xp)(x)), values(program(plain, xp)(x)), rtol=1e-11
            )


class TestHooks:
    """Hooks for saved arrays, in compositions that PyTorch refuses."""

    @pytest.mark.parametrize("number", range(len(PROGRAMS)))
    def test_inside_of_transformations(self, xp, number):
        """They see the raw arrays, one by one; histories and tangents are kept beside them."""
        seen = []

        def pack(t):
            assert type(t.array) is type(leaf(xp).array) and not t.requires_grad
            seen.append(values(t).copy())
            return len(seen) - 1

        def hooked(x):
            with graph.saved_tensors_hooks(pack, lambda i: xp.asarray(seen[i])):
                return body(xp)(x)

        program = PROGRAMS[number]
        expected = program(body(xp), xp)(leaf(xp).detach())
        np.testing.assert_allclose(
            values(program(hooked, xp)(leaf(xp).detach())), values(expected), rtol=1e-11
        )
        assert bool(seen) == (number not in (4, 5))  # in forward mode nothing is saved
        x = raw(xp, X)
        if number not in (3, 12):
            assert type(program(hooked, xp)(x)) is type(x)

    def test_over_tensors_that_require_grad(self, xp):
        found = []
        for pair in (
            None,
            (lambda t: t, lambda t: t),
            (lambda t: values(t).copy(), lambda a: xp.asarray(a)),
        ):

            def f(x):
                if pair is None:  # noqa: B023
                    return xp.sum(xp.sin(w * x) * xp.exp(x))  # noqa: B023
                with graph.saved_tensors_hooks(*pair):  # noqa: B023
                    return xp.sum(xp.sin(w * x) * xp.exp(x))  # noqa: B023

            w, x = leaf(xp, [0.7, 0.2]), leaf(xp)
            d = func.grad(total(func.grad(f), xp))(x)
            found.append([values(g) for g in mg.autograd.grad(xp.sum(d), [w, x])])
        np.testing.assert_allclose(found[1], found[0], rtol=1e-11)
        np.testing.assert_allclose(found[2], found[0], rtol=1e-11)

    def test_around_a_checkpoint(self, xp):
        """They get its arguments, whatever it is inside of; and what a policy keeps."""
        for policy, expected in ((None, [X]), (["sin"], [X, X])):
            seen, x = [], leaf(xp)
            pack = lambda t, seen=seen: seen.append(values(t).copy()) or len(seen) - 1
            unpack = lambda i, seen=seen: xp.asarray(seen[i])
            with graph.saved_tensors_hooks(pack, unpack):
                y = checkpoint(lambda x: xp.exp(xp.sin(x)), policy=policy)(x)
            assert np.array_equal(seen, expected)
            close(mg.autograd.grad(xp.sum(y), x)[0], np.cos(X) * np.exp(np.sin(X)))
            assert len(seen) == len(expected)  # the second run is none of their business

    def test_inside_of_a_checkpoint(self, xp):
        """What they pack they keep: they are the innermost, in both runs."""
        seen = []

        def f(x):
            y = xp.sin(x)
            with graph.saved_tensors_hooks(
                lambda t: seen.append(1) or values(t).copy(), lambda a: xp.asarray(a)
            ):
                z = xp.exp(y)
            return z * y

        x = leaf(xp)
        (d,) = mg.autograd.grad(xp.sum(checkpoint(f)(x)), x, create_graph=True)
        close(d, np.cos(X) * np.exp(np.sin(X)) * (1 + np.sin(X)))
        assert len(seen) == 2
        s, c = np.sin(X), np.cos(X)
        close(mg.autograd.grad(xp.sum(d), x)[0], np.exp(s) * (c * c * (2 + s) - s * (1 + s)))

    def test_on_the_host(self, xp):
        with graph.save_on_cpu(), graph.allow_mutation_on_saved_tensors():
            d = func.grad(
                total(func.grad(total(lambda x: checkpoint(body(xp))(xp.exp(x)), xp)), xp)
            )(raw(xp, X))
        close(
            d,
            values(
                func.grad(total(func.grad(total(lambda x: body(xp)(xp.exp(x)), xp)), xp))(
                    raw(xp, X)
                )
            ),
        )


@pytest.mark.parametrize("name", ["grad of grad", "grad with a scalar", "vmap", "jvp"])
def test_what_the_first_call_of_all_saves(xp, name):
    """The first run learns straight code, which the second one takes: both save the same, at every
    level.
    """
    f = lambda t: xp.sum(xp.sin(t * 2.0) * t + 1.0)
    inner = {
        "grad of grad": lambda a: xp.sum(func.grad(lambda t: xp.sum(func.grad(f)(t) * 3.0))(a)),
        "grad with a scalar": lambda a: xp.sum(func.grad(f)(a)),
        "vmap": lambda a: xp.sum(func.vmap(lambda t: t * 2.0 * t)(a)),
        "jvp": lambda a: func.jvp(f, (a,), (a * 0.5,))[1],
    }[name]
    x = leaf(xp)
    inner(x).backward()
    expected, x.grad = values(x.grad), None
    plans.forget()
    checkpoint(inner)(x).backward()
    close(x.grad, expected)
