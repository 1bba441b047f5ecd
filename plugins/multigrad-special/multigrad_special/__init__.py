"""Special functions for multigrad, under `xp.special`: error functions, gamma and beta, entropies,
distributions, Bessel.

This module is the plugin. It is imported when multigrad looks for its plugins, so it imports no
array library: forwards are named as "module:function" and imported when a backend first runs them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import multigrad as mg

from .operations import declarations

MULTIGRAD_API = 1  # the version of multigrad's API for plugins that this one needs


@mg.hookimpl
def multigrad_operations() -> Iterable[mg.registry.Op]:
    """Declare the operations.

    Their second derivatives come from these same rules, which call each other.
    """
    return declarations()


@mg.hookimpl
def multigrad_samples() -> Mapping[str, str]:
    """Name the generator of each operation's samples; the conformance suite imports it when it
    runs.
    """
    names = [name for name in mg.registry.OPS if name.startswith("special.")]
    return {name: f"multigrad_special.samples:{name.removeprefix('special.')}" for name in names}
