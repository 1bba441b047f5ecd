"""Samples of operations: arguments as NumPy arrays, and facts about the result."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from multigrad.extend import entry

CAPABILITIES = ("complex", "data_dependent", "boolean_indexing", "negative_steps", "truth")
"""What a library may lack: the names that `Backend.lacks` gives reasons for."""


@dataclass(frozen=True)
class DType:
    """A dtype among the arguments of a sample, by its name in the standard.

    Each backend replaces it by its own object.
    """

    name: str


class _OwnDevice:
    """A placeholder for the device on which the backend is tested."""

    def __repr__(self) -> str:
        return "OWN_DEVICE"


OWN_DEVICE: Any = _OwnDevice()


class Sample:
    """Arguments on which an operation is tested.

    label           the name in test ids: words, without a slash
    args, kwargs    NumPy arrays (float64 or complex128: the suite casts them to other precisions),
                    Python scalars, tuples and lists of these, `DType`
    differentiable  the array parameters to differentiate; None: those of floating dtype that have a
                    rule
    short           whether the sample belongs to the short level. None: the first real and the
                    first complex sample do
    needs           the capability that the library must have: "data_dependent", "boolean_indexing",
                    "truth" (a lazy library lacks it), or "" for none ("complex" and
                    "negative_steps" are detected)
    values          False if only shape and dtype are defined (empty)
    tolerance       a factor on the tolerances, for ill-conditioned values
    checks          the checks to run; None: all that apply
    project         {parameter: f}, if the operation is meant as a function of f(argument). For
                    example, a library reads only one triangle of a Hermitian matrix. f maps a NumPy
                    array to a NumPy array, and the derivatives must be those of the operation after
                    f
    finish          f(xp, *outputs), an array or a tuple: the well-defined part of outputs that are
                    not unique, such as the phases of eigenvectors. Values and derivatives are
                    compared after it
    reference       f(*arguments), in NumPy: the outputs, computed in another way. None: those of
                    the operation itself on NumPy
    """

    @entry
    def __init__(
        self,
        label: str,
        /,
        *args: Any,
        differentiable: tuple[str, ...] | None = None,
        short: bool | None = None,
        needs: str = "",
        values: bool = True,
        tolerance: float = 1.0,
        checks: tuple[str, ...] | None = None,
        project: Mapping[str, Callable[[Any], Any]] | None = None,
        finish: Callable[..., Any] | None = None,
        reference: Callable[..., Any] | None = None,
        **kwargs: Any,
    ) -> None:
        if needs and needs not in CAPABILITIES:
            raise ValueError(
                f"needs={needs!r} of the sample {label!r} is not a capability. Choose one of "
                f"{', '.join(map(repr, CAPABILITIES))}, or '' for none."
            )
        self.label = label
        self.args = args
        self.kwargs = kwargs
        self.differentiable = differentiable
        self.short = short
        self.needs = needs
        self.values = values
        self.tolerance = tolerance
        self.checks = checks
        self.project = project or {}
        self.finish = finish
        self.reference = reference

    @cached_property
    def complex(self) -> bool:
        """Whether the arguments contain a complex array or a complex dtype."""
        return any(
            a.dtype.kind == "c" if is_array(a) else a.name.startswith("complex")
            for a in leaves((self.args, tuple(self.kwargs.values())))
            if is_array(a) or isinstance(a, DType)
        )

    @cached_property
    def backwards(self) -> bool:
        """Whether the arguments contain a slice with a negative step."""
        return any(
            isinstance(a, slice) and (a.step or 1) < 0
            for a in leaves((self.args, tuple(self.kwargs.values())))
        )

    @cached_property
    def capabilities(self) -> frozenset[str]:
        """The capabilities that the library needs for the sample."""
        seen = {
            "complex": self.complex,
            "negative_steps": self.backwards,
            self.needs: bool(self.needs),
        }
        return frozenset(need for need, is_needed in seen.items() if is_needed)

    def __repr__(self) -> str:
        return f"<Sample {self.label}>"


class Kink(Sample):
    """A sample at a kink or a singular point, with the stated gradient of the sum of the result.

    gradients  by parameter; nan means nan, None means unspecified
    second     the gradient of the sum of the gradients, by parameter, if it is specified
    reasons    why it deviates from PyTorch, if it does
    """

    @entry
    def __init__(
        self,
        label: str,
        /,
        *args: Any,
        gradients: Mapping[str, Any],
        second: Mapping[str, Any] | None = None,
        reason: str = "",
        **kwargs: Any,
    ) -> None:
        args = tuple(np.asarray(a) if isinstance(a, list) else a for a in args)
        super().__init__(label, *args, differentiable=tuple(gradients), **kwargs)
        self.gradients = gradients
        self.second = second or {}
        self.reason = reason


class Refused(Sample):
    """A sample whose gradient would be wrong, so multigrad refuses to compute it.

    It raises GradientError, or gives nan if values are unknown.

    message  the text of the error, or a part of it
    """

    @entry
    def __init__(self, label: str, /, *args: Any, message: str, **kwargs: Any) -> None:
        super().__init__(label, *args, checks=("refused",), short=True, **kwargs)
        self.message = message


class Draw:
    """Deterministic arrays for the samples of one operation, the same on every machine."""

    @entry
    def __init__(self, name: str) -> None:
        self._random = np.random.default_rng(zlib.crc32(name.encode()))

    @entry
    def real(self, *shape: int, low: float = -2.0, high: float = 2.0) -> Any:
        """Draw uniformly from [low, high]."""
        return np.asarray(self._random.uniform(low, high, shape))

    @entry
    def positive(self, *shape: int) -> Any:
        """Draw uniformly from [0.5, 2]."""
        return self.real(*shape, low=0.5, high=2.0)

    @entry
    def nonzero(self, *shape: int) -> Any:
        """Draw numbers of either sign, with magnitude at least 0.4."""
        return np.asarray(
            self.real(*shape, low=0.4, high=2.0) * self._random.choice([-1.0, 1.0], shape)
        )

    @entry
    def complex(self, *shape: int) -> Any:
        """Draw from all four quadrants, with real and imaginary part at least 0.4 away from 0.

        Most branch cuts are at 0.
        """
        return np.asarray(self.nonzero(*shape) + 1j * self.nonzero(*shape))

    @entry
    def apart(self, *shape: int) -> Any:
        """Draw distinct values, at least 0.2 from each other and 0.1 from 0.

        Finite differences then meet no ties and no kinks.
        """
        n = int(np.prod(shape))
        return np.asarray(
            self._random.permutation((np.arange(n) - n // 2) * 0.2 + 0.1).reshape(shape)
        )

    @entry
    def integers(self, *shape: int, low: int = -5, high: int = 6) -> Any:
        """Draw integers from [low, high), as int64."""
        return np.asarray(self._random.integers(low, high, shape))

    @entry
    def booleans(self, *shape: int) -> Any:
        """Draw booleans; both values occur if there are at least two elements."""
        x = self._random.integers(0, 2, shape).astype(bool)
        if x.size > 1:
            x.flat[0], x.flat[-1] = True, False
        return np.asarray(x)


Generator = Callable[[Draw], Any]


def is_array(x: Any) -> bool:
    return isinstance(x, (np.ndarray, np.generic))


def mapped(f: Callable[[Any], Any], value: Any) -> Any:
    """Apply `f` to each array, dtype and device in an argument."""
    if type(value) in (tuple, list):
        return type(value)(mapped(f, v) for v in value)
    return f(value) if is_array(value) or isinstance(value, (DType, _OwnDevice)) else value


def leaves(value: Any) -> list[Any]:
    """Return all values in nested tuples and lists."""
    if type(value) in (tuple, list):
        return [leaf for v in value for leaf in leaves(v)]
    return [value]
