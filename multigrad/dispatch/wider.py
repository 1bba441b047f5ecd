"""Arguments that NumPy's functions take beyond the standard.

Examples are `std(x, ddof=1)`, `any(x, out=None)`, `where(c)`, `take(x, [0, 2])`. Such a call means
NumPy's function, which the protocols carry out. The first lines of the generated function detect
it. A `strict` backend has the standard's functions only.
"""

from __future__ import annotations

from collections.abc import Iterator
from inspect import Parameter
from typing import Any

from ..errors import nearest
from ..provided import wanted
from ..registry import Op


@wanted
def as_numpy(op: Op, arguments: dict[str, Any], more: dict[str, Any]) -> Any:
    """Carry out NumPy's function of the same name, with its arguments and keywords.

    Provided by protocols/.
    """


def takes_more(op: Op) -> bool:
    """Whether the generated function of an operation accepts any keyword.

    It then carries out calls with NumPy's keywords, and its error for a misspelt keyword suggests
    the correct name. If a setting is positional-only, Python's own error is better: for
    `astype(x, dtype=d)`, the error of such a function would say that dtype is missing.
    """
    parameters = op.signature.parameters
    named = any(
        p.kind in (Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
        for p in parameters.values()
    )
    fixed = any(
        p.kind is Parameter.POSITIONAL_ONLY and op.roles[n] == "plain"
        for n, p in parameters.items()
    )
    return op.about.numpy_keywords or (op.public and named and not fixed)


def unexpected(op: Op, more: dict[str, Any]) -> TypeError:
    """The error for unknown keywords of an operation: Python's words, and a suggested name."""
    name = next(iter(more))
    near = nearest(
        name,
        [n for n, p in op.signature.parameters.items() if p.kind is not Parameter.POSITIONAL_ONLY],
    )
    return TypeError(
        f"{op.name}() got an unexpected keyword argument "
        f"{name!r}.{near or f' It takes {op.name}{op.signature}'}"
    )


def lines(op: Op) -> Iterator[str]:
    """The text that detects a call of NumPy's function, or with unknown keywords."""
    tests = ["_more"] * op.about.numpy_keywords
    tests += [f"{n} is None" for n in op.about.omissible]
    tests += [f"isinstance({n}, (int, list, tuple))" for n in op.about.listable]
    if tests:
        arguments = ", ".join(f"{n!r}: {n}" for n in op.roles)
        yield f"    if {' or '.join(tests)}:"
        yield (
            f"        return _as_numpy(_op, {{{arguments}}}, "
            f"{'_more' if op.about.numpy_keywords else '{}'})"
        )
    if not op.about.numpy_keywords and takes_more(op):
        yield "    if _more:"
        yield "        raise _unexpected(_op, _more)"
