"""Tests of your own functions and operations on every array library: check_function, check_rule."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from traceback import walk_tb
from typing import Any

import numpy as np
import pytest

import multigrad as mg
from multigrad import extend
from multigrad.errors import (
    BackendError,
    BatchingError,
    GradientError,
    MissingRuleError,
    MixedBackendsError,
)
from multigrad.registry import OPS, Op

from . import cells
from .function_checks import CHECKS
from .reading import read
from .sample import Draw, Sample
from .samples import samples_of, trouble_of
from .subject import PRECISIONS, Subject
from .target import Target
from .tolerance import Tolerance
from .trial import Reference, Trial

Names = str | Iterable[str]
SHOWN = 10
"""The number of further failures that a message lists."""


@dataclass(frozen=True)
class Failure:
    where: str
    text: str
    error: Exception


@extend.entry
def check_function(
    function: Callable[..., Any],
    /,
    *args: Any,
    backends: Names | None = None,
    dtypes: Names | None = None,
    rtol: float | Mapping[str, float] | None = None,
    atol: float | Mapping[str, float] | None = None,
    checks: Names | None = None,
    leave_out: Names = (),
    constants: Any = (),
    **kwargs: Any,
) -> None:
    """Check the values and derivatives of `function` on every array library.

    function   an array-agnostic function: it uses the functions of `x.__array_namespace__()` or of
               multigrad, and operators. If it has a parameter `xp` that is not given, it receives
               the backend's bound namespace
    args, kwargs  its arguments: NumPy arrays, other objects, or nested structures of them. Arrays
               arrive as Tensors of the backend; those of floating dtype are differentiated. Python
               numbers and other objects arrive unchanged and are constants
    backends   names of backends; default: every installed one that works
    dtypes     "float64", "float32" or both (the default). Floating arrays are cast to it, complex
               arrays to complex128 and complex64. A backend without float64 runs float32 alone
    rtol, atol  tolerances of values and derivatives. A number applies to float64 and also loosens
               float32; a dictionary gives each
    checks     names of the checks to run (see below); default: all
    leave_out  names of checks to leave out
    constants  names or numbers of arguments with floating arrays that are constants

    The checks, in order: `pure` (two calls agree, and no argument changes), `values` (structure,
    shapes, dtypes and values are those of NumPy), `gradient` (the gradients are those of NumPy in
    float64), `differences` (the gradients are those of finite differences; without it, jvp and
    second are not compared with differences either), `jvp`, `second` (derivatives of gradients, in
    both modes), `vmap` (of function and gradient, against a loop), `jit` (if a backend has a
    compiler), `variants` (values and gradients on its other devices and under its flags).

    Returns None. Raises AssertionError with the name of the function, and for each failure the
    backend, dtype, check, argument, and the worst element with both numbers. Raises BackendError if
    a named backend cannot be used, TypeError if the function cannot be called with the arguments,
    ValueError for an unknown name, and RuntimeError under `python -O`. Complex gradients follow
    PyTorch: dL/da + i dL/db.
    """
    __tracebackhide__ = True
    _assert_asserts("check_function")
    subject = Subject.of(function, args, kwargs, constants)
    chosen = _selected(checks, leave_out)
    precisions = _precisions(dtypes)
    tolerance = Tolerance.of(rtol, atol)
    references = {precision: Reference(subject.at(precision)) for precision in precisions}
    failures: list[Failure] = []
    ran = False
    for name in _backends(backends):
        for precision in precisions:
            target = Target(name, single=precision == "float32")
            if (precision == "float64" and not target.has_double) or (
                subject.complex and not target._makes("complex64", np.complex64)
            ):
                continue
            ran = True
            trial = Trial(
                subject.at(precision),
                target,
                precision,
                references[precision],
                tolerance,
                "differences" in chosen,
            )
            failures += _run(
                trial, chosen, first=precision == precisions[0] or not target.has_double
            )
    if not ran:
        raise ValueError(
            "check_function: no backend that was asked for has "
            f"{' or '.join(precisions)}{' and complex arrays' if subject.complex else ''}; on "
            "jax, JAX_ENABLE_X64=1 makes float64"
        )
    if failures:
        raise AssertionError(_message(f"{subject.name} fails", failures)) from _cause(failures)


def _run(trial: Trial, chosen: Sequence[str], first: bool) -> Iterator[Failure]:
    """Yield the failures of a function on one backend in one precision.

    If the values are wrong, the derivatives are not checked.
    """
    for check in chosen:
        if check == "jit" and not first:
            continue
        where = f"{trial.target.name}, {trial.precision}, {check}"
        try:
            with np.errstate(all="ignore"):
                CHECKS[check](trial)
        except Exception as error:
            yield Failure(
                where,
                str(error)
                if _is_ours(error)
                else f"{type(error).__name__}: {error}{_explained(error, check)}",
                error,
            )
        else:
            continue
        if check in ("pure", "values"):
            return


def _is_ours(error: BaseException) -> bool:
    """Return whether a check raised because of a result, rather than the user's function."""
    traceback = error.__traceback__
    if not isinstance(error, AssertionError) or traceback is None:
        return False
    *_, (frame, _) = walk_tb(traceback)
    return str(frame.f_globals.get("__name__", "")).startswith((f"{__package__}.", "numpy.testing"))


EXPLAINED: tuple[tuple[type[Exception], str], ...] = (
    (
        BatchingError,
        "vmap cannot branch on a value, nor make a shape of one: let xp.where choose between "
        "both results, or pass leave_out=('vmap', 'jit')",
    ),
    (
        MixedBackendsError,
        "an array of another library than that of the arguments: make constants by xp.asarray, "
        "with xp = x.__array_namespace__()",
    ),
    (
        MissingRuleError,
        "pass the names of arguments that are no variables as constants=, or declare the "
        "derivative",
    ),
)


def _explained(error: Exception, check: str) -> str:
    """Return advice about an error."""
    text = next((text for kind, text in EXPLAINED if isinstance(error, kind)), "")
    message = str(error)
    if isinstance(error, GradientError) and "Can't call" in message:
        text = (
            "the function turns an array into one of NumPy, which has no derivative: call "
            "the functions of xp = x.__array_namespace__() instead"
        )
    elif isinstance(error, GradientError) and "in-place" in message:
        text = (
            "the function writes into its argument: let it work on a copy, xp.asarray(x, copy=True)"
        )
    elif not text and check == "jit":
        text = (
            "a compiler traces the function without values: no branch, no Python number and "
            "no shape may depend on one; or pass leave_out='jit'"
        )
    return f"\n  ({text})" if text else ""


@extend.entry
def check_rule(
    op: str | Op,
    samples: Any = None,
    *,
    backends: Names | None = None,
    level: str = "full",
    checks: Names | None = None,
    leave_out: Names = (),
) -> None:
    """Run the conformance checks of one operation on every array library.

    They cover values, gradients, both modes, second derivatives, vmap and layouts.

    op        the name of an operation, or its declaration in `multigrad.registry.OPS`
    samples   arguments to test with: `Sample` and `Kink` objects, tuples of arguments, or a
              function of a `Draw` that yields them; default: the samples registered by the hook
              multigrad_samples
    backends  names of backends; default: every installed one that works
    level     "full", the default, or "short": a few samples
    checks    names of the checks to run, as in the ids of tests ("vjp", "second", "vmap", ...);
              default: all
    leave_out  names of checks to leave out

    Tests that a backend exempts, or declares as missing, are left out. Returns None. Raises
    AssertionError with the name of the operation, and for each failure the backend and the id of
    the test. Raises ValueError for an unknown operation, level or check, if there are no samples,
    and if some cannot be used; TypeError if `samples` is no list or function.
    """
    __tracebackhide__ = True
    _assert_asserts("check_rule")
    if level not in ("full", "short"):
        raise ValueError(f"check_rule: level must be 'full' or 'short', not {level!r}")
    names = _backends(backends)
    declared = _operation(op)
    given = None if samples is None else _samples(declared, samples)
    if given is None and trouble_of(declared.name):
        raise ValueError(
            f"check_rule: the samples of {declared.name!r} of {declared.module} cannot all be "
            f"used: {trouble_of(declared.name)}"
        )
    if not (samples_of(declared.name) if given is None else given):
        raise ValueError(
            f"check_rule: the operation {declared.name!r} has no samples: pass "
            "samples=[(argument, ...)], or return them from the hook multigrad_samples"
        )
    cells_ = [cell for name in names for cell in _cells(name, declared, given, level)]
    known = {cell.check for cell in cells_}
    chosen = known if checks is None else set(_listed(checks))
    for name in (*chosen, *_listed(leave_out)):
        if name not in known:
            raise ValueError(
                f"check_rule: there is no check {name!r} of {declared.name!r} here; there are "
                f"{', '.join(sorted(known))}"
            )
    failures: list[Failure] = []
    for cell in cells_:
        if cell.check in chosen and cell.check not in _listed(leave_out):
            failures += _execute(cell)
    if failures:
        raise AssertionError(
            _message(f"the operation {declared.name!r} fails", failures)
        ) from _cause(failures)


def _execute(cell: cells.Cell) -> Iterator[Failure]:
    from .test_conformance import test_operation

    where = f"{cell.backend}, {cell.id}"
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            test_operation(cell)
    except pytest.skip.Exception:
        pass
    except pytest.xfail.Exception:
        pass
    except pytest.fail.Exception as error:
        yield Failure(where, str(error), AssertionError(str(error)))
    except Exception as error:
        told = str(error) if _is_ours(error) else f"{type(error).__name__}: {error}"
        yield Failure(where, "\n".join((told, *getattr(error, "__notes__", ()))), error)


def _operation(op: str | Op) -> Op:
    extend.load_plugins()
    mg.namespace("numpy")  # fills the table of operations
    name = op if isinstance(op, str) else getattr(op, "name", op)
    declared = OPS.get(name) if isinstance(name, str) else None
    if declared is None or (isinstance(op, Op) and declared is not op):
        raise ValueError(
            f"check_rule: no operation {name!r} is declared (see `python -m multigrad ops`)"
            if declared is None
            else f"check_rule: this declaration of {name!r} has been replaced by another one"
        )
    return declared


def _samples(op: Op, given: Any) -> tuple[Sample, ...]:
    """Return samples, built from tuples of arguments if necessary.

    All belong to the short level, unless they say otherwise.
    """
    if not callable(given) and not isinstance(given, Iterable):
        raise TypeError(
            "check_rule: samples must be a list of samples or a function of a Draw, not "
            f"{type(given).__name__}"
        )

    def make() -> Any:
        return given(Draw(op.name)) if callable(given) else given

    usable, wrong = read(op, "samples", make, (Sample, tuple))
    if wrong:
        raise ValueError(f"check_rule: the samples of {op.name!r} cannot be used: {wrong[0]}")
    for sample in usable:
        sample.short = True if sample.short is None else sample.short
    return usable


def _cells(
    name: str, op: Op, samples: tuple[Sample, ...] | None, level: str
) -> Iterator[cells.Cell]:
    """Return the tests of an operation on a backend.

    All run in its widest precision; values and gradients run in the other one as well.
    """
    has_double = Target(name).has_double
    for cell in cells._of_operation(extend.backend(name), op, samples):
        narrow = cell.single and (not has_double or cell.check in ("forward", "vjp"))
        if (level == "full" or cell.short) and (
            cell.variant or narrow or (has_double and not cell.single)
        ):
            yield cell


# ----- shared by check_function and check_rule -----


def _backends(given: Names | None) -> list[str]:
    """Return the backends to test, with numpy first.

    A backend requested by name must work. Otherwise backends that do not work are left out.
    """
    names = installed() if given is None else _listed(given)
    if not names:
        raise ValueError("backends is empty; name at least one backend")
    if given is None:
        return sorted(filter(works, names), key=lambda name: (name != "numpy", name))
    for name in names:
        extend.backend(name)
    return names


def known() -> list[str]:
    """Return the names of all backends, including those of libraries that are not installed."""
    return sorted(b.name for b in _listing())


def installed() -> list[str]:
    """Return the names of the backends whose library is installed, without importing them."""
    return sorted(b.name for b in _listing() if b.state not in ("not installed", "blocked"))


def _listing() -> list[Any]:
    if any(b.state == "deferred" for b in mg.backends()):
        extend.load_plugins()  # they register backends
    return [b for b in mg.backends() if b.state != "operations"]


def works(name: str) -> bool:
    """Return whether a backend can be used on this machine."""
    try:
        extend.backend(name)
    except BackendError:
        return False
    return True


def _listed(names: Names) -> list[str]:
    return [names] if isinstance(names, str) else list(dict.fromkeys(names))


def _selected(checks: Names | None, leave_out: Names) -> list[str]:
    chosen = list(CHECKS) if checks is None else _listed(checks)
    for name in (*chosen, *_listed(leave_out)):
        if name not in CHECKS:
            raise ValueError(
                f"check_function: there is no check {name!r}; there are {', '.join(CHECKS)}"
            )
    return [name for name in CHECKS if name in chosen and name not in _listed(leave_out)]


def _precisions(dtypes: Names | None) -> list[str]:
    if dtypes is None:
        return list(PRECISIONS)
    given = (
        [dtypes] if isinstance(dtypes, str) or not isinstance(dtypes, Iterable) else list(dtypes)
    )
    names = [getattr(d, "name", None) or getattr(d, "__name__", str(d)) for d in given]
    for name in names:
        if name not in PRECISIONS:
            raise ValueError(
                "check_function: dtypes are 'float64' and 'float32' (complex arrays become "
                f"complex128 and complex64), not {name!r}"
            )
    return [name for name in PRECISIONS if name in names]


def _cause(failures: Sequence[Failure]) -> Exception | None:
    """Return the exception whose traceback helps: an error in the user's code, else None.

    The message says everything about a wrong result.
    """
    return None if _is_ours(failures[0].error) else failures[0].error


def _assert_asserts(name: str) -> None:
    """Raise RuntimeError under `python -O`, in which assertions never fail."""
    if not __debug__:
        raise RuntimeError(
            f"{name} is made of assertions, which Python leaves out with -O and PYTHONOPTIMIZE: "
            "run it without"
        )


def _message(title: str, failures: Sequence[Failure]) -> str:
    """Return the first failure in full, and one line for each of the others."""
    first, *others = failures
    lines = [f"{title}: {first.where}: {first.text}"]
    # numpy.testing begins with an empty line
    lines += [f"also {f.where}: {' '.join(f.text.split())[:200]}" for f in others[:SHOWN]]
    if len(others) > SHOWN:
        lines.append(f"and {len(others) - SHOWN} more")
    return "\n".join(lines)
