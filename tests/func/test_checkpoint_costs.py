"""What checkpoint costs: memory of a chain of operations, and runs of the function, as many as
PyTorch's.
"""

from __future__ import annotations

import gc
import math
import tracemalloc
import weakref

import numpy as np
import pytest
from checkpoint_programs import Counted, X, leaf
from conftest import values

import multigrad as mg
from multigrad import func
from multigrad.func import checkpoint


class TestMemory:
    """Of a chain of n operations, each of which saves its operand; in arrays of 160 kB."""

    size = 20_000

    def peak(self, f, tensors):
        x = np.linspace(0, 1, self.size)
        gradient = func.grad(f)
        if tensors:

            def gradient(x):
                t = mg.tensor(x, requires_grad=True)
                f(t).backward()
                return t.grad.array

        gradient(x[:2])  # what is only made once
        tracemalloc.start()
        try:
            found = gradient(x)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        expected = np.ones(self.size)
        for _ in range(self.n):
            x, expected = np.sin(x), expected * np.cos(x)
        np.testing.assert_allclose(found, expected, rtol=1e-10)
        return peak / x.nbytes

    def chain(self, kind):
        xp = mg.namespace("numpy")

        def plain(x, n):
            for _ in range(n):
                x = xp.sin(x)
            return x

        def segments(x, n):
            segment = checkpoint(lambda x: plain(x, math.isqrt(n)))
            for _ in range(math.isqrt(n)):
                x = segment(x)
            return x

        def halves(x, n):
            return (
                checkpoint(lambda x: halves(halves(x, n // 2), n - n // 2))(x)
                if n > 6
                else plain(x, n)
            )

        return lambda x: xp.sum(
            {"plain": plain, "segments": segments, "halves": halves}[kind](x, self.n)
        )

    @pytest.mark.sweep
    @pytest.mark.parametrize("tensors", [False, True], ids=["raw", "Tensors"])
    def test_it_grows_as_the_square_root(self, tensors):
        peaks = {}
        gc.collect()
        gc.disable()  # nothing may be left to it
        try:
            for self.n in (25, 100, 400):
                peaks[self.n] = [
                    self.peak(self.chain(kind), tensors)
                    for kind in ("plain", "segments", "halves")[: 2 if tensors else 3]
                ]
        finally:
            gc.enable()
        for n, (plain, segments, *halves) in peaks.items():
            assert n <= plain < n + 6
            assert segments < 2 * math.sqrt(n) + 6
            assert all(peak < 3 * math.log2(n) + 6 for peak in halves)
        exponents = [
            math.log(b / a) / math.log(16) for a, b in zip(peaks[25], peaks[400], strict=True)
        ]
        assert 0.95 < exponents[0] < 1.05
        assert 0.4 < exponents[1] < 0.6
        assert all(e < 0.4 for e in exponents[2:])

    def test_a_function_where_the_second_run_ends_is_freed(self):
        made = []

        class Product(mg.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                out = x * y
                made.append(weakref.ref(out))
                ctx.save_for_backward(x, y, out)
                return out

            @staticmethod
            def backward(ctx, g):
                x, y, _ = ctx.saved_tensors
                return g * y, g * x

        x = mg.tensor(np.asarray([0.5, 0.7])).requires_grad_()
        gc.collect()
        gc.disable()
        try:
            y = checkpoint(lambda x: Product.apply(x, mg.sin(x)))(x)
            mg.sum(y).backward()
            del y
            assert len(made) == 2
            assert all(out() is None for out in made)
        finally:
            gc.enable()

    def test_what_was_used_is_given_up(self):
        xp = mg.namespace("numpy")
        made, alive = [], []

        def f(x):
            for _ in range(4):
                x = xp.sin(x)
                x.register_hook(lambda g: alive.append(sum(r() is not None for r in made[3:])))
                made.append(weakref.ref(x.array))
            return x

        xp.sum(checkpoint(f)(leaf(xp))).backward()
        assert len(made) == 7  # the second run ends within the last operation
        assert alive == [0, 2, 1, 0]

    def test_after_a_pass_nothing_is_left(self):
        """What it did not need of what was computed again goes with it, also where the graph is
        kept.
        """
        xp = mg.namespace("numpy")
        x, w = leaf(xp, np.ones(50_000)), leaf(xp, np.ones(50_000))

        def f(x, w):
            for _ in range(20):
                x = xp.sin(x)
            return x * xp.exp(w)

        y = xp.sum(checkpoint(f)(x, w))
        mg.autograd.grad(y, w, retain_graph=True)
        tracemalloc.start()
        try:
            mg.autograd.grad(y, w, retain_graph=True)
            left, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak > 20 * x.array.nbytes and left < 0.1 * x.array.nbytes


class TestLikeTorch:
    """Gradients, and how often the function runs, against torch.utils.checkpoint with
    use_reentrant=False.
    """

    @pytest.fixture
    def torch(self):
        return pytest.importorskip("torch")

    @staticmethod
    def nested(run, xp, f, x, grad):
        return [grad(xp.sum(run(lambda x: run(f, run(f, x)), x)), x)]

    @staticmethod
    def recorded(run, xp, f, x, grad):
        d = grad(xp.sum(run(f, x)), x, create_graph=True)
        return [d, grad(xp.sum(d), x)]

    @pytest.mark.parametrize("program", ["nested", "recorded"])
    def test_runs_and_gradients(self, xp, torch, program):
        from torch.utils.checkpoint import checkpoint as their

        def f_of(xp):
            return Counted(lambda x: xp.exp(xp.sin(x) * x) / 3)

        f, g = f_of(xp), f_of(torch)
        found = getattr(self, program)(
            lambda f, x: checkpoint(f)(x),
            xp,
            f,
            leaf(xp),
            lambda *a, **k: mg.autograd.grad(*a, **k)[0],
        )
        expected = getattr(self, program)(
            lambda f, x: their(f, x, use_reentrant=False),
            torch,
            g,
            torch.tensor(X, dtype=torch.float64, requires_grad=True),
            lambda *a, **k: torch.autograd.grad(*a, **k)[0],
        )
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(values(a), b.detach().numpy(), rtol=1e-11)
        assert f.begun == g.begun
