"""Functions written as text from a declaration, whose source tracebacks and debuggers can show."""

from __future__ import annotations

import linecache
import weakref
from collections.abc import Iterable, Mapping
from itertools import count
from types import CodeType
from typing import Any

from ..provided import wanted
from ..registry import Op

_number = count(1).__next__

_used: tuple[Any, ...] = (all, any, float, hasattr, int, isinstance, len, list, map, max, range)
BUILTINS: dict[str, Any] = {f"_{x.__name__}": x for x in (*_used, tuple, type, zip)}
"""Builtins as texts name them, since parameters may have their names."""


@wanted
def documentation(op: Op) -> str:
    """The docstring of an operation.

    Provided by namespace.py.
    """
    raise NotImplementedError


def run(text: str, name: str, scope: dict[str, Any]) -> None:
    """Run `text`, which defines functions, in `scope`.

    `linecache` has its source as `<name number>` while the code of the first of its functions is
    alive, so replaced declarations leave no text behind.
    """
    file = f"<{name} {_number()}>"
    code = compile(text, file, "exec")
    exec(code, scope)
    # without a time, so that linecache does not look for it on disk
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    first = next(constant for constant in code.co_consts if isinstance(constant, CodeType))
    weakref.finalize(first, linecache.cache.pop, file, None).atexit = False


def tuple_text(names: Iterable[str]) -> str:
    """The text of a tuple."""
    return f"({''.join(f'{n}, ' for n in names)})"


def call_text(op: Op, function: str, local: Mapping[str, str]) -> str:
    """The text of a call. `local`: the expressions for parameters that are not their names."""
    parts = []
    for p in op.signature.parameters.values():
        text = local.get(p.name, p.name)
        parts.append(
            f"*{text}"
            if p.kind is p.VAR_POSITIONAL
            else f"{p.name}={text}"
            if p.kind is p.KEYWORD_ONLY
            else text
        )
    return f"{function}({', '.join(parts)})"
