"""What an operation is tried on: its arguments as NumPy arrays, and what is known about the
result.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np


@dataclass(frozen=True)
class DType:
    """A dtype among the arguments of a sample, by its name in the standard: each backend has its
    own object for it.
    """

    name: str


class _OwnDevice:
    """Stands for the device that the backend under test is tried on."""

    def __repr__(self) -> str:
        return "OWN_DEVICE"


OWN_DEVICE: Any = _OwnDevice()


class Sample:
    """Arguments to try an operation on.

    label           names the sample in test ids: words, no slash
    args, kwargs    NumPy arrays (float64 or complex128: the suite casts them for other precisions),
                    Python scalars, tuples and lists of these, `DType`
    differentiable  the array parameters to differentiate by; None: those of floating dtype that
                    have a rule
    short           whether it belongs to the short level. None: yes for the first real and the
                    first complex sample
    needs           the capability that the library must have: "data_dependent", "boolean_indexing",
                    "truth" (a lazy library has none), or "" for none ("complex" and
                    "negative_steps" are seen by themselves)
    values          False where only shape and dtype are defined (empty)
    tolerance       a factor on the tolerances, for ill-conditioned values
    checks          which checks to make; None: all that apply
    project         {parameter: f}, where the function is meant of f(argument) only, as that of a
                    Hermitian matrix of which a library reads one triangle; f takes and gives a
                    NumPy array. The derivatives must be those of the function after f
    finish          f(xp, *outputs), an array or a tuple: what of the outputs has a definite value,
                    where they have a choice (the phases of eigenvectors). Values and derivatives
                    are compared after it
    reference       f(*arguments), in NumPy: the outputs, found another way. None: those of the
                    operation's own form on NumPy
    """

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
        """Whether there is a complex array among the arguments, or a complex dtype."""
        return any(
            a.dtype.kind == "c" if is_array(a) else a.name.startswith("complex")
            for a in leaves((self.args, tuple(self.kwargs.values())))
            if is_array(a) or isinstance(a, DType)
        )

    @cached_property
    def backwards(self) -> bool:
        """Whether there is a slice with a negative step among the arguments."""
        return any(
            isinstance(a, slice) and (a.step or 1) < 0
            for a in leaves((self.args, tuple(self.kwargs.values())))
        )

    @cached_property
    def capabilities(self) -> frozenset[str]:
        """What the library must have for it."""
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

    gradients  by parameter; nan means nan, None where it is not stated
    second     the gradient of the sum of the gradients, by parameter, where it is stated
    reasons    why it deviates from PyTorch, if it does
    """

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
    """A sample whose gradient would be wrong, so that it is refused: a GradientError, or nan where
    values are not known.

    message  what the error says, or a part of it
    """

    def __init__(self, label: str, /, *args: Any, message: str, **kwargs: Any) -> None:
        super().__init__(label, *args, checks=("refused",), short=True, **kwargs)
        self.message = message


class Draw:
    """Deterministic arrays for the samples of one operation: the same in every run, on every
    machine.
    """

    def __init__(self, name: str) -> None:
        self._random = np.random.default_rng(zlib.crc32(name.encode()))

    def real(self, *shape: int, low: float = -2.0, high: float = 2.0) -> Any:
        """Uniform in [low, high]."""
        return np.asarray(self._random.uniform(low, high, shape))

    def positive(self, *shape: int) -> Any:
        """Uniform in [0.5, 2]."""
        return self.real(*shape, low=0.5, high=2.0)

    def nonzero(self, *shape: int) -> Any:
        """Of either sign, at least 0.4 away from 0."""
        return np.asarray(
            self.real(*shape, low=0.4, high=2.0) * self._random.choice([-1.0, 1.0], shape)
        )

    def complex(self, *shape: int) -> Any:
        """In all four quadrants, with real and imaginary part at least 0.4 away from 0, where most
        branch cuts are.
        """
        return np.asarray(self.nonzero(*shape) + 1j * self.nonzero(*shape))

    def apart(self, *shape: int) -> Any:
        """Distinct values, at least 0.2 from each other and 0.1 from 0: no ties, no kinks, for
        finite differences.
        """
        n = int(np.prod(shape))
        return np.asarray(
            self._random.permutation((np.arange(n) - n // 2) * 0.2 + 0.1).reshape(shape)
        )

    def integers(self, *shape: int, low: int = -5, high: int = 6) -> Any:
        """Integers in [low, high), int64."""
        return np.asarray(self._random.integers(low, high, shape))

    def booleans(self, *shape: int) -> Any:
        """Both values occur where there is room for both."""
        x = self._random.integers(0, 2, shape).astype(bool)
        if x.size > 1:
            x.flat[0], x.flat[-1] = True, False
        return np.asarray(x)


Generator = Callable[[Draw], Any]


def is_array(x: Any) -> bool:
    return isinstance(x, (np.ndarray, np.generic))


def mapped(f: Callable[[Any], Any], value: Any) -> Any:
    """Apply `f` to everything in an argument that stands for something of a library: arrays,
    dtypes, devices.
    """
    if type(value) in (tuple, list):
        return type(value)(mapped(f, v) for v in value)
    return f(value) if is_array(value) or isinstance(value, (DType, _OwnDevice)) else value


def leaves(value: Any) -> list[Any]:
    """All values in nested tuples and lists."""
    if type(value) in (tuple, list):
        return [leaf for v in value for leaf in leaves(v)]
    return [value]
