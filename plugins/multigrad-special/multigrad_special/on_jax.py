"""Where JAX's functions are not what SciPy's are, or are not there: ours, compiled."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial, wraps
from typing import Any

import jax
import jax.numpy as jnp

from . import standard
from .standard.bessel import MAX_BESSEL
from .standard.common import MAX_ORDER


class _Namespace:
    """jax.numpy as the forms of `standard` want it. A constant without a device goes where its operands are."""

    __name__ = "jax"
    device_of = staticmethod(lambda x: None)

    def __getattr__(self, name: str) -> Any:
        return getattr(jnp, name)


def _compiled(function: Callable[..., Any], most: int | None = None) -> Callable[..., Any]:
    """A form of `standard`, compiled; where `most` is given, its first argument is an order up to that."""
    inner: Callable[..., Any]
    if most is None:
        inner = jax.jit(partial(function, _Namespace()))
        return inner
    inner = jax.jit(partial(function, _Namespace()), static_argnums=0)

    @wraps(function)
    def outer(n: Any, x: Any, /) -> Any:
        return inner(standard.order(n, function.__name__, most), x)

    return outer


_of_order = jax.jit(partial(standard.polygamma, _Namespace()), static_argnums=0)
_of_orders = jax.jit(partial(standard.polygamma, _Namespace()))
zeta_derivative = jax.jit(partial(standard.zeta_derivative, _Namespace()), static_argnums=0)


def polygamma(n: Any, x: Any, /) -> Any:
    """JAX's (seen in 0.10.2) gives -0.01 for 15.07 at n=1, x=-100.3, and nan at 0 for even n and at infinity."""
    return _of_order(n, x) if isinstance(n, int) and 0 <= n <= MAX_ORDER else _of_orders(n, x)


def _own(name: str) -> Callable[..., Any]:
    """JAX's function for the two dtypes that it is for, ours for narrow and for complex ones."""
    own, form = getattr(jax.scipy.special, name), _compiled(getattr(standard, name))

    def call(x: Any, /) -> Any:
        return (own if jnp.result_type(x) in (jnp.float32, jnp.float64) else form)(x)

    call.__name__ = name
    return call


erf, erfc, ndtr = _own("erf"), _own("erfc"), _own("ndtr")

# What JAX lacks.
iv = _compiled(standard.iv, MAX_BESSEL)
ive = _compiled(standard.ive, MAX_BESSEL)


@cache
def __getattr__(name: str) -> Any:
    """Any other form of `standard`, compiled when it is first asked for."""
    function = getattr(standard, name, None)
    if name.startswith("_") or not callable(function):
        raise AttributeError(name)
    return _compiled(function)
