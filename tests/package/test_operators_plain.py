"""What Python asks of a Tensor besides arithmetic: comparisons, bits, signs, hashes, foreign
operands, casts to scalars.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import values
from leaves import const, leaf
from operators import BITWISE, A, apply, check, gradients

import multigrad as mg
from multigrad.layers.tangents import PATIENCE

# ----- comparisons, bits, unary operators -----

COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


@pytest.mark.parametrize("stem", COMPARISONS)
def test_comparisons_have_no_gradient(xp: Any, stem: str) -> None:
    compare: Callable[[Any, Any], Any] = getattr(operator, stem)
    x, v = leaf(xp, [1.0, 2.0, 3.0]), leaf(xp, [2.0, 2.0, 2.0])
    expected = compare(np.asarray([1.0, 2.0, 3.0]), 2.0)
    for found in (compare(x, v), compare(x, 2.0), compare(x, 2), compare(x, v.detach())):
        assert found.dtype == xp.bool and not found.requires_grad and found.grad_fn is None
        np.testing.assert_array_equal(values(found), expected)
    np.testing.assert_array_equal(
        values(compare(2.0, x)), compare(2.0, np.asarray([1.0, 2.0, 3.0]))
    )


def test_equality_with_what_is_no_array(xp: Any) -> None:
    x = leaf(xp, A)
    assert (x == None) is False and (x != None) is True and (x == "a") is False  # noqa: E711
    with pytest.raises(TypeError, match="not supported between"):
        operator.lt(x, None)
    with pytest.raises(TypeError, match="not supported between"):
        operator.ge(x, "a")


def test_tensors_are_hashed_by_identity(xp: Any) -> None:
    x, y = leaf(xp, A), leaf(xp, A)
    found = {x: "x", y: "y"}
    assert found[x] == "x" and found[y] == "y" and hash(x) != hash(y) and len({x, y, x}) == 2
    x.detach().__iadd__(1.0)
    assert found[x] == "x"


@pytest.mark.parametrize("stem", BITWISE)
def test_bitwise_operators(xp: Any, stem: str) -> None:
    n, m = np.asarray([6, 5, 12]), np.asarray([3, 1, 2])
    for form in ("operator", "reflected", "in place"):
        found = apply(stem, form, const(xp, n, "int64"), const(xp, m, "int64"))
        np.testing.assert_array_equal(values(found), apply(stem, "operator", n, m))
        assert found.dtype == xp.int64 and not found.requires_grad
    np.testing.assert_array_equal(
        values(apply(stem, "operator", 5, const(xp, m, "int64"))), apply(stem, "operator", 5, m)
    )
    if stem in ("and", "or", "xor"):
        p, q = np.asarray([True, True, False]), np.asarray([True, False, False])
        for form in ("operator", "reflected", "in place"):
            np.testing.assert_array_equal(
                values(apply(stem, form, const(xp, p, "bool"), const(xp, q, "bool"))),
                apply(stem, "operator", p, q),
            )
        np.testing.assert_array_equal(values(True ^ const(xp, q, "bool")), ~q)
    with pytest.raises((TypeError, ValueError)):
        apply(stem, "operator", leaf(xp, A), const(xp, m, "int64"))


def test_unary_operators(xp: Any) -> None:
    x = leaf(xp, [-1.5, 0.0, 2.0])
    for y, value, slope in (
        (-x, [1.5, 0, -2], [-1, -1, -1]),
        (+x, [-1.5, 0, 2], [1, 1, 1]),
        (abs(x), [1.5, 0, 2], [-1, 0, 1]),
    ):
        check(y, value)
        check(gradients(y, x, xp.ones_like(x))[0], slope)
        assert y is not x
    np.testing.assert_array_equal(values(~const(xp, [True, False], "bool")), [False, True])
    np.testing.assert_array_equal(values(~const(xp, [0, 5], "int64")), [-1, -6])
    with pytest.raises((TypeError, ValueError)):
        ~x


def test_operators_that_the_standard_does_not_have(xp: Any) -> None:
    x = leaf(xp, A)
    for expression in (
        lambda: divmod(x, 2.0),
        lambda: divmod(2.0, x),
        lambda: x @ 2.0,
        lambda: 2 @ x,
        lambda: x @ None,
    ):
        with pytest.raises(TypeError, match="unsupported operand"):
            expression()
    with pytest.raises(TypeError):
        pow(x, 2, 3)


def test_the_operator_of_matrix_products_takes_no_numbers_at_any_level(xp: Any) -> None:
    x = const(xp, A)
    for number in (2, 1.5, True, 1j):
        for product in (lambda z, number=number: z @ number, lambda z, number=number: number @ z):
            for run in (
                lambda f: mg.func.jvp(f, (x,), (x,)),
                lambda f: mg.func.vmap(f)(x),
                lambda f: mg.func.grad(f)(x),
            ):
                for _ in range(PATIENCE + 2):  # straight code or not
                    with pytest.raises(TypeError, match="unsupported operand"):
                        run(product)


def test_other_operands_get_their_turn(xp: Any) -> None:
    class Unit:
        def __radd__(self, other: Any) -> str:
            return "mine"

        def __rmatmul__(self, other: Any) -> str:
            return "mine"

        def __eq__(self, other: Any) -> Any:
            return "equal"

        __hash__ = object.__hash__

    x = const(xp, A)
    assert x + Unit() == "mine" and x @ Unit() == "mine" and (x == Unit()) == "equal"
    y = x
    y += Unit()
    assert y == "mine" and x._version == 0
    with pytest.raises(TypeError, match="unsupported operand"):
        x - Unit()


# ----- casts to Python scalars -----


CASTS: list[tuple[Any, str, Any]] = [
    (float, "float64", 2.5),
    (int, "float64", 2.0),
    (complex, "float64", 2.5),
    (bool, "float64", 2.5),
    (complex, "complex128", 1 + 2j),
    (int, "int64", 7),
    (float, "int64", 7),
    (bool, "int64", 0),
    (bool, "bool", True),
    (int, "bool", True),
    (float, "float32", 0.5),
]


@pytest.mark.parametrize(("kind", "dtype", "value"), CASTS)
def test_casts(xp: Any, kind: Any, dtype: str, value: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = kind(const(xp, value, dtype))
    assert type(found) is kind and found == kind(value)


@pytest.mark.parametrize("kind", [float, int, complex])
def test_casts_that_drop_a_gradient_warn(xp: Any, kind: Any) -> None:
    x = leaf(xp, 2.0)
    with pytest.warns(
        UserWarning,
        match=rf"Converting a tensor with requires_grad=True to a scalar by {kind.__name__}\(\) "
        r"drops its gradient",
    ):
        assert kind(x * 1.5) == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert bool(x) and x.item() == 2.0 and kind(x.detach()) == 2 and (x > 1) and not (x < 1)


def test_casts_that_are_refused(xp: Any) -> None:
    for kind in (float, int):
        with pytest.raises(TypeError):
            kind(const(xp, 1j, "complex128"))
    for kind in (float, int, complex, bool):
        with pytest.raises((TypeError, ValueError, RuntimeError)):
            kind(const(xp, [1.0, 2.0]))
        with pytest.raises((TypeError, ValueError, RuntimeError)):
            kind(const(xp, np.zeros((0,))))
    with pytest.raises(ValueError):
        int(const(xp, np.nan))
    with pytest.raises(OverflowError):
        int(const(xp, np.inf))


def test_index(xp: Any) -> None:
    n = const(xp, 2, "int64")
    assert (
        operator.index(n) == 2
        and [10, 20, 30][n] == 30
        and list(range(n)) == [0, 1]
        and "ab" * n == "abab"
        and [0] * n == [0, 0]
    )
    for bad in (const(xp, 2.0), const(xp, True, "bool"), const(xp, [1, 2], "int64")):
        with pytest.raises(
            TypeError, match="only integer Tensors of one element can be used as an index"
        ):
            operator.index(bad)
