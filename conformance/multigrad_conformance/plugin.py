"""The pytest plugin, with the options --multigrad-backend and --multigrad-samples.

    pytest --pyargs multigrad_conformance --multigrad-backend NAME --multigrad-samples short|full

pytest loads it in every run where it is installed. It imports multigrad and NumPy only if the tests
of this package are collected, or a test requests one of the fixtures (fixtures.py).
"""

from __future__ import annotations

import importlib.util
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .certificate import Results, write
from .journal import Journal

MODULE = "multigrad_conformance.test_conformance"
PROPERTY = "multigrad_conformance"
OPERATION = "test_operation["
"""The prefix of the name of a test of an operation on a backend."""

_backends = pytest.StashKey[list[str]]()
_parameters = pytest.StashKey[dict[str, Any]]()
_left_out = pytest.StashKey[dict[str, str]]()
_journals: list[Journal] = []
"""Those of the sessions that run in this process, each inside the one before it."""

pytest_plugins = ("multigrad_conformance.fixtures",)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("multigrad conformance")
    group.addoption(
        "--multigrad-backend",
        action="append",
        default=[],
        metavar="NAME",
        help="array library to test (repeatable); default: every installed one that works",
    )
    group.addoption(
        "--multigrad-usable",
        action="store_true",
        help="leave out backends that do not work, even requested ones, and report the reason",
    )
    group.addoption(
        "--multigrad-samples",
        choices=("short", "full", "random"),
        default="short",
        help="short (default): a few canonical shapes; full: every sample, layout and way to "
        "broadcast; random: shapes and values that hypothesis draws",
    )
    group.addoption(
        "--multigrad-seed",
        type=int,
        default=0,
        metavar="N",
        help="seed of the random level",
    )
    group.addoption(
        "--multigrad-json",
        metavar="PATH",
        help="write the results of each test as JSON, for the report and for comparing "
        "versions. Write --multigrad-json=PATH: as two words, an existing PATH would "
        "become pytest's root directory",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_left_out] = {}
    if (
        config.getoption("--multigrad-samples") == "random"
        and importlib.util.find_spec("hypothesis") is None
    ):
        from .randomly import NEEDED

        raise pytest.UsageError(NEEDED)
    path = None if hasattr(config, "workerinput") else config.getoption("--multigrad-json")
    # its file is there before the first import of a library, which may end the process
    journal = Journal(Path(path) if path else None)
    _journals.append(journal)

    def forget() -> None:
        _journals.remove(journal)
        if journal.document is None:  # the session did not begin
            journal.close()

    config.add_cleanup(forget)
    if config.getoption("--multigrad-backend"):
        config.stash[_backends] = _find(config)


def backends_of(config: pytest.Config) -> list[str]:
    """Return the backends to test."""
    if _backends not in config.stash:
        config.stash[_backends] = _find(config)
    return config.stash[_backends]


def _find(config: pytest.Config) -> list[str]:
    """Return the usable backends.

    A backend that was requested by name must work; any other unusable backend is only reported.
    """
    import multigrad
    from multigrad import extend
    from multigrad.errors import BackendError

    asked = list(dict.fromkeys(config.getoption("--multigrad-backend")))
    extend.load_plugins()  # their operations are tested, too
    usable = []
    for name in asked or sorted(b.name for b in multigrad.backends() if b.state != "operations"):
        try:
            extend.backend(name)
            usable.append(name)
        except BackendError as error:
            if asked and not config.getoption("--multigrad-usable"):
                raise pytest.UsageError(str(error)) from error
            config.stash[_left_out][name] = str(error)
    return usable


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.module.__name__ != MODULE:
        return
    config = metafunc.config
    if _parameters not in config.stash:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            config.stash[_parameters] = metafunc.module.parameters(
                backends_of(config),
                config.getoption("--multigrad-samples"),
                config.getoption("--multigrad-seed"),
            )
    for argument in metafunc.fixturenames:
        if argument in config.stash[_parameters]:
            values, ids = config.stash[_parameters][argument]
            metafunc.parametrize(argument, values, ids=ids)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Ignore warnings of libraries at singular points, which the tests cover on purpose."""
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
    cell: Any = callspec and callspec.params.get("conformance_cell")
    if call.when == "call" and hasattr(cell, "backend"):
        report = outcome.get_result()
        error = call.excinfo.value if call.excinfo else None
        # in these tests, a skip always means a missing capability of the library
        if report.skipped and not hasattr(report, "wasxfail"):
            state, reason = "missing", str(error).removeprefix("missing: ")
        else:
            state = "exempt" if hasattr(report, "wasxfail") else report.outcome
            reason = getattr(report, "wasxfail", "").removeprefix("reason: ") or (
                _told(error) if error else ""
            )
        report.user_properties.append((PROPERTY, (cell.backend, cell.id, state, reason)))


def _told(error: BaseException) -> str:
    """Return the first lines of an error, and the call that it is about, as one line."""
    words = " ".join(str(error).split())[:200]
    return " ".join((f"{type(error).__name__}: {words}", *getattr(error, "__notes__", ())))


def pytest_sessionstart(session: pytest.Session) -> None:
    if _journals[-1].file is not None:
        _journals[-1].note("begun", document(session.config))


def document(config: pytest.Config) -> Results:
    """Return the certificate without results."""
    from . import facts

    names = backends_of(config)
    selected_by = list(facts.selection(config.invocation_params.args))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return facts.document(
            names, config.getoption("--multigrad-samples"), config.stash[_left_out], selected_by
        )


def pytest_runtest_logstart(nodeid: str, location: Any) -> None:
    _journals[-1].note("started", _test_of(nodeid))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    # User properties replace the stash, since under xdist the tests run in other processes.
    properties: list[tuple[str, Any]] = report.user_properties
    results = [value for name, value in properties if name == PROPERTY and report.when == "call"]
    # a worker of xdist that died, or an error in setup or teardown
    if report.failed and not results and _test_of(report.nodeid).startswith(OPERATION):
        backend, _, test_id = (
            _test_of(report.nodeid).removeprefix(OPERATION).removesuffix("]").partition(":")
        )
        results = [(backend, test_id, "failed", _told_by(report))]
    for result in results:
        _journals[-1].note("result", *result)
    if report.failed and not results:  # a test of the suite itself, or setup or teardown of a test
        _journals[-1].note("problem", _test_of(report.nodeid), _told_by(report))


def _test_of(nodeid: str) -> str:
    return nodeid.partition("::")[2] or nodeid


def _told_by(report: pytest.TestReport) -> str:
    """Return the error of a report as one line."""
    crash = getattr(report.longrepr, "reprcrash", None)
    return " ".join((crash.message if crash else report.longreprtext or "it failed").split())[:300]


def pytest_sessionfinish(session: pytest.Session) -> None:
    document = _journals[-1].certificate()
    if document is not None:
        write(document, Path(session.config.getoption("--multigrad-json")))
    _journals[-1].close()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    tested = _journals[-1].tests
    if _parameters not in config.stash and not tested:
        return
    terminalreporter.section("multigrad conformance")
    for name, tests in tested.items():
        states = [state for state, _ in tests.values()]
        counts = ", ".join(
            f"{states.count(state)} {state}" for state in ("passed", "failed", "exempt", "missing")
        )
        terminalreporter.line(
            f"{name}: {len({i.partition('/')[0] for i in tests})} operations, {counts} "
            f"({config.getoption('--multigrad-samples')} samples)"
        )
        for i, (state, reason) in tests.items():
            if state == "exempt":
                terminalreporter.line(f"  exempt {i}: {reason}")
        for reason, n in Counter(
            reason for state, reason in tests.values() if state == "missing"
        ).items():
            terminalreporter.line(f"  missing: {reason} ({n} tests)")
    for name, why in config.stash[_left_out].items():
        terminalreporter.line(f"{name}: not tested: {why}")
    for line in _unsampled():
        terminalreporter.line(line)


def _unsampled() -> Iterator[str]:
    """Yield a line for each operation that is not tested, or in part, whatever was selected."""
    from multigrad.registry import OPS

    from . import cells
    from .samples import samples_of, trouble_of

    for op in OPS.values():
        if trouble_of(op.name):
            yield f"{op.name}: not all of its samples can be used: {trouble_of(op.name)}"
        elif not samples_of(op.name):
            yield f"{op.name}: not tested: it has no samples; {cells.to_add(op)}"
