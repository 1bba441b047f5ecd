"""How an operation of this plugin is declared: its name, where each library's forward is, its partial derivatives."""

from __future__ import annotations

from typing import Any

import multigrad as mg

STANDARD = "multigrad_special.standard:"
"""The forms of the Array API standard, for any library that has nothing better."""
ON_NUMPY = "multigrad_special.on_numpy:"
ON_JAX = "multigrad_special.on_jax:"
"""A form of `standard`, compiled: `on_jax:<name>` is there for each."""
CALLS_SCIPY = "multigrad_special.on_jax_by_scipy:"
"""SciPy's function on the CPU, called from JAX: `on_jax_by_scipy:<name>` is there for each function of scipy.special."""


def declare(signature: str, doc: str, *, numpy: str | None = "", jax: str | None = "", cupy: str | None = "", standard: bool = True,
            **partials: Any) -> mg.registry.Op:
    """Declare the elementwise operation `special.<signature>`.

    Its forward on NumPy, JAX and CuPy is the function of that name in the library's own module of special functions, unless one is
    given here; None stands for the form in `standard`. Any other library has that form, or with `standard=False` none.
    """
    name = signature.partition("(")[0]
    own = {"numpy": (numpy, f"scipy.special:{name}"), "jax": (jax, f"jax.scipy.special:{name}"), "cupy": (cupy, f"cupyx.scipy.special:{name}")}
    forward = {backend: given or default for backend, (given, default) in own.items() if given is not None}
    if standard:
        forward["*"] = STANDARD + name
    return mg.registry.elementwise(f"special.{signature}", doc=doc, chapter="special", forward=forward, **partials)
