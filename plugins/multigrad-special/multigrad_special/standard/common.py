"""What the forms of all chapters share: checks of their arguments, polynomials."""

from __future__ import annotations

from numbers import Integral
from typing import Any

__all__ = ["order", "refuse"]

MAX_ORDER = 100  # of polygamma: not far above, float64 no longer holds the factorials


def order(n: Any, name: str = "polygamma", most: int = MAX_ORDER) -> int:
    """The order of a family of functions (polygamma, Bessel), checked."""
    if isinstance(n, bool) or not isinstance(n, Integral):
        raise TypeError(f"special.{name}: n must be a Python int, not {type(n).__name__}; there is no derivative by the order.")
    found = int(n)
    if not 0 <= found <= most:
        raise ValueError(f"special.{name}: n must be from 0 to {most}, not {n}.")
    return found


def refuse(name: str, backend: str, dtype: Any) -> TypeError:
    """The error for an array of a dtype that the function has no values for."""
    return TypeError(f"special.{name} on the backend {backend!r} takes real floating-point arrays, not {dtype}.")


def check(xp: Any, name: str, x: Any) -> None:
    if not xp.isdtype(x.dtype, "real floating"):
        raise refuse(name, xp.__name__.rpartition(".")[2], x.dtype)


def arrays(xp: Any, name: str, *given: Any) -> list[Any]:
    """The arguments as arrays of one real floating dtype."""
    known = [x for x in given if hasattr(x, "dtype")]
    for x in known:
        check(xp, name, x)
    dtype = xp.result_type(*known)
    return [xp.astype(x, dtype, copy=False) if hasattr(x, "dtype") else xp.full((), x, dtype=dtype, device=xp.device_of(known[0])) for x in given]


def horner(coefficients: list[float], x: Any) -> Any:
    """The polynomial with these coefficients, the constant one first."""
    value = coefficients[-1] * x + coefficients[-2]
    for c in reversed(coefficients[:-2]):
        value = value * x + c
    return value
