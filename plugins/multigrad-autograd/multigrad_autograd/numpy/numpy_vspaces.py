"""The vector spaces of arrays, in their module of HIPS autograd."""

from ..spaces import ArrayVSpace, ComplexArrayVSpace

__all__ = ["ArrayVSpace", "ComplexArrayVSpace"]
