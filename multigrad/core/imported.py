"""Whether the program has imported a library since a Tensor was last made."""

from __future__ import annotations

from ..provided import wanted

seen = [0]
"""How many modules had been imported when clients were last looked for among them."""


def looked(modules: int) -> None:
    """Clients were looked for among so many modules; -1 has them looked for again."""
    seen[0] = modules


@wanted
def register_clients() -> None:
    """Tell the libraries that the program has imported of Tensors, where they want to be told.
    (clients/)
    """
