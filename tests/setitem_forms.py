"""`x[key] = value` in both forms, as a statement and as the function `setitem`."""

from __future__ import annotations

from typing import Any

FORMS = ("statement", "function")


def put(xp: Any, form: str, x: Any, key: Any, v: Any) -> Any:
    if form == "function":
        return xp.setitem(x, key, v)
    y = x * 1.0
    y[key] = v
    return y
