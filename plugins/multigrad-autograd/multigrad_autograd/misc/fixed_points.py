"""The fixed point of an iteration, differentiable with respect to the iteration's parameters.

At x = f(a, x) the implicit function theorem gives dx = (1 - f_x)^-1 f_a da. A cotangent g of x is
pulled back by solving w = g + f_x^T w, itself a fixed point, and then computing f_a^T w: B.
Christianson, "Reverse accumulation and attractive fixed points", 1994.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from multigrad import func as transformations

from ..boxes import entered, has_box, known, mapped, rebinding
from ..rules import with_rules

__all__ = ["fixed_point"]

Function = Callable[..., Any]


@with_rules
def fixed_point(f: Function, a: Any, x0: Any, distance: Function, tol: Any) -> Any:
    """Return the x with x = f(a)(x), by iteration from x0.

    The iteration ends when the `distance` of two successive values is at most `tol`.

    f         a function of the parameters `a` that returns the function to iterate
    a, x0     arrays, numbers, or nested containers of them
    distance  a function of two successive values that returns a number

    The result is differentiable with respect to `a`, to any order. It is independent of x0, so the
    derivative with respect to x0 is zero.
    """
    if not has_box(a) and not has_box(x0):
        return _iterated(f, distance, tol, a, x0)
    return _solve(f, distance, tol, entered(a), entered(x0))


def _iterated(f: Function, distance: Function, tol: Any, a: Any, x0: Any) -> Any:
    step = f(known(a))
    x0 = known(x0)
    x, before = step(x0), x0
    while distance(x, before) > tol:
        x, before = step(x), x
    return x


_solve = transformations.custom_vjp(_iterated, nondiff_argnums=(0, 1, 2))


def _kept(f: Function, distance: Function, tol: Any, a: Any, x0: Any) -> tuple[Any, Any]:
    x = _solve(f, distance, tol, a, x0)
    return x, (a, x)


def _gradients(f: Function, distance: Function, tol: Any, kept: Any, g: Any) -> tuple[Any, None]:
    a, x = kept

    def backwards(given: Any) -> Function:
        a, x, g = given
        _, pullback = transformations.vjp(rebinding(lambda y: f(known(a))(y)), x)
        if getattr(x, "shape", None) == ():  # x is one number, so f_x is one number, computed once
            slope = pullback(x * 0.0 + 1.0)[0]
            return lambda w: slope * w + g
        return lambda w: mapped(lambda y, z: y + z, pullback(w)[0], g)

    w = fixed_point(backwards, (a, x, g), mapped(lambda y: 0.0 * y, g), distance, tol)
    _, by_a = transformations.vjp(rebinding(lambda b: f(b)(known(x))), a)
    return by_a(w)[0], None


_solve.defvjp(_kept, _gradients)
