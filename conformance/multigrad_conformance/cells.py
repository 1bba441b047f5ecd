"""All tests of a backend: operation x check x sample x precision or variant, with stable ids.

An id is `operation/check/sample`, followed by `@float32` for single precision or `@<variant>` for a
variant of the backend. The set of ids depends on the table of operations and on the backend's
record, but not on the level.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

import numpy as np

from multigrad import Backend, backends, extend
from multigrad.registry import OPS, Op

from . import batches, checks, kernels, keywords, randomly
from .problem import Problem, is_floating
from .rule_calls import several
from .sample import Kink, Refused, Sample, leaves
from .samples import samples_of
from .target import Target

FULL_ONLY = ("nested", "vmap_each", "vmap_pullback", "vmap_jvp")
RANDOM = "random"
RULES = ("jvp", "override")
"""Checks that the short level runs for every sample on NumPy, for operations of multigrad.

They test the rules, and the kernels' own forms, which are the same on every library. One direction
costs four evaluations, so the samples are small.
"""
FIRST_ONLY = ("vmap", "vmap_vjp", "dual")
"""Checks that the short level runs for the first sample only.

A compiling library takes long for each shape. (A composite has no other check than `dual`, so
`dual` runs for all of its samples.)
"""

BACKWARDS = frozenset({"negative_steps"})

UNARY_OPERATORS = ("neg", "pos", "abs", "invert")


@dataclass(eq=False, slots=True)
class Cell:
    """One test of one backend. There are tens of thousands, so creating one must be cheap."""

    backend: str
    operation: str
    check: str
    label: str
    run: Callable[[Target], None] = field(repr=False)
    short: bool
    single: bool = False
    variant: str = ""
    needs: frozenset[str] = frozenset()

    @property
    def id(self) -> str:
        suffix = f"@{self.variant}" if self.variant else "@float32" if self.single else ""
        return f"{self.operation}/{self.check}/{self.label}{suffix}".replace(" ", "-")

    def execute(self) -> None:
        """Run the test. Raises an exception if it fails."""
        backend = extend.backend(self.backend)
        if self.variant and self.operation in OPS:
            # the function is looked up outside the variant, whose flags could change it
            Target(self.backend).raw_function(OPS[self.operation])
        with self._in_variant(backend) as device:
            self.run(Target(self.backend, device, self.single))

    def missing(self) -> str:
        """The reason why the library lacks what the test needs, "" if it lacks nothing.

        The reason comes from the library or its backend, for this test or for tests of this kind.
        """
        backend = extend.backend(self.backend)
        reason = ""
        if self.needs:
            with self._in_variant(backend):  # the flags of a variant may disable a capability
                lacks = backend.lacks()
            reason = ", ".join(text for need, text in lacks.items() if need in self.needs)
        declared = backend.capabilities.missing.items()
        return reason or next(
            (text for name, text in declared if fnmatchcase(self.id, missing_pattern(name))), ""
        )

    def _in_variant(self, backend: Backend) -> AbstractContextManager[Any]:
        return backend.variants[self.variant]() if self.variant else nullcontext()


def missing_pattern(name: str) -> str:
    """Return the pattern of test ids for a key of `Capabilities.missing`.

    The key names an operation, with all its tests, or some tests.
    """
    return name if "/" in name else f"{name}/*"


@cache
def everything(name: str) -> tuple[Cell, ...]:
    """Return all cells of a backend, of both precisions and of all levels and variants."""
    backend = extend.backend(name)
    Target(name)  # loads the table of operations
    return (*_given(name), *_random(backend, 0))


@cache
def _given(name: str) -> tuple[Cell, ...]:
    """Return the cells of the short and the full level."""
    backend = extend.backend(name)
    of_operations = [cell for op in list(OPS.values()) for cell in _of_operation(backend, op)]
    of_kernels = (
        Cell(name, f"kernels.{k}", "kernel", "override", check, True, needs=kernels.needs(k))
        for k, check in kernels.CHECKS.items()
    )
    return (*of_operations, *of_kernels)


def _random(backend: Backend, seed: int) -> Iterator[Cell]:
    """Yield the cells of the random level, in which hypothesis draws the arguments."""
    for op in list(OPS.values()):
        for sample in randomly.sampled(op):
            needs = frozenset({"complex"} if sample.complex else ())
            yield Cell(
                backend.name,
                op.name,
                RANDOM,
                sample.label,
                randomly.check(sample, op.name, seed),
                False,
                needs=needs,
            )


def selected(name: str, level: str, operations: Sequence[str] = (), seed: int = 0) -> list[Cell]:
    """Return the cells to run: of that level, in the available precisions.

    `operations` restricts them; `seed` is the seed of the random level.
    """
    target = Target(name)
    if level == RANDOM:
        return list(_random(target.backend, seed))
    of = (
        [cell for o in operations for cell in _of_operation(target.backend, OPS[o])]
        if operations
        else _given(name)
    )
    return [c for c in of if (level == "full" or c.short) and _at_precision(c, target.has_double)]


def _at_precision(cell: Cell, has_double: bool) -> bool:
    """Return whether a cell runs in its precision.

    In single precision all cells run if the library has no other, otherwise only the basic checks
    of the first sample.
    """
    if cell.variant or cell.check in ("kernel", "conversion"):
        return True
    if not has_double:
        return cell.single
    return not cell.single or (
        cell.short
        and cell.check in ("forward", "vjp")
        and cell.label.partition("@")[0] == _first(cell.operation)
    )


def _first(operation: str) -> str:
    return samples_of(operation)[0].label


def to_add(op: Op) -> str:
    """Where to add the samples of an operation that has none."""
    if not op.builtin:
        failed = [b.error for b in backends() if "multigrad_samples" in b.error]
        return "; ".join(
            (
                "return them from the hook multigrad_samples, {operation: generator or "
                "'module:name'}",
                *failed,
            )
        )
    if op.kind == "elementwise":
        return "say in multigrad_conformance/elementwise.py how its arguments are drawn"
    return "add a generator to a module of multigrad_conformance/samples/"


def _of_operation(
    backend: Backend, op: Op, samples: tuple[Sample, ...] | None = None
) -> Iterator[Cell]:
    """Yield the tests of an operation, on its registered samples or on the given ones."""
    samples = samples_of(op.name) if samples is None else samples
    of_keywords = [sample for sample, _ in keywords.tested(op, samples)]
    chosen = [
        (
            check,
            sample,
            run,
            _short(op, check, sample is samples[0] or sample.checks == (check,)),
            check == "forward" and sample in of_keywords,
        )
        for sample in samples
        for check, run in _checks(backend, op, sample)
    ]
    if samples:
        derived = _derived(op, samples[0])
        chosen += [(check, sample, run, True, False) for check, sample, run in derived]
    for single in (False, True):
        for check, sample, run, short, keyword in chosen:
            if not (single and check in ("conversion", "promotion")):
                yield _cell(backend, op, check, sample, run, single, short=short, keyword=keyword)
    if samples and not samples[0].checks:
        sample = samples[0]
        check, run = (
            ("vjp", checks.vjp) if _differentiable(op, sample) else ("forward", checks.forward)
        )
        for variant in backend.variants:
            yield _cell(backend, op, check, sample, run, False, variant)
    for sample, name in keywords.tested(op, samples):
        if name == "device":
            for variant in _devices(backend.name):
                run = checks.forward
                yield _cell(backend, op, "forward", sample, run, False, variant, keyword=True)


@cache
def _devices(name: str) -> tuple[str, ...]:
    """Return the variants of a backend that are devices, rather than flags or compilers."""

    def is_device(variant: str) -> bool:
        try:
            with extend.backend(name).variants[variant]() as device:
                return device is not None and not callable(device)
        except Exception:  # what a variant needs is not there: its own tests say so
            return False

    return tuple(filter(is_device, extend.backend(name).variants))


def _short(op: Op, check: str, first: bool) -> bool:
    """Return whether the short level runs a check of a short sample."""
    # the gradient of an elementwise operation consists of such operations, which `vmap` covers
    elementwise = check == "vmap_vjp" and op.batching == "elementwise"
    return (
        check not in FULL_ONLY
        and (first or check not in FIRST_ONLY or (check == "dual" and op.kind == "composite"))
        and not elementwise
    )


def _cell(
    backend: Backend,
    op: Op,
    check: str,
    sample: Sample,
    run: Any,
    single: bool,
    variant: str = "",
    short: bool = True,
    keyword: bool = False,
) -> Cell:
    def execute(target: Target) -> None:
        try:
            run(checks.Case(target, op, sample))
        except Exception as error:
            error.add_note(f"in {keywords.call_of(op, sample)}")
            raise

    needs = (
        sample.capabilities | BACKWARDS
        if (check, sample.label) == ("layout", "reversed")
        else sample.capabilities
    )
    short = (
        (short and bool(sample.short))
        or keyword
        or (check in RULES and backend.name == "numpy" and not single and op.builtin)
    )
    return Cell(backend.name, op.name, check, sample.label, execute, short, single, variant, needs)


def _differentiable(op: Op, sample: Sample) -> bool:
    return bool(Problem.of(op, sample).places)


def _checks(backend: Backend, op: Op, sample: Sample) -> Iterator[tuple[str, Any]]:
    """Yield the checks that apply to a sample."""
    if isinstance(sample, Kink):
        yield "kink", checks.kink
        return
    if isinstance(sample, Refused):
        yield "refused", checks.refused
        return
    known: dict[str, Any] = {"forward": checks.forward}
    problem = Problem.of(op, sample)
    if sample.checks == ("conversion",):
        known = {"conversion": checks.conversion}
    elif problem.places:
        known["vjp"] = checks.vjp
        if several(problem):
            known["each_output"] = checks.each_output
        if op.kind != "composite":
            known["jvp"] = checks.jvp
        known |= {"dual": checks.dual, "second": checks.second, "nested": batches.nested}
        known |= {
            f.__name__: f for f in (batches.vmap_vjp, batches.vmap_pullback, batches.vmap_jvp)
        }
    if sample.checks is None and batches.applies(problem):
        known |= {"vmap": batches.vmap, "vmap_each": batches.vmap_each}
    if op.name in backend.functions and op.forward is not None:
        known["override"] = checks.override
    yield from (
        (check, run)
        for check, run in known.items()
        if sample.checks is None or check in sample.checks
    )


# ----- samples derived from the first one of an operation -----

FULL, ROW, COLUMN, FIRST_ROW, ZERO_D, NUMBER = (
    lambda x: x,
    lambda x: x[0],
    lambda x: x[:, :1],
    lambda x: x[:1],
    lambda x: np.asarray(x[0, 0]),
    lambda x: x[0, 0].item(),
)
CUBE = lambda x: np.stack([x, x[::-1]])
BROADCASTS = {
    "full,row": (FULL, ROW),
    "number,full": (NUMBER, FULL),
    "row,full": (ROW, FULL),
    "column,row": (COLUMN, FIRST_ROW),
    "full,column": (FULL, COLUMN),
    "column,3-d": (COLUMN, CUBE),
    "full,0-d": (FULL, ZERO_D),
    "0-d,full": (ZERO_D, FULL),
    "full,number": (FULL, NUMBER),
}
SHORT_BROADCASTS = ("full,row", "number,full")
EMPTIES = {"0-d": ZERO_D, "no rows": lambda x: x[:0]}
EDGES = {
    "0-d": lambda x: np.asarray(x[(0,) * x.ndim]) if x.size else x,
    "no rows": lambda x: x[:0] if x.ndim else x,
}


def _derived(op: Op, sample: Sample) -> Iterator[tuple[str, Sample, Any]]:
    """Yield checks of shapes, layouts, dtypes and raw operands, with values of the first sample."""
    if isinstance(sample, Kink) or sample.checks:
        return
    problem = Problem.of(op, sample)
    arrays = [v for v in leaves(problem.values) if isinstance(v, np.ndarray)]
    if problem.places:
        # "repeated" reduces the rows, so the constant arrays would no longer fit
        for name in checks.LAYOUTS:
            if name != "repeated" or (
                op.batching == "elementwise" and len(problem.places) == len(arrays)
            ):
                yield "layout", _named(sample, name), _with(sample, checks.layout, name)
    if op.operator and op.operator not in UNARY_OPERATORS and len(arrays) == 2:
        for side in ("left", "right"):
            yield "raw", _named(sample, side, True), _with(sample, checks.raw_operand, side)
    if op.kind == "composite" and problem.places and len(arrays) > 1:
        yield "raw", _named(sample, "others", True), _with(sample, checks.beside_raw)
    if op.batching != "elementwise" and not op.builtin and problem.places:
        yield from _edges(op, sample)
    if op.batching != "elementwise" or not arrays or any(a.shape != (2, 3) for a in arrays):
        return
    for label, form in EMPTIES.items():
        yield "empty", _made(op, sample, label, form, form, label == "0-d"), checks.empty
    if len(arrays) < 2:
        return
    for label, (first, others) in BROADCASTS.items():
        if "number" not in label or (len(arrays) == 2 and label != "number,full") or op.operator:
            yield (
                "broadcasting",
                _made(op, sample, label, first, others, label in SHORT_BROADCASTS),
                checks.derived,
            )
    if sum(map(is_floating, arrays)) > 1:
        mixed = _made(
            op,
            sample,
            "float64,float32",
            FULL,
            lambda x: x.astype(np.float32) if is_floating(x) else x,
            True,
        )
        yield "promotion", mixed, checks.derived


def _edges(op: Op, sample: Sample) -> Iterator[tuple[str, Sample, Any]]:
    """Yield the checks of arrays without elements or axes, of another package's operation.

    It is tried on those that its forward takes on NumPy, with a finite result. multigrad's own
    operations have samples of them.
    """
    kinds = [p.kind for p in op.signature.parameters.values()]
    if (
        sample.needs
        or sample.finish
        or sample.project
        or inspect._ParameterKind.VAR_POSITIONAL in kinds
    ):
        return
    for label, form in EDGES.items():
        made = _made(op, sample, label, form, form, label == "0-d")
        try:
            finite = all(np.all(np.isfinite(y)) for y in Problem.of(op, made).outputs)
        except Exception:  # the forward may raise anything
            continue
        if finite:
            yield "empty", made, checks.empty


def _named(sample: Sample, label: str, short: bool = False) -> Sample:
    return Sample(
        label,
        *sample.args,
        short=short,
        needs=sample.needs,
        project=sample.project,
        finish=sample.finish,
        reference=sample.reference,
        **sample.kwargs,
    )


def _with(sample: Sample, check: Callable[..., None], *arguments: str) -> Callable[..., None]:
    """Return a check of a sample that has another label: all of them share NumPy's results."""
    return lambda case: check(case._replace(sample=sample), *arguments)


def _made(op: Op, sample: Sample, label: str, first: Any, others: Any, short: bool) -> Sample:
    """Return a sample with its first array cut to one form, and the others to another."""
    problem = Problem.of(op, sample)
    values = dict(zip(op.roles, problem.values, strict=True))
    form = first
    for name in op.arrays:
        if isinstance(values[name], np.ndarray):
            values[name] = form(values[name])
            form = others
    positional = [
        values.pop(n) for n, p in op.signature.parameters.items() if p.kind is not p.KEYWORD_ONLY
    ]
    return Sample(
        label,
        *positional,
        short=short,
        differentiable=sample.differentiable,
        tolerance=sample.tolerance,
        values=sample.values,
        reference=sample.reference,
        **values,
    )
