"""Loops of multigrad.func beside everything else: hooks, checkpoints, forward_ad, profiler, layers
of one's own, compiled functions, other dtypes.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from loop_programs import near, unrolled

import multigrad as mg
from multigrad import func
from multigrad.autograd import forward_ad, graph
from multigrad.errors import GradientError

rng = np.random.default_rng(0)
W, H, U = rng.normal(size=(3, 3)) * 0.5, rng.normal(size=3), rng.normal(size=(3, 3))
STEPS = {n: rng.normal(size=(n, 3)) for n in (5, 40)}
"""Few steps are run one by one, many by a program."""


def loss(run: Any, w: Any, h: Any, xs: Any) -> Any:
    h, ys = run(lambda h, x: (mg.tanh(mg.matmul(w, h) + x), mg.sum(h * h)), h, xs)
    return mg.sum(h**3) + mg.sum(ys)


def on_hooks(run: Any, xs: Any) -> Any:
    w = mg.asarray(W, requires_grad=True)
    with graph.saved_tensors_hooks(lambda t: t.detach().numpy().copy(), mg.asarray):
        found = loss(run, w, H, xs)
    found.backward()
    return w.grad


def on_complex(run: Any, xs: Any) -> Any:
    w = mg.asarray(W + 0.3j * U, requires_grad=True)
    h, ys = run(lambda h, x: (mg.sin(mg.matmul(w, h)) * 0.5 + x, h * w[0]), H + 0j, xs + 0j)
    (mg.sum(mg.real(h * mg.conj(h))) + mg.sum(mg.imag(ys))).backward()
    return w.grad


def on_forward_ad(run: Any, xs: Any) -> Any:
    w = mg.asarray(W, requires_grad=True)
    with forward_ad.dual_level():
        primal, tangent = forward_ad.unpack_dual(
            loss(run, forward_ad.make_dual(w, mg.asarray(U)), H, xs)
        )
    tangent.backward()
    return primal, tangent, w.grad


def on_batched_gradients(run: Any, xs: Any) -> Any:
    w, h = mg.asarray(W, requires_grad=True), mg.asarray(H, requires_grad=True)
    last = run(lambda h, x: (mg.tanh(mg.matmul(w, h) + x), mg.sum(h)), h, xs)[0]
    return mg.autograd.grad(last, (w, h), grad_outputs=mg.eye(3), is_grads_batched=True)


def watched(entered: Callable[[], Any]) -> Callable[[Any, Any], Any]:
    def of(run: Any, xs: Any) -> Any:
        w = mg.asarray(W, requires_grad=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with entered():
                loss(run, w, H, xs).backward()
        return w.grad

    return of


def inside_a_forward(run: Any, xs: Any) -> Any:
    class Own(mg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(run(lambda h, t: (h * t, h), x * 1.0, xs)[0])
            return x**2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.saved_tensors[0]

    with pytest.raises(
        GradientError, match="a second derivative reached an array that forward computed and kept"
    ):
        func.grad(lambda x: mg.sum(func.grad(lambda x: mg.sum(Own.apply(x)))(x)))(H)
    return func.grad(lambda x: mg.sum(Own.apply(x)))(H)


def on_times_of_levels(run: Any, xs: Any) -> Any:
    """An observer of times alone notices the operations of the body, as anywhere."""
    with mg.autograd.profiler.profile():
        return func.hessian(lambda h: loss(run, W, h, xs))(H)


def on_a_keyword_of_a_write(run: Any, xs: Any) -> Any:
    def last(low: Any) -> Any:
        return mg.sum(run(lambda h, x: ((h * 1.0).clip_(min=low) * x, h), H, xs)[0])

    return func.grad(last)(H + 0.1)


CASES: dict[str, Callable[[Any, Any], Any]] = {
    "hooks": on_hooks,
    "complex": on_complex,
    "forward_ad": on_forward_ad,
    "batched gradients": on_batched_gradients,
    "forward": inside_a_forward,
    "anomaly": watched(mg.autograd.detect_anomaly),
    "profile": watched(mg.autograd.profiler.profile),
    "profile of levels": on_times_of_levels,
    "a keyword of a write": on_a_keyword_of_a_write,
    "checkpoint": lambda run, xs: func.value_and_grad(
        lambda w: func.checkpoint(lambda w: loss(run, w, H, xs))(w)
    )(W),
    "linearize": lambda run, xs: func.linearize(lambda w: loss(run, w, H, xs), W)[1](U),
    "vmap of xs": lambda run, xs: func.vmap(func.grad(lambda x: loss(run, W, H, x)))(
        np.stack([xs, 2.0 * xs])
    ),
    "vmap of jacrev": lambda run, xs: func.vmap(
        func.jacrev(lambda h: run(lambda h, x: (mg.tanh(mg.matmul(W, h) + x), h), h, xs)[1])
    )(U),
    "float32": lambda run, xs: func.grad(lambda w: loss(run, w, H.astype("f4"), xs.astype("f4")))(
        W.astype("f4")
    ),
    "Tensors": lambda run, xs: run(lambda c, x: (c + x, c), mg.asarray(H), mg.asarray(xs)),
}


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("case", CASES)
def test_as_the_unrolled_loop(case: str, steps: int) -> None:
    found, expected = (
        tuple(func.tree.leaves(CASES[case](run, STEPS[steps]))) for run in (func.scan, unrolled)
    )
    assert [x.dtype for x in found] == [y.dtype for y in expected]
    near(found, expected, 1e-4 if case == "float32" else 1e-10)


def test_breaks_are_not_seen_where_none_are() -> None:
    with mg.autograd.detect_breaks() as seen:
        w = mg.asarray(W, requires_grad=True)
        loss(func.scan, w, H, STEPS[40]).backward()
        func.grad(lambda w: loss(func.scan, w, H, STEPS[5]))(W)
    assert "No gradient was lost" in str(seen)


def test_layers_of_ones_own() -> None:
    """The first example of docs/extending.md, which tells what a result depends on."""
    text = (Path(__file__).parents[3] / "docs" / "extending.md").read_text()
    scope: dict[str, Any] = {}
    exec(next(re.finditer(r"```python\n(.*?)```", text, re.S)).group(1), scope)

    def f(x: Any, y: Any, z: Any) -> Any:
        h, ys = func.scan(lambda h, t: (mg.sin(h * y) + t, 2.0 * h), x, STEPS[40])
        return mg.sum(h) + mg.sum(ys)

    assert (
        scope["sources"](f)(H, 2.0 * H, H)[1]
        == {0, 1}
        == scope["sources"](func.grad(f))(H, 2.0 * H, H)[1]
    )
    assert np.array_equal(
        func.grad(lambda x: scope["sources"](f)(x, H, H)[0])(H), func.grad(f)(H, H, H)
    )


def test_in_a_compiled_function() -> None:
    """A short loop is a part of its program, a long one has a program of its own; branches are
    guards.
    """

    def f(w: Any, h: Any, xs: Any) -> Any:
        def body(h: Any, x: Any) -> Any:
            h = mg.tanh(mg.matmul(w, h) + x)
            return func.cond(mg.sum(h) > 0.0, lambda h: h, lambda h: -2.0 * h, h), mg.sum(h * h)

        h, ys = func.scan(body, h, xs)
        return mg.sum(h**3) + mg.sum(ys)

    rows = func.vmap(func.grad(f), in_axes=(None, 0, None))
    for transformed, h in (
        (func.value_and_grad(f, (0, 1, 2)), H),
        (rows, U),
        (lambda w, h, xs: func.hvp(lambda w: f(w, h, xs), (w,), (w,)), H),
    ):
        compiled = func.compile(transformed)
        for k in range(4):
            args = W * (1 + k), h * (k - 1.0), STEPS[5]
            for x, y in zip(
                func.tree.leaves(compiled(*args)), func.tree.leaves(transformed(*args)), strict=True
            ):
                assert np.allclose(x, y)
        assert compiled.programs
    long = func.compile(func.grad(f))
    with pytest.warns(
        UserWarning,
        match="because a loop of 120 steps in it is a program of its own; the function itself is called",
    ):
        assert np.allclose(
            long(W, H, np.tile(STEPS[40], (3, 1))), func.grad(f)(W, H, np.tile(STEPS[40], (3, 1)))
        )
    root = func.compile(
        lambda a: func.while_loop(
            lambda x: mg.abs(x * x - a) > 1e-12, lambda x: 0.5 * (x + a / x), 1.0
        )
    )
    assert np.allclose(
        [root(np.array(a)) for a in (2.0, 9.0, 1e6, 3.0)], [2**0.5, 3.0, 1e3, 3**0.5]
    )


def test_kept_programs_serve_equal_bodies_only() -> None:
    xs = STEPS[40]
    for scale in (1.0, 2.0, np.array(3.0), np.array([1.0, 2.0, 3.0])):
        for power in (2, 3):

            def last(run: Any, h: Any, scale: Any = scale, power: int = power) -> Any:
                return mg.sum(run(lambda c, x: (0.3 * mg.sin(c * scale) + x**power, c), h, xs)[0])

            assert np.allclose(
                *(
                    func.grad(lambda h, run=run, last=last: last(run, h))(H)
                    for run in (func.scan, unrolled)
                )
            )


def products(x: Any) -> Any:
    """A loop over the slices that a loop around it goes over."""
    inner = lambda g, k: (mg.sin(g * k), None)
    return mg.sum(func.scan(lambda h, row: (func.scan(inner, h, row)[0], None), H, x)[0])


def products_step_by_step(x: Any) -> Any:
    h = H
    for i in range(3):
        for j in range(3):
            h = mg.sin(h * x[i, j])
    return mg.sum(h)


@pytest.mark.parametrize(
    "transformed",
    [
        lambda f: func.jvp(f, (W,), (U,)),
        lambda f: func.vmap(f)(np.stack([W, U])),
        lambda f: func.vmap(func.grad(f))(np.stack([W, U])),
        lambda f: func.hessian(f)(W),
        lambda f: func.compile(func.value_and_grad(f))(W),
    ],
    ids=["jvp", "vmap", "vmap of grad", "hessian", "compile"],
)
def test_a_loop_goes_over_slices_of_a_loop_around_it(transformed: Callable[[Any], Any]) -> None:
    # the first slice for the trial step is no array from outside of the outer body
    near(transformed(products), transformed(products_step_by_step))
