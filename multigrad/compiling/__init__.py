"""The implementation of `multigrad.func.compile`: functions that are recorded and replayed."""

from __future__ import annotations

from .compiled import Compiled

__all__ = ["Compiled"]
