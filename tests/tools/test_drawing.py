"""Pictures of graphs: what they say of known graphs, as DOT, SVG and a page; how large ones are
folded.
"""

from __future__ import annotations

import re
import shutil
import sys
import time
import types
import warnings
import xml.dom.minidom
import xml.etree.ElementTree as ET
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from leaves import ones
from report_pages import alone

import multigrad as mg
from multigrad.autograd import graph
from multigrad.autograd.graph import draw, print_graph

HERE = Path(__file__).name


def small(xp: Any) -> tuple[Any, dict[str, Any]]:
    """tanh(x @ w + b), squared and summed: five operations and two leaves."""
    w = xp.asarray(np.full((3, 4), 0.1).tolist(), dtype=xp.float64, requires_grad=True)
    b = xp.zeros(4, dtype=xp.float64, requires_grad=True)
    x = xp.ones((5, 3), dtype=xp.float64)
    h = xp.tanh(x @ w + b)
    return xp.sum(h * h), {"w": w, "b": b}


def named(picture: Any) -> dict[str, Any]:
    return {b.title: b for b in picture.boxes}


def edges(picture: Any) -> set[tuple[str, str]]:
    titles = [b.title for b in picture.boxes]
    return {(titles[a.start], titles[a.end]) for a in picture.arrows}


def chain(xp: Any, n: int) -> tuple[Any, Any]:
    w = xp.ones(4, dtype=xp.float64, requires_grad=True)
    y = xp.exp(w)
    for _ in range(n):
        y = xp.sin(y) * w
    return y, w


# What it says


def test_names_edges_shapes_and_bytes_of_a_known_graph(xp: Any) -> None:
    loss, params = small(xp)
    picture = graph.draw(loss, params)
    assert edges(picture) == {
        ("w", "MatmulBackward"),
        ("MatmulBackward", "AddBackward"),
        ("b", "AddBackward"),
        ("AddBackward", "TanhBackward"),
        ("TanhBackward", "MultiplyBackward"),
        ("MultiplyBackward", "SumBackward"),
        ("SumBackward", "output"),
    }
    box = named(picture)
    assert box["w"].kind == "leaf" and box["w"].rows == ["(3, 4) float64"]
    assert box["MatmulBackward"].rows[:2] == ["(5, 4) float64", "keeps 120 B"]  # x, of 5 by 3
    assert box["AddBackward"].rows == ["(5, 4) float64"]
    assert box["TanhBackward"].rows[:2] == ["(5, 4) float64", "keeps 160 B"]
    assert box["SumBackward"].rows == ["() float64"]
    assert "saved x1 (constant): (5, 3) float64, 120 B" in box["MatmulBackward"].tip
    assert "saved ans (output): (5, 4) float64, 160 B" in box["TanhBackward"].tip
    assert picture.summary == "5 operations, 2 leaves, 280 B in saved arrays"
    text = picture.dot
    assert text.startswith("digraph autograd {") and text.endswith("}\n")
    assert len(re.findall(r"^  n\d+ \[label=", text, re.M)) == 8
    assert len(re.findall(r"^  n\d+ -> n\d+", text, re.M)) == 7
    assert '[label="MatmulBackward\\n(5, 4) float64\\nkeeps 120 B"' in text
    loss.backward()  # drawing has changed nothing
    assert params["w"].grad is not None


def test_lines_are_told_where_they_were_recorded(xp: Any) -> None:
    w = xp.ones(3, dtype=xp.float64, requires_grad=True)
    with graph.record_lines():
        line = sys._getframe().f_lineno + 1
        y = xp.sin(w)
    z = xp.cos(y)
    box = named(graph.draw(z))
    assert f"{HERE}:{line}" in box["SinBackward"].rows
    assert any(
        f"test_drawing.py:{line}, in test_lines_are_told" in text for text in box["SinBackward"].tip
    )
    assert not any(HERE in row for row in box["CosBackward"].rows)


def test_lines_of_anomaly_mode_serve_as_well() -> None:
    w = mg.asarray([1.0], requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        mode = mg.autograd.detect_anomaly(check_nan=False)
    with mode:
        line = sys._getframe().f_lineno + 1
        y = mg.sin(w)
    assert f"{HERE}:{line}" in named(graph.draw(y))["SinBackward"].rows


def test_what_was_modified_since_is_red(xp: Any) -> None:
    w = xp.ones(3, dtype=xp.float64, requires_grad=True)
    h = w * 2.0
    y = xp.sin(h)
    h += 1.0
    picture = graph.draw(y)
    box = named(picture)["SinBackward"]
    assert box.changed and "modified since it was saved" in box.rows
    assert any("version 1, but 0 when it was saved" in line for line in box.tip)
    assert "1 operation whose saved arrays were modified: backward raises" in picture.summary
    assert 'color="#dc2626"' in picture.dot and "#dc2626" in picture.svg
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        xp.sum(y).backward()


def test_versions_of_leaves(xp: Any) -> None:
    w = xp.ones(3, dtype=xp.float64, requires_grad=True)
    with mg.no_grad():
        w += 1.0
    assert named(graph.draw(xp.sin(w), {"w": w}))["w"].rows == ["(3,) float64", "version 1"]


def test_several_outputs_and_several_tensors(xp: Any) -> None:
    w = xp.ones((2, 2), dtype=xp.float64, requires_grad=True)
    a, b = xp.unstack(w)
    picture = graph.draw([a, b], {"w": w})
    assert edges(picture) == {
        ("w", "UnstackBackward"),
        ("UnstackBackward", "output 0"),
        ("UnstackBackward", "output 1"),
    }
    assert named(picture)["UnstackBackward"].rows[0] == "(2,) float64; (2,) float64"


def test_what_is_packed_or_freed_is_not_opened() -> None:
    w = mg.asarray(2.0, requires_grad=True)
    opened = []
    with graph.saved_tensors_hooks(lambda t: "elsewhere", opened.append):
        packed = mg.sin(w)
    tip = named(graph.draw(packed))["SinBackward"].tip
    assert any("held by saved-tensor hooks" in line for line in tip) and not opened
    checkpointed = graph.draw(mg.func.checkpoint(mg.sin)(w + 1.0))
    assert "saved argument of a checkpoint" in str([b.tip for b in checkpointed.boxes])
    y = mg.sin(w)
    y.backward()
    assert named(graph.draw(y))["SinBackward"].tip[-1] == "its saved arrays are freed"


def test_a_constant_and_a_leaf() -> None:
    assert [b.title for b in graph.draw(mg.asarray([1.0])).boxes] == ["output"]
    w = mg.asarray([1.0], requires_grad=True)
    assert edges(graph.draw(w, {"w": w})) == {("w", "output")}


def test_inside_a_transformation() -> None:
    seen = []

    def f(x: Any) -> Any:
        y = mg.sum(mg.sin(x) * x)
        seen.append(edges(graph.draw(y)))
        return y

    mg.func.grad(f)(np.ones(3))
    assert ("SinBackward", "MultiplyBackward") in seen[0] and ("leaf", "SinBackward") in seen[0]


def test_nested_and_listed_params() -> None:
    w, b = (mg.asarray([1.0], requires_grad=True) for _ in range(2))
    assert {"net.w", "net.b"} <= set(named(graph.draw(w * b, {"net": {"w": w, "b": b}})))
    assert {"params[0]", "params[1]"} <= set(named(graph.draw(w * b, [w, b])))


# Large graphs


def test_what_repeats_is_drawn_once(xp: Any) -> None:
    y, w = chain(xp, 100)
    picture = graph.draw(y, {"w": w})
    assert picture.folded and len(picture.boxes) <= 8
    repeated = {b.title: b.times for b in picture.boxes if b.times > 1}
    assert repeated in (
        {"SinBackward": 100, "MultiplyBackward": 100},
        {"SinBackward": 99, "MultiplyBackward": 99},
    )
    assert any(a.back for a in picture.arrows) and re.search("× (99|100)", picture.dot)
    members = [v.number for b in picture.boxes for v in b.members]
    assert sorted(members) == list(range(202))  # every node is in one box


def test_a_large_graph_is_folded_by_label(xp: Any) -> None:
    params, h = {}, xp.ones((2, 2), dtype=xp.float64)
    with graph.label("net"):
        for i in range(12):
            params[f"w{i}"] = xp.ones((2, 2), dtype=xp.float64, requires_grad=True)
            with graph.label(f"layer{i}"):
                for _ in range(i + 2):  # no two layers are alike
                    h = xp.sin(h @ params[f"w{i}"])
    loss = xp.sum(h)
    picture = graph.draw(loss, params, max_nodes=30)
    groups = [b.title for b in picture.boxes if b.kind == "group"]
    assert groups == [f"net/layer{i}" for i in range(12)]
    assert ("w3", "net/layer3") in edges(picture) and ("net/layer3", "net/layer4") in edges(picture)
    assert [b.title for b in graph.draw(loss, params, max_nodes=4).boxes if b.kind == "group"] == [
        "net"
    ]
    everything = graph.draw(loss, params, fold=False)
    assert (
        "net/layer3" in next(b for b in everything.boxes if b.members and b.members[0].labels).rows
        or len(everything.boxes) > 150
    )


def test_equal_labelled_parts_are_drawn_once() -> None:
    h, params = mg.asarray([[1.0, 2.0]]), []
    for i in range(60):
        params.append(mg.asarray([[1.0, 0.0], [0.0, 1.0]], requires_grad=True))
        with graph.label(f"block{i}"):
            h = mg.tanh(h @ params[-1]) + h
    picture = graph.draw(mg.sum(h), {f"w{i}": w for i, w in enumerate(params)})
    titles = {b.title: b.times for b in picture.boxes}
    assert titles["block1 … block59"] == 59 and titles["w1 … w59"] == 59


def test_without_labels_it_is_folded_by_function_or_by_stretches() -> None:
    rng = np.random.default_rng(3)
    functions = [mg.sin, mg.cos, mg.tanh, mg.exp, mg.atan]

    def body(y: Any) -> Any:
        for k in rng.integers(0, 5, 300):
            y = functions[k](y)
        return y

    w = mg.asarray([0.1], requires_grad=True)
    with graph.record_lines():
        y = body(w)
    picture = graph.draw(y, max_nodes=10)
    assert any("body (test_drawing.py)" in b.title for b in picture.boxes), [
        b.title for b in picture.boxes
    ]
    picture = graph.draw(body(w), max_nodes=10)
    assert len(picture.boxes) <= 14 and all(
        b.rows[0].endswith("operations") for b in picture.boxes if b.kind == "group"
    )


def test_a_label_is_a_decorator_too() -> None:
    @graph.label("cell")
    def cell(y: Any) -> Any:
        return mg.sin(y)

    w = mg.asarray([0.5], requires_grad=True)
    assert "cell" in named(graph.draw(cell(w)))["SinBackward"].rows


@pytest.mark.slow
def test_a_hundred_thousand_nodes_take_seconds_and_no_recursion(tmp_path: Path) -> None:
    y, w = chain(mg.namespace("numpy"), 50_000)
    limit = sys.getrecursionlimit()
    start = time.process_time()
    picture = graph.draw(y, {"w": w}, path=tmp_path / "large.html")
    report = graph.memory_report(y)
    taken = time.process_time() - start
    assert report.operations == 100_001 and len(str(report)) < 5000
    assert sys.getrecursionlimit() == limit
    assert len(picture.graph.vertices) == 100_002 and len(picture.boxes) <= 8
    assert (tmp_path / "large.html").stat().st_size < 50_000
    assert taken < 60, f"{taken:.1f} s"


# Files


def test_svg_page_and_notebooks() -> None:
    loss, params = small(mg.namespace("numpy"))
    picture = graph.draw(loss, params)
    root = ET.fromstring(picture.svg)
    assert (
        len([g for g in root.iter("{http://www.w3.org/2000/svg}g") if g.get("class") == "box"]) == 8
    )
    page = alone(picture.html)
    assert (
        len([value for _, name, value in page.attributes if (name, value) == ("class", "box")]) == 8
    )
    assert "MatmulBackward" in page.text and "keeps 120 B" in page.text
    assert (
        picture._repr_svg_() == picture.svg
        and "<svg" in picture._repr_html_()
        and "5 operations" in picture._repr_html_()
    )
    assert repr(picture) == "<GraphPicture: 5 operations, 2 leaves, 280 B in saved arrays>"


def test_boxes_do_not_overlap_and_arrows_lead_down() -> None:
    loss, params = small(mg.namespace("numpy"))
    lay = graph.draw(loss, params).layout
    for a, b in combinations(lay.cells, 2):
        assert (
            abs(a.x - b.x) >= (a.width + b.width) / 2 or abs(a.y - b.y) >= (a.height + b.height) / 2
        )
    assert all(way[0][1] < way[-1][1] for way in lay.ways)
    assert all(0 <= c.x - c.width / 2 and c.x + c.width / 2 <= lay.width for c in lay.cells)


def test_save_goes_by_the_suffix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "graphviz", None)  # not installed
    w = mg.asarray([1.0], requires_grad=True)
    y = mg.sin(w)
    picture = graph.draw(y, path=tmp_path / "a.dot")
    assert (tmp_path / "a.dot").read_text() == picture.dot
    assert picture.save(tmp_path / "a.svg").read_text() == picture.svg
    assert picture.save(str(tmp_path / "a.HTML")).read_text() == picture.html
    assert picture.save(tmp_path / "plain", "dot").read_text() == picture.dot
    with pytest.raises(
        RuntimeError,
        match=r"a PNG needs Graphviz: the package \(pip install 'multigrad-array\[viz\]'\) and "
        r"its program `dot`",
    ):
        picture.save(tmp_path / "a.png")
    with pytest.raises(ValueError, match="saved as dot, svg, png or html, not 'jpg'"):
        picture.save(tmp_path / "a.jpg")
    with pytest.raises(ValueError, match="not 'gif'"):
        graph.draw(y, format="gif")


def test_graphviz_is_asked_where_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Missing(RuntimeError):
        pass

    class Source:
        def __init__(self, text: str) -> None:
            self.text = text

        def pipe(self, format: str) -> bytes:
            if format == "png" and stub.broken:
                raise Missing
            return f"{format}: {self.text}".encode()

    stub: Any = types.ModuleType("graphviz")
    stub.Source, stub.ExecutableNotFound, stub.broken = Source, Missing, False
    monkeypatch.setitem(sys.modules, "graphviz", stub)
    picture = graph.draw(mg.sin(mg.asarray([1.0], requires_grad=True)))
    assert picture.save(tmp_path / "a.svg").read_text() == f"svg: {picture.dot}"
    assert picture.save(tmp_path / "a.png").read_bytes() == f"png: {picture.dot}".encode()
    stub.broken = True
    with pytest.raises(RuntimeError, match="its program `dot`"):
        picture.save(tmp_path / "a.png")


def test_graphviz_takes_the_text(tmp_path: Path) -> None:
    pytest.importorskip("graphviz", reason="the package graphviz is not installed (extra viz)")
    if shutil.which("dot") is None:
        pytest.skip("the program dot is not installed")
    y, w = chain(mg.namespace("numpy"), 100)
    picture = graph.draw(y, {'w "1"': w})
    assert picture.save(tmp_path / "a.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    svg = picture.save(tmp_path / "a.svg").read_text()
    assert svg.count('class="node"') == len(picture.boxes)


# What is refused, and what it costs


def test_errors() -> None:
    w = mg.asarray([1.0], requires_grad=True)
    with pytest.raises(
        TypeError, match="draw takes a Tensor or a sequence of Tensors, not ndarray"
    ):
        graph.draw(np.ones(2))
    with pytest.raises(TypeError, match="not an empty sequence"):
        graph.draw([])
    with pytest.raises(TypeError, match="not a sequence with other objects"):
        graph.draw([w, 1.0])
    with pytest.raises(
        TypeError,
        match="params names leaves: a dictionary or a sequence of Tensors, but it holds a int",
    ):
        graph.draw(w, {"w": 3})
    with pytest.raises(TypeError, match="fold must be True, False or None, not 1"):
        graph.draw(w, fold=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_nodes must be a positive number, not 0"):
        graph.draw(w, max_nodes=0)
    with pytest.raises(
        TypeError, match="label takes the name of a part of the graph, a str, not int"
    ):
        graph.label(3)  # type: ignore[arg-type]
    with pytest.raises(
        AttributeError, match=r"module 'multigrad.autograd.graph' has no attribute 'nonsense'"
    ):
        graph.nonsense
    with pytest.raises(
        AttributeError, match=r"module 'multigrad.autograd' has no attribute 'nonsense'"
    ):
        mg.autograd.nonsense


NAME = "a\"<&>'\\\n\x00\x1b\ud800é</script>"


def test_pictures_with_names_of_any_characters(tmp_path, capsys, monkeypatch):
    from multigrad.tools.graphs import drawing

    monkeypatch.setattr(drawing, "rendered", lambda dot, kind: None)
    x = ones(2)
    y = (x * x).sum()
    picture = draw(y, {NAME: x})
    assert r"a\"<&>'\\" in picture.dot
    for suffix in ("dot", "svg", "html"):
        assert "\ufffd" in picture.save(tmp_path / f"graph.{suffix}").read_text(encoding="utf-8")
    xml.dom.minidom.parse(str(tmp_path / "graph.svg"))
    print_graph(y, {NAME: x})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    lines[-1].encode()


def test_an_operand_that_is_kept_twice_takes_its_bytes_once(xp):
    x = xp.ones(100, dtype=xp.float64, requires_grad=True)
    y = x * x
    picture = draw(xp.sum(y * y))
    assert picture.summary.endswith("1.6 KiB in saved arrays")
    assert [b["bytes"] for b in picture.data()["boxes"]] == [0, 800, 800, 0, 0]
