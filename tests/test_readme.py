"""Every Python example of the README and of the guides runs, in order, in one session each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
GUIDES = [ROOT / "docs" / "transformations.md", ROOT / "docs" / "seeing.md"]


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


@pytest.mark.parametrize("guide", GUIDES, ids=lambda p: p.stem)
@pytest.mark.filterwarnings("error", "ignore:Converting a tensor with requires_grad=True")  # which the guide to breaks is about
def test_guides(guide, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # pictures are written there
    blocks = re.findall(r"```python\n(.*?)```", guide.read_text(), re.S)
    assert len(blocks) >= 3
    scope: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(guide), "exec"), scope)
