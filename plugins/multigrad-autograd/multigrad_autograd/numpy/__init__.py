"""NumPy for programs with boxes: HIPS autograd's `autograd.numpy`.

Every function of NumPy is here. On raw arrays it is NumPy's. On boxes it is that of multigrad where
there is one; what has no derivative is called on the values; what multigrad lacks raises when a
derivative would be lost.
"""

from typing import Any

from .table import NUMPY

globals().update(NUMPY)

from . import fft, linalg, numpy_wrapper, random  # noqa: E402  under the names that NumPy has for them

__all__ = ["fft", "linalg", "numpy_wrapper", "random"]


def __getattr__(name: str) -> Any:
    return getattr(numpy_wrapper, name)
