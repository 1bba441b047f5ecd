"""Libraries that take the values of a Tensor, as a table: tables, plots, comparisons, compiled
code. What they cannot differentiate raises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from consumer_checks import drawn
from consumer_tables import NUMPY, Call, Reason, Table

pytest.importorskip("matplotlib", reason="matplotlib is a dependency of the tests only").use("Agg")
dask = pytest.importorskip("dask.array", reason="dask is a dependency of the tests only")
numba = pytest.importorskip("numba", reason="numba is a dependency of the tests only")
pd = pytest.importorskip("pandas", reason="pandas comes with xarray")

import array_api_compat  # noqa: E402
import matplotlib.pyplot as plt  # noqa: E402

A, V, W = drawn(3, 4), drawn(6), drawn(6, seed=1)


def plotted(name: str, *places: Any) -> Callable[..., Any]:
    """Draws with a function of pyplot; what it drew is no array."""

    def draw(*arrays: Any) -> str:
        try:
            getattr(plt, name)(*places, *arrays)
        finally:
            plt.close("all")
        return "drawn"

    return draw


@numba.njit
def compiled(x: Any) -> Any:
    return x * 2


def compat(x: Any, y: Any) -> Any:
    xp = array_api_compat.array_namespace(x, y)
    return xp.sum(xp.where(x > y, x, y) ** 2) / array_api_compat.size(x)


CALLS = [
    Call("array-api-compat", compat, (V, W)),
    Call(
        "dask.array.from_array",
        lambda x: (dask.from_array(x, asarray=False, chunks=3) * 2 + 1).compute(),
        (V,),
        note="with `asarray=False`",
    ),
    Call(
        "functools and operator",
        lambda x: sorted(x)[0] + max(x) * sum(x),
        (V,),
        note="Python's own `sum` `max` `sorted`",
    ),
    Call("pandas.Series", lambda x: pd.Series(x).to_numpy(), (V,)),
    Call("pandas.DataFrame", lambda x: pd.DataFrame(x).mean().to_numpy(), (A,)),
    Call("matplotlib plot", plotted("plot", range(6)), (V,)),
    Call("matplotlib scatter", plotted("scatter"), (V, W)),
    Call("matplotlib imshow", plotted("imshow"), (A,)),
    Call("np.testing.assert_allclose", lambda x: np.testing.assert_allclose(x, x + 1e-9), (V,)),
    Call("np.testing.assert_array_equal", lambda x: np.testing.assert_array_equal(x, x), (V,)),
    Call("numba.njit", compiled, (V,)),
]
REASONS = {
    "compiled": Reason(
        numba.core.errors.TypingError,
        "non-precise type pyobject",
        "is compiled by numba for NumPy arrays only",
    ),
}

TABLE = Table(
    "other libraries",
    "ways_out",
    CALLS,
    part="libraries that take the values",
    settings={"numpy": NUMPY},
    reasons=REASONS,
)
test_calls = TABLE.test()
