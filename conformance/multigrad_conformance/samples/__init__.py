"""The samples of every operation: the standard's from this package, the others from plugins."""

from __future__ import annotations

from functools import cache
from pkgutil import resolve_name
from typing import Any

from multigrad import extend
from multigrad.registry import OPS

from ..reading import read
from ..sample import Draw, Sample
from . import (
    beyond_arrays,
    beyond_numbers,
    beyond_running,
    creation,
    decompositions,
    elementwise,
    fft,
    linalg,
    manipulation,
    statistical,
    views,
)


@cache
def generators() -> dict[str, Any]:
    """Return the generator of samples of each operation that has one."""
    table: dict[str, Any] = {}
    for chapter in (
        elementwise,
        statistical,
        manipulation,
        creation,
        fft,
        decompositions,
        linalg,
        views,
        beyond_numbers,
        beyond_arrays,
        beyond_running,
    ):
        table |= chapter.samples()
    for name, target in extend.samples().items():
        table.setdefault(name, target)
    return {name: target for name, target in table.items() if name in OPS}


def samples_of(name: str) -> tuple[Sample, ...]:
    """Return the usable samples of an operation with `short` decided; none without a generator."""
    return _found(name)[0]


def trouble_of(name: str) -> str:
    """Return why some samples of an operation cannot be used, "" if all can."""
    return "; ".join(_found(name)[1])


@cache
def _found(name: str) -> tuple[tuple[Sample, ...], tuple[str, ...]]:
    target = generators().get(name)
    if target is None:
        return (), ()

    def make() -> Any:
        return (resolve_name(target) if isinstance(target, str) else target)(Draw(name))

    samples, wrong = read(OPS[name], f"the generator {target!r}", make)
    seen: set[bool] = set()
    for s in samples:
        if s.short is None:
            s.short = s.complex not in seen or hasattr(s, "gradients")
        seen.add(s.complex)
    return samples, wrong
