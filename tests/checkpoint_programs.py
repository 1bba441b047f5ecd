"""What the tests of checkpoint share."""

from __future__ import annotations

import numpy as np

X = [0.4, 1.3]


def leaf(xp, data=X):
    return xp.asarray(np.asarray(data, dtype="float64"), requires_grad=True)


def total(f, xp):
    return lambda *args: xp.sum(f(*args))


def body(xp):
    """Operations that save operands, outputs, several of each, and nothing."""

    def f(x):
        y = xp.exp(x) * xp.sin(x)
        z = xp.stack([y, x * 3 + 1])
        return xp.tanh(z[0, ...] / z[1, ...]) + x

    return f


class Counted:
    """A function that counts its runs, and how many got to their end."""

    def __init__(self, f):
        self.f = f
        self.begun = self.ended = 0

    def __call__(self, *args, **kwargs):
        self.begun += 1
        result = self.f(*args, **kwargs)
        self.ended += 1
        return result
