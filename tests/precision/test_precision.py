"""The instrument itself, and a taste of the sweep; the whole of it is `make test-precision`, or the
slow tests here.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

from multigrad import registry

pytest.importorskip("mparray")
pytest.importorskip("mpmath")
pytest.importorskip("scipy", reason="SciPy is not installed")

from mpmath import mp

from . import sweep
from .__main__ import BEGIN, END, write
from .differences import Diverged, exact, mixed, slope
from .exceptions import EXCUSED, excuse
from .measure import Error, of_array, of_number

TASTE = ("hypot", "logaddexp", "var", "prod", "linalg.trace", "special.expit")


@pytest.mark.parametrize("name", TASTE)
def test_rules_are_exact(name: str) -> None:
    assert sweep.complaints(sweep.measured(name)) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in sweep.operations() if n not in TASTE])
def test_every_rule_is_exact(name: str) -> None:
    assert sweep.complaints(sweep.measured(name)) == []


def test_a_wrong_rule_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    known = registry.OPS["square"]
    try:
        registry.elementwise("square(x, /)", x=lambda xp, x: (2 + 1e-12) * x, override=True)
        found = sweep.complaints(sweep.measured("square"))
    finally:
        registry.elementwise("square(x, /)", x=known.vjp["x"].fn, override=True)  # type: ignore[index]
        registry.OPS["square"] = known
    assert found and all(text.startswith("square, ") for text in found)
    assert sweep.complaints(sweep.measured("square")) == []


# ----- differences -----


def test_slopes_have_thirty_digits() -> None:
    with mp.workdps(60):
        for f, derivative, x in (
            (mp.sin, mp.cos, 1e300),
            (mp.log, lambda v: 1 / v, 1e-300),
            (mp.tanh, lambda v: mp.sech(v) ** 2, 200.0),
            (lambda v: v * v * v, lambda v: 3 * v * v, -2.5),
        ):
            v = mp.mpf(x)
            with mp.workdps(500):
                true = derivative(v)
            found = slope(lambda t, f=f, v=v: f(v + t), abs(v))
            assert abs(found / true - 1) < mp.mpf(10) ** -28
        assert abs(mixed(lambda s, t: mp.exp(s * 2 + t * 3)) - 6) < mp.mpf(10) ** -28


def test_a_kink_has_no_slope() -> None:
    with mp.workdps(60), pytest.raises(Diverged, match="in 2000 digits"):
        slope(lambda t: mp.sqrt(abs(t)) * (1 if t > 0 else -1))


# ----- measures -----


def test_errors_are_counted_in_epsilon() -> None:
    one = mp.one
    assert of_number(1.0, one) == (0, 0)
    assert of_number(1 + 3 * 2.0**-52, one) == (3, 3)
    assert of_number(0.25 * (1 + 2.0**-50), mp.mpf(0.25)) == (4, 1)
    assert of_number(np.complex128(1j), mp.mpc(0, 1)) == (0, 0)
    assert of_array(np.asarray([3.0, 4.0 + 5 * 2.0**-50]), exact(np.asarray([3.0, 4.0])))[0] == 4


@pytest.mark.parametrize(
    ("found", "true", "right"),
    [
        (math.nan, "1e400", True),
        (1.0, "1e400", False),
        (1e-310, "1e-400", True),
        (1e-300, "1e-400", False),
        (math.nan, "1", False),
        (1e-320, "0", False),
    ],
)
def test_out_of_range_only_the_range_counts(found: float, true: str, right: bool) -> None:
    assert of_number(found, mp.mpf(true))[0] == (0 if right else math.inf)


# ----- the verdict -----


def error(size: float, absolute: float, operation: str = "tanh") -> Error:
    return Error(operation, "real", "x", size, absolute, "0.5")


def test_what_is_worse_than_a_thousand_epsilon_is_a_bug() -> None:
    assert sweep.complaints([error(999.0, 999.0, "sin")]) == []
    assert sweep.complaints([error(1001.0, 0.1, "sin")]) == ["sin, real, x: 1e+03 epsilon at 0.5"]


def test_an_excuse_holds_up_to_its_absolute_error_and_as_long_as_it_is_needed() -> None:
    limit = EXCUSED["tanh", "real"].absolute
    assert sweep.complaints([error(1e15, limit)]) == [] and excuse(error(1e15, limit))
    assert "tanh, real, x: 1e+15 epsilon at 0.5" in sweep.complaints([error(1e15, 1.1 * limit)])
    assert sweep.complaints([error(5.0, 5.0)]) == [
        "tanh, real: the exception is no longer needed: remove it"
    ]


def test_what_has_no_reference_or_no_samples_is_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no reference" in sweep.complaints(sweep.measured("no_such_operation"))[0]
    monkeypatch.setattr(sweep.whole, "measured", lambda name: iter(()))
    assert "no samples" in sweep.complaints(sweep.measured("sum"))[0]


# ----- the page -----


def test_the_table_goes_between_the_markers(tmp_path: Path) -> None:
    path = tmp_path / "precision.md"
    path.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    rows = list(sweep.row("tanh", [error(1e15, 1.0)]))
    write(path, rows)
    text = path.read_text()
    assert text.startswith(f"before\n{BEGIN}\n") and text.endswith(f"{END}\nafter\n")
    assert "| tanh | real | 1.0e+15 |  |  | 0.5 | excused |" in text and "old" not in text
    path.write_text("no markers")
    with pytest.raises(SystemExit, match="lacks the markers"):
        write(path, rows)


def test_the_page_has_a_row_for_every_operation_of_multigrad_itself() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "precision.md").read_text()
    rows = set(re.findall(r"^\| (\S+) \| (?:real|complex) \|", page, re.MULTILINE))
    assert (
        {n for n in sweep.operations() if registry.OPS[n].builtin}
        <= rows
        <= set(sweep.operations())
    )
