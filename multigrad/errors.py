"""The exceptions of multigrad.

Each is also the built-in exception that PyTorch or NumPy users would catch.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from types import FrameType

PACKAGE = str(Path(__file__).parent) + os.sep
"""How the names of multigrad's own files begin."""
OWN = (PACKAGE, "<multigrad", "<pullback")
"""The same with the files of what it generates."""


def nearest(name: str, known: Iterable[str]) -> str:
    """A question, " Did you mean 'numpy'?", or nothing where no known name is like it."""
    from difflib import get_close_matches

    lower = {k.lower(): k for k in known}
    found = get_close_matches(name.lower(), lower, n=1)
    return f" Did you mean {lower[found[0]]!r}?" if found else ""


class MultigradError(Exception):
    """Base of every exception that multigrad raises on purpose."""


class RegistrationError(MultigradError, ValueError):
    """A declaration of an operation or a backend that cannot be accepted."""


class MissingRuleError(MultigradError, NotImplementedError):
    """An operation has no derivative rule for an argument that requires one."""


class BackendError(MultigradError, RuntimeError):
    """A backend is unknown, broken, not installed, or has no device."""


class NoDeviceError(BackendError):
    """A backend's library is installed but finds no device it can compute on."""


class MixedBackendsError(MultigradError, TypeError):
    """Arrays of two array libraries met in one operation."""


class GradientError(MultigradError, RuntimeError):
    """A gradient cannot be computed; where PyTorch raises RuntimeError, so do we."""


class BatchingError(MultigradError, RuntimeError):
    """Something needs the values or the shapes of single examples, which a batch does not know."""


class LeakError(GradientError):
    """An array of a finished transformation was used after it."""


def kind(x: object) -> str:
    """What `x` is called in a message: by the name of its type, with its module where it is not to
    be taken for multigrad's Tensor.
    """
    noun = getattr(type(x), "_noun", "")
    if noun:
        return str(noun)
    name = type(x).__name__
    return f"{type(x).__module__}.{name}" if name == "Tensor" else name


def program() -> int:
    """How far up the program is from the function that asks, as `warnings` counts in `stacklevel`:
    observers may stand between.
    """
    frame: FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and frame.f_code.co_filename.startswith(OWN):
        frame, level = frame.f_back, level + 1
    return level
