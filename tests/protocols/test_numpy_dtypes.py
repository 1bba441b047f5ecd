"""NumPy's functions of dtypes for which the standard leaves the answer open: `clip` between limits
of another dtype, extrema of complex numbers with nan, one triangle of a matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import values

import multigrad as mg
from multigrad import func

# ----- clip -----

ARRAYS: dict[str, Any] = {
    "float32": np.array([1.0, 2.5, -3.0], np.float32),
    "float64": np.array([1.0, 2.5, -3.0]),
    "float64 with nan": np.array([1.0, np.nan, -3.0]),
    "int64": np.array([1, 5, -3]),
    "uint8": np.array([1, 5, 200], np.uint8),
    "bool": np.array([True, False, True]),
    "complex64": np.array([1.0, 2 + 1j, 1 - 3j], np.complex64),
    "complex128": np.array([1.0, 2 + 1j, complex(np.nan, 1)]),
}
LIMITS: dict[str, tuple[Any, Any]] = {
    "integers": (0, 2),
    "floats": (0.5, 2.25),
    "float64 array": (np.array([0.1, 3.0, -1.0]), None),
    "int64 array": (np.zeros(3, np.int64), 4),
    "numpy.int64": (np.int64(1), None),
    "booleans": (False, True),
    "bool array": (np.array([False, True, False]), None),
    "complex array": (np.array([0j, 1 + 2j, complex(1, np.nan)]), None),
    "one is missing": (None, 1),
    "beyond the dtype": (-1, 300),
    "lists": ([0, 0, 0], [2, 2, 2]),
}


def wrapped(limit: Any) -> Any:
    return mg.asarray(limit) if isinstance(limit, np.ndarray) else limit


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("name", ARRAYS)
def test_clip_promotes_as_numpy(name: str, limits: str) -> None:
    x, (low, high) = ARRAYS[name], LIMITS[limits]
    expected = np.clip(x, low, high)
    t = mg.asarray(x.copy())
    for found in (
        np.clip(t, low, high),
        np.clip(t, wrapped(low), wrapped(high)),
        np.clip(x, wrapped(low), wrapped(high)),
        np.clip(t, min=low, max=high),
        func.compile(lambda x: np.clip(x, low, high))(x),
        func.compile(lambda x, low, high: np.clip(x, low, high), static_argnums=())(x, low, high)
        if limits not in ("lists", "one is missing")
        else t * 0 + expected,
    ):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(values(found), expected)


def test_clip_without_limits_is_a_copy() -> None:
    for x in (ARRAYS["float64"], ARRAYS["int64"], ARRAYS["complex64"]):
        t = mg.asarray(x.copy())
        for found in (np.clip(t, None, None), np.clip(t)):
            t[...] = 7
            np.testing.assert_array_equal(values(found), x)
            t[...] = x


@pytest.mark.parametrize("name", ["float32", "float64", "int64", "complex64"])
def test_the_gradient_of_promoted_clips(name: str) -> None:
    """Within the limits it is that of x, beyond them that of the limit."""
    x = mg.asarray(ARRAYS[name], requires_grad=ARRAYS[name].dtype.kind in "fc")
    low = mg.asarray([0.0, 0.5, 0.25], requires_grad=True)
    y = np.clip(x, low, 2.0)
    assert y.dtype == np.clip(ARRAYS[name], np.zeros(3), 2.0).dtype
    mg.sum(mg.real(y * mg.asarray([1.0, 10.0, 100.0]))).backward()
    clipped = name.startswith("complex")  # 1 - 3j is not less than 0.25
    inside = [1.0, 0.0, 100.0] if clipped else [1.0, 0.0, 0.0]
    if x.requires_grad:
        assert x.grad.dtype == x.dtype
        np.testing.assert_allclose(values(x.grad), inside)
    assert low.grad.dtype == low.dtype
    np.testing.assert_allclose(values(low.grad), [0.0, 0.0, 0.0 if clipped else 100.0])


def test_what_limits_cannot_be() -> None:
    with pytest.raises(TypeError, match=r"numpy\.clip: the limits must be arrays or numbers, not"):
        np.clip(mg.asarray([1.0]), "1", None)


DEFINED = {
    ("float32", "float64"): "float32",
    ("float64", "float32"): "float64",
    ("int32", "int64"): "int32",
    ("int64", "int32"): "int64",
    ("uint8", "int32"): "uint8",
}


@pytest.mark.parametrize("pair", DEFINED)
def test_clip_of_the_standard_keeps_the_dtype(xp: Any, pair: tuple[str, str]) -> None:
    x, limit = (xp.asarray([1, 5, 3], dtype=dtype) for dtype in pair)
    limits = limit * 0 + xp.asarray(2, dtype=limit.dtype)
    for found in (xp.clip(x, limits), xp.clip(x, None, limits), xp.clip(x, limits, 4)):
        assert found.dtype == getattr(xp, DEFINED[pair])
    np.testing.assert_array_equal(values(xp.clip(x, limits, 4)), [2, 4, 3])


def test_clip_beyond_the_dtype(xp: Any) -> None:
    x = xp.asarray([1, 5, 200], dtype="uint8")
    np.testing.assert_array_equal(values(xp.clip(x, -1, 300)), [1, 5, 200])
    np.testing.assert_array_equal(values(xp.clip(x, -1, 100)), [1, 5, 100])


UNDEFINED: dict[str, Callable[[Any], Any]] = {
    "booleans": lambda xp: xp.clip(xp.asarray([True, False]), 0, 1),
    "complex numbers": lambda xp: xp.clip(xp.asarray([1j, 2.0]), 0.0, 1.0),
    "complex limit": lambda xp: xp.clip(xp.asarray([1.0, 2.0]), 1j),
    "integers between fractions": lambda xp: xp.clip(xp.asarray([1, 2]), 0.5, 1.5),
    "fractions above integers": lambda xp: xp.clip(xp.asarray([0.5, 1.5]), xp.asarray([1, 2])),
    "integers above booleans": lambda xp: xp.clip(xp.asarray([1, 2]), xp.asarray([True, False])),
}


@pytest.mark.parametrize("name", UNDEFINED)
def test_clip_that_the_standard_leaves_open(xp: Any, backend: str, name: str) -> None:
    match = "clip" if backend == "strict" else "clip: .*(limits are for|the bounds must be).*numpy"
    with pytest.raises(TypeError, match=match):
        UNDEFINED[name](xp)


@pytest.mark.parametrize("limit", [1j, np.array([1j, 2j])], ids=["number", "array"])
def test_complex_limits_in_a_compiled_function(limit: Any) -> None:
    with pytest.raises(TypeError, match="clip: the bounds must be real numbers .*, but min"):
        func.compile(lambda x: mg.clip(x, limit))(np.array([1.0, 2.0]))


def test_a_numpy_integer_limits_floats() -> None:
    np.testing.assert_array_equal(values(mg.clip(mg.asarray([1.0, 3.0]), np.int64(2))), [2.0, 3.0])


# ----- extrema of complex numbers with nan -----

NAN = np.nan
COMPLEX: dict[str, Any] = {
    "one": [1 + 2j, complex(NAN, 3), 3 - 1j, 3 + 1j, complex(2, NAN)],
    "rows": [[1 + 2j, complex(NAN, 0)], [complex(0, NAN), -2 + 0j]],
    "none": [1j, 2 + 1j],
    "infinite": [complex(-np.inf, -np.inf), complex(NAN, NAN)],
    "first": [complex(NAN, 1), 5 + 0j],
}
EXTREMA = {
    "nanmax": np.nanmax,
    "nanmin": np.nanmin,
    "fmax.reduce": lambda x, **k: np.fmax.reduce(x, **({"axis": None} | k)),
    "fmin.reduce": lambda x, **k: np.fmin.reduce(x, **({"axis": None} | k)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", ["numpy", "jax"], indirect=True)
@pytest.mark.parametrize("data", COMPLEX)
@pytest.mark.parametrize("name", EXTREMA)
def test_complex_extrema_leave_nan_out(backend: str, name: str, data: str) -> None:
    if (backend, data) == ("jax", "infinite"):
        pytest.skip("jax.numpy.max of complex numbers takes -inf + 0j for the smallest")
    x, function = np.asarray(COMPLEX[data]), EXTREMA[name]
    t = mg.asarray(x, backend=backend, requires_grad=True)
    for options in ({}, {"axis": 0}, {"axis": -1}):
        expected = function(x, **options)
        found = function(t, **options)
        np.testing.assert_array_equal(values(found), expected)
        compared = func.vmap(lambda row: function(row, **options))(np.stack([x, x]))  # noqa: B023
        np.testing.assert_array_equal(values(compared)[0], expected)
    (g,) = mg.autograd.grad(mg.real(function(t)), t)
    np.testing.assert_array_equal(values(g), x == function(x))


@pytest.mark.filterwarnings("ignore")
def test_all_complex_nan() -> None:
    x = np.array([complex(NAN, 1), complex(2, NAN)])
    for function in EXTREMA.values():
        assert np.isnan(values(function(mg.asarray(x)))) and np.isnan(function(x))


def test_complex_index_of_extrema() -> None:
    for name in ("nanargmax", "nanargmin"):
        for data in ("one", "first", "none"):
            x = np.asarray(COMPLEX[data])
            assert int(getattr(np, name)(mg.asarray(x))) == getattr(np, name)(x)


# ----- the triangle that NumPy reads -----

LOWER = np.array([[4.0, 7.0, -3.0], [0.5, 3.0, 8.0], [0.25, -0.5, 5.0]])
IMAGINARY = np.array([[0.0, 1.0, 2.0], [0.5, 0.0, -1.0], [-0.25, 0.5, 0.0]])
HERMITIAN = {
    "real": LOWER,
    "complex": LOWER + 1j * IMAGINARY,
    "complex on the diagonal": LOWER + 1j * (IMAGINARY + np.eye(3)),
    "batch": np.stack([LOWER, 2 * LOWER]),
}


@pytest.mark.parametrize("backend", ["numpy", "strict"], indirect=True)
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("name", HERMITIAN)
def test_cholesky_reads_the_triangle_of_its_result(backend: str, name: str, upper: bool) -> None:
    x = HERMITIAN[name]
    x = np.matrix_transpose(x) if upper else x
    expected = np.linalg.cholesky(x, upper=upper)
    t = mg.asarray(x, backend=backend)
    np.testing.assert_allclose(values(np.linalg.cholesky(t, upper=upper)), expected, atol=1e-14)
    rows = func.vmap(lambda t: np.linalg.cholesky(t, upper=upper))(mg.stack([t, t]).array)
    np.testing.assert_allclose(values(rows)[1], expected, atol=1e-14)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("name", ["real", "complex"])
def test_the_gradient_of_cholesky_is_that_of_the_hermitian_part(name: str, upper: bool) -> None:
    """As for torch.linalg.cholesky: Hermitian, and along Hermitian matrices the derivative."""
    x = HERMITIAN[name]
    x = np.matrix_transpose(x) if upper else x
    weights = np.arange(1.0, 10.0).reshape(3, 3) * (1 + 0.5j if name == "complex" else 1)

    def loss(x: Any) -> Any:
        return (np.linalg.cholesky(x, upper=upper) * weights).real.sum()

    g = values(func.grad(loss)(x))
    np.testing.assert_allclose(g, np.conj(g.T), atol=1e-13)
    rng = np.random.default_rng(0)
    step = rng.normal(size=(3, 3)) + (1j * rng.normal(size=(3, 3)) if name == "complex" else 0)
    step = 1e-5 * (step + np.conj(step.T))
    exact = (loss(x + step) - loss(x - step)) / 2
    np.testing.assert_allclose(np.sum(np.real(np.conj(g) * step)), exact, rtol=1e-7)
    _, moved = func.jvp(loss, (x,), (step,))
    np.testing.assert_allclose(values(moved), exact, rtol=1e-7)
