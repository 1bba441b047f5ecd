"""Exponential and elliptic integrals, the dilogarithm, hyp1f1, Legendre functions."""

from __future__ import annotations

__all__: list[str] = []
