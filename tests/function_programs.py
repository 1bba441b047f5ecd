"""Small Functions that tests share, and makers of Functions for every side of the parity tests (see
parity/conftest.py).
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import multigrad as mg


def enabled(side):
    return (sys.modules["torch"] if side.name == "torch" else mg).is_grad_enabled()


def leaf(side, *data):
    return side.tensor(list(data), requires_grad=True)


def make(side, forward, backward=lambda ctx, *g: g[0], **more):
    """A Function named MyF."""
    members = {"forward": staticmethod(forward), "backward": staticmethod(backward), **more}
    return type("MyF", (side.autograd.Function,), members)


def same(side, t, expected):
    np.testing.assert_allclose(side.values(t), np.asarray(expected, dtype=np.float64), rtol=1e-12)


class Square(mg.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return 2 * ctx.saved_tensors[0] * g


class Double(mg.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2.0

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2.0


class OnceSquare(mg.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @mg.autograd.function.once_differentiable
    def backward(ctx, g):
        return g * 2 * ctx.saved_tensors[0]


ONCE = "trying to differentiate twice a function that was marked with @once_differentiable"


def exp_function(side):
    def forward(ctx, x):
        y = side.xp.exp(x)
        ctx.save_for_backward(y)
        return y

    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y

    return make(side, forward, backward)


def square_function(side):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x * 2

    return make(side, forward, backward)
