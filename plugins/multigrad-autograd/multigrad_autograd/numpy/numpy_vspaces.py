"""The vector spaces of arrays, under the module in which HIPS autograd has them."""

from ..spaces import ArrayVSpace, ComplexArrayVSpace

__all__ = ["ArrayVSpace", "ComplexArrayVSpace"]
