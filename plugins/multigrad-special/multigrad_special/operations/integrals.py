"""Exponential and elliptic integrals, the dilogarithm, the confluent hypergeometric function, Legendre functions."""

from __future__ import annotations

import multigrad as mg


def declarations() -> list[mg.registry.Op]:
    return []
