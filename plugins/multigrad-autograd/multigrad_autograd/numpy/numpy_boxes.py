"""`ArrayBox`, in its module of HIPS autograd: every array of multigrad is an instance of it."""

from ..tracer import Box as ArrayBox

__all__ = ["ArrayBox"]
