"""The tests. plugin.py gives the parameters: one test per cell of each requested backend.

Their parameters have unusual names, because pytest may apply the conftest.py of a project, with its
fixtures, to this package.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from traceback import walk_tb
from typing import Any

import pytest

from multigrad import extend
from multigrad.registry import OPS

from . import cells, declared, keywords, saves
from .samples import samples_of, trouble_of
from .target import Target

FLICKERING = "flickering:"
MISSING = "missing: "


def exemption_of(backend: str, test_id: str) -> str | None:
    """Return the reason why a backend may fail a test, None if it must pass."""
    table = extend.backend(backend).exemptions
    return table.get(test_id) or next(
        (reason for pattern, reason in table.items() if fnmatchcase(test_id, pattern)), None
    )


def test_operation(conformance_cell: cells.Cell) -> None:
    """Run a cell of the table of operations by backends.

    A missing cell must raise. An exempted cell must fail, unless its reason begins with
    `flickering:`.
    """
    cell = conformance_cell
    reason = exemption_of(cell.backend, cell.id)
    if reason is None:
        missing = cell.missing()
        if missing:
            _must_be_missing(cell, missing)
        else:
            cell.execute()
        return
    try:
        cell.execute()
    except Exception:
        pytest.xfail(reason)
    if not reason.startswith(FLICKERING):
        pytest.fail(
            f"{cell.id} passes, yet the backend {cell.backend!r} exempts it ({reason}): remove "
            "the exemption"
        )


def _must_be_missing(cell: cells.Cell, reason: str) -> None:
    """The library must raise, as it or its backend declares.

    This neither hides a capability nor hides wrong results.
    """
    try:
        cell.execute()
    except Exception as error:
        if _is_wrong(error):
            call = " ".join(getattr(error, "__notes__", ()))
            pytest.fail(
                f"{cell.id}: {reason}, yet the library computes it, and not what NumPy does; it "
                "should raise. If it cannot be helped, exempt the test: "
                f"Backend(exemptions={{{cell.id!r}: reason}}). {error} {call}"
            )
        pytest.skip(f"{MISSING}{reason}")
    # vmap refuses such operations even if the library supports them
    if not (cell.check.startswith("vmap") and cell.needs & {"data_dependent", "boolean_indexing"}):
        pytest.fail(
            f"{cell.id} passes, yet the backend {cell.backend!r} says {reason!r}: it hides what "
            "the library can do. Change its Capabilities"
        )


def _is_wrong(error: Exception) -> bool:
    """Return whether the suite raised because of a result, rather than the library."""
    if not isinstance(error, AssertionError) or error.__traceback__ is None:
        return False
    *_, (frame, _) = walk_tb(error.__traceback__)
    return str(frame.f_globals.get("__name__", "")).startswith((f"{__package__}.", "numpy.testing"))


def test_declarations(conformance_backend: str) -> None:
    """Declarations of missing tests must match existing tests, and hide no capability."""
    backend = conformance_backend
    for text in declared.hidden(Target(backend)):
        raise AssertionError(
            f"the backend {backend!r} says {text}: it hides what the library can do. Change its "
            "Capabilities"
        )
    for name in extend.backend(backend).capabilities.missing:
        assert any(
            fnmatchcase(cell.id, cells.missing_pattern(name)) for cell in cells.everything(backend)
        ), (
            f"the backend {backend!r} says that {name!r} is missing, but there is no such "
            "operation or test"
        )


def test_exemptions(conformance_backend: str) -> None:
    """Each exemption must match an existing test, at some level and precision."""
    backend = conformance_backend
    for pattern in extend.backend(backend).exemptions:
        assert any(fnmatchcase(cell.id, pattern) for cell in cells.everything(backend)), (
            f"the backend {backend!r} exempts {pattern!r}, but there is no such test"
        )


def test_samples(conformance_operation: str) -> None:
    """Every operation must have samples that can be used, and every keyword one that sets it.

    A plugin's come from the hook multigrad_samples.
    """
    operation = conformance_operation
    op = OPS[operation]
    trouble, samples = trouble_of(operation), samples_of(operation)
    assert not trouble, f"the samples of {operation!r} of {op.module} cannot all be used: {trouble}"
    assert samples, f"the operation {operation!r} of {op.module} has no samples: {cells.to_add(op)}"
    unset = keywords.unsampled(op, samples)
    assert not unset, (
        f"no sample of the operation {operation!r} of {op.module} gives {' and '.join(unset)} "
        "another value than the default, so a library may ignore it: add one"
    )


def test_saves(conformance_plan: tuple[str, str]) -> None:
    """The backward pass must save no more than PyTorch's, so that other arrays may be modified."""
    plan = conformance_plan
    op = OPS[plan[0]]
    kept, stated = set(op.kept(plan[1])), saves.allowed(op, plan[1])
    assert stated is not None and kept <= stated, (
        f"the gradient of {plan[0]} by {plan[1]} keeps {kept - (stated or set())}"
    )


def parameters(
    backends: list[str], level: str, seed: int = 0
) -> dict[str, tuple[list[Any], list[str]]]:
    """Return arguments and ids for the tests above, by the name of their argument."""
    chosen = [cell for name in backends for cell in cells.selected(name, level, seed=seed)]
    plans = list(saves.plans())
    return {
        "conformance_cell": (chosen, [f"{cell.backend}:{cell.id}" for cell in chosen]),
        "conformance_backend": (backends, backends),
        "conformance_operation": (list(OPS), list(OPS)),
        "conformance_plan": (plans, [f"{op}/saves/{argument}" for op, argument in plans]),
    }
