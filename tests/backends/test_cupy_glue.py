"""The glue of the CuPy backend, without a GPU: on a module `cupy` whose arrays wrap NumPy's and
know on which device they are.

What runs on the real library is tested by `make test-gpu`. The stand-in refuses what CuPy would:
operands of two devices, scatters of dtypes that the hardware cannot add, a launch on another device
than the operands'.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pytest

from multigrad.backends import kernels
from multigrad.backends.spec import Backend
from multigrad.errors import NoDeviceError
from multigrad.plugins import discovery


class CUDARuntimeError(RuntimeError):
    """What CuPy raises when there is no driver."""


class Device:
    """A device; as a context, the current one."""

    stack: ClassVar[list[int]] = [0]

    def __init__(self, device: Any = None) -> None:
        self.id = self.stack[-1] if device is None else getattr(device, "id", device)

    def __enter__(self) -> Device:
        self.stack.append(self.id)
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.pop()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)


class Event:
    """A moment on the current device; in milliseconds, each is two after the one before."""

    now: ClassVar[int] = 0

    def record(self) -> None:
        Event.now += 2
        self.time, self.device = Event.now, Device().id

    def synchronize(self) -> None:
        assert self.time


class Array:
    """A stand-in for cupy.ndarray: it wraps, since a subclass would be a NumPy array to
    everybody.
    """

    def __init__(self, value: Any, device: int | None = None) -> None:
        self.value = np.asarray(value)
        self.device = Device(device)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self.value, name)
        return wrapped(found) if callable(found) else found

    def __getitem__(self, key: Any) -> Array:
        return wrap(self.value[raw(key)], self.device.id)

    def __setitem__(self, key: Any, value: Any) -> None:
        assert self.device == Device(), "launched on another device"
        self.value[raw(key)] = raw(value)

    def __len__(self) -> int:
        return len(self.value)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to "
            "construct a NumPy array explicitly."
        )

    def get(self) -> Any:
        return self.value.copy()


for operator in ("add", "sub", "mul", "eq", "ne"):
    setattr(
        Array,
        f"__{operator}__",
        lambda a, b, name=f"__{operator}__": wrap(getattr(a.value, name)(raw(b)), a.device.id),
    )
Array.__hash__ = None  # type: ignore[assignment]


def raw(x: Any) -> Any:
    if isinstance(x, Array):
        return x.value
    return type(x)(raw(v) for v in x) if type(x) in (tuple, list) else x


def wrap(x: Any, device: int | None = None) -> Any:
    return Array(x, device) if isinstance(x, (np.ndarray, np.generic)) else x


def wrapped(function: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        numbers = {a.device.id for a in args if isinstance(a, Array)}
        assert len(numbers) <= 1, "arrays of two devices"
        result = function(*map(raw, args), **{k: raw(v) for k, v in kwargs.items()})
        return wrap(result, numbers.pop() if numbers else None)

    return call


def scatter_add(a: Array, key: Any, value: Any) -> None:
    assert a.device == Device(), "launched on another device"
    if a.value.dtype.kind not in "fc" and a.value.dtype not in (np.int32, np.uint32, np.uint64):
        raise TypeError(
            f"cupyx.scatter_add only supports int32, float16, ... as data type, not {a.value.dtype}"
        )
    np.add.at(a.value, raw(key), raw(value))


def stand_in(count: int | None) -> dict[str, types.ModuleType]:
    """The modules `cupy` and `cupyx` of a machine with that many devices; None: without a
    driver.
    """
    cupy, cupyx = types.ModuleType("cupy"), types.ModuleType("cupyx")

    def device_count() -> int:
        if count is None:
            raise CUDARuntimeError(
                "cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA "
                "runtime version"
            )
        return count

    def lookup(name: str) -> Any:
        found = getattr(np, name)
        return wrapped(found) if callable(found) and not isinstance(found, type) else found

    def create(function: Any) -> Any:
        return lambda obj, **kwargs: Array(function(raw(obj), **kwargs))  # on the current device

    cupy.__dict__.update(
        ndarray=Array,
        __version__="0.stand-in",
        __getattr__=lookup,
        __all__=[],
        asarray=create(np.asarray),
        array=create(np.array),
        cuda=types.ModuleType("cupy.cuda"),
        device=types.ModuleType("cupy.cuda.device"),
        linalg=types.ModuleType("cupy.linalg"),
        fft=types.ModuleType("cupy.fft"),
    )
    cupy.device.__dict__.update(Device=Device)
    cupy.cuda.__dict__.update(
        Device=Device,
        runtime=types.SimpleNamespace(
            getDeviceCount=device_count, CUDARuntimeError=CUDARuntimeError, is_hip=False
        ),
        Event=Event,
        get_elapsed_time=lambda first, last: last.time - first.time,
        get_current_stream=lambda: types.SimpleNamespace(
            synchronize=lambda: waited.append(Device().id)
        ),
    )
    for part, original in ((cupy.linalg, np.linalg), (cupy.fft, np.fft)):
        part.__dict__.update(
            {name: wrapped(getattr(original, name)) for name in original.__all__},
            __all__=list(original.__all__),
        )
    cupyx.__dict__.update(scatter_add=scatter_add)
    modules = {"cupy": cupy, "cupyx": cupyx, "cupy.cuda.device": cupy.device}
    return modules | {f"cupy.{part}": getattr(cupy, part) for part in ("cuda", "linalg", "fft")}


waited: list[int] = []


def make(monkeypatch: pytest.MonkeyPatch, count: int | None) -> Backend:
    """The backend on the stand-in, through the real array_api_compat.cupy, which is imported anew
    and forgotten again.
    """
    from multigrad.backends.cupy import backend as glue

    for name in [m for m in sys.modules if m.startswith("array_api_compat.cupy")]:
        monkeypatch.delitem(sys.modules, name)
    for name, module in stand_in(count).items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(glue, "_constants", {})
    return glue.make()


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Backend]:
    waited.clear()
    yield make(monkeypatch, 2)
    for name in [m for m in sys.modules if m.startswith("array_api_compat.cupy")]:
        del sys.modules[name]
    assert Device.stack == [0]


@pytest.mark.parametrize(
    ("count", "why"), [(None, r" \(cudaErrorInsufficientDriver: .*\)"), (0, "")]
)
def test_no_device_is_told(monkeypatch: pytest.MonkeyPatch, count: int | None, why: str) -> None:
    expected = (
        rf"backend 'cupy': CuPy 0\.stand-in is installed but finds no CUDA device{why}\. Check "
        "with nvidia-smi that a driver is installed, and that CUDA_VISIBLE_DEVICES hides no device"
    )
    with pytest.raises(NoDeviceError, match=expected):
        make(monkeypatch, count)


def test_cupy_is_known_and_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    expected = (
        r"'cupy' is known but its library 'cupy' is not installed: pip install "
        r"'multigrad-array\[cupy\]'"
    )
    with pytest.raises(RuntimeError, match=expected):
        discovery.get("cupy")


@pytest.mark.parametrize(
    "dtype",
    ["float16", "float32", "complex64", "int8", "int32", "int64", "uint8", "uint64", "bool"],
)
@pytest.mark.parametrize("device", [0, 1])
def test_scatters(cupy: Backend, dtype: Any, device: int) -> None:
    """Integers add with their sign and wrap around, whatever type the hardware adds; everything
    stays on the device.
    """
    values = np.array([[1, 2], [-3, 100], [5, 100]]).astype(dtype)
    indices = np.array([0, -1, 0])
    want = np.zeros((3, 2), dtype)
    np.add.at(want, indices, values)
    got = cupy.functions["scatter_add"](Array(values, device), Array(indices, device), 3)
    assert (got.dtype, got.device) == (want.dtype, Device(device))
    np.testing.assert_array_equal(got.value, want)
    for key in (np.array([0, 2, 0]), slice(0, 3), np.array([True, True, False, True])):
        want = np.zeros((4, 2), dtype)
        np.add.at(want, key, values)
        its = Array(key, device) if isinstance(key, np.ndarray) else key
        got = cupy.functions["unindex"](Array(values, device), its, (4, 2))
        assert (got.dtype, got.device) == (want.dtype, Device(device))
        np.testing.assert_array_equal(got.value, want)


def test_setitem_leaves_its_argument_alone(cupy: Backend) -> None:
    x = Array(np.zeros((2, 2)), 1)
    got = cupy.functions["setitem"](x, (slice(None), 0), Array(np.ones(2), 1))
    assert got.value.tolist() == [[1, 0], [1, 0]] and x.value.tolist() == [[0, 0], [0, 0]]


def test_own(cupy: Backend) -> None:
    own = cupy.kernel("take_ownership")

    def alone(make_array: Any, like: Any) -> tuple[bool, Any]:
        box = [make_array()]
        number = id(box[0])
        got = own(None, box.pop(), like)
        return id(got) == number, got

    like = Array(np.ones((2, 3)))
    assert alone(lambda: Array(np.full((2, 3), 2.0)), like)[0] is (kernels.SOLE_OWNER > 0)
    held = Array(np.full((2, 3), 2.0))
    for make_array in (
        lambda: held,
        lambda: Array(np.broadcast_to(2.0, (2, 3))),
        lambda: Array(np.full((3, 2), 2.0).T),
        lambda: Array(np.full((2, 3), 2.0), 1),
    ):
        same, got = alone(make_array, like)
        assert not same and not np.shares_memory(got.value, held.value)
        assert got.value.strides == like.value.strides and got.device == Device(0)
        assert (got.value == 2).all()
    assert alone(lambda: Array(np.broadcast_to(2.0, (2, 3))), None)[1].value.strides == (24, 8)


def test_place_moves_to_the_device_of_the_leaf(cupy: Backend) -> None:
    place = cupy.kernel("place_like")
    g, like = Array(np.ones(2)), Array(np.ones(2), 1)
    assert place(None, g, Array(np.ones(2))) is g
    assert place(None, g, None) is g
    assert place(None, g, like).device == Device(1)


def test_constants_are_kept_on_their_device(cupy: Backend) -> None:
    constant = cupy.kernel("constant")
    first = constant(None, 2.0, np.dtype("f4"), Device(1))
    assert (first.device, first.dtype, first.shape) == (Device(1), np.float32, ())
    assert constant(None, 2.0, np.dtype("f4"), Device(1)) is first
    assert constant(None, 2.0, np.dtype("f4"), None).device == Device(0)
    assert np.signbit(constant(None, -0.0, np.dtype("f4"), None).value)
    assert not np.signbit(constant(None, 0.0, np.dtype("f4"), None).value)


def test_to_numpy_and_back(cupy: Backend) -> None:
    to_numpy, from_numpy = cupy.kernel("to_numpy"), cupy.kernel("from_numpy")
    x = Array(np.array([1.5, 2.5]), 1)
    found = to_numpy(None, x)
    assert type(found) is np.ndarray and found.tolist() == [1.5, 2.5]
    assert not np.shares_memory(found, x.value)
    with pytest.raises(
        ValueError,
        match=r"to_numpy\(copy=False\): NumPy cannot share the memory of a device",
    ):
        to_numpy(None, x, False)
    with Device(1):
        back = from_numpy(None, found)
    assert (back.device, back.value.tolist()) == (Device(1), [1.5, 2.5])


def test_synchronize_waits_on_the_device_of_the_array(cupy: Backend) -> None:
    cupy.kernel("synchronize")(None, Array(np.ones(1), 1))
    assert waited == [1]


def test_time_and_memory_for_the_profiler(cupy: Backend) -> None:
    kernel = cupy.kernel
    x = Array(np.ones(6), 1)
    assert kernel("accelerator")(None, x) == "cuda"
    start, end, elsewhere = (kernel("mark")(None, y) for y in (x, x, Array(np.ones(1), 0)))
    assert start[0].device == 1 and kernel("elapsed")(None, start, end) == 2000.0
    assert kernel("elapsed")(None, start, elsewhere) == 0.0
    view = Array(np.ones(3), 1)
    view.value = types.SimpleNamespace(base=types.SimpleNamespace(base=None, nbytes=48))
    assert kernel("storage")(None, view) == (view.value.base, 48)


def test_devices_and_variants(cupy: Backend) -> None:
    assert cupy.kernel("devices")(None) == (Device(0), Device(1))
    assert list(cupy.variants) == ["device1"]
    with cupy.variants["device1"]() as device:
        assert device == Device(1) == Device()
