"""The attributes `real` and `imag`: views of complex arrays on every layer, assignable; of real
arrays the array itself, and zeros.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import values
from leaves import check, leaf

import multigrad as mg
from multigrad import func
from multigrad.autograd import forward_ad
from multigrad.errors import GradientError

Z = np.asarray([1 + 2j, 3 - 1j, -2 + 0.5j])
W = np.asarray([0.5 - 1j, 2.0 + 1j, 1.5 + 3j])
R = np.asarray([4.0, 5.0, 6.0])


class TestReading:
    def test_of_complex_arrays(self, xp: Any) -> None:
        for data in (Z, Z[:0], np.asarray(3 - 4j), Z.astype(np.complex64), np.stack([Z, W]).T):
            z = leaf(xp, data)
            for part, expected in (
                (z.real, data.real),
                (z.imag, data.imag),
                (np.real(z), data.real),
                (np.imag(z), data.imag),
            ):
                assert (
                    isinstance(part, mg.Tensor)
                    and part.requires_grad
                    and values(part).dtype == expected.dtype
                )
                check(part, expected)

    def test_of_real_arrays(self, xp: Any) -> None:
        for data in (
            R,
            R.astype(np.float32),
            np.asarray([1, 2]),
            np.asarray([True, False]),
            np.asarray(2.0),
            R[:0],
        ):
            x = xp.asarray(np.array(data))
            assert x.real is x and np.real(x) is x
            for part in (x.imag, np.imag(x)):
                check(part, np.zeros(data.shape))
                assert part.dtype == x.dtype and not part.requires_grad
        x = leaf(xp, R)
        assert x.real.requires_grad and not x.imag.requires_grad

    def test_gradients(self, xp: Any) -> None:
        z = leaf(xp, Z)
        xp.sum(z.real * z.imag + z.real**2).backward()
        check(z.grad, Z.imag + 2 * Z.real + 1j * Z.real)
        assert mg.autograd.gradcheck(
            lambda z: xp.sin(z.real) * z.imag, leaf(xp, Z)
        ) and mg.autograd.gradgradcheck(lambda z: z.imag**2, leaf(xp, Z))

    def test_they_are_attributes_only(self, xp: Any) -> None:
        z = leaf(xp, Z) * 1.0
        for part in ("real", "imag"):
            with pytest.raises(TypeError, match="object is not callable"):
                getattr(z, part)()
            assert not hasattr(z, part + "_") and isinstance(getattr(mg.Tensor, part), property)
        assert not callable(z) and not callable(z.real)


class TestWriting:
    def test_a_write_to_a_part_reaches_the_array(self, xp: Any) -> None:
        z = xp.asarray(Z.copy())
        re, im = z.real, z.imag
        re += 1
        im[0] = -5.0
        check(z, [2 - 5j, 4 - 1j, -1 + 0.5j])
        z *= 2
        check(re, [4, 8, -2])
        check(im, [-10, -2, 1])
        assert z._version == re._version == im._version == 3

    def test_assignment(self, xp: Any) -> None:
        z = xp.asarray(Z.copy())
        im = z.imag
        z.real = 7
        z.imag = xp.asarray(R)
        check(z, 7 + 1j * R)
        check(im, R)
        z.imag = xp.asarray(R[:1]).array  # a raw array, broadcast
        check(z, 7 + 4j)
        assert z._version == 3

    def test_gradients_of_assignment(self, xp: Any) -> None:
        z, u, v = leaf(xp, Z), leaf(xp, R), leaf(xp, [3.0])
        y = z * z
        y.real = u * u
        y.imag *= v
        xp.sum(xp.real(y * xp.asarray(W))).backward()  # sum(Re W * u^2 - Im W * v * Im z^2)
        check(u.grad, 2 * R * W.real)
        check(v.grad, [-np.sum(W.imag * (Z * Z).imag)])
        check(z.grad, -2 * 3 * W.imag * (Z.imag + 1j * Z.real))

    def test_augmented_assignment_writes_once(self, xp: Any) -> None:
        z = leaf(xp, Z) * 1.0
        saved = z * z
        before = z._version
        z.real += 1
        # as `z[key] += other`: what Python assigns at the end is there already
        assert z._version == before + 2
        check(z, Z + 1)
        y = z * z
        z.imag = z.imag
        xp.sum(xp.real(y)).backward()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            xp.sum(xp.real(saved)).backward()

    def test_of_real_arrays(self, xp: Any) -> None:
        x = leaf(xp, R) * 1.0
        x.real = x.real
        assert not x._version
        x.real += 1
        x.real *= 2
        check(x, 2 * R + 2)
        x.real = xp.asarray(R)
        check(x, R)
        n = xp.asarray(np.asarray([1, 2]))
        for t in (x, n):
            with pytest.raises(
                TypeError,
                match=f"imag: a Tensor of dtype .*{values(t).dtype}.* has no imaginary part to "
                "write to",
            ):
                t.imag = 0.0

    def test_refusals(self, xp: Any) -> None:
        z = leaf(xp, Z)
        with pytest.raises(GradientError, match="a view of a leaf Variable that requires grad"):
            z.real = 0.0
        with pytest.raises(GradientError, match="a view of a leaf Variable that requires grad"):
            z.imag += 1.0
        with mg.no_grad():
            z.real = 1.0
            z.imag += 1.0
        check(z, 1 + 1j * (Z.imag + 1))
        assert z.is_leaf and z._version == 3
        y = z * 1.0
        with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
            y.real = y
        with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
            y.imag = 1j
        with pytest.raises(
            ValueError,
            match="could not broadcast|could not be broadcast|Incompatible types for broadcasting",
        ):
            y.real = xp.ones(2, dtype=xp.float64)

    def test_of_another_view(self, xp: Any) -> None:
        a, b = xp.asarray(Z.copy()), xp.asarray(Z.copy())
        a.real = b.real  # a view of the same kind, but of another array
        a.real = b.imag
        check(a, Z.imag + 1j * Z.imag)
        part = a[1:]
        part.real = 0.0
        check(a, [2 + 2j, -1j, 0.5j])


def total(xp: Any, z: Any) -> Any:
    """sum of |z|^2 (Re z + 1), written with the attributes and in place."""
    y = z * 1.0
    im = y.imag
    y.real += 1.0
    y.imag = z.real**2 + (im * 1.0) ** 2
    return xp.sum(y.real * y.imag)


def plain(z: np.ndarray) -> Any:
    return np.sum((z.real + 1) * np.abs(z) ** 2)


def gradient(z: np.ndarray) -> Any:
    return np.abs(z) ** 2 + 2 * (z.real + 1) * z


class TestLayers:
    def test_forward_mode(self, xp: Any) -> None:
        out, tangent = func.jvp(
            lambda z: total(xp, z), (xp.asarray(Z).array,), (xp.asarray(W).array,)
        )
        check(out, plain(Z))
        check(tangent, np.sum((np.conj(gradient(Z)) * W).real))
        with forward_ad.dual_level():
            d = forward_ad.make_dual(xp.asarray(Z), xp.asarray(W))
            check(forward_ad.unpack_dual(np.imag(d)).tangent, W.imag)
            real = forward_ad.make_dual(xp.asarray(R), xp.asarray(R))
            assert real.real is real
            check(forward_ad.unpack_dual(real.imag).primal, 0 * R)

    def test_batches(self, xp: Any) -> None:
        rows = np.stack([Z, W])
        check(func.vmap(lambda z: total(xp, z))(xp.asarray(rows).array), [plain(Z), plain(W)])
        check(
            func.vmap(func.grad(lambda z: total(xp, z)))(xp.asarray(rows).array),
            np.stack([gradient(Z), gradient(W)]),
        )
        check(func.vmap(lambda x: x.real + x.imag)(xp.asarray(rows.real.copy()).array), rows.real)

    def test_refusals_on_layers_that_are_never_written(self, xp: Any) -> None:
        def f(x: Any) -> Any:
            with pytest.raises(
                TypeError, match="imag: a Dual of dtype .* has no imaginary part to write to"
            ):
                x.imag = 0.0
            return x

        func.jvp(f, (xp.asarray(R).array,), (xp.asarray(R).array,))
