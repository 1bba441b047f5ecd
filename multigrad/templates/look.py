"""Detect the capabilities of a library's arrays: `python -m multigrad.templates.look MODULE` tries
them and prints the result, or an error, as JSON.

It runs in a separate process, because the library may crash it.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from typing import Any

from ..backends import discovery
from . import FOUND


class _Foreign:
    """An operand of an unknown type with a reflected operator."""

    __array_ufunc__ = None

    def __rmul__(self, other: Any) -> str:
        return "deferred"


def look(name: str) -> dict[str, Any]:
    """The properties of the module of that name, or {"error": text} if its arrays cannot have a
    backend.
    """
    try:
        xp = importlib.import_module(name)
    except Exception as error:  # an import may raise anything
        return {
            "error": f"the module {name!r} cannot be imported here: {type(error).__name__}: "
            f"{error}. Install the library first."
        }
    try:
        x = xp.asarray([0.5, 1.0, 2.0])
        total = xp.sum(x)
    except Exception as error:
        return {
            "error": f"the module {name!r} is not a namespace of the Array API standard: "
            f"xp.sum(xp.asarray([0.5, 1.0, 2.0])) raises {type(error).__name__}: "
            f"{error}. Name the module that has these functions."
        }
    owner = discovery.backend_of(x)
    return {
        "owner": owner.name if owner else "",
        "type": f"{type(x).__module__}.{type(x).__qualname__}",
        "module": type(x).__module__,
        "scalars": type(total) is not type(x),
        "masks": _holds(lambda: tuple(x.mask.shape) == tuple(x.shape)),
        "capabilities": {
            "mutable": _holds(lambda: _is_seen(xp)),
            "defers": _holds(lambda: x * _Foreign() == "deferred"),
            "complex": _holds(lambda: xp.isdtype(xp.asarray([1j]).dtype, "complex floating")),
            "data_dependent": _holds(
                lambda: tuple(xp.nonzero(xp.asarray([0.0, 1.0]))[0].shape) == (1,)
            ),
            "boolean_indexing": _holds(lambda: tuple(x[x > 0.7].shape) == (2,)),
            "negative_steps": _holds(lambda: float(x[::-1][0]) == 2.0),
            "lazy": hasattr(x, "compute"),
        },
    }


def _is_seen(xp: Any) -> bool:
    """Whether a write to an array is visible in a view of it."""
    x = xp.asarray([1.0, 2.0])
    view = x[:1]
    x[0] = 5.0
    return float(view[0]) == 5.0


def _holds(test: Callable[[], bool]) -> bool:
    try:
        return bool(test())
    except Exception:  # a library may raise any exception for an unsupported operation
        return False


if __name__ == "__main__":
    print(f"\n{FOUND}{json.dumps(look(sys.argv[1]))}")
