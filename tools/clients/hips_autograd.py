"""A pytest plugin: HIPS autograd's own tests run with multigrad_autograd in autograd's place.

    python -m pytest -p hips_autograd tests/test_numpy.py

`--expected FILE` lists the tests that fail, each with the reason: one that passes fails the run, as
one does that fails and is not listed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import expected

import multigrad_autograd

multigrad_autograd.install()


pytest_addoption = expected.add_option


def key(item: Any) -> str:
    """The name of a test in its file."""
    return f"{Path(item.path).name}::{item.nodeid.partition('::')[2]}"


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    expected.mark(config, items, key)
