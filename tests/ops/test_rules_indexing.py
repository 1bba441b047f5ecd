"""The rules of indexing and rearranging where the conformance suite cannot judge them: keys beyond the
standard, places that are written twice, other devices, keys that are traced.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from rule_checks import NUMPY, complexes, gradients, reals, strict_raw, to_numpy

import multigrad as mg
from multigrad import registry
from multigrad.dispatch import codegen

X = reals(5, 4, 3)
I = np.asarray  # noqa: E741 (index arrays are many below)

# Keys of the standard, on an array of shape (5, 4, 3).
STANDARD: dict[str, Any] = {
    "negative step": (slice(None, None, -1), slice(3, 0, -2), 1),
    "empty slice": (slice(3, 3), ...),
    "new axes": (None, slice(1, 3), None, ..., 0, None),
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

# What NumPy, JAX and others accept besides; slices and rows in any order are drawn below.
BEYOND: dict[str, Any] = {
    "slice beyond the end": (slice(2, 99), ..., slice(-99, 2)),
    "rows of pairs": (I([1, 1, 0]), I([[0], [3]])),
    "narrow rows": I([1, -1, 1], dtype=np.int8),
    "unsigned rows": I([1, 4, 1], dtype=np.uint8),
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


def check(xp: Any, x: Any, key: Any) -> None:
    """Reading adds up where the key repeats, writing is NumPy's, and the gradients of the write are
    those of a linear function.
    """
    values = reals(*np.shape(x[key]))
    expected = np.zeros_like(x)
    np.add.at(expected, key, values)
    (g,) = gradients(xp, "getitem", x, key, g=values)
    np.testing.assert_allclose(g, expected, rtol=1e-13)
    g = reals(*x.shape, seed=5)
    for shape in value_shapes(np.shape(x[key])):
        value = reals(*shape, seed=3)
        expected = x.copy()
        expected[key] = value
        kept = x.copy()
        kept[key] = 0.0
        np.testing.assert_array_equal(NUMPY.setitem(x, key, value), expected)
        gx, gv = gradients(xp, "setitem", x, key, value, g=g)
        assert gv.shape == shape
        np.testing.assert_allclose(np.vdot(gx, x), np.vdot(g, kept), atol=1e-12)
        np.testing.assert_allclose(np.vdot(gv, value), np.vdot(g, expected - kept), atol=1e-12)


@pytest.mark.parametrize("key", [*STANDARD.values(), *BEYOND.values()], ids=[*STANDARD, *BEYOND])
def test_keys(key: Any) -> None:
    check(NUMPY, X, key)
    np.testing.assert_array_equal(NUMPY.setitem(X, key, 7)[key], 7)


@pytest.mark.parametrize("key", STANDARD.values(), ids=STANDARD)
def test_keys_of_the_standard(key: Any) -> None:
    check(strict_raw(), X, key)


def test_random_keys() -> None:
    rng = np.random.default_rng(0)
    for _ in range(150):
        shape = tuple(int(n) for n in rng.integers(1, 6, rng.integers(1, 4)))
        key = tuple(random_entry(rng, n) for n in shape)
        for _ in range(rng.integers(0, 3)):
            at = int(rng.integers(0, len(key) + 1))
            key = (*key[:at], None, *key[at:])
        check(NUMPY, reals(*shape), key)


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


@pytest.mark.parametrize("key", [(), ..., I(True)], ids=str)
def test_a_scalar(key: Any) -> None:
    check(NUMPY, reals(), key)


def test_of_several_values_for_one_place_only_the_last_gets_a_gradient() -> None:
    g = reals(4)
    gx, gv = gradients(NUMPY, "setitem", reals(4), I([0, 2, 0, 2, 0]), reals(5), g=g)
    np.testing.assert_array_equal(gx, [0, g[1], 0, g[3]])
    np.testing.assert_array_equal(gv, [0, 0, 0, g[2], g[0]])


def test_setitem_keeps_the_dtype_of_the_array() -> None:
    narrow = reals(3).astype(np.float32)
    assert NUMPY.setitem(narrow, slice(1, None), reals(2)).dtype == np.float32
    for x in (narrow, complexes(3)):
        gx, gv = gradients(NUMPY, "setitem", x, slice(1, None), reals(2), g=x)
        assert gx.dtype == x.dtype and gv.dtype == np.float64


# ----- scatter_add -----


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64])
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
    values, indices = complexes(m, *rest), np.arange(m) % max(n, 1)
    expected = np.zeros((n, *rest), complex)
    np.add.at(expected, indices, values)
    for xp in (NUMPY, strict_raw()):
        found = xp.scatter_add(xp.asarray(values), xp.asarray(indices), n)
        np.testing.assert_allclose(to_numpy(found), expected)


def test_scatter_add_confines_what_is_not_finite() -> None:
    values = I([1.0, np.inf, 2.0, np.nan, 3.0, -np.inf])
    expected = [3.0, np.inf, np.nan, 3.0, -np.inf, 0.0]
    np.testing.assert_array_equal(NUMPY.scatter_add(values, I([0, 1, 0, 2, 3, 4]), 6), expected)


def test_scatter_add_is_accurate_in_single_precision() -> None:
    rng = np.random.default_rng(2)
    indices, values = rng.integers(0, 10, 100_000), rng.uniform(0, 1, 100_000).astype(np.float32)
    expected = np.bincount(indices, weights=values)
    np.testing.assert_allclose(NUMPY.scatter_add(values, indices, 10), expected, rtol=1e-6)


# ----- taking, repeating, rearranging -----


@pytest.mark.parametrize(
    ("name", "x", "indices", "axis"),
    [
        ("take", X, I([[0, 3], [3, -1]]), 1),
        ("take", X, I(2), -1),
        ("take", X, I([7, 7, -1]), None),
        ("take", reals(3), I([2, -1, 2], dtype=np.int8), 0),
        ("take_along_axis", reals(3, 300), I([[299], [-1], [0]], dtype=np.int16), 1),
        ("take_along_axis", reals(200, 2), np.ones((200, 1), dtype=np.uint8), 1),
        ("take_along_axis", reals(5, 1), I([[0, 3, 3, -1]]), 0),
    ],
)
def test_taking_beyond_the_standard(name: str, x: Any, indices: Any, axis: Any) -> None:
    places = np.arange(x.size).reshape(x.shape)
    places = (np.take if name == "take" else np.take_along_axis)(places, indices, axis)
    g = reals(*places.shape)
    (found, *_) = gradients(NUMPY, name, x, indices, axis=axis, g=g)
    expected = np.bincount(places.reshape(-1), weights=g.reshape(-1), minlength=x.size)
    np.testing.assert_allclose(found, expected.reshape(x.shape), rtol=1e-13)


def test_repeat_by_one_count() -> None:
    np.testing.assert_array_equal(gradients(NUMPY, "repeat", reals(3), I([2]))[0], [2, 2, 2])


def test_roll_by_an_integer_of_numpy() -> None:
    x = mg.asarray(np.ones(3), requires_grad=True)
    (mg.roll(x, np.int64(1), axis=0) * np.asarray([1.0, 2.0, 3.0])).sum().backward()
    np.testing.assert_array_equal(x.grad.array, [2.0, 3.0, 1.0])


def test_the_first_of_equal_values_receives_the_gradient() -> None:
    x = mg.asarray(np.asarray([2.0, 1.0, 2.0]), requires_grad=True)
    (gx,) = mg.autograd.grad(mg.unique_all(x)[0], x, mg.asarray(np.asarray([3.0, 5.0])))
    np.testing.assert_array_equal(gx.array, [5, 3, 0])


# ----- array_api_strict's flags and devices, JAX's traces -----


def test_masks_where_shapes_must_not_depend_on_values() -> None:
    strict = pytest.importorskip("array_api_strict")
    xp = strict_raw()
    mask = X[:, :, 0] > 0
    g = reals(*X[mask].shape)
    expected = np.zeros_like(X)
    expected[mask] = g
    x, m = strict.asarray(X), strict.asarray(mask)
    out = x[m]
    with strict.ArrayAPIStrictFlags(data_dependent_shapes=False, boolean_indexing=False):
        (gx,) = codegen.vjp(registry.OPS["getitem"], xp, [x, m], out, strict.asarray(g), (True,))
        np.testing.assert_array_equal(to_numpy(gx), expected)
        for shape in value_shapes(out.shape):
            args: Any = ("setitem", X, mask, reals(*shape))
            found, wanted = (gradients(on, *args, g=X) for on in (xp, NUMPY))
            for actual, e in zip(found, wanted, strict=True):
                np.testing.assert_allclose(actual, e, rtol=1e-13)


@pytest.mark.parametrize("device", ["device1", "no_x64"])
def test_on_another_device(device: str) -> None:
    """Every constant that a rule makes must be there, too, and of dtypes that exist there."""
    strict = pytest.importorskip("array_api_strict")
    wide = device == "device1"
    narrow = {"f": np.float32, "i": np.int32, "b": np.bool_}

    def convert(a: Any) -> Any:
        a = I(a)
        return strict.asarray(
            a if wide else a.astype(narrow[a.dtype.kind]), device=strict.Device(device)
        )

    # array_api_strict itself cannot sort or search on no_x64: their results are int64.
    keys = {n: k for n, k in STANDARD.items() if wide or not ("int arrays" in n or n == "no index")}
    cases: list[tuple[Any, ...]] = [("getitem", X, key) for key in keys.values()]
    cases += [
        ("setitem", X, key, reals(*X[key].shape))
        for n, key in keys.items()
        if wide or "mask" not in n
    ]
    cases += [("setitem", X, X > 0, 2.5), ("repeat", X, 2, 1)]
    if wide:
        rows = I([[0, 3, 3, -1, 2]] * 5)
        cases += [
            ("repeat", X, I([1, 0, 2, 3, 1]), 0),
            ("take", X, I([0, 3, 3, -1]), 1),
            ("take_along_axis", reals(5, 4), rows, -1),
        ]
    for name, *args in cases:
        options = {"axis": args.pop()} if name in ("repeat", "take", "take_along_axis") else {}
        found, wanted = (
            gradients(xp, name, *args, convert=to, **options)
            for xp, to in ((strict_raw(), convert), (NUMPY, I))
        )
        for actual, e in zip(found, wanted, strict=True):
            if e is not None:
                np.testing.assert_allclose(actual, e, rtol=1e-12 if wide else 1e-5)


ROWS = X[:, 0, 0] > 0
TRACED: dict[str, tuple[Any, ...]] = {
    "int arrays": (lambda x, i: x[2, i], X, I([1, -3, 1, 3])),
    "mask": (mg.setitem, X, X > 0, reals()),
    "mask of rows": (mg.setitem, X, ROWS, reals(int(ROWS.sum()), 4, 3)),
    "write to int arrays": (mg.setitem, X, I([1, 0, 1]), reals(3, 4, 3)),
    "take_along_axis": (mg.take_along_axis, reals(5, 4), I([[0, 3, 3]])),
}


@pytest.mark.sweep_after(1)
@pytest.mark.parametrize("case", TRACED.values(), ids=TRACED)
def test_keys_that_are_traced(case: tuple[Any, ...]) -> None:
    """Nothing may ask for a value."""
    jax = pytest.importorskip("jax")
    f, *args = case
    slopes = mg.func.grad(lambda *args: mg.sum(f(*args) ** 2), argnums=(0, 2)[: len(args) - 1])
    for actual, wanted in zip(
        jax.tree.leaves(jax.jit(slopes)(*map(jax.numpy.asarray, args))),
        jax.tree.leaves(slopes(*args)),
        strict=True,
    ):
        np.testing.assert_allclose(actual, wanted, rtol=1e-12)
