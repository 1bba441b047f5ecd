"""Whether the program has imported a library since a Tensor was last made."""

from __future__ import annotations

from ..provided import wanted

seen = [0]
"""The number of imported modules when clients were last looked for among them."""


def looked(modules: int) -> None:
    """Note that clients were looked for among this many modules; -1 causes another search."""
    seen[0] = modules


@wanted
def register_clients() -> None:
    """Register Tensors with the imported libraries that have a client module.

    Provided by clients/.
    """
