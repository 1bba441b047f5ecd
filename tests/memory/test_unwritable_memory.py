"""Writes to arrays that cannot change: marked read-only, or of a library whose arrays are
immutable.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pytest
from backends_in_use import in_use
from conftest import values

import multigrad as mg
from multigrad import func
from multigrad.errors import GradientError

X = np.asarray([1.0, 2.0, 3.0, 4.0])


def marked() -> Any:
    a = X.copy()
    a.flags.writeable = False
    return a


def of_jax() -> Any:
    return np.asarray(pytest.importorskip("jax").numpy.asarray(X))


def of_strict() -> Any:
    return pytest.importorskip("array_api_strict").from_dlpack(marked())


READ_ONLY: dict[str, Callable[[], Any]] = {
    "a flag": marked,
    "np.frombuffer": lambda: np.frombuffer(X.tobytes()),
    "part of a buffer": lambda: np.frombuffer(X.tobytes())[::-1],
    "np.asarray of JAX's": of_jax,
    "strict": of_strict,
}


def multiplied(t: Any) -> None:
    t *= 2.0


def with_history(t: Any) -> None:
    t += mg.asarray(np.ones(4), backend=t._elem.library.name, requires_grad=True)


def through_a_view(t: Any) -> None:
    part = t[1:]
    part *= 2.0


def updated(t: Any) -> None:
    """A step of an optimiser, as README has it."""
    t.requires_grad_()
    (t * t).sum().backward()
    with mg.no_grad():
        t -= 0.25 * t.grad


WRITES: dict[str, Callable[[Any], Any]] = {
    "number": multiplied,
    "Tensor": lambda t: operator.iadd(t, t + 1.0),
    "history": with_history,
    "element": lambda t: t.__setitem__(0, 9.0),
    "slice": lambda t: t.__setitem__(slice(2), t[2:]),
    "mask": lambda t: t.__setitem__(t > 1.0, 9.0),
    "indices": lambda t: t.__setitem__([0, 1], 9.0),
    "twin": lambda t: t.sin_(),
    "zero_": lambda t: t.zero_(),
    "copy_": lambda t: t.copy_(t * 2.0),
    "view": through_a_view,
    "update": updated,
    "data": lambda t: operator.imul(t.data, 3.0),
}


class TestReadOnly:
    @pytest.mark.parametrize("write", WRITES)
    @pytest.mark.parametrize("source", READ_ONLY)
    def test_it_is_called_so(self, source: str, write: str) -> None:
        t = mg.asarray(READ_ONLY[source]())
        before = values(t).copy()
        expected = (
            r"^[a-z]+: the memory of this Tensor is read-only \(.*\), as that of np\.frombuffer "
            r"or of another library may be\. Write into a copy: clone\(\), or asarray\(x, "
            r"copy=True\)\.(\nCalled as .*)?$"
        )
        with pytest.raises(RuntimeError, match=expected):
            WRITES[write](t)
        np.testing.assert_array_equal(values(t), before)

    @pytest.mark.parametrize("source", READ_ONLY)
    def test_the_advice_helps(self, source: str) -> None:
        for copied in (
            mg.asarray(READ_ONLY[source]()).clone(),
            mg.asarray(READ_ONLY[source](), copy=True),
        ):
            for write in WRITES.values():
                write(copied.clone().detach())

    def test_one_element_at_many_places_is_called_so(self) -> None:
        t = mg.asarray(np.broadcast_to(np.ones(1), (3,)))
        with pytest.raises(
            RuntimeError,
            match="more than one element of the written-to tensor refers to a single memory "
            "location",
        ):
            t += 1.0

    def test_a_gradient_that_the_user_set(self) -> None:
        for array, expected in (
            (
                np.frombuffer(np.ones(3).tobytes()),
                "adding to .grad: the memory of this Tensor is read-only",
            ),
            (np.broadcast_to(np.ones(1), (3,)), "adding to .grad: .* more than one element"),
        ):
            x = mg.asarray(np.ones(3), requires_grad=True)
            x.grad = mg.asarray(array)
            with pytest.raises(RuntimeError, match=expected):
                (2 * x).sum().backward()
            x.grad = x.grad.clone()
            (2 * x).sum().backward()
            np.testing.assert_array_equal(x.grad.array, [3.0, 3.0, 3.0])


class Fixed(np.lib.mixins.NDArrayOperatorsMixin):
    """An array without assignment: of a library whose arrays are immutable."""

    def __init__(self, value: Any) -> None:
        self.value = np.asarray(value)
        self.value.flags.writeable = False

    shape = property(lambda self: self.value.shape)
    ndim = property(lambda self: self.value.ndim)
    dtype = property(lambda self: self.value.dtype)
    device = property(lambda self: "cpu")
    __array__ = lambda self, dtype=None, copy=None: np.array(self.value, dtype=dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, out: Any = None) -> Any:
        return of_fixed(ufunc)(*args)  # `x += y` makes another array

    def __getitem__(self, key: Any) -> Fixed:
        return Fixed(self.value[raw(key)])

    def __bool__(self) -> bool:
        return bool(self.value)

    def __float__(self) -> float:
        return float(self.value)


def raw(x: Any) -> Any:
    if isinstance(x, Fixed):
        return x.value
    return type(x)(map(raw, x)) if type(x) in (tuple, list) else x


def wrapped(x: Any) -> Any:
    if isinstance(x, np.ndarray | np.generic):
        return Fixed(x)
    return type(x)(map(wrapped, x)) if isinstance(x, (tuple, list)) else x


def of_fixed(function: Any) -> Any:
    """A function of NumPy on such arrays."""

    def run(*args: Any, device: Any = None, **kwargs: Any) -> Any:
        return wrapped(function(*map(raw, args), **{k: raw(v) for k, v in kwargs.items()}))

    return run


class Namespace:
    """NumPy's functions on such arrays."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        plain = ("isdtype", "finfo", "iinfo", "result_type", "can_cast")
        return found if isinstance(found, type) or name in plain else of_fixed(found)


def registered(kernels: dict[str, Any]) -> AbstractContextManager[None]:
    capabilities = mg.Capabilities(mutable=False)
    return in_use(
        mg.Backend("fixed", Namespace(), (Fixed,), capabilities=capabilities, kernels=kernels)
    )


@pytest.fixture
def fixed() -> Iterator[None]:
    with registered({}):
        yield


class TestImmutable:
    """A backend without a kernel for it: the new value takes the place of the old one."""

    @pytest.mark.parametrize("write", WRITES)
    def test_as_numpy(self, fixed: Any, write: str) -> None:
        given = Fixed(X.copy())
        t, expected = mg.asarray(given), mg.asarray(X.copy())
        for x in (t, expected):
            WRITES[write](x)
        np.testing.assert_array_equal(values(t), values(expected))
        np.testing.assert_array_equal(given.value, X)
        assert (t._version, t.requires_grad) == (expected._version, expected.requires_grad)

    def test_gradients_of_writes(self, fixed: Any) -> None:
        def program(x: Any) -> Any:
            y = x * 1.0
            part = y[1:3]
            part *= x[0]
            y[3] = part[1] + x[3]
            y += x
            y[y > 3.0] = 2.0 * x[0]
            return (y * y).sum()

        found, expected = (func.grad(program)(x) for x in (Fixed(X), X))
        np.testing.assert_allclose(found.value, expected)
        t, u = mg.asarray(Fixed(X), requires_grad=True), mg.asarray(X.copy(), requires_grad=True)
        for x in (t, u):
            program(x).backward()
        np.testing.assert_allclose(values(t.grad), values(u.grad))

    def test_what_was_kept_is_spoilt_all_the_same(self, fixed: Any) -> None:
        y = mg.asarray(Fixed(X), requires_grad=True) * 1.0
        z = y * y
        y += 1.0
        with pytest.raises(GradientError, match="modified by an inplace operation"):
            z.sum().backward()

    def test_the_kernel_is_asked_where_there_is_one(self) -> None:
        asked = []

        def write(xp: Any, x: Any, value: Any) -> Any:
            asked.append((x.shape, value.shape))
            return Fixed(value.value + 0.5)

        with registered({"write": write}):
            t = mg.asarray(Fixed(X))
            t += 1.0
            assert t.tolist() == [2.5, 3.5, 4.5, 5.5]  # what it returned
        assert asked == [((4,), (4,))]
