"""How values come from NumPy and go to it, from libraries with and without DLPack and `__array__`;
which dtypes are refused.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from backends_in_use import in_use

import multigrad as mg
from multigrad import func
from multigrad.autograd import forward_ad
from multigrad.backends import kernels
from multigrad.core import element
from multigrad.errors import BackendError
from multigrad.plugins import discovery

VALUES = {
    "real": np.asarray([[0.5, -1.0, 2.0], [1.5, 0.0, -2.5]]),
    "float32": np.asarray([0.1, 0.2, -3.5], np.float32),
    "complex": np.asarray([1 + 2j, -0.5j]),
    "complex64": np.asarray([[1 + 2j, -0.5j]], np.complex64),
    "bool": np.asarray([True, False, True]),
    "int8": np.asarray([-128, 127], np.int8),
    "uint64": np.asarray([0, 2**64 - 1], np.uint64),
    "int64": np.asarray([-(2**63), 2**63 - 1]),
    "0-d": np.asarray(2.5),
    "empty": np.zeros((0, 3)),
    "empty behind": np.zeros((2, 0), np.int32),
    "nan and inf": np.asarray([np.nan, np.inf, -np.inf, -0.0]),
    "not contiguous": np.arange(24.0).reshape(4, 6)[::2, ::-3].T,
}


class Closed:
    """An array without `__array__`, DLPack or a buffer: nothing but the standard.

    A test adds a protocol in a subclass.
    """

    def __init__(self, value: Any) -> None:
        self.value = np.asarray(value)
        assert self.value.dtype != object

    shape = property(lambda self: self.value.shape)
    ndim = property(lambda self: self.value.ndim)
    dtype = property(lambda self: self.value.dtype)
    device = property(lambda self: "cpu")

    def __getitem__(self, key: Any) -> Closed:
        return Closed(self.value[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.value[key] = _open(value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __complex__(self) -> complex:
        return complex(self.value)

    def __array_namespace__(self, api_version: Any = None) -> Any:
        return sys.modules[__name__]


def _open(x: Any) -> Any:
    if isinstance(x, Closed):
        return x.value
    return type(x)(map(_open, x)) if type(x) in (tuple, list) else x


def _function(name: str) -> Any:
    def function(*args: Any, **kwargs: Any) -> Any:
        if name in ("asarray", "from_dlpack") and isinstance(args[0], np.ndarray):
            raise TypeError("arrays of NumPy are not understood")
        found = getattr(np, name)(
            *map(_open, args), **{k: _open(v) for k, v in kwargs.items() if k != "device"}
        )
        return Closed(found) if isinstance(found, np.ndarray | np.generic) else found

    return function


class Namespace(SimpleNamespace):
    """NumPy's functions on such arrays. What is not understood: NumPy's own arrays."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(np, name)
        return (
            found
            if isinstance(found, type)
            or name in ("isdtype", "finfo", "iinfo", "result_type", "can_cast")
            else _function(name)
        )


class WithoutDLPack(Namespace):
    """The same without the function from_dlpack."""

    def __getattr__(self, name: str) -> Any:
        if name == "from_dlpack":
            raise AttributeError(name)
        return super().__getattr__(name)


class Narrowing(Namespace):
    """The same with a from_dlpack that makes float32 of NumPy's float64, as some libraries do."""

    def __getattr__(self, name: str) -> Any:
        if name == "from_dlpack":
            return lambda x, **_: Closed(np.asarray(_open(x), np.float32))
        return super().__getattr__(name)


@pytest.fixture
def closed() -> Iterator[str]:
    """The backend of a library with neither `__array__` nor DLPack."""
    yield from _registered("closed", Namespace(), Closed)


def _registered(name: str, namespace: Any, kind: type, **more: Any) -> Iterator[str]:
    with in_use(mg.Backend(name, namespace, (kind,), **more)):
        yield name


def same(found: Any, expected: np.ndarray[Any, Any]) -> None:
    assert (
        type(found) is np.ndarray
        and found.dtype == expected.dtype
        and found.shape == expected.shape
    )
    np.testing.assert_array_equal(found, expected)
    if expected.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


class TestToAndFromNumpy:
    @pytest.mark.parametrize("name", VALUES)
    def test_without_any_protocol(self, name: str, closed: str) -> None:
        t = mg.asarray(Closed(VALUES[name]))
        for found in (
            t.numpy(),
            np.asarray(t),
            t.to_backend("numpy").array,
            mg.asarray(t.array, backend="numpy").array,
        ):
            same(found, VALUES[name])
        back = mg.asarray(VALUES[name], backend=closed)
        assert type(back.array) is Closed
        same(back.array.value, VALUES[name])

    @pytest.mark.parametrize("name", VALUES)
    def test_to_a_library_without_the_function_from_dlpack(self, name: str) -> None:
        for backend in _registered("bare", WithoutDLPack(), Closed):
            same(mg.asarray(VALUES[name], backend=backend).array.value, VALUES[name])
            t = mg.asarray(VALUES[name]).to_backend(backend)
            same(t.array.value, VALUES[name])
            same(t.to_backend("numpy").array, VALUES[name])

    @pytest.mark.parametrize(
        "kernels", [{}, {"from_numpy": lambda xp, x: Closed(x.copy())}], ids=["default", "own"]
    )
    def test_to_a_library_whose_from_dlpack_narrows(self, kernels: Any) -> None:
        """Its conversion from NumPy, or from a list, keeps the dtype."""
        wide = np.asarray([0.1, 0.2])
        for backend in _registered("narrowing", Narrowing(), Closed, kernels=kernels):
            same(mg.asarray(wide, backend=backend).array.value, wide)
            same(mg.asarray(wide).to_backend(backend).array.value, wide)

    @pytest.mark.parametrize("name", VALUES)
    def test_as_the_default_does(self, name: str, backend: str) -> None:
        """The kernels of each backend, and the last way of the defaults, which is right for every
        library.
        """
        if (
            backend == "jax"
            and discovery.get("jax").namespace.arange(2.0).dtype != np.float64
            and VALUES[name].dtype.itemsize > 4
        ):
            pytest.skip("without x64")
        library = element.library_named(backend)
        x = mg.asarray(VALUES[name], backend=backend).array
        for to_numpy in (library.backend.kernel("to_numpy"), kernels.to_numpy, kernels._one_by_one):
            same(to_numpy(library.xp, x), VALUES[name])
        for from_numpy in (
            library.backend.kernel("from_numpy"),
            kernels.from_numpy,
            kernels._from_list,
        ):
            y = from_numpy(library.xp, VALUES[name])
            assert isinstance(y, library.backend.array_types) and y.dtype == x.dtype
            same(library.backend.kernel("to_numpy")(library.xp, y), VALUES[name])

    def test_copies(self, backend: str) -> None:
        t = mg.asarray(np.asarray([1.0, 2.0]), backend=backend)
        copied = np.array(t, copy=True)
        copied[0] = 5.0
        assert t.tolist() == [1, 2]
        assert np.array(t, dtype=np.complex64, copy=None).dtype == np.complex64
        if backend != "jax":
            shared = np.asarray(t, copy=False)
            shared[0] = 7.0
            assert t.tolist() == [7, 2]

    def test_no_copy_of_what_cannot_be_shared(self, closed: str) -> None:
        t = mg.asarray(Closed([1.0]))
        with pytest.raises(ValueError, match=r"to_numpy\(copy=False\): .* without a copy"):
            np.asarray(t, copy=False)
        assert np.array(t).tolist() == [1]

    def test_more_than_can_be_taken_one_by_one(self, closed: str) -> None:
        """Ten thousand elements take a second on a slow library; beyond that the kernel is to be
        written.
        """
        many = Closed(np.zeros(10_001))
        with pytest.raises(
            BackendError, match=r"10001 elements.* Backend\(kernels=\{'to_numpy': f\}\)"
        ):
            mg.asarray(many).numpy()
        with pytest.raises(
            BackendError, match=r"(?s)cannot bring an array of 'closed' .*'to_numpy': f"
        ):
            mg.asarray(many, backend="numpy")
        with pytest.raises(
            BackendError, match=r"10001 elements.* Backend\(kernels=\{'from_numpy': f\}\)"
        ):
            mg.asarray(np.zeros(10_001), backend=closed)
        assert mg.asarray(Closed(np.zeros(10_000))).numpy().shape == (10_000,)
        assert mg.asarray(np.zeros(10_000), backend=closed).shape == (10_000,)
        assert len(mg.asarray(many).tolist()) == 10_001

    def test_the_kernels_are_asked_first(self) -> None:
        asked: list[Any] = []

        def to_numpy(xp: Any, x: Any, copy: bool | None = None) -> Any:
            asked.append(copy)
            return x.value

        def from_numpy(xp: Any, x: Any) -> Any:
            asked.append(x.shape)
            return Closed(x)

        for own in _registered(
            "own", Namespace(), Closed, kernels={"to_numpy": to_numpy, "from_numpy": from_numpy}
        ):
            assert mg.asarray(Closed(np.zeros(20_000)), backend="numpy").shape == (20_000,)
            assert mg.asarray(Closed(np.zeros(3))).numpy().tolist() == [0, 0, 0]
            assert mg.asarray(np.zeros(20_000), backend=own).shape == (20_000,)
        assert asked == [None, None, (20_000,)]

    def test_an_array_protocol_that_gives_objects_is_not_believed(self) -> None:
        class Boxing(Closed):
            def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
                return np.asarray([self], dtype=object)

        for _ in _registered("boxing", Namespace(), Boxing):
            same(mg.asarray(Boxing([1.0, 2.0])).numpy(), np.asarray([1.0, 2.0]))

    def test_on_a_device_that_numpy_cannot_read(self) -> None:
        strict = pytest.importorskip("array_api_strict")
        device = next(d for d in strict.__array_namespace_info__().devices() if "device1" in str(d))
        t = mg.asarray(strict.asarray([1.0, 2.0], device=device))
        same(t.numpy(), np.asarray([1.0, 2.0]))


def calls_of(f: Any) -> int:
    """How many functions of Python run, but for those that the garbage collector calls."""
    count = 0

    def count_one(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        count += event == "call"

    gc.disable()
    sys.setprofile(count_one)
    try:
        f()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


LISTS = {
    "floats": lambda n: [float(i) for i in range(n)],
    "integers": lambda n: list(range(n)),
    "mixed": lambda n: [1.0, 2] * (n // 2),
    "NumPy's scalars": lambda n: list(np.linspace(0.0, 1.0, n)),
    "rows": lambda n: [(float(i), 1.0) for i in range(n // 2)],
}


class TestLists:
    @pytest.mark.parametrize("name", LISTS)
    def test_the_work_in_python_does_not_grow_with_the_list(self, name: str) -> None:
        few, many = LISTS[name](10), LISTS[name](1000)
        mg.asarray(few)
        assert calls_of(lambda: mg.asarray(many)) <= calls_of(lambda: mg.asarray(few)) + 5
        same(mg.asarray(many).array, np.asarray(many))

    @pytest.mark.parametrize("shape", [(1000,), (10, 10, 10), (1000, 1)])
    def test_the_work_of_tolist_does_not_grow_with_the_array(self, shape: tuple[int, ...]) -> None:
        many = np.linspace(0.0, 1.0, 1000).reshape(shape)
        t, few = mg.asarray(many), mg.asarray(many.reshape(-1)[:8].reshape(2, 2, 2))
        few.tolist()
        assert calls_of(t.tolist) <= calls_of(few.tolist) + 5
        assert t.tolist() == many.tolist()

    @pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float32", "complex64"])
    def test_tolist_gives_scalars_of_python(self, backend: str, dtype: str) -> None:
        values = np.asarray([[0, 1], [2, 3]]).astype(dtype)
        t = mg.asarray(values, backend=backend)
        for found, expected in ((t, values), (t[:0, :], values[:0]), (t[0, 0], values[0, 0])):
            assert found.tolist() == expected.tolist()
        assert type(t[0, 0].tolist()) is type(values[0, 0].item())

    def test_tolist_of_wide_and_narrow_dtypes(self) -> None:
        for dtype, kind in ((np.longdouble, float), (np.clongdouble, complex), (np.float16, float)):
            (number,) = mg.asarray(np.ones(1, dtype)).tolist()
            assert type(number) is kind

    def test_tolist_inside_transformations(self) -> None:
        seen = []
        mg.func.grad(lambda x: (seen.append((x * 2).tolist()), mg.sum(x))[1])(
            np.asarray([1.0, 2.0])
        )
        mg.func.jvp(
            lambda x: (seen.append((x * 2).tolist()), x)[1],
            (np.asarray([1.0, 2.0]),),
            (np.ones(2),),
        )
        assert seen == [[2, 4], [2, 4]]
        with pytest.raises(mg.errors.BatchingError):
            mg.func.vmap(lambda x: (x.tolist(), x)[1])(np.ones((2, 2)))

    def test_arrays_anywhere_in_a_list_are_stacked(self) -> None:
        t = mg.asarray(np.asarray([1.0, 2.0]), requires_grad=True)
        for nested in (
            [1.0, t[0]],
            [t[0], 1.0],
            [[1.0, 2.0], t],
            [[[1.0, t[1]]], [[t[0], 3]]],
            ([t[0], np.float64(2)], [1, 2]),
        ):
            found = mg.asarray(nested)
            assert found.requires_grad
            assert (
                found.shape
                == np.asarray(
                    mg.func.vmap(lambda _, nested=nested: mg.asarray(nested).detach())(np.ones(1))
                )[0].shape
            )
        (g,) = mg.autograd.grad(mg.asarray([[1.0, t[1]], [t[0], t[1]]]).sum(), t)
        assert g.tolist() == [1, 2]

    def test_scalars_of_numpy(self) -> None:
        for values in (
            [np.float32(1), np.float32(2)],
            [np.float32(1), 2.0],
            [[np.int8(1)], [np.int8(2)]],
            [np.bool_(True), False],
        ):
            same(mg.asarray(values).array, np.asarray(values))
        assert mg.asarray([np.float64(1), 2], dtype="float32").dtype == np.float32
        assert mg.asarray([np.float64(1), mg.asarray(np.float64(2))]).tolist() == [1, 2]
        strict = pytest.importorskip("array_api_strict")
        assert mg.asarray([np.float64(1), 2], backend="strict").array.dtype == strict.float64

    def test_lists_that_are_none(self) -> None:
        endless: list[Any] = []
        endless.append(endless)
        for wrong in (endless, [[1.0], [1.0, 2.0]], [[1.0], 2.0]):
            with pytest.raises((ValueError, RecursionError)):
                mg.asarray(wrong)
        assert mg.asarray([]).shape == (0,)
        assert mg.asarray([[], []]).shape == (2, 0)


class TestRefusedDtypes:
    """Arrays of Python objects and records: no function of the standard is defined on them."""

    @pytest.mark.parametrize(
        "make",
        [
            lambda: mg.asarray(np.array([1, "a"], dtype=object)),
            lambda: mg.asarray(2**100),
            lambda: mg.asarray(np.ones(2), dtype=object),
            lambda: mg.asarray(np.ones(2)).astype(object),
            lambda: mg.zeros(2, dtype=object),
            lambda: mg.asarray(Boxed()),
            lambda: mg.asarray(np.ones(2)) * np.array([1, 2], dtype=object),
            lambda: mg.func.grad(lambda x: mg.sum(x * np.array([1, 2], dtype=object)))(np.ones(2)),
        ],
    )
    def test_objects(self, make: Any) -> None:
        with pytest.raises(
            TypeError,
            match=r"cannot hold an array of dtype object .*: convert it, x\.astype\('float64'\)",
        ):
            make()

    def test_records(self) -> None:
        with pytest.raises(
            TypeError,
            match=r"cannot hold an array of dtype \[\('a', '<f8'\), \('b', '<i8'\)\] .*: take a "
            r"field, x\['a'\]",
        ):
            mg.asarray(np.zeros(2, dtype=[("a", np.float64), ("b", np.int64)]))

    def test_they_are_handed_on(self) -> None:
        """As an argument that nothing is computed with."""
        x, labels = np.ones(2), np.array(["a", None], dtype=object)
        seen = []
        f = lambda x, labels: (seen.append(labels.dtype), x * 2)[1]

        class Twice(mg.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any, labels: Any) -> Any:
                return f(x, labels)

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return g * 2, None

        assert mg.func.grad(lambda x, labels: mg.sum(f(x, labels)))(x, labels).tolist() == [2, 2]
        assert mg.func.jacfwd(f)(x, labels).tolist() == [[2, 0], [0, 2]]
        assert mg.func.vmap(f, in_axes=(0, None))(x, labels).tolist() == [2, 2]
        assert mg.func.grad(lambda x: mg.sum(mg.func.checkpoint(f)(x, labels)))(x).tolist() == [
            2,
            2,
        ]
        assert Twice.apply(mg.asarray(x, requires_grad=True), labels).requires_grad
        assert mg.func.grad(lambda x: (mg.sum(x), labels), has_aux=True)(x)[1] is labels
        assert set(seen) == {labels.dtype}

    def test_what_else_is_none_of_the_standard_stays(self) -> None:
        """Values without gradients: text, dates, long doubles."""
        for x in (
            np.asarray(["a", "b"]),
            np.asarray(["2020-01-01"], "M8[D]"),
            np.ones(2, np.longdouble),
        ):
            assert mg.asarray(x).array is x


class Boxed:
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray([1, None], dtype=object)


class TestLayersThatRequireGrad:
    """asarray(x, requires_grad=True) of what a transformation hands to its function: a leaf of a
    graph around it.
    """

    @staticmethod
    def slope(x):
        w = mg.asarray(x, requires_grad=True)
        assert isinstance(w, mg.Tensor) and w.is_leaf and w.requires_grad
        mg.sum(w**3).backward()
        return w.grad

    def test_inside_transformations(self):
        x = np.array([1.0, 2.0])
        out, tangent = func.jvp(self.slope, (x,), (np.ones(2),))
        np.testing.assert_allclose(out, 3 * x**2)
        np.testing.assert_allclose(tangent, 6 * x)
        np.testing.assert_allclose(
            func.vmap(self.slope)(np.stack([x, 2 * x])), [3 * x**2, 12 * x**2]
        )
        np.testing.assert_allclose(func.compile(self.slope)(x), 3 * x**2)

    def test_a_dual_of_forward_ad_is_refused(self):
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(mg.asarray(np.ones(2)), mg.asarray(np.ones(2)))
            with pytest.raises(
                mg.errors.GradientError,
                match="a Dual cannot become the value of a Tensor from outside of its "
                "transformation",
            ):
                mg.asarray(dual, requires_grad=True)
