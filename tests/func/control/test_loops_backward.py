"""The way back of a scan takes the carries that the loop has computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from loop_programs import unrolled

import multigrad as mg
from multigrad import func
from multigrad.errors import GradientError
from multigrad.func.control import replaying

STEPS = 9
W = np.random.default_rng(0).normal(size=(3, 3)) / 3
XS = np.random.default_rng(1).normal(size=(STEPS, 2, 3))
START = np.random.default_rng(2).normal(size=(2, 3)) / 2

Body = Callable[[Any, Any, Any], Any]


BODIES: dict[str, Body] = {
    "tanh": lambda w, c, x: (mg.tanh(c @ w + x), None),
    "sigmoid and a result": lambda w, c, x: (d := 1 / (1 + mg.exp(-(c @ w + x))), d * x),
    "the carry itself": lambda w, c, x: (c, mg.sum(c @ w * x)),
    "what it goes over": lambda w, c, x: (x, mg.sum(mg.sin(c) @ w)),
    "transposed": lambda w, c, x: (mg.tanh((w.T @ (c + x).T).T), None),
    "a branch": lambda w, c, x: (
        mg.tanh(c @ w) + x if mg.sum(x) > 0 else mg.exp(-(c**2)) * x,
        None,
    ),
    "a constant in between": lambda w, c, x: (mg.where(x > 0, mg.tanh(c @ w), 0.5), None),
    "complex inside": lambda w, c, x: (mg.real(mg.exp(1j * (c @ w))) + x, None),
    "not in order": lambda w, c, x: (mg.flip(mg.sqrt(1.0 + (c @ w) ** 2), axis=0) + x, None),
}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", BODIES)
def test_gradients_are_those_of_the_loop_written_out(name: str, reverse: bool) -> None:
    def loss(scan: Callable[..., Any], w: Any, start: Any, xs: Any) -> Any:
        carry, ys = scan(lambda c, x: BODIES[name](w, c, x), start, xs)
        return mg.sum(carry**2) + (0.0 if ys is None else mg.sum(mg.sin(ys)))

    scanned = lambda *p: loss(lambda body, c, xs: func.scan(body, c, xs, reverse=reverse), *p)
    written = lambda *p: loss(lambda body, c, xs: unrolled(body, c, xs, reverse=reverse), *p)
    derivatives: list[Callable[[Any], Any]] = [
        lambda f: func.grad(f, (0, 1, 2))(W, START, XS),
        lambda f: func.grad(lambda w, s, x: mg.sum(func.grad(f)(w, s, x) ** 2), (0, 1, 2))(
            W, START, XS
        ),
        lambda f: func.jvp(func.grad(f), (W, START, XS), (W, START, XS)),
    ]
    for derivative in derivatives:
        for a, b in zip(derivative(scanned), derivative(written), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


def test_several_carries_that_are_one_array_or_change_places() -> None:
    def body(c: Any, x: Any) -> Any:
        a, b = c
        d = mg.tanh(a + x)
        return (d, d) if x[0] > 0 else (b, a * 0.5), None

    xs = XS[:, 0, :]

    def loss(scan: Callable[..., Any], a: Any, b: Any) -> Any:
        (p, q), _ = scan(body, (a, b), xs)
        return mg.sum(p * p + mg.sin(q))

    found = func.grad(lambda a, b: loss(func.scan, a, b), (0, 1))(START[0], START[1])
    expected = func.grad(lambda a, b: loss(unrolled, a, b), (0, 1))(START[0], START[1])
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_way_back_has_no_step_of_the_way_there() -> None:
    replaying._made.clear()
    func.grad(lambda w: mg.sum(func.scan(lambda c, x: (mg.tanh(c @ w + x), None), START, XS)[0]))(W)
    sources = [made.source for made in replaying._made.values()]
    assert len(sources) == 2 and sum("tanh(" in source for source in sources) == 1


def test_kept_programs_hold_few_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that holds more than all may is dropped when the next one is made."""
    replaying._made.clear()
    monkeypatch.setattr(replaying, "HELD", 1 << 18)
    for n in range(1, 9):
        start, xs = np.ones(8000 + n), np.ones((6, 1))
        func.scan(lambda c, x: (mg.sin(c * c + mg.cos(c)) * x, None), start, xs)
        held = [run.memory for run in replaying._made.values()]
        assert sum(held[:-1]) <= 1 << 18
        assert held[-1] > 1 << 15
    assert 1 < len(held) < 8


def test_the_last_carry_may_be_written() -> None:
    """It is not kept for the pass."""
    w = mg.asarray(W, requires_grad=True)
    carry, _ = func.scan(lambda c, x: (mg.tanh(c @ w + x), None), mg.asarray(START), mg.asarray(XS))
    loss = mg.sum(carry * 2.0)
    carry *= 0.0
    loss.backward()
    expected = func.grad(
        lambda w: mg.sum(func.scan(lambda c, x: (mg.tanh(c @ w + x), None), START, XS)[0] * 2.0)
    )(W)
    np.testing.assert_allclose(w.grad.array, expected, rtol=1e-12)


@pytest.mark.parametrize("checkpoint", ["step", 1, 2])
def test_a_carry_that_a_step_replaces_by_the_same_for_all_examples(checkpoint: Any) -> None:
    def loss(h: Any, s: Any) -> Any:
        return mg.sum(
            func.scan(
                lambda c, _: ((mg.zeros(3) + c[1], c[1]), None),
                (h, s),
                length=2,
                checkpoint=checkpoint,
            )[0][0]
        )

    by_h, by_s = func.vmap(func.grad(loss, (0, 1)), in_axes=(0, None))(
        np.ones((2, 3)), np.asarray(0.7)
    )
    assert np.array_equal(by_h, np.zeros((2, 3)))
    assert np.array_equal(by_s, [3.0, 3.0])


def test_a_changed_body_under_vmap_is_still_found_out() -> None:
    scale = [1.0]

    def loss(h: Any, s: Any) -> Any:
        def body(c: Any, _: Any) -> Any:
            return ((mg.zeros(3) + c[1] * scale[0], c[1]), None)

        out = mg.sum(func.scan(body, (h, s), length=2)[0][0])
        scale[0] += 1.0
        return out

    with pytest.raises(GradientError, match="another result"):
        func.vmap(func.grad(loss, (0, 1)), in_axes=(0, None))(np.ones((2, 3)), np.asarray(0.7))
