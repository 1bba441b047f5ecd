"""print_graph: a graph as a text tree."""

from __future__ import annotations

import io
import re
import sys
from typing import Any

import numpy as np
import pytest

import multigrad as mg
from multigrad.autograd import graph


def printed(*args: Any, **kwargs: Any) -> str:
    out = io.StringIO()
    graph.print_graph(*args, file=out, **kwargs)
    return out.getvalue()


def test_print_graph(xp: Any, capsys: pytest.CaptureFixture[str]) -> None:
    w = xp.asarray(np.full((3, 4), 0.1).tolist(), dtype=xp.float64, requires_grad=True)
    b = xp.zeros(4, dtype=xp.float64, requires_grad=True)
    h = xp.tanh(xp.ones((5, 3), dtype=xp.float64) @ w + b)
    graph.print_graph(xp.sum(h * h), {"w": w, "b": b})
    assert capsys.readouterr().out.splitlines() == [
        "5 operations, 2 leaves, 280 B in saved arrays",
        "output: () float64",
        "SumBackward: () float64",
        "MultiplyBackward: (5, 4) float64, keeps 160 B",
        "TanhBackward: (5, 4) float64, keeps 160 B",
        "AddBackward: (5, 4) float64 <- b (4,) float64",
        "MatmulBackward: (5, 4) float64, keeps 120 B <- w (3, 4) float64",
    ]


def test_shared_nodes_are_shown_once() -> None:
    w = mg.asarray([1.0, 2.0], requires_grad=True)
    r = mg.exp(w)
    text = printed(mg.sin(r) * mg.tanh(mg.cos(r)), {"w": w}).splitlines()
    assert text[2:] == [
        "MultiplyBackward: (2,) float64, keeps 32 B",
        "├─ SinBackward: (2,) float64, keeps 16 B",
        "│  ExpBackward #1: (2,) float64, keeps 16 B <- w (2,) float64",
        "└─ TanhBackward: (2,) float64, keeps 16 B",
        "   CosBackward: (2,) float64, keeps 16 B <- #1",
    ]


def test_print_graph_stops_at_a_depth() -> None:
    w = mg.asarray([1.0], requires_grad=True)
    text = printed(mg.sin(mg.cos(mg.exp(w))), depth=2).splitlines()
    assert text[-3].startswith("CosBackward") and text[-2:] == [
        "└─ …",
        "(1 place where the depth of 2 ends)",
    ]
    with pytest.raises(ValueError, match="depth must be a positive number or None, not 0"):
        graph.print_graph(w, depth=0)


def test_print_graph_folds_what_repeats() -> None:
    w = mg.asarray(np.ones(4), requires_grad=True)
    y = mg.exp(w)
    for _ in range(300):
        y = mg.sin(y) * w
    text = printed(y, {"w": w})
    assert len(text.splitlines()) < 12 and re.search(r"SinBackward × (299|300)", text)
    assert "a pattern that ends here and begins again" in text
    assert len(printed(y, {"w": w}, fold=False).splitlines()) == 603


def test_print_graph_in_colours() -> None:
    pytest.importorskip("rich")
    w = mg.asarray([1.0], requires_grad=True)
    assert "SinBackward: (1,) float64, keeps 8 B <- w (1,) float64" in printed(
        mg.sin(w), {"w": w}, rich=True
    )


def test_print_graph_without_rich(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with pytest.raises(RuntimeError, match="needs the package rich: pip install rich"):
        graph.print_graph(mg.asarray([1.0], requires_grad=True), rich=True)


@pytest.mark.parametrize("given", [np.ones(3), [], [1.0]])
def test_what_is_no_tensor(given: Any) -> None:
    with pytest.raises(TypeError, match="print_graph takes a Tensor or a sequence of Tensors, not"):
        printed(given)
