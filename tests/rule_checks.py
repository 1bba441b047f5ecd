"""What the tests of the rules share: backends at their barest, random arrays, and the gradients of
one operation on raw arrays.

That each rule agrees with differences, and its two modes with each other, is for the conformance
suite.
"""

from __future__ import annotations

from functools import lru_cache
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

import array_api_compat.numpy
import numpy as np
import pytest

import multigrad.ops  # noqa: F401 (fills the table)
from multigrad import registry
from multigrad.backends.raw import RawNamespace
from multigrad.backends.spec import Backend
from multigrad.dispatch import codegen

__all__ = [
    "NUMPY",
    "bound",
    "complexes",
    "gradients",
    "lacking",
    "reals",
    "run",
    "strict_raw",
    "to_numpy",
]

NUMPY: Any = RawNamespace(Backend("numpy", array_api_compat.numpy, (np.ndarray, np.generic)))
"""The raw rule namespace of NumPy, with no function of its own: every kernel is its default."""


@lru_cache
def strict_raw() -> Any:
    """The raw rule namespace of array_api_strict, with no function of its own but a mended
    astype.
    """
    xp = pytest.importorskip("array_api_strict")

    def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
        # strict takes None for the default device
        return xp.astype(x, dtype, copy=copy, device=device or x.device)

    return RawNamespace(Backend("strict", xp, (type(xp.asarray(0)),), functions={"astype": astype}))


def lacking(extension: str, *kept: str) -> Any:
    """The raw namespace of a NumPy whose extension, `linalg` or `fft`, has these functions only:
    the others are the forms in terms of the standard.
    """
    xp = array_api_compat.numpy
    names = {name: getattr(xp, name) for name in dir(xp) if not name.startswith("__")}
    functions = {name: getattr(names[extension], name) for name in kept}
    namespace = SimpleNamespace(**names | {extension: SimpleNamespace(**functions)})
    return RawNamespace(Backend("lacking", namespace, (np.ndarray, np.generic)))


def reals(*shape: int, seed: int = 0) -> Any:
    """Random float64 array: an ndarray even when 0-d."""
    return np.asarray(np.random.default_rng([seed, *shape]).uniform(-2, 2, shape))


def complexes(*shape: int, seed: int = 0) -> Any:
    """Random complex128 array."""
    return reals(*shape, seed=seed) + 1j * reals(*shape, seed=seed + 1)


def to_numpy(x: Any) -> Any:
    """A NumPy array of the values of any library's array."""
    if hasattr(x, "_array"):  # array_api_strict refuses to export from its other devices
        x = x._array
    return np.asarray(x)


def is_array(x: Any) -> bool:
    # np.float64 itself is a dtype
    return hasattr(x, "dtype") and hasattr(x, "shape") and not isinstance(x, type)


def bound(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, list[Any]]:
    """The operation of that name, and the values of all its parameters in order."""
    op = registry.OPS[name]
    arguments = op.signature.bind(*args, **kwargs)
    arguments.apply_defaults()
    return op, list(arguments.arguments.values())


def run(xp: Any, op: Any, values: list[Any]) -> Any:
    """Call the operation; several outputs come as a tuple."""
    out = codegen.call(op, attrgetter(op.name)(xp), values)
    return out if op.outputs == () else tuple(out)


def gradients(
    xp: Any, name: str, *args: Any, g: Any = None, convert: Any = None, **kwargs: Any
) -> Any:
    """The gradients of an operation for the cotangent g (default: ones), as NumPy arrays.

    `convert` makes the library's arrays of NumPy's; the default is its asarray.
    """
    op, values = bound(name, args, kwargs)
    convert = convert or xp.asarray
    needs = tuple(
        is_array(values[i]) and values[i].dtype.kind in "fc"
        for i in codegen.array_index(op).values()
    )
    values = [mapped(convert, v) for v in values]
    out = run(xp, op, values)
    g = xp.ones_like(out) if g is None else convert(g)
    found = codegen.vjp(op, xp, values, out, g, needs)
    return tuple(x if x is None else to_numpy(x) for x in found)


def mapped(f: Any, value: Any) -> Any:
    """Apply `f` to an array, or to each of those in a key."""
    if isinstance(value, (tuple, list)):
        return type(value)(mapped(f, v) for v in value)
    return f(value) if is_array(value) else value
