"""The declaration of an operation of this plugin.

It has a name, the place of each library's forward, and partial derivatives.
"""

from __future__ import annotations

from typing import Any

import multigrad as mg

STANDARD = "multigrad_special.standard:"
"""Forms in the Array API standard, for any library without a better function."""
ON_NUMPY = "multigrad_special.on_numpy:"
"""SciPy's functions, in the dtype of their arguments."""
ON_JAX = "multigrad_special.on_jax:"
"""The forms of the standard, compiled."""
OF_JAX = "multigrad_special.of_jax:"
"""JAX's functions."""
CALLS_SCIPY = "multigrad_special.on_jax_by_scipy:"
"""SciPy's functions on the CPU, called from JAX."""
OF_CUPY = "cupyx.scipy.special:"


def declare(
    signature: str,
    doc: str,
    *,
    numpy: str | None = ON_NUMPY,
    jax: str | None = ON_JAX,
    cupy: str | None = OF_CUPY,
    **partials: Any,
) -> mg.registry.Op:
    """Declare the elementwise operation `special.<signature>`.

    `numpy`, `jax` and `cupy` name the forward on that library: "module:" for a function of the
    operation's name, "module:name" for another one, or None for the form in `standard`, which all
    other libraries use.
    """
    name = signature.partition("(")[0]
    forward = {
        backend: f"{place}{name}" if place.endswith(":") else place
        for backend, place in (("numpy", numpy), ("jax", jax), ("cupy", cupy), ("*", STANDARD))
        if place is not None
    }
    return mg.registry.elementwise(
        f"special.{signature}", doc=doc, chapter="special", forward=forward, **partials
    )
