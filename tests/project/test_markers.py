"""How tests/conftest.py gives tests to the levels."""

from __future__ import annotations

from typing import Any

import conftest
import pytest

TESTS = conftest.HERE


def reads_a_name() -> Any:
    return jax.numpy  # type: ignore[name-defined]  # noqa: F821


def has_a_string() -> Any:
    return conftest.mg.zeros(2, backend="jax")


def neither() -> Any:
    """No library, only the word jax here."""
    return conftest.mg.zeros(2)


@pytest.mark.parametrize("prefix", conftest.SWEPT_ON_JAX)
def test_each_prefix_of_the_modules_left_out_on_jax_matches_a_file(prefix: str) -> None:
    files = [path.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py")]
    assert any(file.startswith(prefix) for file in files)


@pytest.mark.parametrize("function", [reads_a_name, has_a_string])
def test_what_uses_jax_is_not_quick(function: Any) -> None:
    assert "jax" in conftest.words(function.__code__)


def test_what_uses_no_library_is() -> None:
    assert not conftest.APART & conftest.words(neither.__code__)
