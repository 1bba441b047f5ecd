"""NumPy for programs with boxes: HIPS autograd's `autograd.numpy`.

It has every function of NumPy. On raw arrays it calls NumPy's function. On boxes it calls
multigrad's counterpart if there is one. A function without a derivative is called on the values. A
function that multigrad lacks raises an error if a derivative would be lost.
"""

from typing import Any

from .table import NUMPY

globals().update(NUMPY)

from . import fft, linalg, numpy_wrapper, random  # noqa: E402  under the names that NumPy has for them

__all__ = ["fft", "linalg", "numpy_wrapper", "random"]


def __getattr__(name: str) -> Any:
    return getattr(numpy_wrapper, name)
