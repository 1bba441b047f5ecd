"""The pytest plugin: `pytest --pyargs multigrad_conformance --multigrad-backend NAME --multigrad-samples short|full`.

It is loaded in every run of pytest where it is installed, so it does nothing, and imports nothing, until the tests of
this package are collected.
"""

from __future__ import annotations

import importlib.util
import json
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

MODULE = "multigrad_conformance.test_conformance"
PROPERTY = "multigrad_conformance"

_backends = pytest.StashKey[list[str]]()
_parameters = pytest.StashKey[dict[str, Any]]()
_left_out = pytest.StashKey[dict[str, str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("multigrad conformance")
    group.addoption("--multigrad-backend", action="append", default=[], metavar="NAME",
                    help="array library to test (repeatable); default: every installed one that works here")
    group.addoption("--multigrad-samples", choices=("short", "full", "random"), default="short",
                    help="short (default): a few canonical shapes; full: every sample, layout and way to broadcast; random: shapes and values "
                         "that hypothesis draws")
    group.addoption("--multigrad-seed", type=int, default=0, metavar="N", help="what the random level draws is the same for the same number")
    group.addoption("--multigrad-json", metavar="PATH", help="write the results of each test as JSON, for the report and for comparing versions")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_left_out] = {}
    if config.getoption("--multigrad-samples") == "random" and importlib.util.find_spec("hypothesis") is None:
        from .randomly import NEEDED

        raise pytest.UsageError(NEEDED)
    if config.getoption("--multigrad-backend"):
        config.stash[_backends] = _find(config)


def backends_of(config: pytest.Config) -> list[str]:
    """The backends to test."""
    if _backends not in config.stash:
        config.stash[_backends] = _find(config)
    return config.stash[_backends]


def _find(config: pytest.Config) -> list[str]:
    """A backend that was asked for by name must work; of the others, those that do not are told."""
    import multigrad
    from multigrad import extend
    from multigrad.errors import BackendError

    asked = list(dict.fromkeys(config.getoption("--multigrad-backend")))
    extend.load_plugins()  # whose operations are tested, too
    found = []
    for name in asked or sorted(b.name for b in multigrad.backends() if b.state != "operations"):
        try:
            extend.backend(name)
            found.append(name)
        except BackendError as error:
            if asked:
                raise pytest.UsageError(str(error)) from error
            config.stash[_left_out][name] = str(error)
    return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.module.__name__ != MODULE:
        return
    config = metafunc.config
    if _parameters not in config.stash:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            config.stash[_parameters] = metafunc.module.parameters(backends_of(config), config.getoption("--multigrad-samples"),
                                                                         config.getoption("--multigrad-seed"))
    for argument in metafunc.fixturenames:
        if argument in config.stash[_parameters]:
            values, ids = config.stash[_parameters][argument]
            metafunc.parametrize(argument, values, ids=ids)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """At singular points libraries warn about what the tests are there to look at."""
    if getattr(getattr(item, "module", None), "__name__", "") != MODULE:
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    outcome: Any = yield
    callspec: Any = getattr(item, "callspec", None)
    cell: Any = callspec and callspec.params.get("cell")
    if call.when == "call" and hasattr(cell, "backend"):
        report = outcome.get_result()
        error = call.excinfo.value if call.excinfo else None
        if report.skipped and not hasattr(report, "wasxfail"):  # all that the tests skip is what a library lacks
            state, reason = "missing", str(error).removeprefix("missing: ")
        else:
            state = "exempt" if hasattr(report, "wasxfail") else report.outcome
            reason = getattr(report, "wasxfail", "").removeprefix("reason: ") or (_told(error) if error else "")
        report.user_properties.append((PROPERTY, (cell.backend, cell.id, state, reason)))


def _told(error: BaseException) -> str:
    """The first lines of an error, as one."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines)[:200]}"


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    # User properties, not the stash, since under xdist the tests run in other processes.
    properties: list[tuple[str, Any]] = report.user_properties
    for name, value in properties:
        if name == PROPERTY and report.when == "call":
            backend, test_id, state, reason = value
            _collected.setdefault(backend, {})[test_id] = (state, reason)


_collected: dict[str, dict[str, tuple[str, str]]] = {}


def pytest_sessionfinish(session: pytest.Session) -> None:
    path = session.config.getoption("--multigrad-json")
    if path and not hasattr(session.config, "workerinput"):
        Path(path).write_text(json.dumps(document(session.config), indent=1, sort_keys=True) + "\n")


def document(config: pytest.Config) -> dict[str, Any]:
    """The results as they are written: the same tests in the same order give the same text, but for what changed."""
    import multigrad
    from multigrad import extend
    from multigrad.registry import OPS

    extend.load_plugins()  # with -n, this process has run no test

    return {
        "multigrad": multigrad.__version__,
        "samples": config.getoption("--multigrad-samples"),
        "operations": {name: {"chapter": op.chapter, "kind": op.kind} for name, op in OPS.items()},
        "left out": config.stash[_left_out],
        "backends": {name: {"lacks": _lacks(name), "tests": {i: [state, reason] if reason else [state] for i, (state, reason) in tests.items()}}
                     for name, tests in _collected.items()},
    }


def _lacks(name: str) -> dict[str, str]:
    """What a library cannot do, with the reason, by capability, operation or test."""
    from multigrad import extend

    backend = extend.backend(name)
    return backend.lacks() | dict(backend.capabilities.missing)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if _parameters not in config.stash and not _collected:
        return
    terminalreporter.section("multigrad conformance")
    for name, tests in _collected.items():
        states = [state for state, _ in tests.values()]
        counts = ", ".join(f"{states.count(state)} {state}" for state in ("passed", "failed", "exempt", "missing"))
        terminalreporter.line(f"{name}: {len({i.partition('/')[0] for i in tests})} operations, {counts} "
                              f"({config.getoption('--multigrad-samples')} samples)")
        for i, (state, reason) in tests.items():
            if state == "exempt":
                terminalreporter.line(f"  exempt {i}: {reason}")
        for reason, n in Counter(reason for state, reason in tests.values() if state == "missing").items():
            terminalreporter.line(f"  missing: {reason} ({n} tests)")
    for name, why in config.stash[_left_out].items():
        terminalreporter.line(f"{name}: not tested: {why}")
