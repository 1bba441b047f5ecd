"""Operations on whole arrays, on the samples of the conformance suite and some harder ones:
gradient, jvp, second derivative.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import mparray
import numpy as np
from mpmath import mp

import multigrad as mg
from multigrad import registry
from multigrad.core.element import library_named
from multigrad.dispatch import codegen
from multigrad_conformance.problem import Problem, floating_of
from multigrad_conformance.sample import OWN_DEVICE, DType, Kink, leaves
from multigrad_conformance.samples import samples_of

from . import hard
from .arrays import forward, from_mparray, to_mparray
from .differences import AGREEMENT, LEAST, exact, magnitude, mixed, slope
from .measure import Error, of_array

SINGULAR = ("singular", "rank", "zero", "identity", "orthogonal", "isometry", "equal", "stable")
LARGEST = 80  # numbers in the arguments: a difference for each


def measured(name: str) -> Iterator[Error]:
    """Every error of an operation."""
    mp.dps = 60
    op = registry.OPS[name]
    count = {"real": 0, "complex": 0}
    for sample in [*samples_of(name), *hard.SAMPLES.get(name, ())]:
        if not _meant(sample):
            continue
        problem = Problem.of(op, sample, _native)
        sizes = [x.size for x in problem.leaves()]
        if not sizes or 0 in sizes or sum(sizes) > LARGEST:
            continue
        case = Case(problem)
        if sum(g.size for g in case.cotangents):
            count[case.kind] += 1
            yield from case.errors(second=count[case.kind] == 1)


def _meant(sample: Any) -> bool:
    """Not a kink, nor a singular point, nor of narrower numbers."""
    parts = leaves((sample.args, tuple(sample.kwargs.values())))
    narrow = any(isinstance(v, DType) and v.name not in ("float64", "complex128") for v in parts)
    singular = isinstance(sample, Kink) or any(word in sample.label for word in SINGULAR)
    return (
        sample.values
        and not narrow
        and not singular
        and (sample.checks is None or "vjp" in sample.checks)
    )


def _native(x: Any) -> Any:
    return getattr(np, x.name) if isinstance(x, DType) else None if x is OWN_DEVICE else x


class Case:
    """One sample. L = Re <cotangents, outputs> is a function of the arguments: in float64 by the
    rules, in mpmath by differences.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.name = problem.op.name
        self.inputs = problem.leaves()
        self.kind = "complex" if any(np.iscomplexobj(x) for x in self.inputs) else "real"
        self.random = np.random.default_rng(5)
        self.tangents = problem.projected([self._drawn(x) for x in self.inputs])
        with np.errstate(all="ignore"):
            self.outputs = codegen.call(
                problem.op,
                codegen.raw_function(library_named("numpy"), problem.op.name),
                problem.values,
            )
            self.cotangents = [
                self._drawn(y)
                for y in floating_of(problem.finished(library_named("numpy").xp, self.outputs))
            ]

    def _drawn(self, x: Any) -> Any:
        """A random array of the same shape, without small numbers."""

        def real() -> Any:
            return self.random.uniform(0.5, 1.5, x.shape) * self.random.choice([-1.0, 1.0], x.shape)

        return np.asarray(real() + 1j * real() if np.iscomplexobj(x) else real())

    def errors(self, second: bool) -> Iterator[Error]:
        """The errors of the gradients, of the jvp and, if asked for, of second derivatives."""
        where = f"sample {self.problem.label!r}"
        names = [list(self.problem.op.roles)[i] for i, _ in self.problem.places]
        true = [self._gradient(i) for i in range(len(self.inputs))]
        for name, found, t in zip(names, self._found(False), true, strict=True):
            yield Error(self.name, self.kind, name, *of_array(found, t), where)
        if self.problem.op.kind != "composite":
            yield Error(self.name, self.kind, "jvp", *self._jvp_error(), where)
        if second:
            found, true = (
                self._found(True),
                [self._gradient(i, along=True) for i in range(len(self.inputs))],
            )
            flat = (
                np.concatenate([x.ravel() for x in found]),
                np.concatenate([x.ravel() for x in true]),
            )
            yield Error(self.name, self.kind, "second", *of_array(*flat), where)

    # ----- by the rules -----

    def _found(self, second: bool) -> list[Any]:
        """The gradients of L or, for second derivatives, those of its derivative along the
        tangents.
        """
        tensors = [mg.asarray(x, requires_grad=True) for x in self.inputs]
        with np.errstate(all="ignore"):
            outs = [y for y in self._outputs(tensors) if y.requires_grad]
            gradients = mg.autograd.grad(
                outs,
                tensors,
                [mg.asarray(g) for g in self.cotangents[: len(outs)]],
                create_graph=second,
                allow_unused=True,
            )
            if second:
                gradients = self._further(gradients, tensors)
        return [
            np.zeros_like(x) if g is None else g.array
            for g, x in zip(gradients, self.inputs, strict=True)
        ]

    def _further(self, gradients: Any, tensors: list[Any]) -> Any:
        """The gradients of the gradients' products with the tangents; of gradients that depend on
        nothing there are none.
        """
        pairs = [
            (g, mg.asarray(t))
            for g, t in zip(gradients, self.tangents, strict=True)
            if g is not None and g.requires_grad
        ]
        if not pairs:
            return [None] * len(tensors)
        return mg.autograd.grad(
            [g for g, _ in pairs], tensors, [t for _, t in pairs], allow_unused=True
        )

    def _outputs(self, tensors: Sequence[Any]) -> list[Any]:
        xp = mg.namespace("numpy")
        function: Any = xp
        for part in self.name.split("."):
            function = getattr(function, part)
        out = codegen.call(self.problem.op, function, self.problem.replaced(tensors))
        found = self.problem.finished(xp, out)
        found = found if isinstance(found, (tuple, list)) else [found]
        return [y for y in found if y.dtype in (np.float64, np.complex128)]

    def _jvp_error(self) -> tuple[float, float]:
        with np.errstate(all="ignore"):
            _, moved = mg.func.jvp(
                lambda *xs: tuple(self._outputs(xs)), tuple(self.inputs), tuple(self.tangents)
            )
        true = slope(
            lambda t: _joined(
                self._exact(
                    [x + t * d for x, d in zip(self._points, self._directions, strict=True)]
                )
            ),
            self._scale,
            self._least,
        )
        return of_array(_joined(moved), true)

    # ----- by differences -----

    @cached_property
    def _points(self) -> list[Any]:
        return [exact(x) for x in self.inputs]

    @cached_property
    def _directions(self) -> list[Any]:
        return [exact(np.asarray(t)) for t in self.tangents]

    @cached_property
    def _scale(self) -> Any:
        """The smallest number among the arguments."""
        return min((abs(v) for x in self._points for v in x.flat if v), default=1)

    @cached_property
    def _least(self) -> Any:
        """No derivative is smaller, unless the arguments are far apart, huge or tiny."""
        return (
            AGREEMENT if self._scale > 1e-3 and max(map(magnitude, self._points)) < 1e3 else LEAST
        )

    def _exact(self, arrays: list[Any]) -> list[Any]:
        """The outputs in mpmath, finished."""
        # what is 0-d became a number
        arrays = self.problem.projected([np.asarray(x, dtype=object) for x in arrays])
        values = self.problem.replaced([np.asarray(x, dtype=object) for x in arrays])
        found = forward(self.name)(*values, self.outputs)
        if self.problem.finish is not None:
            parts = [
                to_mparray(np.asarray(y, dtype=object))
                for y in (found if isinstance(found, tuple) else (found,))
            ]
            found = from_mparray(self.problem.finish(mparray, *parts))
        found = found if isinstance(found, (tuple, list)) else (found,)
        return [np.asarray(y, dtype=object) for y in found if _of_numbers(y)]

    def _loss(self, arrays: list[Any]) -> Any:
        return sum(
            (_inner(g, y) for g, y in zip(self._cotangents, self._exact(arrays), strict=True)),
            mp.zero,
        )

    @cached_property
    def _cotangents(self) -> list[Any]:
        return [exact(g) for g in self.cotangents]

    def _gradient(self, which: int, along: bool = False) -> Any:
        """The gradient of L by one argument or, if `along`, that of its derivative along the
        tangents.
        """
        found = np.empty(self.inputs[which].shape, dtype=object)
        for index in np.ndindex(found.shape):
            units = (1, mp.j) if np.iscomplexobj(self.inputs[which]) else (1,)
            parts = [self._derivative(which, index, unit, along) for unit in units]
            found[index] = mp.mpc(*parts) if len(parts) == 2 else parts[0]
        return found

    def _derivative(self, which: int, index: Any, unit: Any, along: bool) -> Any:
        def moved(t: Any, s: Any = 0) -> Any:
            arrays = (
                [x + s * d for x, d in zip(self._points, self._directions, strict=True)]
                if along
                else list(self._points)
            )
            arrays[which] = np.asarray(arrays[which], dtype=object).copy()
            arrays[which][index] = arrays[which][index] + t * unit
            return self._loss(arrays)

        scale = abs(self._points[which][index]) or magnitude(self._points[which]) or 1
        return (mixed if along else slope)(moved, scale, self._least)


def _of_numbers(x: Any) -> bool:
    """Whether an output carries gradients: not one of indices."""
    x = np.asarray(x)
    return x.dtype == object and not any(isinstance(v, (int, np.integer)) for v in x.flat)


def _joined(arrays: Sequence[Any]) -> Any:
    return np.concatenate([np.ravel(x) for x in arrays])


def _inner(g: Any, y: Any) -> Any:
    """Re <g, y>."""
    return sum(
        (
            mp.re(mp.conj(a) * b)
            for a, b in zip(np.asarray(g).flat, np.asarray(y).flat, strict=True)
        ),
        mp.zero,
    )
