"""The exceptions of multigrad. Each is also the built-in exception that PyTorch or NumPy users would catch."""

from __future__ import annotations


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
