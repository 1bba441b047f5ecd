"""Exponential integrals and their kin in mpmath, and the points at which they are tried, further out than their samples."""

from __future__ import annotations

from typing import Any

from .grids import Points

FUNCTIONS: dict[str, Any] = {}

POINTS: dict[str, Points] = {}
