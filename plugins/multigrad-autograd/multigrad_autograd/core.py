"""Derivatives of functions of one argument, in both modes, with HIPS's complex gradients.

HIPS's `grad` of a complex argument is the conjugate of multigrad's, so the gradient of a
holomorphic function is its derivative. Cotangents are conjugated on the way in, and gradients on
the way out. Rules written by users see HIPS's convention as well.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from multigrad import Tensor, func
from multigrad.extend import entry, level_of, rebind_augmented

from .boxes import as_array, conjugate, entered, is_box, left, level, mapped
from .rules import (
    JVPNode,
    VJPNode,
    def_linear,
    defjvp,
    defjvp_argnum,
    defjvp_argnums,
    defvjp,
    defvjp_argnum,
    defvjp_argnums,
    primitive_jvps,
    primitive_vjps,
    primitive_with_deprecation_warnings,
)
from .rules import primitive_with_deprecation_warnings as primitive
from .spaces import SparseObject, VSpace, vspace

__all__ = [
    "JVPNode",
    "SparseObject",
    "VJPNode",
    "VSpace",
    "def_linear",
    "defjvp",
    "defjvp_argnum",
    "defjvp_argnums",
    "defvjp",
    "defvjp_argnum",
    "defvjp_argnums",
    "make_jvp",
    "make_vjp",
    "primitive",
    "primitive_jvps",
    "primitive_vjps",
    "primitive_with_deprecation_warnings",
    "vspace",
]

Function = Callable[..., Any]

_FLOAT = np.dtype(np.float64)
INDEPENDENT = "Output seems independent of input."


@entry
def make_vjp(fun: Function, x: Any) -> tuple[Function, Any]:
    """Call `fun(x)`, and return (vjp, output).

    `vjp(g)` maps a cotangent of the output to one of `x`. It can be called any number of times.
    """
    traced = Traced(fun)
    out, pullback = func.vjp(traced, entered(x))
    if not traced.depends:
        warnings.warn(INDEPENDENT, stacklevel=3)
        return lambda g: vspace(x).zeros(), left(out)

    def vjp(g: Any) -> Any:
        return left(conjugate(pullback(cotangent(g, out))[0]))

    return vjp, left(out)


@entry
def make_jvp(fun: Function, x: Any) -> Function:
    """Return `jvp(g)`, which calls `fun(x)`.

    It returns the output, and the derivative of the output along `g`.
    """

    Traced(fun)  # which takes functions alone

    @entry
    def jvp(g: Any) -> tuple[Any, Any]:
        traced = Traced(fun)
        primal = entered(x)
        out, moved = func.jvp(traced, (primal,), (tangent(g, primal),))
        if not traced.depends:
            warnings.warn(INDEPENDENT, stacklevel=3)
        return left(out), left(moved)

    return jvp


def value_and_grad(name: str, fun: Function, x: Any) -> tuple[Any, Any]:
    """Return the value of `fun(x)`, which must be one real number, and its gradient.

    `name` is the name of the operator in errors.
    """
    traced = Traced(fun)

    def number(x: Any) -> Any:
        out = traced(x)
        if (type(out) is not Tensor or out.dtype is not _FLOAT or out.shape) and (
            space := vspace(out)
        ).size != 1:
            raise TypeError(
                f"{name} only applies to real scalar-output functions, but the output has the "
                f"space {space}. Try jacobian, elementwise_grad or holomorphic_grad."
            )
        return out

    out, gradient = func.value_and_grad(number)(entered(x))
    if not traced.depends:
        warnings.warn(INDEPENDENT, stacklevel=3)
    return left(out), left(conjugate(gradient))


class Traced:
    """A function of boxes, protected from writes by `y += v`.

    It records whether its output has at least the level of its input.
    """

    __slots__ = ("depends", "function")

    def __init__(self, function: Function) -> None:
        if not callable(function):
            raise TypeError(
                f"multigrad_autograd: expected a function, not {type(function).__name__}"
            )
        self.function = function
        self.depends = False

    def __call__(self, x: Any) -> Any:
        rebind_augmented()
        out = self.function(x)
        if is_box(out) and is_box(x):
            self.depends = level_of(out) >= level_of(x)
            return out
        self.depends = level(out) >= level(x) > 0
        return mapped(_array, out)


def _array(x: Any) -> Any:
    return np.asarray(x) if isinstance(x, (bool, int, float, complex, np.generic)) else x


def cotangent(g: Any, out: Any) -> Any:
    """Return a cotangent in multigrad's form.

    It has the structure, shapes and dtypes of the output, and is conjugated.
    """
    return conjugate(tangent(g, out))


def tangent(g: Any, like: Any) -> Any:
    if isinstance(g, SparseObject):
        g = g.dense()
    return mapped(_fitting, like, g) if isinstance(like, (dict, list, tuple)) else _fitting(like, g)


def _fitting(like: Any, g: Any) -> Any:
    if is_box(g):
        return g
    g = as_array(g)
    if not hasattr(like, "dtype"):
        like = as_array(like)
    if g.dtype != like.dtype and np.can_cast(g.dtype, like.dtype, "same_kind"):
        g = g.astype(like.dtype)
    return g if g.shape == like.shape else np.broadcast_to(g, like.shape)
