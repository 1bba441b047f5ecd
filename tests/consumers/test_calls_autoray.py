"""autoray's functions, as a table: `do` finds a function by name for the library of the arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from consumer_checks import drawn
from consumer_tables import Call, Table

ar = pytest.importorskip("autoray", reason="autoray is a dependency of the tests only")

A, B, V, W, SQUARE = (
    drawn(3, 4),
    drawn(3, 4, seed=1),
    drawn(6),
    drawn(6, seed=1),
    drawn(3, 3) + 2 * np.eye(3),
)


def do(name: str, *args: Any, **options: Any) -> Callable[..., Any]:
    return lambda *arrays: ar.do(name, *arrays, *args, **options)


def lazily(x: Any) -> Any:
    z = ar.lazy.array(x)
    return (z @ ar.do("transpose", z)).compute()


CALLS = [
    Call("do tanh", do("tanh"), (A,), also=["jax"]),
    Call("do mean", do("mean", axis=0), (A,)),
    Call("do reshape", do("reshape", (4, 3)), (A,)),
    Call("do transpose", do("transpose", (1, 0)), (A,)),
    Call("do ravel", do("ravel"), (A,)),
    Call("do concatenate", lambda x, y: ar.do("concatenate", (x, y), axis=0), (A, B)),
    Call("do stack", lambda x, y: ar.do("stack", (x, y)), (A, B)),
    Call("do split", do("split", 2, axis=1), (A,)),
    Call("do where", lambda x, y: ar.do("where", x > 1, x, y), (A, B)),
    Call(
        "do take",
        lambda x: ar.do("take", x, np.asarray([0, 2]), axis=0),
        (A,),
        note="indices in NumPy",
    ),
    Call("do pad", do("pad", ((1, 0), (0, 1))), (A,)),
    Call("do tensordot", do("tensordot", axes=[(0,), (0,)]), (A, B)),
    Call("do einsum", lambda x, y: ar.do("einsum", "ij,ik->jk", x, y), (A, B), also=["jax"]),
    Call("do kron", do("kron"), (SQUARE, SQUARE)),
    Call("do outer", do("outer"), (V, W)),
    Call("do trace", do("trace"), (SQUARE,)),
    Call("do diag", do("diag"), (V,)),
    Call("do linalg.norm", do("linalg.norm"), (A,)),
    Call("do linalg.svd", lambda x: ar.do("linalg.svd", x)[1], (A,)),
    Call("do linalg.solve", do("linalg.solve"), (SQUARE, A)),
    Call("dag", lambda x: ar.dag(x) @ x, (A,)),
    Call("lazy.array", lazily, (A,)),
    Call("to_numpy", ar.to_numpy, (A,)),
]

TABLE = Table("other libraries", "autoray", CALLS, part="autoray")
test_calls = TABLE.test()
