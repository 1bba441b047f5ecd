"""The pytest fixtures for tests of your own code. plugin.py registers them.

Every run of pytest imports this module, so it imports multigrad only when a test requests a
fixture.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

BACKEND = "multigrad_backend"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        "multigrad_backends",
        "the backends of the fixtures xp, check_function and check_rule; default: every "
        "installed one",
        type="args",
        default=[],
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that requests a backend once per backend.

    The backends are those of the option, else of the ini file, else all installed ones.
    """
    if BACKEND in metafunc.fixturenames:
        names = asked(metafunc.config) or chosen(metafunc.config)
        metafunc.parametrize(BACKEND, names, indirect=True, ids=names, scope="session")


def asked(config: pytest.Config) -> list[str]:
    """Return the backends of the option, which plugin.py has tried."""
    return list(dict.fromkeys(config.getoption("--multigrad-backend")))


def chosen(config: pytest.Config) -> list[str]:
    """Return the backends that the project's ini file names, else the installed ones.

    Raises UsageError for an unknown name.
    """
    from .testing import installed, known

    named = list(dict.fromkeys(config.getini("multigrad_backends")))
    for name in named:
        if name not in known():
            raise pytest.UsageError(
                f"multigrad_backends names {name!r}, which is not a backend; there are "
                f"{', '.join(known())}"
            )
    return named or installed()


@pytest.fixture(scope="session")
def multigrad_backend(request: pytest.FixtureRequest) -> str:
    """The name of each installed backend in turn.

    The test is skipped, with the reason, if the backend cannot be used.
    """
    from multigrad import extend
    from multigrad.errors import BackendError

    name: str = request.param
    try:
        extend.backend(name)
    except BackendError as error:
        pytest.skip(f"the backend {name!r} cannot be used here: {error}")
    return name


@pytest.fixture(scope="session")
def xp(multigrad_backend: str) -> Any:
    """The differentiable Array API namespace of each installed backend in turn.

    It is `multigrad.namespace(name)`.
    """
    import multigrad

    return multigrad.namespace(multigrad_backend)


@pytest.fixture(scope="session")
def check_function(request: pytest.FixtureRequest) -> Callable[..., None]:
    """multigrad_conformance.check_function, on the backends of this run of pytest."""
    from . import testing

    return partial(testing.check_function, backends=_usable(request.config))


@pytest.fixture(scope="session")
def check_rule(request: pytest.FixtureRequest) -> Callable[..., None]:
    """multigrad_conformance.check_rule, on the backends of this run of pytest."""
    from . import testing

    return partial(testing.check_rule, backends=_usable(request.config))


def _usable(config: pytest.Config) -> list[str] | None:
    """Return the backends of the option, or those of the ini file that can be used.

    None if neither names any.
    """
    if asked(config) or not config.getini("multigrad_backends"):
        return asked(config) or None
    from .testing import works

    names = [name for name in chosen(config) if works(name)]
    if not names:
        pytest.skip("no backend that multigrad_backends names can be used here")
    return names
