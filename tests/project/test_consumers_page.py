"""docs/consumers.md is what the tables of consumers make, and every call is recorded where it is
tried.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tool_modules
from consumer_tables import LIBRARY, Call, Outcome, Table

import multigrad as mg

ROOT = Path(__file__).resolve().parents[2]
tool = tool_modules.tool("consumers")


@pytest.fixture(scope="module")
def libraries() -> Any:
    return tool.read()


@pytest.mark.sweep
def test_the_page_is_what_the_tables_make(libraries: Any) -> None:
    assert tool.PAGE.read_text() == tool.render(libraries), "python tools/consumers.py"


def test_every_call_is_recorded_and_no_other(libraries: Any) -> None:
    for library in libraries.values():
        for table in library.tables:
            tried = {
                (call.name, key)
                for call in table.calls
                for key, setting in table.settings.items()
                if not setting.sample or key in call.also
            }
            recorded = {
                (name, key) for name, row in library.outcomes[table.stem].items() for key in row
            }
            assert recorded == tried, table.stem


PROMISED = {
    "SciPy": 217,
    "array-api-extra": 25,
    "scikit-learn": 49,
    "xarray": 76,
    "other libraries": 86,
    "NumPy": 180,
}


def test_as_many_gradients_as_promised(libraries: Any) -> None:
    """What was reached is not given up, whatever a table is recorded anew with."""
    found = {name: library.totals()["checked"] for name, library in libraries.items()}
    assert {name: found[name] for name in PROMISED if found[name] < PROMISED[name]} == {}


# ----- what a table lets through -----

V = np.asarray([0.5, 1.5])


def outcome(function: Any, reference: Any = None) -> Outcome:
    call = Call("f", function, (V,), raw=reference)
    return Table("a library", "no_file", [call], settings=LIBRARY).outcome(call, "numpy")


def test_what_is_right() -> None:
    assert outcome(lambda x: x * x) == Outcome("Tensor", "checked")
    assert outcome(lambda x: x > 1) == Outcome("Tensor", "none")
    assert outcome(lambda x: np.asarray(x)) == Outcome("plain", "converts")
    assert outcome(lambda x: float(x[0])) == Outcome("plain", "warned")


def write_after_use(x: Any) -> Any:
    y = x * 1.0
    z = y * y
    y[0] = 0.0
    return z


def test_what_works_in_the_context() -> None:
    assert outcome(write_after_use) == Outcome("Tensor", "checked, in the context")


def raising(x: Any) -> Any:
    raise ZeroDivisionError("once")


def test_what_is_silent_or_wrong() -> None:
    with pytest.raises(
        AssertionError, match="SILENT: a result that depends on an argument has no gradient"
    ):
        outcome(lambda x: x.detach() * 2 if isinstance(x, mg.Tensor) else x * 2)
    with pytest.raises(AssertionError, match="SILENT"):
        outcome(lambda x: (x, x.detach() * 2) if isinstance(x, mg.Tensor) else (x, x * 2))
    with pytest.raises(AssertionError, match="SILENT"):  # beside a result that is nan
        outcome(
            lambda x: (x.detach() if isinstance(x, mg.Tensor) else x) * np.asarray([1.0, np.nan])
        )
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        outcome(lambda x: x * x if isinstance(x, mg.Tensor) else x * x * x)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        outcome(lambda x: x * x.detach() if isinstance(x, mg.Tensor) else x * x)
    with pytest.raises(AssertionError, match="no reason has these words: ZeroDivisionError: once"):
        outcome(raising, lambda x: x)
