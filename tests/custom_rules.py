"""Functions with custom_vjp and custom_jvp, and the derivatives that are taken of them."""

from __future__ import annotations

import pytest
from forward_programs import along

from multigrad import func


def sine_vjp(xp):
    """sin(x) y. What bwd needs of x is computed by fwd, so its own derivative is that of the text
    of fwd.
    """

    @func.custom_vjp
    def sine(x, y):
        return xp.sin(x) * y

    def fwd(x, y):
        return sine(x, y), (xp.cos(x), xp.sin(x), y)

    def bwd(residuals, g):
        c, s, y = residuals
        return g * c * y, g * s

    sine.defvjp(fwd, bwd)
    return sine


def sine_jvp(xp):
    @func.custom_jvp
    def sine(x, y):
        return xp.sin(x) * y

    @sine.defjvp
    def rule(primals, tangents):
        (x, y), (a, b) = primals, tangents
        return sine(x, y), xp.cos(x) * y * a + xp.sin(x) * b

    return sine


def sine_jvps(xp):
    sine = func.custom_jvp(lambda x, y: xp.sin(x) * y)
    sine.defjvps(lambda t, ans, x, y: xp.cos(x) * y * t, lambda t, ans, x, y: xp.sin(x) * t)
    return sine


def cube_vjp(xp):
    """x³, whose derivative is said to be 6 x², that of 6 x² being what the text says, 12 x."""

    @func.custom_vjp
    def cube(x):
        return x * x * x

    cube.defvjp(lambda x: (cube(x), x), lambda x, g: (6 * x * x * g,))
    return cube


def cube_jvp(xp):
    @func.custom_jvp
    def cube(x):
        return x * x * x

    cube.defjvp(
        lambda primals, tangents: (cube(*primals), 6 * primals[0] * primals[0] * tangents[0])
    )
    return cube


BOTH = pytest.mark.parametrize("which", [0, 1], ids=["vjp", "jvp"])


D = {"f": along, "r": lambda f, xp: func.grad(f)}
