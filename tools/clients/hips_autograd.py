"""A pytest plugin that runs HIPS autograd's own tests on multigrad_autograd.

    python -m pytest -p hips_autograd tests/test_numpy.py

`--expected FILE` lists the expected failures, each with its reason. The run fails if one of them
passes, or if a test that is not listed fails.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import expected

import multigrad_autograd

multigrad_autograd.install()


pytest_addoption = expected.add_option


def key(item: Any) -> str:
    """Return the name of a test in its file."""
    return f"{Path(item.path).name}::{item.nodeid.partition('::')[2]}"


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    expected.mark(config, items, key)
