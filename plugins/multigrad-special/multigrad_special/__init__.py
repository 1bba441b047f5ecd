"""Special functions for multigrad, under `xp.special`: erf, erfc, gammaln, digamma, polygamma and expit.

This module is the plugin. It is imported when multigrad looks for its plugins, so it imports no array library: forwards
are named as "module:function" and imported when a backend first runs them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import multigrad as mg

SLOPE = 2 / math.sqrt(math.pi)


@mg.hookimpl
def multigrad_operations() -> Iterable[mg.registry.Op]:
    """Declare the six operations. Their second derivatives come from these same rules, which call each other."""
    return [
        _declare("erf(x, /)", "The error function of each element.",
                 x=lambda xp, x: SLOPE * xp.exp(-x * x)),
        _declare("erfc(x, /)", "1 - erf(x), accurate where erf(x) is near 1.",
                 x=lambda xp, x: -SLOPE * xp.exp(-x * x)),
        _declare("gammaln(x, /)", "The logarithm of the absolute value of the gamma function of each element.",
                 x=lambda xp, x: xp.special.digamma(x)),
        _declare("digamma(x, /)", "The derivative of the logarithm of the gamma function at each element.",
                 x=lambda xp, x: xp.special.polygamma(1, x)),
        # SciPy's turns float32 into float64; JAX's is wrong below 0, even in its sign, and cupyx's is written as SciPy's.
        _declare("polygamma(n: plain, x, /)", "The derivative of order n of digamma at each element; n is an int, 0 or more.",
                 numpy="multigrad_special.on_numpy:polygamma", jax="multigrad_special.on_jax:polygamma", cupy=None,
                 x=lambda xp, n, x: xp.special.polygamma(n + 1, x)),
        _declare("expit(x, /)", "The logistic function 1 / (1 + exp(-x)) of each element.",
                 x=lambda xp, ans: ans * (1 - ans)),
    ]


def _declare(signature: str, doc: str, **rules_and_forwards: Any) -> mg.registry.Op:
    """Declare `special.<signature>`: SciPy's function on each backend that has one, and ours (standard.py) on any other."""
    name = signature.partition("(")[0]
    forward = {"numpy": f"scipy.special:{name}", "jax": f"jax.scipy.special:{name}", "cupy": f"cupyx.scipy.special:{name}"}
    forward |= {backend: rules_and_forwards.pop(backend) for backend in tuple(forward) if backend in rules_and_forwards}
    forward["*"] = f"multigrad_special.standard:{name}"
    return mg.registry.elementwise(f"special.{signature}", doc=doc, chapter="special",
                                   forward={b: f for b, f in forward.items() if f}, **rules_and_forwards)


@mg.hookimpl
def multigrad_samples() -> Mapping[str, str]:
    """Name the generator of each operation's samples; the conformance suite imports it when it runs."""
    names = ("erf", "erfc", "gammaln", "digamma", "polygamma", "expit")
    return {f"special.{name}": f"multigrad_special.samples:{name}" for name in names}
