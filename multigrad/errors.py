"""The exceptions of multigrad.

Each is also the built-in exception that PyTorch or NumPy users would catch.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from types import FrameType

__all__ = [
    "ArrayTypeError",
    "BackendError",
    "BatchingError",
    "GradientError",
    "LeakError",
    "MissingRuleError",
    "MixedBackendsError",
    "MultigradError",
    "NoDeviceError",
    "RegistrationError",
]

PACKAGE = str(Path(__file__).parent) + os.sep
"""The prefix of the names of multigrad's own files."""
OWN = (PACKAGE, "<multigrad", "<pullback")
"""The prefixes of the names of multigrad's own and generated files."""


def nearest(name: str, names: Iterable[str]) -> str:
    """A hint such as " Did you mean 'numpy'?", or an empty string if none of `names` is similar."""
    from difflib import get_close_matches

    lower = {k.lower(): k for k in names}
    matches = get_close_matches(name.lower(), lower, n=1)
    return f" Did you mean {lower[matches[0]]!r}?" if matches else ""


class MultigradError(Exception):
    """Base of every exception that multigrad raises on purpose."""


class RegistrationError(MultigradError, ValueError):
    """A declaration of an operation or a backend is invalid."""


class MissingRuleError(MultigradError, NotImplementedError):
    """An operation has no derivative rule for an argument that requires grad."""


class BackendError(MultigradError, RuntimeError):
    """A backend is unknown, broken, not installed, or has no device."""


class NoDeviceError(BackendError):
    """The library of a backend is installed but finds no device to compute on."""


class MixedBackendsError(MultigradError, TypeError):
    """Arrays of two array libraries met in one operation."""


class ArrayTypeError(BackendError, TypeError):
    """The arrays of a class do not mean what the arrays of the backend's library mean."""


class GradientError(MultigradError, RuntimeError):
    """A gradient cannot be computed. This is a RuntimeError, as in PyTorch."""


class BatchingError(MultigradError, RuntimeError):
    """An operation needs the values or shapes of single examples, which a batch does not know."""


class LeakError(GradientError):
    """An array of a finished transformation was used after its end."""


def kind(x: object) -> str:
    """The name of the type of `x` in messages.

    It includes the module if the type could be mistaken for multigrad's Tensor.
    """
    noun = getattr(type(x), "_noun", "")
    if noun:
        return str(noun)
    name = type(x).__name__
    return f"{type(x).__module__}.{name}" if name == "Tensor" else name


def program() -> int:
    """The `stacklevel` with which `warnings` reports the user's line.

    It counts from the calling function. Frames of observers may lie in between.
    """
    frame: FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and frame.f_code.co_filename.startswith(OWN):
        frame, level = frame.f_back, level + 1
    return level
