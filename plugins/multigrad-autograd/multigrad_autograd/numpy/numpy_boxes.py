"""`ArrayBox`, which HIPS autograd has in this module: every array of multigrad is an instance of
it.
"""

from ..tracer import Box as ArrayBox

__all__ = ["ArrayBox"]
