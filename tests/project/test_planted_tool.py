"""The defects that tools/planted.py plants: each has its place in the source."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("planted", ROOT / "tools" / "planted.py")
assert SPEC is not None and SPEC.loader is not None
planted = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(planted)


@pytest.mark.parametrize("name", planted.DEFECTS)
def test_a_defect_has_one_place(name):
    path, old, new = planted.DEFECTS[name]
    text = (ROOT / path).read_text()
    assert text.count(old) == 1
    ast.parse(text.replace(old, new))


def test_there_are_twenty_of_them():
    assert len(planted.DEFECTS) >= 20
