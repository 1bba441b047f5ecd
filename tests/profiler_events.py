"""A leaf on a backend, the events that a profiler has noted, and the rows of its trace."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
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


def rows(trace: Any) -> dict[int, list[Any]]:
    """The calls of a trace by row. On each they lie inside of each other, or apart."""
    found = defaultdict(list)
    for e in trace["traceEvents"]:
        if e["ph"] == "X":
            found[e["tid"]].append(e)
    for row in found.values():
        ends: list[float] = []
        for e in sorted(row, key=lambda e: (e["ts"], -e["dur"])):
            while ends and ends[-1] <= e["ts"]:
                ends.pop()
            assert not ends or e["ts"] + e["dur"] <= ends[-1] + 1e-3
            ends.append(e["ts"] + e["dur"])
    return found


def exported(prof: Any, folder: Path, **options: Any) -> Any:
    """The trace that a profiler writes."""
    path = folder / "trace.json"
    prof.export_chrome_trace(path, **options)
    return json.loads(path.read_text(encoding="utf-8"))
