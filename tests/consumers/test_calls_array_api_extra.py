"""Every function of array-api-extra, as a table; test_array_api_extra.py has more about some."""

from __future__ import annotations

import inspect
from typing import Any

import array_api_compat
import numpy as np
import pytest
from consumer_checks import drawn
from consumer_tables import Call, Table

xpx = pytest.importorskip(
    "array_api_extra", reason="array-api-extra is a dependency of the tests only"
)

X, Y, V, W = drawn(2, 3), drawn(2, 3, seed=1), drawn(6), drawn(6, seed=2)
GAPS = np.asarray([[1.0, np.nan, 3.0], [5.0, 4.0, np.nan]])


def namespace(*arrays: Any) -> Any:
    return array_api_compat.array_namespace(*arrays)


CALLS = [
    Call("angle", xpx.angle, (X + 1j * Y,)),
    Call(
        "apply_where",
        lambda x, y: xpx.apply_where(x > y, (x, y), lambda a, b: a * b, lambda a, b: a - b**2),
        (X, Y),
        also=["jax"],
    ),
    Call(
        "argpartition",
        lambda x: namespace(x).take(x, xpx.argpartition(x, 0)[:1]),
        (V,),
        note="the value there",
    ),
    Call("at", lambda x, y: xpx.at(x)[1:3].set(y, copy=True), (V, drawn(2)), also=["jax"]),
    Call("atleast_nd", lambda x: xpx.atleast_nd(x, ndim=3), (X,)),
    Call("broadcast_shapes", lambda x: xpx.broadcast_shapes(x.shape, (2, 1)), (X,)),
    Call("cov", xpx.cov, (X,), also=["jax"]),
    Call("create_diagonal", xpx.create_diagonal, (drawn(3),)),
    Call("default_dtype", lambda x: xpx.default_dtype(namespace(x)) == x.dtype, (X,)),
    Call("deg2rad", xpx.deg2rad, (X,)),
    Call("diag_indices", lambda x: x[xpx.diag_indices(3, xp=namespace(x))], (drawn(3, 3),)),
    Call("expand_dims", lambda x: xpx.expand_dims(x, axis=(0, 2)), (X,)),
    Call("isclose", xpx.isclose, (X, Y)),
    Call("isin", xpx.isin, (X, drawn(3, seed=1))),
    Call("kron", xpx.kron, (X, drawn(2, 2))),
    Call("lazy_apply", lambda x: xpx.lazy_apply(lambda a: a * a, x), (X,)),
    Call("nan_to_num", lambda x: xpx.nan_to_num(x, fill_value=2.0), (GAPS,)),
    Call("nanmax", lambda x: xpx.nanmax(x, axis=1), (GAPS,)),
    Call("nanmean", lambda x: xpx.nanmean(x, axis=0), (GAPS,)),
    Call("nanmin", lambda x: xpx.nanmin(x, axis=1), (GAPS,)),
    Call("nansum", lambda x: xpx.nansum(x, axis=1), (GAPS,)),
    Call("nunique", xpx.nunique, (np.asarray([1.0, 2.0, 2.0]),)),
    Call("one_hot", lambda i: xpx.one_hot(i, 4), (np.asarray([1, 0, 3]),)),
    Call("pad", lambda x: xpx.pad(x, [(1, 0), (0, 2)], constant_values=3.0), (X,)),
    Call("partition", lambda x: xpx.partition(x, 0)[:1], (V,)),
    Call("rad2deg", xpx.rad2deg, (X,)),
    Call("searchsorted", xpx.searchsorted, (np.sort(V), drawn(3, seed=3))),
    Call("setdiff1d", xpx.setdiff1d, (drawn(3), V)),
    Call("sinc", xpx.sinc, (X - 1,), also=["jax"]),
    Call("tril_indices", lambda x: x[xpx.tril_indices(3, xp=namespace(x))], (drawn(3, 3),)),
    Call("triu_indices", lambda x: x[xpx.triu_indices(3, xp=namespace(x))], (drawn(3, 3),)),
    Call("union1d", xpx.union1d, (drawn(3), V)),
    Call("unravel_index", lambda i: xpx.unravel_index(i, (2, 3)), (np.asarray([5, 0, 2]),)),
]

TABLE = Table("array-api-extra", "array_api_extra", CALLS)
test_calls = TABLE.test()


def test_no_function_is_left_out() -> None:
    functions = {
        name
        for name in xpx.__all__
        if callable(getattr(xpx, name)) and not inspect.ismodule(getattr(xpx, name))
    }
    assert functions == {call.name for call in CALLS}


@pytest.mark.sweep
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name)
def test_on_jax_as_on_numpy(call: Call) -> None:
    pytest.importorskip("jax", reason="jax is an optional backend")
    assert TABLE.outcome(call, "jax") == TABLE.outcome(call, "numpy")
