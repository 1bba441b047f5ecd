"""The operations and their rules, one module for each family of functions.

A rule's parameter names say what it saves; a comment beside it says what it does at a singular
point.

The names are SciPy's, so SciPy finds them: with SCIPY_ARRAY_API=1, `scipy.special.erf(tensor)` asks
the namespace of its argument for `special.erf`.
"""

from __future__ import annotations

import multigrad as mg

from . import (
    bessel,
    elementary,
    elliptic,
    entropy,
    error,
    gamma,
    incomplete_beta,
    incomplete_gamma,
    integrals,
    zeta,
)

FAMILIES = (
    bessel,
    elementary,
    elliptic,
    entropy,
    error,
    gamma,
    incomplete_beta,
    incomplete_gamma,
    integrals,
    zeta,
)


def declarations() -> list[mg.registry.Op]:
    """Declare all operations, family by family."""
    return [op for family in FAMILIES for op in family.declarations()]
