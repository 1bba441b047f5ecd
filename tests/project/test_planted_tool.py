"""The defects that tools/planted.py plants: each has its place in the source."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from tool_modules import tool

ROOT = Path(__file__).parents[2]
planted = tool("planted")


@pytest.mark.parametrize("name", planted.DEFECTS)
def test_a_defect_has_one_place(name):
    path, old, new = planted.DEFECTS[name]
    text = (ROOT / path).read_text()
    assert text.count(old) == 1
    ast.parse(text.replace(old, new))
