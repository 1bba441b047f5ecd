"""Where JAX's functions are not what SciPy's are, or are not there: ours, compiled."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial, wraps
from typing import Any

import jax
import jax.numpy as jnp

from . import standard
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


polygamma = _compiled(standard.polygamma, MAX_ORDER)
"""JAX's (seen in 0.10.2) gives -0.01 for 15.07 at n=1, x=-100.3, and nan at 0 for even n and at infinity."""

erfcx = _compiled(standard.erfcx)
"""JAX's is as young as 2025."""

log_ndtr = _compiled(standard.log_ndtr)
"""JAX's has 10 digits below -20."""

beta = _compiled(standard.beta)
betaln = _compiled(standard.betaln)
"""JAX's have 8 digits where one argument is large."""


def _of_order(v: float, name: str) -> Callable[[Any], Any]:
    """The function of one order, by that of any order: it is compiled once for all that differentiating asks for."""
    return lambda x: __getattr__(name)(jnp.full_like(x, v), x)


j0, j1 = _of_order(0.0, "jv"), _of_order(1.0, "jv")
y0, y1 = _of_order(0.0, "yn"), _of_order(1.0, "yn")
k0, k1 = _of_order(0.0, "kv"), _of_order(1.0, "kv")
k0e, k1e = _of_order(0.0, "kve"), _of_order(1.0, "kve")


@cache
def __getattr__(name: str) -> Any:
    """Any other form of `standard`, compiled when it is first asked for."""
    function = getattr(standard, name, None)
    if name.startswith("_") or not callable(function):
        raise AttributeError(name)
    return _compiled(function)
