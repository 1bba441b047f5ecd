"""Every Python example of the README runs, in order, in one session."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


@pytest.mark.filterwarnings("error")
def test_examples():
    pytest.importorskip("jax")
    from multigrad import registry

    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
    assert len(blocks) >= 5
    scope: dict[str, object] = {}
    try:
        for block in blocks:
            exec(compile(block, str(README), "exec"), scope)
    finally:
        registry.OPS.pop("example.softplus", None)
