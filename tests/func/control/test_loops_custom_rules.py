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


def without_recording(function: Callable[[], Any]) -> Any:
    with mg.no_grad():
        return function()


def chosen(x: Any, run: Run, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
    if run is func.scan:
        return func.cond(x > 0.45, yes, no)
    return yes() if x > 0.45 else no()


def inner(rule: Rule, a: Any, run: Run, c: Any) -> Any:
    return run(lambda d, z: (rule(d, a) * z, d), c, XS)[0]


def pulled(rule: Rule, a: Any, c: Any, x: Any) -> Any:
    out, pull = func.vjp(lambda c: rule(c, a), c)
    return 0.3 * out + pull(x)[0]


# The step of a loop with carry c over x, for a rule and a captured argument a.
BODIES: dict[str, Callable[..., tuple[Any, Any]]] = {
    "of the carry": lambda rule, a, run, c, x: (rule(c * a, x), c),
    "of a captured argument": lambda rule, a, run, c, x: (c + x, rule(a, x)),
    "of both": lambda rule, a, run, c, x: (rule(c, a) + x, rule(a, c)),
    "of constants": lambda rule, a, run, c, x: (c * a + rule(x, x), c),
    "of one of two that moves": lambda rule, a, run, c, x: (c / 2 + rule(a, mg.asarray(0.4)), c),
    "of what starts to move": lambda rule, a, run, c, x: (rule(c, x) * a, c),
    "of a detached carry": lambda rule, a, run, c, x: (c * a + rule(c.detach(), a), c),
    "in no_grad": lambda rule, a, run, c, x: (c * a + without_recording(lambda: rule(c, a)) * x, c),
    "if recorded": lambda rule, a, run, c, x: (rule(c, a) if mg.is_grad_enabled() else c, c),
    "in a loop": lambda rule, a, run, c, x: (inner(rule, a, run, c * x), c),
    "in a branch": lambda rule, a, run, c, x: (
        chosen(x, run, lambda: rule(c, a), lambda: c * a),
        c,
    ),
    "in a checkpoint": lambda rule, a, run, c, x: (func.checkpoint(lambda c: rule(c, a) * x)(c), c),
    "in a checkpoint of both": lambda rule, a, run, c, x: (
        func.checkpoint(lambda c, held, x: rule(c, held["a"]) * x)(c, {"a": a}, x=x),
        c,
    ),
    "in a vjp": lambda rule, a, run, c, x: (pulled(rule, a, c, x), c),
}


def loss(body: str, rule: Rule, a: Any, run: Run) -> Any:
    """The first carry moves, since one that moves at some step moves at all of them in a loop, which
    a Function may ask for.
    """
    start = START if body == "of what starts to move" else 0.3 * a
    c, ys = run(lambda c, x: BODIES[body](rule, a, run, c, x), start, XS)
    return c + mg.sum(ys)


def outcome(order: Callable[[Any], Any], function: Callable[[Any], Any]) -> Any:
    """The derivative, or the class of what it raises: no rule covers every order."""
    try:
        return order(function)
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("body", BODIES)
def test_rules_count_at_each_order(body: str, rule: str) -> None:
    numbers = 0
    for name, order in ORDERS.items():
        ours, theirs = (
            outcome(order, lambda a, run=run: loss(body, RULES[rule], a, run))
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
        func.grad(lambda a: run(lambda c, x: (c * a + slope(c), None), 0.3 * a, XS)[0])(START)
    a = mg.tensor(START).requires_grad_()
    out = run(lambda c, x: (c * a + slope(c), None), 0.3 * a, XS)[0]
    with pytest.raises(mg.errors.GradientError, match="inputs and outputs only"):
        out.backward()
