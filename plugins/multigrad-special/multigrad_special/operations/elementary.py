"""Roots, powers, trigonometry in degrees, transformations of Box and Cox, losses: what is made of elementary functions."""

from __future__ import annotations

import multigrad as mg


def declarations() -> list[mg.registry.Op]:
    return []
