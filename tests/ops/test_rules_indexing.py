"""The rules of indexing and its kernels, with no function but the defaults: against NumPy, on
strict, under jax.jit.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from rule_checks import (
    NUMPY,
    assert_close,
    check,
    complexes,
    linearized,
    mapped,
    reals,
    strict_raw,
    to_numpy,
)

from multigrad import registry
from multigrad.backends.raw import RawNamespace
from multigrad.backends.spec import Backend
from multigrad.dispatch import codegen

X = reals(5, 4, 3)
I = np.asarray  # noqa: E741 (index arrays are many below)

# Keys of the standard, on an array of shape (5, 4, 3).
STANDARD: dict[str, Any] = {
    "int": (2, ...),
    "negative int": (..., -1),
    "all ints": (-1, 2, 0),
    "slice": (slice(1, 4), ...),
    "step": (slice(None, None, 2), slice(1, None, 3), ...),
    "negative step": (slice(None, None, -1), slice(3, 0, -2), 1),
    "one element slice": (..., slice(1, 2)),
    "empty slice": (slice(3, 3), ...),
    "everything": (...,),
    "new axes": (None, slice(1, 3), None, ..., 0, None),
    "new axis last": (1, ..., None),
    "mask": X > 0,
    "mask of nothing": X > 9,
    "mask of everything": X < 9,
    "mask of rows": X[:, 0, 0] > 0,
    "mask of two axes": (X[:, :, 0] > 0,),
    "int arrays": (I([0, 0, -1]), I([1, 1, 3]), I([2, 2, 0])),
    "int arrays and ints": (2, I([1, -3, 1, 3]), -1),
    "int arrays that broadcast": (I([[0], [4]]), I([1, 1, 3]), I([[2], [-1]])),
    "0-d int arrays": (I(1), I(-1), I(0)),
    "no index": (I([], dtype=np.int64), I([], dtype=np.int64), 0),
}

# What NumPy, JAX and others accept besides.
BEYOND: dict[str, Any] = {
    "slice beyond the end": (slice(2, 99), ..., slice(-99, 2)),
    "bare int": 3,
    "bare slice": slice(1, 3),
    "bare new axis": None,
    "rows": I([1, 1, 0, -5]),
    "rows of pairs": (I([1, 1, 0]), I([[0], [3]])),
    "rows, dots": (I([1, 1, 0]), ...),
    "narrow rows": I([1, -1, 1], dtype=np.int8),
    "unsigned rows": I([1, 4, 1], dtype=np.uint8),
    "int, rows": (2, I([1, -1, 1])),
    "columns": (slice(None), I([3, 3, 0])),
    "rows, slice": (I([1, 1, 0]), slice(1, 3)),
    "slice, columns, new axis": (slice(None, None, 2), I([3, 3, 0]), None),
    "apart": (I([1, 1, 0]), slice(None), I([2, 2, 0])),
    "int apart": (0, slice(None), I([2, 2, 0])),
    "new axis between": (I([1, 1]), None, I([2, 2])),
    "list": [0, 0, 2],
    "mask, int": (X[:, 0, 0] > 0, 1),
    "mask, slice": (X[:, :, 0] > 0, slice(1, None)),
    "slice, mask": (slice(1, 3), X[0, :, 0] > 0),
    "mask, dots": (X[:, 0, 0] > 0, ...),
    "scalar int": np.int64(-2),
    "scalar int, slice": (np.int64(1), slice(1, 3)),
    "true": True,
    "false": (False, ...),
    "scalar mask": np.bool_(True),
}
KEYS = STANDARD | BEYOND


@pytest.mark.parametrize("key", STANDARD.values(), ids=STANDARD)
def test_rules_of_getitem_and_unindex(key: Any) -> None:
    pytest.importorskip("array_api_strict")
    check("getitem", X, key, on=strict_raw())
    check("unindex", complexes(*X[key].shape), key, X.shape, on=strict_raw())


@pytest.mark.parametrize("key", BEYOND.values(), ids=BEYOND)
def test_rules_of_getitem_and_unindex_beyond_the_standard(key: Any) -> None:
    check("getitem", X, key)
    check("unindex", complexes(*np.shape(X[key])), key, X.shape)


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_unindex_adds_where_the_key_repeats(key: Any) -> None:
    values = reals(*np.shape(X[key]))
    expected = np.zeros_like(X)
    np.add.at(expected, key, values)
    actual = NUMPY.unindex(values, key, X.shape)
    np.testing.assert_allclose(actual, expected, rtol=1e-13)
    assert NUMPY.unindex(values.astype(np.float32), key, X.shape).dtype == np.float32


@pytest.mark.parametrize("shape", [(), (0,), (1,), (0, 3), (2, 0)])
@pytest.mark.parametrize("key", [..., (None, ...), (..., None)])
def test_small_arrays(shape: tuple[int, ...], key: Any) -> None:
    pytest.importorskip("array_api_strict")
    check("getitem", reals(*shape), key, on=strict_raw())
    check("setitem", reals(*shape), ..., reals(*shape, seed=1), on=strict_raw())


def test_a_scalar_under_a_mask() -> None:
    check("getitem", reals(), I(True))
    check("setitem", reals(), I(True), reals(seed=1))
    check("setitem", reals(), (), reals(seed=1))


def value_shapes(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Shapes that broadcast to the part written: all of it, one value, one row, a leading axis of
    length 1.
    """
    yield shape
    yield ()
    if shape:
        yield shape[1:]
        yield (1, *shape[1:])
        yield (*shape[:-1], 1)


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_setitem_writes_as_numpy_does(key: Any) -> None:
    for shape in value_shapes(np.shape(X[key])):
        value = reals(*shape, seed=3)
        expected = X.copy()
        expected[key] = value
        np.testing.assert_array_equal(NUMPY.setitem(X, key, value), expected)
    expected[key] = 7
    np.testing.assert_array_equal(NUMPY.setitem(X, key, 7), expected)


def repeats(key: Any) -> bool:
    number = np.arange(X.size).reshape(X.shape)[key]
    return np.unique(number).size != np.size(number)


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_rules_of_setitem(key: Any) -> None:
    for shape in value_shapes(np.shape(X[key])):
        check("setitem", X, key, reals(*shape, seed=3))


@pytest.mark.parametrize("key", STANDARD.values(), ids=STANDARD)
def test_rules_of_setitem_on_strict(key: Any) -> None:
    pytest.importorskip("array_api_strict")
    check("setitem", X + 0j, key, complexes(*X[key].shape), on=strict_raw())


def test_of_several_values_for_one_place_only_the_last_gets_a_gradient() -> None:
    key = I([0, 2, 0, 2, 0])
    g, value = reals(4), reals(5)
    op = registry.OPS["setitem"]
    values = [reals(4), key, value]
    gx, gv = codegen.vjp(op, NUMPY, values, NUMPY.setitem(*values), g, (True, True))
    np.testing.assert_array_equal(gx, [0, g[1], 0, g[3]])
    np.testing.assert_array_equal(gv, [0, 0, 0, g[2], g[0]])


def test_setitem_keeps_the_dtype_of_the_array() -> None:
    x = reals(3).astype(np.float32)
    out, (gx, gv), moved, _, _ = linearized(
        NUMPY, "setitem", (x, slice(1, None), reals(2)), {}, lambda a: a
    )
    assert out.dtype == moved.dtype == gx.dtype == np.float32
    assert gv.dtype == np.float64
    _, (_, gv), _, _, _ = linearized(
        NUMPY, "setitem", (complexes(3), slice(1, None), reals(2)), {}, lambda a: a
    )
    assert gv.dtype == np.float64


def test_random_keys() -> None:
    rng = np.random.default_rng(0)
    for _ in range(150):
        shape = tuple(int(n) for n in rng.integers(1, 6, rng.integers(1, 4)))
        key = tuple(random_entry(rng, n) for n in shape)
        for _ in range(rng.integers(0, 3)):
            at = int(rng.integers(0, len(key) + 1))
            key = (*key[:at], None, *key[at:])
        x = reals(*shape)
        values = reals(*np.shape(x[key]))
        expected = np.zeros(shape)
        np.add.at(expected, key, values)
        np.testing.assert_allclose(
            NUMPY.unindex(values, key, shape), expected, rtol=1e-13, err_msg=str(key)
        )
        written = x.copy()
        written[key] = values
        np.testing.assert_array_equal(NUMPY.setitem(x, key, values), written, err_msg=str(key))


def random_entry(rng: Any, n: int) -> Any:
    match rng.integers(0, 5):
        case 0:
            return int(rng.integers(-n, n))
        case 1:
            return slice(None)
        case 2:
            return rng.integers(-n, n, 4)
        case _:
            step = int(rng.choice([-3, -2, -1, 1, 2, 3]))
            return slice(
                *(None if rng.random() < 0.3 else int(i) for i in rng.integers(-n - 1, n + 2, 2)),
                step,
            )


# ----- scatter_add -----


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.uint64])
def test_scatter_add_of_any_index_type(dtype: Any) -> None:
    rng = np.random.default_rng(1)
    indices = rng.integers(0 if dtype in (np.uint8, np.uint64) else -100, 100, 400).astype(dtype)
    values = reals(400, 2, 3)
    expected = np.zeros((300, 2, 3))
    np.add.at(expected, indices, values)
    np.testing.assert_allclose(
        NUMPY.scatter_add(values, indices, 300), expected, rtol=1e-12, atol=1e-13
    )


@pytest.mark.parametrize(
    ("m", "n", "rest"), [(0, 3, (2,)), (0, 0, ()), (1, 1, ()), (4, 2, (0,)), (5, 1, ())]
)
def test_scatter_add_of_little(m: int, n: int, rest: tuple[int, ...]) -> None:
    pytest.importorskip("array_api_strict")
    check("scatter_add", complexes(m, *rest), np.arange(m) % max(n, 1), n, on=strict_raw())


def test_scatter_add_confines_what_is_not_finite() -> None:
    values = I([1.0, np.inf, 2.0, np.nan, 3.0, -np.inf])
    expected = [3.0, np.inf, np.nan, 3.0, -np.inf, 0.0]
    np.testing.assert_array_equal(NUMPY.scatter_add(values, I([0, 1, 0, 2, 3, 4]), 6), expected)


def test_scatter_add_is_accurate_in_single_precision() -> None:
    rng = np.random.default_rng(2)
    indices, values = rng.integers(0, 10, 100_000), rng.uniform(0, 1, 100_000).astype(np.float32)
    expected = np.bincount(indices, weights=values)
    np.testing.assert_allclose(NUMPY.scatter_add(values, indices, 10), expected, rtol=1e-6)


# ----- take -----


TAKES: dict[str, tuple[Any, ...]] = {
    "take": ("take", X, I([0, 3, 3, -1]), {"axis": 1}),
    "take first axis": ("take", complexes(3, 2), I([2, 2, 0]), {"axis": 0}),
    "take last axis": ("take", X, I([2, 2, 0]), {"axis": -1}),
    "take of a vector": ("take", reals(5), I([0, 3, 3, -1])),
    "take nothing": ("take", X, I([], dtype=np.int64), {"axis": 1}),
    "along axis": ("take_along_axis", reals(5, 4), I([[0, 3, 3, -1, 2]] * 5), {"axis": -1}),
    "along first axis": (
        "take_along_axis",
        complexes(5, 4),
        I([[0, -1, 3, 3], [0, 4, 3, 1]]),
        {"axis": 0},
    ),
    "along axis, indices broadcast": ("take_along_axis", reals(5, 4), I([[0, 3, 3]])),
    "along axis, x broadcasts": ("take_along_axis", reals(5, 1), I([[0, 3, 3, -1]]), {"axis": 0}),
    "along middle axis": ("take_along_axis", X, I([[[0], [0], [-1]]] * 5), {"axis": 1}),
    "along axis, nothing": (
        "take_along_axis",
        reals(2, 3),
        np.zeros((2, 0), dtype=np.int64),
        {"axis": 1},
    ),
}


@pytest.mark.parametrize("case", TAKES.values(), ids=TAKES)
def test_rules_of_taking(case: tuple[Any, ...]) -> None:
    pytest.importorskip("array_api_strict")
    args, kwargs = (case[:-1], case[-1]) if isinstance(case[-1], dict) else (case, {})
    check(*args, on=strict_raw(), **kwargs)


def test_taking_beyond_the_standard() -> None:
    check("take", X, I([[0, 3], [3, -1]]), axis=1)
    check("take", X, I(2), axis=-1)
    check("take", X, I([7, 7, -1]))
    check("take", reals(3), I([2, -1, 2], dtype=np.int8))
    check("take_along_axis", reals(3, 300), I([[299], [-1], [0]], dtype=np.int16), axis=1)
    check("take_along_axis", reals(200, 2), np.ones((200, 1), dtype=np.uint8), axis=1)


# ----- array_api_strict's flags and devices -----


def test_masks_where_shapes_must_not_depend_on_values() -> None:
    strict = pytest.importorskip("array_api_strict")
    xp = strict_raw()
    mask = X[:, :, 0] > 0
    getitem = registry.OPS["getitem"]
    x = strict.asarray(X)
    out = x[strict.asarray(mask)]
    g = reals(*out.shape)
    expected = np.zeros_like(X)
    expected[mask] = g
    with strict.ArrayAPIStrictFlags(data_dependent_shapes=False, boolean_indexing=False):
        (gx,) = codegen.vjp(getitem, xp, [x, strict.asarray(mask)], out, strict.asarray(g), (True,))
        np.testing.assert_array_equal(to_numpy(gx), expected)
        for shape in value_shapes(out.shape):
            args = (X, mask, reals(*shape))
            expected_all = linearized(NUMPY, "setitem", args, {}, I)[:3]
            assert_close(
                linearized(xp, "setitem", args, {}, strict.asarray)[:3], expected_all, 1e-13, 1e-13
            )


@pytest.mark.parametrize("device", ["device1", "no_x64"])
def test_on_another_device(device: str) -> None:
    """Every constant that a rule makes must be there, too, and of dtypes that exist there."""
    strict = pytest.importorskip("array_api_strict")
    wide = device == "device1"
    narrow = {"f": np.float32, "c": np.complex64, "i": np.int32}

    def convert(a: Any) -> Any:
        a = I(a)
        return strict.asarray(
            a if wide or a.dtype.kind == "b" else a.astype(narrow[a.dtype.kind]),
            device=strict.Device(device),
        )

    # array_api_strict itself cannot sort or search on no_x64: their results are int64.
    keys = {n: k for n, k in STANDARD.items() if wide or not ("int arrays" in n or n == "no index")}
    cases: list[tuple[Any, ...]] = [("getitem", X, key) for key in keys.values()]
    cases += [
        ("setitem", X, key, reals(*X[key].shape))
        for n, key in keys.items()
        if wide or "mask" not in n
    ]
    cases += [("setitem", X, X > 0, 2.5), ("repeat", X, 2, {"axis": 1})]
    if wide:
        cases += [("repeat", X, I([1, 0, 2, 3, 1]), {"axis": 0}), *TAKES.values()]
    for case in cases:
        args, kwargs = (case[1:-1], case[-1]) if isinstance(case[-1], dict) else (case[1:], {})
        out, gradients, moved, _, _ = linearized(
            strict_raw(), case[0], args, kwargs, lambda a: mapped(convert, a)
        )
        expected = linearized(NUMPY, case[0], args, kwargs, I)[:3]
        for actual, e in zip((out, gradients, moved), expected, strict=True):
            flat = (
                [(u, v) for u, v in zip(actual, e, strict=True) if v is not None]
                if isinstance(e, tuple)
                else [(actual, e)]
            )
            for u, v in flat:
                np.testing.assert_allclose(
                    u, v, rtol=1e-12 if wide else 1e-5, atol=1e-6 * (not wide)
                )


# ----- JAX -----


@contextlib.contextmanager
def jax_raw(x64: bool = True) -> Iterator[Any]:
    jax = pytest.importorskip("jax")
    with jax.enable_x64(x64):
        yield RawNamespace(
            Backend(
                "jax",
                jax.numpy,
                (jax.Array,),
                kernels={"device": lambda xp, x: None, "concrete_bool": lambda xp, x: None},
            )
        )


JITTED: dict[str, tuple[Any, ...]] = {
    "slices": ("getitem", X, (None, slice(None, None, -2), 1, ...)),
    "int arrays": ("getitem", X, (2, I([1, -3, 1, 3]))),
    "columns": ("getitem", X, (slice(None), I([3, 3, 0]))),
    "set slices": ("setitem", X, (slice(1, 3), ...), reals(4, 3)),
    "set mask": ("setitem", X, X > 0, reals()),
    "set mask rows": ("setitem", X, X[:, 0, 0] > 0, reals(int((X[:, 0, 0] > 0).sum()), 4, 3)),
    "set int arrays": ("setitem", X, I([1, 0, 1]), reals(3, 4, 3)),
    "take": ("take", X, I([0, 3, 3, -1]), {"axis": 1}),
    "take_along_axis": ("take_along_axis", reals(5, 4), I([[0, 3, 3]])),
}


@pytest.mark.parametrize("case", JITTED.values(), ids=JITTED)
def test_under_jit(case: tuple[Any, ...]) -> None:
    """Keys and values are traced: nothing may ask for a value."""
    jax = pytest.importorskip("jax")
    args, kwargs = (case[1:-1], case[-1]) if isinstance(case[-1], dict) else (case[1:], {})
    op = registry.OPS[case[0]]
    expected = linearized(NUMPY, case[0], args, kwargs, I)
    with jax_raw() as xp:
        bound = op.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        values = list(bound.arguments.values())
        needs = tuple(v is not None for v in expected[4])
        leaves: list[Any] = []
        mapped(leaves.append, [*values, expected[3], *expected[4]])

        @jax.jit
        def both(*traced: Any) -> Any:
            given = iter(traced)
            *v, g = mapped(lambda _: next(given), [*values, expected[3]])
            t = [mapped(lambda _: next(given), u) for u in expected[4]]
            out = codegen._call_raw(op, xp, v)
            return out, codegen.vjp(op, xp, v, out, g, needs), codegen.jvp(op, xp, v, t, out)

        actual = both(*leaves)
    assert_close(mapped(to_numpy, actual), expected[:3], 1e-12, 1e-12)


def test_without_x64() -> None:
    jax = pytest.importorskip("jax")
    with jax_raw(x64=False) as xp:
        x = jax.numpy.asarray(X)
        out = xp.take(x, I([0, 3, 3, -1], dtype=np.int8), axis=1)
        gx, _ = codegen.vjp(
            registry.OPS["take"],
            xp,
            [x, jax.numpy.asarray([0, 3, 3, -1]), 1],
            out,
            jax.numpy.ones(out.shape),
            (True, False),
        )
        assert gx.dtype == np.float32
        np.testing.assert_array_equal(gx[0, :, 0], [1, 0, 0, 3])
