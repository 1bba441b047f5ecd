"""The initial certificate, before any result: the planned tests and the facts about the run."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

import multigrad
from multigrad import extend
from multigrad.registry import OPS

from . import __version__, cells
from .certificate import FORMAT, Results
from .problem import Problem
from .sample import leaves
from .samples import samples_of
from .target import DTYPES, Target


def document(
    backends: Sequence[str], level: str, left_out: dict[str, str], arguments: Sequence[str] = ()
) -> Results:
    """Return the certificate of a run that is about to begin.

    `arguments` are pytest's arguments. The certificate stores those that select tests.
    """
    extend.load_plugins()
    by_name = {name: _backend(name, level, arguments) for name in backends}
    return {
        "format": FORMAT,
        "multigrad": multigrad.__version__,
        "samples": level,
        "operations": {name: {"chapter": op.chapter, "kind": op.kind} for name, op in OPS.items()},
        "left out": left_out,
        "problems": {},
        "backends": by_name,
    }


def _backend(name: str, level: str, arguments: Sequence[str]) -> Results:
    planned = cells.selected(name, level)
    return {
        "lacks": _lacks(name),
        "tests": {},
        "not run": sorted(cell.id for cell in planned),
        "dtypes": _dtypes(Target(name), planned),
        "runs": [_run(name, level) | ({"selected by": " ".join(arguments)} if arguments else {})],
    }


def _lacks(name: str) -> dict[str, str]:
    """Return what a library cannot do, with the reasons, by capability, operation or test."""
    backend = extend.backend(name)
    return backend.lacks() | dict(backend.capabilities.missing)


def _run(name: str, level: str) -> dict[str, Any]:
    """Return the versions, the machine and the time."""
    listed = next(b for b in multigrad.backends() if b.name == name)
    target = Target(name)
    devices = _each(lambda: target.kernel("devices")(target.backend.namespace))
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "samples": level,
        "multigrad": multigrad.__version__,
        "suite": __version__,
        "library": f"{listed.module} {listed.library_version}".strip(),
        "plugin": f"{listed.distribution} {listed.version}".strip(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": platform.platform(),
        "device": _default(target) or ", ".join(devices[:1]),
        "devices": ", ".join(devices),
        "precision": "float64" if target.has_double else "float32",
    }


def _default(target: Target) -> str:
    """Return the default device, "" if the library does not report it."""
    with contextlib.suppress(Exception):  # libraries without inspection raise different errors
        device = target.xp.__array_namespace_info__().default_device()
        return "" if device is None else str(device)
    return ""


def _each(ask: Any) -> list[str]:
    with contextlib.suppress(Exception):
        return [str(x) for x in ask()]
    return []


# ----- the dtype that a test is about -----


def _dtypes(target: Target, planned: Sequence[cells.Cell]) -> dict[str, dict[str, str]]:
    """Return {operation: {label: dtype}}.

    The label of a test is the part of its id after the check.
    """
    samples = {
        name: {s.label: s for s in samples_of(name)}
        for name in {cell.operation for cell in planned} & set(OPS)
    }
    wide = {
        name: {label: _dtype(name, s) for label, s in labelled.items()}
        for name, labelled in samples.items()
    }
    narrow = Target(target.name, single=True)
    table: dict[str, dict[str, str]] = {}
    for cell in planned:
        of_samples = wide.get(cell.operation)
        if of_samples:  # a derived sample, such as a layout, has the dtype of the first sample
            dtype = of_samples.get(cell.label, next(iter(of_samples.values())))
            label = cell.id.split("/", 2)[2]
            table.setdefault(cell.operation, {})[label] = (
                (narrow if cell.single else target).narrowed(dtype) if dtype else ""
            )
    return table


def _dtype(name: str, sample: Any) -> str:
    """Return the last dtype of a sample's arrays in the order of the standard.

    The order is complex128 before float64 before int64 before bool.
    """
    dtypes = {
        v.dtype.name
        for v in leaves(Problem.of(OPS[name], sample).values)
        if isinstance(v, (np.ndarray, np.generic))
    }
    return max(dtypes, key=DTYPES.index, default="") if dtypes <= set(DTYPES) else ""


def selection(arguments: Sequence[str]) -> Iterator[str]:
    """Yield those of pytest's arguments that select tests."""
    takes = ("-k", "-m", "--deselect", "--maxfail", "--ignore")
    for before, argument in zip(("", *arguments), arguments, strict=False):
        if (
            argument in ("-x", "--exitfirst", "--lf", "--last-failed", "--sw", "--stepwise")
            or argument.startswith(takes)
            or before in takes
        ):
            yield argument
