"""What a certificate says before there are results: which tests there are to be, and where, when
and of what it is made.
"""

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
    """The certificate of a run that is about to begin.

    `arguments` are those that selected tests; they are told in it.
    """
    extend.load_plugins()
    found = {name: _backend(name, level, arguments) for name in backends}
    return {
        "format": FORMAT,
        "multigrad": multigrad.__version__,
        "samples": level,
        "operations": {name: {"chapter": op.chapter, "kind": op.kind} for name, op in OPS.items()},
        "left out": left_out,
        "problems": {},
        "backends": found,
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
    """What a library cannot do, with the reason, by capability, operation or test."""
    backend = extend.backend(name)
    return backend.lacks() | dict(backend.capabilities.missing)


def _run(name: str, level: str) -> dict[str, Any]:
    """The versions, the machine and the moment."""
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
    """The default device, "" where the library does not tell."""
    with contextlib.suppress(Exception):  # whatever a library raises that has no inspection
        device = target.xp.__array_namespace_info__().default_device()
        return "" if device is None else str(device)
    return ""


def _each(ask: Any) -> list[str]:
    with contextlib.suppress(Exception):
        return [str(x) for x in ask()]
    return []


# ----- the dtype that a test is about -----


def _dtypes(target: Target, planned: Sequence[cells.Cell]) -> dict[str, dict[str, str]]:
    """{operation: {label: dtype}}, where the label of a test is the part of its id that follows the
    check.
    """
    samples = {
        name: {s.label: s for s in samples_of(name)}
        for name in {cell.operation for cell in planned} & set(OPS)
    }
    wide = {
        name: {label: _dtype(name, s) for label, s in found.items()}
        for name, found in samples.items()
    }
    narrow = Target(target.name, single=True)
    table: dict[str, dict[str, str]] = {}
    for cell in planned:
        of_samples = wide.get(cell.operation)
        if of_samples:  # what is made of the first sample, such as a layout, has its dtype
            dtype = of_samples.get(cell.label, next(iter(of_samples.values())))
            label = cell.id.split("/", 2)[2]
            table.setdefault(cell.operation, {})[label] = (
                (narrow if cell.single else target).narrowed(dtype) if dtype else ""
            )
    return table


def _dtype(name: str, sample: Any) -> str:
    """The last of the dtypes of a sample's arrays in the order of the standard: complex128 before
    float64 before int64 before bool.
    """
    found = {
        v.dtype.name
        for v in leaves(Problem.of(OPS[name], sample).values)
        if isinstance(v, (np.ndarray, np.generic))
    }
    return max(found, key=DTYPES.index, default="") if found <= set(DTYPES) else ""


def selection(arguments: Sequence[str]) -> Iterator[str]:
    """Those of pytest's arguments that are about which tests are run."""
    takes = ("-k", "-m", "--deselect", "--maxfail", "--ignore")
    for before, argument in zip(("", *arguments), arguments, strict=False):
        if (
            argument in ("-x", "--exitfirst", "--lf", "--last-failed", "--sw", "--stepwise")
            or argument.startswith(takes)
            or before in takes
        ):
            yield argument
