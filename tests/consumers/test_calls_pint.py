"""pint's quantities with Tensors as magnitudes, as a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from consumer_checks import drawn
from consumer_tables import NUMPY, Call, Table

pint = pytest.importorskip("pint", reason="pint is a dependency of the tests only")

A, B, V, W, SQUARE = drawn(3, 4), drawn(3, 4, seed=1), drawn(6), drawn(6, seed=1), drawn(3, 3)
UNITS = pint.UnitRegistry()


def of(function: Callable[..., Any], *units: str) -> Callable[..., Any]:
    """`function` of quantities, as a function of their magnitudes."""

    def of_magnitudes(*arrays: Any) -> Any:
        given = [
            UNITS.Quantity(x, units[i] if i < len(units) else "m") for i, x in enumerate(arrays)
        ]
        result = function(*given)
        return [q.m for q in result] if isinstance(result, list) else getattr(result, "m", result)

    return of_magnitudes


def added(x: Any, y: Any) -> Any:
    x = x * 1
    x += y
    return x


CALLS = [
    Call("Quantity", of(lambda x: x), (A,)),
    Call("array * unit", lambda x: (x * UNITS.m).m, (A,)),
    Call("unit * array", lambda x: (UNITS.m * x).m, (A,)),
    Call("+ and -", of(lambda x, y: x + y - 2 * x, "m", "cm"), (A, B)),
    Call("* and /", of(lambda x, y: x * y / (y + y) * x, "m", "s"), (A, B)),
    Call("**", of(lambda x: abs(-x) ** 2), (A,)),
    Call("@", of(lambda x, y: x @ y), (SQUARE, SQUARE)),
    Call("+=", of(added), (A, B)),
    Call("<", of(lambda x, y: x < y, "m", "cm"), (A, B)),
    Call("Quantity.to", of(lambda x: x.to("cm")), (A,), note="and `to_base_units` `m_as`"),
    Call("Quantity.to from an offset unit", of(lambda x: x.to("kelvin"), "degC"), (A,)),
    Call("Quantity.__getitem__", of(lambda x: x[0, 1:]), (A,)),
    Call("Quantity.reshape", of(lambda x: x.reshape(4, 3).T), (A,)),
    Call("Quantity.sum", of(lambda x: x.sum(axis=0)), (A,)),
    Call("np.sin", of(np.sin, "degree"), (A,)),
    Call("np.exp", of(np.exp, ""), (A,)),
    Call("np.sqrt", of(np.sqrt), (A,)),
    Call("np.sum", of(np.sum), (A,)),
    Call("np.mean", of(np.mean), (A,)),
    Call("np.max", of(lambda x: np.max(x, axis=0)), (A,)),
    Call("np.dot", of(np.dot), (V, W)),
    Call("np.concatenate", of(lambda x, y: np.concatenate([x, y]), "m", "cm"), (V, W)),
    Call("np.where", of(lambda x, y: np.where(x > y, x, y)), (A, B)),
    Call("np.trapezoid", of(lambda x: np.trapezoid(x, axis=0)), (A,)),
]

TABLE = Table("other libraries", "pint", CALLS, part="pint", settings={"numpy": NUMPY})
test_calls = TABLE.test()
