"""What is measured: the error of a derivative in units of epsilon, and where it was found."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from mpmath import mp

EPSILON = mp.mpf(2) ** -52
SMALLEST = mp.mpf(float(np.finfo(np.float64).smallest_normal))
LARGEST = mp.mpf(float(np.finfo(np.float64).max))

LIMIT = 1000.0  # epsilon: what is worse is a bug
COTANGENT = 0.6 - 0.8j  # of complex results, and the tangent of complex arguments


@dataclass(frozen=True)
class Error:
    """The error of one derivative: `what` is an argument's name for a gradient, "jvp" or
    "second".
    """

    operation: str
    kind: str  # "real" or "complex": the arguments
    what: str
    size: float  # in epsilon, relative; infinite where the derivative is of another kind altogether
    absolute: float  # in epsilon
    where: str
    limit: float = LIMIT  # what is larger is a bug


def of_number(found: Any, true: Any) -> tuple[float, float]:
    """The error of a number in epsilon, relative to the true one and absolute.

    Where the true one is no normal number, what counts is that the found one is none either: 0 or
    close, infinite or nan.
    """
    size = abs(true)
    if size > LARGEST / 2:
        return _either(not np.isfinite(found) or abs(found) > float(LARGEST) / 4)
    if not np.isfinite(found):
        return _either(False)
    error = abs(mp.mpmathify(complex(found) if np.iscomplexobj(found) else float(found)) - true)
    if size < SMALLEST:
        return _either(error <= (0 if size == 0 else SMALLEST))
    return float(error / size / EPSILON), float(error / EPSILON)


def _either(right: bool) -> tuple[float, float]:
    return (0.0, 0.0) if right else (math.inf, math.inf)


def of_array(found: Any, true: Any) -> tuple[float, float]:
    """The norm of an array's error in epsilon, relative to the norm of the true one (unless that is
    0) and absolute.
    """
    if not np.all(np.isfinite(found)):
        return _either(False)
    pairs = [
        (mp.mpmathify(f.item()), t) for f, t in zip(np.asarray(found).flat, true.flat, strict=True)
    ]
    error = mp.sqrt(sum((abs(f - t) ** 2 for f, t in pairs), mp.zero))
    size = mp.sqrt(sum((abs(t) ** 2 for _, t in pairs), mp.zero))
    return float(error / (size or 1) / EPSILON), float(error / EPSILON)


def shown(values: Iterable[Any]) -> str:
    """Arguments as they are written: few digits, all of them where they matter (1 - x near a
    singular point).
    """
    return ", ".join(_number(v) for v in values)


def _number(x: Any) -> str:
    if isinstance(x, complex):
        return f"{_number(x.real)}{'' if math.copysign(1, x.imag) < 0 else '+'}{_number(x.imag)}j"
    short = f"{x:.4g}"
    return short if float(short) == x else f"{x:.17g}"


def by_key(errors: Iterable[Error], excuse: Callable[[Error], Any]) -> Iterator[Error]:
    """The worst error of each operation, kind and derivative; one that nothing excuses before a
    larger one that is excused.
    """
    found: dict[tuple[str, str, str], Error] = {}
    for e in errors:
        key = (e.operation, e.kind, e.what)
        if key not in found or _badness(e, excuse) > _badness(found[key], excuse):
            found[key] = e
    yield from found.values()


def _badness(e: Error, excuse: Callable[[Error], Any]) -> tuple[bool, float]:
    return e.size > e.limit and not excuse(e), e.size
