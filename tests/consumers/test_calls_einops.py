"""Every function of einops, as a table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from consumer_checks import drawn
from consumer_tables import Call, Table

einops = pytest.importorskip("einops", reason="einops is a dependency of the tests only")

A, B, CUBE = drawn(3, 4), drawn(3, 4, seed=1), drawn(2, 3, 4)


def packed(x: Any, y: Any) -> Any:
    whole, shapes = einops.pack([x, y], "a *")
    return whole, einops.unpack(whole * 2, shapes, "a *")


CALLS = [
    Call("rearrange", lambda x: einops.rearrange(x, "a b c -> (c a) b"), (CUBE,), also=["jax"]),
    Call("rearrange into more axes", lambda x: einops.rearrange(x, "a (b c) -> c a b", b=2), (A,)),
    Call("rearrange of a list", lambda x, y: einops.rearrange([x, y], "n a b -> a n b"), (A, B)),
    *(
        Call(
            f"reduce {how}",
            lambda x, how=how: einops.reduce(x, "a (b k) -> b 1 a", how, k=2),
            (A,),
            also=["jax"] * (how == "mean"),
        )
        for how in ("mean", "sum", "max", "min", "prod")
    ),
    Call(
        "reduce by a function",
        lambda x: einops.reduce(x, "a b -> b", lambda t, axes: (t * t).sum(axis=axes)),
        (A,),
    ),
    Call("reduce any", lambda x: einops.reduce(x > 1, "a b -> b", "any"), (A,)),
    Call("repeat", lambda x: einops.repeat(x, "a b -> a k b", k=2), (A,)),
    Call("einsum", lambda x, y: einops.einsum(x, y, "a b, a c -> b c"), (A, B), also=["jax"]),
    Call("pack", packed, (A, B), note="and `unpack`"),
    Call("parse_shape", lambda x: einops.parse_shape(x, "a b"), (A,)),
    Call("asnumpy", einops.asnumpy, (A,), raw=np.asarray),
]

TABLE = Table("other libraries", "einops", CALLS, part="einops")
test_calls = TABLE.test()
