"""Compiled forms for JAX, where its functions differ from SciPy's or do not exist."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from numbers import Integral
from typing import Any

import jax
import jax.numpy as jnp

from . import on_jax_by_scipy, standard
from .standard.common import MAX_ORDER, Namespace

JAX = Namespace("jax", jnp)


OF_COMPLEX = frozenset(("exp1", "expi", "hyp1f1", "iv", "jv", "kv", "kve", "spence", "yv"))
"""Functions for which complex arrays use SciPy; the standard forms are for real arrays."""


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """A form of `standard`, compiled."""
    compiled: Callable[..., Any] = jax.jit(partial(function, JAX))
    return compiled


@cache
def _form(name: str) -> Callable[..., Any]:
    return _compiled(getattr(standard, name))


_polygamma = jax.jit(partial(standard.polygamma, JAX), static_argnums=0)
_polygamma_of_orders = _compiled(standard.polygamma)
zeta_derivative = jax.jit(partial(standard.zeta_derivative, JAX), static_argnums=0)


def polygamma(n: Any, x: Any, /) -> Any:
    """polygamma without the errors of JAX's function (seen in 0.10.2).

    JAX's function gives -0.01 instead of 15.07 at n=1, x=-100.3, and nan at x = 0 for even n and at
    infinity.
    """
    return (
        _polygamma(int(n), x)
        if isinstance(n, Integral) and 0 <= int(n) <= MAX_ORDER
        else _polygamma_of_orders(n, x)
    )


def _own(name: str) -> Callable[..., Any]:
    """JAX's function for float32 and float64, else the form of `standard`."""
    own, form = getattr(jax.scipy.special, name), _compiled(getattr(standard, name))

    def call(x: Any, /) -> Any:
        return (own if jnp.result_type(x) in (jnp.float32, jnp.float64) else form)(x)

    call.__name__ = name
    return call


erf, erfc, ndtr = _own("erf"), _own("erfc"), _own("ndtr")


def _of_order(name: str, v: float, general: str) -> Callable[[Any], Any]:
    """The function `name`, which is `general` at the fixed order `v`.

    It calls the compiled function that takes the order as an array, so one compilation serves all
    orders that derivatives need.
    """

    def call(x: Any, /) -> Any:
        if jnp.iscomplexobj(x):
            raise standard.refuse(name, "jax", x.dtype)
        return _form(general)(jnp.full_like(x, v), x)

    call.__name__ = name
    return call


j0, j1 = _of_order("j0", 0.0, "jv"), _of_order("j1", 1.0, "jv")
y0, y1 = _of_order("y0", 0.0, "yn"), _of_order("y1", 1.0, "yn")
k0, k1 = _of_order("k0", 0.0, "kv"), _of_order("k1", 1.0, "kv")
k0e, k1e = _of_order("k0e", 0.0, "kve"), _of_order("k1e", 1.0, "kve")


@cache
def __getattr__(name: str) -> Any:
    """Any other form of `standard`, compiled at its first use."""
    function = getattr(standard, name, None)
    if name.startswith("_") or not callable(function):
        raise AttributeError(name)
    form = _form(name)
    if name not in OF_COMPLEX:
        return form
    return lambda *given: (
        getattr(on_jax_by_scipy, name) if any(map(jnp.iscomplexobj, given)) else form
    )(*given)
