"""`x[key] = value` in both forms, as a statement and as the function `setitem`."""

from __future__ import annotations

from typing import Any

import numpy as np
from conftest import values


def leaf(xp: Any, data: Any, dtype: str = "float64") -> Any:
    return xp.asarray(np.array(data, dtype=dtype), requires_grad=True)


def const(xp: Any, data: Any, dtype: str = "float64") -> Any:
    return xp.asarray(np.array(data, dtype=dtype))


def check(t: Any, expected: Any) -> None:
    np.testing.assert_allclose(values(t), expected, rtol=1e-13)


FORMS = ("statement", "function")


def put(xp: Any, form: str, x: Any, key: Any, v: Any) -> Any:
    if form == "function":
        return xp.setitem(x, key, v)
    y = x * 1.0
    y[key] = v
    return y
