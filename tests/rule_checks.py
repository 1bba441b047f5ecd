"""What the tests of the rules share: backends at their barest, and the checks that every rule must
pass.

A rule is right if its jvp agrees with central differences, and its vjp is the adjoint of its jvp
under the real inner product Re<g, t>, in NumPy's float64. On another library its results must be
those of NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import array_api_compat.numpy
import numpy as np

import multigrad.ops  # noqa: F401 (fills the table)
from multigrad import registry
from multigrad.backends.raw import RawNamespace
from multigrad.backends.spec import Backend
from multigrad.dispatch import codegen

__all__ = ["NUMPY", "check", "complexes", "linearized", "reals", "strict_raw", "to_numpy"]

NUMPY: Any = RawNamespace(Backend("numpy", array_api_compat.numpy, (np.ndarray, np.generic)))
"""The raw rule namespace of NumPy, with no function of its own: every kernel is its default."""


@lru_cache
def strict_raw() -> Any:
    """The raw rule namespace of array_api_strict, with no function of its own but a mended
    astype.
    """
    import array_api_strict as xp

    def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
        # strict takes None for the default device
        return xp.astype(x, dtype, copy=copy, device=device or x.device)

    return RawNamespace(Backend("strict", xp, (type(xp.asarray(0)),), functions={"astype": astype}))


def reals(*shape: int, seed: int = 0) -> Any:
    """Random float64 array: an ndarray even when 0-d."""
    return np.asarray(np.random.default_rng([seed, *shape]).uniform(-2, 2, shape))


def complexes(*shape: int, seed: int = 0) -> Any:
    """Random complex128 array."""
    return reals(*shape, seed=seed) + 1j * reals(*shape, seed=seed + 1)


def is_array(x: Any) -> bool:
    # np.float64 itself is a dtype
    return hasattr(x, "dtype") and hasattr(x, "shape") and not isinstance(x, type)


def mapped(f: Callable[[Any], Any], value: Any) -> Any:
    """Apply `f` to every array in an argument: itself, one of a list, one in a key."""
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        return type(value)(mapped(f, v) for v in value)
    return f(value) if is_array(value) else value


def to_numpy(x: Any) -> Any:
    """A NumPy array of the values of any library's array."""
    if hasattr(x, "_array"):  # array_api_strict refuses to export from its other devices
        x = x._array
    return np.asarray(x)


def floating(x: Any) -> bool:
    return is_array(x) and to_numpy(x).dtype.kind in "fc"


def bound(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, list[Any]]:
    """The operation of that name, and the values of all its parameters in order."""
    op = registry.OPS[name]
    arguments = op.signature.bind(*args, **kwargs)
    arguments.apply_defaults()
    return op, list(arguments.arguments.values())


def needed(op: Any, values: list[Any]) -> tuple[Any, ...]:
    """Ask for every gradient that an argument can have."""
    pairs = [
        (v, op.roles[p]) for p, v in zip(op.roles, values, strict=True) if op.roles[p] != "plain"
    ]
    return tuple(
        tuple(floating(u) for u in v) if role == "arrays" else floating(v) for v, role in pairs
    )


def run(xp: Any, op: Any, values: list[Any]) -> Any:
    """Call the operation; several outputs come as a tuple."""
    out = codegen._call_raw(op, xp, values)
    return out if op.outputs == () else tuple(out)


def linearized(
    xp: Any,
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    convert: Callable[[Any], Any],
    seed: int = 0,
) -> Any:
    """Return the outputs, the gradients for a random cotangent and the tangents for random
    tangents, all as NumPy arrays.

    Also the cotangents and tangents that were used. None where there is none.
    """
    op, values = bound(name, args, kwargs)
    needs = needed(op, values)
    tangents = [
        draw(v, need, seed)
        for v, need in zip(
            (values[i] for i in codegen.array_index(op).values()), needs, strict=True
        )
    ]
    plain = run(NUMPY, op, values)
    g = draw(
        plain,
        tuple(floating(y) for y in plain) if isinstance(plain, tuple) else floating(plain),
        seed + 7,
    )
    values = [mapped(convert, v) for v in values]
    out = run(xp, op, values)
    gradients = codegen.vjp(op, xp, values, out, mapped(convert, g), needs)
    moved = codegen.jvp(op, xp, values, [mapped(convert, t) for t in tangents], out)
    return (
        mapped(to_numpy, out),
        mapped(to_numpy, gradients),
        mapped(to_numpy, moved),
        g,
        tuple(tangents),
    )


def draw(value: Any, need: Any, seed: int) -> Any:
    """A random array like `value` where needed, else None."""
    if isinstance(need, tuple):
        return tuple(draw(v, n, seed + i) for i, (v, n) in enumerate(zip(value, need, strict=True)))
    if not need:
        return None
    value = to_numpy(value)
    make = complexes if value.dtype.kind == "c" else reals
    return make(*value.shape, seed=seed + 100).astype(value.dtype)


def inner(a: Any, b: Any) -> float:
    """Re<a, b>, over all pairs that are both there."""
    if isinstance(a, (tuple, list)):
        return sum(inner(u, v) for u, v in zip(a, b, strict=True))
    return 0.0 if a is None or b is None else float(np.real(np.vdot(a, b)))


def stepped(value: Any, tangent: Any, step: float) -> Any:
    if isinstance(tangent, (tuple, list)):
        return type(value)(stepped(v, t, step) for v, t in zip(value, tangent, strict=True))
    return value if tangent is None else np.asarray(value + step * tangent)


def difference(
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    tangents: tuple[Any, ...],
    step: float = 1e-6,
) -> Any:
    """The central difference of the outputs along the tangents, in NumPy."""
    op, values = bound(name, args, kwargs)
    sides = []
    for sign in (1, -1):
        moved = list(values)
        for i, t in zip(codegen.array_index(op).values(), tangents, strict=True):
            moved[i] = stepped(values[i], t, sign * step)
        sides.append(run(NUMPY, op, moved))
    plus, minus = sides
    if not isinstance(plus, tuple):
        return (plus - minus) / (2 * step)
    return tuple(
        (p - m) / (2 * step) if floating(p) else None for p, m in zip(plus, minus, strict=True)
    )


def assert_close(actual: Any, expected: Any, rtol: float, atol: float) -> None:
    """Compare arrays, and tuples of them, in shape, dtype and value."""
    if isinstance(expected, (tuple, list)):
        assert len(actual) == len(expected)
        for a, e in zip(actual, expected, strict=True):
            assert_close(a, e, rtol, atol)
    elif is_array(expected):
        assert actual.shape == expected.shape and actual.dtype == expected.dtype
        np.testing.assert_allclose(actual, expected, rtol=rtol, atol=atol)
    else:
        assert actual is None or not floating(actual), actual


def check(
    name: str,
    *args: Any,
    on: Any = None,
    convert: Callable[[Any], Any] | None = None,
    **kwargs: Any,
) -> Any:
    """Check the rules of an operation at these NumPy arguments; `on` another namespace, that they
    give the same there.

    Returns the gradients, for closer looks.
    """
    out, gradients, moved, g, tangents = linearized(NUMPY, name, args, kwargs, lambda x: x)
    assert_close(moved, difference(name, args, kwargs, tangents), 1e-6, 1e-7)
    left, right = inner(g, moved), inner(tangents, gradients)
    assert abs(left - right) <= 1e-10 * (1 + abs(left)), (left, right)
    op, values = bound(name, args, kwargs)
    arrays = tuple(values[i] for i in codegen.array_index(op).values())
    for need, argument, gradient in zip(needed(op, values), arrays, gradients, strict=True):
        for n, a, d in (
            zip(need, argument, gradient, strict=True)
            if isinstance(need, tuple)
            else [(need, argument, gradient)]
        ):
            assert (d is not None and d.shape == a.shape and d.dtype == a.dtype) if n else d is None
    if on is not None:
        elsewhere = linearized(on, name, args, kwargs, convert or on.asarray)
        for actual, expected in zip(elsewhere[:3], (out, gradients, moved), strict=True):
            assert_close(actual, expected, 1e-12, 1e-12)
    return gradients


def gradients(xp: Any, name: str, *args: Any, g: Any = None, **kwargs: Any) -> Any:
    """The gradients of an operation for the cotangent g (default: ones), as NumPy arrays."""
    op, values = bound(name, args, kwargs)
    needs = needed(op, values)
    values = [mapped(xp.asarray, v) for v in values]
    out = run(xp, op, values)
    g = xp.ones_like(out) if g is None else xp.asarray(g)
    return mapped(to_numpy, codegen.vjp(op, xp, values, out, g, needs))
