"""SciPy's functions, called from JAX, where JAX lacks them and the standard form is not accurate.

They run on the CPU, also inside `jax.jit` and `jax.vmap`. Arrays of another device are copied to
the CPU and back.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special

from . import on_numpy
from .standard import refuse


@cache
def __getattr__(name: str) -> Callable[..., Any]:
    """`scipy.special.<name>` over JAX arrays, elementwise and in float64, as on NumPy.

    Integer arrays count as floating ones.
    """
    function = getattr(scipy.special, name, None)
    if name.startswith("_") or not callable(function):
        raise AttributeError(name)

    def call(*given: Any) -> Any:
        # a Python scalar beside a complex array arrives as a complex one
        given = tuple(x.real if isinstance(x, complex) and not x.imag else x for x in given)
        # all of one rank, so that under vmap the batch axis is the same in all
        arrays = jnp.broadcast_arrays(*given)
        dtype = _floating(jnp.result_type(*given))
        kinds = [jnp.iscomplexobj(x) for x in arrays]
        if any(kinds) and not any(
            all(c in "FD" for c, is_complex in zip(loop, kinds) if is_complex)
            for loop in function.types
        ):
            raise refuse(name, "jax", dtype)
        like = jax.ShapeDtypeStruct(arrays[0].shape, dtype)

        def on_host(*values: Any) -> Any:
            return np.asarray(getattr(on_numpy, name)(*map(_cast, values)), dtype=dtype)

        return jax.pure_callback(on_host, like, *arrays, vmap_method="broadcast_all")

    call.__name__ = name
    return call


def _floating(dtype: Any) -> Any:
    """The dtype of the result."""
    return dtype if jnp.issubdtype(dtype, jnp.inexact) else jnp.result_type(float)


def _cast(x: Any) -> Any:
    """Convert to 64 bits; integers stay integers, for functions that take an order."""
    x = np.asarray(x)
    return (
        x if np.issubdtype(x.dtype, np.integer) else x.astype(np.promote_types(x.dtype, np.float64))
    )
