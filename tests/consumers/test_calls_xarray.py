"""xarray's functions and methods that have a derivative, as a table: a Tensor is the data of the
DataArrays.

The calls are those of xarray's reference, section by section: construction, arithmetic,
aggregation, missing values, indexing, grouping, computation, reshaping, combination, and the ways
out. test_xarray.py has more about some of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from consumer_checks import drawn
from consumer_tables import JAX, NUMPY, Call, Reason, Table

xr = pytest.importorskip("xarray", reason="xarray is a dependency of the tests only")
pd = pytest.importorskip("pandas", reason="pandas comes with xarray")

A, B, V, W = drawn(3, 4), drawn(3, 4, seed=1), drawn(6), drawn(6, seed=1)
TIMES = pd.date_range("2000-01-01", periods=6)


def array(x: Any) -> Any:
    """A DataArray with the dimensions x and y, of which x has coordinates."""
    return xr.DataArray(x, dims=("x", "y")[: x.ndim], coords={"x": np.arange(float(x.shape[0]))})


def data(result: Any) -> Any:
    """The arrays in what xarray returned."""
    if isinstance(result, (tuple, list)):
        return [data(r) for r in result]
    if isinstance(result, xr.DataTree):
        return data(result.to_dataset())
    if isinstance(result, xr.Dataset):
        return [data(v) for v in result.data_vars.values()]
    return result.data if isinstance(result, (xr.DataArray, xr.Variable)) else result


def of(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` of DataArrays, as a function of the arrays in them."""
    return lambda *arrays: data(function(*(array(x) for x in arrays)))


def method(name: str, *args: Any, **options: Any) -> Callable[..., Any]:
    return of(lambda x: getattr(x, name)(*args, **options))


def dataset(x: Any, y: Any) -> Any:
    return xr.Dataset({"a": array(x), "b": array(y)})


def gaps(x: Any) -> Any:
    """Without what is at x = 1."""
    return x.where(x.x != 1)


def labelled(x: Any) -> Any:
    return x.assign_coords(k=("x", np.asarray([0, 1, 0, 1, 1, 0])))


def in_time(x: Any) -> Any:
    return xr.DataArray(x, dims="t", coords={"t": TIMES})


def written(x: Any, y: Any) -> Any:
    z = x.copy()
    z[{"x": 0}] = y.isel(x=1)
    return z


def summed(x: Any, y: Any) -> Any:
    z = x.copy()
    z += y
    return z


CONSTRUCTION = [
    Call("DataArray", of(lambda x: x), (A,)),
    Call(
        "DataArray.coords",
        lambda x, w: data((xr.DataArray(x, dims="x", coords={"w": ("x", w)}) * 2).w),
        (V, W),
        by=[1],
        note="a coordinate",
    ),
    Call("Variable", lambda x: data(xr.Variable(("x", "y"), x) * 2), (A,)),
    Call("Dataset", lambda x, y: data(dataset(x, y) * 2), (A, B)),
    Call("DataTree", lambda x, y: data(xr.DataTree(dataset(x, y)).mean("x")), (A, B)),
    Call("DataArray.copy", method("copy"), (A,)),
]
ARITHMETIC = [
    Call("arithmetic", of(lambda x, y: (2 - x) * y / (x + 1) ** 2 - abs(-x)), (A, B), also=["jax"]),
    Call(
        "arithmetic by dimension names",
        lambda x, v: data(array(x) * xr.DataArray(v, dims="y")),
        (A, drawn(4)),
    ),
    Call("DataArray @", of(lambda x, y: x @ y), (A, B)),
    Call("DataArray +=", of(summed), (A, B)),
    Call("np.sin", of(np.sin), (A,)),
    Call("np.maximum", of(np.maximum), (A, B)),
    Call("np.sum", of(np.sum), (A,)),
    Call("xr.ufuncs.tanh", of(xr.ufuncs.tanh), (A,)),
    Call("DataArray.clip", method("clip", 0.5, 1.2), (A,)),
    Call(
        "DataArray.conj",
        of(lambda x: (x.conj(), x.real, x.imag)),
        (A + 1j * B,),
        note="and `real` `imag`",
    ),
]
AGGREGATION = [
    *(
        Call(f"DataArray.{name}", method(name, "x"), (A,), also=["jax"] * (name == "mean"))
        for name in (
            "sum",
            "mean",
            "std",
            "var",
            "median",
            "prod",
            "min",
            "max",
            "cumsum",
            "cumprod",
        )
    ),
    Call("DataArray.mean of gaps", of(lambda x: gaps(x).mean("x")), (A,)),
    Call("DataArray.var with skipna=False", method("var", "x", skipna=False), (A,)),
    Call("DataArray.quantile", method("quantile", [0.3, 0.6], "x"), (A,)),
    Call("DataArray.reduce", method("reduce", np.mean, "x"), (A,)),
    Call("DataArray.argmax", method("argmax", "x"), (A,)),
    Call("DataArray.count", of(lambda x: gaps(x).count("x")), (A,)),
]
MISSING = [
    Call("DataArray.where", of(lambda x: x.where(x > 1, 0.0)), (A,)),
    Call("DataArray.fillna", of(lambda x, y: gaps(x).fillna(y)), (A, B)),
    Call("DataArray.dropna", of(lambda x: gaps(x).dropna("x")), (A,)),
    Call("DataArray.combine_first", of(lambda x, y: gaps(x).combine_first(y)), (A, B)),
    Call("DataArray.interpolate_na", of(lambda x: gaps(x).interpolate_na("x")), (V,)),
]
INDEXING = [
    Call("DataArray.__getitem__", of(lambda x: x[x.x > 0, 1:]), (A,)),
    Call("DataArray.__setitem__", of(written), (A, B)),
    Call("DataArray.loc", of(lambda x: x.loc[{"x": [2.0, 0.0]}]), (A,)),
    Call("DataArray.isel", method("isel", x=[0, 2], y=[1, 3]), (A,)),
    Call(
        "DataArray.isel by arrays",
        method("isel", x=xr.DataArray([0, 1, 1], dims="p"), y=xr.DataArray([1, 2, 2], dims="p")),
        (A,),
    ),
    Call("DataArray.sel", method("sel", x=1.2, method="nearest"), (A,)),
    Call(
        "DataArray.head",
        of(lambda x: (x.head(x=2), x.tail(x=2), x.thin(x=2))),
        (A,),
        note="and `tail` `thin`",
    ),
    Call("DataArray.reindex", method("reindex", x=[0.0, 1.0, 9.0], fill_value=0.0), (A,)),
    Call("DataArray.interp", method("interp", x=[0.5, 1.5]), (A,)),
]
GROUPING = [
    *(
        Call(
            f"DataArray.groupby.{name}",
            of(lambda x, name=name: getattr(labelled(x).groupby("k"), name)()),
            (V,),
        )
        for name in ("mean", "max", "std")
    ),
    Call(
        "DataArray.groupby.map",
        of(lambda x: labelled(x).groupby("k").map(lambda part: part - part.mean())),
        (V,),
    ),
    Call(
        "DataArray.groupby arithmetic",
        of(lambda x: labelled(x).groupby("k") - labelled(x).groupby("k").mean()),
        (V,),
    ),
    Call("DataArray.resample", lambda x: data(in_time(x).resample(t="2D").mean()), (V,)),
    Call(
        "DataArray.resample.interpolate",
        lambda x: data(in_time(x).resample(t="12h").interpolate("linear")),
        (V,),
    ),
    *(
        Call(
            f"DataArray.rolling.{name}",
            of(lambda x, name=name: getattr(x.rolling(x=3, min_periods=2), name)()[2:]),
            (V,),
        )
        for name in ("mean", "sum", "std", "max")
    ),
    Call("DataArray.cumulative", of(lambda x: x.cumulative("x").sum()), (V,)),
    Call("DataArray.coarsen", of(lambda x: x.coarsen(x=2).mean()), (V,)),
    *(
        Call(
            f"DataArray.weighted.{name}",
            of(lambda x, w, name=name: getattr(x.weighted(w), name)("x")),
            (V, W),
        )
        for name in ("mean", "std")
    ),
    Call(
        "DataArray.weighted.quantile",
        of(lambda x: x.weighted(array(W)).quantile(0.4, dim="x")),
        (V,),
    ),
]
COMPUTATION = [
    Call(
        "apply_ufunc",
        of(
            lambda x, y: xr.apply_ufunc(
                lambda a, b: (a * b).sum(axis=-1), x, y, input_core_dims=[["y"], ["y"]]
            )
        ),
        (A, B),
    ),
    Call("dot", of(lambda x, y: xr.dot(x, y, dim="x")), (A, B), also=["jax"]),
    Call("cov", of(lambda x, y: xr.cov(x, y, "x")), (A, B)),
    Call("corr", of(lambda x, y: xr.corr(x, y, "x")), (A, B)),
    Call(
        "cross",
        lambda x, y: data(xr.cross(xr.DataArray(x, dims="x"), xr.DataArray(y, dims="x"), dim="x")),
        (drawn(3), drawn(3, seed=1)),
    ),
    Call(
        "polyval",
        lambda x, c: data(
            xr.polyval(
                xr.DataArray(x, dims="x"),
                xr.DataArray(c, dims="degree", coords={"degree": [0, 1, 2]}),
            )
        ),
        (V, drawn(3)),
    ),
    Call("DataArray.diff", method("diff", "x", 2), (A,)),
    Call("DataArray.differentiate", method("differentiate", "x"), (A,)),
    Call("DataArray.integrate", method("integrate", "x"), (A,)),
    Call("DataArray.cumulative_integrate", method("cumulative_integrate", "x"), (A,)),
    Call("DataArray.polyfit", method("polyfit", "x", 1), (V,)),
    Call("DataArray.curvefit", of(lambda x: x.curvefit("x", lambda t, a, b: a * t + b)), (V,)),
]
RESHAPING = [
    Call("DataArray.transpose", method("transpose", "y", "x"), (A,)),
    Call(
        "DataArray.stack",
        of(lambda x: x.assign_coords(y=range(4)).stack(z=("x", "y")).unstack("z")),
        (A,),
        note="and `unstack`",
    ),
    Call("DataArray.shift", method("shift", x=1, fill_value=0.0), (A,)),
    Call("DataArray.roll", method("roll", x=1), (A,)),
    Call("DataArray.pad", method("pad", x=(1, 2), mode="reflect"), (A,)),
    Call("DataArray.sortby", method("sortby", "x", ascending=False), (A,)),
    Call("Dataset.to_dataarray", lambda x, y: data(dataset(x, y).to_dataarray()), (A, B)),
]
COMBINATION = [
    Call("align", of(lambda x, y: xr.align(x, y[:2], join="outer", fill_value=0.0)), (A, B)),
    Call("broadcast", lambda x, v: data(xr.broadcast(array(x), xr.DataArray(v, dims="z"))), (A, V)),
    Call("concat", of(lambda x, y: xr.concat([x, y], "x")), (A, B)),
    Call("merge", of(lambda x, y: xr.merge([x.rename("a"), y.rename("b")])), (A, B)),
    Call("xr.where", of(lambda x, y: xr.where(x > 1, x, y)), (A, B)),
]
WAYS_OUT = [
    Call("DataArray.to_numpy", method("to_numpy"), (A,), note="and `values`"),
    Call("DataArray.to_pandas", of(lambda x: x.to_pandas().to_numpy()), (A,)),
]

CALLS = [
    *CONSTRUCTION,
    *ARITHMETIC,
    *AGGREGATION,
    *MISSING,
    *INDEXING,
    *GROUPING,
    *COMPUTATION,
    *RESHAPING,
    *COMBINATION,
    *WAYS_OUT,
]
REASONS = {
    "vectorized": Reason(
        TypeError,
        "Vectorized indexing is not supported",
        "indexes with several arrays at once, which xarray supports only for NumPy arrays",
    )
}
TABLE = Table("xarray", "xarray", CALLS, settings={"numpy": NUMPY, "jax": JAX}, reasons=REASONS)
test_calls = TABLE.test()
