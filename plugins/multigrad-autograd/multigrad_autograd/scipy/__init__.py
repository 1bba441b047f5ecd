"""SciPy's functions on raw arrays and on boxes: special, linalg, signal, integrate, stats."""

from __future__ import annotations

from . import integrate, linalg, signal, special, stats

__all__ = ["integrate", "linalg", "signal", "special", "stats"]
