"""Fingerprints of saved arrays, for tools that look for writes which multigrad does not see.

A raw array has no version cell. If the program modifies one that a node has saved, the gradient is
that of the new values.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..core.element import Library, library_of
from ..core.graph import AccumulateGrad, Node, notes
from ..core.level import Layer
from ..core.tensor import Tensor
from ..dispatch.codegen import positions
from ..errors import GradientError
from .saved import check_versions, stored

NOTE = "fingerprints"

UNSEEN = (
    "{}: {} that the operation saved was modified by the program, past multigrad, before the "
    "backward pass. A raw array has no version; use a copy of it, or wrap it, mg.asarray(a), and "
    "write to the Tensor."
)


class Fingerprint(NamedTuple):
    """The fingerprint of a saved array, with its place among the values and in a tuple of them."""

    place: int
    part: int | None
    digest: bytes


def take(node: Node, operands: tuple[Any, ...]) -> bool:
    """Note fingerprints of the raw arrays that `node` saved and that can be written; if any."""
    if all(isinstance(x, Tensor) and x._elem.run is None for x in operands):
        return False
    saved = stored(node)
    prints = [
        Fingerprint(place, part, _digest(library, x))
        for place, part, x, library in (_raw(node, saved, operands) if saved else ())
    ]
    if prints:
        notes(node)[NOTE] = prints
    return bool(prints)


def modified(node: Node) -> str:
    """Describe the first array modified since; "" if there is none, or the pass will raise."""
    prints: list[Fingerprint] = getattr(node, "noted", {}).get(NOTE, [])
    saved: Any = stored(node) if prints else None
    for place, part, before in prints if saved is not None else ():
        x = saved[place] if part is None else saved[place][part]
        library = library_of(x)
        if library is not None and _digest(library, x) != before:
            try:
                if node.cells is not None:
                    check_versions(node)
            except GradientError:
                return ""
            return f"an array [{library.name} {x.dtype} {list(x.shape)}]"
    return ""


def _raw(
    node: Node, saved: tuple[Any, ...], operands: tuple[Any, ...]
) -> Iterator[tuple[int, int | None, Any, Library]]:
    """The saved arrays that the program may have as raw arrays: operands, and arguments."""
    position = positions(node.rule.op)
    for i, (name, value) in enumerate(zip(node.rule.plan, saved, strict=True)):
        of: Any = operands[position[name]] if name in position else None
        several = type(value) is tuple and isinstance(of, tuple | list) and len(of) == len(value)
        for part, x, operand in (
            ((j, *pair) for j, pair in enumerate(zip(value, of, strict=True)))
            if several
            else ((None, value, of),)
        ):
            if not hasattr(x, "dtype") or isinstance(x, Layer) or not _is_raw(operand):
                continue
            library = library_of(x)
            if library is not None and not isinstance(x, library.fixed):
                yield i, part, x, library


def _is_raw(operand: Any) -> bool:
    """Whether an operand is a raw array, or wraps one as an argument of a transformation."""
    return hasattr(operand, "dtype") and (
        not isinstance(operand, Layer)
        or (
            isinstance(operand, Tensor)
            and operand._elem.run is not None
            and type(operand._node) is AccumulateGrad
        )
    )


def _digest(library: Library, x: Any) -> bytes:
    host = library.backend.kernel("to_numpy")(library.xp, x)
    return hashlib.blake2b(host.tobytes(), digest_size=16).digest()
