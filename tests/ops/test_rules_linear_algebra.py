"""The rules of products: every pairing of shapes, real and complex, and which operand they keep."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rule_checks import NUMPY, check, complexes, linearized, reals, strict_raw

from multigrad import registry
from multigrad.dispatch import codegen

MATMUL = [
    ((3,), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3,)),
    ((2, 3), (3, 4)),
    ((3,), (5, 3, 4)),
    ((5, 2, 3), (3,)),
    ((2, 3), (5, 3, 4)),
    ((5, 2, 3), (3, 4)),
    ((6, 5, 2, 3), (3, 4)),
    ((2, 3), (6, 5, 3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((1, 2, 3), (5, 3, 4)),
    ((6, 1, 2, 3), (5, 3, 4)),
    ((6, 1, 2, 3), (1, 5, 3, 4)),
    ((0, 3), (3, 4)),
    ((2, 0), (0, 4)),
    ((0, 2, 3), (3, 4)),
    ((1, 1), (1, 1)),
]


@pytest.mark.parametrize(("shape1", "shape2"), MATMUL, ids=str)
def test_matmul(shape1: tuple[int, ...], shape2: tuple[int, ...]) -> None:
    pytest.importorskip("array_api_strict")
    check("matmul", reals(*shape1), reals(*shape2, seed=1), on=strict_raw())
    check("matmul", complexes(*shape1), complexes(*shape2, seed=1), on=strict_raw())
    check("matmul", complexes(*shape1), reals(*shape2, seed=1))
    check("matmul", reals(*shape1), complexes(*shape2, seed=1))


VECDOT = [
    ((3,), (3,), -1),
    ((2, 3), (3,), -1),
    ((3,), (2, 3), -1),
    ((5, 1, 3), (4, 3), -1),
    ((4, 3), (5, 4, 1), -2),
    ((2, 3), (2, 3), -2),
    ((0,), (0,), -1),
    ((3, 0), (3, 0), -2),
]


@pytest.mark.parametrize(("shape1", "shape2", "axis"), VECDOT, ids=str)
def test_vecdot(shape1: tuple[int, ...], shape2: tuple[int, ...], axis: int) -> None:
    pytest.importorskip("array_api_strict")
    check("vecdot", reals(*shape1), reals(*shape2, seed=1), on=strict_raw(), axis=axis)
    check("vecdot", complexes(*shape1), complexes(*shape2, seed=1), on=strict_raw(), axis=axis)
    check("vecdot", complexes(*shape1), reals(*shape2, seed=1), axis=axis)
    check("vecdot", reals(*shape1), complexes(*shape2, seed=1), axis=axis)


TENSORDOT: list[tuple[tuple[int, ...], tuple[int, ...], Any]] = [
    ((2, 3, 4), (3, 4, 5), 2),
    ((2, 3), (3, 5), 1),
    ((2, 3), (4,), 0),
    ((), (2,), 0),
    ((2, 3), (2, 3), 2),
    ((2, 3, 4), (4, 3, 2), ((1, -1), (1, 0))),
    ((2, 3, 4), (4, 2, 3), ((0, 2, 1), (1, 0, 2))),
    ((2, 3, 4, 5), (5, 6, 3), ((3, 1), (0, -1))),
    ((2, 3), (4, 2), ([0], [1])),
    ((2, 3), (4,), ((), ())),
    ((2, 0), (0, 3), 1),
]


@pytest.mark.parametrize(("shape1", "shape2", "axes"), TENSORDOT, ids=str)
def test_tensordot(shape1: tuple[int, ...], shape2: tuple[int, ...], axes: Any) -> None:
    pytest.importorskip("array_api_strict")
    check("tensordot", reals(*shape1), reals(*shape2, seed=1), on=strict_raw(), axes=axes)
    check("tensordot", complexes(*shape1), complexes(*shape2, seed=1), on=strict_raw(), axes=axes)
    check("tensordot", reals(*shape1), complexes(*shape2, seed=1), axes=axes)


@pytest.mark.parametrize("shape", [(2, 3), (4, 2, 3), (0, 3)], ids=str)
def test_matrix_transpose(shape: tuple[int, ...]) -> None:
    pytest.importorskip("array_api_strict")
    check("matrix_transpose", complexes(*shape), on=strict_raw())


@pytest.mark.parametrize("name", ["matmul", "tensordot", "vecdot"])
def test_each_operand_keeps_the_other(name: str) -> None:
    op = registry.OPS[name]
    assert not isinstance(op.vjp, registry.Rule)
    assert {"x2"} == set(op.vjp["x1"].keeps) & {"x1", "x2", "ans"}
    assert {"x1"} == set(op.vjp["x2"].keeps) & {"x1", "x2", "ans"}


def test_complex_gradients_are_those_of_pytorch() -> None:
    """dL/dz = dL/da + i dL/db: x1^H @ g for the second factor, and vecdot conjugates its first."""
    x1, x2, g = complexes(2, 3), complexes(3, 4), complexes(2, 4)
    g1, g2 = codegen.vjp(registry.OPS["matmul"], NUMPY, [x1, x2], x1 @ x2, g, (True, True))
    np.testing.assert_allclose(g1, g @ x2.conj().T)
    np.testing.assert_allclose(g2, x1.conj().T @ g)
    u, v, c = complexes(3), complexes(3, seed=4), 2 - 1j
    g1, g2 = codegen.vjp(
        registry.OPS["vecdot"], NUMPY, [u, v, -1], np.vdot(u, v), np.asarray(c), (True, True)
    )
    np.testing.assert_allclose(g1, np.conj(c) * v)
    np.testing.assert_allclose(g2, c * u)


def test_single_precision_stays() -> None:
    narrow = reals(5, 2, 3).astype(np.float32), reals(3, 4).astype(np.float32)
    _, gradients, moved, _, _ = linearized(NUMPY, "matmul", narrow, {}, lambda x: x)
    assert {a.dtype for a in (*gradients, moved)} == {np.dtype(np.float32)}


def test_a_batch_against_one_matrix_makes_no_batch_of_gradients() -> None:
    """The gradient of the matrix is one product; a sum over per-entry gradients would take batch
    times the memory.
    """
    made: list[tuple[int, ...]] = []

    class Recording:
        def __getattr__(self, name: str) -> Any:
            def call(*args: Any, **kwargs: Any) -> Any:
                out = getattr(NUMPY, name)(*args, **kwargs)
                made.append(getattr(out, "shape", ()))
                return out

            return call

    x1, x2 = reals(50, 2, 3), reals(3, 4)
    (_, g2) = codegen.vjp(
        registry.OPS["matmul"], Recording(), [x1, x2], x1 @ x2, reals(50, 2, 4), (False, True)
    )
    assert g2.shape == (3, 4)
    assert (50, 3, 4) not in made
