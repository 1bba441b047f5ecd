"""The rules of Fourier transforms: lengths, norms, half spectra; what stands in where a library
lacks a function; PyTorch's gradients.
"""

from __future__ import annotations

import inspect
import types
import warnings
from typing import Any

import array_api_compat.numpy
import numpy as np
import pytest
from rule_checks import NUMPY, bound, check, complexes, linearized, reals, strict_raw, to_numpy

import multigrad as mg
from multigrad import registry
from multigrad.backends.raw import RawNamespace
from multigrad.backends.spec import Backend
from multigrad.dispatch import codegen

NORMS = ("backward", "ortho", "forward")
COMPLEX, TO_HALF, FROM_HALF = ("fft", "ifft"), ("rfft", "ihfft"), ("irfft", "hfft")
ONE = (*COMPLEX, *TO_HALF, *FROM_HALF)
SEVERAL = ("fftn", "ifftn", "rfftn", "irfftn")


def argument(name: str, *shape: int) -> Any:
    """Values that the transform is made for."""
    return reals(*shape) if name in (*TO_HALF, "rfftn") else complexes(*shape)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", [None, 1, 2, 3, 4, 5, 8, 9])
@pytest.mark.parametrize("name", ONE)
def test_every_length(name: str, n: int | None, norm: str) -> None:
    """Shorter and longer than the axis, even and odd."""
    check(f"fft.{name}", argument(name, 2, 4), on=strict_raw(), n=n, norm=norm)


@pytest.mark.parametrize("name", ONE)
def test_every_axis(name: str) -> None:
    for axis in (0, 1, -1, -2, -3):
        check(f"fft.{name}", argument(name, 3, 2, 4), on=strict_raw(), n=5, axis=axis)


@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("length", [1, 2, 3])
def test_short_axes(name: str, length: int) -> None:
    check(
        f"fft.{name}",
        argument(name, length),
        on=strict_raw(),
        n=1 if name in FROM_HALF and length == 1 else None,
    )
    check(f"fft.{name}", argument(name, 0, length), on=strict_raw(), n=4)


AXES: list[tuple[Any, Any]] = [
    (None, None),
    (None, (0, 2)),
    (None, (-1,)),
    (None, (2, 0, 1)),
    ((4, 5), (1, -1)),
    ((2, 1, 6), (0, 1, 2)),
    ((3, -1), (2, 0)),
    ((5, 2), (0, 0)),
    (None, (1, 1)),
    ((2, 6, 3), (0, 1, 0)),
    ((4, 4, 6), (0, 1, 0)),
]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("s", "axes"), AXES, ids=str)
@pytest.mark.parametrize("name", SEVERAL)
def test_several_axes(name: str, s: Any, axes: Any, norm: str) -> None:
    """Trimmed, padded, in any order, and repeated, where NumPy transforms an axis again."""
    check(f"fft.{name}", argument(name, 2, 3, 4), on=strict_raw(), s=s, axes=axes, norm=norm)


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.filterwarnings("ignore:`axes` should not be `None`:DeprecationWarning")
def test_lengths_without_axes_are_those_of_the_last(name: str) -> None:
    check(f"fft.{name}", argument(name, 2, 3, 4), s=(5, 3))


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.filterwarnings("error::DeprecationWarning")
def test_lengths_without_axes_are_not_what_numpy_deprecates(name: str) -> None:
    x, f = argument(name, 2, 3, 4), getattr(mg.fft, name)
    np.testing.assert_array_equal(f(x, s=(5, 3)), f(x, s=(5, 3), axes=(-2, -1)))


@pytest.mark.parametrize("name", ["fftn", "ifftn"])
def test_over_no_axes_the_result_is_the_argument(name: str) -> None:
    """Its memory too, so that a write is noticed by what saved the other."""
    check(f"fft.{name}", complexes(2, 3), on=strict_raw(), axes=())
    x = mg.asarray(complexes(2, 3))
    y = getattr(mg.fft, name)(x, axes=())
    assert np.shares_memory(x.array, y.array) and y._cell is x._cell
    assert getattr(mg.fft, name)(x, axes=(0,))._cell is not x._cell


@pytest.mark.parametrize("name", ["fftshift", "ifftshift"])
@pytest.mark.parametrize("axes", [None, 0, -1, (0, 1), (-1,)], ids=str)
def test_shifts(name: str, axes: Any) -> None:
    for make in (reals, complexes):
        check(f"fft.{name}", make(3, 4, 5), on=strict_raw(), axes=axes)


# ----- half spectra -----


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", [1, 2, 5, 6])
@pytest.mark.parametrize("name", FROM_HALF)
def test_what_has_no_twin_has_no_imaginary_gradient(name: str, n: int, norm: str) -> None:
    (g,) = check(f"fft.{name}", complexes(n // 2 + 1), n=n, norm=norm)
    alone = {0, n // 2} if n % 2 == 0 else {0}
    for k, value in enumerate(g):
        assert (value.imag == 0) == (k in alone)
        assert value.real != 0


def test_gradients_of_sums() -> None:
    """PyTorch's: the sum of a signal is the first element of its spectrum."""
    for name, x, expected in [
        ("fft", np.ones(4), [4, 0, 0, 0]),
        ("irfft", np.ones(3) + 0j, [1, 0, 0]),
        ("hfft", np.ones(3) + 0j, [4, 0, 0]),
    ]:
        t = mg.asarray(x, requires_grad=True)
        mg.autograd.backward(
            getattr(mg.fft, name)(t).sum(),
            mg.asarray(np.asarray(1.0 + 0j if name == "fft" else 1.0)),
        )
        assert t.grad.dtype == x.dtype
        np.testing.assert_allclose(t.grad.array, expected, atol=1e-15)


@pytest.mark.parametrize("name", ["fft", "ifft", "fftn", "irfft", "hfft"])
@pytest.mark.parametrize("library", ["numpy", "jax"])
def test_real_values_have_real_gradients(name: str, library: str) -> None:
    """Also where the standard wants complex values, but the library takes real ones."""
    if library == "jax":
        pytest.importorskip("jax")
    t = mg.asarray(reals(2, 3), backend=library, requires_grad=True)
    y = getattr(mg.fft, name)(t)
    cotangent = (reals if name in FROM_HALF else complexes)(*y.shape)
    (g,) = mg.autograd.grad(y, t, grad_outputs=mg.asarray(cotangent, backend=library))
    op, values = bound(f"fft.{name}", (reals(2, 3) + 0j,), {})
    (whole,) = codegen.vjp(
        op, NUMPY, values, codegen._call_raw(op, NUMPY, values), cotangent, (True,)
    )
    assert g.dtype == t.dtype and whole.dtype == np.complex128
    np.testing.assert_allclose(to_numpy(g.array), whole.real, atol=1e-14)


@pytest.mark.parametrize("name", [*ONE, *SEVERAL, "fftshift"])
def test_single_precision_stays(name: str) -> None:
    """At every step: NumPy would widen silently, array_api_strict and a comparison of dtypes
    tell.
    """
    x = argument(name, 3, 4)
    x = x.astype(np.complex64 if x.dtype.kind == "c" else np.float32)
    op, values = bound(
        f"fft.{name}", (x,), {} if name in ("fftshift", *ONE) else {"s": (4, 5), "axes": (0, 1)}
    )
    ans = codegen._call_raw(op, NUMPY, values)
    assert ans.dtype in (np.complex64, np.float32)
    plan = codegen.pullback(op, (True,), ans.dtype.kind == "c", False)
    g = plan.vjp(NUMPY, np.ones_like(ans), *codegen.saved_values(op, NUMPY, plan.plan, values, ans))
    assert g.dtype == x.dtype
    narrow = linearized(strict_raw(), f"fft.{name}", (x,), {}, strict_raw().asarray)[:3]
    assert {
        part.dtype for found in narrow for part in (found if isinstance(found, tuple) else (found,))
    } <= {ans.dtype, x.dtype}


# ----- derivatives of derivatives -----


@pytest.mark.parametrize("name", [*ONE, *SEVERAL, "fftshift"])
def test_second_derivatives_of_the_energy(name: str, xp: Any) -> None:
    """|F x|^2 is a quadratic form, so its gradient is linear: H v by differentiating twice is the
    gradient at v.
    """
    options = (
        {"n": 5} if name in ONE else {} if name == "fftshift" else {"s": (3, 5), "axes": (0, 1)}
    )

    def gradient(value: Any, create_graph: bool) -> tuple[Any, Any]:
        x = xp.asarray(value, requires_grad=True)
        y = getattr(xp.fft, name)(x, **options)
        energy = (
            xp.real(y * xp.conj(y)) if xp.isdtype(y.dtype, "complex floating") else y * y
        ).sum()
        return x, mg.autograd.grad(energy, x, create_graph=create_graph)[0]

    value, v = argument(name, 3, 4), argument(name, 3, 4)[::-1] + 1.0
    x, g = gradient(value, True)
    (hv,) = mg.autograd.grad(g, x, grad_outputs=xp.asarray(v))
    np.testing.assert_allclose(
        to_numpy(hv.array), to_numpy(gradient(v, False)[1].array), rtol=1e-12, atol=1e-12
    )


# ----- PyTorch -----


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ONE)
def test_torch_agrees_along_an_axis(name: str, norm: str) -> None:
    for n in (None, 3, 6):
        compare_with_torch(
            name,
            argument(name, 4, 3),
            {"n": n, "axis": 0, "norm": norm},
            {"n": n, "dim": 0, "norm": norm},
        )
        compare_with_torch(
            name, argument(name, 2, 5), {"n": n, "norm": norm}, {"n": n, "norm": norm}
        )


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", SEVERAL)
def test_torch_agrees_over_several_axes(name: str, norm: str) -> None:
    x = argument(name, 2, 3, 4)
    for s, axes in ((None, None), (None, (2, 0)), ((5, 2), (0, 1))):
        compare_with_torch(
            name, x, {"s": s, "axes": axes, "norm": norm}, {"s": s, "dim": axes, "norm": norm}
        )


@pytest.mark.parametrize("name", ["fft", "irfft", "hfft"])
def test_torch_agrees_on_real_values(name: str) -> None:
    compare_with_torch(name, reals(4), {}, {})


@pytest.mark.parametrize("name", ["fftshift", "ifftshift"])
def test_torch_agrees_on_shifts(name: str) -> None:
    compare_with_torch(name, complexes(3, 4), {"axes": (0,)}, {"dim": (0,)})


def compare_with_torch(name: str, x: Any, ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    t = mg.asarray(x, requires_grad=True)
    y = getattr(mg.fft, name)(t, **ours)
    g = (complexes if y.array.dtype.kind == "c" else reals)(*y.shape)
    (gradient,) = mg.autograd.grad(y, t, grad_outputs=mg.asarray(g))
    other = torch.tensor(x, requires_grad=True)
    out = getattr(torch.fft, name)(other, **theirs)
    out.backward(torch.tensor(g))
    np.testing.assert_allclose(y.array, out.detach().resolve_conj().numpy(), atol=1e-13)
    np.testing.assert_allclose(gradient.array, other.grad.resolve_conj().numpy(), atol=1e-13)


# ----- a library that has fft.fft alone -----


def bare() -> Any:
    """NumPy, with one function in its extension."""
    namespace = types.SimpleNamespace(
        **{
            n: getattr(array_api_compat.numpy, n)
            for n in dir(array_api_compat.numpy)
            if not n.startswith("_")
        }
    )
    namespace.fft = types.SimpleNamespace(fft=array_api_compat.numpy.fft.fft)
    return RawNamespace(Backend("bare", namespace, (np.ndarray,)))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", [n for n in ONE if n != "fft"])
def test_one_transform_makes_the_others(name: str, norm: str) -> None:
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
        found = getattr(bare().fft, name)(x, n=n, axis=axis, norm=norm)
        expected = getattr(np.fft, name)(x, n=n, axis=axis, norm=norm)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, atol=1e-14)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", SEVERAL)
def test_one_axis_after_the_other(name: str, norm: str) -> None:
    x = argument(name, 2, 3, 4)
    for s, axes in (
        (None, None),
        (None, (-1, 0)),
        ((5, 2), (0, 1)),
        ((-1, 3), (1, 2)),
        (None, (0, 0)),
        ((3, 4, 2), (1, 0, 1)),
    ):
        found = getattr(bare().fft, name)(x, s=s, axes=axes, norm=norm)
        np.testing.assert_allclose(
            found, getattr(np.fft, name)(x, s=s, axes=axes, norm=norm), atol=1e-14
        )
    with warnings.catch_warnings(action="ignore"):
        np.testing.assert_allclose(
            getattr(bare().fft, name)(x, s=(5,)), getattr(np.fft, name)(x, s=(5,)), atol=1e-14
        )


def test_shifts_and_frequencies_of_the_standard_alone() -> None:
    fft = bare().fft
    for x, axes in (
        (reals(5), None),
        (reals(3, 4), None),
        (reals(3, 4), 0),
        (reals(3, 4, 5), (-1, 0)),
        (reals(0, 3), None),
    ):
        np.testing.assert_array_equal(fft.fftshift(x, axes=axes), np.fft.fftshift(x, axes))
        np.testing.assert_array_equal(fft.ifftshift(x, axes=axes), np.fft.ifftshift(x, axes))
    for n in (1, 2, 5, 8):
        for d in (1.0, 0.1):
            np.testing.assert_allclose(fft.fftfreq(n, d=d), np.fft.fftfreq(n, d), rtol=1e-15)
            np.testing.assert_allclose(fft.rfftfreq(n, d=d), np.fft.rfftfreq(n, d), rtol=1e-15)
    assert (
        fft.fftfreq(4, dtype=np.float32).dtype
        == fft.rfftfreq(4, dtype=np.float32, device="cpu").dtype
        == np.float32
    )


@pytest.mark.parametrize("name", ["rfft", "irfft", "hfft", "ihfft"])
def test_the_forms_stay_narrow_on_a_strict_library(name: str) -> None:
    xp = strict_raw()
    x = argument(name, 2, 4)
    x = x.astype(np.complex64 if x.dtype.kind == "c" else np.float32)
    found = registry.OPS[f"fft.{name}"].forward["*"](xp, xp.asarray(x), 5, -1, "ortho")
    expected = getattr(np.fft, name)(x, n=5, norm="ortho")
    assert to_numpy(found).dtype == expected.dtype
    np.testing.assert_allclose(to_numpy(found), expected, atol=1e-6)


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
        np.testing.assert_allclose(
            to_numpy(said.detach().array), to_numpy(plain.detach().array), atol=1e-14
        )
        gradients = [
            mg.autograd.grad(
                y,
                x,
                grad_outputs=xp.asarray(argument("ifft" if name != "irfftn" else "rfft", *y.shape)),
            )[0]
            for y in (plain, said)
        ]
        np.testing.assert_allclose(
            to_numpy(gradients[1].array), to_numpy(gradients[0].array), atol=1e-14
        )
        assert transform(x, s=(2, -1), axes=(0, 1)).shape == (2, *plain.shape[1:])


def test_frequencies_are_made_as_asked(xp: Any) -> None:
    for name, length in (("fftfreq", 5), ("rfftfreq", 3)):
        made = getattr(xp.fft, name)(5, d=0.5, dtype="float32")
        assert made.shape == (length,) and made.dtype == xp.float32 and not made.requires_grad
        assert getattr(xp.fft, name)(5, device=made.device).dtype == xp.asarray(0.0).dtype
        assert getattr(xp.fft, name)(5, requires_grad=True).requires_grad


def test_signatures_are_those_of_the_standard(xp: Any) -> None:
    one, several = (
        "(x, /, *, n=None, axis=-1, norm='backward')",
        "(x, /, *, s=None, axes=None, norm='backward')",
    )
    for names, text in (
        (ONE, one),
        (SEVERAL, several),
        (("fftshift", "ifftshift"), "(x, /, *, axes=None)"),
    ):
        for name in names:
            plain = [
                p.replace(annotation=p.empty)
                for p in inspect.signature(getattr(xp.fft, name)).parameters.values()
            ]
            assert str(inspect.Signature(plain)) == text
    assert str(inspect.signature(xp.fft.fftfreq)).startswith(
        "(n, /, *, d=1.0, dtype=None, device=None"
    )
