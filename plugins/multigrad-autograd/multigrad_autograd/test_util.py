"""Checks of derivatives, of any order, against finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from multigrad.extend import entry

from .core import make_jvp, make_vjp
from .spaces import vspace
from .wrap_util import get_name, unary_to_nary

__all__ = [
    "check_equivalent",
    "check_grads",
    "check_jvp",
    "check_vjp",
    "combo_check",
    "make_numerical_jvp",
    "scalar_close",
]

Function = Callable[..., Any]

TOL = 1e-6
RTOL = 1e-6
EPS = 1e-6


@entry
def scalar_close(a: Any, b: Any) -> bool:
    """Return whether two numbers agree within 1e-6, absolutely or relative to their sum."""
    difference = abs(a - b)
    return bool(difference < TOL or difference / abs(a + b) < RTOL)


@entry
def make_numerical_jvp(f: Function, x: Any) -> Function:
    """Return the derivative of `f` along a vector, by central differences."""
    space = vspace(x)
    out = vspace(f(x))

    @entry
    def jvp(v: Any) -> Any:
        ahead, behind = (f(space.add(x, space.scalar_mul(v, step))) for step in (EPS / 2, -EPS / 2))
        return out.scalar_mul(out.add(ahead, out.scalar_mul(behind, -1.0)), 1.0 / EPS)

    return jvp


@entry
def check_vjp(f: Function, x: Any) -> None:
    """Compare the reverse-mode derivative of `f` with differences.

    It is tested along a random vector at either end. Raises AssertionError.
    """
    vjp, y = make_vjp(f, x)
    space, out = vspace(x), vspace(y)
    v, w = space.randn(), out.randn()
    gradient = space.covector(vjp(out.covector(w)))
    if vspace(gradient) != space:
        raise AssertionError(
            f"the gradient of {get_name(f)} has the space {vspace(gradient)}, its argument {space}"
        )
    exact = space.inner_prod(v, gradient)
    numeric = out.inner_prod(w, make_numerical_jvp(f, x)(v))
    if not scalar_close(numeric, exact):
        raise AssertionError(
            f"Derivative (VJP) check of {get_name(f)} failed with arg {x}:\n"
            f"analytic: {exact}\n"
            f"numeric:  {numeric}"
        )


@entry
def check_jvp(f: Function, x: Any) -> None:
    """Compare the forward-mode derivative of `f` with differences, along a random vector.

    Raises AssertionError.
    """
    v = vspace(x).randn()
    check_equivalent(make_jvp(f, x)(v)[1], make_numerical_jvp(f, x)(v))


@entry
def check_equivalent(x: Any, y: Any) -> None:
    """Raise AssertionError unless two values have one space and agree along a random vector."""
    space, other = vspace(x), vspace(y)
    if space != other:
        raise AssertionError(f"VSpace mismatch:\nx: {space}\ny: {other}")
    v = space.randn()
    if not scalar_close(space.inner_prod(x, v), space.inner_prod(y, v)):
        raise AssertionError(f"Value mismatch:\nx: {x}\ny: {y}")


@unary_to_nary
def check_grads(f: Function, x: Any, modes: Sequence[str] = ("fwd", "rev"), order: int = 2) -> None:
    """Check derivatives up to that order against differences.

    modes  "fwd", "rev" or both; each order checks both modes' derivatives of the previous order
    """
    if not set(modes) <= {"fwd", "rev"}:
        raise ValueError(f'check_grads: modes are "fwd" and "rev", not {list(modes)}')
    if "fwd" in modes:
        check_jvp(f, x)
        _check_next(f, x, vspace(x), modes, order, "jvp", lambda y, v: make_jvp(f, y)(v)[1])
    if "rev" in modes:
        check_vjp(f, x)
        _check_next(f, x, vspace(f(x)), modes, order, "vjp", lambda y, v: make_vjp(f, y)[0](v))


def _check_next(
    f: Function,
    x: Any,
    space: Any,
    modes: Sequence[str],
    order: int,
    kind: str,
    derivative: Function,
) -> None:
    if order > 1:
        derivative.__name__ = f"{kind}_{get_name(f)}"
        check_grads(derivative, (0, 1), modes, order=order - 1)(x, space.randn())


@entry
def combo_check(fun: Function, *args: Any, **kwargs: Any) -> Function:
    """Return a function that checks the gradients of `fun` for all combinations of choices.

    The call is `combo_check(fun, argnums, modes, order)(choices, ..., name=choices)`.
    """

    @entry
    def checked(*choices: Sequence[Any], **named: Sequence[Any]) -> None:
        for given in product(*choices):
            for values in product(*named.values()):
                check_grads(fun, *args, **kwargs)(*given, **dict(zip(named, values, strict=True)))

    return checked
