"""NumPy for programs with boxes: HIPS autograd's `autograd.numpy`.

Every function of NumPy is here. On raw arrays it is NumPy's. On boxes it is that of multigrad where there is one; what has no derivative is called
on the values; what multigrad lacks raises when a derivative would be lost.
"""

from typing import Any

from . import numpy_wrapper
from .numpy_wrapper import array, numpy_version

globals().update({name: x for name, x in vars(numpy_wrapper).items() if name in vars(numpy_wrapper._np) or name == "make_diagonal"})

from . import fft, linalg, random  # noqa: E402  they take functions from here

__version__ = numpy_version
__all__ = ["array", "fft", "linalg", "random"]


def __getattr__(name: str) -> Any:
    return getattr(numpy_wrapper, name)
