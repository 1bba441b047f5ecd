"""The tests. Their parameters come from plugin.py: one test per cell of each backend that was asked
for. Their names are those of no fixture of a project, whose conftest.py pytest may take for one of
this package, too."""

from __future__ import annotations

from fnmatch import fnmatchcase
from traceback import walk_tb
from typing import Any

import pytest

from multigrad import extend
from multigrad.registry import OPS

from . import cells, declared, saves
from .target import Target

FLICKERING = "flickering:"
MISSING = "missing: "


def exemption_of(backend: str, test_id: str) -> str | None:
    """The reason why a backend need not pass a test, None if it must."""
    table = extend.backend(backend).exemptions
    return table.get(test_id) or next(
        (reason for pattern, reason in table.items() if fnmatchcase(test_id, pattern)), None
    )


def test_operation(conformance_cell: cells.Cell) -> None:
    """A cell of the table of operations by backends.

    One of what is missing must raise; an exempted one must fail, unless its reason says
    `flickering:`."""
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
    """The library raises there, as its backend or itself says.

    What it computes is neither hidden nor wrong.
    """
    try:
        cell.execute()
    except Exception as error:
        if _is_wrong(error):
            pytest.fail(
                f"{cell.id}: {reason}, yet the library computes it, and not what NumPy does; it "
                "should raise. If it cannot be helped, exempt the test: "
                f"Backend(exemptions={{{cell.id!r}: reason}}). {error}"
            )
        pytest.skip(f"{MISSING}{reason}")
    # which vmap refuses, whoever could do it
    if not (cell.check.startswith("vmap") and cell.needs & {"data_dependent", "boolean_indexing"}):
        pytest.fail(
            f"{cell.id} passes, yet the backend {cell.backend!r} says {reason!r}: it hides what "
            "the library can do. Change its Capabilities"
        )


def _is_wrong(error: Exception) -> bool:
    """Whether it is the suite that raised, because of a result, and not the library."""
    if not isinstance(error, AssertionError) or error.__traceback__ is None:
        return False
    *_, (frame, _) = walk_tb(error.__traceback__)
    return str(frame.f_globals.get("__name__", "")).startswith((f"{__package__}.", "numpy.testing"))


def test_declarations(conformance_backend: str) -> None:
    """What is declared as missing stands for tests that exist, at some level and precision, and
    nothing is that the library can do.
    """
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
    """Each exemption stands for a test that exists, at some level and precision."""
    backend = conformance_backend
    for pattern in extend.backend(backend).exemptions:
        assert any(fnmatchcase(cell.id, pattern) for cell in cells.everything(backend)), (
            f"the backend {backend!r} exempts {pattern!r}, but there is no such test"
        )


def test_samples(conformance_operation: str) -> None:
    """Every operation has samples: a plugin brings its own through the hook multigrad_samples."""
    operation = conformance_operation
    assert not cells.unsampled(OPS[operation]), (
        f"the operation {operation!r} of {OPS[operation].module} has no samples: return them "
        "from the hook multigrad_samples, {operation: generator or 'module:name'}"
    )


def test_saves(conformance_plan: tuple[str, str]) -> None:
    """The backward pass keeps no more than PyTorch's, so that everything else may be modified in
    place.
    """
    plan = conformance_plan
    op = OPS[plan[0]]
    found, stated = set(op.kept(plan[1])), saves.allowed(op, plan[1])
    assert stated is not None and found <= stated, (
        f"the gradient of {plan[0]} by {plan[1]} keeps {found - (stated or set())}"
    )


def parameters(
    backends: list[str], level: str, seed: int = 0
) -> dict[str, tuple[list[Any], list[str]]]:
    """Arguments and ids for the tests above, by the name of their argument."""
    chosen = [cell for name in backends for cell in cells.selected(name, level, seed=seed)]
    plans = list(saves.plans())
    return {
        "conformance_cell": (chosen, [f"{cell.backend}:{cell.id}" for cell in chosen]),
        "conformance_backend": (backends, backends),
        "conformance_operation": (list(OPS), list(OPS)),
        "conformance_plan": (plans, [f"{op}/saves/{argument}" for op, argument in plans]),
    }
