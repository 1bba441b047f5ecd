"""The tests. Their parameters come from plugin.py: one test per cell of each backend that was asked for."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

import pytest

from multigrad import extend
from multigrad.registry import OPS

from . import cells, saves

FLICKERING = "flickering:"


def exemption_of(backend: str, test_id: str) -> str | None:
    """The reason why a backend need not pass a test, None if it must."""
    table = extend.backend(backend).exemptions
    return table.get(test_id) or next((reason for pattern, reason in table.items() if fnmatchcase(test_id, pattern)), None)


def test_operation(cell: cells.Cell) -> None:
    """A cell of the table of operations by backends. An exempted one must fail, unless its reason says `flickering:`."""
    reason = exemption_of(cell.backend, cell.id)
    if reason is None:
        cell.execute()
        return
    try:
        cell.execute()
    except Exception:
        pytest.xfail(reason)
    if not reason.startswith(FLICKERING):
        pytest.fail(f"{cell.id} passes, yet the backend {cell.backend!r} exempts it ({reason}): remove the exemption")


def test_exemptions(backend: str) -> None:
    """Each exemption stands for a test that exists, at some level and precision."""
    for pattern in extend.backend(backend).exemptions:
        assert any(fnmatchcase(cell.id, pattern) for cell in cells.everything(backend)), \
            f"the backend {backend!r} exempts {pattern!r}, but there is no such test"


def test_samples(operation: str) -> None:
    """Every operation has samples: a plugin brings its own through the hook multigrad_samples."""
    assert not cells.missing(OPS[operation]), (
        f"the operation {operation!r} of {OPS[operation].module} has no samples: return them from the hook multigrad_samples, "
        "{operation: generator or 'module:name'}")


def test_saves(plan: tuple[str, str]) -> None:
    """The backward pass keeps no more than PyTorch's, so that everything else may be modified in place."""
    op = OPS[plan[0]]
    found, stated = set(op.kept(plan[1])), saves.allowed(op, plan[1])
    assert stated is not None and found <= stated, f"the gradient of {plan[0]} by {plan[1]} keeps {found - (stated or set())}"


def parameters(backends: list[str], level: str) -> dict[str, tuple[list[Any], list[str]]]:
    """Arguments and ids for the tests above, by the name of their argument."""
    chosen = [cell for name in backends for cell in cells.selected(name, level)]
    plans = list(saves.plans())
    return {
        "cell": (chosen, [f"{cell.backend}:{cell.id}" for cell in chosen]),
        "backend": (backends, backends),
        "operation": (list(OPS), list(OPS)),
        "plan": (plans, [f"{op}/saves/{argument}" for op, argument in plans]),
    }
