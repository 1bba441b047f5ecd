"""The Backend record, and the NumPy backend: its functions against the standard's meaning, its
kernels, its refusals.
"""

from __future__ import annotations

import inspect
import math
from typing import Any

import array_api_compat.numpy as reference
import numpy as np
import pytest

import multigrad as mg
import multigrad.ops
from multigrad import registry
from multigrad.backends import kernels
from multigrad.backends.numpy import backend as numpy_backend
from multigrad.backends.raw import RawNamespace
from multigrad.errors import RegistrationError
from multigrad.plugins import discovery

NUMPY = discovery.get("numpy")
XP = RawNamespace(NUMPY)

# The suite compares wider ones.
DTYPES = [np.float16, np.float32, np.complex64, np.int8, np.uint8, np.bool_]
SHAPES: list[tuple[int, ...]] = [(), (1,), (5,), (0,), (3, 4), (2, 0, 3)]


def sample(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-3, 3, shape)
    if np.dtype(dtype).kind == "u":
        x = abs(x)
    return np.asarray(
        x + 1j * rng.uniform(-3, 3, shape) if np.dtype(dtype).kind == "c" else x
    ).astype(dtype)


def outcome(f: Any, *args: Any, **kwargs: Any) -> Any:
    try:
        return f(*args, **kwargs)
    except (ValueError, IndexError, TypeError, ZeroDivisionError, OverflowError) as error:
        return error


def assert_same(got: Any, want: Any, exact: bool = True) -> None:
    if isinstance(want, Exception):
        assert isinstance(got, Exception), (got, want)
        return
    assert not isinstance(got, Exception), (got, want)
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    if exact:
        np.testing.assert_array_equal(got, want)
    else:
        np.testing.assert_allclose(got, want, rtol=3 * np.finfo(got.dtype).eps, atol=0)


# ----- The record -----


def test_functions_take_the_arguments_of_their_operation(backend: str) -> None:
    """Positional-only parameters may have other names; every other name and kind has to fit."""
    for op, function in discovery.get(backend).functions.items():
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):  # some C functions do not tell
            continue
        wanted = registry.OPS[op].signature.parameters.values()
        args = [p.name for p in wanted if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        signature.bind(*args, **{p.name: None for p in wanted if p.kind is p.KEYWORD_ONLY})


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a name": ({"name": 3}, r"Backend\.name must be a non-empty string, not 3"),
    "kernels": (
        {"kernels": {"fly": print}},
        r"overrides unknown kernels: fly\. Known: accelerator, admit, annotation, assign, "
        r"compile, concrete_bool",
    ),
    "array types": ({"array_types": [np.ndarray]}, "needs array_types, a tuple of the types"),
    "attributes": (
        {"attributes": {"plot": 3}},
        r"backend 'x': attributes\['plot'\] must be callable, not 3",
    ),
    "attributes of all": (
        {"attributes": dict.fromkeys(("grad", "sum", "__add__", "backward", "chunks"), len)},
        r"backend 'x' gives attributes that Tensors of all backends have: __add__, backward, "
        r"grad, sum\.",
    ),
    "scalar types": (
        {"scalar_types": (float,)},
        "backend 'x': scalar_types must be classes of its arrays",
    ),
    "refused types": (
        {"refused_types": (object,)},
        "backend 'x': refused_types must be classes of its arrays, from array_types or "
        "subclasses of those",
    ),
    "a function": (
        {"functions": {"linalg.slove": abs}},
        "backend 'x' gives functions for unknown operations: linalg.slove. Did you mean "
        r"'linalg.solve'\?",
    ),
    "functions": (
        {"functions": {"zzz": abs, "qqq": abs}},
        "gives functions for unknown operations: qqq, zzz. `python -m multigrad ops` lists them",
    ),
    "rules": (
        {"rules": {"sine": {"x": lambda xp, g: g}}},
        "backend 'x' gives rules for unknown operations: sine. Did you mean 'sin",
    ),
    "a rule": (
        {"rules": {"sin": {"y": lambda xp, g: g}}},
        "backend 'x' gives rules for 'sin' by the unknown argument 'y': its rules are for x",
    ),
    "a rule of none": (
        {"rules": {"argmax": {"x": lambda xp, g: g}}},
        "gives rules for 'argmax' by the unknown argument 'x': a nondifferentiable operation has "
        "none",
    ),
    "what a rule takes": (
        {"rules": {"sin": {"x": lambda xp, y: y}}},
        "sin: the rule 'x' takes 'y', which is not one of",
    ),
}


@pytest.mark.parametrize("given", REFUSED)
def test_a_backend_refuses_what_it_cannot_be(given: str) -> None:
    wrong, message = REFUSED[given]
    arguments = {"name": "x", "namespace": np, "array_types": (np.ndarray,)} | wrong
    with pytest.raises(RegistrationError, match=message):
        mg.Backend(**arguments)


def test_the_attributes_of_a_backend_are_those_of_its_tensors() -> None:
    """What only a library's arrays have raises, until a backend gives it to Tensors: then the
    Tensor is what it is asked for.
    """
    x = mg.asarray(np.ones(3))
    assert not hasattr(x, "strides") and "strides" not in dir(x)
    with pytest.raises(
        AttributeError,
        match="'Tensor' object has no attribute 'strides', which only the numpy array in it has",
    ):
        x.strides
    object.__setattr__(
        x._elem.library.backend, "attributes", {"strides": lambda t: (t.array.strides, t.shape)}
    )
    try:
        assert x.strides == ((8,), (3,)) and "strides" in dir(x)
        assert not hasattr(mg.Tensor, "strides") and not hasattr(
            mg.asarray([1.0], backend="strict"), "strides"
        )
    finally:
        object.__setattr__(x._elem.library.backend, "attributes", {})


# ----- NumPy: functions -----


def reference_of(name: str) -> Any:
    """NumPy's own function; of float16, which ours adds up and multiplies in float32, that of
    float32.
    """
    theirs = getattr(reference, name)

    def wide(x: Any, **kwargs: Any) -> Any:
        if x.dtype != np.float16 or "dtype" in kwargs or name in ("mean", "max", "min"):
            return theirs(x, **kwargs)
        return theirs(x.astype(np.float32), **kwargs).astype(np.float16)

    return wide


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@pytest.mark.parametrize("name", ["sum", "prod", "mean", "max", "min"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions(name: str, dtype: Any) -> None:
    for shape in SHAPES:
        x = sample(shape, dtype)
        axes: list[Any] = [None, *range(-len(shape), len(shape)), tuple(range(len(shape))), 7]
        for axis in axes:
            for keepdims in (False, True):
                for value in (x, x[()]) if shape == () else (x, np.asfortranarray(x)):
                    want = outcome(reference_of(name), value, axis=axis, keepdims=keepdims)
                    assert_same(
                        outcome(getattr(XP, name), value, axis=axis, keepdims=keepdims), want
                    )
    for wider in (np.float64, np.complex128):
        if name in ("sum", "prod"):
            assert_same(
                getattr(XP, name)(sample((3,), dtype), dtype=wider),
                getattr(reference, name)(sample((3,), dtype), dtype=wider),
            )


def test_broadcast_to_is_read_only_memory_of_its_argument() -> None:
    for x in (np.array(2.0), np.float64(2.0), np.ones(3)):
        y = XP.broadcast_to(x, (2, 3))
        with pytest.raises(ValueError, match="read-only"):
            y[0, 0] = 1.0
    x = np.array(2.0)
    y = XP.broadcast_to(x, (4,))
    x[...] = 3.0
    assert y.tolist() == [3.0] * 4
    del x
    assert y.tolist() == [3.0] * 4


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@pytest.mark.parametrize("dtype", DTYPES)
def test_scans_and_clip(dtype: Any) -> None:
    for shape in SHAPES:
        x, y = sample(shape, dtype), sample(shape, dtype, seed=1)
        for axis in (None, *range(-len(shape), len(shape))):
            for initial in (False, True):
                for name in ("cumulative_sum", "cumulative_prod"):
                    assert_same(
                        outcome(getattr(XP, name), x, axis=axis, include_initial=initial),
                        outcome(reference_of(name), x, axis=axis, include_initial=initial),
                    )
        for low, high in ((-1.0, 1.0), (None, 1), (None, None), (y, None), (np.float32(-1), 1.0)):
            if np.dtype(dtype).kind in "bc":  # the wrapper casts the limits
                with pytest.raises(TypeError, match="clip: x has dtype .* and limits are for"):
                    XP.clip(x, low, high)
            elif np.dtype(dtype).kind in "iu" and any(
                isinstance(b, (float, np.floating)) for b in (low, high)
            ):
                # the wrapper cuts them
                with pytest.raises(TypeError, match="clip: the bounds must be integers"):
                    XP.clip(x, low, high)
            else:
                assert_same(outcome(XP.clip, x, low, high), outcome(reference.clip, x, low, high))


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@pytest.mark.parametrize(
    "dtype", [np.float16, np.float32, np.float64, np.complex64, np.complex128, np.int8, np.int64]
)
def test_powers(dtype: Any) -> None:
    special = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e200, -1e-200, 1.5, -2.0]
    kind = np.dtype(dtype).kind
    values = np.array(special, dtype=dtype) if kind == "f" else sample((20,), dtype)
    # (At -inf and -0.0, NumPy itself does not agree with itself about the exponent 0.5: a square
    # root on some paths only.)
    for exponent in (0, 1, 2, 3, 4, 5, -1, 1.5, 2.0, 3.0, 4.0, -2.0):
        if kind == "i" and (exponent < 0 or isinstance(exponent, float)):
            continue
        for x in (values, values[3], np.array(values[7])):
            got, want = XP.pow(x, exponent), reference.pow(x, exponent)
            assert_same(got, want, exact=kind == "i")
            if kind == "f":
                assert np.array_equal(np.signbit(got), np.signbit(want))
        assert_same(
            XP.pow(values, np.array(exponent, dtype)),
            reference.pow(values, np.array(exponent, dtype)),
            exact=kind == "i",
        )
    assert_same(XP.pow(2.0, values), reference.pow(2.0, values), exact=kind == "i")
    wide = np.array(3.0)  # a float64 exponent makes a float64 result, even of float32
    assert XP.pow(np.ones(2, np.float32), wide).dtype == np.float64


def test_cubes_are_as_exact_as_powers() -> None:
    x = np.random.default_rng(0).uniform(-10, 10, 10_000)
    exact = np.array([float(v) for v in x.astype(np.longdouble) ** 3])
    assert np.max(abs(XP.pow(x, 3) - exact) / np.spacing(abs(exact))) <= 1.5


# ----- NumPy: scatters -----


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rest", [(), (1,), (3,), (2, 0), (2, 130)])
def test_scatter_add(dtype: Any, rest: tuple[int, ...]) -> None:
    for m, n in ((7, 4), (0, 4), (0, 0), (300, 2)):
        indices = np.random.default_rng(m).integers(-n, n, m) if m else np.zeros(0, np.int64)
        values = sample((m, *rest), dtype)
        want = np.zeros((n, *rest), dtype)
        np.add.at(want, indices, values)
        got = XP.scatter_add(values, indices.astype(np.int32), n)
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(
            got,
            want,
            rtol=1e-2 if dtype is np.float16 else 1e-5,
            atol=0.5 if dtype is np.float16 else 1e-4,
        )


def test_scatter_add_keeps_inf_and_nan_to_their_rows() -> None:
    got = XP.scatter_add(np.array([1.0, math.inf, math.nan, 2.0]), np.array([0, 1, 2, 0]), 4)
    np.testing.assert_array_equal(got, [3.0, math.inf, math.nan, 0.0])


@pytest.mark.parametrize("index", [4, -5])
@pytest.mark.parametrize("rest", [(), (3,), (300,)])
def test_scatter_add_refuses_an_index_out_of_bounds(index: int, rest: tuple[int, ...]) -> None:
    with pytest.raises(IndexError, match=f"index {index} is out of bounds for axis 0 with size 4"):
        XP.scatter_add(np.ones((1, *rest)), np.array([index]), 4)


# ----- NumPy: kernels -----


def owned(make: Any, like: Any) -> tuple[Any, Any]:
    """What `take_ownership` makes of an array that nobody else holds; its id first."""
    box = [make()]
    return id(box[0]), numpy_backend.take_ownership(XP, box.pop(), like)


def test_own_returns_what_nobody_else_holds() -> None:
    x = np.ones((3, 4))
    for make in (lambda: np.full((3, 4), 2.0), lambda: np.full((3, 4), 2.0, np.float32)):
        number, g = owned(make, x)
        assert (id(g) == number) is (kernels.SOLE_OWNER > 0)
    number, g = owned(lambda: np.full(3, 2.0), None)
    assert (id(g) == number) is (kernels.SOLE_OWNER > 0)


class Held:
    """An object that holds an array, as a Tensor does."""

    def __init__(self, array: Any) -> None:
        self.array = array


def is_unshared(*holders: Held) -> bool:
    return bool(numpy_backend.unshared(XP, [h.array for h in holders]))


def test_unshared_memory() -> None:
    """One object for each array, and no view that is not in the list."""
    if kernels.SOLE_LISTED < 0:
        assert not is_unshared(Held(np.ones(3)))
        return
    root = Held(np.ones((3, 4)))
    assert is_unshared(root)
    row = Held(root.array[1])
    part = Held(row.array[1:])
    assert is_unshared(part, row, root) and not is_unshared(row, root) and not is_unshared(root)
    same = Held(root.array)  # as detach() makes one
    assert is_unshared(same, part, row, root) and not is_unshared(part, row, root)
    del same, part
    assert is_unshared(row, root)
    for hold in (
        lambda: root.array,
        lambda: row.array,
        lambda: root.array.T,
        lambda: row.array[:1],
        lambda: root.array.reshape(-1),
        lambda: np.broadcast_to(root.array, (2, 3, 4)),
        lambda: np.lib.stride_tricks.as_strided(root.array, (2,), (8,)),
        lambda: memoryview(root.array),  # type: ignore[arg-type]
        lambda: root.array.flat,
        lambda: Held(root.array),
    ):
        keep: Any = hold()
        assert not is_unshared(row, root)
        del keep
        assert is_unshared(row, root)


def test_memory_of_others_counts_as_shared() -> None:
    base = np.ones((3, 4))
    for array in (base[1:], base.T, np.float64(1.0), np.frombuffer(bytearray(24))):
        assert not is_unshared(Held(array))


def test_own_copies_what_somebody_else_holds() -> None:
    x = np.ones((3, 4))
    held = np.full((3, 4), 2.0)
    number, g = owned(lambda: held, x)
    assert id(g) != number
    assert not np.shares_memory(g, held)

    export: Any = memoryview  # of a Buffer, which an array is only from Python 3.12 on
    for hold in (
        lambda g: g,
        lambda g: g[0],
        lambda g: g.T,
        export,
        lambda g: iter(g),
        lambda g: g.flat,
    ):
        box = [np.full((3, 4), 2.0)]
        keep = hold(box[0])
        address = box[0].ctypes.data
        g = numpy_backend.take_ownership(XP, box.pop(), x)
        assert g.ctypes.data != address
        del keep


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.broadcast_to(2.0, (3, 4)),
        lambda: np.full((4, 3), 2.0).T,
        lambda: np.full((6, 8), 2.0)[::2, ::2],
        lambda: np.full((3, 4), 2.0, order="F"),
        lambda: np.frombuffer(np.full((3, 4), 2.0).tobytes()).reshape(3, 4),
    ],
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_own_gives_dense_writable_memory_in_the_order_of_the_leaf(make: Any, order: Any) -> None:
    like = np.ones((3, 4), order=order)
    _, g = owned(make, like)
    assert g.strides == like.strides
    assert g.flags.writeable
    assert (g == 2.0).all()
    g += 1
    assert (g == 3.0).all()


def test_own_makes_an_array_of_a_scalar() -> None:
    for like in (np.array(1.0), np.float64(1.0), None):
        _, g = owned(lambda: np.float64(2.0), like)
        assert type(g) is np.ndarray
        assert g.shape == ()
    _, g = owned(lambda: np.full((3,), 2.0), np.float64(1.0))
    assert g.shape == (3,)


def test_constants_are_remembered_and_not_confused() -> None:
    constant = NUMPY.kernel("constant")
    values: list[Any] = [0.0, -0.0, 0, 1, 1.0, True, False, 2.5, math.nan, math.inf]
    values += [1j, complex(0, -0.0), complex(-0.0, 0), complex(1, -0.0)]
    for dtype in (np.complex128, np.float64, np.float32):
        for _ in range(2):
            for value in values:
                if type(value) is complex and dtype is not np.complex128:
                    continue
                got, want = (
                    constant(XP, value, np.dtype(dtype), "cpu"),
                    np.asarray(value, dtype=dtype),
                )
                assert got.shape == ()
                assert got.tobytes() == want.tobytes() or math.isnan(got)
                assert got.dtype == want.dtype
    assert constant(XP, 2.5, np.dtype("f8"), None) is constant(XP, 2.5, np.dtype("f8"), None)
    with pytest.raises(ValueError, match="read-only"):
        constant(XP, 2.5, np.dtype("f8"), None)[...] = 1
    for i in range(3000):
        constant(XP, float(i), np.dtype("f8"), None)
        constant(XP, float("nan"), np.dtype("f8"), None)
    assert len(numpy_backend._constants) <= 1024


def test_what_numpy_has_not_is_told() -> None:
    with pytest.raises(ValueError, match="Unsupported device for NumPy: 'gpu'"):
        XP.astype(np.ones(2), np.float32, device="gpu")
    message = "a backend with the kernel `mark` also needs the kernel `elapsed`: the time between"
    with pytest.raises(NotImplementedError, match=message):
        kernels.DEFAULTS["elapsed"](XP, 0, 1)
