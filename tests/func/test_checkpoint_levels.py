"""checkpoint, and hooks for saved arrays, inside and outside of transformations and of each other,
on every backend.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from checkpoint_programs import Counted, X, body, leaf, total
from conftest import values
from forward_programs import along, close, raw

import multigrad as mg
from multigrad import func
from multigrad.autograd import forward_ad, graph
from multigrad.dispatch import runners
from multigrad.errors import GradientError
from multigrad.func import checkpoint


def along_captured(xp, wrap):
    """A Dual is captured; its transformation is over when the function runs again."""
    return lambda x: func.jvp(
        lambda y: wrap(lambda z: xp.sin(y * z) * z)(y * x), (x,), (xp.ones_like(x),)
    )[1]


def along_captured_of_an_outer_one(xp, wrap):
    ones = xp.ones(2, dtype=xp.float64)
    inner = lambda x: func.vjp(wrap(lambda z: xp.sin(z * x) * x), ones)[0]
    return lambda x: func.jvp(inner, (x,), (ones,))[1]


def captured_of_a_level_that_was_left(xp, wrap):
    def f(x):
        with forward_ad.dual_level():
            d = forward_ad.make_dual(x, xp.ones_like(x))
            return forward_ad.unpack_dual(wrap(lambda z: body(xp)(z * d))(x)).tangent

    return f


def of_a_level_that_was_left(xp, wrap):
    def f(x):
        with forward_ad.dual_level():
            y = wrap(body(xp))(forward_ad.make_dual(x, xp.ones_like(x)))
            return forward_ad.unpack_dual(y).tangent

    return f


def of_tensors_from_outside(xp, wrap):
    w = leaf(xp, [0.7, 0.2])
    f = wrap(lambda x: xp.sin(w * x) * xp.exp(w * w * x))
    return along(func.grad(total(f, xp)), xp)


class TestTransformations:
    @pytest.mark.parametrize(
        "make",
        [
            along_captured,
            along_captured_of_an_outer_one,
            captured_of_a_level_that_was_left,
            of_a_level_that_was_left,
            of_tensors_from_outside,
        ],
    )
    def test_gradients_are_those_without_checkpoint(self, xp, make):
        found = []
        for wrap in (lambda f: f, checkpoint):
            x = leaf(xp)
            found.append(values(mg.autograd.grad(xp.sum(make(xp, wrap)(x)), x)[0]))
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

    def test_in_several_threads(self, xp):
        """A transformation that is over is revived by all of them at once."""
        out, pullback = func.vjp(along(checkpoint(body(xp)), xp), leaf(xp).detach())
        expected = values(pullback(xp.ones_like(out))[0])
        with ThreadPoolExecutor(3) as pool:
            found = pool.map(lambda _: values(pullback(xp.ones_like(out))[0]), range(15))
            assert all(np.array_equal(g, expected) for g in found)


class TestHooks:
    """Hooks for saved arrays, in compositions that PyTorch refuses."""

    def test_inside_of_transformations(self, xp):
        """They see the raw arrays, one by one; histories and tangents are kept beside them."""
        seen = []

        def pack(t):
            assert type(t.array) is type(leaf(xp).array) and not t.requires_grad
            seen.append(values(t).copy())
            return len(seen) - 1

        def hooked(x):
            with graph.saved_tensors_hooks(pack, lambda i: xp.asarray(seen[i])):
                return body(xp)(x)

        x = raw(xp, X)
        found, expected = (
            along(func.grad(total(func.grad(total(f, xp)), xp)), xp)(x) for f in (hooked, body(xp))
        )
        np.testing.assert_allclose(values(found), values(expected), rtol=1e-11)
        assert seen and type(found) is type(x)

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

    def test_on_the_host(self, xp):
        f = func.grad(total(func.grad(total(checkpoint(body(xp)), xp)), xp))
        with graph.save_on_cpu(), graph.allow_mutation_on_saved_tensors():
            found = f(raw(xp, X))
        close(found, values(f(raw(xp, X))))

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
    runners.forget()
    checkpoint(inner)(x).backward()
    close(x.grad, expected)
