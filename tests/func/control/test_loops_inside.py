"""What bodies of loops may do inside: transformations, passes, no_grad, at each order of
derivatives. Each as the unrolled loop does.
"""

from __future__ import annotations

from typing import Any

import pytest
from loop_programs import ORDERS, START, XS, Run, near, unrolled

import multigrad as mg
from multigrad import func


def kept(function: Any) -> Any:
    with mg.no_grad():
        return function()


def no_grad(a: Any, run: Run) -> Any:
    def body(c: Any, x: Any) -> Any:
        k = kept(lambda: mg.sin(c * a))
        return c * a * k + x, c.detach() * a * k

    c, ys = run(body, START, XS)
    return c + mg.sum(ys)


def a_loop_in_no_grad(a: Any, run: Run) -> Any:
    return run(
        lambda c, x: (
            c * a * kept(lambda: run(lambda d, z: (mg.sin(d * a + z), None), c * a, XS)[0]) + x,
            None,
        ),
        START,
        XS,
    )[0]


def enable_grad_in_no_grad(a: Any, run: Run) -> Any:
    def body(c: Any, x: Any) -> Any:
        with mg.no_grad():
            k = mg.sin(c * a)
            with mg.enable_grad():
                k = k * a
        return c * a * k + x, None

    return run(body, START, XS)[0]


def hessian(a: Any, run: Run) -> Any:
    return run(
        lambda c, x: (c - mg.sum(func.hessian(lambda c: mg.sum((c * a - x) ** 3) * 0.01)(c)), None),
        START,
        XS,
    )[0]


def captured_tangent(a: Any, run: Run) -> Any:
    return run(
        lambda c, x: (func.jvp(lambda v: mg.sin(v * c), (x,), (a,))[1] * 0.3, None), START, XS
    )[0]


def captured_cotangent(a: Any, run: Run) -> Any:
    return run(lambda c, x: (func.vjp(lambda v: mg.sin(v * c), x)[1](a)[0] * 0.3, None), START, XS)[
        0
    ]


def captured_grad_outputs(a: Any, run: Run) -> Any:
    def body(c: Any, x: Any) -> Any:
        leaf = mg.asarray(0.5, requires_grad=True)
        return c * mg.autograd.grad(leaf * leaf * x, [leaf], grad_outputs=a, create_graph=True)[
            0
        ] * 0.3, None

    return run(body, START, XS)[0]


def tape(a: Any, run: Run) -> Any:
    def body(c: Any, x: Any) -> Any:
        leaf = c.detach().requires_grad_()
        return c * a - 0.1 * mg.autograd.grad(leaf * leaf * x, [leaf])[0], None

    return run(body, START, XS)[0]


@pytest.mark.parametrize(
    "loss",
    [
        no_grad,
        a_loop_in_no_grad,
        enable_grad_in_no_grad,
        hessian,
        captured_tangent,
        captured_cotangent,
        captured_grad_outputs,
        tape,
    ],
    ids=lambda loss: loss.__name__,
)
def test_at_each_order_as_the_unrolled_loop(loss: Any) -> None:
    for name, order in ORDERS.items():
        if loss is tape and "jvp" in name:
            continue  # a leaf that requires grad is of the base level, which a Dual is not
        ours, theirs = (order(lambda a, run=run: loss(a, run)) for run in (func.scan, unrolled))
        near(ours, theirs)
