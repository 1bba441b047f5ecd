"""Rules of the user in the bodies of loops, at each order of derivatives.

A body is recorded, or carried out again at other levels. Each rule here contradicts the function
that it belongs to, so a loop that drops it gives another number than the unrolled loop. The bodies
also ask what is decided when an operation is applied: whether an argument moves, whether it is
recorded, what is saved.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from loop_programs import ORDERS, START, Run, near, unrolled

import multigrad as mg
from multigrad import func

XS = np.linspace(0.2, 0.7, 6)
"""Long enough for a body to be recorded."""


@func.custom_vjp
def of_vjp(x: Any, y: Any) -> Any:
    return mg.sin(x) * y


of_vjp.defvjp(
    lambda x, y: (mg.sin(x) * y, (x, y)),
    lambda saved, g: (3.0 * g * mg.cos(saved[0]) * saved[1], 5.0 * g * mg.sin(saved[0])),
)


@func.custom_jvp
def of_jvp(x: Any, y: Any) -> Any:
    return mg.sin(x) * y


@of_jvp.defjvp
def _(primals: Any, tangents: Any) -> Any:
    (x, y), (t, u) = primals, tangents
    return mg.sin(x) * y, 3.0 * t * mg.cos(x) * y + 5.0 * u * mg.sin(x)


class OfFunction(mg.autograd.Function):
    """With a rule for each mode."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any, y: Any) -> Any:
        return mg.sin(x) * y

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        return 3.0 * g * mg.cos(x) * y, 5.0 * g * mg.sin(x)

    @staticmethod
    def jvp(ctx: Any, t: Any, u: Any) -> Any:
        x, y = ctx.saved_tensors
        return (0.0 if t is None else 3.0 * t * mg.cos(x) * y) + (
            0.0 if u is None else 5.0 * u * mg.sin(x)
        )


class Asking(OfFunction):
    """Its gradients depend on which are wanted."""

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        factor = 7.0 if all(ctx.needs_input_grad) else 2.0
        return factor * g * mg.cos(x) * y, factor * g * mg.sin(x)


RULES: dict[str, Callable[[Any, Any], Any]] = {
    "custom_vjp": of_vjp,
    "custom_jvp": of_jvp,
    "Function": OfFunction.apply,
    "Function that asks": Asking.apply,
}

Rule = Callable[[Any, Any], Any]


def start(a: Any) -> Any:
    """A carry that moves from the first step on.

    In a loop, a carry that moves at some step moves at all, which a Function may ask for.
    """
    return 0.3 * a


def of_the_carry(rule: Rule, a: Any, run: Run) -> Any:
    return run(lambda c, x: (rule(c * a, x), None), start(a), XS)[0]


def of_a_captured_argument(rule: Rule, a: Any, run: Run) -> Any:
    return run(lambda c, x: (c + x, rule(a, x)), start(a), XS)[1]


def of_both(rule: Rule, a: Any, run: Run) -> Any:
    c, ys = run(lambda c, x: (rule(c, a) + x, rule(a, c)), start(a), XS)
    return c + mg.sum(ys)


def of_constants(rule: Rule, a: Any, run: Run) -> Any:
    """Where nothing moves, the rule must not count; the rest of the body does."""
    return run(lambda c, x: (c * a + rule(x, x), None), start(a), XS)[0]


def of_one_of_two_that_moves(rule: Rule, a: Any, run: Run) -> Any:
    return run(lambda c, x: (0.5 * c + rule(a, mg.asarray(0.4)), None), start(a), XS)[0]


def of_what_starts_to_move(rule: Rule, a: Any, run: Run) -> Any:
    """The first carry is a constant, the later ones move."""
    return run(lambda c, x: (rule(c, x) * a, None), START, XS)[0]


def of_a_detached_carry(rule: Rule, a: Any, run: Run) -> Any:
    return run(lambda c, x: (c * a + rule(c.detach(), a), None), start(a), XS)[0]


def in_no_grad(rule: Rule, a: Any, run: Run) -> Any:
    def body(c: Any, x: Any) -> Any:
        with mg.no_grad():
            k = rule(c, a)
        return c * a + k * x, None

    return run(body, start(a), XS)[0]


def that_asks_whether_it_is_recorded(rule: Rule, a: Any, run: Run) -> Any:
    def body(c: Any, x: Any) -> Any:
        if mg.is_grad_enabled():
            return rule(c, a), None
        return c, None

    return run(body, start(a), XS)[0]


def in_a_loop_in_the_body(rule: Rule, a: Any, run: Run) -> Any:
    return run(
        lambda c, x: (run(lambda d, z: (rule(d, a) * z, None), c * x, XS)[0], None), start(a), XS
    )[0]


def in_a_branch(rule: Rule, a: Any, run: Run) -> Any:
    def branch(c: Any, x: Any) -> Any:
        if run is func.scan:
            return func.cond(x > 0.45, lambda: rule(c, a), lambda: c * a)
        return rule(c, a) if x > 0.45 else c * a

    return run(lambda c, x: (branch(c, x), None), start(a), XS)[0]


def under_a_checkpoint(rule: Rule, a: Any, run: Run) -> Any:
    return run(lambda c, x: (func.checkpoint(lambda c: rule(c, a) * x)(c), None), start(a), XS)[0]


def under_a_checkpoint_of_both(rule: Rule, a: Any, run: Run) -> Any:
    held = func.checkpoint(lambda c, held, x: rule(c, held["a"]) * x)
    return run(lambda c, x: (held(c, {"a": a}, x=x), None), start(a), XS)[0]


def under_a_vjp_in_the_body(rule: Rule, a: Any, run: Run) -> Any:
    def body(c: Any, x: Any) -> Any:
        out, pull = func.vjp(lambda c: rule(c, a), c)
        return 0.3 * out + pull(x)[0], None

    return run(body, start(a), XS)[0]


BODIES = [
    of_the_carry,
    of_a_captured_argument,
    of_both,
    of_constants,
    of_one_of_two_that_moves,
    of_what_starts_to_move,
    of_a_detached_carry,
    in_no_grad,
    that_asks_whether_it_is_recorded,
    in_a_loop_in_the_body,
    in_a_branch,
    under_a_checkpoint,
    under_a_checkpoint_of_both,
    under_a_vjp_in_the_body,
]


def outcome(order: Callable[[Any], Any], loss: Callable[[Any], Any]) -> Any:
    """The derivative, or the class of what it raises: no rule covers every order."""
    try:
        return order(loss)
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("loss", BODIES, ids=lambda loss: loss.__name__)
def test_rules_count_at_each_order(loss: Any, rule: str) -> None:
    numbers = 0
    for name, order in ORDERS.items():
        ours, theirs = (
            outcome(order, lambda a, run=run: mg.sum(loss(RULES[rule], a, run)))
            for run in (func.scan, unrolled)
        )
        if isinstance(theirs, type):
            assert ours is theirs, (name, ours, theirs)
            continue
        assert not isinstance(ours, type), (name, ours)
        near(ours, theirs)
        numbers += 1
    assert numbers >= 3


class Keeping(mg.autograd.Function):
    """Its backward uses what its forward computed, so it has a first derivative only."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        m = mg.sin(x)
        ctx.save_for_backward(m)
        return m * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.saved_tensors[0]


@pytest.mark.parametrize("run", [func.scan, unrolled])
def test_a_second_derivative_of_what_forward_kept_is_refused(run: Run) -> None:
    slope = func.grad(Keeping.apply)
    with pytest.raises(mg.errors.GradientError, match="inputs and outputs only"):
        func.grad(lambda a: run(lambda c, x: (c * a + slope(c), None), start(a), XS)[0])(START)
    a = mg.tensor(START).requires_grad_()
    out = run(lambda c, x: (c * a + slope(c), None), start(a), XS)[0]
    with pytest.raises(mg.errors.GradientError, match="inputs and outputs only"):
        out.backward()
