"""Special functions for multigrad, under `xp.special`.

There are error functions, gamma and beta functions, entropies, distributions, and Bessel functions.

This module is the plugin. multigrad imports it when it discovers plugins, so it imports no array
library. Forwards are named as "module:function" and imported when a backend first runs them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import multigrad as mg

from .operations import declarations

MULTIGRAD_API = 1  # the version of multigrad's API for plugins that this plugin needs


@mg.hookimpl
def multigrad_operations() -> Iterable[mg.registry.Op]:
    """Declare the operations.

    The rules call these same operations, which gives second derivatives.
    """
    return declarations()


@mg.hookimpl
def multigrad_samples() -> Mapping[str, str]:
    """Name the generator of each operation's samples; the suite imports it when it runs."""
    names = [name for name in mg.registry.OPS if name.startswith("special.")]
    return {name: f"multigrad_special.samples:{name.removeprefix('special.')}" for name in names}
