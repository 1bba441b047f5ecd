"""Functions that are written as text from a declaration: compiled so that tracebacks and debuggers
show their source.
"""

from __future__ import annotations

import linecache
import weakref
from itertools import count
from types import CodeType
from typing import Any

from ..provided import wanted
from ..registry import Op

_number = count(1).__next__


@wanted
def documentation(op: Op) -> str:
    """The docstring of an operation. (namespace.py)"""
    raise NotImplementedError


def run(text: str, name: str, scope: dict[str, Any]) -> None:
    """Run `text`, which defines functions, in `scope`.

    Its source is known to `linecache` as `<name number>`, as long as the code of the first of its
    functions lives: what a new declaration replaces leaves nothing behind.
    """
    file = f"<{name} {_number()}>"
    code = compile(text, file, "exec")
    exec(code, scope)
    # without a time, which would have it looked for on disk
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    first = next(constant for constant in code.co_consts if isinstance(constant, CodeType))
    weakref.finalize(first, linecache.cache.pop, file, None).atexit = False
