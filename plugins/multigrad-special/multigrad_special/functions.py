"""The functions of `mg.special`, typed: `from multigrad_special import functions as special`.

They dispatch on their arguments, as the functions of `multigrad` do. Type checkers read
functions.pyi, which is generated from the table.
"""

from __future__ import annotations

from typing import Any

import multigrad as mg

operations: Any = mg


def __getattr__(name: str) -> Any:
    return getattr(operations.special, name)


def __dir__() -> list[str]:
    return sorted(
        name.removeprefix("special.") for name in mg.registry.OPS if name.startswith("special.")
    )
