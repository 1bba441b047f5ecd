"""Fingerprints of saved arrays, for tools that look for writes which multigrad does not see.

A raw array has no version cell. If the program modifies one that a node has saved, the gradient is
that of the new values.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from ..core.element import library_of
from ..core.graph import Node, check_versions, notes
from ..core.level import Layer
from ..errors import GradientError
from .saved import slot

NOTE = "fingerprints"

UNSEEN = (
    "{}: {} that the operation saved was modified by the program, past multigrad, before the "
    "backward pass. A raw array has no version; use a copy of it, or wrap it, mg.asarray(a), and "
    "write to the Tensor."
)


def take(node: Node) -> None:
    """Note the fingerprints of the arrays that `node` has saved, if their library can write."""
    if not node.unchecked:
        taken = [(_print(x), _shown(x)) for x in _arrays(slot.__get__(node))]
        if taken:
            notes(node)[NOTE] = taken


def modified(node: Node) -> str:
    """Describe the first array that was modified since; "" if none was.

    What a version cell tells is left to the pass, which raises.
    """
    taken: list[tuple[bytes, str]] = getattr(node, "noted", {}).get(NOTE, [])
    if not taken or node.unchecked:
        return ""
    try:
        if node.cells is not None:
            check_versions(node)
    except GradientError:
        return ""
    for x, (before, shown) in zip(_arrays(slot.__get__(node)), taken, strict=False):
        if _print(x) != before:
            return shown
    return ""


def _arrays(saved: Any) -> Iterator[Any]:
    for x in saved or ():
        if type(x) is tuple:
            yield from _arrays(x)
        elif hasattr(x, "dtype") and not isinstance(x, Layer):
            library = library_of(x)
            if library is not None and library.mutable and not isinstance(x, library.fixed):
                yield x


def _print(x: Any) -> bytes:
    library = library_of(x)
    assert library is not None
    host = library.backend.kernel("to_numpy")(library.xp, x)
    return hashlib.blake2b(host.tobytes(), digest_size=16).digest()


def _shown(x: Any) -> str:
    library = library_of(x)
    assert library is not None
    return f"an array [{library.name} {x.dtype} {list(x.shape)}]"
