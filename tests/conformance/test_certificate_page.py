"""The page of a certificate in a browser: its filters hide rows, columns and whole backends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import browser
import pytest
from browser import Browser, OpenPage

pytest.importorskip("multigrad_conformance")

from multigrad_conformance import page

pytestmark = pytest.mark.skipif(browser.PROGRAM is None, reason=browser.REASON)


def backend(*tests: str, **failed: str) -> dict[str, Any]:
    states = {test: ["passed"] for test in tests}
    states |= {f"sin/{check}/real": ["failed", why] for check, why in failed.items()}
    return {"lacks": {}, "tests": states, "not run": [], "runs": [{"library": "one 1.0"}]}


RESULTS = {
    "format": 2,
    "multigrad": "0.1.0",
    "samples": "short",
    "operations": {
        "sin": {"chapter": "elementwise", "kind": "elementwise"},
        "sum": {"chapter": "statistical", "kind": "multilinear"},
    },
    "left out": {},
    "problems": {},
    "backends": {
        "one": backend("sin/forward/real", "sum/forward/real", vjp="off by a sign"),
        "two": backend("sin/forward/real", "sum/vjp/real"),
    },
}
ROWS = "tr[data-state]"


@pytest.fixture
def certificate(tmp_path: Path) -> Iterator[OpenPage]:
    page.write(RESULTS, tmp_path / "conformance.html")
    started = Browser(tmp_path / "browser")
    yield OpenPage(started, tmp_path / "conformance.html")
    started.close()


def test_the_filters_of_a_certificate(certificate: OpenPage) -> None:
    assert certificate.text("#count") == "5 of 5 rows" and certificate.count(ROWS) == 5
    certificate.write("[name=text]", "OFF sign")
    assert certificate.text("#count") == "1 of 5 rows" and certificate.count(ROWS) == 1
    assert certificate.count("tr.chapter") == 0, "a chapter without rows is hidden"
    certificate.click("[type=reset]")
    assert certificate.count(ROWS) == 5 and certificate.count("tr.chapter") == 4
    for name, value, rows in (("state", "failed", 2), ("check", "vjp", 3), ("backend", "two", 2)):
        certificate.choose(f"[name={name}]", value)
        assert certificate.count(ROWS) == rows, name
        if name == "check":
            assert certificate.count("[data-column=forward]") == 0
        if name == "backend":
            assert certificate.count("section") == 1
        certificate.click("[type=reset]")
    assert certificate.count("[data-column=forward]") > 0 and certificate.count("section") == 2
    certificate.check()
