"""No rule, and no form of an operation, has a real and a complex array meet in an operator.

The standard lets them, where integers may not meet floats (array_api_strict, in the conformance
suite, sees to these). Libraries differ: PyTorch's matmul and solve refuse it. So it is refused
here, by an array_api_strict whose table of promotions lacks these pairs. A real array with a
complex number of Python's is what every library takes.
"""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("multigrad_conformance")
pytest.importorskip("multigrad_strict")
pytest.importorskip("array_api_strict")

import array_api_strict as strict
from array_api_strict import _dtypes

from multigrad.registry import OPS, fill
from multigrad_conformance import cells

fill()
CHECKS = ("vjp", "jvp", "second", "each_output")
CHAPTERS = ("linalg", "fft")  # which make complex arrays of real ones
CELLS = [
    cell
    for cell in cells.selected("strict", "short")
    if "@" not in cell.id
    and cell.id.split("/")[1] in CHECKS
    and OPS[cell.id.split("/")[0]].builtin
    and ("complex" in cell.id.split("/")[2] or OPS[cell.id.split("/")[0]].chapter in CHAPTERS)
]


def is_complex(dtype: Any) -> bool:
    return dtype in (strict.complex64, strict.complex128)


class OneKind(dict[Any, Any]):
    """The table of promotions without those between real and complex."""

    with_number = False

    def __contains__(self, pair: object) -> bool:
        first, second = pair  # type: ignore[misc]
        return super().__contains__(pair) and (
            self.with_number or is_complex(first) == is_complex(second)
        )


@pytest.fixture
def one_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    table = OneKind(_dtypes._promotion_table)
    check = strict._array_object.Array._check_allowed_dtypes

    def lenient(self: Any, other: Any, *args: Any, **kwargs: Any) -> Any:
        table.with_number = isinstance(other, complex)
        try:
            return check(self, other, *args, **kwargs)
        finally:
            table.with_number = False

    monkeypatch.setattr(_dtypes, "_promotion_table", table)
    monkeypatch.setattr(strict._array_object.Array, "_check_allowed_dtypes", lenient)


def test_the_table_refuses_both_kinds(one_kind: None) -> None:
    x, z = strict.ones(2), strict.ones(2, dtype=strict.complex128)
    with pytest.raises(TypeError, match="promoted together"):
        x * z
    with pytest.raises(TypeError, match="promoted together"):
        x @ z
    assert is_complex((1j * x).dtype)


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.id)
def test_one_kind(cell: Any, one_kind: None) -> None:
    cell.execute()
