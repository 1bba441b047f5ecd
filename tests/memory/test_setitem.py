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
from conftest import BACKENDS, values
from leaves import check, const, leaf
from setitem_forms import FORMS, put

import multigrad as mg
from multigrad.errors import GradientError


def real(*shape: int, seed: int = 0) -> Any:
    return np.asarray(np.random.default_rng([seed, *shape]).uniform(0.5, 2, shape) * (-1) ** seed)


MASK = np.asarray([[True, False, True], [False, False, True]])
INDEX = np.asarray

# Shape, key, shapes of the value. All are in the standard but for those listed in BEYOND.
BASIC: dict[str, tuple[tuple[int, ...], Any, list[tuple[int, ...]]]] = {
    "integer": ((4,), 1, [(), (1,), (1, 1)]),
    "negative integer": ((4,), -1, [()]),
    "row": ((2, 3), (1, Ellipsis), [(3,), (1,), (), (1, 3), (1, 1, 1)]),
    "element": ((2, 3), (1, -2), [(), (1,)]),
    "slice": ((5,), slice(1, 4), [(3,), (1,), (), (1, 3)]),
    "step": ((5,), slice(None, None, 2), [(3,), ()]),
    "step that misses the end": ((6,), slice(1, 6, 3), [(2,)]),
    "backwards": ((5,), slice(None, None, -1), [(5,), (1,)]),
    "backwards by two": ((5,), slice(3, None, -2), [(2,), ()]),
    "columns": ((2, 3), (slice(None), slice(1, 3)), [(2, 2), (2,), (2, 1), (1, 2), (1, 1, 2, 2)]),
    "steps of both axes": ((4, 5), (slice(None, None, -2), slice(4, None, -3)), [(2, 2), (2, 1)]),
    "ellipsis": ((2, 3), Ellipsis, [(2, 3), (3,), (2, 1), (), (1, 2, 3)]),
    "ellipsis in front": ((2, 3, 2), (Ellipsis, 1), [(2, 3), (3,), (2, 1)]),
    "ellipsis behind": ((2, 3, 2), (1, Ellipsis), [(3, 2)]),
    "ellipsis between": ((2, 3, 2), (0, Ellipsis, slice(0, 1)), [(3, 1), ()]),
    "new axis": ((3,), (None, Ellipsis), [(1, 3), (3,), ()]),
    "new axis between": ((2, 3), (slice(None), None, slice(0, 2)), [(2, 1, 2), (1, 2)]),
    "nothing": ((3,), slice(2, 2), [(0,), (1,), ()]),
    "an empty array": ((0, 3), Ellipsis, [(0, 3), (3,), ()]),
    "a column of an empty array": ((0, 3), (slice(None), 1), [(0,), ()]),
    "0-d": ((), (), [(), (1,)]),
    "0-d, ellipsis": ((), Ellipsis, [()]),
}
ARRAYS: dict[str, tuple[tuple[int, ...], Any, list[tuple[int, ...]]]] = {
    "mask": ((2, 3), MASK, [(3,), (1,), ()]),
    "mask of rows": ((2, 3), INDEX([False, True]), [(1, 3), (3,), ()]),
    "mask of no element": ((2, 3), np.zeros((2, 3), bool), [(0,), (1,), ()]),
    "mask of all": ((3,), np.ones(3, bool), [(3,), (1,)]),
    "mask of an empty array": ((0,), np.zeros(0, bool), [(0,), ()]),
    "mask of 0-d": ((), INDEX(True), [(), (1,)]),
    "false mask of 0-d": ((), INDEX(False), [(), (0,)]),
    "indices": ((4,), INDEX([2, 0]), [(2,), (1,), (), (1, 2)]),
    "repeated indices": ((4,), INDEX([1, 2, 1, -2]), [(4,), (1,), ()]),
    "a matrix of indices": ((4,), INDEX([[1, 0], [-1, 1]]), [(2, 2), (2,), (2, 1)]),
    "indices of both axes": ((2, 3), (INDEX([0, 1, 0]), INDEX([2, -1, 2])), [(3,), ()]),
    "indices that broadcast": ((2, 3), (INDEX([[0], [1]]), INDEX([2, 0])), [(2, 2), (2,)]),
    "index and integer": ((2, 3), (INDEX([1, 0]), 2), [(2,), ()]),
    "no index": ((3,), np.zeros(0, np.int64), [(0,), ()]),
    "a 0-d index": ((3,), INDEX(2), [(), (1,)]),
    "narrow indices": ((3,), INDEX([2, -1], np.int8), [(2,)]),
}
# NumPy and JAX know them; the standard, and array_api_strict, do not.
BEYOND: dict[str, tuple[tuple[int, ...], Any, list[tuple[int, ...]]]] = {
    "row without ellipsis": ((2, 3), 1, [(3,), ()]),
    "new axis without ellipsis": ((3,), None, [(1, 3)]),
    "beyond the end": ((3,), slice(1, 10), [(2,)]),
    "indices of rows": ((3, 2), INDEX([2, -2]), [(2, 2), (2,), (2, 1), ()]),
    "slice and indices": ((2, 4), (slice(None), INDEX([3, 0, -3])), [(2, 3), (3,)]),
    "slice and repeated indices": ((2, 4), (slice(None), INDEX([3, 0, -1])), [(2, 3)]),
}
KEYS = BASIC | ARRAYS
COMPILED: dict[str, tuple[int, ...]] = {
    "row": (1, 3),
    "steps of both axes": (2, 1),
    "element": (1,),
    "nothing": (0,),
    "0-d": (),
    "mask": (3,),
    "mask of rows": (3,),
    "repeated indices": (4,),
    "indices of both axes": (),
    "no index": (0,),
    "slice and repeated indices": (2, 3),
    "an empty array": (3,),
}


def cases() -> list[Any]:
    """On NumPy and strict every key, value and form; on JAX, which compiles each, some."""
    return [
        pytest.param(backend, shape, key, v, form, id=f"{backend}-{label}, value of {v}, {form}")
        for backend in BACKENDS
        for label, (shape, key, shapes) in (KEYS if backend == "strict" else KEYS | BEYOND).items()
        for form, v in product(FORMS, shapes)
        if backend != "jax" or (form == "statement" and label in COMPILED and v == COMPILED[label])
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


@pytest.mark.parametrize("what", ["x", "value"])
@pytest.mark.parametrize("label", ["row", "backwards by two", "mask", "repeated indices"])
def test_one_of_the_two_is_a_constant(xp: Any, label: str, what: str) -> None:
    shape, key, (v, *_) = KEYS[label]
    w, places = real(*shape, seed=2), came_from(shape, key, v)
    x = leaf(xp, real(*shape)) if what == "x" else const(xp, real(*shape))
    value = leaf(xp, real(*v, seed=1)) if what == "value" else const(xp, real(*v, seed=1))
    y = x * 1.0
    y[converted(xp, key)] = value
    assert y.requires_grad and y._version == 1 and y.grad_fn.name() == "CopySlices"
    xp.sum(y * const(xp, w)).backward()
    gx, gv = adjoint(w, places, v)
    check((x if what == "x" else value).grad, gx if what == "x" else gv)
    assert (value if what == "x" else x).grad is None


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

    def test_what_no_rule_saved_may_be_written(self, xp: Any) -> None:
        x = leaf(xp, [1.0, 2.0, 3.0])
        y = x * 2.0
        z = xp.sum(xp.exp(y)) + xp.sum(y * const(xp, [1.0, 2.0, 3.0]))
        y[1] = 0.0
        (z + xp.sum(y)).backward()
        check(x.grad, 2 * np.exp([2.0, 4.0, 6.0]) + [4, 4, 8])

    def test_the_value_may_be_written_afterwards(self, xp: Any) -> None:
        v = leaf(xp, [1.0, 2.0])
        w = v * 3.0
        y = xp.zeros(3, dtype=xp.float64)
        y[:2] = w
        w[0] = 100.0
        check(y, [3, 6, 0])
        xp.sum(y).backward()
        check(v.grad, [3, 3])

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

    def test_detached_and_shared_memory(self, xp: Any) -> None:
        y = leaf(xp, [1.0, 2.0]) * 1.0
        d = y.detach()
        d[0] = 7.0
        assert y._version == d._version == 1
        check(y, [7, 2])

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

    def test_values_computed_from_the_array(self, xp: Any) -> None:
        x = leaf(xp, [1.0, 2.0, 3.0])
        y = x * 1.0
        for i in range(1, 3):
            # the product keeps its operands, which are about to change
            y[i] = y[i - 1].clone() * y[i].clone()
        check(y, [1, 2, 6])
        (g,) = mg.autograd.grad(y[2], x, create_graph=True)
        check(g, [6, 3, 2])
        (h,) = mg.autograd.grad(xp.sum(g), x)
        check(h, [5, 4, 3])  # sums of the rows of the Hessian of x0 x1 x2

    def test_a_mask_computed_from_the_array(self, xp: Any) -> None:
        x = leaf(xp, [1.0, -2.0, 3.0])
        y = x * 1.0
        y[y < 0] = y[0]
        check(y, [1, 1, 3])
        xp.sum(y * const(xp, [1.0, 10.0, 100.0])).backward()
        check(x.grad, [11, 0, 100])


class TestRefusals:
    def test_a_leaf(self, xp: Any) -> None:
        x = leaf(xp, [1.0, 2.0])
        for key in (
            0,
            slice(1),
            (1, ...),
            slice(None),
            Ellipsis,
            (),
            const(xp, [0, 1], "int64"),
            const(xp, [True, False], "bool"),
        ):
            what = (
                "a view of a leaf"
                if type(key) is int or key in ([slice(1), (1, ...)])
                else "^a leaf"
            )
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


def test_inside_a_transformation(xp: Any) -> None:
    def loss(x: Any) -> Any:
        y = xp.zeros(4, dtype=xp.float64)
        y[1:] = x
        y[0] = xp.sum(x)
        return xp.sum(y * y)

    x = const(xp, [1.0, 2.0, 3.0]).array
    check(mg.func.grad(loss)(x), [14, 16, 18])
    check(mg.func.grad(lambda x: xp.sum(mg.func.grad(loss)(x)))(x), [8, 8, 8])


def test_a_value_of_a_transformation_in_an_array_from_outside(xp: Any) -> None:
    outside = xp.zeros(3, dtype=xp.float64)

    def leak(x: Any) -> Any:
        outside[0] = x[0]
        return xp.sum(x)

    with pytest.raises(
        GradientError,
        match="a value of a running transformation cannot be written into an array from outside "
        "of it",
    ):
        mg.func.grad(leak)(const(xp, [1.0]).array)


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


# PyTorch knows no negative steps, and where a place is repeated it gives every value a gradient.
UNLIKE = (
    "backwards",
    "backwards by two",
    "steps of both axes",
    "repeated indices",
    "a matrix of indices",
    "indices of both axes",
    "slice and repeated indices",
)


@pytest.mark.parametrize("label", [n for n in KEYS | BEYOND if n not in UNLIKE])
def test_as_pytorch(label: str) -> None:
    torch = pytest.importorskip("torch")
    xp = mg.namespace("numpy")
    shape, key, shapes = (KEYS | BEYOND)[label]
    for v in shapes:
        results = []
        for make, lib in (
            (lambda a: leaf(xp, a), xp),
            (lambda a: torch.tensor(a, requires_grad=True), torch),
        ):
            x, value = make(real(*shape)), make(real(*v, seed=1))
            y = x * 2.0
            place = (
                tuple(lib.asarray(k) if isinstance(k, np.ndarray) else k for k in key)
                if isinstance(key, tuple)
                else lib.asarray(key)
                if isinstance(key, np.ndarray)
                else key
            )
            try:
                y[place] = value
            except (RuntimeError, IndexError) as error:
                assert lib is torch, error
                results.append(None)  # it does not drop leading axes of length 1 everywhere
                continue
            (y**3).sum().backward()
            results.append([np.asarray(t.detach()) for t in (y, x.grad, value.grad)])
        if results[1] is not None:
            for ours, theirs in zip(*results, strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=1e-13)
