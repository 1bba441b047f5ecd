"""A pytest plugin: SciPy's own tests of array libraries run with multigrad's namespace as the
library, and with no other.

    SCIPY_ARRAY_API=1 python -m pytest -p scipy_backend --pyargs scipy.stats -m array_api_backends

SciPy's fixture `xp` is made for a fixed list of libraries when scipy.conftest is imported. This
plugin imports it first, and puts the same fixture with another list in its place; SciPy's files
stay as they are. `--expected FILE` lists the tests that fail, each with the reason: one that passes
fails the run, as one does that fails and is not listed. `--failed FILE` collects the failures, in
the form of that list.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import expected
import pytest
import scipy
import scipy.conftest as theirs

import multigrad as mg

HOME = Path(scipy.__file__).parent
XP = mg.namespace("numpy")

theirs.xp_known_backends.add(XP.__name__)
theirs.xp = pytest.fixture(
    params=[pytest.param(XP, id="multigrad", marks=pytest.mark.array_api_backends)]
)(inspect.unwrap(theirs.xp))
# Theirs adds a list to the devices, which since edition 2025.12 of the standard are a tuple.
theirs.devices = pytest.fixture(
    lambda xp: [*xp.__array_namespace_info__().devices(), None], name="devices"
)


def pytest_addoption(parser: Any) -> None:
    expected.add_option(parser)
    parser.addoption("--failed", help="a file to which the failures are added")


def key(item: Any) -> str:
    """The name of a test, wherever SciPy is installed."""
    return f"{Path(item.path).relative_to(HOME).as_posix()}::{item.nodeid.partition('::')[2]}"


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    expected.mark(config, items, key)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Any:
    report = yield
    path = item.config.getoption("--failed")
    if path and report.failed:
        said = str(call.excinfo.value) if call.excinfo else str(report.longrepr)
        words = " ".join(said.split())[:200]
        with open(path, "a") as file:
            file.write(
                f"# {type(call.excinfo.value).__name__ if call.excinfo else 'passed'}: {words}\n"
                f"{key(item)}\n"
            )
    return report
