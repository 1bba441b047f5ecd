"""The samples of the conformance suite as functions to record at one point and to replay at
another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import multigrad as mg
from multigrad import func
from multigrad.registry import OPS, Op
from multigrad_conformance.problem import problem_of
from multigrad_conformance.sample import is_array
from multigrad_conformance.samples import generators, samples_of
from multigrad_conformance.target import Target, call

EXEMPT = {"from_dlpack": "gives memory away, and is no operation on a recorded array"}


def names() -> list[str]:
    """The operations that have samples."""
    mg.zeros(1)
    return sorted(set(generators()) - set(EXEMPT))


def _mapped(f: Callable[[Any], Any], x: Any) -> Any:
    return type(x)(_mapped(f, y) for y in x) if type(x) in (tuple, list) else f(x)


def _moved(x: Any) -> Any:
    """Another point of the same kind: floating values a little elsewhere, all others as they
    are.
    """
    return np.asarray(x * x.dtype.type(0.97)) if is_array(x) and x.dtype.kind in "fc" else x


def functions(
    target: Target, op: Op, values: list[Any], finish: Callable[..., Any] | None
) -> Iterator[tuple[str, Callable[..., Any]]]:
    """What is recorded of a sample, as functions of the arrays in it: the operation, and the
    gradient of a sum of its results.
    """

    def with_arrays(arrays: Any) -> list[Any]:
        given = iter(arrays)
        return [_mapped(lambda y: next(given) if is_array(y) else target.raw(y), v) for v in values]

    def forward(*arrays: Any) -> Any:
        out = call(op, target.function(op), with_arrays(arrays))
        out = list(out) if isinstance(out, (tuple, list)) else [out]
        if finish is None:
            return out
        found = finish(target.bound, *out)
        return list(found) if isinstance(found, tuple) else [found]

    def loss(*arrays: Any) -> Any:
        total: Any = 0.0
        for x in forward(*arrays):
            if isinstance(x, mg.Tensor) or hasattr(x, "_elem"):
                xp = target.bound
                if xp.isdtype(x.dtype, ("real floating", "complex floating")):
                    total = total + xp.sum(
                        xp.abs(x) ** 2 if xp.isdtype(x.dtype, "complex floating") else x * x
                    )
        return total

    yield "forward", forward
    differentiable = [i for i, x in enumerate(_arrays(values)) if x.dtype.kind in "fc"]
    if op.kind != "nondifferentiable" and differentiable:
        yield "gradient", func.value_and_grad(loss, argnums=tuple(differentiable))


def _arrays(values: Any) -> list[Any]:
    found: list[Any] = []
    _mapped(lambda y: found.append(y) if is_array(y) else None, list(values))
    return found


def replayed(name: str, target: Target, short: bool) -> Iterator[str]:
    """Record each sample of an operation at one point and replay it at another.

    Yields what differs.
    """
    op = OPS[name]
    for sample in samples_of(name):
        if (short and not sample.short) or not sample.values:
            continue
        values = problem_of(name, sample, target.single, target.has_long).values
        points = [
            [target.raw(x) for x in _arrays(_mapped(f, list(values)))]
            for f in (_moved, lambda x: x)
        ]
        for what, function in functions(target, op, values, sample.finish):
            try:
                for point in points:
                    function(*point)
            except Exception:  # where the operation itself refuses, there is nothing to compare
                continue
            compiled = func.compile(function)
            try:
                for point in points:
                    compiled(*point)
            except Exception as error:
                yield f"{name}/{sample.label} {what}: {type(error).__name__}: {error}"
                continue
            if len(compiled.programs) != 1:
                yield f"{name}/{sample.label} {what}: {len(compiled.programs)} programs"
