"""The habits of the libraries that would spoil values or gradients, each with a test that would
catch it.
"""

from __future__ import annotations

import operator
import subprocess
import sys
from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np
import pytest
from conftest import values

import multigrad as mg
from multigrad.plugins import discovery

# ----- NumPy scalars -----


OPERANDS: dict[str, Callable[[Any, Any], Any]] = {
    "left": lambda xp, x: np.float64(2.0) * x,
    "left of /": lambda xp, x: np.float64(2.0) / x,
    "exponent": lambda xp, x: x ** np.float64(2.0),
    "where": lambda xp, x: xp.where(x > np.float64(0.0), x, np.float64(0.0)),
    "clip": lambda xp, x: xp.clip(x, np.float64(0.0), np.float64(9.0)),
    "in place": lambda xp, x: operator.iadd(x * 1.0, np.float64(2.0)),
    "index": lambda xp, x: x[np.int64(-1)],
    "value": lambda xp, x: _with_value(x * 1.0, np.int64(0), np.float64(5.0)),
}


def _with_value(x: Any, key: Any, value: Any) -> Any:
    x[key] = value
    return x


@pytest.mark.parametrize("name", OPERANDS)
@pytest.mark.parametrize("library", ["strict", "jax"])
def test_numpy_scalars_do_not_widen_or_change_the_library(library: str, name: str) -> None:
    """Elsewhere they are Python's scalars: float32 stays. (In NumPy itself they are arrays of
    float64, and widen.)
    """
    if library == "jax":
        pytest.importorskip("jax")
    xp = mg.namespace(library)
    x = xp.asarray(np.asarray([1.0, 2.0], np.float32), requires_grad=True)
    y = OPERANDS[name](xp, x)
    assert y.__array_namespace__() is xp and y.dtype == xp.float32 and y.requires_grad
    (g,) = mg.autograd.grad(xp.sum(y), x)
    assert g.__array_namespace__() is xp and g.dtype == xp.float32


def test_numpy_scalars_in_creation(xp: Any) -> None:
    for made in (
        xp.full((2,), np.float64(2.0)),
        xp.linspace(np.float64(0.0), np.float64(1.0), 3),
        xp.asarray(np.float64(2.0)),
        xp.full_like(xp.ones(2), np.float64(2.0)),
        xp.asarray([np.float64(1.0), 2.0]),
    ):
        assert made.__array_namespace__() is xp and made.dtype == xp.asarray(1.0).dtype


# ----- out of bounds -----


def test_integers_out_of_bounds_raise(xp: Any) -> None:
    """JAX would read and write the last element."""
    matrix = xp.asarray(np.arange(6.0).reshape(3, 2), requires_grad=True)
    row = matrix[:, 0]
    for x, key in (
        (row, 3),
        (row, -4),
        (row, np.int64(3)),
        (matrix, (0, 2)),
        (matrix, (..., -3)),
        (matrix, (np.int64(0), np.int64(5))),
    ):
        with pytest.raises(IndexError, match="out of bounds"):
            x[key]
        y = x * 1.0
        with pytest.raises(IndexError, match="out of bounds"):
            y[key] = 1.0


@pytest.mark.parametrize("name", ["take", "take_along_axis", "getitem"])
def test_arrays_out_of_bounds_raise_or_give_nan(backend: str, xp: Any, name: str) -> None:
    """Where the indices are not known, nan, and nothing of the gradient goes to an element that was
    not meant.
    """
    x, i = xp.asarray(np.arange(3.0), requires_grad=True), xp.asarray(np.asarray([0, 5, -1, -7]))
    f = {
        "take": lambda: xp.take(x, i),
        "take_along_axis": lambda: xp.take_along_axis(x, i),
        "getitem": lambda: x[i],
    }[name]
    if backend != "jax":
        with pytest.raises(IndexError, match="out of bounds"):
            f()
        return
    y = f()
    np.testing.assert_array_equal(values(y), [0, np.nan, 2, np.nan])
    np.testing.assert_array_equal(values(mg.autograd.grad(xp.sum(y), x)[0]), [1, 0, 1])


# ----- iteration -----


def test_iteration_ends(xp: Any) -> None:
    """By __getitem__ it ends at an IndexError, which JAX does not raise."""
    x = xp.asarray(np.asarray([1.0, 2.0, 4.0]), requires_grad=True)
    assert len(list(islice(x, 10))) == len(x) == 3
    a, b, c = x
    (g,) = mg.autograd.grad(a + 2 * b + 3 * c, x)
    np.testing.assert_array_equal(values(g), [1, 2, 3])
    with pytest.raises(ValueError, match="too many values to unpack"):
        a, b = x
    constant = x.detach()
    assert [v.item() for v in islice(reversed(constant), 10)] == [4, 2, 1]
    assert 2.0 in constant and 3.0 not in constant
    assert list(xp.zeros((0, 2))) == [] and [row.shape for row in xp.zeros((2, 0))] == [(0,), (0,)]


def test_iteration_ends_under_jit() -> None:
    jax = pytest.importorskip("jax")
    total = jax.jit(lambda a: sum(v * v for v in islice(mg.asarray(a), 10)).array)
    assert float(total(jax.numpy.arange(3.0))) == 5.0


def test_what_has_no_axes_is_not_iterable(xp: Any) -> None:
    for x in (xp.asarray(1.0), xp.sum(xp.ones(3)), xp.ones(3)[0]):
        for f in (iter, list, len, lambda t: 1.0 in t, lambda t: (lambda *_: None)(*t)):
            with pytest.raises(TypeError, match="0-d Tensor|not iterable"):
                f(x)


# ----- memory that is shared -----

N = 200_000
"""Elements: so many that a library takes its time to copy them."""


COPIES: dict[str, Callable[[Any], Any]] = {
    "asarray": lambda x: mg.asarray(x, backend="jax"),
    "xp.asarray of a Tensor": lambda x: mg.namespace("jax").asarray(mg.asarray(x)),
    "to_backend": lambda x: mg.asarray(x).to_backend("jax"),
    "from_dlpack": lambda x: mg.namespace("jax").from_dlpack(x, copy=True),
    "buffer": lambda x: mg.namespace("jax").asarray(memoryview(x)),
    "a list": lambda x: mg.asarray([x], backend="jax")[0],
}
"""Every way in which the values of an array of NumPy become a Tensor of JAX with memory of its
own.
"""


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_is_finished_when_it_is_returned(name: str) -> None:
    """A race, so it is run fifty times: of jax.numpy.asarray some ten of them read what was written
    later.
    """
    pytest.importorskip("jax")
    pytest.importorskip("array_api_strict")
    late = 0
    for _ in range(50):
        source = np.ones(N)
        made = COPIES[name](source)
        source[:] = 5.0
        late += not np.all(values(made) == 1.0)
    assert late == 0


def test_constants_of_a_compiled_function() -> None:
    """They are NumPy's memory no more when the function runs again."""
    jax = pytest.importorskip("jax")
    source = np.ones(N)
    f = jax.jit(lambda x: (mg.asarray(x) * mg.asarray(source, backend="jax")).array)
    first = f(jax.numpy.ones(N))
    source[:] = 5.0
    assert np.all(np.asarray(first) == 1.0) and np.all(np.asarray(f(jax.numpy.ones(N))) == 1.0)


@pytest.mark.parametrize("of", ["numpy", "strict", "jax"])
def test_a_copy_by_dlpack_is_one(backend: str, xp: Any, of: str) -> None:
    """Its own memory, which can be written to; JAX's memory is read-only, and NumPy calls a copy of
    it read-only as well.
    """
    if of == "jax":
        pytest.importorskip("jax")
    memory = np.ones(64)
    source = mg.asarray(memory) if of == "numpy" else mg.namespace(of).asarray(memory)
    for given in (source, source.array):
        copied = xp.from_dlpack(given, copy=True)
        if of != "jax":
            before = source.array
            before[...] = 3.0
            np.testing.assert_array_equal(values(copied), 1.0)
            before[...] = 1.0
        if (backend, of) == ("strict", "jax"):  # array_api_strict 2.6 leaves it as NumPy does
            continue
        copied += 1.0
        copied[0] = 7.0
        np.testing.assert_array_equal(values(copied)[:2], [7, 2])
        np.testing.assert_array_equal(values(source), 1.0)
    converted = source.to_backend(backend) if of != backend else mg.tensor(source)
    converted *= 4.0
    np.testing.assert_array_equal(values(converted), 4.0)
    np.testing.assert_array_equal(values(source), 1.0)


# ----- negative strides -----


@pytest.mark.parametrize("library", ["numpy", "strict"])
def test_reversed_memory_is_exported_as_a_copy(library: str) -> None:
    xp = mg.namespace(library)
    forward = xp.asarray(np.arange(6.0).reshape(2, 3))
    assert np.shares_memory(np.from_dlpack(forward), np.from_dlpack(forward.array))
    for t in (forward[::-1, ...], forward[..., ::-1], xp.flip(forward)):
        exported = np.from_dlpack(t)
        assert min(exported.strides) > 0
        np.testing.assert_array_equal(exported, values(t))
    with pytest.raises(
        BufferError,
        match=r"copy=False.: the memory has negative strides, which not every library can take",
    ):
        np.from_dlpack(forward[::-1, ...], copy=False)


def test_torch_survives_reversed_memory() -> None:
    """In a process of its own, which torch.from_dlpack would end."""
    pytest.importorskip("torch")
    code = (
        "import numpy as np, torch, multigrad as mg\n"
        "t = mg.asarray(np.arange(4.0))[::-1]\n"
        "print(torch.from_dlpack(t).tolist(), torch.asarray(t).tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout) == (0, "[3.0, 2.0, 1.0, 0.0] [3.0, 2.0, 1.0, 0.0]\n"), (
        done.stderr[-2000:]
    )


# ----- dtypes on the way -----


def test_without_x64_dtypes_are_narrow_and_told() -> None:
    """What JAX cannot have becomes what it has, and the Tensor's dtype says so; asked for by name,
    JAX warns.
    """
    pytest.importorskip("jax")
    xp = mg.namespace("jax")
    wide = np.asarray([1.0, 2.0, 1e-9 + 1])
    with discovery.get("jax").variants["x32"]():
        for made in (
            mg.asarray(wide, backend="jax"),
            xp.from_dlpack(wide),
            mg.asarray(wide).to_backend("jax"),
            xp.zeros(3),
        ):
            assert made.dtype == made.array.dtype == np.float32
            assert made.requires_grad_().sum().dtype == np.float32
        assert mg.asarray(wide + 1j, backend="jax").dtype == np.complex64
        assert mg.asarray(np.arange(3), backend="jax").dtype == np.int32
        with pytest.warns(UserWarning, match="float64 requested in asarray is not available"):
            asked = mg.asarray(wide, backend="jax", dtype="float64")
        assert asked.dtype == np.float32
    assert mg.asarray(wide, backend="jax").dtype == np.float64


@pytest.mark.filterwarnings("error")
def test_a_gradient_comes_back_in_the_library_and_dtype_of_its_argument() -> None:
    """Also from a library that lacks the dtype, which would be asked in vain to cast to it."""
    pytest.importorskip("jax")
    with discovery.get("jax").variants["x32"]():
        for record in (False, True):
            x = mg.asarray(np.asarray([1.0, 2.0]), requires_grad=True)
            y = (x * 1.0).to_backend("jax")
            (g,) = mg.autograd.grad((y * y).sum(), x, create_graph=record)
            assert (
                isinstance(g.array, np.ndarray) and g.dtype == np.float64 and g.tolist() == [2, 4]
            )
        (h,) = mg.autograd.grad(g.sum(), x)
        assert isinstance(h.array, np.ndarray) and h.dtype == np.float64 and h.tolist() == [2, 2]
    z = mg.asarray(np.asarray([1.0, 2.0], np.float32), requires_grad=True)
    (mg.asarray(z, backend="jax", dtype="float64") * 3.0).sum().backward()
    assert isinstance(z.grad.array, np.ndarray) and z.grad.dtype == np.float32


# ----- devices -----


def other_device() -> tuple[Any, Any]:
    strict = pytest.importorskip("array_api_strict")
    return mg.namespace("strict"), strict.Device("device1")


def test_devices_do_not_mix() -> None:
    """Not even by way of a constant, an index or a mask; the message is the library's."""
    xp, device = other_device()
    here, there = xp.asarray(np.ones(3)), xp.asarray(np.ones(3), device=device, requires_grad=True)
    index, mask = xp.asarray(np.asarray([0])), xp.asarray(np.asarray([True, False, True]))
    for f in (
        lambda: here + there,
        lambda: there * here.array,
        lambda: xp.where(mask, there, 0.0),
        lambda: xp.concat([here, there]),
        lambda: xp.take(there, index),
        lambda: there[index],
        lambda: there[mask],
        lambda: there @ here,
    ):
        with pytest.raises((ValueError, IndexError), match="device"):
            f()


@pytest.mark.parametrize(
    "f",
    [
        lambda xp, x: xp.mean(x) * 2.0,
        lambda xp, x: xp.max(x),
        lambda xp, x: xp.prod(x + 1.0),
        lambda xp, x: xp.take(x, xp.asarray(np.asarray([0, 0]), device=x.device)),
        lambda xp, x: xp.sort(x, descending=True),
        lambda xp, x: xp.fft.irfft(xp.fft.rfft(x), n=3),
    ],
)
def test_gradients_stay_on_their_device(f: Any) -> None:
    """Whatever constants the rules make, to second order."""
    xp, device = other_device()
    x = xp.asarray(np.asarray([1.0, 2.0, 3.0]), device=device, requires_grad=True)
    (g,) = mg.autograd.grad(xp.sum(f(xp, x)), x, create_graph=True)
    assert g.device == device
    if g.requires_grad:
        (h,) = mg.autograd.grad(xp.sum(g), x)
        assert h.device == device


def test_a_gradient_comes_back_to_the_device_of_its_argument() -> None:
    xp, device = other_device()
    here = xp.asarray(np.ones(3), requires_grad=True)
    there = here.to_device(device)
    assert there.device == device != here.device
    xp.sum(there * there).backward()
    assert here.grad.device == here.device and here.grad.tolist() == [2, 2, 2]
