"""A leaf on a backend, and the events that a profiler has noted."""

from __future__ import annotations

from typing import Any

import multigrad as mg


def leaf(backend: str, *values: float) -> mg.Tensor:
    return mg.tensor(list(values), dtype="float64", backend=backend, requires_grad=True)


def names(prof: Any, depth: bool = False) -> list[Any]:
    """The names in order; with `depth`, how far inside each is."""

    def level(e: Any) -> int:
        return 0 if e.cpu_parent is None else 1 + level(e.cpu_parent)

    return [(level(e), e.name) if depth else e.name for e in prof.function_events]


def event(prof: Any, name: str) -> Any:
    found = [e for e in prof.function_events if e.name == name]
    assert len(found) == 1, (name, names(prof))
    return found[0]
