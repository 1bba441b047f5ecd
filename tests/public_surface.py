"""The lines of tools/surface.txt, and the objects that they name."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import multigrad as mg

PATH = Path(__file__).parents[1] / "tools" / "surface.txt"


class Line(NamedTuple):
    """A name, what it is, its signature or what else the line says."""

    name: str
    kind: str
    says: str


LINES = [
    Line(*(line.split("  ", 2) + ["", ""])[:3])
    for line in PATH.read_text().splitlines()[1:]
    if line
]
MODULES = {line.name for line in LINES if line.kind == "module"}


def of_python() -> list[Line]:
    """The lines about names that a program imports, of the distributions that are here."""
    return [line for line in LINES if " " not in line.name and is_here(line.name)]


def is_here(name: str) -> bool:
    """Whether the distribution of a name is installed, and the library that it needs."""
    needs = "scipy" if name.startswith(("multigrad_scipy", "multigrad_autograd.scipy")) else "numpy"
    return find_spec(name.partition(".")[0]) is not None and find_spec(needs) is not None


PROTOCOLS = {"Namespace": "", "Linalg": "linalg.", "FFT": "fft."}
"""The classes of `multigrad.typing` whose members are those of a namespace, at its prefix."""


def found(name: str) -> Any:
    """The object of a name. A module that a function of the same name hides is imported."""
    parts = name.split(".")
    if name.startswith("multigrad.typing.") and parts[2] in PROTOCOLS and parts[3:]:
        return attrgetter(f"{PROTOCOLS[parts[2]]}{parts[3]}")(mg.namespace("numpy"))
    at = len(parts)
    while ".".join(parts[:at]) not in MODULES:
        at -= 1
    module = importlib.import_module(".".join(parts[:at]))
    return attrgetter(".".join(parts[at:]))(module) if parts[at:] else module
