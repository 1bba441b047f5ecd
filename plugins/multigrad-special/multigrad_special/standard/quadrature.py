"""A double exponential rule for positive integrands that fall off from their end.

H. Takahasi and M. Mori, 1974.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

__all__: list[str] = []


def rule(xp: Any, width: Any) -> list[Any]:
    """Nodes and weights, on a new axis, for integrands that fall off over about `width`."""
    numbers = [xp.asarray(n, dtype=width.dtype, device=xp.device_of(width)) for n in nodes()]
    return [width[..., None] * n for n in numbers]


@lru_cache
def nodes() -> tuple[list[float], list[float]]:
    """Nodes v > 0 and weights: v = exp(t - exp(-t)), at equal steps of t."""
    step = 1 / 14
    ts = [step * k for k in range(-52, 60)]
    nodes = [math.exp(t - math.exp(-t)) for t in ts]
    return nodes, [step * (1 + math.exp(-t)) * v for t, v in zip(ts, nodes, strict=True)]
