"""Views where two things meet: detach and staleness, traces, gradients that are views, keys that
change, parts of complex numbers, levels.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import values
from leaves import check, const, leaf

import multigrad as mg
from multigrad.autograd import functional
from multigrad.errors import GradientError
from multigrad.registry import define

X = np.asarray([1.0, 2.0, 3.0])


class TestDetached:
    def test_again_after_a_write(self, xp: Any) -> None:
        x = const(xp, X)
        d = x[:2].detach()
        d += 10
        e = d.detach()
        check(e, [11, 12])
        e += 1
        check(x, [12, 13, 3])

    def test_from_a_view_that_was_written(self, xp: Any) -> None:
        """Where libraries return copies, the view's own array is not in the memory."""
        x = const(xp, X)
        w = x[:2]
        w += 1
        d = w.detach()
        d += 10
        check(x, [12, 13, 3])
        check(d, [12, 13])

    def test_a_value_of_a_transformation_is_no_data(self, xp: Any) -> None:
        """The memory could not hold it, so the Tensor would not see the write."""
        if not hasattr(const(xp, X).array, "__setitem__") or "jax" in xp.__name__:
            pytest.skip("no memory that can be written")

        def f(x: Any, plain: bool) -> Any:
            z = xp.zeros(3)
            z.data[...] = xp.ones(3).array if plain else x
            return xp.sum(z * x)

        check(mg.func.grad(f)(const(xp, X).array, True), np.ones(3))
        with pytest.raises(
            GradientError,
            match="a value of a running transformation cannot be written into an array from "
            "outside of it",
        ):
            mg.func.grad(f)(const(xp, X).array, False)

    def test_of_a_scalar_of_the_library(self, xp: Any) -> None:
        s = xp.sum(const(xp, X))
        d = xp.reshape(s, (1,)).detach()
        d += 10
        check(s, 16)

    def test_of_elements_that_are_one(self, xp: Any) -> None:
        x = const(xp, X)
        d = xp.broadcast_to(x, (2, 3)).detach()
        with pytest.raises(
            RuntimeError,
            match="more than one element of the written-to tensor refers to a single memory "
            "location",
        ):
            d += 1
        check(x, X)


class TestData:
    def test_is_the_same_memory(self, xp: Any) -> None:
        p = leaf(xp, X)
        p.data[0] = 9.0
        p.data.multiply_(2.0)
        part = p.data[1:]
        part -= 1
        check(p, [18, 3, 5])
        check(part, [3, 5])
        p.grad = const(xp, X)
        p.grad.data.zero_()
        check(p.grad, [0, 0, 0])
        assert p._version == 0 and p.is_leaf and p.requires_grad

    def test_views_see_what_is_written_to_data(self, xp: Any) -> None:
        y = const(xp, X)
        v = y[1:]
        y.data.add_(1.0)
        check(v, [3, 4])
        y += 1
        check(v, [4, 5])
        assert y._version == 1


class TestGradients:
    def test_that_are_views(self, xp: Any) -> None:
        flat = const(xp, np.zeros(4))
        w = leaf(xp, [1.0, 2.0])
        w.grad = flat[:2]
        for _ in range(2):
            xp.sum(w * 3).backward()
        check(w.grad, [6, 6])
        check(flat, [6, 6, 0, 0])

    def test_that_are_given_as_views_of_what_was_written(self, xp: Any) -> None:
        base = const(xp, np.ones(3))
        g = base[:2]
        base *= 5
        w = leaf(xp, [1.0, 2.0])
        (w * 1.0).backward(g)
        check(w.grad, [5, 5])

    def test_that_a_view_retains(self, xp: Any) -> None:
        for look in (False, True):
            y = leaf(xp, X) * 1.0
            w = y[:2]
            w.retain_grad()
            w *= 3
            assert not look or w.requires_grad
            (xp.sum(y * y) + 10 * xp.sum(w)).backward()
            check(w.grad, [10, 10])

    def test_of_an_operand_that_is_an_older_view(self, xp: Any) -> None:
        for write in (
            lambda k, v: k.__imul__(v),
            lambda k, v: k.__setitem__(..., v),
            lambda k, v: k.copy_(v),
            lambda k, v: k.__setitem__(slice(2), v),
        ):
            c, k, x = const(xp, [2.0, 3.0]), const(xp, [5.0, 7.0]), leaf(xp, [1.0, 1.0])
            v = c[...]
            c *= x
            write(k, v)
            assert k.requires_grad
            xp.sum(k).backward()
            assert values(x.grad).min() > 0

    def test_of_a_part_assigned_under_no_grad(self, xp: Any) -> None:
        a = leaf(xp, X)
        y = a * 1.0
        with mg.no_grad():
            v = y[0]
        y[0] = v
        xp.sum(y).backward()
        check(a.grad, [0, 1, 1])

    def test_where_an_operand_is_given_by_keyword(self, xp: Any) -> None:
        c = leaf(xp, 2.0)
        r = xp.unstack(const(xp, np.zeros((2, 3))))[0]
        with pytest.raises(GradientError, match="output of a function that returns multiple views"):
            r.clip_(min=c)
        check(r, [0, 0, 0])

    def test_of_what_is_written_out_of_bounds(self, xp: Any) -> None:
        a = leaf(xp, X)
        y = a * 1.0
        try:
            y[xp.asarray(np.asarray([5]))] = a[0]
        except IndexError:
            assert "jax" not in xp.__name__
            return
        xp.sum(y).backward()  # JAX writes nothing
        check(a.grad, [1, 1, 1])


class TestKeys:
    def test_that_change_afterwards(self, xp: Any) -> None:
        i = xp.asarray(np.asarray(0))
        x = const(xp, np.arange(5.0))
        v = x[i:2]
        i += 1
        x += 10
        check(v, [10, 11])
        y = leaf(xp, np.arange(5.0))
        j = xp.asarray(np.asarray(0))
        z = y[j:2]
        j += 1
        xp.sum(z).backward()
        check(y.grad, [1, 1, 0, 0, 0])

    def test_axes_in_a_list(self, xp: Any) -> None:
        axes = [1, 0]
        x = leaf(xp, np.arange(6.0).reshape(2, 3))
        v = xp.permute_dims(x, axes)
        axes.reverse()
        xp.sum(v * xp.reshape(xp.arange(6, dtype=xp.float64), (3, 2))).backward()
        check(x.grad, [[0, 2, 4], [1, 3, 5]])


class TestComplex:
    def test_signs_of_zeros(self, xp: Any) -> None:
        x = const(xp, [complex(-2.0, -0.0), complex(1.0, 5.0)])
        re = xp.real(x)
        re += 1
        re[1] = -0.0
        assert np.signbit(values(x).imag).tolist() == [True, False] and np.signbit(
            values(x).real
        ).tolist() == [True, True]


class TestTransformations:
    def test_detach_is_of_every_level(self, xp: Any) -> None:
        once = mg.func.grad(lambda x: x * x * x.detach())
        assert float(mg.asarray(once(const(xp, 3.0).array))) == 18.0
        # as torch.func and jax.lax.stop_gradient
        assert float(mg.asarray(mg.func.grad(once)(const(xp, 3.0).array))) == 6.0

    def test_an_input_that_does_not_want_a_gradient_any_more(self, xp: Any) -> None:
        def loss(x: Any) -> Any:
            total = xp.sum(x * x)
            x.requires_grad_(False)
            return total

        check(mg.asarray(mg.func.grad(loss)(const(xp, X).array)), 2 * X)


class TestTraces:
    def test_a_stale_view_refreshed_inside_keeps_no_tracer(self) -> None:
        jax = pytest.importorskip("jax")
        xp = mg.namespace("jax")
        for x in (const(xp, X), leaf(xp, X) * 1.0):
            w = x[:2]
            x += 1
            found = jax.jit(lambda a: (mg.asarray(a) * w.detach() + w.detach()).array)(np.ones(2))  # noqa: B023
            np.testing.assert_array_equal(found, [4, 6])
            check(w.detach(), [2, 3])
            check(w.detach() + 1, [3, 4])

    @pytest.mark.runs_once
    def test_threads_that_write_parts_of_one_array(self) -> None:
        pytest.importorskip("jax")
        xp = mg.namespace("jax")
        for recorded in (False, True):
            x = leaf(xp, [1.0])
            y = xp.zeros(8, dtype=xp.float64)
            parts = [y[i : i + 1] for i in range(8)]
            step = x * 1.0 if recorded else const(xp, [1.0])

            def work(part: Any, step: Any = step) -> None:
                for _ in range(20):
                    part += step

            threads = [threading.Thread(target=work, args=(part,)) for part in parts]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            check(y, np.full(8, 20.0))
            if recorded:
                xp.sum(y).backward()
                check(x.grad, [160])


def test_an_operation_that_returns_its_argument_now_and_then(xp: Any, operations: Any) -> None:
    define(
        "t.doubled(x, /, *, times=1)",
        forward=lambda xp, x, times: 2.0 * x if times else x,
        x=lambda xp, g, times: 2.0 * g if times else g,
    )
    w = leaf(xp, X)
    x = w * 1.0
    for _ in range(3):
        check(xp.t.doubled(x), 2 * X)
    y = xp.t.doubled(x, times=0)
    z = y * y
    x[0] = 9.0
    check(y, [9.0, 2.0, 3.0])
    with pytest.raises(GradientError, match="modified by an inplace operation"):
        z.sum().backward()


def _replaced_by(register: Any) -> Callable[[Any, Any], Any]:
    """The gradient of a leaf when a hook returns `v`."""

    def gradient(xp: Any, v: Any) -> Any:
        t = leaf(xp, [0.0, 0.0])
        y = t * 1.0
        register(y, v)
        xp.sum(y).backward()
        return t.grad

    return gradient


def _accumulated(xp: Any, v: Any) -> Any:
    t = leaf(xp, [0.0, 0.0])
    t.grad = v
    xp.sum(t * 0.0).backward()
    return t.grad


def _as_data(xp: Any, v: Any) -> Any:
    t = xp.zeros(2)
    t.data = v
    return t


def _as_gradient(xp: Any, v: Any) -> Any:
    t = leaf(xp, [0.0, 0.0])
    (t * 1.0).backward(v)
    return t.grad


VIEWS: dict[str, Callable[[Any], Any]] = {
    "part": lambda y: y[:2],
    "part of a part": lambda y: y[:3][:2],
    "part of a constant": lambda y: y.detach()[:2],
}
READERS: dict[str, Callable[[Any, Any], Any]] = {
    "a hook": _replaced_by(lambda y, v: y.register_hook(lambda g: v)),
    "a prehook": _replaced_by(lambda y, v: y.grad_fn.register_prehook(lambda gs: (v,))),
    "a posthook": _replaced_by(lambda y, v: y.grad_fn.register_hook(lambda gs, out: (v, *gs[1:]))),
    "t.grad": _accumulated,
    "t.data": _as_data,
    "backward": _as_gradient,
    "functional.jacobian": lambda xp, v: xp.linalg.diagonal(
        functional.jacobian(lambda x: x * x / 2.0, v)
    ),
    "functional.vjp": lambda xp, v: functional.vjp(lambda x: x * 1.0, xp.zeros(2), v)[1],
    "functional.jvp": lambda xp, v: functional.jvp(lambda x: x * 1.0, xp.zeros(2), v)[1],
    "detach": lambda xp, v: v.detach(),
    "data": lambda xp, v: v.data,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", VIEWS)
def test_a_view_that_was_written_since_has_its_values_of_now(
    kind: str, reader: str, xp: Any
) -> None:
    """Where arrays are immutable, a write gives the base a new one: whatever takes a view looks."""
    y = const(xp, [1.0, 2.0, 3.0, 4.0])
    v = VIEWS[kind](y)
    y += 10.0
    check(READERS[reader](xp, v), [11.0, 12.0])
