"""NumPy's functions and methods return the array itself, a view of it or a copy; so do ours.

A write to the array shows whether a result shares its memory: on Tensors, and inside of each
transformation.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import values

import multigrad as mg
from multigrad import func
from multigrad.errors import BatchingError, GradientError
from multigrad.protocols import functions as counterparts
from multigrad.protocols import ufuncs

MATRIX = np.arange(1.0, 7.0).reshape(2, 3)
LAYOUTS: dict[str, Callable[[], Any]] = {
    "matrix": lambda: MATRIX.copy(),
    "transposed": lambda: MATRIX.copy().T,
    "square": lambda: np.arange(9.0).reshape(3, 3) + 4 * np.eye(3),
    "cube": lambda: np.arange(24.0).reshape(2, 3, 4),
    "vector": lambda: np.arange(1.0, 5.0),
    "reversed": lambda: np.arange(1.0, 5.0)[::-1],
    "every second": lambda: np.arange(8.0)[::2],
    "one": lambda: np.array([3.0]),
    "with axes of length 1": lambda: np.arange(3.0).reshape(1, 3, 1),
    "0-d": lambda: np.array(2.0),
    "empty": lambda: np.zeros((0, 3)),
    "integers": lambda: np.arange(6).reshape(2, 3),
    "booleans": lambda: np.array([True, False, True]),
    "complex": lambda: MATRIX + 1j,
    "complex 0-d": lambda: np.array(1 + 2j),
    "float32": lambda: np.arange(3, dtype=np.float32),
}


FUNCTIONS: dict[str, tuple[Callable[..., Any], ...]] = {
    "append": (lambda x: np.append(x, []), lambda x: np.append(x, x, axis=0)),
    "around": (np.around, lambda x: np.around(x, -1)),
    "array_split": (lambda x: np.array_split(x, 2), lambda x: np.array_split(x, 1)),
    "astype": (
        lambda x: np.astype(x, x.dtype),
        lambda x: np.astype(x, x.dtype, copy=False),
        lambda x: np.astype(x, np.complex64, copy=False),
    ),
    "broadcast_arrays": (
        np.broadcast_arrays,
        lambda x: np.broadcast_arrays(x, x),
        lambda x: np.broadcast_arrays(x, np.zeros((2,) + (1,) * x.ndim)),
    ),
    "broadcast_to": (
        lambda x: np.broadcast_to(x, x.shape),
        lambda x: np.broadcast_to(x, (2, *x.shape)),
    ),
    "clip": (lambda x: np.clip(x, 0, 99), lambda x: np.clip(x, None, None)),
    "column_stack": (lambda x: np.column_stack([x]),),
    "compress": (lambda x: np.compress([True] * x.shape[0], x, axis=0),),
    "concatenate": (
        lambda x: np.concatenate([x]),
        lambda x: np.concatenate([x], axis=None),
    ),
    "diag": (np.diag, lambda x: np.diag(x, 1)),
    "diagonal": (
        np.diagonal,
        lambda x: np.diagonal(x, 1),
        lambda x: np.diagonal(x, 0, -2, -1),
    ),
    "diff": (np.diff, lambda x: np.diff(x, n=0)),
    "dot": (lambda x: np.dot(x, 1.0),),
    "dsplit": (lambda x: np.dsplit(x, 1),),
    "dstack": (lambda x: np.dstack([x]),),
    "einsum": (
        lambda x: np.einsum("...->...", x),
        lambda x: np.einsum("i", x),
        lambda x: np.einsum("ij", x),
        lambda x: np.einsum("ij->ji", x),
        lambda x: np.einsum("ii->i", x),
        lambda x: np.einsum("ij->j", x),
        lambda x: np.einsum("ij->ji", x, optimize=True),
    ),
    "expand_dims": (
        lambda x: np.expand_dims(x, 0),
        lambda x: np.expand_dims(x, (0, -1)),
        lambda x: np.expand_dims(x, ()),
    ),
    "extract": (lambda x: np.extract([True] * x.size, x),),
    "fft.fftshift": (np.fft.fftshift, lambda x: np.fft.fftshift(x, axes=())),
    "fft.ifftshift": (np.fft.ifftshift, lambda x: np.fft.ifftshift(x, axes=0)),
    "flip": (np.flip, lambda x: np.flip(x, 0), lambda x: np.flip(x, ())),
    "full_like": (lambda x: np.full_like(x, x),),
    "hsplit": (lambda x: np.hsplit(x, 1),),
    "hstack": (lambda x: np.hstack([x]),),
    "linalg.matrix_power": tuple(
        lambda x, n=n: np.linalg.matrix_power(x, n) for n in (0, 1, 2, -1)
    ),
    "meshgrid": (
        np.meshgrid,
        lambda x: np.meshgrid(x, x),
        lambda x: np.meshgrid(x, copy=False),
        lambda x: np.meshgrid(x, x, copy=False),
        lambda x: np.meshgrid(x, [1.0, 2.0], x, copy=False)[::2],
        lambda x: np.meshgrid(x, x, indexing="ij", copy=False),
        lambda x: np.meshgrid(x, x, sparse=True),
        lambda x: np.meshgrid(x, x, sparse=True, copy=False),
        lambda x: np.meshgrid(x, x, x, sparse=True, indexing="ij", copy=False),
    ),
    "moveaxis": (lambda x: np.moveaxis(x, 0, -1), lambda x: np.moveaxis(x, (), ())),
    "pad": (lambda x: np.pad(x, 0), lambda x: np.pad(x, 1)),
    "partition": (lambda x: np.partition(x, 0),),
    "quantile": (lambda x: np.quantile(x, 0.0, axis=()),),
    "ravel": (np.ravel, lambda x: np.ravel(x, order="F")),
    "repeat": (lambda x: np.repeat(x, 1), lambda x: np.repeat(x, 1, axis=0)),
    "reshape": (
        lambda x: np.reshape(x, (-1,)),
        lambda x: np.reshape(x, x.shape),
        lambda x: np.reshape(x, x.shape, copy=True),
        lambda x: np.reshape(x, (-1,), copy=False),
        lambda x: np.reshape(x, (-1,), order="F"),
        lambda x: np.reshape(x, (3, -1), order="F"),
        lambda x: np.reshape(x, (1, *x.shape), order="F"),
        lambda x: np.reshape(x, (-1,), order="F", copy=False),
        lambda x: np.reshape(x, (-1,), order="F", copy=True),
    ),
    "roll": (lambda x: np.roll(x, 0), lambda x: np.roll(x, 0, axis=0)),
    "rollaxis": (lambda x: np.rollaxis(x, -1), lambda x: np.rollaxis(x, 0)),
    "rot90": tuple(lambda x, k=k: np.rot90(x, k) for k in range(5)),
    "round": (np.round, lambda x: np.round(x, 2), lambda x: np.round(x, -1)),
    "select": (lambda x: np.select([x == x], [x]),),
    "split": (lambda x: np.split(x, 1), lambda x: np.split(x, [1])),
    "stack": (lambda x: np.stack([x]),),
    "sum": (np.sum, lambda x: np.sum(x, axis=())),
    "swapaxes": (lambda x: np.swapaxes(x, 0, -1), lambda x: np.swapaxes(x, 0, 0)),
    "take": (lambda x: np.take(x, list(range(x.shape[0])), axis=0),),
    "take_along_axis": (lambda x: np.take_along_axis(x, np.argsort(x, axis=0), axis=0),),
    "tile": (lambda x: np.tile(x, 1), lambda x: np.tile(x, ())),
    "tril": (lambda x: np.tril(x, 9),),
    "triu": (lambda x: np.triu(x, -9),),
    "unstack": (np.unstack, lambda x: np.unstack(x, axis=-1)),
    "vsplit": (lambda x: np.vsplit(x, 1),),
    "vstack": (lambda x: np.vstack([x]),),
    "where": (lambda x: np.where(x == x, x, x),),
    # methods of ufuncs
    "add.reduce": (lambda x: np.add.reduce(x, axis=()),),
    "maximum.reduce": (lambda x: np.maximum.reduce(x, axis=()),),
    "maximum.accumulate": (np.maximum.accumulate,),
    # numpy.array(x, like=t) and its relatives
    "array": (
        lambda x: np.array(x, like=x),
        lambda x: np.array(x, like=x, copy=None),
        lambda x: np.array(x, like=x, copy=False),
    ),
    "asarray": (lambda x: np.asarray(x, like=x),),
    "asanyarray": (lambda x: np.asanyarray(x, like=x),),
}
"""Calls of one array. What NumPy returns without computing is the array, a view or a copy.

`fft.fftn(x, axes=())` is x itself in NumPy, also a real x; ours is complex, as the standard says,
and so are eigenvalues. `lib.stride_tricks.sliding_window_view` says that it returns a copy.
"""
LEFT_OUT = {
    "common_type",
    "empty_like",
    "fft.fftn",
    "fft.ifftn",
    "linalg.eig",
    "linalg.eigvals",
    "min_scalar_type",
    "result_type",
    "trapz",
}
BARE: dict[str, tuple[Callable[..., Any], ...]] = {
    name: (operator.attrgetter(name)(np),)
    for name in sorted({*counterparts.SAME, *counterparts.COUNTERPARTS, *ufuncs.NAMES})
    if name not in {*FUNCTIONS, *LEFT_OUT}
}
"""All others, of the array alone; those that need more arguments raise."""

METHODS: dict[str, tuple[Callable[..., Any], ...]] = {
    **{
        name: (lambda x, name=name: getattr(x, name)(),)
        for name in ("argmax", "argsort", "conj", "cumsum", "flatten", "nonzero", "round", "trace")
    },
    **{name: (lambda x, name=name: getattr(x, name),) for name in ("T", "imag", "mT", "real")},
    "astype": (lambda x: x.astype(x.dtype), lambda x: x.astype(x.dtype, copy=False)),
    "clip": (lambda x: x.clip(0, 99),),
    "diagonal": (lambda x: x.diagonal(), lambda x: x.diagonal(1)),
    "ravel": (lambda x: x.ravel(), lambda x: x.ravel("F")),
    "repeat": (lambda x: x.repeat(1), lambda x: x.repeat(1, axis=0)),
    "reshape": (
        lambda x: x.reshape(-1),
        lambda x: x.reshape(x.shape),
        lambda x: x.reshape(x.shape, copy=True),
    ),
    "squeeze": (lambda x: x.squeeze(), lambda x: x.squeeze(0), lambda x: x.squeeze(())),
    "swapaxes": (lambda x: x.swapaxes(0, -1),),
    "to_device": (lambda x: x.to_device(x.device),),
    "transpose": (
        lambda x: x.transpose(),
        lambda x: x.transpose(tuple(range(x.ndim))),
    ),
    "__abs__": (abs,),
    "__getitem__": (
        lambda x: x[...],
        lambda x: x[None],
        lambda x: x[::-1],
        lambda x: x[:],
        lambda x: x[x == x],
        lambda x: x[[0]],
        lambda x: x[:1, 1],
    ),
    "__iter__": (list,),
    "__neg__": (lambda x: -x,),
    "__pos__": (lambda x: +x,),
    "__pow__": (lambda x: x**1,),
}

RAISED = (ValueError, TypeError, IndexError, np.linalg.LinAlgError)
CALLS = [
    pytest.param(call, id=f"{kind}{name}-{i}")
    for kind, table in (("numpy.", FUNCTIONS | BARE), ("ndarray.", METHODS))
    for name, calls in table.items()
    for i, call in enumerate(calls)
]


def leaves(value: Any) -> list[Any]:
    """The arrays and scalars in nested results."""
    if isinstance(value, (tuple, list)):
        return [leaf for part in value for leaf in leaves(part)]
    return [value]


def other(x: Any) -> Any:
    """A value that differs from every element of an array of LAYOUTS."""
    return 77 if str(x.dtype) != "bool" else np.logical_not(values(x))


def shared(call: Callable[..., Any], x: Any) -> list[bool | None] | None:
    """For each result of a call whether it shows a write to `x`; None for a scalar of NumPy.

    None if the call raises.
    """
    try:
        results = leaves(call(x))
    except RAISED:
        return None
    before = [np.array(values(r)) for r in results]
    x[...] = other(x)
    return [
        None if isinstance(r, (np.generic, bool, int)) else not np.array_equal(values(r), old)
        for r, old in zip(results, before, strict=True)
    ]


def same(found: list[bool | None] | None, expected: list[bool | None] | None) -> bool:
    """Whether results share memory as NumPy's; in NumPy `y[0]` is a scalar, here it is a view."""
    if found is None or expected is None:  # errors are compared elsewhere
        return True
    return len(found) == len(expected) and all(
        b is None or a is b for a, b in zip(found, expected, strict=True)
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", CALLS)
def test_a_result_shares_memory_as_in_numpy(call: Callable[..., Any]) -> None:
    with np.errstate(all="ignore"):
        for name, make in LAYOUTS.items():
            expected = shared(call, make())
            found = shared(call, mg.asarray(make()))
            assert same(found, expected), f"{name}: {found}, in NumPy {expected}"


# ----- inside of transformations -----

TRANSFORMED: dict[str, Callable[..., Any]] = {
    "vmap": lambda f, x: [y[0] for y in func.vmap(f)(np.stack([x, x]))],
    "vjp": lambda f, x: func.vjp(f, x)[0],
    "jvp": lambda f, x: func.jvp(f, (x,), (x,))[0],
    "compile": lambda f, x: func.compile(f)(x),
}
VIEWS = [
    (name, call)
    for name, call in (
        *((name, call) for name, calls in (FUNCTIONS | BARE).items() for call in calls),
        *((name, call) for name, calls in METHODS.items() for call in calls),
    )
    if name not in ("array", "asarray", "asanyarray", "to_device")
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layout", ["matrix", "square", "vector"])
@pytest.mark.parametrize("how", TRANSFORMED)
def test_results_share_memory_in_a_transformation(how: str, layout: str) -> None:
    x = LAYOUTS[layout]()
    wrong, compared = [], 0
    for name, call in VIEWS:

        def written(x: Any, call: Callable[..., Any] = call) -> Any:
            y = x * 1.0
            results = [r for r in leaves(call(y)) if hasattr(r, "shape")]
            y[...] = 77
            return [r for r in results if str(r.dtype) == "float64"]

        with np.errstate(all="ignore"):
            try:
                expected = written(x)
                found = TRANSFORMED[how](written, x)
            except (*RAISED, BatchingError, GradientError):
                continue
        if not any(isinstance(a, np.ndarray) for a in expected):
            continue
        compared += 1
        wrong += [
            f"{name}: {values(b)}, in NumPy {a}"
            for a, b in zip(expected, found, strict=True)
            if isinstance(a, np.ndarray) and not np.allclose(values(b), a, equal_nan=True)
        ]
    assert not wrong
    assert compared > 60


# ----- the array itself -----


def test_conj_of_a_real_array_is_the_array(xp: Any, backend: str) -> None:
    t = xp.asarray([1.0, 2.0], copy=True)
    assert t.conj() is t and t.real is t
    view = t.conj()
    view *= 2
    np.testing.assert_array_equal(values(t), [2.0, 4.0])
    copied = xp.conj(t)
    copied[0] = 9.0
    np.testing.assert_array_equal(values(t), [2.0, 4.0])
    z = xp.asarray([1 + 2j], dtype="complex128")
    assert values(z.conj()) == 1 - 2j


def test_conj_records_a_write_through_it() -> None:
    x = mg.asarray([1.0, 2.0], requires_grad=True)
    y = x * 1.0
    z = y.conj()
    z *= 3.0
    mg.sum(y * y).backward()
    np.testing.assert_array_equal(values(x.grad), [18.0, 36.0])


def test_a_write_through_meshgrid_arrives() -> None:
    x = mg.asarray([1.0, 2.0], requires_grad=True)
    y = x * 1.0
    (grid,) = np.meshgrid(y, copy=False)
    grid *= 3.0
    mg.sum(y * y).backward()
    np.testing.assert_array_equal(values(x.grad), [18.0, 36.0])
    wide, _ = np.meshgrid(y, y, copy=False)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        wide += 1.0


def test_a_reshape_in_column_order_that_needs_a_copy_raises() -> None:
    t = mg.asarray(MATRIX.copy())
    with pytest.raises(ValueError, match="copy"):
        np.reshape(t, (-1,), order="F", copy=False)


def test_vsplit_takes_two_axes_as_in_numpy() -> None:
    with pytest.raises(ValueError, match=r"numpy\.vsplit: the array has 1 axes.*numpy\.split"):
        np.vsplit(mg.asarray([1.0, 2.0]), 2)
