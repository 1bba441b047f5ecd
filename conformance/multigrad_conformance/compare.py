"""Comparison of a backend's results with those of NumPy and of finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np

import multigrad as mg

from .target import NARROW, NARROW_INTEGERS, Target, shape_of

EXACT = {"float64": (1e-9, 1e-11), "float32": (1e-4, 2e-5)}
"""Relative and absolute tolerance for the same computation on another library, by precision.

Samples have values of order 1. In single precision, a product of several functions must pass, each
of which has an error of about 1e-7 times its condition number.
"""

DIFFERENCE = {"float64": (1e-7, 1e-8), "float32": (1e-3, 1e-4)}
"""The tolerances for finite differences, see differences.py."""


def precision_of(dtype: Any) -> str:
    return "float32" if np.dtype(dtype).name in ("float32", "complex64") else "float64"


def assert_close(
    actual: Any,
    expected: Any,
    what: str,
    tolerances: dict[str, tuple[float, float]] = EXACT,
    factor: float = 1.0,
    precision: str = "",
) -> None:
    """Compare the values of NumPy arrays; inf and nan must agree.

    The tolerance is that of the narrower array.
    """
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape, (
        f"{what}: shape {actual.shape}, expected {expected.shape}"
    )
    if actual.dtype.kind not in "fc":
        assert np.array_equal(actual, expected), (
            f"{what}: {actual.tolist()}, expected {expected.tolist()}"
        )
        return
    rtol, atol = tolerances[precision or precision_of(actual.dtype)]
    np.testing.assert_allclose(
        actual, expected, rtol=rtol * factor, atol=atol * factor, err_msg=what
    )


def assert_same(
    target: Target,
    actual: Any,
    exact: Any,
    wide: Any,
    what: str,
    *,
    values: bool = True,
    factor: float = 1.0,
    expected_dtype: str = "",
    raw: bool = False,
) -> None:
    """Compare one output of an operation: kind, shape, dtype and values.

    `exact` is NumPy's output in the same precision and has the expected dtype; `wide` has the
    digits.
    """
    if not isinstance(exact, (np.ndarray, np.generic)):
        _assert_same_object(target, actual, exact, what)
        return
    if raw:
        assert target.is_raw(actual), f"{what}: {type(actual)} is not an array of {target.name!r}"
    else:
        assert isinstance(actual, mg.Tensor), (
            f"{what}: a {type(actual).__name__} came out, not a Tensor"
        )
        assert target.is_raw(actual.array), (
            f"{what}: wraps {type(actual.array)}, which is not an array of {target.name!r}"
        )
    if target.device is not None:
        place = target.kernel("device")(target.xp, actual if raw else actual.array)
        assert place == target.device, f"{what}: it is on {place}, not on {target.device}"
    name = target.dtype_name(actual.dtype)
    expected = expected_dtype or available(target, exact.dtype.name)
    assert name == expected, f"{what}: dtype {name}, expected {expected}"
    assert shape_of(target, actual) == exact.shape, (
        f"{what}: shape {actual.shape}, expected {exact.shape}"
    )
    if values:
        assert_close(target.numpy(actual), wide, what, factor=factor)


def available(target: Target, name: str) -> str:
    """Return the dtype that a device without this dtype uses instead."""
    if not target.has_double:
        name = NARROW.get(name, name)
    return name if target.has_long else NARROW_INTEGERS.get(name, name)


def _assert_same_object(target: Target, actual: Any, exact: Any, what: str) -> None:
    if isinstance(exact, np.dtype):
        actual, exact = target.dtype_name(actual), available(target, exact.name)
    elif hasattr(exact, "bits"):
        for field in (
            ("bits", "eps", "max", "min", "smallest_normal")
            if hasattr(exact, "eps")
            else ("bits", "max", "min")
        ):
            assert float(getattr(actual, field)) == float(getattr(exact, field)), (
                f"{what}: {field} is {getattr(actual, field)}"
            )
        return
    elif isinstance(exact, (tuple, list)):
        actual, exact = tuple(actual), tuple(exact)
    assert actual == exact, f"{what}: {actual!r}, expected {exact!r}"


def assert_gradient(target: Target, actual: Any, leaf: Any, what: str) -> None:
    """A gradient must have the library, dtype, shape and device of its argument."""
    assert target.is_raw(actual), f"{what}: {type(actual)} is not an array of {target.name!r}"
    assert actual.dtype == leaf.dtype, (
        f"{what}: dtype {actual.dtype}, but that of the argument is {leaf.dtype}"
    )
    assert shape_of(target, actual) == shape_of(target, leaf), (
        f"{what}: shape {actual.shape}, but that of the argument is {leaf.shape}"
    )
    device = target.kernel("device")
    assert device(target.xp, actual) == device(target.xp, leaf), (
        f"{what}: it is not on the device of the argument"
    )
