"""Subclasses of a library's arrays: those that mean something else than the library's own, such as
an array with units, are refused wherever an array can be given.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import multigrad as mg
from multigrad import extend, func
from multigrad.errors import ArrayTypeError, BackendError, RegistrationError

X = np.asarray([1.0, 2.0])


class Metres(np.ndarray):
    """Lengths, of which the unit is a factor."""

    unit = 1.0

    def __array_finalize__(self, of: Any) -> None:
        self.unit = getattr(of, "unit", 1.0)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        plain = [x.view(np.ndarray) * x.unit if isinstance(x, Metres) else x for x in inputs]
        out = getattr(ufunc, method)(*plain, **kwargs)
        return out.view(Metres) if isinstance(out, np.ndarray) else out


class Wrapped(np.ndarray):
    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array.view(Wrapped)


class Answering(np.ndarray):
    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return super().__array_function__(function, types, args, kwargs)


class Quaternions(np.ndarray):
    def __mul__(self, other: Any) -> Any:  # type: ignore[override]
        return 2 * np.multiply(self, other)


class OneBased(np.ndarray):
    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(key - 1 if isinstance(key, int) else key)


class Summing:
    """No array: a base class beside an array."""

    def sum(self, *args: Any, **kwargs: Any) -> Any:
        return 10 * np.asarray(self).sum(*args, **kwargs)


class Tenfold(Summing, np.ndarray):  # type: ignore[misc]
    pass


class Named(np.ndarray):
    """An array with a name, which means a plain one."""

    name = ""

    def __array_finalize__(self, of: Any) -> None:
        self.name = getattr(of, "name", "")


OWN = {
    Metres: "__array_ufunc__",
    Wrapped: "__array_wrap__",
    Answering: "__array_function__",
    Quaternions: "__mul__",
    OneBased: "__getitem__",
    Tenfold: "sum",
}


def leaf() -> mg.Tensor:
    return mg.tensor(X, requires_grad=True)


def indices(like: Any) -> Any:
    return np.zeros(2, dtype=int).view(type(like))


def written(t: Any, key: Any, value: Any) -> None:
    t[key] = value


PLACES: dict[str, Callable[[Any], Any]] = {
    "asarray": lambda q: mg.asarray(q),
    "tensor": lambda q: mg.tensor(q, requires_grad=True),
    "an operation": lambda q: mg.sin(q),
    "the right of an operator": lambda q: leaf() * q,
    "the left of an operator": lambda q: q * leaf(),
    "in place": lambda q: operator.iadd(mg.asarray(X.copy()), q),
    "an option": lambda q: mg.clip(leaf(), q, None),
    "a key": lambda q: leaf()[indices(q)],
    "a value": lambda q: written(mg.asarray(X.copy()), slice(None), q),
    "where": lambda q: mg.where(X > 1, leaf(), q),
    "numpy.add, reflected": lambda q: np.add(q, leaf()),
    "func.grad": lambda q: func.grad(lambda x: mg.sum(x))(q),
    "a captured array": lambda q: func.grad(lambda x: mg.sum(x * q))(X),
    "a result": lambda q: func.grad(lambda x: q)(X),
    "a tangent": lambda q: func.jvp(lambda x: x * 2, (X,), (q,)),
    "a cotangent": lambda q: (leaf() * 2).backward(q),
    "func.vmap": lambda q: func.vmap(lambda x: x * 2)(q),
    "func.compile": lambda q: func.compile(lambda x: x * 2)(q),
    "func.scan": lambda q: func.scan(lambda c, x: (c + x, c), mg.asarray(0.0), q),
}


@pytest.mark.parametrize("kind", OWN, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("place", PLACES)
def test_a_subclass_with_functions_of_its_own_is_refused(place: str, kind: type) -> None:
    if issubclass(kind, Metres) and place in ("the left of an operator", "numpy.add, reflected"):
        return  # the class decides about its own functions, as below
    with pytest.raises(ArrayTypeError) as caught:
        PLACES[place](X.view(kind))
    assert isinstance(caught.value, (TypeError, BackendError))
    assert str(caught.value).startswith(
        f"arrays of type {kind.__module__}.{kind.__name__} are refused by the backend 'numpy': "
        f"the class has its own {OWN[kind]}, so its values may have units, a mask or the like, "
        "which gradients would lose. Pass a plain array, x.view(numpy.ndarray). If the class means "
        "the same as numpy.ndarray, register it: multigrad.extend.register_plain_type("
        f"{kind.__name__})."
    )


def test_functions_of_numpy_refuse_it_too() -> None:
    for kind in (Metres, Wrapped):  # Answering has a say of its own
        q = X.view(kind)
        for call in (
            lambda q=q: np.concatenate([leaf(), q]),
            lambda q=q: np.dot(leaf(), q),
            lambda q=q: np.where(X > 1, leaf(), q),
            lambda q=q: np.sin(mg.asarray(X), out=q),
        ):
            with pytest.raises(
                ArrayTypeError, match=f"arrays of type .*{kind.__name__} are refused"
            ):
                call()
    with pytest.raises(TypeError, match="no implementation found for 'numpy.concatenate'"):
        np.concatenate([leaf(), X.view(Answering)])


def test_units_are_not_lost() -> None:
    """The gradient by x would be 1 where it is 0.01: the sum converts centimetres."""
    x, y = X.view(Metres), X.view(Metres)
    y.unit = 0.01
    assert float(np.add(x, y)[0]) == 1.01
    with pytest.raises(ArrayTypeError):
        func.grad(lambda y: mg.sum(np.add(x, y)))(y)
    # a class may give its plain values to a function of its own
    assert func.grad(lambda t: mg.sum(y * t))(X).tolist() == [0.01, 0.02]


def test_what_a_function_does_not_use_arrives_unchanged() -> None:
    q, seen = X.view(Metres), []
    gradient = func.grad(lambda x, q: seen.append(q) or mg.sum(x))(X, q)
    assert seen[0] is q and gradient.tolist() == [1, 1]


def test_other_subclasses_are_plain_arrays(tmp_path: Path) -> None:
    disk = np.memmap(tmp_path / "x", mode="w+", dtype="float64", shape=(2,))
    disk[:] = X

    class Mapped(np.memmap):
        pass

    class New(np.ndarray):  # no class that another test has used
        pass

    for x in (X.view(Named), X.view(np.recarray), disk, disk.view(Mapped), X.view(New)):
        assert np.concatenate([leaf(), x]).shape == (4,)  # type: ignore[arg-type]
        for gradient in (
            func.grad(lambda x: mg.sum(x**2))(x),
            func.grad(lambda y, x=x: mg.sum(x * y**2) / 2)(X),
        ):
            np.testing.assert_array_equal(gradient * X, 2 * X**2 if gradient[0] == 2 else X**3)
        t = mg.asarray(x, requires_grad=True)
        mg.sum(t[:1] * x[1:]).backward()
        assert t.grad.tolist() == [2.0, 0.0]


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_matrices_and_masked_arrays_cannot_be_registered() -> None:
    class Table(np.matrix):
        pass

    for kind in (np.matrix, Table, np.ma.MaskedArray):
        with pytest.raises(ArrayTypeError, match="do not follow the Array API standard"):
            leaf() * np.ones((2, 2)).view(kind)
        with pytest.raises(
            RegistrationError,
            match=rf"register_plain_type: the backend 'numpy' refuses .*{kind.__name__}, whose "
            "arrays do not follow the Array API standard: convert them to plain arrays",
        ):
            extend.register_plain_type(kind)


def test_a_registered_class_with_numpys_protocol_may_come_first_in_a_function_of_numpy() -> None:
    @extend.register_plain_type
    class Logged(np.ndarray):
        def __array_function__(self, *args: Any) -> Any:
            return super().__array_function__(*args)

    x = mg.asarray(X, requires_grad=True)
    np.sum(np.stack([x, X.view(Logged)])).backward()
    assert x.grad is not None and x.grad.tolist() == [1, 1]


def test_a_registered_class_means_plain_arrays() -> None:
    @extend.register_plain_type
    class Logged(np.ndarray):
        calls = 0

        def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
            Logged.calls += 1
            plain = [x.view(np.ndarray) if isinstance(x, Logged) else x for x in inputs]
            return getattr(ufunc, method)(*plain, **kwargs)

    class Child(Logged):
        pass

    class Odd(Logged):
        def __array_wrap__(self, array: Any, *_: Any) -> Any:
            return array

    for kind in (Logged, Child):
        x = X.view(kind)
        assert func.grad(lambda x: mg.sum(x**2))(x).tolist() == [2, 4]
        assert func.grad(lambda y, x=x: mg.sum(x * y))(X).tolist() == [1, 2]
    with pytest.raises(
        ArrayTypeError,
        match=r"has its own __array_wrap__, .* Pass a plain array, x.view\(.*Logged\)",
    ):
        mg.asarray(X.view(Odd))


def test_what_cannot_be_registered() -> None:
    with pytest.raises(
        RegistrationError, match=r"register_plain_type\(\) takes a class, not array\(\[1., 2.\]\)"
    ):
        extend.register_plain_type(X)  # type: ignore[arg-type]
    with pytest.raises(
        RegistrationError,
        match="register_plain_type: .*Path does not inherit from an array type of a backend. "
        "Register a backend for it: multigrad.Backend",
    ):
        extend.register_plain_type(Path)


def test_a_backend_names_its_own_plain_types() -> None:
    strict = pytest.importorskip("array_api_strict", reason="a namespace for the backend")
    with pytest.raises(
        RegistrationError, match="backend 'mine': plain_types must be classes of its arrays"
    ):
        mg.Backend("mine", strict, (Metres,), plain_types=(Named,))
    assert np.memmap in extend.backend("numpy").plain_types
