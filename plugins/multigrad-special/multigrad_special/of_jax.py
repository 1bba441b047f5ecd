"""JAX's functions that are forwards as they are, given arrays that they take."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp

from .standard import refuse

OF_COMPLEX = frozenset(("xlogy", "xlog1py"))


@cache
def __getattr__(name: str) -> Callable[..., Any]:
    """`jax.scipy.special.<name>`.

    Complex arrays raise TypeError unless the function takes them. Arrays of integers alone become
    floats of the default dtype: JAX's functions compute small integers in float32, and -x in their
    own dtype.
    """
    own = jax.nn.log_sigmoid if name == "log_expit" else getattr(jax.scipy.special, name, None)
    if name.startswith("_") or not callable(own):
        raise AttributeError(name)
    function: Callable[..., Any] = own

    def call(*given: Any) -> Any:
        arrays = [x for x in given if hasattr(x, "dtype")]
        for x in arrays:
            if jnp.iscomplexobj(x) and name not in OF_COMPLEX:
                raise refuse(name, "jax", x.dtype)
        if not any(jnp.issubdtype(x.dtype, jnp.inexact) for x in arrays):
            given = tuple(x.astype(float) if hasattr(x, "dtype") else x for x in given)
        return function(*given)

    call.__name__ = name
    return call
