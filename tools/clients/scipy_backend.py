"""A pytest plugin that runs SciPy's own tests of array libraries on multigrad's namespace alone.

    SCIPY_ARRAY_API=1 python -m pytest -p scipy_backend --pyargs scipy.stats -m array_api_backends

SciPy builds its fixture `xp` for a fixed list of libraries when scipy.conftest is imported. This
plugin imports it first, and replaces the fixture by the same one with another list; SciPy's files
are unchanged. `--expected FILE` lists the expected failures, each with its reason. The run fails if
one of them passes, or if a test that is not listed fails. `--failed FILE` collects the failures, in
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
# SciPy's fixture adds a list to the devices, which are a tuple since edition 2025.12 of the
# standard.
theirs.devices = pytest.fixture(
    lambda xp: [*xp.__array_namespace_info__().devices(), None], name="devices"
)


def pytest_addoption(parser: Any) -> None:
    expected.add_option(parser)
    parser.addoption("--failed", help="a file to which the failures are added")


def key(item: Any) -> str:
    """Return the name of a test, independent of SciPy's location."""
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
