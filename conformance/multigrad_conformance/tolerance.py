"""Tolerances for the numbers of a user's function, and the location of the largest error.

pytest must not rewrite these assertions, because their messages are complete: PYTEST_DONT_REWRITE
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .compare import DIFFERENCE, EXACT, precision_of
from .subject import PRECISIONS

NOISE = {precision: 100 * float(np.finfo(precision).eps) for precision in PRECISIONS}
"""The rounding error of a gradient that is zero, relative to the largest number beside it."""


@dataclass(frozen=True)
class Tolerance:
    """Tolerances by precision: the user's, else those of the suite (compare.py).

    The suite's absolute tolerances are scaled with the compared numbers.

    rtol, atol  the user's tolerances, by precision; a missing one is the suite's
    least       a lower bound of the absolute tolerance, if the user has given none in this
                precision
    """

    rtol: Mapping[str, float] = field(default_factory=dict)
    atol: Mapping[str, float] = field(default_factory=dict)
    least: float = 0.0

    @classmethod
    def of(cls, rtol: Any, atol: Any) -> Tolerance:
        """Build tolerances from the user's arguments.

        One number loosens or tightens float64, and loosens float32; a dictionary gives each
        precision. Raises ValueError for anything else.
        """
        tables = [_by_precision(given, name) for given, name in ((rtol, "rtol"), (atol, "atol"))]
        if tables[0] and not isinstance(rtol, Mapping):
            tables[0]["float32"] = max(tables[0]["float64"], EXACT["float32"][0])
        return cls(
            tables[0],
            tables[1],
            0.0 if isinstance(atol, Mapping) else tables[1].get("float64", 0.0),
        )

    def limits(
        self,
        expected: Any,
        precision: str,
        *,
        differences: bool = False,
        scale: float = 0.0,
        factor: float = 1.0,
    ) -> Any:
        """Return the greatest allowed error of each element.

        differences  whether `expected` consists of finite differences, which have fewer digits
        scale        the greatest number beside these, whose rounding error they may have
        """
        exact, rough = EXACT[precision], DIFFERENCE[precision]
        rtol = self.rtol.get(precision, exact[0])
        size = greatest([expected])
        atol = self.atol.get(
            precision,
            max(self.least, (rough if differences else exact)[1] * size + NOISE[precision] * scale),
        )
        return factor * ((max(rtol, rough[0]) if differences else rtol) * np.abs(expected) + atol)

    def assert_near(
        self,
        actual: Any,
        expected: Any,
        what: str,
        precision: str,
        *,
        beside: str = "",
        limits: Any = None,
        **how: Any,
    ) -> None:
        """Raise AssertionError if NumPy arrays differ, with the worst element and both numbers.

        inf and nan must agree.
        """
        actual, expected = np.asarray(actual), np.asarray(expected)
        assert actual.shape == expected.shape, (
            f"{what} has shape {actual.shape}, expected {expected.shape}{beside}"
        )
        if actual.dtype.kind not in "fc" and expected.dtype.kind not in "fc":
            excess = np.where(actual == expected, 0.0, np.inf)
        else:
            excess = over(
                actual,
                expected,
                self.limits(expected, precision, **how) if limits is None else limits,
            )
        wrong = excess > 1
        if wrong.any():
            at = worst(excess)
            count = (
                ""
                if actual.ndim == 0
                else f"{int(wrong.sum())} of {actual.size} elements differ, the worst at "
                f"{list(at)}: "
            )
            raise AssertionError(
                f"{what}: {count}{actual[at].item()!r}, expected {expected[at].item()!r}{beside}"
            )


def over(actual: Any, expected: Any, limits: Any) -> Any:
    """Return the error of each element in units of its limit: up to 1 is accepted.

    A value that is not finite must be equal.
    """
    with np.errstate(all="ignore"):
        distance = np.abs(actual - expected)
        ratio = np.where(distance == 0, 0.0, distance / limits)
    same = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
    return np.where(same, 0.0, np.where(np.isfinite(actual) & np.isfinite(expected), ratio, np.inf))


def worst(excess: Any) -> tuple[int, ...]:
    """Return the index of the greatest element."""
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(excess)), excess.shape))


def greatest(arrays: Iterable[Any]) -> float:
    """Return the greatest finite magnitude, or 0 without any."""
    return max(
        (float(np.max(np.abs(x), initial=0.0, where=np.isfinite(x))) for x in arrays), default=0.0
    )


def narrowest(arrays: Iterable[Any], precision: str) -> str:
    """Return the precision of the expected digits: that of the narrowest array involved."""
    return (
        "float32"
        if any(precision_of(x.dtype) == "float32" for x in arrays if x.dtype.kind in "fc")
        else precision
    )


def _by_precision(given: Any, name: str) -> dict[str, float]:
    if not isinstance(given, Mapping):
        return {} if given is None else {"float64": _number(given, name)}
    for key in given:
        if key not in PRECISIONS:
            raise ValueError(
                f"check_function: {name} has the keys 'float64' and 'float32', not {key!r}"
            )
    return {key: _number(value, name) for key, value in given.items()}


def _number(value: Any, name: str) -> float:
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float, np.floating))
        or not 0 <= value < np.inf
    ):
        raise ValueError(
            f"check_function: {name} must be a number of 0 or more, or a dictionary of these by "
            f"dtype, not {value!r}"
        )
    return float(value)
