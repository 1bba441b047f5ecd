"""Fourier transforms where the conformance suite cannot judge them: real values, lengths that libraries
read differently, libraries that lack a transform.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from conftest import values
from rule_checks import NUMPY, complexes, gradients, lacking, reals, strict_raw, to_numpy

import multigrad as mg
from multigrad.errors import GradientError
from multigrad.registry import OPS

NORMS = ("backward", "ortho", "forward")
COMPLEX, TO_HALF, FROM_HALF = ("fft", "ifft"), ("rfft", "ihfft"), ("irfft", "hfft")
ONE = (*COMPLEX, *TO_HALF, *FROM_HALF)
SEVERAL = ("fftn", "ifftn", "rfftn", "irfftn")


def argument(name: str, *shape: int) -> Any:
    """Values that the transform is made for."""
    return reals(*shape) if name in (*TO_HALF, "rfftn") else complexes(*shape)


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.filterwarnings("error::DeprecationWarning")
def test_lengths_without_axes_are_not_what_numpy_deprecates(name: str) -> None:
    x, f = argument(name, 2, 3, 4), getattr(mg.fft, name)
    np.testing.assert_array_equal(f(x, s=(5, 3)), f(x, s=(5, 3), axes=(-2, -1)))


@pytest.mark.parametrize("name", ["fftn", "ifftn"])
def test_over_no_axes_the_result_is_the_argument(name: str) -> None:
    """Its memory too, so that a write is noticed by what saved the other."""
    x = mg.asarray(complexes(2, 3))
    y = getattr(mg.fft, name)(x, axes=())
    assert np.shares_memory(x.array, y.array) and y._cell is x._cell
    assert getattr(mg.fft, name)(x, axes=(0,))._cell is not x._cell


def test_a_transform_over_no_axes_shows_its_argument(xp: Any) -> None:
    """What some libraries return is the argument itself, so that a write to it is one to both."""
    b = xp.asarray(np.asarray(3.0 + 1.0j), requires_grad=True)
    c = b * 1
    d = c * c
    e = xp.fft.fftn(c)
    try:
        e += 5
        (g,) = mg.autograd.grad(xp.real(d), b)
    except GradientError:
        return
    assert complex(g) == 6 - 2j


def test_what_is_no_array_is_named_without_the_options() -> None:
    with pytest.raises(
        TypeError, match=r"fft\.fft: none of the arguments is an array of a known library \(list\)"
    ):
        mg.fft.fft([1.0, 2.0])


@pytest.mark.parametrize("library", ["numpy", "jax"])
@pytest.mark.parametrize("name", ["fft", "ifft", "fftn", "irfft", "hfft"])
def test_real_values_have_real_gradients(name: str, library: str) -> None:
    """Also where the standard wants complex values, but the library takes real ones."""
    if library == "jax":
        pytest.importorskip("jax")
    x = reals(2, 3)
    t = mg.asarray(x, backend=library, requires_grad=True)
    y = getattr(mg.fft, name)(t)
    cotangent = (reals if name in FROM_HALF else complexes)(*y.shape)
    (g,) = mg.autograd.grad(y, t, grad_outputs=mg.asarray(cotangent, backend=library))
    (whole,) = gradients(NUMPY, f"fft.{name}", x + 0j, g=cotangent)
    assert g.dtype == t.dtype and whole.dtype == np.complex128
    np.testing.assert_allclose(values(g), whole.real, atol=1e-14)


# ----- a library that has fft.fft alone -----


@pytest.fixture
def bare() -> Any:
    """The transforms of a library that has one of them."""
    return lacking("fft", "fft").fft


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", [n for n in ONE if n != "fft"])
def test_one_transform_makes_the_others(bare: Any, name: str, norm: str) -> None:
    for shape, n, axis in (
        ((4,), None, -1),
        ((5, 2), None, 0),
        ((2, 3), 7, 1),
        ((2, 4), 3, -1),
        ((3,), 1, 0),
        ((3,), 2, 0),
        ((0, 3), 4, 1),
    ):
        x = argument(name, *shape)
        found = getattr(bare, name)(x, n=n, axis=axis, norm=norm)
        expected = getattr(np.fft, name)(x, n=n, axis=axis, norm=norm)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, atol=1e-14)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", SEVERAL)
def test_one_axis_after_the_other(bare: Any, name: str, norm: str) -> None:
    x = argument(name, 2, 3, 4)
    for s, axes in (
        (None, None),
        (None, (-1, 0)),
        ((5, 2), (0, 1)),
        ((-1, 3), (1, 2)),
        (None, (0, 0)),
        ((3, 4, 2), (1, 0, 1)),
    ):
        found = getattr(bare, name)(x, s=s, axes=axes, norm=norm)
        np.testing.assert_allclose(
            found, getattr(np.fft, name)(x, s=s, axes=axes, norm=norm), atol=1e-14
        )
    with warnings.catch_warnings(action="ignore"):
        np.testing.assert_allclose(
            getattr(bare, name)(x, s=(5,)), getattr(np.fft, name)(x, s=(5,)), atol=1e-14
        )


def test_shifts_and_frequencies_of_the_standard_alone(bare: Any) -> None:
    for x, axes in (
        (reals(5), None),
        (reals(3, 4), None),
        (reals(3, 4), 0),
        (reals(3, 4, 5), (-1, 0)),
        (reals(0, 3), None),
    ):
        np.testing.assert_array_equal(bare.fftshift(x, axes=axes), np.fft.fftshift(x, axes))
        np.testing.assert_array_equal(bare.ifftshift(x, axes=axes), np.fft.ifftshift(x, axes))
    for n in (1, 2, 5, 8):
        for d in (1.0, 0.1):
            np.testing.assert_allclose(bare.fftfreq(n, d=d), np.fft.fftfreq(n, d), rtol=1e-15)
            np.testing.assert_allclose(bare.rfftfreq(n, d=d), np.fft.rfftfreq(n, d), rtol=1e-15)
    assert (
        bare.fftfreq(4, dtype=np.float32).dtype
        == bare.rfftfreq(4, dtype=np.float32, device="cpu").dtype
        == np.float32
    )


@pytest.mark.parametrize("name", ["rfft", "irfft", "hfft", "ihfft"])
def test_the_forms_stay_narrow_on_a_strict_library(name: str) -> None:
    xp, x = strict_raw(), argument(name, 2, 4)
    x = x.astype(np.complex64 if x.dtype.kind == "c" else np.float32)
    found = to_numpy(OPS[f"fft.{name}"].forward["*"](xp, xp.asarray(x), 5, -1, "ortho"))
    expected = getattr(np.fft, name)(x, n=5, norm="ortho")
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, atol=1e-6)


# ----- the standard, where libraries depart from it -----


@pytest.mark.parametrize("library", ["numpy", "jax"])
def test_minus_one_is_the_length_without_s(library: str) -> None:
    """Which JAX does not know, and NumPy takes for another one in the last axis of irfftn."""
    if library == "jax":
        pytest.importorskip("jax")
    xp = mg.namespace(library)
    for name in SEVERAL:
        x = xp.asarray(argument(name, 3, 4), requires_grad=True)
        transform = getattr(xp.fft, name)
        plain, said = transform(x), transform(x, s=(-1, -1), axes=(0, -1))
        np.testing.assert_allclose(values(said), values(plain), atol=1e-14)
        g = xp.asarray(argument("ifft" if name != "irfftn" else "rfft", *plain.shape))
        (one,), (other,) = (mg.autograd.grad(y, x, grad_outputs=g) for y in (plain, said))
        np.testing.assert_allclose(values(other), values(one), atol=1e-14)
        assert transform(x, s=(2, -1), axes=(0, 1)).shape == (2, *plain.shape[1:])


@pytest.mark.parametrize("s", [(-1,), (2, -1, 3)])
def test_minus_one_for_an_axis_that_is_not_there(s: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="different lengths|axis -3 is out of bounds"):
        mg.fft.fftn(mg.ones((3, 4)), s=s, axes=(0, 1) if len(s) == 1 else None)


def test_an_axis_that_is_repeated_is_transformed_again() -> None:
    """To the length that stands beside it there: the last first, but in irfftn the last last."""
    xp = mg.namespace("numpy")
    x = xp.asarray(complexes(2, 3, 4), requires_grad=True)
    fft, ifft, irfft = xp.fft.fft, xp.fft.ifft, xp.fft.irfft
    for at_once, step_by_step in (
        (
            xp.fft.fftn(x, s=(2, 6, 3), axes=(0, 1, 0)),
            fft(fft(fft(x, n=3, axis=0), n=6, axis=1), n=2, axis=0),
        ),
        (
            xp.fft.irfftn(x, s=(4, 4, 6), axes=(0, 1, 0)),
            irfft(ifft(ifft(x, n=4, axis=0), n=4, axis=1), n=6, axis=0),
        ),
    ):
        g = (complexes if at_once._elem.complex else reals)(*at_once.shape)
        (one,), (other,) = (
            mg.autograd.grad(y, x, grad_outputs=mg.asarray(g)) for y in (at_once, step_by_step)
        )
        np.testing.assert_allclose(values(at_once), values(step_by_step), atol=1e-14)
        np.testing.assert_allclose(values(one), values(other), atol=1e-14)
