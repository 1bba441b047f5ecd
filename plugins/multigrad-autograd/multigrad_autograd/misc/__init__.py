"""Things that are useful with derivatives."""

from .flatten import flatten

__all__ = ["flatten"]
