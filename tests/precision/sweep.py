"""The sweep over all operations, and its verdict."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from typing import Any

import multigrad as mg
from multigrad import registry

from . import elementwise, scalars, special, whole
from .exceptions import EXCUSED, excuse
from .measure import Error, by_key

LEFT_OUT = {
    "to_backend": "moves numbers from one library to another",
    "to_device": "moves numbers from one device to another",
    "special.gammasgn": "is constant wherever it is defined: its derivative is 0 by rule",
}

SLOW_FIRST = (
    "adjugate_tangent",
    "linalg.eig",
    "linalg.eigh",
    "fft.irfftn",
    "linalg.svdvals",
    "linalg.svd",
    "linalg.eigvals",
    "pow",
    "linalg.inv",
    "linalg.eigvalsh",
    "fft.fftn",
    "fft.ifftn",
    "adjugate",
    "acosh",
)


OTHERS = ("hips.",)
"""The prefixes of operations that a program declares which imports multigrad_autograd, whose tests
compare them with SciPy and with differences.
"""


@cache
def operations() -> tuple[str, ...]:
    """Every operation that has a derivative."""
    mg.namespace("numpy")
    return tuple(
        sorted(
            n
            for n, op in registry.OPS.items()
            if op.kind != "nondifferentiable" and n not in LEFT_OUT and not is_left_out(op)
        )
    )


def is_left_out(op: registry.Op) -> bool:
    """Whether it is a stranger's; or made of operations that are swept, under a name beyond the
    standard, which the reference lacks.
    """
    lacking = op.beyond or (op.chapter == "special" and op.name not in special.ALL)
    return op.name.startswith(OTHERS) or (lacking and op.kind == "composite")


def measured(name: str) -> list[Error]:
    """The worst errors of an operation."""
    mg.namespace("numpy")
    by_points = name in special.ALL or (name in scalars.FUNCTIONS and name != "clip")
    try:
        found = list(by_key((elementwise if by_points else whole).measured(name), excuse))
    except Exception as error:  # of one operation: the others are worth measuring
        return [
            Error(name, "", "no reference", math.inf, math.inf, f"{type(error).__name__}: {error}")
        ]
    return found or [Error(name, "", "no samples", math.inf, math.inf, "")]


def swept(names: Iterable[str], jobs: int | None = None) -> Iterator[tuple[str, list[Error]]]:
    """The worst errors of each operation, by several processes, as they come."""
    names = sorted(
        names, key=lambda n: (SLOW_FIRST.index(n) if n in SLOW_FIRST else len(SLOW_FIRST), n)
    )
    with ProcessPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        yield from zip(names, pool.map(measured, names), strict=True)


def complaints(errors: Iterable[Error], complete: bool = True) -> list[str]:
    """What is wrong: errors that nothing excuses and, if these are all errors of their operations,
    excuses that nothing needs.
    """
    errors = list(errors)
    needed = {(e.operation, e.kind) for e in errors if e.size > e.limit and excuse(e)}
    seen = {(e.operation, e.kind) for e in errors}
    bugs = [
        f"{e.operation}, {e.kind}, {e.what}: {e.size:.3g} epsilon at {e.where}"
        for e in errors
        if e.size > e.limit and not excuse(e)
    ]
    return bugs + [
        f"{name}, {kind}: the exception is no longer needed: remove it"
        for name, kind in EXCUSED
        if complete and (name, kind) in seen - needed
    ]


def row(name: str, errors: list[Error]) -> Iterator[dict[str, Any]]:
    """For each kind of argument the worst errors of gradient, jvp and second derivative, and where
    the worst of all is.
    """
    for kind in sorted({e.kind for e in errors}, reverse=True):
        mine = [e for e in errors if e.kind == kind]
        columns = {
            column: max(
                (
                    e
                    for e in mine
                    if (e.what if e.what in ("jvp", "second") else "gradient") == column
                ),
                key=lambda e: e.size,
                default=None,
            )
            for column in ("gradient", "jvp", "second")
        }
        top = max((e for e in columns.values() if e is not None), key=lambda e: e.size)
        yield {
            "operation": name,
            "arguments": kind,
            **{c: None if e is None else e.size for c, e in columns.items()},
            "where": top.where if top.size >= 0.01 else "",
            "excused": top.size > top.limit and excuse(top) is not None,
        }
