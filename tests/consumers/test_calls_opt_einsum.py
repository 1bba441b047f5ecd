"""opt_einsum's functions, as a table: it contracts pairwise by the functions that it finds for the
library of the arrays.
"""

from __future__ import annotations

from typing import Any

import pytest
from consumer_checks import drawn
from consumer_tables import Call, Table

oe = pytest.importorskip("opt_einsum", reason="opt_einsum is a dependency of the tests only")

A, B, V, W, SQUARE, CUBE = (
    drawn(3, 4),
    drawn(3, 4, seed=1),
    drawn(6),
    drawn(6, seed=1),
    drawn(3, 3),
    drawn(2, 3, 4),
)
CHAIN = (A, drawn(4, 2), drawn(2, 3))


def shared(x: Any, y: Any, z: Any) -> Any:
    with oe.shared_intermediates():
        return oe.contract("ij,jk,kl->il", x, y, z), oe.contract("ij,jk,kl->l", x, y, z)


CALLS = [
    Call("contract", lambda *xs: oe.contract("ij,jk,kl->il", *xs), CHAIN, also=["jax"]),
    Call("contract to a transposed result", lambda x, y: oe.contract("ij,ik->kj", x, y), (A, B)),
    Call("contract a trace", lambda x: oe.contract("ii->", x), (SQUARE,)),
    Call("contract a diagonal", lambda x: oe.contract("ii->i", x), (SQUARE,)),
    Call(
        "contract batches", lambda x, y: oe.contract("bij,bjk->bik", x, y), (CUBE, drawn(2, 4, 2))
    ),
    Call("contract an outer product", lambda x, y: oe.contract("i,j->ij", x, y), (V, W)),
    Call(
        "contract by numbered axes", lambda x, y: oe.contract(x, [0, 1], y, [0, 2], [1, 2]), (A, B)
    ),
    Call(
        "contract with an ellipsis", lambda x, y: oe.contract("...i,i->...", x, y), (CUBE, drawn(4))
    ),
    Call(
        "contract_expression",
        lambda x, y: oe.contract_expression("ij,ik->jk", x.shape, y.shape)(x, y),
        (A, B),
    ),
    Call(
        "contract_expression with constants",
        lambda x, y: oe.contract_expression("ij,ik->jk", x, y.shape, constants=[0])(y),
        (A, B),
    ),
    Call("shared_intermediates", shared, CHAIN),
    Call("contract_path", lambda *xs: oe.contract_path("ij,jk,kl->il", *xs)[0], CHAIN),
]

TABLE = Table("other libraries", "opt_einsum", CALLS, part="opt_einsum")
test_calls = TABLE.test()
