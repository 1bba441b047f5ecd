"""A plugin of pytest: `-p orders --shuffled SEED` for random order, `-p orders --twice` for all tests
twice in one process.
"""

from __future__ import annotations

import random
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shuffled", type=int, metavar="SEED")
    parser.addoption("--twice", action="store_true")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    seed = config.getoption("--shuffled")
    if seed is not None:
        random.Random(seed).shuffle(items)
    if config.getoption("--twice"):
        items += items


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if config.getoption("--shuffled") is not None:
        terminalreporter.line(f"in random order: ORDER={config.getoption('--shuffled')}")
