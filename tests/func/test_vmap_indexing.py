"""Indexing and assignment inside vmap: every form of key, against a loop, which NumPy's meaning of
the key decides.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from batches import looped, numpy, raw

from multigrad import func
from multigrad.errors import BatchingError, GradientError

DRAW = np.random.default_rng(12)
X = DRAW.uniform(-2, 2, (3, 4, 3, 5))
P, Q = (np.stack([DRAW.permutation(3)[:2] for _ in range(3)]) for _ in range(2))
ALL, BACK = slice(None), slice(None, None, -1)

KEYS: dict[str, Any] = {
    "i": lambda i, j: i,
    "...,i": lambda i, j: (..., i),
    "i,:,0": lambda i, j: (i, ALL, 0),
    "0,:,i": lambda i, j: (0, ALL, i),
    ":,i,None": lambda i, j: (ALL, i, None),
    "i,None,0": lambda i, j: (i, None, 0),
    "::-1,i": lambda i, j: (BACK, i),
    "i,2:2": lambda i, j: (i, slice(2, 2)),
    "i,...,-1": lambda i, j: (i, ..., -1),
    "i - 3": lambda i, j: i - 3,
    "i,j": lambda i, j: (i, j),
    "i,:,j": lambda i, j: (i, ALL, j),
    ":,i,None,j": lambda i, j: (ALL, i, None, j),
    "i,0,j": lambda i, j: (i, 0, j),
    "i[:,None],j": lambda i, j: (i[..., None], j),
    "i,::-1,j": lambda i, j: (i, BACK, j),
}
BASIC_KEYS = (
    0,
    slice(3, 0, -2),
    ...,
    (None, 0),
    (0, None, BACK),
    (),
    (1, -1, 2),
    (..., slice(0, 0)),
)


@pytest.fixture(params=["numpy", "jax"])
def xp(request):
    """array_api_strict has no integer arrays beside slices; what it has is tested by conformance,
    and at the end.
    """
    import multigrad as mg

    return mg.namespace(request.param)


def is_numpy(xp: Any) -> bool:
    return type(xp.zeros(1).array) is np.ndarray


def keys_of(xp: Any) -> list[str]:
    """JAX compiles each of them."""
    return list(KEYS) if is_numpy(xp) else list(KEYS)[::6]


def on(x: Any, axis: int | None) -> Any:
    return x if axis == 0 else x[0]


def assigned(xp: Any, x: Any, key: Any, value: Any) -> Any:
    x = xp.asarray(x, copy=True)
    x[key] = value
    return x


@pytest.mark.parametrize(
    "axes", [(0, 0, 0), (None, 0, None), (0, None, 0), (None, 0, 0), (0, 0, None)]
)
def test_reading(xp, axes):
    """Indices of one axis and of none, which differ between examples or do not."""
    for name in keys_of(xp):
        for i, j in ((P, Q), (P[:, 0], Q), (P[:, 0], Q[:, 0])) if is_numpy(xp) else ((P, Q),):
            given = [on(x, axis) for x, axis in zip((X, i, j), axes, strict=True)]
            looped(xp, lambda x, i, j, key=KEYS[name]: x[key(i, j)], *given, in_axes=axes)


def test_writing(xp):
    for name in keys_of(xp):
        key = KEYS[name]
        shape = X[0][key(P[0], Q[0])].shape
        put = lambda x, i, j, v, key=key: assigned(xp, x, key(i, j), v)
        for axes in ((0, 0, 0, 0), (0, 0, None, 0), (0, None, 0, None)):
            given = [on(x, axis) for x, axis in zip((P, Q), axes[1:], strict=False)]
            for s in (shape, (1, *shape), shape[-1:], ()) if axes == (0, 0, 0, 0) else (shape,):
                value = on(DRAW.uniform(-1, 1, (3, *s)), axes[3])
                looped(xp, put, X, *given, value, in_axes=axes)
        looped(xp, lambda x, i, j, key=key: assigned(xp, x, key(i, j), 1.5), X, P, Q)
    twice = np.array([[1, 1, 2], [0, 3, 0], [2, 2, 2]])  # the last value for a place counts
    looped(xp, lambda x, i, v: assigned(xp, x, i, v), X[:, :, 0, :], twice, X[:, 1:, 1, :])


def test_integers_and_slices(xp):
    for key in BASIC_KEYS if is_numpy(xp) else BASIC_KEYS[3::6]:
        looped(xp, lambda x, key=key: (x[key], assigned(xp, x, key, 2)), X)
        shape = X[0][key].shape
        for s in {(), shape, shape[1:], (1, *shape)}:
            looped(
                xp, lambda x, v, key=key: assigned(xp, x, key, v), X, DRAW.uniform(-1, 1, (3, *s))
            )
    looped(
        xp,
        lambda x: (
            x[[0, 2]],
            x[:, [0, 2]],
            x[np.int64(1)],
            x[xp.asarray(1)],
            x[[True, False, True, False]],
        ),
        X,
    )


def test_values_that_do_not_fit(xp):
    parts = [(0, (3, 7)), ((ALL, slice(2, 2)), (3, 2, 4, 0, 5)), (..., (3, 2, 4, 3, 5))]
    # JAX writes anything to nothing
    for key, value in [*parts, (slice(2, 2), (3, 2, 3, 5))] if is_numpy(xp) else parts:
        with pytest.raises(ValueError):
            func.vmap(lambda x, v, key=key: assigned(xp, x, key, v))(
                raw(xp, X), raw(xp, np.zeros(value))
            )
    with pytest.raises(
        ValueError, match=r"shape \(2, 0, 5\) cannot be written to a part of 2 dimensions"
    ):
        func.vmap(lambda x, i, v: assigned(xp, x, (i, slice(2, 2)), v))(
            raw(xp, X), raw(xp, P[:, 0]), raw(xp, np.zeros((3, 2, 0, 5)))
        )
    with pytest.raises(IndexError):
        func.vmap(lambda x: x[0, 0, 0, 0])(raw(xp, X))
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
        func.vmap(lambda x: assigned(xp, xp.astype(x, xp.int64), 0, 1.5))(raw(xp, X))


def test_masks_that_are_the_same_for_all(xp):
    for mask in (np.array([True, False, True, True]), X[0, :, :, 0] > 0):
        rest, count = X[0].shape[mask.ndim :], int(mask.sum())
        looped(xp, lambda x, m: x[m], X, mask, in_axes=(0, None))
        for s in ((), rest, (count, *rest), (1, *rest)):
            value = DRAW.uniform(-1, 1, (3, *s))
            put = lambda x, m, v: assigned(xp, x, m, v)
            looped(xp, put, X, mask, value, in_axes=(0, None, 0))


def test_a_mask_for_each_example(xp):
    for mask in (X[:, :, 0, 0] > 0, X[:, :, :, 0] > 0):
        rest = X[0].shape[mask.ndim - 1 :]
        for s in ((), rest, (1, *rest)):
            value = DRAW.uniform(-1, 1, (3, *s))
            put = lambda x, m, v: assigned(xp, x, m, v)
            looped(xp, put, X, mask, value)
            looped(xp, put, X, mask, value[0], in_axes=(0, 0, None))
        for f in (
            lambda x, m: x[m],
            lambda x, m, rest=rest: assigned(xp, x, m, xp.ones((2, *rest))),
        ):
            with pytest.raises(
                BatchingError,
                match="of a mask inside vmap: the shape|with a mask inside vmap: the shape",
            ):
                func.vmap(f)(raw(xp, X), raw(xp, mask))
    with pytest.raises(
        BatchingError, match="a mask cannot stand beside indices that differ between examples"
    ):
        func.vmap(lambda x, i: x[xp.asarray([True, False, True, False]), i])(raw(xp, X), raw(xp, P))


def test_a_place_out_of_bounds_is_never_that_of_another_example(xp):
    if not is_numpy(xp):
        pytest.skip("under jax no index is out of bounds: it is clamped, or gives nan")
    keys = (
        lambda i: i,
        lambda i: (ALL, i),
        lambda i: (0, i),
        lambda i: (i, ALL, 0),
        lambda i: (i, i),
    )
    for key in keys:
        for place in (4, -5, 9):
            for axes in ((0, 0), (None, 0), (0, None)):
                for i in (np.full((3, 2), place), np.full((3,), place)):
                    given = raw(xp, on(X, axes[0])), raw(xp, on(i, axes[1]))
                    with pytest.raises(IndexError, match="out of bounds"):
                        func.vmap(lambda x, i, key=key: x[key(i)], in_axes=axes)(*given)
                    with pytest.raises(IndexError, match="out of bounds"):
                        func.vmap(
                            lambda x, i, key=key: assigned(xp, x * 1, key(i), 1.0), in_axes=axes
                        )(*given)


def test_indices_of_narrow_dtypes(xp):
    x, i = DRAW.uniform(-1, 1, (200, 3)), DRAW.integers(-3, 3, (200, 2))
    looped(xp, lambda x, i: (x[i], assigned(xp, x, i[0], 2.0)), x[:5], i[:5].astype(np.int8))
    # 200 examples, more than int8 counts
    for f in (lambda x, i: x[i], lambda x, i: xp.take(x, i), lambda x, i: assigned(xp, x, i, 2.0)):
        found = numpy(func.vmap(f)(raw(xp, x), raw(xp, i.astype(np.int8))))
        np.testing.assert_array_equal(found, numpy(func.vmap(f)(raw(xp, x), raw(xp, i))))


def test_what_is_written_into(xp):
    """What was made inside takes the values of examples; what comes from outside does not, neither
    at places that differ between them.
    """

    def filled(x):
        out = xp.zeros(4, dtype=x.dtype)
        for k in range(3):
            out[k] = x[k] * 2
        return out

    looped(xp, filled, X[:, :, 0, 0])
    buffer = xp.zeros(5)

    def write(key, value):
        buffer[key] = value
        return value

    for f in (
        lambda i: write(i, 1.0) + i,
        lambda i: write((i,), 1.0) + i,
        lambda i: write(0, i * 1.0),
        lambda i: write(i[None], 1.0) + i,
    ):
        with pytest.raises(
            GradientError, match="cannot be written into an array from outside of it"
        ):
            func.vmap(f)(raw(xp, P[:, 0]))
    np.testing.assert_array_equal(numpy(buffer), np.zeros(5))


def test_an_array_that_is_the_same_for_all(xp):
    """It is a Tensor inside, since a library's own array cannot be indexed with a batch."""
    table = X[0, :, 0, :]
    found = func.vmap(lambda t, i: t[i], in_axes=(None, 0))(raw(xp, table), raw(xp, P))
    np.testing.assert_array_equal(numpy(found), table[P])
    same, kept = func.vmap(lambda t, i: (t, i), in_axes=(None, 0), out_axes=(None, 0))(
        raw(xp, table), raw(xp, P)
    )
    assert type(same) is type(raw(xp, table)) and type(kept) is type(same)
    np.testing.assert_array_equal(numpy(same), table)


def test_index_of_an_outer_batch_in_an_inner_one(xp):
    """As an index, as a mask of where, as what is written, and as where to write."""
    rows = X[:, 0, 0, :3]

    def f(row):
        k, mask = xp.argmax(xp.sin(row * 3)), row > 0.6

        def g(s):
            y = xp.zeros(3) + s
            y[k] = row[k] * s
            return xp.sum(xp.where(mask, y, row))

        return func.vmap(func.grad(g))(row)

    def expected(row):
        k, mask = int(np.argmax(np.sin(row * 3))), row > 0.6
        slope = np.ones(3)
        slope[k] = row[k]
        return np.full(3, slope[mask].sum())

    found = numpy(func.vmap(f)(raw(xp, rows)))
    np.testing.assert_allclose(found, np.stack([expected(row) for row in rows]))


def test_the_standards_own_keys_on_strict():
    import multigrad as mg

    xp = mg.namespace("strict")
    x = X[:, :, :, 0]
    for axes in ((0, 0, 0), (None, 0, None), (0, None, 0)):
        read = lambda x, i, j: (x[i, j], x[0, j], x[i, 0], x[:, 1:], x[0, ...], x[::-1, None, 0])
        looped(xp, read, on(x, axes[0]), on(P, axes[1]), on(Q, axes[2]), in_axes=axes)
    write = lambda x, i, j, v: (
        assigned(xp, x, (i, j), v),
        assigned(xp, x, (0, ...), v[0]),
        assigned(xp, x, x > 0, v[1]),
    )
    looped(xp, write, x, P, Q, X[:, 0, :2, 1])
