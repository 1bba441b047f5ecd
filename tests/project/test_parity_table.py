"""docs/parity.md and the files that it is made from: no row is empty, every test is there, and the
table is the one they describe.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import tool_modules

ROOT = Path(__file__).resolve().parents[2]
tool = tool_modules.tool("parity")


@pytest.fixture(scope="module")
def data():
    return tool.read()


def test_every_row_has_a_test_or_a_reason(data):
    assert tool.problems(data) == []


def test_the_table_is_up_to_date(data):
    assert tool.TABLE.read_text() == tool.render(data), "python tools/parity.py --write"


def test_comments_agree_with_the_table(data):
    """A test that names a feature behind its first line is one of those that the table has for
    it.
    """
    rows = {row.key: row for _, rows in data.features.values() for row in rows}
    named = 0
    for path in sorted((ROOT / "tests" / "parity").glob("test_*.py")):
        for test, comment in tool.tests_of(path).items():
            for key in re.findall(r"\bF\d{3}\b", comment):
                named += 1
                assert rows[key].none or f"parity/{path.name}::{test}" in rows[key].tests, (
                    f"{path.name}::{test} is said to show {key}"
                )
    assert named > 150


WRONG = [
    ([], "F001: an empty row"),
    # that of a class
    (
        ["core/test_tensor.py::test_detach"],
        "F001: there is no test core/test_tensor.py::test_detach",
    ),
    (["open: sometime"], "F001: 'sometime' is not an open issue"),
    (["none: no"], "F001: a reason of a few words is wanted"),
    (["see: autograd.nonesuch"], "F001: autograd.nonesuch has no test"),
]


@pytest.mark.parametrize(("texts", "message"), WRONG)
def test_what_is_wrong_is_found(texts, message):
    data = tool.Data({"A": ("", [tool.row("F001", texts)])}, {}, {}, {})
    (found,) = tool.problems(data)
    assert found.startswith(message)


def test_what_is_right_is_not():
    named = {
        "autograd": [
            tool.row("grad", ["core/test_tensor.py::TestPlace::test_detach"]),
            tool.row("g", ["see: autograd.grad"]),
        ]
    }
    data = tool.Data(
        {}, named, {"autograd.grad(*, x=None)": "so that", "autograd.nonesuch(y)": "so that"}, {}
    )
    assert tool.problems(data) == ["autograd.nonesuch(y): a parameter of an unknown name"]


def test_a_stale_table_is_told(monkeypatch, capsys, tmp_path):
    table = tmp_path / "parity.md"
    monkeypatch.setattr(tool, "TABLE", table)
    monkeypatch.setattr(tool, "compare", lambda data: [])
    for options, code, said in (("--check", 1, "is stale"), ("--write", 0, ""), ("--check", 0, "")):
        monkeypatch.setattr(sys, "argv", ["parity.py", options])
        assert tool.main() == code
        assert said in capsys.readouterr().out
    table.write_text(table.read_text().replace("F001", "F000"))
    assert tool.main() == 1
    assert "-| F000 |" in capsys.readouterr().out
