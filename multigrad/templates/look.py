"""Detect the capabilities of a library's arrays: `python -m multigrad.templates.look MODULE` tries
them and prints the result, or an error, as JSON.

It runs in a separate process, because the library may crash it.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

from ..backends import own
from ..core.element import DTYPES
from ..plugins import discovery
from ..registry import OPS, fill
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
    if not _holds(lambda: tuple(x.shape) == (3,)):
        return {
            "error": f"the module {name!r} is not a namespace of the Array API standard: "
            "xp.asarray([0.5, 1.0, 2.0]) has no shape (3,). Name the module of the library's "
            "arrays."
        }
    if isinstance(x, own.array_classes()):
        return {
            "error": f"the arrays of {name!r} are multigrad's own Tensors. Name the namespace of "
            "the library whose arrays multigrad should differentiate."
        }
    owner = discovery.backend_of(x)
    scalars = type(total) is not type(x)
    of_total = discovery.backend_of(total) if scalars else None
    # a number of Python, or an array of another library, cannot be an array of this one
    foreign = scalars and (
        type(total) in (bool, int, float, complex) or (of_total is not None and of_total != owner)
    )
    return {
        "owner": owner.name if owner else "",
        "type": f"{type(x).__module__}.{type(x).__qualname__}",
        "module": type(x).__module__,
        "scalars": scalars and not foreign,
        "masks": _holds(lambda: tuple(x.mask.shape) == tuple(x.shape)),
        "lacks": list(_lacking(xp, x)),
        "refused": _refused(xp, x),
        "wrong": list(_wrong(xp, x, total if foreign else None)),
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


# ----- what it lacks, and what it does otherwise -----


def _lacking(xp: Any, x: Any) -> Iterator[str]:
    """What the standard has and the library does not: functions, dtypes, DLPack."""
    fill()
    for op in OPS.values():
        if op.public and op.builtin and not op.beyond:
            prefix, _, name = op.name.rpartition(".")
            space = getattr(xp, prefix, None) if prefix else xp
            if space is not None and not hasattr(space, name):
                yield op.name
    yield from (name for name in ("linalg", "fft") if not hasattr(xp, name))
    yield from (name for name in DTYPES if not hasattr(xp, name))
    if not hasattr(x, "__dlpack__"):
        yield "DLPack: arrays become those of NumPy by `__array__`, or one number after the other"


def _refused(xp: Any, x: Any) -> dict[str, list[str]]:
    """The keywords of the standard that the library's functions refuse, by function."""
    device = getattr(x, "device", None)
    placed: dict[str, Any] = {"dtype": x.dtype, "device": device}
    calls: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
        "asarray": ((x,), placed | {"copy": True}),
        "astype": ((x, x.dtype), {"copy": True, "device": device}),
        "from_dlpack": ((x,), {"device": device, "copy": True}),
        "reshape": ((x, (3, 1)), {"copy": True}),
        "arange": ((3,), placed),
        "linspace": ((0.0, 1.0, 3), placed | {"endpoint": False}),
        "eye": ((2,), placed),
        "full": (((2,), 1.0), placed),
        "full_like": ((x, 1.0), placed),
        **dict.fromkeys(("zeros", "ones", "empty"), (((2,),), placed)),
        **dict.fromkeys(("zeros_like", "ones_like", "empty_like"), ((x,), placed)),
        **dict.fromkeys(("sum", "prod"), ((x,), {"dtype": x.dtype, "keepdims": True})),
    }
    found: dict[str, list[str]] = {}
    for name, (args, keywords) in calls.items():
        function = getattr(xp, name, None)
        if function is None:
            continue
        for keyword, value in keywords.items():
            try:
                function(*args)  # where this raises, the keyword is not the reason
                function(*args, **{keyword: value})
            except TypeError as error:
                if keyword in str(error):
                    found.setdefault(name, []).append(keyword)
            except Exception:  # it takes the keyword; the suite tries the value
                continue
    return found


def _wrong(xp: Any, x: Any, scalar: Any) -> Iterator[str]:
    """What the library does otherwise than the standard says."""
    if scalar is not None:
        kind = type(scalar)
        name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
        yield (
            f"xp.sum returns {name}, which is no array of the library: give functions that return "
            "arrays in Backend(functions=...)"
        )
    if not hasattr(x, "__array_namespace__"):
        yield "its arrays have no __array_namespace__"
    if hasattr(xp, "from_dlpack") and hasattr(x, "__dlpack__"):
        try:
            xp.from_dlpack(x)
        except Exception as error:  # a library may raise anything
            yield f"xp.from_dlpack of its own array raises {type(error).__name__}: {error}"
    if not hasattr(xp, "__array_namespace_info__"):
        yield "the namespace has no __array_namespace_info__, which says what the library can do"
    compat = f"array_api_compat.{xp.__name__}"
    if not xp.__name__.startswith("array_api_compat.") and _holds(
        lambda: hasattr(importlib.import_module(compat), "asarray")
    ):
        yield f"{compat} has the standard's names: --module {compat}"


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
