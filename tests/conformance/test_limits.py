"""The limits of a library in a file: what it lacks is apart from what fails otherwise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("multigrad_conformance")

from multigrad_conformance import limits
from multigrad_conformance.certificate import CertificateError

LACKING = (
    "AttributeError: backend 'toy' has no function for the operation 'linalg.svd': give one in "
    "Backend.functions, or declare the operation with forward=."
)


def results(**tests: Any) -> Any:
    """A certificate with these tests: sin_vjp_real=["failed", reason]."""
    named = {name.replace("_", "/", 2): list(state) for name, state in tests.items()}
    return {"backends": {"toy": {"tests": named}}, "problems": {}}


def test_failures_become_limits(tmp_path: Path) -> None:
    path = tmp_path / "limits.json"
    told = list(
        limits.write(
            results(
                sin_forward_real=["passed"],
                pinv_forward_real=["failed", LACKING],
                std_forward_correction=["failed", "AssertionError: output 0"],
                add_forward_complex=["missing", "no complex"],
            ),
            path,
        )
    )
    assert json.loads(path.read_text()) == {
        "missing": {"pinv/forward/real": "the library has no linalg.svd"},
        "exemptions": {"std/forward/correction": "fill in the reason: AssertionError: output 0"},
    }
    assert told == [
        f"{path}: 1 tests need what the library lacks: linalg.svd",
        f"{path}: 1 tests are exempt, because the library does not do what the standard says, or "
        "the plugin is not finished: give each its reason",
    ]


def test_what_no_longer_fails_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "limits.json"
    known = {
        "missing": {"pinv/forward/real": "the library has no linalg.svd"},
        "exemptions": {"std/forward/axis": "a reason of mine", "sum/forward/all": "another"},
    }
    path.write_text(json.dumps(known))
    told = list(
        limits.write(
            results(
                pinv_forward_real=[
                    "failed",
                    "Failed: passes, yet ...: it hides what the library can do",
                ],
                std_forward_axis=["failed", "Failed: passes, yet ...: remove the exemption"],
                sum_forward_all=["exempt", "another"],
            ),
            path,
        )
    )
    assert json.loads(path.read_text()) == {
        "missing": {},
        "exemptions": {"sum/forward/all": "another"},
    }
    assert told == [f"{path}: 2 tests pass now, so their entries are removed"]


@pytest.mark.parametrize("text", ["{}", "3", "no JSON", '{"missing": {}, "exemptions": 3}'])
def test_a_file_of_something_else_is_kept(tmp_path: Path, text: str) -> None:
    path = tmp_path / "limits.json"
    path.write_text(text)
    with pytest.raises(CertificateError, match="limits.json has no limits of a library: expected"):
        list(limits.write(results(), path))
    assert path.read_text() == text
