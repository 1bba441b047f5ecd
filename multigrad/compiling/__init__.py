"""Functions that are recorded once and run as programs from then on: what `multigrad.func.compile`
is made of.
"""

from __future__ import annotations

from .compiled import Compiled

__all__ = ["Compiled"]
