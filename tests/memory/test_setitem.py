"""`x[key] = value`, of Tensors and as the function `xp.setitem`: values, both gradients, second
derivatives, versions, refusals.

The oracle is NumPy: writing element numbers through the same key tells which element of the value,
if any, ended up at each place. Where the key repeats a place the last value counts, and alone
receives the gradient.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from conftest import values
from leaves import check, const, leaf

import multigrad as mg
from multigrad.errors import GradientError

FORMS = ("statement", "function")


def put(xp: Any, form: str, x: Any, key: Any, v: Any) -> Any:
    if form == "function":
        return xp.setitem(x, key, v)
    y = x * 1.0
    y[key] = v
    return y


def real(*shape: int, seed: int = 0) -> Any:
    return np.asarray(np.random.default_rng([seed, *shape]).uniform(0.5, 2, shape) * (-1) ** seed)


MASK = np.asarray([[True, False, True], [False, False, True]])
INDEX = np.asarray

# Shape, key, shapes of the value. All are in the standard but for those listed in BEYOND.
KEYS: dict[str, tuple[tuple[int, ...], Any, list[tuple[int, ...]]]] = {
    "integer": ((4,), 1, [(), (1,), (1, 1)]),
    "row": ((2, 3), (1, Ellipsis), [(3,), (1,), (), (1, 3), (1, 1, 1)]),
    "backwards by two": ((5,), slice(3, None, -2), [(2,), ()]),
    "columns": ((2, 3), (slice(None), slice(1, 3)), [(2, 2), (2,), (2, 1), (1, 2), (1, 1, 2, 2)]),
    "ellipsis": ((2, 3), Ellipsis, [(2, 3), (3,), (2, 1), (), (1, 2, 3)]),
    "new axis between": ((2, 3), (slice(None), None, slice(0, 2)), [(2, 1, 2), (1, 2)]),
    "nothing": ((3,), slice(2, 2), [(0,), (1,), ()]),
    "a column of an empty array": ((0, 3), (slice(None), 1), [(0,), ()]),
    "0-d": ((), (), [(), (1,)]),
    "0-d, ellipsis": ((), Ellipsis, [()]),
    "mask": ((2, 3), MASK, [(3,), (1,), (), (1, 3), (1, 1)]),
    "mask of rows": ((2, 3), INDEX([False, True]), [(1, 3), (3,), (), (1, 1, 3)]),
    "mask of no element": ((2, 3), np.zeros((2, 3), bool), [(0,), (1,), (), (1, 0)]),
    "mask of an empty array": ((0,), np.zeros(0, bool), [(0,), ()]),
    "mask of 0-d": ((), INDEX(True), [(), (1,)]),
    "false mask of 0-d": ((), INDEX(False), [(), (0,)]),
    "indices": ((4,), INDEX([2, 0]), [(2,), (1,), (), (1, 2), (1, 1)]),
    "repeated indices": ((4,), INDEX([1, 2, 1, -2]), [(4,), (1,), (), (1, 1, 4)]),
    "a matrix of indices": ((4,), INDEX([[1, 0], [-1, 1]]), [(2, 2), (2,), (2, 1), (1, 2, 1)]),
    "indices that broadcast": ((2, 3), (INDEX([[0], [1]]), INDEX([2, 0])), [(2, 2), (2,)]),
    "no index": ((3,), np.zeros(0, np.int64), [(0,), ()]),
    "a 0-d index": ((3,), INDEX(2), [(), (1,)]),
}
# NumPy and JAX know them; the standard, and array_api_strict, do not.
BEYOND: dict[str, tuple[tuple[int, ...], Any, list[tuple[int, ...]]]] = {
    "beyond the end": ((3,), slice(1, 10), [(2,)]),
    "slice and repeated indices": ((2, 4), (slice(None), INDEX([3, 0, -1])), [(2, 3), (1, 2, 3)]),
    "slice and mask": ((2, 3), (slice(None), INDEX([True, False, True])), [(2, 2), (1, 1, 2)]),
    "mask and integer": ((3, 2), (INDEX([True, False, True]), 1), [(2,), (1, 2), (1, 1)]),
}


def cases() -> list[Any]:
    """JAX compiles each: what it writes, the suite compares with NumPy."""
    return [
        pytest.param(backend, shape, key, v, form, id=f"{backend}-{label}, value of {v}, {form}")
        for backend in ("numpy", "strict")
        for label, (shape, key, shapes) in (KEYS if backend == "strict" else KEYS | BEYOND).items()
        for form, v in product(FORMS, shapes)
    ]


def converted(xp: Any, key: Any) -> Any:
    """The key with arrays of the library under test."""
    if isinstance(key, tuple):
        return tuple(converted(xp, k) for k in key)
    return xp.asarray(key) if isinstance(key, np.ndarray) else key


def came_from(shape: tuple[int, ...], key: Any, v: tuple[int, ...]) -> Any:
    """At each place the number of the element of the (broadcast) value that ended up there, -1
    where nothing was written.
    """
    places = np.full(shape, -1)
    target = places[key]
    squeezed = v[max(len(v) - target.ndim, 0) :]
    numbers = np.broadcast_to(np.arange(int(np.prod(squeezed))).reshape(squeezed), target.shape)
    places[key] = numbers
    return places


def adjoint(g: Any, places: Any, v: tuple[int, ...]) -> tuple[Any, Any]:
    """What of `g` belongs to x, and what to the value."""
    to_value = np.zeros(int(np.prod(v)))
    np.add.at(to_value, places[places >= 0], g[places >= 0])
    return np.where(places < 0, g, 0.0), to_value.reshape(v)


def written(x: Any, places: Any, v: Any) -> Any:
    return np.where(places < 0, x, v.reshape(-1)[places] if v.size else x)


@pytest.mark.parametrize(("backend", "shape", "key", "v", "form"), cases())
def test_values_and_derivatives(xp: Any, shape: Any, key: Any, v: Any, form: str) -> None:
    """The sum of w y**3 with y[key] = value: its gradients, and those of their product with u."""
    x, value, w, ux, uv = (
        real(*shape),
        real(*v, seed=1),
        real(*shape, seed=2),
        real(*shape, seed=3),
        real(*v, seed=4),
    )
    places = came_from(shape, key, v)
    out = written(x, places, value)
    tx, tv = leaf(xp, x), leaf(xp, value)
    y = put(xp, form, tx, converted(xp, key), tv)
    assert y.requires_grad and y.dtype == tx.dtype
    check(y, out)
    gradients = mg.autograd.grad(xp.sum(const(xp, w) * y**3), (tx, tv), create_graph=True)
    for got, expected in zip(gradients, adjoint(3 * w * out**2, places, v), strict=True):
        assert got.shape == expected.shape and got.dtype == tx.dtype
        check(got, expected)
    along = xp.sum(gradients[0] * const(xp, ux)) + xp.sum(gradients[1] * const(xp, uv))
    seconds = mg.autograd.grad(along, (tx, tv), allow_unused=True, materialize_grads=True)
    for got, expected in zip(
        seconds, adjoint(6 * w * out * written(ux, places, uv), places, v), strict=True
    ):
        check(got, expected)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("shape", "mask", "v"),
    [((3,), [True, False, True], (1, 3)), ((2, 2), [True, False], (1, 2, 2))],
)
def test_a_mask_takes_as_many_rows_as_it_is_true(
    xp: Any, shape: tuple[int, ...], mask: list[bool], v: tuple[int, ...], form: str
) -> None:
    """The leading axis of length 1 is dropped, and the value is not broadcast with the whole."""
    x, value = leaf(xp, real(*shape)), const(xp, real(*v))
    with pytest.raises((ValueError, IndexError)):
        put(xp, form, x, xp.asarray(mask), value)


def test_an_axis_of_length_1_under_a_mask_in_transformations(xp: Any) -> None:
    mask, w, v = (xp.asarray(a).array for a in (MASK[0], real(3), real(1, 2)))

    def loss(v: Any, mask: Any = mask) -> Any:
        y = xp.zeros(3, dtype=xp.float64)
        y[mask] = v
        return xp.sum(y * w)

    w0, w2 = real(3)[0], real(3)[2]
    got = mg.func.vmap(mg.func.grad(loss))(xp.stack([v, v]).array)
    np.testing.assert_allclose(values(got), [[[w0, w2]]] * 2)
    got = mg.func.jvp(loss, (v,), (v,))[1]
    np.testing.assert_allclose(values(got), real(1, 2)[0] @ [w0, w2])
    one = const(xp, real(1, 1)).array
    got = mg.func.vmap(mg.func.grad(loss), in_axes=(None, 0))(one, xp.stack([mask, mask]).array)
    np.testing.assert_allclose(values(got), [[[w0 + w2]]] * 2)


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize(
    "given", ["number", "integer", "raw array", "raw 0-d", "Tensor", "constant with a raw key"]
)
def test_what_may_be_written(xp: Any, given: str, recorded: bool) -> None:
    """Whether something is recorded makes no difference to the values."""
    y = leaf(xp, [1.0, 2.0, 3.0]) * 1.0 if recorded else const(xp, [1.0, 2.0, 3.0])
    raw = const(xp, [7.0, 7.0]).array
    key = const(xp, [0, 2], "int64")
    value = {
        "number": 7.0,
        "integer": 7,
        "raw array": raw,
        "raw 0-d": const(xp, 7.0).array,
        "Tensor": const(xp, [7.0, 7.0]),
        "constant with a raw key": 7.0,
    }[given]
    y[key.array if given.endswith("raw key") else key] = value
    check(y, [7, 2, 7])
    assert y._version == 1 and y.requires_grad is recorded


def test_lists_and_integers_of_any_kind_are_keys(xp: Any) -> None:
    y = leaf(xp, [1.0, 2.0, 3.0, 4.0]) * 1.0
    y[[0, 1]] = 0.0
    y[np.int64(-1)] = 9.0
    y[[False, False, True, False]] = 8.0
    y[const(xp, 1, "int64")] = 7.0
    check(y, [0, 7, 8, 9])
    assert y._version == 4


# ----- versions, histories -----


class TestVersions:
    def test_values_that_were_saved_are_checked(self, xp: Any) -> None:
        for key in (
            0,
            slice(None, None, 2),
            const(xp, [True, False, True], "bool"),
            const(xp, [1, 1], "int64"),
        ):
            y = leaf(xp, [1.0, 2.0, 3.0]) * 1.0
            z = xp.sum(y * y)
            y[key] = 5.0
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                z.backward()

    def test_an_index_array_must_not_change(self, xp: Any) -> None:
        for key in (const(xp, [0, 2], "int64"), const(xp, [True, False, True], "bool")):
            y = leaf(xp, [1.0, 2.0, 3.0]) * 1.0
            y[key] = const(xp, [5.0, 6.0])
            key[0] = key[1]
            with pytest.raises(
                RuntimeError,
                match="an index array of CopySlices is at version 1; expected version 0",
            ):
                xp.sum(y).backward()

    def test_a_write_without_recording_keeps_the_history(self, xp: Any) -> None:
        x = leaf(xp, [1.0, 2.0])
        y = x * 3.0
        with mg.no_grad():
            y[0] = 9.0
        assert y.grad_fn.name() == "MultiplyBackward" and y._version == 1
        check(y, [9, 6])
        xp.sum(y).backward()
        check(x.grad, [3, 3])  # as if nothing had been written: PyTorch's meaning of no_grad

    def test_hooks_and_retained_gradients(self, xp: Any) -> None:
        """A hook belongs to the value it was registered on; retain_grad follows the array."""
        x, seen = leaf(xp, [1.0, 2.0, 3.0]), []
        y = x * 2.0
        y.retain_grad()
        y.register_hook(lambda g: seen.append(("before", values(g).tolist())))
        y[0] = 5.0
        y.register_hook(lambda g: seen.append(("after", values(g).tolist())))
        xp.sum(y * y).backward()
        assert seen == [("after", [10, 8, 12]), ("before", [0, 8, 12])]
        check(y.grad, [10, 8, 12])


class TestOverlap:
    def test_an_array_written_into_itself(self, xp: Any) -> None:
        for recorded in (True, False):
            x = leaf(xp, [1.0, 2.0, 3.0, 4.0])
            y = x * 2.0 if recorded else const(xp, [2.0, 4.0, 6.0, 8.0])
            y[1:] = y[:-1]
            check(y, [2, 2, 4, 6])
            y[::-1] = y
            check(y, [6, 4, 2, 2])
            if recorded:
                xp.sum(y * const(xp, [1.0, 10.0, 100.0, 1000.0])).backward()
                check(x.grad, [2200, 20, 2, 0])


class TestRefusals:
    def test_a_leaf(self, xp: Any) -> None:
        x = leaf(xp, [1.0, 2.0])
        for key, what in (
            (0, "a view of a leaf"),
            (slice(1), "a view of a leaf"),
            (Ellipsis, "^a leaf"),
            (const(xp, [0, 1], "int64"), "^a leaf"),
        ):
            with pytest.raises(
                RuntimeError,
                match=f"{what} Variable that requires grad is being used in an in-place operation",
            ):
                x[key] = 1.0
        check(x, [1, 2])
        assert x._version == 0
        with mg.no_grad():
            x[const(xp, [True, False], "bool")] = 5.0
        check(x, [5, 2])
        assert x.is_leaf and x.requires_grad and x._version == 1

    @pytest.mark.parametrize("recorded", [False, True])
    def test_shapes_that_do_not_fit(self, xp: Any, recorded: bool) -> None:
        y = leaf(xp, np.zeros((2, 3))) * 1.0 if recorded else const(xp, np.zeros((2, 3)))
        for key, v in (
            ((0, Ellipsis), (2,)),
            (Ellipsis, (2, 2)),
            ((0, Ellipsis), (2, 3)),
            ((0, 0), (3,)),
        ):
            with pytest.raises((ValueError, RuntimeError, TypeError)):
                y[key] = const(xp, np.ones(v))
        assert y._version == 0
        check(y, np.zeros((2, 3)))

    @pytest.mark.parametrize("recorded", [False, True])
    def test_indices_out_of_bounds(self, xp: Any, recorded: bool) -> None:
        y = leaf(xp, [1.0, 2.0, 3.0]) * 1.0 if recorded else const(xp, [1.0, 2.0, 3.0])
        for key in (3, -4, (0, 0)):
            with pytest.raises(IndexError):
                y[key] = 0.0
        assert y._version == 0
        check(y, [1, 2, 3])

    def test_what_is_no_value(self, xp: Any) -> None:
        y = const(xp, [1.0])
        for value in (None, "1", [1.0], object()):
            with pytest.raises(TypeError, match="the value must be an array or a Python scalar"):
                y[0] = value

    def test_values_and_keys_of_another_library(self, xp: Any, backend: str) -> None:
        other = mg.namespace("strict" if backend == "numpy" else "numpy")
        for recorded in (False, True):
            y = leaf(xp, [1.0, 2.0]) * 1.0 if recorded else const(xp, [1.0, 2.0])
            for value in (
                const(other, [5.0, 6.0]),
                const(other, [5.0, 6.0]).array,
                leaf(other, [5.0, 6.0]),
            ):
                with pytest.raises(
                    mg.errors.MixedBackendsError, match="got arrays of two backends"
                ):
                    y[:] = value
            with pytest.raises(mg.errors.MixedBackendsError, match="got arrays of two backends"):
                y[const(other, [0], "int64")] = 1.0
            check(y, [1, 2])

    def test_a_history_in_an_integer_array(self, xp: Any) -> None:
        n = const(xp, [1, 2], "int64")
        with pytest.raises(
            GradientError,
            match="a value that requires grad cannot be written into a Tensor of dtype",
        ):
            n[0] = leaf(xp, 1.0)


# ----- inside transformations -----


def test_under_a_trace() -> None:
    jax = pytest.importorskip("jax")
    xp = mg.namespace("jax")

    def loss(x: Any, v: Any) -> Any:
        y = x * 1.0
        y[x > 0] = v
        y[0] = y[1] * 2.0
        return xp.sum(y * y)

    x, v = jax.numpy.asarray([1.0, -2.0, 3.0]), jax.numpy.asarray(5.0)
    for got, expected in zip(
        jax.jit(mg.func.grad(loss, argnums=(0, 1)))(x, v), ([0, -20, 0], 10), strict=True
    ):
        np.testing.assert_allclose(got, expected)


@pytest.mark.parametrize("shape", [(3,), (2, 3)])
def test_nans_that_a_mask_overwrites_everywhere_are_in_no_gradient(
    xp: Any, shape: tuple[int, ...]
) -> None:
    """scikit-learn's StandardScaler divides 0 by 0 and writes the right numbers over it, `y[mask] =
    v[mask]`.
    """
    if "jax" in xp.__name__:
        pytest.skip("JAX's arrays are not written in memory")
    x = leaf(xp, real(*shape))
    y = (x * float("nan")) ** 2
    mask = x > -10
    y[mask] = (x * x)[mask]
    np.testing.assert_allclose(
        values(mg.autograd.grad(xp.sum(y), x)[0]), 2 * real(*shape), rtol=1e-14
    )


# ----- PyTorch -----
